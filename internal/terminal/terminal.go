// Package terminal makes untrusted texts safe to show on a terminal, makes numbers readable,
// and reads lines that a person or a program types.
package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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

// EscapeUnseen escapes, in JSON, the characters that JSON leaves as they are and a
// terminal acts on or does not show: DEL, the C1 controls, marks of direction.
func EscapeUnseen(enc []byte) []byte {
	out := make([]byte, 0, len(enc))
	for _, r := range string(enc) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
