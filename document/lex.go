package document

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// number passes over a number and returns it (RFC 8259, section 6).
func (j *jsonReader) number() string {
	begin := j.pos
	if j.at('-') {
		j.pos++
	}
	zero := j.at('0')
	if n := j.digits(); zero && n > 1 {
		j.pos -= n
		j.syntaxf("json.number-leading-zero", "a number does not begin with 0; remove it, or write a string")
	}
	if j.at('.') {
		j.pos++
		j.digits()
	}
	if j.at('e') || j.at('E') {
		j.pos++
		if j.at('+') || j.at('-') {
			j.pos++
		}
		j.digits()
	}
	if j.broken {
		return ""
	}
	return j.text[begin:j.pos]
}

func (j *jsonReader) at(c byte) bool { return j.pos < len(j.text) && j.text[j.pos] == c }

// digits passes over one or more digits and returns how many there are.
func (j *jsonReader) digits() int {
	begin := j.pos
	for j.pos < len(j.text) && isDigit(j.text[j.pos]) {
		j.pos++
	}
	if j.pos == begin {
		j.unexpected("a digit")
	}
	return j.pos - begin
}

// literal passes over true, false or null.
func (j *jsonReader) literal(want string) {
	if !strings.HasPrefix(j.text[j.pos:], want) {
		j.unexpected(want)
		return
	}
	j.pos += len(want)
}

// quoted reads a string, at whose quotation mark it stands. One without escapes
// shares the memory of the text.
func (j *jsonReader) quoted() string {
	begin := j.pos + 1
	end := begin + ordinary(j.text[begin:])
	if end < len(j.text) && j.text[end] == '"' {
		j.pos = end + 1
		return j.text[begin:end]
	}
	return j.escaped(begin, end)
}

// escaped reads a string that begins at begin and has its first escape, or a
// fault, at pos.
func (j *jsonReader) escaped(begin, pos int) string {
	b := make([]byte, 0, 2*(pos-begin)+32)
	for {
		b = append(b, j.text[begin:pos]...)
		j.pos = pos
		switch {
		case pos == len(j.text):
			j.unexpected("a quotation mark")
			return ""
		case j.text[pos] == '"':
			j.pos++
			return string(b)
		case j.text[pos] != '\\':
			j.syntaxf("json.control-character", "a control character {character} in a string; write \\u{hexadecimal}", fmt.Sprintf("%U", j.text[pos]), fmt.Sprintf("%04x", j.text[pos]))
			return ""
		}
		if b = j.escape(b); j.broken {
			return ""
		}
		begin = j.pos
		pos = begin + ordinary(j.text[begin:])
	}
}

// escape appends what an escape means (RFC 8259, section 7).
func (j *jsonReader) escape(b []byte) []byte {
	const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	j.pos++
	if j.at('u') {
		return j.unicode(b)
	}
	for i := range len(letters) {
		if j.at(letters[i]) {
			j.pos++
			return append(b, meanings[i])
		}
	}
	j.unexpected(`one of "\/bfnrtu after the backslash`)
	return b
}

// unicode appends what \uXXXX means, or a pair of them. Half a pair is not a character,
// and can't be kept.
func (j *jsonReader) unicode(b []byte) []byte {
	r := j.hex4()
	if utf16.IsSurrogate(r) {
		low := rune(0)
		if strings.HasPrefix(j.text[j.pos:], `\u`) {
			back := j.pos
			j.pos++
			if low = j.hex4(); utf16.DecodeRune(r, low) == utf8.RuneError {
				j.pos = back // it is a character of its own
			}
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(b, pair)
		}
		j.faultf("json.surrogate-alone", "\\u{code} alone is half a character; write both halves, or the character itself", fmt.Sprintf("%04x", r))
	}
	return utf8.AppendRune(b, r)
}

// hex4 reads u and the four hexadecimal digits after it.
func (j *jsonReader) hex4() (r rune) {
	j.pos++
	for range 4 {
		if j.pos == len(j.text) || !isHex(j.text[j.pos]) {
			j.unexpected("a hexadecimal digit, four of them after \\u")
			return 0
		}
		c := rune(j.text[j.pos])
		if c > '9' {
			c = c&7 + 9
		}
		r = r<<4 | c&0xf
		j.pos++
	}
	return r
}

// invalidAt returns where text stops being UTF-8. (utf8.ValidString is as quick
// only up to the first character that is not ASCII.)
func invalidAt(text string) (n int) {
	for {
		for n+8 <= len(text) && word(text[n:n+8])&highs == 0 {
			n += 8
		}
		for n < len(text) && text[n] < utf8.RuneSelf {
			n++
		}
		r, size := utf8.DecodeRuneInString(text[n:])
		if r == utf8.RuneError && size <= 1 {
			return n
		}
		n += size
	}
}

// A word with 1, and one with 0x80, in each byte.
const ones, highs = 0x0101010101010101, 0x8080808080808080

// word returns eight bytes as a number, the first as its lowest.
func word(b string) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// special returns a word with the high bit of each byte set where w has a quotation
// mark, a backslash or a control character. The lowest such bit is right; those
// above it may be wrong, because subtraction borrows from them.
func special(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
}

// ordinary returns how many bytes at the beginning of s are neither a quotation
// mark nor a backslash nor a control character.
func ordinary(s string) (n int) {
	for ; n+8 <= len(s); n += 8 {
		if found := special(word(s[n : n+8])); found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(s) && s[n] != '"' && s[n] != '\\' && s[n] >= ' ' {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
