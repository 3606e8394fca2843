package ddds

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Quote makes an ERE that matches the text and nothing else. Characters with a
// meaning get brackets, as in [.]: a backslash has to be doubled in zone files, and
// a tool that does not would change what the rule matches. (The circumflex and the
// backslash can't stand alone in brackets everywhere; they get one.)
func Quote(literal string) string {
	if !strings.ContainsAny(literal, special) {
		return literal
	}
	var b strings.Builder
	for i := range len(literal) {
		switch c := literal[i]; c {
		case '^', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '.', '[', '$', '(', ')', '|', '*', '+', '?', '{':
			b.WriteByte('[')
			b.WriteByte(c)
			b.WriteByte(']')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// QuoteReplacement makes a replacement that gives the text and nothing else.
func QuoteReplacement(literal string) string {
	return strings.ReplaceAll(literal, `\`, `\\`)
}

// Escape writes a field as it stands in a zone file between quotation marks (RFC
// 1035, section 5.1), which is also how DNS libraries keep it: a backslash before
// quotation marks and backslashes, and \DDD for bytes that do not print.
func Escape(field string) string {
	plain := true
	for i := range len(field) {
		c := field[i]
		plain = plain && ' ' <= c && c <= '~' && c != '"' && c != '\\'
	}
	if plain {
		return field
	}
	var b strings.Builder
	for i := range len(field) {
		switch c := field[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case ' ' <= c && c <= '~':
			b.WriteByte(c)
		default:
			b.Write([]byte{'\\', '0' + c/100, '0' + c/10%10, '0' + c%10})
		}
	}
	return b.String()
}

// Unescape is the inverse of [Escape]: it gives the bytes of a field from the text
// that a zone file or a DNS library has for it.
func Unescape(text string) (string, error) {
	if strings.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		rest := text[i+1:]
		switch {
		case rest == "":
			return "", stele.Invalidf("", i, "expression.backslash-at-end", "nothing follows the backslash")
		case !isDigit(rest[0]):
			b.WriteByte(rest[0])
			i++
		case len(rest) < 3 || !isDigit(rest[1]) || !isDigit(rest[2]):
			return "", stele.Invalidf("", i, "rule-key.escape-too-short", "a backslash and a digit need two more digits")
		default:
			n := int(rest[0]-'0')*100 + int(rest[1]-'0')*10 + int(rest[2]-'0')
			if n > 255 {
				return "", stele.Invalidf("", i, "rule-key.escape-not-a-byte", "{number} is not a byte; 255 is the largest", n)
			}
			b.WriteByte(byte(n))
			i += 3
		}
	}
	return b.String(), nil
}

// visible makes text fit for a line that people read: what does not print is
// written as \DDD.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		if hidden(r) {
			b.WriteString(Escape(text[:n]))
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func hidden(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// brief quotes a piece of input for a message: its beginning, with nothing in it
// that a terminal or a log would act on.
func brief(text string) string {
	const most = 40
	if len(text) > most {
		return `"` + Escape(text[:most]) + `..."`
	}
	return `"` + Escape(text) + `"`
}
