package resolver

import (
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// A lead is what must be known of a record to send somebody on, in few bytes: most
// of a record is its description, which a redirect does not need. It is made of
// records that everybody may see, and that are active:
//
//	name     text: under which it is kept
//	marks    byte: what of the following there is
//	id       text: the record's identifier, if the name is an alias
//	aliases  number, texts
//	spelling text: the identifier in its owner's letters, if they differ in case only
//	version  number
//	targets  number, and of each of those for N2L
//	  marks  byte: what of the following there is, and whether it is partial
//	  url, media type, language   texts
//	  order, preference, TTL, status   numbers
//
// A text is the number of a word, with which it begins, the number of bytes that
// follow, and these. Numbers are as [binary.AppendUvarint] writes them.

// What a lead has beside what all have.
const (
	leadOther    = 1 << iota // the name is an alias
	leadAliases              // there are aliases
	leadSingle               // there is one target
	leadSpelling             // the owner writes the identifier in other letters
)

// What a target of a lead has beside its URL.
const (
	leadPartial = 1 << iota
	leadType
	leadLanguage
	leadPlace // order and preference are not the usual ones
	leadTTL
	leadStatus
)

// maxLead is how many bytes a lead has at most. Records that would have a longer one
// have none.
const maxLead = 1 << 10

// appendLead appends the lead of a record that is kept under a name. It has none if
// ok is false.
func (w *words) appendLead(b []byte, name stele.ID, r *stele.Record) (_ []byte, ok bool) {
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
		marks |= leadSingle
	}
	if name != r.ID {
		marks |= leadOther
	}
	if len(r.Aliases) > 0 {
		marks |= leadAliases
	}
	letters, ok := ownLetters(r)
	if !ok {
		return b, false
	}
	if letters != "" {
		marks |= leadSpelling
	}
	start := len(b)
	b = append(w.appendID(b, name), marks)
	if marks&leadOther != 0 {
		b = w.appendID(b, r.ID)
	}
	if marks&leadAliases != 0 {
		b = binary.AppendUvarint(b, uint64(len(r.Aliases)))
		for _, alias := range r.Aliases {
			b = w.appendID(b, alias)
		}
	}
	if marks&leadSpelling != 0 {
		b = w.appendText(b, "", letters, nameWord(letters))
	}
	b = binary.AppendUvarint(b, r.Version)
	if marks&leadSingle == 0 {
		b = binary.AppendUvarint(b, uint64(targets))
	}
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Service == stele.N2L {
			b = w.appendTarget(b, t)
		}
	}
	return b, len(b)-start <= maxLead
}

// ownLetters returns the end of the owner's spelling that is the identifier in other
// letters, "" if there is none: answers show it where case does not count. It is not known,
// and ok is false, where the spelling is percent-encoded.
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

func (w *words) appendTarget(b []byte, t *stele.Target) []byte {
	var marks byte
	mark := func(is bool, m byte) {
		if is {
			marks |= m
		}
	}
	mark(t.Partial, leadPartial)
	mark(t.Type != "", leadType)
	mark(t.Language != "", leadLanguage)
	mark(t.Order != stele.DefaultOrder || t.Preference != stele.DefaultPreference, leadPlace)
	mark(t.TTL != 0, leadTTL)
	mark(t.Status != 0, leadStatus)
	b = w.appendText(append(b, marks), "", t.URL, urlWord(t.URL))
	if marks&leadType != 0 {
		b = w.appendText(b, "", t.Type, wordLength(len(t.Type)))
	}
	if marks&leadLanguage != 0 {
		b = w.appendText(b, "", t.Language, wordLength(len(t.Language)))
	}
	if marks&leadPlace != 0 {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(t.Order)), uint64(t.Preference))
	}
	if marks&leadTTL != 0 {
		b = binary.AppendUvarint(b, uint64(t.TTL))
	}
	if marks&leadStatus != 0 {
		b = binary.AppendUvarint(b, uint64(t.Status))
	}
	return b
}

func (w *words) appendID(b []byte, id stele.ID) []byte {
	return w.appendText(b, id.Scheme(), id.String(), nameWord(id.String()))
}

