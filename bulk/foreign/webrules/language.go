package webrules

import (
	"regexp/syntax"
	"slices"
)

// language is the set of names that a regular expression matches somewhere, as an automaton. Names consist of the
// characters of URLs' paths; others do not count.
type language struct{ prog *syntax.Prog }

// The characters that names have: ASCII without controls and blanks.
const (
	firstRune = '!'
	lastRune  = '~'
)

// maxPairs bounds the work of a comparison of two languages.
const maxPairs = 5_000

// newLanguage returns the language of an expression that was parsed. The expression matches anywhere in a name,
// unless it has anchors.
func newLanguage(re *syntax.Regexp) (*language, error) {
	prog, err := syntax.Compile(re.Simplify())
	return &language{prog}, err
}

// relation is how a language is related to another one.
type relation uint8

const (
	unsure   relation = iota // it would take too much work to know
	disjoint                 // no name is in both
	within                   // every name of the first is in the second
	overlaps                 // some names of the first are in the second, and some are not
)

// states is a set of instructions of a program, sorted, and whether the program has matched already.
type states struct {
	list    []uint32
	matched bool
}

func (s states) key() string {
	b := make([]byte, 0, 2*len(s.list)+1)
	if s.matched {
		return "m"
	}
	for _, pc := range s.list {
		b = append(b, byte(pc), byte(pc>>8))
	}
	return string(b)
}

// begin returns where a program is before the first character.
func (l *language) begin() states {
	return l.close([]uint32{uint32(l.prog.Start)}, syntax.EmptyBeginText|syntax.EmptyBeginLine)
}

// close follows the instructions that read nothing, where conditions such as the beginning of the text hold. The word
// boundary is not among them: see hasBoundary.
func (l *language) close(from []uint32, holds syntax.EmptyOp) (s states) {
	seen := make(map[uint32]bool, len(from))
	for stack := slices.Clone(from); len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &l.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			if need := syntax.EmptyOp(in.Arg); need&^holds == 0 {
				stack = append(stack, in.Out)
			} else {
				s.list = append(s.list, pc) // it may hold at the end
			}
		case syntax.InstMatch:
			s.matched = true
		case syntax.InstFail:
		default:
			s.list = append(s.list, pc)
		}
	}
	slices.Sort(s.list)
	return s
}

// next returns where a program is after another character. What has matched stays so, and a match may begin
// at any character.
func (l *language) next(s states, c rune) states {
	if s.matched {
		return states{matched: true}
	}
	out := []uint32{uint32(l.prog.Start)}
	for _, pc := range s.list {
		if in := &l.prog.Inst[pc]; in.Op != syntax.InstEmptyWidth && in.MatchRune(c) {
			out = append(out, in.Out)
		}
	}
	return l.close(out, 0)
}

// accepts reports whether a name that ends here is in the language.
func (l *language) accepts(s states, first bool) bool {
	if s.matched {
		return true
	}
	holds := syntax.EmptyEndText | syntax.EmptyEndLine
	if first {
		holds |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	return l.close(s.list, holds).matched
}

// hasBoundary reports whether an expression asks for the edge of a word or of a line, which the automaton does not know.
func hasBoundary(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpBeginLine, syntax.OpEndLine:
		return true
	}
	return slices.ContainsFunc(re.Sub, hasBoundary)
}

// unlike returns characters of which no two are the same to both languages: one stands for all that are like it.
func (l *language) unlike(other *language) (list []rune) {
	seen := make(map[string]bool)
	for c := rune(firstRune); c <= lastRune; c++ {
		var key []byte
		for _, prog := range []*syntax.Prog{l.prog, other.prog} {
			for i := range prog.Inst {
				switch in := &prog.Inst[i]; in.Op {
				case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
					b := byte(0)
					if in.MatchRune(c) {
						b = 1
					}
					key = append(key, b)
				}
			}
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			list = append(list, c)
		}
	}
	return list
}

// relate returns how the names of a language are related to another one. It takes what it does from the work that is left.
func (l *language) relate(other *language, left *int) relation {
	if *left < 0 {
		return unsure
	}
	chars := l.unlike(other)
	*left -= (lastRune - firstRune) * (len(l.prog.Inst) + len(other.prog.Inst)) / 4
	type pair struct{ a, b states }
	seen := make(map[string]bool)
	queue := []pair{{l.begin(), other.begin()}}
	both, only := false, false
	for first := true; len(queue) > 0; first = false {
		at := queue[0]
		queue = queue[1:]
		if *left -= 1 + len(chars)*(len(at.a.list)+len(at.b.list)+1)/4; *left < 0 {
			return unsure
		}
		if l.accepts(at.a, first) {
			if other.accepts(at.b, first) {
				both = true
			} else {
				only = true
			}
			if both && only {
				return overlaps
			}
		}
		for _, c := range chars {
			to := pair{l.next(at.a, c), other.next(at.b, c)}
			key := to.a.key() + "\x00\x00" + to.b.key()
			if seen[key] {
				continue
			}
			if len(seen) == maxPairs {
				return unsure
			}
			seen[key] = true
			queue = append(queue, to)
		}
	}
	switch {
	case !both:
		return disjoint
	case !only:
		return within
	}
	return overlaps
}
