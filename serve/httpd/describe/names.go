package describe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// spellings of names as citations have them. What they do is what the reference
// implementation of the Citation Style Language does (citeproc-js), against whose output the
// table in testdata is held.

// initials returns given names as initials: Jean-Paul Marie is J.-P. M. A given name in small
// letters, such as d'Arc, stays.
func initials(given string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(given, func(r rune) bool { return unicode.IsSpace(r) || r == '.' }) {
		first, _ := utf8.DecodeRuneInString(word)
		if b.Len() > 0 && first != '-' {
			b.WriteByte(' ')
		}
		if unicode.IsLower(first) {
			b.WriteString(word)
			continue
		}
		for i, part := range strings.Split(word, "-") {
			if i > 0 {
				b.WriteByte('-')
			}
			if letter, size := utf8.DecodeRuneInString(part); size > 0 {
				b.WriteRune(letter)
				b.WriteByte('.')
			}
		}
	}
	return b.String()
}

// isAlphabetic reports whether a name is of a script in which given names have initials and
// are kept apart from family names, as those of China, Japan and Korea are not.
func isAlphabetic(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x3000 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-')
	})
}

// inverted returns a name with the family name first: Souza, P. H.
func (a *agent) inverted() string {
	switch {
	case a.family == "":
		return curly(a.name)
	case !isAlphabetic(a.family + a.given):
		return a.family + a.given
	}
	return curly(a.family + ", " + initials(a.given))
}

// upright returns a name with the family name last: P. H. Souza.
func (a *agent) upright() string {
	switch {
	case a.family == "":
		return curly(a.name)
	case !isAlphabetic(a.family + a.given):
		return a.family + a.given
	}
	return curly(initials(a.given) + " " + a.family)
}

// curly returns a text with the apostrophes of typography.
func curly(s string) string { return strings.ReplaceAll(s, "'", "’") }

// smallWords are not capitalised in the title of a journal.
const smallWords = " a an and as at but by down for from in into nor of on onto or over so the till to up via with yet "

// titleCase capitalises the words of a title in English that are in small letters, except
// small words that are neither first nor last nor follow a colon.
func titleCase(s, language string) string {
	if language != "" && !strings.HasPrefix(strings.ToLower(language), "en") {
		return s
	}
	words := strings.Split(s, " ")
	for i, word := range words {
		first, size := utf8.DecodeRuneInString(word)
		if !unicode.IsLower(first) || strings.ContainsFunc(word, unicode.IsUpper) {
			continue
		}
		begins := i == 0 || i == len(words)-1 || strings.HasSuffix(words[i-1], ":")
		if begins || !strings.Contains(smallWords, " "+word+" ") {
			words[i] = string(unicode.ToTitle(first)) + word[size:]
		}
	}
	return strings.Join(words, " ")
}

// pageRange returns pages as citations have them, with an en dash.
func pageRange(pages string) string { return strings.ReplaceAll(pages, "-", "–") }

// hasPages reports whether a text names several pages.
func hasPages(pages string) bool { return strings.ContainsAny(pages, "-–,&") }
