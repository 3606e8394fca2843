package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/urltext"
)

// regexp writes the regular expression of an element.
func (e *element) regexp(b *strings.Builder, quote func(string) string, fold bool) {
	switch e.kind {
	case literalText:
		b.WriteString(quote(e.text))
	case classRun:
		b.WriteByte('(')
		b.WriteString(classes[findClass(e.class, fold)].ere)
		b.WriteString(bounds(e.min, e.max))
		b.WriteByte(')')
	case oneWord:
		words := slices.DeleteFunc(slices.Clone(e.words), func(w string) bool { return w == "" })
		for i, w := range words {
			words[i] = quote(w)
		}
		b.WriteByte('(')
		if len(words) < len(e.words) {
			// A group of its own, since an empty alternative is undefined in POSIX.
			b.WriteString("(" + strings.Join(words, "|") + ")?")
		} else {
			b.WriteString(strings.Join(words, "|"))
		}
		b.WriteByte(')')
	}
}

// groups returns how many groups an element has in its regular expression.
func (e *element) groups() int {
	switch {
	case e.kind == literalText:
		return 0
	case e.kind == oneWord && e.isNullable():
		return 2
	}
	return 1
}

// bounds writes how often something is repeated.
func bounds(low, high int) string {
	switch {
	case low == 1 && high == 1:
		return ""
	case low == 0 && high == maxLength:
		return "*"
	case low == 1 && high == maxLength:
		return "+"
	case low == 0 && high == 1:
		return "?"
	case high == maxLength:
		return fmt.Sprintf("{%d,}", low)
	case low == high:
		return fmt.Sprintf("{%d}", low)
	}
	return fmt.Sprintf("{%d,%d}", low, high)
}

// maxRepeat is the largest number of repetitions that every POSIX library takes
// (RE_DUP_MAX).
const maxRepeat = 255

// Expression returns a target of a rule as a substitution expression of the DNS has it: an
// extended regular expression of POSIX for what follows the namespace's prefix, without
// anchors, and a replacement. groups is how many groups stand before it. The texts are quoted
// with the functions. It returns a reason if rules in the DNS can't say the same.
func (s *Set) Expression(rule, target, groups int, quote, quoteReplacement func(string) string) (ere, replacement string, reason *stele.Message) {
	c := &s.list[rule]
	if c.pattern == nil || c.templates[target] == nil {
		return "", "", stele.Messagef("rule.dns-without-url", "it leads to no URL")
	}
	numbers := make(map[int]int)
	for i := range c.pattern.elements {
		e := &c.pattern.elements[i]
		if e.max != maxLength && e.max > maxRepeat || e.min > maxRepeat {
			return "", "", stele.Messagef("rule.dns-length", `the capture "{name}" may be longer than regular expressions can say`, c.pattern.names[e.capture])
		}
		if e.capture >= 0 {
			numbers[e.capture] = groups + 1
		}
		groups += e.groups()
	}
	var b strings.Builder
	for _, x := range c.templates[target].pieces {
		switch {
		case x.source == ownText:
			b.WriteString(quoteReplacement(x.text))
			continue
		case x.source < 0 || x.change != unchanged:
			return "", "", stele.Messagef("rule.dns-not-a-capture", "its URL has more in it than captures as they are: the whole name, or letters in another case")
		}
		e := c.pattern.elementOf(x.source)
		if !e.isPlain(x.place) {
			return "", "", stele.Messagef("rule.dns-encoding", `what the capture "{name}" matches may have to be percent-encoded, which rules in the DNS can't do; use a class such as word or alnum`, c.pattern.names[x.source])
		}
		if numbers[x.source] > MaxCaptures {
			return "", "", stele.Messagef("rule.dns-groups", "it has more captures than an expression can refer to")
		}
		b.WriteString(`\` + strconv.Itoa(numbers[x.source]))
	}
	return c.pattern.Regexp(quote), b.String(), nil
}

func (p *Pattern) elementOf(capture int) *element {
	return &p.elements[slices.IndexFunc(p.elements, func(e element) bool { return e.capture == capture })]
}

// isPlain reports whether all that an element matches stands as it is at a place of a URL.
func (e *element) isPlain(at urltext.Place) bool {
	if e.kind == oneWord {
		return !slices.ContainsFunc(e.words, func(w string) bool { return string(urltext.Append(nil, w, at, false)) != w })
	}
	for c, in := range e.set {
		if in && !isAlnum(byte(c)) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// HasLetters reports whether letters occur in what the pattern of a rule matches, so that
// their case matters.
func (s *Set) HasLetters(rule int) bool {
	p := s.list[rule].pattern
	if p == nil {
		return true
	}
	letters := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 || isLetter(byte(r)) })
	}
	return slices.ContainsFunc(p.elements, func(e element) bool {
		return letters(e.text) || slices.ContainsFunc(e.words, letters) || e.set != nil && e.set['a'] || e.set != nil && e.set['A']
	})
}

// Samples returns some names that a rule matches, as texts after the namespace's prefix.
func (s *Set) Samples(rule int) []string {
	if p := s.list[rule].pattern; p != nil {
		return p.samples()
	}
	return nil
}
