package registrar

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// What is kept of minters is text, so that a person can read a damaged store. A
// state belongs to a prefix of names, not to a namespace: whoever has the prefix
// later goes on where the one before it stopped. Its name is the scheme, a space
// and the prefix. A prefix has one kind of state for ever, since two kinds of
// minters could make the same name.
//
//	date 1287588000 0 sid.inpe.br/mtc-m18   seconds, attoseconds, namespace
//	date none sid.inpe.br/mtc-m18           no date is issued yet
//	noid                                    a line for each template that was used:
//	1000 7 .reedeedk                        names given, seed, template
//	200 0 .zddd shut                        shut by a restore
const (
	dateMark = "date"
	noidMark = "noid"
	shutMark = "shut"
)

// stateName names the state of the minter of a prefix.
func stateName(key stele.NamespaceKey) string { return key.Scheme + " " + key.Prefix }

// bookmarkName names the bookmark of an import, which is kept as a minter's state
// is. No scheme is named so.
func bookmarkName(name string) string { return "import " + name }

// dateState is how far the dates of a prefix are reserved.
type dateState struct {
	last   mint.Date
	issued bool   // there is a last date
	holder string // prefix of the namespace that has the prefix; "" if none does
}

func (s dateState) bytes() []byte {
	if !s.issued {
		return []byte(dateMark + " none " + s.holder)
	}
	return fmt.Appendf(nil, "%s %d %d %s", dateMark, s.last.Unix(), s.last.Attoseconds(), s.holder)
}

// seriesState is how many names of a template were given.
type seriesState struct {
	template string
	seed     uint64
	given    uint64
	shut     bool
}

type noidState []seriesState

func (s noidState) bytes() []byte {
	b := []byte(noidMark)
	for _, e := range s {
		b = fmt.Appendf(b, "\n%d %d %s", e.given, e.seed, e.template)
		if e.shut {
			b = append(b, " "+shutMark...)
		}
	}
	return b
}

// find returns where the state of a template is, -1 if it was never used.
func (s noidState) find(template string, seed uint64) int {
	for i, e := range s {
		if e.template == template && e.seed == seed {
			return i
		}
	}
	return -1
}

// with returns a copy that has the state of a minter's template, and where.
func (s noidState) with(m stele.Minter) (noidState, int) {
	next := append(noidState(nil), s...)
	if i := s.find(m.Template, m.Seed); i >= 0 {
		return next, i
	}
	return append(next, seriesState{template: m.Template, seed: m.Seed}), len(s)
}

// used reports whether names were given.
func (s noidState) used() bool {
	for _, e := range s {
		if e.given > 0 {
			return true
		}
	}
	return false
}

// minterState is what is kept of a prefix: dates or templates, neither if nothing
// is.
type minterState struct {
	date *dateState
	noid noidState
}

// readState reads a state. An error means damage.
func readState(name string, data []byte) (s minterState, err error) {
	if data == nil {
		return s, nil
	}
	text := string(data)
	ok := false
	if rest, found := strings.CutPrefix(text, dateMark+" "); found {
		s.date = new(dateState)
		ok = s.date.read(rest)
	} else if lines := strings.Split(text, "\n"); lines[0] == noidMark {
		s.noid = noidState{}
		ok = s.noid.read(lines[1:])
	}
	if !ok {
		return s, refuse("read minter", stele.ID{}, stele.Internal, "what is kept of the minter %q is damaged: %.80q", name, text)
	}
	return s, nil
}

func (s *dateState) read(text string) bool {
	if rest, ok := strings.CutPrefix(text, "none "); ok {
		s.holder = rest
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
	s.last, s.issued, s.holder = d, true, holder
	return err == nil
}

func (s *noidState) read(lines []string) bool {
	for _, line := range lines {
		f := strings.Split(line, " ")
		if len(f) < 3 || len(f) > 4 {
			return false
		}
		given, err1 := strconv.ParseUint(f[0], 10, 64)
		seed, err2 := strconv.ParseUint(f[1], 10, 64)
		shut := len(f) == 4
		if err1 != nil || err2 != nil || shut && f[3] != shutMark {
			return false
		}
		*s = append(*s, seriesState{f[2], seed, given, shut})
	}
	return true
}
