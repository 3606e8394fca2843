package search

import (
	"encoding/binary"
	"slices"
)

// headed is the number of a text and the first bytes of it, which decide most comparisons.
type headed struct {
	head uint64
	n    uint32
}

func headOf[T string | []byte](text T) uint64 {
	var head [8]byte
	copy(head[:], text)
	return binary.BigEndian.Uint64(head[:])
}

// sorter sorts texts by their heads, byte for byte from the last one on: a block has some
// hundred thousand, for which comparisons take ten times as long.
type sorter struct {
	items, other []headed
}

// sort appends the numbers of the items in the order of their heads, and where these are equal as
// compare says.
func (s *sorter) sort(to []uint32, compare func(a, b uint32) int) []uint32 {
	var counts [8][256]uint32
	for i := range s.items {
		head := s.items[i].head
		for digit := range counts {
			counts[digit][byte(head>>(8*digit))]++
		}
	}
	s.other = slices.Grow(s.other[:0], len(s.items))[:len(s.items)]
	for digit := range counts {
		places := &counts[digit]
		if len(s.items) > 0 && places[byte(s.items[0].head>>(8*digit))] == uint32(len(s.items)) {
			continue // all have the same byte here
		}
		at := uint32(0)
		for i, n := range places {
			places[i] = at
			at += n
		}
		for _, it := range s.items {
			place := &places[byte(it.head>>(8*digit))]
			s.other[*place] = it
			*place++
		}
		s.items, s.other = s.other, s.items
	}
	for i := 0; i < len(s.items); {
		end := i + 1
		for end < len(s.items) && s.items[end].head == s.items[i].head {
			end++
		}
		if end-i > 1 {
			slices.SortFunc(s.items[i:end], func(x, y headed) int { return compare(x.n, y.n) })
		}
		for ; i < end; i++ {
			to = append(to, s.items[i].n)
		}
	}
	return to
}
