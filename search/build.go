package search

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// builder gathers the documents of a part of a block, and writes its keys in order. It holds
// its terms in one piece of memory without pointers: a block has some hundred thousand.
type builder struct {
	block uint32
	docs  []document

	arena []byte
	terms []builtTerm
	table []uint32 // the number of a term, plus 1, by its hash; 0 if there is none
	seed  maphash.Seed
	pairs []uint64 // the number of a term, shifted by blockBits, and a document of it

	spaces *prefixes
	low    uint16 // of the document whose terms are added
	buffer []byte
	split  splitter
	words  int // of the document
	same   [slots]sameTerm
	day    int64
	onDay  [3]string // the terms of that day
}

// sameTerm is the term of a filter that the document before had: most documents have the same,
// which then need not be looked up.
type sameTerm struct {
	value string
	term  uint32
	known bool
}

// The filters of which a document has one value each, and their places in a list.
const (
	slotAll = iota
	slotScheme
	slotState
	slotVisibility
	slotBy
	slotHost
	slotModified
	slotCreated = slotModified + 3
	slots       = slotCreated + 3
)

// document is a record in the index.
type document struct {
	number uint64
	name   string // scheme 00 text
	first  bool   // it is the first version of its record, which is in no other document
}

// builtTerm is a term of the block.
type builtTerm struct {
	from, to uint32 // in the arena
	hash     uint32
	last     int32 // the document to which it was added last; -1: none
	count    uint32
}

// newBuilder returns a builder for a part of a block with about so many documents.
func newBuilder(block uint32, spaces *prefixes, documents int) *builder {
	size := 1 << 10
	for size < 4*documents {
		size *= 2
	}
	b := &builder{
		block: block, spaces: spaces, seed: maphash.MakeSeed(), table: make([]uint32, size), docs: make([]document, 0, documents),
		arena: make([]byte, 0, 32*documents), terms: make([]builtTerm, 0, 3*documents), pairs: make([]uint64, 0, 32*documents),
	}
	b.split.add = func(word []byte, _ bool, _ int) {
		if b.words++; b.words <= maxWords {
			b.buffer = append(append(b.buffer[:0], kindWord), word...)
			b.put(b.number(b.buffer))
		}
	}
	return b
}

// add adds a record, whose document is after all that were added before.
func (b *builder) add(number uint64, r *stele.Record) {
	b.low = uint16(number)
	scheme, text := r.ID.Scheme(), r.ID.String()
	b.docs = append(b.docs, document{number: number, name: scheme + "\x00" + text, first: r.Version == 1})
	b.one(slotAll, 0, "")
	b.one(slotScheme, filterScheme, scheme)
	for key := range b.spaces.of(scheme, text) {
		b.filter(filterPrefix, key.Scheme+"\x00"+key.Prefix)
	}
	b.one(slotState, filterState, string(r.State))
	visibility := Public
	if !r.IsPublic() {
		visibility = Restricted
	}
	b.one(slotVisibility, filterVisibility, string(visibility))
	b.one(slotBy, filterBy, r.By)
	for i := range r.Targets {
		if host := r.Targets[i].Host(); host != "" {
			b.one(slotHost, filterHost, host)
		}
	}
	b.dates(slotModified, filterModified, r.Modified)
	b.dates(slotCreated, filterCreated, r.Created)
	b.words = 0
	fields(r, func(text string) bool {
		b.split.text(text)
		return b.words < maxWords
	})
}

// one adds a term of a filter that has a slot.
func (b *builder) one(slot int, filter byte, value string) {
	same := &b.same[slot]
	if !same.known || same.value != value {
		term := append(b.buffer[:0], kindAll)
		if slot != slotAll {
			term = appendFilter(b.buffer[:0], filter, value)
		}
		b.buffer = term
		*same = sameTerm{value, b.number(term), true}
	}
	b.put(same.term)
}

// filter adds a term of a filter.
func (b *builder) filter(filter byte, value string) {
	b.buffer = appendFilter(b.buffer[:0], filter, value)
	b.put(b.number(b.buffer))
}

// dates adds the terms of a time.
func (b *builder) dates(slot int, filter byte, at time.Time) {
	const day = 24 * 60 * 60
	if n := (at.Unix() - (at.Unix()%day+day)%day) / day; n != b.day || b.onDay[0] == "" {
		b.day, b.onDay = n, datesOf(at)
	}
	for i, d := range b.onDay {
		b.one(slot+i, filter, d)
	}
}

