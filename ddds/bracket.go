package ddds

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// span is a range of characters.
type span struct{ first, last rune }

// classSpans returns the characters of a class in the POSIX locale, which is what
// every name server and resolver agrees on.
func classSpans(name string) []span {
	switch name {
	case "alnum":
		return []span{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}
	case "alpha":
		return []span{{'A', 'Z'}, {'a', 'z'}}
	case "blank":
		return []span{{'\t', '\t'}, {' ', ' '}}
	case "cntrl":
		return []span{{0, 0x1f}, {0x7f, 0x7f}}
	case "digit":
		return []span{{'0', '9'}}
	case "graph":
		return []span{{'!', '~'}}
	case "lower":
		return []span{{'a', 'z'}}
	case "print":
		return []span{{' ', '~'}}
	case "punct":
		return []span{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}
	case "space":
		return []span{{'\t', '\r'}, {' ', ' '}}
	case "upper":
		return []span{{'A', 'Z'}}
	case "xdigit":
		return []span{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
	}
	return nil
}

// bracket reads a bracket expression (POSIX.1, base definitions, 9.3.5). In it a
// backslash is a character like others, except before the delimiter.
func (p *parser) bracket() (*set, error) {
	start := p.pos
	p.pos++
	negated := p.more() && p.text[p.pos] == '^'
	if negated {
		p.pos++
	}
	var spans []span
	ranged := false // the last item was a range
	for first := true; ; first = false {
		switch {
		case !p.more():
			return nil, p.errorf(start, "expression.bracket-open", "this bracket is not closed")
		case p.text[p.pos] == ']' && !first:
			p.pos++
			if p.fold {
				spans = folded(spans)
			}
			return newSet(spans, negated), nil
		case p.text[p.pos] == '-' && ranged:
			p.note(p.pos, "a hyphen after a range; write it first, as in [-a-z]")
		}
		items, wasRange, err := p.item()
		if err != nil {
			return nil, err
		}
		spans, ranged = append(spans, items...), wasRange
	}
}

// last reports whether the bracket is closed after the next character.
func (p *parser) last() bool {
	return p.pos+1 < len(p.text) && p.text[p.pos+1] == ']'
}

// item reads a character, a class or a range.
func (p *parser) item() (set []span, ranged bool, err error) {
	start := p.pos
	if name, ok := p.named(':'); ok {
		if set = classSpans(name); set == nil {
			return nil, false, p.errorf(start, "expression.class-unknown", "{class} is not a class of characters; POSIX has alnum, alpha, blank, cntrl, digit, graph, lower, print, punct, space, upper and xdigit", brief(name))
		}
		if p.rangeFollows() {
			return nil, false, p.errorf(p.pos, "expression.range-begins-with-class", "a range can't begin with a class")
		}
		return set, false, nil
	}
	if name, ok := p.named('='); ok {
		r, err := p.single(start, name)
		if err == nil && p.rangeFollows() {
			err = p.errorf(p.pos, "expression.range-begins-with-equivalence", "a range can't begin with an equivalence class")
		}
		return []span{{r, r}}, false, err
	}
	low, err := p.end()
	if err != nil || !p.rangeFollows() {
		return []span{{low, low}}, false, err
	}
	p.pos++
	high, err := p.end()
	switch {
	case err != nil:
		return nil, false, err
	case high < low:
		return nil, false, p.errorf(start, "expression.range-reversed", "the range from '{low}' to '{high}' is the wrong way round", string(rune(low)), string(rune(high)))
	case p.rangeFollows():
		return nil, false, p.errorf(p.pos, "expression.range-begins-at-range-end", "a range can't begin where another ends")
	}
	return []span{{low, high}}, true, nil
}

// rangeFollows reports whether a hyphen follows that is not the last character of
// the bracket.
func (p *parser) rangeFollows() bool {
	return p.more() && p.text[p.pos] == '-' && !p.last() && p.pos+1 < len(p.text)
}

// end reads an end of a range, or a character by itself.
func (p *parser) end() (rune, error) {
	start := p.pos
	if name, ok := p.named('.'); ok {
		return p.single(start, name)
	}
	rest := p.text[p.pos:]
	if len(rest) > 1 && rest[0] == '[' && (rest[1] == ':' || rest[1] == '=' || rest[1] == '.') {
		return 0, p.errorf(start, "expression.range-ends-with-class", "a class can't end a range, and must be closed as in [[:alpha:]]; write [ last for the character")
	}
	if rest == "" {
		return 0, p.errorf(start, "expression.range-end-missing", "the range has no end")
	}
	if len(rest) > 1 && rest[0] == '\\' {
		if p.delim != 0 && rest[1] == p.delim {
			p.note(start, "an escaped delimiter in brackets, which some take for two characters; choose another delimiter")
			p.pos += 2
			return rune(p.delim), nil
		}
		p.note(start, `a backslash in brackets, which some take for an escape; write \\ outside brackets`)
	}
	r, n := utf8.DecodeRuneInString(rest)
	p.pos += n
	return r, nil
}

// named reads [:name:], [=name=] or [.name.], whichever mark is asked for.
func (p *parser) named(mark byte) (name string, ok bool) {
	rest := p.text[p.pos:]
	if len(rest) < 2 || rest[0] != '[' || rest[1] != mark {
		return "", false
	}
	// A name has at least one character, which may be the mark itself: [[.....]].
	if len(rest) < 5 {
		return "", false
	}
	n := strings.Index(rest[3:], string([]byte{mark, ']'}))
	if n < 0 {
		return "", false
	}
	p.pos += n + 5
	return rest[2 : n+3], true
}

// single returns the character that a collating symbol or an equivalence class is.
// In the POSIX locale each character is equivalent to itself only.
func (p *parser) single(start int, name string) (rune, error) {
	p.note(start, "a collating symbol or equivalence class; write the character")
	r, n := utf8.DecodeRuneInString(name)
	if n != len(name) {
		return 0, p.errorf(start, "expression.collating-element-unknown", "{element} is not a collating element; only single characters are", brief(name))
	}
	return r, nil
}

// folded adds the other case of all ASCII letters in the set.
func folded(set []span) []span {
	all := slices.Clone(set)
	for _, s := range set {
		if first, last := max(s.first, 'a'), min(s.last, 'z'); first <= last {
			all = append(all, span{first - 'a' + 'A', last - 'a' + 'A'})
		}
		if first, last := max(s.first, 'A'), min(s.last, 'Z'); first <= last {
			all = append(all, span{first - 'A' + 'a', last - 'A' + 'a'})
		}
	}
	return all
}
