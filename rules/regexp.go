package rules

import (
	"fmt"
	"slices"
	"strings"
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
