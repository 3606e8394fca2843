package password

import (
	_ "embed"
	"strings"
	"unicode"
)

// commonText lists what common passwords are made of, in lower case and without spaces, one a line.
//
//go:embed guessable.txt
var commonText string

// rows are the orders in which attackers try characters: rows of keyboards, and alphabets. Each is read in both
// directions.
const rows = "abcdefghijklmnopqrstuvwxyz 01234567890123456789 qwertyuiop asdfghjkl zxcvbnm qwertzuiop yxcvbnm azertyuiop qsdfghjklm wxcvbn " +
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p qazwsxedcrfvtgbyhnujmikolp 1q2w3e4r5t6y7u8i9o0p q1w2e3r4t5y6u7i8o9p0 zaq12wsx zaq1xsw2cde3vfr4bgt5nhy6mju7"

// Bounds of what counts as common.
const (
	minRow     = 4 // characters of a row that are a row
	minContext = 3 // characters of a name that is looked for
	minPeriod  = 8 // characters that are repeated
	minRest    = 6 // characters beside what is common
	maxDigits  = 4 // digits at the ends that count: dates and numbers follow many common words
)

// isCommon reports whether a password is made of little else than common words, names of the
// context, rows of keys, and repetitions of a few characters. Case, spaces, punctuation, and digits that stand
// for letters do not hide a word.
func isCommon(text string, context []string) bool {
	known := words(context)
	plain := fold(text, false)
	return tooPlain(plain, known) || tooPlain(fold(text, true), known)
}

// words returns the common words and those of the context, by their first byte.
func words(context []string) map[byte][]string {
	known := make(map[byte][]string)
	add := func(word string) { known[word[0]] = append(known[word[0]], word) }
	for word := range strings.FieldsSeq(commonText) {
		add(word)
	}
	for _, name := range context {
		for _, part := range strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			if len(part) >= minContext {
				add(part)
			}
		}
	}
	return known
}

// lookalikes are signs that stand for letters.
var lookalikes = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "8", "b", "9", "g", "@", "a", "$", "s", "!", "i", "|", "l", "+", "t")

// fold returns the letters and digits of a text in lower case. Leet also replaces signs that stand for letters.
func fold(text string, leet bool) string {
	text = strings.ToLower(text)
	if leet {
		text = lookalikes.Replace(text)
	}
	kept := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, text)
	if kept == "" {
		return text // of signs only: it may still repeat
	}
	return kept
}

// tooPlain reports whether a folded text has too few characters that are not common.
func tooPlain(text string, known map[byte][]string) bool {
	if period(text) < minPeriod {
		return true
	}
	common := make([]bool, len(text))
	for i := range len(text) {
		n := row(text[i:])
		for _, word := range known[text[i]] {
			if len(word) > n && strings.HasPrefix(text[i:], word) {
				n = len(word)
			}
		}
		for j := range n {
			common[i+j] = true
		}
	}
	rest, digits, found := 0, 0, false
	for i, c := range text {
		switch {
		case common[i]:
			found = true
		case unicode.IsDigit(c):
			digits++
		default:
			rest++
		}
	}
	return found && rest+min(digits, maxDigits) < minRest
}

// row returns how many characters at the beginning of a text are one repeated, or follow each other in a
// row; 0 if they are too few.
func row(text string) int {
	n := 1
	for n < len(text) && text[n] == text[0] {
		n++
	}
	for list := range strings.FieldsSeq(rows) {
		for _, order := range []string{list, reversed(list)} {
			for at := range len(order) {
				m := 0
				for m < len(text) && at+m < len(order) && text[m] == order[at+m] {
					m++
				}
				n = max(n, m)
			}
		}
	}
	if n < minRow {
		return 0
	}
	return n
}

func reversed(text string) string {
	b := make([]byte, len(text))
	for i := range len(text) {
		b[len(text)-1-i] = text[i]
	}
	return string(b)
}

// period returns the length of the shortest text of whose repetitions a text is made; the last may be cut.
func period(text string) int {
	for n := 1; n < len(text); n++ {
		if text[n:] == text[:len(text)-n] {
			return n
		}
	}
	return len(text)
}
