package ark

import (
	"errors"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// Checked is a shoulder all of whose names end in a NOID check character. An ARK
// under it whose check character does not hold is mistyped, and invalid.
type Checked struct {
	// Shoulder is a NAAN, a slash and the beginning of names: "13960/t". The
	// longest that an ARK begins with counts.
	Shoulder string
	// Alone is set where the check character is that of the name alone. By the
	// draft (section 2.4.1) it is that of the NAAN, a slash and the name.
	Alone bool
}

// DefaultChecked returns the shoulders that New knows to have check characters.
// An ARK need not have one, and no registry lists the organisations that use them, so the
// list is short: machines mint these names, people do not choose them, and each of some
// dozens of samples in public use that could be traced to a catalogue held.
//
//   - 12148, Bibliothèque nationale de France: its catalogue (cb), and texts
//     (bpt6k) and images (btv1b) of Gallica. It leaves out the NAAN.
//   - 13960/t, Internet Archive: books, known also from HathiTrust.
func DefaultChecked() []Checked {
	return []Checked{
		{Shoulder: "12148/cb", Alone: true},
		{Shoulder: "12148/bpt6k", Alone: true},
		{Shoulder: "12148/btv1b", Alone: true},
		{Shoulder: "13960/t"},
	}
}

// ParseChecked reads a shoulder as people write it, 12345/x5 or ark:/12345/x5,
// whose names end in the check character of the NAAN, a slash and the name.
func ParseChecked(text string) (Checked, error) {
	bare := text
	if _, marked := lex.CutFold(text, label); !marked {
		text = label + text
	}
	var r reading
	if err := r.normalise(text); err != nil {
		reason := err
		if e, ok := errors.AsType[*stele.SyntaxError](err); ok {
			reason = e.Reason
		}
		return Checked{}, stele.Invalidf(name, 0, "ark.not-a-shoulder", `"{text}" is not a shoulder: {reason}`, bare, reason)
	}
	if r.name < len(r.canon) {
		return Checked{}, stele.Invalidf(name, 0, "ark.shoulder-too-long", `a shoulder is a NAAN, a slash and the beginning of names, such as 12345/x5; "{text}" has more`, r.canon)
	}
	return Checked{Shoulder: r.canon[len(label):]}, nil
}

// WithChecked makes the scheme demand the check characters of these shoulders
// instead of [DefaultChecked]; of none, if there are none.
func WithChecked(shoulders ...Checked) Option {
	return func(s *Scheme) { s.checked = append([]Checked(nil), shoulders...) }
}

// rule returns the rule for the names of an ARK's shoulder, if one is known. The
// shoulder itself is not such a name.
func (s *Scheme) rule(r *reading) (rule Checked, ok bool) {
	zone := r.canon[len(label):r.name]
	for _, c := range s.checked {
		if len(c.Shoulder) > len(rule.Shoulder) && len(c.Shoulder) < len(zone) && strings.HasPrefix(zone, c.Shoulder) {
			rule, ok = c, true
		}
	}
	return rule, ok
}

// zone returns the check zone: the text over which the check character is computed, with
// the character.
func (c Checked) zone(r *reading) string {
	if c.Alone {
		return r.canon[r.naan+1 : r.name]
	}
	return r.canon[len(label):r.name]
}

// verify refuses an ARK that lacks the check character it must have.
func (s *Scheme) verify(r *reading) error {
	rule, ok := s.rule(r)
	if !ok {
		return nil
	}
	zone := rule.zone(r)
	last := len(zone) - 1
	if mint.Checked(zone) {
		// A character outside of NOID's alphabet weighs nothing, like a 0: an "o" in its place
		// keeps the check character right.
		if odd := oddCharacter(r.canon[r.naan+1 : r.name]); odd != 0 {
			return &stele.Error{Op: "parse", Kind: stele.Invalid, Err: &stele.SyntaxError{
				Scheme:      name,
				Pos:         r.last,
				Reason:      stele.Messagef("ark.odd-character", "names under {shoulder} are made of the characters {alphabet}; '{character}' is none of them", rule.Shoulder, mint.Betanumeric, string(rune(odd))),
				Suggestions: s.suggest(r, rule, zone),
			}}
		}
		return nil
	}
	return &stele.Error{Op: "parse", Kind: stele.Invalid, Err: &stele.SyntaxError{
		Scheme: name,
		Pos:    r.last,
		Reason: stele.Messagef("ark.check-character-wrong", "names under {shoulder} end in a check character, and '{character}' is not that of the rest ('{expected}' is): a character is wrong, or two are swapped",
			rule.Shoulder, zone[last:], string(rune(mint.CheckChar(zone[:last])))),
		Suggestions: s.suggest(r, rule, zone),
	}}
}

// oddCharacter returns the first character of a name that no NOID has, or 0.
func oddCharacter(name string) byte {
	for i := range len(name) {
		if !mint.IsBetanumeric(name[i]) {
			return name[i]
		}
	}
	return 0
}

// suggest returns the ARKs from which one typing error makes r.
func (s *Scheme) suggest(r *reading, rule Checked, zone string) (arks []string) {
	start := r.name - len(zone)
	for _, fixed := range mint.Repairs(zone, len(label)+len(rule.Shoulder)-start) {
		ark := r.canon[:start] + fixed + r.canon[r.name:]
		// A swap may have torn a percent-encoding, or led under another rule.
		var again reading
		if err := again.normalise(ark); err != nil || again.canon != ark {
			continue
		}
		if rule, ok := s.rule(&again); ok && mint.Checked(rule.zone(&again)) && oddCharacter(again.canon[again.naan+1:again.name]) == 0 {
			arks = append(arks, ark)
		}
	}
	return arks
}

// CheckZone returns what the check character of an ARK, in canonical form, ends:
// the NAAN, a slash and the name. Under a shoulder whose check characters are
// those of the name alone it is the name.
func (s *Scheme) CheckZone(text string) string {
	var r reading
	if err := r.normalise(text); err != nil {
		return ""
	}
	rule, _ := s.rule(&r)
	return rule.zone(&r)
}
