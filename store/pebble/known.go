package pebble

import (
	"hash/maphash"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// known knows all names of the store, so that an ingest need not look up most of its
// own: they are new, and looking up an absent name costs as much as writing it. It
// begins with a store that has no names, learns those of each ingest, and ends when
// another commit writes: a change that it was not told of shows in the number of the
// last one. Only the ingest that builds tables uses it, one at a time.
type known struct {
	seed    maphash.Seed
	opening *opening
	seq     uint64 // the change up to which it knows names
	filters []nameFilter
}

// What known keeps in memory: two bytes a name, in filters of which each has room for
// twice as many as the one before.
const (
	firstFilter = 1 << 20 // names
	maxFilters  = 6       // for 63 million names; then it ends
)

// knownAt returns what is known of the names at a change; nil if that is not all. The
// reader shows the state after that change.
func (s *Store) knownAt(db pebbledb.Reader, h *opening, seq uint64) (*known, error) {
	if k := s.known; k != nil && k.opening == h && k.seq == seq {
		return k, nil
	}
	s.known = nil
	empty, err := isFree(db, []byte{familyName}, []byte{familyName + 1})
	if err != nil {
		return nil, h.damage("ingest", stele.ID{}, err)
	}
	if !empty {
		return nil, nil
	}
	s.known = &known{seed: maphash.MakeSeed(), opening: h, seq: seq}
	return s.known, nil
}

// mayHave reports whether a name may be in the store; false is certain. Nil knows
// nothing.
func (k *known) mayHave(key []byte) bool {
	if k == nil {
		return true
	}
	hash := maphash.Bytes(k.seed, key)
	for i := range k.filters {
		if k.filters[i].mayHave(hash) {
			return true
		}
	}
	return false
}

// learn adds the names of an ingest that was committed. It reports whether all names
// are known still.
func (k *known) learn(in *ingest) bool {
	if in.last != k.seq+in.build.accepted {
		return false // another commit was made while the tables were built
	}
	for i := range in.names {
		n := &in.names[i]
		if in.refused[n.record] != nil {
			continue
		}
		last := len(k.filters) - 1
		if last < 0 || k.filters[last].room == 0 {
			if last++; last == maxFilters {
				return false
			}
			k.filters = append(k.filters, newNameFilter(firstFilter<<last))
		}
		k.filters[last].add(maphash.Bytes(k.seed, n.key))
	}
	k.seq = in.last
	return true
}

// nameFilter is a Bloom filter in blocks: all bits of a name are in the 64 bytes that
// a processor reads at once, one in each word.
type nameFilter struct {
	blocks [][8]uint64
	room   int // for how many names more
}

func newNameFilter(names int) nameFilter {
	return nameFilter{blocks: make([][8]uint64, names/32), room: names} // 16 bits a name
}

// block returns where the bits of a hash are. Its upper half says where, and the lower
// one which.
func (f *nameFilter) block(hash uint64) *[8]uint64 {
	return &f.blocks[(hash>>32)*uint64(len(f.blocks))>>32]
}

// bit returns the bit for a word. Multiplied by different odd numbers, a hash gives
// different ones.
func bit(hash uint64, word int) uint64 {
	odd := [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}
	return 1 << (uint32(hash) * odd[word] >> 26)
}

func (f *nameFilter) add(hash uint64) {
	b := f.block(hash)
	for i := range b {
		b[i] |= bit(hash, i)
	}
	f.room--
}

func (f *nameFilter) mayHave(hash uint64) bool {
	b := f.block(hash)
	for i := range b {
		if b[i]&bit(hash, i) == 0 {
			return false
		}
	}
	return true
}
