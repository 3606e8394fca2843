package anvl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foldAt is the column after which [AppendFolded] continues a value in the next line.
const foldAt = 72

// Append appends an element in one line, as programs read it that know no continued lines. [Parse] reads it back.
func Append(b []byte, label, value string) []byte {
	b = appendEdged(AppendLabel(b, label), value, false)
	return append(b, '\n')
}

// AppendFolded appends an element for people: a long value continues in the next lines. [Parse] reads it back, unless the
// value begins or ends with white space.
func AppendFolded(b []byte, label, value string) []byte {
	begin := len(b)
	b = AppendLabel(b, label)
	return append(appendFolded(b, value, len(b)-begin), '\n')
}

// AppendLabel appends a label and what divides it from its value.
func AppendLabel(b []byte, label string) []byte {
	return append(appendEdged(b, label, true), ": "...)
}

// appendEdged appends a text, with white space at its beginning and end encoded: readers take it away.
func appendEdged(b []byte, text string, label bool) []byte {
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	end := len(strings.TrimRightFunc(text, unicode.IsSpace))
	for i, r := range text {
		special := i < start || i >= end || label && (r == ':' || r == ' ' || r == '#')
		b = appendRune(b, r, special)
	}
	return b
}

// appendFolded appends a value and folds it after foldAt. A reader takes the end of a line and the white space after it
// for one space, so a line ends only where one space stands alone.
func appendFolded(b []byte, value string, column int) []byte {
	for i, word := range strings.Split(value, " ") {
		size := utf8.RuneCountInString(word)
		if i > 0 {
			alone := word != "" && b[len(b)-1] != ' '
			if alone && column+1+size > foldAt {
				b = append(b, '\n', '\t')
				column = 8
			} else {
				b = append(b, ' ')
				column++
			}
		}
		for _, r := range word {
			b = appendRune(b, r, false)
		}
		column += size
	}
	return b
}

// appendRune appends a character, or its percent-encoding if readers would take it for something else, or people could not see
// it. Some programs take other characters than CR and LF for the end of a line.
func appendRune(b []byte, r rune, special bool) []byte {
	if !special && r != '%' && r != 0x2028 && r != 0x2029 && r != 0xfeff && !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
		return utf8.AppendRune(b, r)
	}
	const digits = "0123456789ABCDEF"
	var text [utf8.UTFMax]byte
	for _, c := range text[:utf8.EncodeRune(text[:], r)] {
		b = append(b, '%', digits[c>>4], digits[c&0xf])
	}
	return b
}
