package minting

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// The state of a minter is text, so that a person can read a damaged store. A
// state belongs to a prefix of names, not to a namespace: a namespace that has the prefix
// later continues where the one before it stopped. Its name is the scheme, a space
// and the prefix. A prefix has one kind of state for ever, since two kinds of
// minters could make the same name.
//
//	date 1287588000 0 sid.inpe.br/mtc-m18   seconds, attoseconds, namespace
//	date none sid.inpe.br/mtc-m18           no date is issued yet
//	noid                                    a line for each template that was used:
//	1000 7 .reedeedk                        names given, seed, template
//	200 0 .zddd shut                        shut by a restore
//	3 0 .rd noid+1 1,0,0,1,0,0,0,1,0,0      in the order of the original program, with its
//	                                        subcounters ("-": those of so many names); the mask
//	                                        grows by 1
const (
	dateMark = "date"
	noidMark = "noid"
	shutMark = "shut"
	noCounts = "-"
)

// StateName returns the name of the state of the minter of a prefix.
func StateName(key stele.NamespaceKey) string { return key.Scheme + " " + key.Prefix }

// bookmarkMark begins the names of the bookmarks of imports, which are kept among the states
// of minters. No scheme has this name.
const bookmarkMark = "import "

// BookmarkName returns the name under which the bookmark of an import is kept.
func BookmarkName(name string) string { return bookmarkMark + name }

// IsBookmark reports whether the name of a state is that of the bookmark of an import.
func IsBookmark(name string) bool { return strings.HasPrefix(name, bookmarkMark) }

// DateState is how far the dates of a prefix are reserved.
type DateState struct {
	Last   mint.Date
	Issued bool   // there is a last date
	Holder string // prefix of the namespace that has the prefix; "" if none does
}

// Bytes returns the state as it is stored.
func (s DateState) Bytes() []byte {
	if !s.Issued {
		return []byte(dateMark + " none " + s.Holder)
	}
	return fmt.Appendf(nil, "%s %d %d %s", dateMark, s.Last.Unix(), s.Last.Attoseconds(), s.Holder)
}

// TemplateState is how many names of a template were given.
type TemplateState struct {
	Template string
	Seed     uint64
	Given    uint64
	Shut     bool // a restore shut it, until an administrator skips the counter ahead

	// Of a template in the order of the original program: the subcounters as
	// [mint.Subcounters.AppendText] writes them. If they are missing, they are those of the
	// order's beginning after so many names.
	Order    stele.MinterOrder
	Expand   uint8
	Counters string
}

// TemplateStates are the states of all templates that a prefix has had.
type TemplateStates []TemplateState

// Bytes returns the states as they are stored.
func (s TemplateStates) Bytes() []byte {
	b := []byte(noidMark)
	for _, e := range s {
		b = fmt.Appendf(b, "\n%d %d %s", e.Given, e.Seed, e.Template)
		if e.Order != stele.OwnOrder {
			b = fmt.Appendf(b, " %s+%d %s", e.Order, e.Expand, cmp.Or(e.Counters, noCounts))
		}
		if e.Shut {
			b = append(b, " "+shutMark...)
		}
	}
	return b
}

// templateState returns the state of a minter's template before its first name. Names that come in
// order have one order only, whatever the minter says.
func templateState(m stele.Minter) TemplateState {
	e := TemplateState{Template: m.Template, Seed: m.Seed}
	if t, err := mint.ParseTemplate(m.Template); err == nil && t.IsShuffled() {
		e.Order, e.Expand = m.Order, m.Expand
	}
	return e
}

// find returns where the state of a template is, -1 if it was never used.
func (s TemplateStates) find(of TemplateState) int {
	for i, e := range s {
		if e.Template == of.Template && e.Seed == of.Seed && e.Order == of.Order && e.Expand == of.Expand {
			return i
		}
	}
	return -1
}

// with returns a copy that has the state of a minter's template, and where.
func (s TemplateStates) with(m stele.Minter) (TemplateStates, int) {
	next, first := append(TemplateStates(nil), s...), templateState(m)
	if i := s.find(first); i >= 0 {
		return next, i
	}
	return append(next, first), len(s)
}

// used reports whether names were given.
func (s TemplateStates) used() bool {
	for _, e := range s {
		if e.Given > 0 {
			return true
		}
	}
	return false
}

// State is the state of the minter of a prefix: dates or templates, or neither if the prefix
// had no minter.
type State struct {
	Dates     *DateState
	Templates TemplateStates
}

// ReadState reads a state that is stored under a name. An error means damage.
func ReadState(name string, data []byte) (s State, err error) {
	if data == nil {
		return s, nil
	}
	text := string(data)
	ok := false
	if rest, found := strings.CutPrefix(text, dateMark+" "); found {
		s.Dates = new(DateState)
		ok = s.Dates.read(rest)
	} else if lines := strings.Split(text, "\n"); lines[0] == noidMark {
		s.Templates = TemplateStates{}
		ok = s.Templates.read(lines[1:])
	}
	if !ok {
		return s, stele.Errorf("read minter", stele.ID{}, stele.Internal, "mint.state-damaged", `what is kept of the minter "{minter}" is damaged: "{text}"`, name, text)
	}
	return s, nil
}

func (s *DateState) read(text string) bool {
	if rest, ok := strings.CutPrefix(text, "none "); ok {
		s.Holder = rest
		return true
	}
	seconds, rest, _ := strings.Cut(text, " ")
	attos, holder, ok := strings.Cut(rest, " ")
	sec, err1 := strconv.ParseInt(seconds, 10, 64)
	atto, err2 := strconv.ParseUint(attos, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return false
	}
	d, err := mint.NewDate(sec, atto)
	s.Last, s.Issued, s.Holder = d, true, holder
	return err == nil
}

func (s *TemplateStates) read(lines []string) bool {
	for _, line := range lines {
		f := strings.Split(line, " ")
		if len(f) < 3 || len(f) > 6 {
			return false
		}
		given, err1 := strconv.ParseUint(f[0], 10, 64)
		seed, err2 := strconv.ParseUint(f[1], 10, 64)
		e := TemplateState{Template: f[2], Seed: seed, Given: given}
		if f = f[3:]; len(f) > 0 && f[len(f)-1] == shutMark {
			e.Shut, f = true, f[:len(f)-1]
		}
		if err1 != nil || err2 != nil || len(f) > 0 && !e.readOrder(f) {
			return false
		}
		*s = append(*s, e)
	}
	return true
}

// readOrder reads the fields of a template in the order of the original program.
func (s *TemplateState) readOrder(f []string) bool {
	if len(f) != 2 {
		return false
	}
	order, expand, ok := strings.Cut(f[0], "+")
	n, err := strconv.ParseUint(expand, 10, 8)
	s.Order, s.Expand = stele.MinterOrder(order), uint8(n)
	if f[1] != noCounts {
		s.Counters = f[1]
	}
	return ok && err == nil && s.Order == stele.OrderNOID
}

// readMinter reads the state of the minter of a prefix, as it is stored and as a value.
func readMinter(ctx context.Context, op string, store Reader, key stele.NamespaceKey) ([]byte, State, error) {
	data, err := store.MinterState(ctx, StateName(key))
	if err != nil {
		return nil, State{}, stele.AsError(op, err)
	}
	state, err := ReadState(StateName(key), data)
	return data, state, err
}
