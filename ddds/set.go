package ddds

import "unicode/utf8"

// ascii is a set of ASCII characters, a bit each.
type ascii [2]uint64

func (a *ascii) add(c byte)      { a[c>>6] |= 1 << (c & 63) }
func (a *ascii) has(c byte) bool { return a[c>>6]&(1<<(c&63)) != 0 }

// set is the characters that a bracket expression or a dot matches.
type set struct {
	ascii   ascii // as it is, negation included
	spans   []span
	negated bool
}

func newSet(spans []span, negated bool) *set {
	s := &set{spans: spans, negated: negated}
	for _, x := range spans {
		for c := x.first; c <= min(x.last, utf8.RuneSelf-1); c++ {
			s.ascii.add(byte(c))
		}
	}
	if negated {
		s.ascii = ascii{^s.ascii[0], ^s.ascii[1]}
	}
	return s
}

func (s *set) has(r rune) bool {
	if r < utf8.RuneSelf {
		return s.ascii.has(byte(r))
	}
	for _, x := range s.spans {
		if x.first <= r && r <= x.last {
			return !s.negated
		}
	}
	return s.negated
}

// wide reports whether there are characters beyond ASCII in the set.
func (s *set) wide() bool {
	if s.negated {
		return true
	}
	for _, x := range s.spans {
		if x.last >= utf8.RuneSelf {
			return true
		}
	}
	return false
}
