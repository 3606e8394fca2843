package dnsd

import (
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Sizes of TXT records.
const (
	maxString = 255 // bytes of one string (RFC 1035, section 3.3)
	maxWords  = 800 // bytes of a statement; the whole of it is what N2P leads to
)

// describe says in texts what a TXT record has of an identifier: what is promised,
// or why it was withdrawn.
func describe(n *named) (texts []string) {
	add := func(key, value string) {
		if value != "" {
			texts = append(texts, key+"="+value)
		}
	}
	r := n.record
	if r.State == stele.Withdrawn {
		if t := r.Tombstone; t != nil {
			add("withdrawn", t.At.UTC().Format(time.RFC3339))
			add("reason", shorten(t.Reason))
			add("replacement", t.Replacement.String())
		}
		return texts
	}
	promise := n.promise()
	add("persistence", string(promise.Level))
	add("until", promise.Until)
	add("statement", shorten(promise.Statement))
	return texts
}

// promise returns what is promised of an identifier: by its record, or by its namespace
// for all that do not say.
func (n *named) promise() stele.Persistence {
	if n.record.Persistence == (stele.Persistence{}) && n.ns != nil {
		return n.ns.Persistence
	}
	return n.record.Persistence
}

// shorten cuts a long text between two characters.
func shorten(text string) string {
	if len(text) <= maxWords {
		return text
	}
	return text[:boundary(text, maxWords)] + "..."
}

// boundary returns the last place up to n where no character is cut.
func boundary(text string, n int) int {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// splitTexts cuts texts into strings that a TXT record can hold.
func splitTexts(texts []string) (list []string) {
	for _, t := range texts {
		for len(t) > maxString {
			n := boundary(t, maxString)
			if n == 0 { // no UTF-8
				n = maxString
			}
			list, t = append(list, t[:n]), t[n:]
		}
		list = append(list, t)
	}
	return list
}
