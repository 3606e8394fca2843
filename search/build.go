package search

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
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
	table []uint64 // the hash of a term, and the number of the term, plus 1, in the lower half, by the hash; 0 if there is none
	seed  maphash.Seed
	found []uint32 // the numbers of the terms of all documents, one document after the other
	ends  []uint32 // where those of a document end, in the order of docs

	// Memory that write uses.
	sorter sorter
	order  []uint32
	lists  []uint16
	pack   pack
	rare   []uint32 // terms that go into packs

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
	id     stele.ID
	first  bool // it is the first version of its record, which is in no other document
}

// builtTerm is a term of the block.
type builtTerm struct {
	from, to uint32 // in the arena
	last     int32  // the document to which it was added last; -1: none
	count    uint32
}

// spare has builders that are used again, because a block needs tens of megabytes.
type spare struct {
	mu   sync.Mutex
	list []*builder
}

// builder returns an empty builder for a part of a block with about so many documents.
func (s *spare) builder(block uint32, spaces *prefixes, documents int) *builder {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list) - 1
	if n < 0 {
		return newBuilder(block, spaces, documents)
	}
	b := s.list[n]
	s.list = s.list[:n]
	b.reset(block, spaces)
	return b
}

// put takes a builder back, which is not used any more; nil if there was none.
func (s *spare) put(b *builder) {
	if b != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, b)
	}
}

// reset makes a builder empty.
func (b *builder) reset(block uint32, spaces *prefixes) {
	b.block, b.spaces = block, spaces
	clear(b.docs) // it has strings of the records
	clear(b.table)
	b.docs, b.arena, b.terms, b.found, b.ends = b.docs[:0], b.arena[:0], b.terms[:0], b.found[:0], b.ends[:0]
	b.same = [slots]sameTerm{}
}

// newBuilder returns a builder for a part of a block with about so many documents.
func newBuilder(block uint32, spaces *prefixes, documents int) *builder {
	size := 1 << 10
	for size < 4*documents {
		size *= 2
	}
	b := &builder{
		block: block, spaces: spaces, seed: maphash.MakeSeed(), table: make([]uint64, size), docs: make([]document, 0, documents),
		arena: make([]byte, 0, 40*documents), terms: make([]builtTerm, 0, 4*documents), found: make([]uint32, 0, 40*documents), ends: make([]uint32, 0, documents),
	}
	b.split.add = func(word []byte, _ bool, _ int) {
		if b.words++; b.words <= maxWords {
			b.put(b.number(kindWord, word))
		}
	}
	return b
}

// add adds a record, whose document is after all that were added before.
func (b *builder) add(number uint64, r *stele.Record) {
	b.low = uint16(number)
	scheme, text := r.ID.Scheme(), r.ID.String()
	b.docs = append(b.docs, document{number: number, id: r.ID, first: r.Version == 1})
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
	b.ends = append(b.ends, uint32(len(b.found)))
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
		*same = sameTerm{value, b.number(term[0], term[1:]), true}
	}
	b.put(same.term)
}

// filter adds a term of a filter.
func (b *builder) filter(filter byte, value string) {
	b.buffer = appendFilter(b.buffer[:0], filter, value)
	b.put(b.number(b.buffer[0], b.buffer[1:]))
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
		b.found = append(b.found, n)
	}
}

// number returns the number of a term of a kind, which may be new.
func (b *builder) number(kind byte, rest []byte) uint32 {
	hash := uint32(maphash.Bytes(b.seed, rest)) + uint32(kind) // a few values of filters are words too: they are neighbours then
	mask := uint32(len(b.table) - 1)
	at := hash & mask
	for ; b.table[at] != 0; at = (at + 1) & mask {
		if uint32(b.table[at]>>32) != hash {
			continue
		}
		n := uint32(b.table[at]) - 1
		if t := &b.terms[n]; b.arena[t.from] == kind && bytes.Equal(b.arena[t.from+1:t.to], rest) {
			return n
		}
	}
	n := uint32(len(b.terms))
	from := uint32(len(b.arena))
	b.arena = append(append(b.arena, kind), rest...)
	b.terms = append(b.terms, builtTerm{from: from, to: uint32(len(b.arena)), last: -1})
	b.table[at] = uint64(hash)<<32 | uint64(n+1)
	if len(b.terms) > len(b.table)*3/4 {
		b.grow()
	}
	return n
}

