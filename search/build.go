package search

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"

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

	low   uint16 // of the document whose terms are added
	split *recordTerms
}

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

func newBuilder(block uint32, spaces *prefixes) *builder {
	b := &builder{block: block, table: make([]uint32, 1<<10), seed: maphash.MakeSeed()}
	b.split = newRecordTerms(spaces, b.addTerm)
	return b
}

// add adds a record, whose document is after all that were added before.
func (b *builder) add(number uint64, r *stele.Record) {
	b.low = uint16(number)
	b.docs = append(b.docs, document{number: number, name: r.ID.Scheme() + "\x00" + r.ID.String(), first: r.Version == 1})
	b.split.record(r)
}

// addTerm adds a term of the present document.
func (b *builder) addTerm(term []byte) {
	hash := uint32(maphash.Bytes(b.seed, term))
	mask := uint32(len(b.table) - 1)
	at := hash & mask
	for ; b.table[at] != 0; at = (at + 1) & mask {
		n := b.table[at] - 1
		t := &b.terms[n]
		if t.hash == hash && bytes.Equal(b.arena[t.from:t.to], term) {
			if t.last != int32(b.low) {
				t.last = int32(b.low)
				t.count++
				b.pairs = append(b.pairs, uint64(n)<<blockBits|uint64(b.low))
			}
			return
		}
	}
	n := uint32(len(b.terms))
	from := uint32(len(b.arena))
	b.arena = append(b.arena, term...)
	b.terms = append(b.terms, builtTerm{from: from, to: uint32(len(b.arena)), hash: hash, last: int32(b.low), count: 1})
	b.pairs = append(b.pairs, uint64(n)<<blockBits|uint64(b.low))
	b.table[at] = n + 1
	if len(b.terms) > len(b.table)*3/4 {
		b.grow()
	}
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