// put adds a term to the present document, unless it has it.
func (b *builder) put(n uint32) {
	if t := &b.terms[n]; t.last != int32(b.low) {
		t.last = int32(b.low)
		t.count++
		b.pairs = append(b.pairs, uint64(n)<<blockBits|uint64(b.low))
	}
}

// number returns the number of a term, which may be new.
func (b *builder) number(term []byte) uint32 {
	hash := uint32(maphash.Bytes(b.seed, term))
	mask := uint32(len(b.table) - 1)
	at := hash & mask
	for ; b.table[at] != 0; at = (at + 1) & mask {
		n := b.table[at] - 1
		if t := &b.terms[n]; t.hash == hash && bytes.Equal(b.arena[t.from:t.to], term) {
			return n
		}
	}
	n := uint32(len(b.terms))
	from := uint32(len(b.arena))
	b.arena = append(b.arena, term...)
	b.terms = append(b.terms, builtTerm{from: from, to: uint32(len(b.arena)), hash: hash, last: -1})
	b.table[at] = n + 1
	if len(b.terms) > len(b.table)*3/4 {
		b.grow()
	}
	return n
}

// grow doubles the table.
func (b *builder) grow() {
	b.table = make([]uint32, 2*len(b.table))
	mask := uint32(len(b.table) - 1)
	for n := range b.terms {
		at := b.terms[n].hash & mask
		for b.table[at] != 0 {
			at = (at + 1) & mask
		}
		b.table[at] = uint32(n) + 1
	}
}

// isFull reports whether the memory of the builder has no room for more: a part of a block is
// written then.
func (b *builder) isFull() bool { return len(b.arena) > maxArena || len(b.pairs) > maxPairs }

// write calls add with all keys of the block family, in order. The slices are valid until add
// returns.
func (b *builder) write(add func(key, value []byte) error) error {
	key, value := appendBlock(nil, familyBlock, b.block), []byte(nil)
	for i := 0; i < len(b.docs); {
		page := byte(b.docs[i].number >> 8)
		value = value[:0]
		for before := ""; i < len(b.docs) && byte(b.docs[i].number>>8) == page; i++ {
			value = appendPage(value, b.docs[i].number, before, b.docs[i].name)
			before = b.docs[i].name
		}
		if err := add(append(key[:blockHead], kindPage, page), value); err != nil {
			return err
		}
	}
	sets := b.sets()
	for _, n := range b.order() {
		t := &b.terms[n]
		members := sets[t.last : uint32(t.last)+t.count]
		value = appendSet(value[:0], members)
		key = append(key[:blockHead], b.arena[t.from:t.to]...)
		if err := add(key, value); err != nil {
			return err
		}
	}
	return nil
}

// sets returns the documents of all terms; those of a term begin at its last, which is
// overwritten.
func (b *builder) sets() []uint16 {
	at := int32(0)
	for i := range b.terms {
		b.terms[i].last = at
		at += int32(b.terms[i].count)
	}
	list := make([]uint16, at)
	for _, p := range b.pairs {
		t := &b.terms[p>>blockBits]
		list[t.last] = uint16(p)
		t.last++
	}
	for i := range b.terms {
		b.terms[i].last -= int32(b.terms[i].count)
	}
	return list
}

// order returns the numbers of the terms in the order of their bytes.
func (b *builder) order() []uint32 {
	type item struct {
		head uint64 // the first bytes
		n    uint32
	}
	items := make([]item, len(b.terms))
	for i := range b.terms {
		t := &b.terms[i]
		var head [8]byte
		copy(head[:], b.arena[t.from:t.to])
		items[i] = item{binary.BigEndian.Uint64(head[:]), uint32(i)}
	}
	slices.SortFunc(items, func(x, y item) int {
		switch {
		case x.head < y.head:
			return -1
		case x.head > y.head:
			return 1
		}
		s, t := &b.terms[x.n], &b.terms[y.n]
		return bytes.Compare(b.arena[s.from:s.to], b.arena[t.from:t.to])
	})
	list := make([]uint32, len(items))
	for i, it := range items {
		list[i] = it.n
	}
	return list
}
