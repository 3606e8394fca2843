package rules

import "strings"

// span is where a capture stands in a text.
type span struct{ from, to uint16 }

// spans are those of all captures, by number.
type spans [MaxCaptures]span

// match reports whether a text has the form of the pattern, and where its captures stand.
// Each byte is looked at a few times at most: the work grows with the length of the text and
// that of the pattern.
func (p *Pattern) match(text string, at *spans) bool {
	if len(text) > maxLength {
		return false
	}
	from := 0
	for i := range p.elements[:p.pivot] {
		e := &p.elements[i]
		n := p.fromLeft(e, text[from:])
		if n < 0 {
			return false
		}
		if e.capture >= 0 {
			at[e.capture] = span{uint16(from), uint16(from + n)}
		}
		from += n
	}
	if p.pivot == len(p.elements) {
		return from == len(text)
	}
	to := len(text)
	for i := len(p.elements) - 1; i > p.pivot; i-- {
		e := &p.elements[i]
		n := p.fromRight(e, text[from:to])
		if n < 0 {
			return false
		}
		if e.capture >= 0 {
			at[e.capture] = span{uint16(to - n), uint16(to)}
		}
		to -= n
	}
	e := &p.elements[p.pivot] // a capture: literal text has one length
	at[e.capture] = span{uint16(from), uint16(to)}
	return p.isAll(e, text[from:to])
}

// fromLeft returns how many bytes at the beginning of a text an element takes; -1 if it
// does not fit.
func (p *Pattern) fromLeft(e *element, text string) int {
	switch e.kind {
	case literalText:
		if len(text) >= len(e.text) && p.isSame(text[:len(e.text)], e.text) {
			return len(e.text)
		}
	case classRun:
		n, most := 0, min(e.max, len(text))
		for n < most && e.set[text[n]] {
			n++
		}
		if n >= e.min {
			return n
		}
	case oneWord:
		for _, w := range e.words {
			if len(text) >= len(w) && p.isSame(text[:len(w)], w) {
				return len(w)
			}
		}
	}
	return -1
}

// fromRight is fromLeft at the end of a text.
func (p *Pattern) fromRight(e *element, text string) int {
	switch e.kind {
	case literalText:
		if from := len(text) - len(e.text); from >= 0 && p.isSame(text[from:], e.text) {
			return len(e.text)
		}
	case classRun:
		n, most := 0, min(e.max, len(text))
		for n < most && e.set[text[len(text)-1-n]] {
			n++
		}
		if n >= e.min {
			return n
		}
	case oneWord:
		for _, w := range e.words {
			if from := len(text) - len(w); from >= 0 && p.isSame(text[from:], w) {
				return len(w)
			}
		}
	}
	return -1
}

// isAll reports whether an element matches a text as a whole.
func (p *Pattern) isAll(e *element, text string) bool {
	if e.kind == oneWord {
		for _, w := range e.words {
			if len(w) == len(text) && p.isSame(text, w) {
				return true
			}
		}
		return false
	}
	if len(text) < e.min || len(text) > e.max {
		return false
	}
	for i := range len(text) {
		if !e.set[text[i]] {
			return false
		}
	}
	return true
}

// isSame compares a text with one of the pattern, which has the same length.
func (p *Pattern) isSame(text, own string) bool {
	if !p.fold {
		return text == own
	}
	for i := range len(text) {
		if lowerByte(text[i]) != own[i] {
			return false
		}
	}
	return true
}

// Match holds a text against the pattern, and returns what its captures matched, by name.
func (p *Pattern) Match(text string) (map[string]string, bool) {
	var at spans
	if !p.match(text, &at) {
		return nil, false
	}
	found := make(map[string]string, len(p.names))
	for i, name := range p.names {
		found[name] = text[at[i].from:at[i].to]
	}
	return found, true
}

// Regexp returns an extended regular expression of POSIX that matches the same texts, and
// whose groups are the captures. What is special in names is quoted with the function.
func (p *Pattern) Regexp(quote func(literal string) string) string {
	var b strings.Builder
	for i := range p.elements {
		p.elements[i].regexp(&b, quote, p.fold)
	}
	return b.String()
}
