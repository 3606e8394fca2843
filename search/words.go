package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxWord is how many bytes of a word count. Longer words are equal if they begin with
	// the same bytes.
	maxWord = 64

	// maxWords is how many words of a record count.
	maxWords = 10_000
)

// splitter splits a text into words, in the form in which they are compared: in lower case,
// without diacritics, with compatible characters made equal (Unicode NFKC), so that "Pará" and
// "PARA" are one word. Scripts without spaces between words (Chinese, Japanese) give every two
// neighbouring characters as a word, and the last character of a run alone.
type splitter struct {
	// add is called with each word, which it must copy to keep. tail says that the word is the
	// last character of a run of run characters of a script without spaces.
	add func(word []byte, tail bool, run int)

	word []byte
	last rune // of a run of a script without spaces; 0 if there is none
	run  int  // how many characters the run has
}

// text adds the words of a text.
func (s *splitter) text(text string) {
	for i := 0; i < len(text); {
		c := text[i]
		if folded[c] != 0 {
			if s.last != 0 {
				s.endRun()
			}
			for ; i < len(text) && folded[text[i]] != 0; i++ {
				s.word = append(s.word, folded[text[i]])
			}
			continue
		}
		if c < utf8.RuneSelf {
			s.end()
			i++
			continue
		}
		n := i + 1
		for n < len(text) && text[n] >= utf8.RuneSelf {
			n++
		}
		for _, r := range norm.NFKC.String(text[i:n]) {
			s.char(r)
		}
		i = n
	}
	s.end()
}

// folded has the letters and digits of ASCII in lower case, and 0 for other bytes.
var folded = func() (table [256]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		table[c], table[c&^0x20] = c, c
	}
	for c := byte('0'); c <= '9'; c++ {
		table[c] = c
	}
	return table
}()

// ascii adds a character of ASCII.
func (s *splitter) ascii(c byte) {
	if folded[c] == 0 {
		s.end()
		return
	}
	s.endRun()
	s.word = append(s.word, folded[c])
}

// char adds a character that is normalized.
func (s *splitter) char(r rune) {
	switch {
	case r < utf8.RuneSelf:
		s.ascii(byte(r))
	case isDiacritic(r), isUnseen(r):
	case isUnspaced(r):
		s.endWord()
		if s.last != 0 {
			s.word = utf8.AppendRune(utf8.AppendRune(s.word[:0], s.last), r)
			s.add(s.word, false, 0)
			s.word = s.word[:0]
		}
		s.last, s.run = r, s.run+1
	case r >= 0xac00 && r <= 0xd7a3: // Hangul, whose syllables are not taken apart
		s.letter(r)
	default:
		var buffer [32]byte
		for _, part := range string(norm.NFD.AppendString(buffer[:0], string(r))) {
			if !isDiacritic(part) {
				s.letter(part)
			}
		}
	}
}

// letter adds a character without its diacritics, or ends the word.
func (s *splitter) letter(r rune) {
	if r < utf8.RuneSelf {
		s.ascii(byte(r))
		return
	}
	if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
		s.end()
		return
	}
	s.endRun()
	r = unicode.ToLower(r)
	switch r {
	case 'ß':
		s.word = append(s.word, "ss"...)
	case 'æ':
		s.word = append(s.word, "ae"...)
	case 'œ':
		s.word = append(s.word, "oe"...)
	case 'þ':
		s.word = append(s.word, "th"...)
	case 'ø':
		s.word = append(s.word, 'o')
	case 'đ', 'ð':
		s.word = append(s.word, 'd')
	case 'ł':
		s.word = append(s.word, 'l')
	case 'ħ':
		s.word = append(s.word, 'h')
	case 'ŧ':
		s.word = append(s.word, 't')
	case 'ı':
		s.word = append(s.word, 'i')
	case 'ς':
		s.word = utf8.AppendRune(s.word, 'σ')
	default:
		s.word = utf8.AppendRune(s.word, r)
	}
}

// end ends the word and the run.
func (s *splitter) end() {
	s.endRun()
	s.endWord()
}

func (s *splitter) endWord() {
	if len(s.word) > 0 {
		s.add(s.word[:min(len(s.word), maxWord)], false, 0)
		s.word = s.word[:0]
	}
}

func (s *splitter) endRun() {
	if s.last != 0 {
		s.word = utf8.AppendRune(s.word[:0], s.last)
		s.add(s.word, true, s.run)
		s.word, s.last, s.run = s.word[:0], 0, 0
	}
}

// isDiacritic reports whether a mark only says how the letter before it is pronounced. Marks
// of other scripts, such as the vowels of Devanagari, are letters of a word.
func isDiacritic(r rune) bool {
	switch {
	case r < 0x300:
		return false
	case r <= 0x36f, // Latin, Greek, Cyrillic
		r >= 0x591 && r <= 0x5bd, r == 0x5bf, r == 0x5c1, r == 0x5c2, r == 0x5c4, r == 0x5c5, r == 0x5c7, // Hebrew points
		r >= 0x64b && r <= 0x65f, r == 0x670, // Arabic vowels
		r >= 0x1ab0 && r <= 0x1aff, r >= 0x1dc0 && r <= 0x1dff, r >= 0x20d0 && r <= 0x20ff, r >= 0xfe20 && r <= 0xfe2f:
		return true
	}
	return false
}

// isUnseen reports whether a character only says how its neighbours are drawn.
func isUnseen(r rune) bool {
	return r == 0xad || r == 0x200c || r == 0x200d || r == 0xfeff || r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef
}

// isUnspaced reports whether a character is of a script that is written without spaces
// between words.
func isUnspaced(r rune) bool {
	return r >= 0x3005 && (r <= 0x3007 || r >= 0x3041 && r <= 0x3096 || r >= 0x30a1 && r <= 0x30ff && r != 0x30fb ||
		r >= 0x3400 && r <= 0x4dbf || r >= 0x4e00 && r <= 0x9fff || r >= 0xf900 && r <= 0xfaff || r >= 0x20000 && r <= 0x3ffff)
}

// urlText returns the part of a URL whose words count: without its protocol, and with escaped
// characters as themselves.
func urlText(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if !strings.Contains(url, "%") {
		return url
	}
	b := make([]byte, 0, len(url))
	for i := 0; i < len(url); i++ {
		c := url[i]
		if c == '%' && i+2 < len(url) {
			high, ok1 := hexDigit(url[i+1])
			low, ok2 := hexDigit(url[i+2])
			if ok1 && ok2 {
				c = high<<4 | low
				i += 2
			}
		}
		b = append(b, c)
	}
	return string(b)
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
