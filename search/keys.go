package search

import (
	"encoding/binary"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// All keys and values of the index. The document of a record is the number of the change that
// made its current version. Documents are divided into blocks of 65,536 changes, so that what
// is added touches the last block only, a search goes from the newest block to the oldest, and
// the terms of a block that begin with a prefix stand together.
//
//	family  key                        value
//	------  ---                        -----
//	meta    01 "format"                uvarint: the version of this table
//	        01 "position"              up to which change the index is; see position
//	name    02 scheme 00 text          uvarint: the document of the record with this identifier
//	space   03 scheme 00 prefix        nothing: the prefix of a namespace is a term
//	block   04 block 01 page           identifiers of 256 documents; see appendPage
//	        04 block 02                set of all documents
//	        04 block 03 filter value   set of the documents that have the value
//	        04 block 04 word           set of the documents that have the word
//	        04 block 05 word           words that one document each has, from this one on; see pack
//	dead    05 block                   set of the documents that a later version replaced
//
// block is the number of the change without its lowest 16 bits, in 4 bytes, the greatest first;
// page is bits 8 to 15 of the number. set.go has the form of sets. Sets and pages grow by
// merging: Pebble's merge operator joins them. Packs are only in a block whose first part was
// large; words of later parts have keys of their own.
const (
	familyMeta  = 0x01
	familyName  = 0x02
	familySpace = 0x03
	familyBlock = 0x04
	familyDead  = 0x05
)

// The kinds of keys of a block.
const (
	kindPage   = 0x01
	kindAll    = 0x02
	kindFilter = 0x03
	kindWord   = 0x04
	kindPack   = 0x05
)

// The filters.
const (
	filterScheme     = 'c'
	filterPrefix     = 'p' // scheme 00 prefix
	filterState      = 's'
	filterVisibility = 'v'
	filterHost       = 'h'
	filterBy         = 'b'
	filterModified   = 'm' // a day, 20261116, a month, 202611, or a year, 2026
	filterCreated    = 'r'
)

// format is the version of the table above. An index of another version is made anew.
const format = 2

var (
	keyFormat   = []byte("\x01format")
	keyPosition = []byte("\x01position")
)

// blockHead is how many bytes of a key of a block stand before its kind.
const blockHead = 5

func appendBlock(b []byte, family byte, block uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, family), block)
}

func appendFilter(b []byte, filter byte, value string) []byte {
	return append(append(b, kindFilter, filter), value...)
}

func appendName(b []byte, scheme, text string) []byte {
	return append(append(append(b, scheme...), 0), text...)
}

// upper returns the first key after all that begin with a key.
func upper(key []byte) []byte {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] != 0xff {
			end := append([]byte{}, key[:i+1]...)
			end[i]++
			return end
		}
	}
	return []byte{0xff}
}

// appendPage appends the identifier of a document to a page: its lowest 8 bits, how many bytes
// it shares with the identifier before, and the others. The first of those that are written
// together shares nothing, so that pages are joined by putting one after the other.
func appendPage(b []byte, document uint64, before, name []byte) []byte {
	shared := commonLength(before, name)
	b = append(b, byte(document))
	b = binary.AppendUvarint(b, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(name)-shared))
	return append(b, name[shared:]...)
}

