package links

import (
	"bytes"
	"hash/fnv"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxTitle = 200    // characters
	maxWords = 20_000 // of a page that are compared
)

// page is what people read on a page.
type page struct {
	title    string
	words    []string
	password bool // there is a field for a password
}

// readPage reads a page of HTML, or what else is text. Bytes that are not text give few words.
func readPage(body []byte) *page {
	p := &page{}
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(1 << 20)
	var skip atom.Atom // the element whose text people do not read
	inTitle := false
	var title strings.Builder
	for {
		switch z.Next() {
		case html.ErrorToken:
			p.title = shorten(strings.Join(strings.Fields(title.String()), " "), maxTitle)
			return p
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			switch a := atom.Lookup(name); a {
			case atom.Script, atom.Style, atom.Noscript, atom.Template:
				skip = a
			case atom.Title:
				inTitle = title.Len() == 0
			case atom.Input:
				for more {
					var k, v []byte
					k, v, more = z.TagAttr()
					if string(k) == "type" && strings.EqualFold(string(v), "password") {
						p.password = true
					}
				}
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if a == skip {
				skip = 0
			}
			if a == atom.Title {
				inTitle = false
			}
		case html.TextToken:
			text := string(z.Text())
			switch {
			case inTitle:
				if title.Len() < 8*maxTitle {
					title.WriteString(html.UnescapeString(text))
				}
			case skip == 0 && len(p.words) < maxWords:
				p.words = append(p.words, strings.FieldsFunc(strings.ToLower(html.UnescapeString(text)), func(r rune) bool {
					return !unicode.IsLetter(r) && !unicode.IsDigit(r)
				})...)
			}
		}
	}
}

// shorten cuts a text after so many characters.
func shorten(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most])
}

// simHash returns the SimHash of the text over runs of three words: pages that differ in a few words
// differ in a few bits.
func (p *page) simHash() uint64 {
	if len(p.words) == 0 {
		return 0
	}
	var weight [64]int
	add := func(h uint64) {
		for i := range weight {
			if h>>i&1 == 1 {
				weight[i]++
			} else {
				weight[i]--
			}
		}
	}
	n := min(3, len(p.words))
	for i := 0; i+n <= len(p.words); i++ {
		h := fnv.New64a()
		for _, w := range p.words[i : i+n] {
			_, _ = h.Write([]byte(w))
			_, _ = h.Write([]byte{' '})
		}
		add(mix(h.Sum64()))
	}
	var sum uint64
	for i, w := range weight {
		if w > 0 {
			sum |= 1 << i
		}
	}
	return sum
}

// mix spreads what differs over all bits (the end of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// distance returns in how many bits two SimHashes differ.
func distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }

// Hash returns a hash of a text that stays the same.
func Hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return mix(h.Sum64())
}