// appendText appends a text whose first bytes, of the number given, are a word, if
// there is room for another one.
func (w *words) appendText(b []byte, scheme, text string, length int) []byte {
	n, ok := w.number(word{scheme, text[:length]})
	if !ok {
		n, _ = w.number(word{scheme, ""})
		length = 0
	}
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendUvarint(b, uint64(len(text)-length))
	return append(b, text[length:]...)
}

// nameWord returns how much of a name others begin with too: up to its first slash,
// as of ark:12345/x1 and 20.500.12345/x1, or else its second colon, as of
// urn:paradisec:x1.
func nameWord(name string) int {
	if i := strings.IndexByte(name, '/'); i >= 0 {
		return wordLength(i + 1)
	}
	i := strings.IndexByte(name, ':') + 1
	return wordLength(i + strings.IndexByte(name[i:], ':') + 1)
}

// urlWord is the same for URLs: up to the slash behind the first part of the path, or
// else behind the host.
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

// words are beginnings of texts that many texts have. Those that come first get a
// number, and nothing is ever removed.
type words struct {
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

// number returns the number of a word; false if it has none and can't get one. The
// empty word of a scheme always gets one.
func (w *words) number(x word) (int, bool) {
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
	// Readers of the old list do not look at what stands behind its end.
	list = append(list, x)
	w.list.Store(&list)
	w.numbers[x] = len(list) - 1
	return len(list) - 1, true
}

// leadReader reads a lead. Its words were there before the lead was made.
type leadReader struct {
	words []word
	rest  []byte
}

// reader returns who reads a lead.
func (w *words) reader(lead []byte) leadReader { return leadReader{*w.list.Load(), lead} }

func (d *leadReader) number() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 { // most are small
		v := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.rest)
	d.rest = d.rest[max(n, 0):]
	return v
}

// pieces returns a text's word, and what follows it.
func (d *leadReader) pieces() (word, []byte) {
	w := d.words[d.number()]
	n := d.number()
	rest := d.rest[:n]
	d.rest = d.rest[n:]
	return w, rest
}

// isNamed reads the name, and reports whether it is the one given.
func (d *leadReader) isNamed(name stele.ID) bool {
	w, rest := d.pieces()
	text := name.String()
	return len(text) == len(w.text)+len(rest) && text[len(w.text):] == string(rest) && text[:len(w.text)] == w.text && name.Scheme() == w.scheme
}

func (d *leadReader) text() string {
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

func (d *leadReader) id() stele.ID {
	w, rest := d.pieces()
	id, err := stele.NewID(w.scheme, w.text+string(rest))
	if err != nil {
		return stele.ID{} // it was one when it was written
	}
	return id
}

// record reads what follows the name: a record without its description.
func (d *leadReader) record(name stele.ID) *stele.Record {
	r := &stele.Record{ID: name, State: stele.Active}
	marks := d.rest[0]
	d.rest = d.rest[1:]
	if marks&leadOther != 0 {
		r.ID = d.id()
	}
	if marks&leadAliases != 0 {
		for range d.number() {
			r.Aliases = append(r.Aliases, d.id())
		}
	}
	if marks&leadSpelling != 0 {
		r.Spelling = d.text()
	}
	r.Version = d.number()
	targets := uint64(1)
	if marks&leadSingle == 0 {
		targets = d.number()
	}
	r.Targets = make([]stele.Target, 0, targets)
	for range targets {
		r.Targets = append(r.Targets, d.target())
	}
	return r
}

func (d *leadReader) target() stele.Target {
	marks := d.rest[0]
	d.rest = d.rest[1:]
	t := stele.Target{Service: stele.N2L, URL: d.text(), Order: stele.DefaultOrder, Preference: stele.DefaultPreference, Partial: marks&leadPartial != 0}
	if marks&leadType != 0 {
		t.Type = d.text()
	}
	if marks&leadLanguage != 0 {
		t.Language = d.text()
	}
	if marks&leadPlace != 0 {
		t.Order, t.Preference = uint16(d.number()), uint16(d.number())
	}
	if marks&leadTTL != 0 {
		t.TTL = uint32(d.number())
	}
	if marks&leadStatus != 0 {
		t.Status = int(d.number())
	}
	return t
}