// commonLength returns with how many bytes two texts begin alike.
func commonLength(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// readPage reads a page into a list by the lowest 8 bits. It returns false if the bytes are
// damaged.
func readPage(b []byte, names *[256]string) bool {
	var spans [256]struct{ begin, end int } // in all: one text is made instead of hundreds
	all := make([]byte, 0, 32*256)
	var name []byte
	for len(b) > 0 {
		low := b[0]
		shared, n := binary.Uvarint(b[1:])
		if n <= 0 || shared > uint64(len(name)) {
			return false
		}
		b = b[1+n:]
		rest, n := binary.Uvarint(b)
		if n <= 0 || rest > uint64(len(b)-n) {
			return false
		}
		name = append(name[:shared], b[n:n+int(rest)]...)
		spans[low].begin = len(all)
		all = append(all, name...)
		spans[low].end = len(all)
		b = b[n+int(rest):]
	}
	text := string(all)
	for i, span := range spans {
		names[i] = text[span.begin:span.end]
	}
	return true
}

// cutName splits a scheme and a text.
func cutName(name string) (scheme, text string) {
	scheme, text, _ = strings.Cut(name, "\x00")
	return scheme, text
}

// position is up to where the index is.
type position struct {
	generation stele.GenerationID
	mark       stele.Change // the last change that is in the index; Seq is 0 if there is none
	documents  uint64       // how many there are, dead ones included
	dead       uint64
}

func (p *position) append(b []byte) []byte {
	b = append(b, p.generation[:]...)
	m := &p.mark
	for _, n := range []uint64{p.documents, p.dead, m.Seq, m.Version} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, m.At.Unix())
	b = binary.AppendUvarint(b, uint64(m.At.Nanosecond()))
	kind, name := byte(0), m.ID.Scheme()+"\x00"+m.ID.String()
	if !m.ID.IsValid() {
		kind, name = 1, m.Namespace.Scheme+"\x00"+m.Namespace.Prefix
	}
	return append(append(b, kind), name...)
}

// readPosition reads what append wrote. It returns false if the bytes are damaged.
func readPosition(b []byte) (p position, ok bool) {
	if len(b) < len(p.generation) {
		return p, false
	}
	b = b[copy(p.generation[:], b):]
	for _, to := range []*uint64{&p.documents, &p.dead, &p.mark.Seq, &p.mark.Version} {
		n := 0
		if *to, n = binary.Uvarint(b); n <= 0 {
			return p, false
		}
		b = b[n:]
	}
	seconds, n := binary.Varint(b)
	if n <= 0 {
		return p, false
	}
	nanoseconds, m := binary.Uvarint(b[n:])
	if m <= 0 || len(b) <= n+m || nanoseconds >= uint64(time.Second) {
		return p, false
	}
	p.mark.At = time.Unix(seconds, int64(nanoseconds)).UTC()
	scheme, text := cutName(string(b[n+m+1:]))
	if b[n+m] == 1 {
		p.mark.Namespace = stele.NamespaceKey{Scheme: scheme, Prefix: text}
		return p, true
	}
	var err error
	p.mark.ID, err = stele.NewID(scheme, text)
	return p, err == nil
}

// isAt reports whether a change is the one that the position has, as far as it keeps it.
func (p *position) isAt(c stele.Change) bool {
	m := &p.mark
	return c.Seq == m.Seq && c.ID == m.ID && c.Namespace == m.Namespace && c.Version == m.Version &&
		c.At.UnixMicro() == m.At.UnixMicro()
}

// merger joins what is written under a key with what is there.
var merger = pebble.Merger{
	Name: "stele.search.1",
	Merge: func(key, value []byte) (pebble.ValueMerger, error) {
		if len(key) > blockHead && key[0] == familyBlock && key[blockHead] == kindPage {
			return &pageMerger{append([]byte{}, value...)}, nil
		}
		return &setMerger{first: append([]byte{}, value...)}, nil
	},
}

// setMerger joins sets. Most have one value only, which stays as it is.
type setMerger struct {
	first []byte
	all   *set // nil if there is only the first one
}

// MergeNewer implements [pebble.ValueMerger], as the others do.
func (m *setMerger) MergeNewer(value []byte) error {
	if m.all == nil {
		if m.all = new(set); !m.all.addStored(m.first) {
			return errDamaged
		}
	}
	if !m.all.addStored(value) {
		return errDamaged
	}
	return nil
}

func (m *setMerger) MergeOlder(value []byte) error { return m.MergeNewer(value) }

func (m *setMerger) Finish(bool) ([]byte, io.Closer, error) {
	if m.all == nil {
		return m.first, nil, nil
	}
	return appendSet(nil, m.all.members(nil)), nil, nil
}

// pageMerger joins pages.
type pageMerger struct{ page []byte }

func (m *pageMerger) MergeNewer(value []byte) error {
	m.page = append(m.page, value...)
	return nil
}

func (m *pageMerger) MergeOlder(value []byte) error {
	m.page = append(append([]byte{}, value...), m.page...)
	return nil
}

func (m *pageMerger) Finish(bool) ([]byte, io.Closer, error) { return m.page, nil, nil }
