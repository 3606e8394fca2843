package urn

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// The German National Library (DNB) adds three rules to urn:nbn:de.
//
// The last character is a check digit over the whole URN. ("Beschreibung des
// Algorithmus zur Berechnung der URN-Prüfziffer", persistent-identifier.de.) One
// sort of name has none: what the library itself gives out in its sub-namespace
// 101:1, seen from 2019 on, a number made of the time and of random digits. Its
// older numbers there, of a date, a serial number and the check digit, are shorter.
//
// The library registers small letters only, and its algorithm gives both cases
// the same value; so case does not count anywhere in the name.
//
// A place in the thing, such as a page, is named by "/fragment/" and more after
// the check digit, as in urn:nbn:de:kobv:109-1-15356869/fragment/page=1121. What
// stands there is the publisher's: it is not checked, and its case counts.

// isGerman reports whether an NSS of nbn, whose structure is right, is the DNB's.
func isGerman(nss string) bool {
	_, ok := lex.CutFold(nss, "de")
	return ok
}

const fragment = "/fragment/"

// germanCut returns how long the part of nss is that the check digit ends.
func germanCut(nss string) int {
	for i := 0; ; i++ {
		next := strings.IndexByte(nss[i:], '/')
		if next < 0 {
			return len(nss)
		}
		i += next
		if _, ok := lex.CutFold(nss[i:], fragment); ok {
			return i
		}
	}
}

// isUnchecked reports whether the name, without fragment, has no check digit.
func isUnchecked(base string) bool {
	number, ok := strings.CutPrefix(base[len("de"):], ":101:1-")
	if !ok || len(number) != len("yyyymmddnnnnnnnnnnnnnn") {
		return false
	}
	for i := range len(number) {
		if !lex.IsDigit(number[i]) {
			return false
		}
	}
	return true
}

func germanCanonical(urn string, start, pos int) (string, error) {
	n := germanCut(urn[start:])
	base := urn[start : start+n]
	want, bad := germanDigit(base)
	if bad >= 0 {
		return "", stele.Invalidf(name, pos+bad, "urn.nbn-character-not-allowed", "'{character}' can't stand in urn:nbn:de; its characters are letters, digits and + - . / : _", string(rune(base[bad])))
	}
	canonical := lex.FoldURN(urn, start+n+len(fragment))
	if last := base[n-1]; last != want && !isUnchecked(base) {
		reason := stele.Messagef("urn.nbn-check-digit-wrong", "'{digit}' is not the check digit of this urn:nbn:de, which is '{expected}'; a character is mistyped", string(rune(last)), string(rune(want)))
		return "", mistyped(pos+n-1, reason, germanCorrections(canonical[start:start+n], canonical[start+n:]))
	}
	return canonical, nil
}

// germanNumbers are the DNB's numbers for the characters, a decimal digit in each
// half of the byte; 0 for a character that has none. No digit of a number is 0,
// so that any can divide.
var germanNumbers = func() (table [256]uint8) {
	table = [256]uint8{
		'0': 0x1, '1': 0x2, '2': 0x3, '3': 0x4, '4': 0x5, '5': 0x6, '6': 0x7, '7': 0x8, '8': 0x9, '9': 0x41,
		'a': 0x18, 'b': 0x14, 'c': 0x19, 'd': 0x15, 'e': 0x16, 'f': 0x21, 'g': 0x22, 'h': 0x23, 'i': 0x24,
		'j': 0x25, 'k': 0x42, 'l': 0x26, 'm': 0x27, 'n': 0x13, 'o': 0x28, 'p': 0x29, 'q': 0x31, 'r': 0x12,
		's': 0x32, 't': 0x33, 'u': 0x11, 'v': 0x34, 'w': 0x35, 'x': 0x36, 'y': 0x37, 'z': 0x38,
		'+': 0x49, ':': 0x17, '_': 0x43, '-': 0x39, '.': 0x47, '/': 0x45,
	}
	for c := 'a'; c <= 'z'; c++ {
		table[c-'a'+'A'] = table[c]
	}
	return table
}()

// germanDigit returns the check digit that belongs to a name whose last character
// is one, or stands in its place; it is not empty. bad is the offset of a character
// that has no number, or -1.
//
// The numbers of all characters are written one after the other. Each digit of
// that row is multiplied by its position, counted from 1, and the products are
// summed. The sum is divided by the row's last digit; the check digit is the
// quotient's last digit before the point.
func germanDigit(base string) (digit byte, bad int) {
	// The row of "urn:nbn:" is 1112131713141317.
	sum, position, number := 380, 16, 0x17
	for i := range len(base) - 1 {
		if number = int(germanNumbers[base[i]]); number == 0 {
			return 0, i
		}
		// No branch on the number of digits, which a processor can't predict: a
		// first digit that is missing is 0 and takes no position.
		sum += (position + 1) * (number >> 4)
		position += 1 + (number+0xf0)>>8
		sum += position * (number & 0xf)
	}
	if germanNumbers[base[len(base)-1]] == 0 {
		return 0, len(base) - 1
	}
	return byte('0' + sum/(number&0xf)%10), -1
}

// longestCorrected is the longest name for which corrections are looked for: each
// takes one pass over it.
const longestCorrected = 128

// germanCorrections returns the names that are meant if two neighbours were
// swapped, or one character replaced by another of its sort, the check digit
// first. The code of the country and the sub-namespaces stay as they are. Both
// parts are canonical.
func germanCorrections(base, rest string) []string {
	if len(base) > longestCorrected {
		return nil
	}
	var found suggestions
	changed := []byte(base)
	last := len(base) - 1
	try := func() {
		if isGermanName(string(changed)) {
			found.add("urn:nbn:" + string(changed) + rest)
		}
	}
	start := max(nbnCut(base), len("cc")) + 1
	for i := start; i < last; i++ {
		changed[i], changed[i+1] = base[i+1], base[i]
		try()
		changed[i], changed[i+1] = base[i], base[i+1]
	}
	for i := last; i >= start && !found.full(); i-- {
		for _, c := range []byte(alike(base[i], i == last)) {
			changed[i] = c
			try()
		}
		changed[i] = base[i]
	}
	return found
}

// isGermanName reports whether all rules hold for a name that was changed.
func isGermanName(base string) bool {
	if bad, _ := nbnFault(base); bad >= 0 || germanCut(base) < len(base) {
		return false
	}
	want, bad := germanDigit(base)
	return bad < 0 && want == base[len(base)-1]
}

// alike returns the characters of c's sort, which are easily mistaken for it.
func alike(c byte, isCheck bool) string {
	switch {
	case isCheck || lex.IsDigit(c):
		return "0123456789"
	case lex.IsAlpha(c):
		return "abcdefghijklmnopqrstuvwxyz"
	}
	return ""
}

func germanExplain(nss string, x *stele.Explanation) {
	base := nss[:germanCut(nss)]
	if isUnchecked(base) {
		x.Warnings = append(x.Warnings, "The German National Library's own numbers of this sort have no check digit: a mistyped one is not noticed.")
		return
	}
	x.Parts = append(x.Parts, stele.Part{Name: "check", Value: base[len(base)-1:], Note: "the German National Library's check digit, and it holds"})
}
