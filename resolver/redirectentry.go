package resolver

import (
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// A redirect entry has what a redirect needs of a record, in few bytes: most of a record is
// its description, which a redirect does not need. Only records that are active and public
// have one:
//
//	name     text: the key of the entry
//	marks    byte: which of the following fields there are
//	id       text: the record's identifier, if the name is an alias
//	aliases  number, texts
//	spelling text: the identifier in its owner's letters, if they differ in case only
//	version  number
//	targets  number, and of each of those for N2L
//	  marks  byte: which of the following fields there are, and whether it is partial
//	  url, media type, language   texts
//	  order, preference, TTL, status   numbers
//
// A text is the number of the word of the dictionary with which it begins, the number of
// bytes that follow, and these. Numbers are as [binary.AppendUvarint] writes them.

// Marks of an entry: its optional fields.
const (
	redirectAlias    = 1 << iota // the name is an alias
	redirectAliases              // the record has aliases
	redirectSingle               // the record has one target
	redirectSpelling             // the owner writes the identifier in other letters
)

// Marks of a target: its optional fields.
const (
	targetPartial = 1 << iota
	targetType
	targetLanguage
	targetRank // order and preference are not the defaults
	targetTTL
	targetStatus
)

// maxRedirect is how many bytes an entry has at most. Records that need more have none.
const maxRedirect = 1 << 10

// appendRedirect appends the redirect entry of a record under one of its names. If ok is
// false the record has none.
func (w *dictionary) appendRedirect(b []byte, name stele.ID, r *stele.Record) (_ []byte, ok bool) {
	if r.State != stele.Active || !isOpen(r) || r.Redacted || len(r.Values) > 0 {
		return b, false
	}
	var marks byte
	targets := 0
	for i := range r.Targets {
		if r.Targets[i].Service == stele.N2L {
			targets++
		}
	}
	switch targets {
	case 0:
		return b, false
	case 1:
		marks |= redirectSingle
	}
	if name != r.ID {
		marks |= redirectAlias
	}
	if len(r.Aliases) > 0 {
		marks |= redirectAliases
	}
	letters, ok := ownLetters(r)
	if !ok {
		return b, false
	}
	if letters != "" {
		marks |= redirectSpelling
	}
	start := len(b)
	b = append(w.appendID(b, name), marks)
	if marks&redirectAlias != 0 {
		b = w.appendID(b, r.ID)
	}
	if marks&redirectAliases != 0 {
		b = binary.AppendUvarint(b, uint64(len(r.Aliases)))
		for _, alias := range r.Aliases {
			b = w.appendID(b, alias)
		}
	}
	if marks&redirectSpelling != 0 {
		b = w.appendText(b, "", letters, nameWord(letters))
	}
	b = binary.AppendUvarint(b, r.Version)
	if marks&redirectSingle == 0 {
		b = binary.AppendUvarint(b, uint64(targets))
	}
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Service == stele.N2L {
			b = w.appendTarget(b, t)
		}
	}
	return b, len(b)-start <= maxRedirect
}

// ownLetters returns the end of the owner's spelling that is the identifier in other
// letters, or "" if there is none: answers show it where case does not count. If the
// spelling is percent-encoded, it is not known and ok is false.
func ownLetters(r *stele.Record) (letters string, ok bool) {
	text := r.ID.String()
	switch at := len(r.Spelling) - len(text); {
	case r.Spelling == "":
		return "", true
	case at >= 0 && strings.EqualFold(r.Spelling[at:], text):
		if r.Spelling[at:] == text {
			return "", true
		}
		return r.Spelling[at:], true
	}
	return "", !strings.Contains(r.Spelling, "%")
}

func (w *dictionary) appendTarget(b []byte, t *stele.Target) []byte {
	var marks byte
	mark := func(is bool, m byte) {
		if is {
			marks |= m
		}
	}
	mark(t.Partial, targetPartial)
	mark(t.Type != "", targetType)
	mark(t.Language != "", targetLanguage)
	mark(t.Order != stele.DefaultOrder || t.Preference != stele.DefaultPreference, targetRank)
	mark(t.TTL != 0, targetTTL)
	mark(t.Status != 0, targetStatus)
	b = w.appendText(append(b, marks), "", t.URL, urlWord(t.URL))
	if marks&targetType != 0 {
		b = w.appendText(b, "", t.Type, wordLength(len(t.Type)))
	}
	if marks&targetLanguage != 0 {
		b = w.appendText(b, "", t.Language, wordLength(len(t.Language)))
	}
	if marks&targetRank != 0 {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(t.Order)), uint64(t.Preference))
	}
	if marks&targetTTL != 0 {
		b = binary.AppendUvarint(b, uint64(t.TTL))
	}
	if marks&targetStatus != 0 {
		b = binary.AppendUvarint(b, uint64(t.Status))
	}
	return b
}

func (w *dictionary) appendID(b []byte, id stele.ID) []byte {
	return w.appendText(b, id.Scheme(), id.String(), nameWord(id.String()))
}

// appendText appends a text. Its first bytes, of the given number, are a word of the
// dictionary if that has room for another one.
func (w *dictionary) appendText(b []byte, scheme, text string, length int) []byte {
	n, ok := w.number(word{scheme, text[:length]})
	if !ok {
		n, _ = w.number(word{scheme, ""})
		length = 0
	}
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendUvarint(b, uint64(len(text)-length))
	return append(b, text[length:]...)
}

