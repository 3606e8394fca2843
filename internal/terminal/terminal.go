// Package terminal makes untrusted texts safe to show on a terminal, and numbers readable.
package terminal

import (
	"strconv"
	"strings"
)

// Printable returns s with everything that a terminal would act on, or not show,
// written as an escape.
func Printable(s string) string {
	quoted := strconv.Quote(s)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return strings.ReplaceAll(quoted, `\\`, `\`)
}

// Grouped writes a number with commas between thousands.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
