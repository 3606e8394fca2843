package stele

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

var errZeroID = Messagef("identifier.zero", "the zero ID has no text; parse an identifier first")

// CheckText refuses what can't be part of an identifier in any scheme: an empty text,
// more than [MaxText] bytes, bytes that are not UTF-8, control characters, and
// characters that can't be seen or that reorder what is seen, so that two names which
// look alike are not told apart. The error names position and character; scheme, which
// may be empty, is put before it.
//
// It runs once over the text, and not at all over one that is too long.
func CheckText(scheme, text string) error {
	if text == "" {
		return Invalidf(scheme, 0, "identifier.text-empty", "there is no text; give an identifier")
	}
	if len(text) > MaxText {
		return tooLong(scheme, len(text))
	}
	for i := plain(text); i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return Invalidf(scheme, i, "text.control-character", "control character {character}; remove it", fmt.Sprintf("%U", c))
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			return Invalidf(scheme, i, "text.not-utf-8", "byte 0x{byte} is not UTF-8", fmt.Sprintf("%02X", c))
		}
		if why := invisible(r); why != "" {
			return Invalidf(scheme, i, "text.invisible-character", "{kind} {character}; remove it", why, fmt.Sprintf("%U", r))
		}
		i += n
	}
	return nil
}

// tooLong is the error for a text of so many bytes.
func tooLong(scheme string, size int) error {
	return Invalidf(scheme, MaxText, "identifier.too-long", "the text has {size} bytes; an identifier has at most {most}", size, MaxText)
}

// plain returns how many bytes at the beginning of s are known to be printable
// ASCII, eight at a time: almost all identifiers are so to their end.
func plain(s string) (n int) {
	for ; n+8 <= len(s); n += 8 {
		if !plainWord(s[n : n+8]) {
			return n
		}
	}
	if len(s) >= 8 && plainWord(s[len(s)-8:]) {
		return len(s)
	}
	return n
}

// plainWord reports whether eight bytes are printable ASCII. It may be wrong
// about those that are, and never is about those that are not.
func plainWord(b string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
	del := w ^ ones*0x7f // a byte of it is zero where w has 0x7f
	return (w|(w-ones*' ')|(del-ones))&highs == 0
}

// blankPattern is a sign of Braille, of no dots.
const blankPattern = 0x2800

// invisible says why r must not stand in a name, or "".
func invisible(r rune) string {
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return "bidirectional control character"
	case unicode.Is(unicode.Cc, r):
		return "control character"
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point) || r == blankPattern:
		return "invisible character"
	case !unicode.IsGraphic(r):
		return "private or unassigned character"
	}
	return ""
}

// Describe names the character r for an error message, and says which ASCII
// character it looks like where it is known for that: mixing Cyrillic, Greek or
// full-width letters into a Latin name is the commonest way to break it.
func Describe(r rune) string {
	if like := LooksLike(r); like != 0 {
		return fmt.Sprintf("%q (%U, which looks like %q)", r, r, like)
	}
	if r >= utf8.RuneSelf {
		return fmt.Sprintf("%q (%U)", r, r)
	}
	return fmt.Sprintf("%q", r)
}

// LooksLike returns the ASCII character that r is easily taken for, or 0. The
// list is short on purpose: letters and signs which fonts draw alike, from
// Unicode's confusables (UTS #39).
func LooksLike(r rune) rune {
	if r > 0xff00 && r < 0xff5f { // full-width forms stand in ASCII's order
		return r - 0xff01 + '!'
	}
	return lookAlikes[r]
}

var lookAlikes = func() map[rune]rune {
	m := make(map[rune]rune)
	for _, pair := range [...]struct{ odd, ascii string }{
		{"аеорсухіјѕһԁԛԝѵ", "aeopcyxijshdqwv"},             // Cyrillic, small
		{"АВЕКМНОРСТУХІЈЅԌԚԜѴ", "ABEKMHOPCTYXIJSGQWV"},     // Cyrillic, capital
		{"αοινρυκ", "aoivpuk"},                             // Greek, small
		{"ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"},               // Greek, capital
		{"\u2010\u2011\u2012\u2013\u2014\u2212", "------"}, // hyphens, dashes, minus
		{"\u2044\u2215\u2236\ua789\u2024\u3002", "//::.."}, // slashes, colons, dots
		{"\u00a0\u2007\u202f\u3000\u2018\u2019", "    ''"}, // spaces, quotation marks
		{"\u0131\u017f\u212a\u2160\u2164\u2169", "isKIVX"}, // dotless i, long s, Kelvin, numerals
	} {
		ascii := []rune(pair.ascii)
		for i, r := range []rune(pair.odd) {
			m[r] = ascii[i]
		}
	}
	return m
}()