// nameWord returns the length of the beginning that a name shares with others: up to its
// first slash, as in ark:12345/x1 and 20.500.12345/x1, or else its second colon, as in
// urn:paradisec:x1.
func nameWord(name string) int {
	if i := strings.IndexByte(name, '/'); i >= 0 {
		return wordLength(i + 1)
	}
	i := strings.IndexByte(name, ':') + 1
	return wordLength(i + strings.IndexByte(name[i:], ':') + 1)
}

// urlWord is the same for URLs: up to the slash after the first segment of the path, or
// else after the host.
func urlWord(url string) int {
	at := 0
	for range 4 {
		i := strings.IndexByte(url[at:], '/')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return wordLength(at)
}

// wordLength returns n, or 0 where few texts would share so long a beginning.
func wordLength(n int) int {
	if n > maxWord {
		return 0
	}
	return n
}

// dictionary has words with which many texts begin. The first ones to be used get a number,
// and no word is ever removed.
type dictionary struct {
	list atomic.Pointer[[]word] // by number

	mu      sync.Mutex
	numbers map[word]int
}

// word is a beginning of texts: of names in a scheme, or of others.
type word struct{ scheme, text string }

const (
	maxWords = 1 << 12
	maxWord  = 128 // bytes of one
)

// number returns the number of a word; false if it has none and the dictionary is full. The
// empty word of a scheme always gets a number.
func (w *dictionary) number(x word) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, ok := w.numbers[x]; ok {
		return n, true
	}
	if len(w.numbers) >= maxWords && x.text != "" {
		return 0, false
	}
	if w.numbers == nil {
		w.numbers = make(map[word]int)
	}
	x = word{strings.Clone(x.scheme), strings.Clone(x.text)}
	var list []word
	if old := w.list.Load(); old != nil {
		list = *old
	}
	// Readers of the old list do not read past its end.
	list = append(list, x)
	w.list.Store(&list)
	w.numbers[x] = len(list) - 1
	return len(list) - 1, true
}

// redirectReader reads an entry. It has all words that the entry uses, since these were in
// the dictionary before the entry was made.
type redirectReader struct {
	words []word
	rest  []byte // not read yet
}

// reader returns a reader of an entry.
func (w *dictionary) reader(entry []byte) redirectReader {
	return redirectReader{*w.list.Load(), entry}
}

func (d *redirectReader) number() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 { // most are small
		v := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.rest)
	d.rest = d.rest[max(n, 0):]
	return v
}

// pieces reads a text: its word, and the bytes that follow it.
func (d *redirectReader) pieces() (word, []byte) {
	w := d.words[d.number()]
	n := d.number()
	rest := d.rest[:n]
	d.rest = d.rest[n:]
	return w, rest
}

// isNamed reads the name, and reports whether it is the one given.
func (d *redirectReader) isNamed(name stele.ID) bool {
	w, rest := d.pieces()
	text := name.String()
	return len(text) == len(w.text)+len(rest) && text[len(w.text):] == string(rest) && text[:len(w.text)] == w.text && name.Scheme() == w.scheme
}

func (d *redirectReader) text() string {
	w, rest := d.pieces()
	switch {
	case len(rest) == 0:
		return w.text
	case w.text == "":
		return string(rest)
	}
	var b strings.Builder
	b.Grow(len(w.text) + len(rest))
	b.WriteString(w.text)
	b.Write(rest)
	return b.String()
}

func (d *redirectReader) id() stele.ID {
	w, rest := d.pieces()
	id, err := stele.NewID(w.scheme, w.text+string(rest))
	if err != nil {
		return stele.ID{} // it was one when it was written
	}
	return id
}

// record reads the fields after the name: a record without its description.
func (d *redirectReader) record(name stele.ID) *stele.Record {
	made := &struct { // one allocation for most
		record stele.Record
		target [1]stele.Target
	}{record: stele.Record{ID: name, State: stele.Active}}
	r := &made.record
	marks := d.rest[0]
	d.rest = d.rest[1:]
	if marks&redirectAlias != 0 {
		r.ID = d.id()
	}
	if marks&redirectAliases != 0 {
		for range d.number() {
			r.Aliases = append(r.Aliases, d.id())
		}
	}
	if marks&redirectSpelling != 0 {
		r.Spelling = d.text()
	}
	r.Version = d.number()
	targets := uint64(1)
	if marks&redirectSingle == 0 {
		targets = d.number()
	}
	if r.Targets = made.target[:0:1]; targets > 1 {
		r.Targets = make([]stele.Target, 0, targets)
	}
	for range targets {
		r.Targets = append(r.Targets, d.target())
	}
	return r
}

func (d *redirectReader) target() stele.Target {
	marks := d.rest[0]
	d.rest = d.rest[1:]
	t := stele.Target{Service: stele.N2L, URL: d.text(), Order: stele.DefaultOrder, Preference: stele.DefaultPreference, Partial: marks&targetPartial != 0}
	if marks&targetType != 0 {
		t.Type = d.text()
	}
	if marks&targetLanguage != 0 {
		t.Language = d.text()
	}
	if marks&targetRank != 0 {
		t.Order, t.Preference = uint16(d.number()), uint16(d.number())
	}
	if marks&targetTTL != 0 {
		t.TTL = uint32(d.number())
	}
	if marks&targetStatus != 0 {
		t.Status = int(d.number())
	}
	return t
}