// grow doubles the table.
func (b *builder) grow() {
	old := b.table
	b.table = make([]uint64, 2*len(old))
	mask := uint32(len(b.table) - 1)
	for _, entry := range old {
		if entry == 0 {
			continue
		}
		at := uint32(entry>>32) & mask
		for b.table[at] != 0 {
			at = (at + 1) & mask
		}
		b.table[at] = entry
	}
}

// isFull reports whether the memory of the builder has no room for more: a part of a block is
// written then.
func (b *builder) isFull() bool { return len(b.arena) > maxArena || len(b.found) > maxFound }

// write calls add with all keys of the block family, in order. The slices are valid until add
// returns. Packs can't be merged with others, so only what is written first of a block is packed.
func (b *builder) write(packed bool, add func(key, value []byte) error) error {
	key := appendBlock(nil, familyBlock, b.block)
	var value, name, before []byte
	for i := 0; i < len(b.docs); {
		page := byte(b.docs[i].number >> 8)
		value = value[:0]
		before, name = before[:0], name[:0]
		for ; i < len(b.docs) && byte(b.docs[i].number>>8) == page; i++ {
			d := &b.docs[i]
			name = appendName(name[:0], d.id.Scheme(), d.id.String())
			value = appendPage(value, d.number, before, name)
			before, name = name, before
		}
		if err := add(append(key[:blockHead], kindPage, page), value); err != nil {
			return err
		}
	}
	sets := b.sets()
	b.rare = slices.Grow(b.rare[:0], len(b.terms))
	for _, n := range b.inOrder() {
		t := &b.terms[n]
		if packed && t.count == 1 && b.arena[t.from] == kindWord {
			b.rare = append(b.rare, n)
			continue
		}
		members := sets[t.last : uint32(t.last)+t.count]
		value = appendSet(value[:0], members)
		key = append(key[:blockHead], b.arena[t.from:t.to]...)
		if err := add(key, value); err != nil {
			return err
		}
	}
	return b.writePacks(sets, add)
}

// writePacks calls add with the packs of the words that stand in one document each.
func (b *builder) writePacks(sets []uint16, add func(key, value []byte) error) error {
	b.pack.begin(b.block)
	for i, n := range b.rare {
		t := &b.terms[n]
		b.pack.add(b.arena[t.from+1:t.to], sets[t.last])
		if b.pack.words == packWords || i == len(b.rare)-1 {
			if err := add(b.pack.key, b.pack.value); err != nil {
				return err
			}
			b.pack.begin(b.block)
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
	b.lists = slices.Grow(b.lists[:0], int(at))[:at]
	from := uint32(0)
	for i, end := range b.ends {
		low := uint16(b.docs[i].number)
		for _, n := range b.found[from:end] {
			t := &b.terms[n]
			b.lists[t.last] = low
			t.last++
		}
		from = end
	}
	for i := range b.terms {
		b.terms[i].last -= int32(b.terms[i].count)
	}
	return b.lists
}

// inOrder returns the numbers of the terms in the order of their bytes.
func (b *builder) inOrder() []uint32 {
	items := slices.Grow(b.sorter.items[:0], len(b.terms))
	for i := range b.terms {
		t := &b.terms[i]
		items = append(items, headed{headOf(b.arena[t.from:t.to]), uint32(i)})
	}
	b.sorter.items = items
	b.order = b.sorter.sort(slices.Grow(b.order[:0], len(items)), func(x, y uint32) int {
		s, t := &b.terms[x], &b.terms[y]
		return bytes.Compare(b.arena[s.from:s.to], b.arena[t.from:t.to])
	})
	return b.order
}
