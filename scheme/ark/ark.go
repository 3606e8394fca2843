// Package ark reads Archival Resource Keys: ark:12345/x54xz321/s3/f8.05v.tiff.
// Sections cited are those of draft-kunze-ark-42, the ARK Alliance's draft.
//
// It brings an ARK into the draft's normal form and tells its parts. It never
// resolves one, never judges the host that an ARK is written with, decodes no
// percent-encoding, and does not ask whether a NAAN is assigned.
package ark

import (
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

const (
	name  = "ark"
	label = "ark:"
)

// Scheme is the grammar of ARKs. Make one with [New].
type Scheme struct {
	checked []Checked
}

var _ stele.PlaceScheme = (*Scheme)(nil)

// Option changes what New makes.
type Option func(*Scheme)

// New makes the scheme. Without options it demands the check characters of the
// shoulders in [DefaultChecked].
func New(opts ...Option) *Scheme {
	s := &Scheme{checked: DefaultChecked()}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Name returns "ark".
func (s *Scheme) Name() string { return name }

// Parse reads an ARK by itself, in any case of its label, or the first one in
// the path of an http URL.
func (s *Scheme) Parse(text string) (stele.ID, error) {
	var r reading
	if err := s.read(text, &r); err != nil {
		return stele.ID{}, err
	}
	return stele.NewID(name, r.canon)
}

// Spellings returns the URL at the global resolver, and the older form, which has
// a slash after the label (section 2.2).
func (s *Scheme) Spellings(id stele.ID) []stele.Spelling {
	rest, ok := strings.CutPrefix(id.String(), label)
	if !ok {
		return nil
	}
	return []stele.Spelling{
		{Name: "N2T URL", Text: "https://n2t.net/" + id.String()},
		{Name: "classic form", Text: label + "/" + rest},
	}
}

// Parents yields what contains id by the draft's sections 2.5.1 and 2.5.2: id
// without its last qualifiers, one by one, down to the base name; then its
// shoulders that are known or follow the first-digit convention, then the NAAN.
func (s *Scheme) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		text := id.String()
		naan := strings.IndexByte(text, '/')
		base := len(text)
		for i := base - 1; i > naan && naan > 0; i-- {
			if isStructural(text[i]) {
				base = i
				if !yield(id.Prefix(i)) {
					return
				}
			}
		}
		if naan < 0 {
			return
		}
		for n := base; ; {
			if n = s.shoulderBefore(text, naan, base, n); n < 0 {
				break
			}
			if !yield(id.Prefix(n)) {
				return
			}
		}
		yield(id.Prefix(naan))
	}
}

// Cuts reports whether id may be cut after n bytes: after the NAAN, and after any
// character of the rest. A shoulder need not end in a digit (section 2.4.1 recommends
// it), and only the organisation that assigns names knows where it ends. No prefix ends in
// a separator, which does not count at the end of an ARK (section 3.2, step 8), or within a
// percent-encoding.
func (s *Scheme) Cuts(id stele.ID, n int) bool {
	text := id.String()
	naan := strings.IndexByte(text, '/')
	if naan < 0 || n < naan || n >= len(text) {
		return false
	}
	return n == naan || n > naan+1 && !isStructural(text[n-1]) && !lex.InTriplet(text, n)
}

// ParsePrefix reads a NAAN, a shoulder, or any other beginning of ARKs: ark:12345,
// ark:12345/x5.
func (s *Scheme) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	ends := []string{"x", "/x"}
	var r reading
	if len(text) < stele.MaxText && r.normalise(text+"x") == nil {
		if rule, ok := s.rule(&r); ok { // names there end in a check character
			ends = append(ends, "x"+string(rune(mint.CheckChar(rule.zone(&r)))))
		}
	}
	return lex.ParsePrefix(s, text, ends...)
}

// shoulderBefore returns where the longest shoulder of a text ends that ends
// before byte offset limit, or -1: one that is known, or the one by convention.
// The base name stands between naan and base.
func (s *Scheme) shoulderBefore(text string, naan, base, limit int) int {
	best := -1
	if n := shoulder(text[naan+1 : base]); n > 0 && naan+1+n < limit {
		best = naan + 1 + n
	}
	for _, c := range s.checked {
		end := len(label) + len(c.Shoulder)
		if end < limit && end > best && strings.HasPrefix(text[len(label):base], c.Shoulder) {
			best = end
		}
	}
	return best
}

// shoulder returns the length of a name's shoulder by the first-digit convention
// (section 2.4.1): its first letters and the digit after them. It is 0 if the
// name does not begin so or has nothing more.
func shoulder(name string) int {
	i := 0
	for i < len(name) && lex.IsAlpha(name[i]) {
		i++
	}
	if i > 0 && i+1 < len(name) && lex.IsDigit(name[i]) {
		return i + 1
	}
	return 0
}

// isStructural reports whether c separates the parts of an ARK.
func isStructural(c byte) bool { return c == '/' || c == '.' }

// PassesOn reports whether every ARK passes on what follows it, and a query, to its
// target, whether the target says so or not: suffix passthrough, as ARK resolvers do it.
// What follows must be a qualifier (section 2.5), or nothing: the rest of a longer name is
// not a part of the thing, unless the target says so.
func (*Scheme) PassesOn(rest string) bool { return rest == "" || isStructural(rest[0]) }
