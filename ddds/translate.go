package ddds

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// translate writes the expression in the syntax of package regexp, to be used with
// Longest. whole is for matching all of the text only.
//
// Go's own flag i is not used: it folds beyond ASCII, and the Kelvin sign would
// match a k. Letters become sets of both their cases instead.
func (e *ere) translate(whole bool) string {
	var b strings.Builder
	if whole {
		b.WriteString(`\A(?:`)
	}
	writeBranches(&b, e.branches)
	if whole {
		b.WriteString(`)\z`)
	}
	return b.String()
}

func writeBranches(b *strings.Builder, branches [][]node) {
	for i, branch := range branches {
		if i > 0 {
			b.WriteByte('|')
		}
		for k := range branch {
			branch[k].write(b)
		}
	}
}

func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case character:
		writeCharacter(b, n.char, n.fold)
	case oneOf:
		n.set.write(b)
	case grouped:
		b.WriteByte('(')
		writeBranches(b, n.branches)
		b.WriteByte(')')
	case beginning:
		b.WriteString(`\A`)
	case ending:
		b.WriteString(`\z`)
	}
	if n.low == 1 && n.high == 1 {
		return
	}
	b.WriteString("{" + strconv.Itoa(n.low) + ",")
	if n.high != unbounded {
		b.WriteString(strconv.Itoa(n.high))
	}
	b.WriteByte('}')
}

func writeCharacter(b *strings.Builder, r rune, fold bool) {
	if fold && r < utf8.RuneSelf && isLetter(byte(r)) {
		b.Write([]byte{'[', byte(r) | 0x20, byte(r) &^ 0x20, ']'})
		return
	}
	b.WriteString(regexp.QuoteMeta(string(r)))
}

func (s *set) write(b *strings.Builder) {
	if s.negated && len(s.spans) == 0 {
		b.WriteString("(?s:.)")
		return
	}
	b.WriteByte('[')
	if s.negated {
		b.WriteByte('^')
	}
	for _, x := range s.spans {
		writeRune(b, x.first)
		if x.last != x.first {
			b.WriteByte('-')
			writeRune(b, x.last)
		}
	}
	b.WriteByte(']')
}

func writeRune(b *strings.Builder, r rune) {
	b.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
}
