package search

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// blockBits is how many bits of the number of a change say where it stands in its block.
const blockBits = 16

// blockSize is how many changes a block has.
const blockSize = 1 << blockBits

// set is a set of changes of a block.
type set [blockSize / 64]uint64

// The forms in which a set is stored, of which the shortest is taken. All numbers are
// uvarints.
const (
	formList   = 0 // the first member, then the distance of each from the one before, less 1
	formBitmap = 1 // 8 KiB, the lowest bit first
	formRuns   = 2 // of each run, how many are missing before it, and how many it has, less 1
)

// appendSet appends a set, given its members in order.
func appendSet(b []byte, members []uint16) []byte {
	list, runs := 0, 0
	next, length := 0, -1 // the member that would continue the run, and its length, less 1
	gap := 0
	for i, m := range members {
		if i == 0 {
			list += uvarintLen(int(m))
		} else {
			list += uvarintLen(int(m) - next)
		}
		if int(m) == next && length >= 0 {
			length++
		} else {
			if length >= 0 {
				runs += uvarintLen(gap) + uvarintLen(length)
			}
			gap, length = int(m)-next, 0
		}
		next = int(m) + 1
	}
	if length >= 0 {
		runs += uvarintLen(gap) + uvarintLen(length)
	}
	switch {
	case runs < list && runs < blockSize/8:
		return appendRuns(append(b, formRuns), members)
	case list < blockSize/8:
		b, next = append(b, formList), 0
		for _, m := range members {
			b = binary.AppendUvarint(b, uint64(int(m)-next))
			next = int(m) + 1
		}
		return b
	}
	var s set
	for _, m := range members {
		s[m>>6] |= 1 << (m & 63)
	}
	b = append(b, formBitmap)
	for _, word := range s {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func appendRuns(b []byte, members []uint16) []byte {
	next := 0
	for i := 0; i < len(members); {
		n := i + 1
		for n < len(members) && members[n] == members[n-1]+1 {
			n++
		}
		b = binary.AppendUvarint(b, uint64(int(members[i])-next))
		b = binary.AppendUvarint(b, uint64(n-i-1))
		next = int(members[n-1]) + 1
		i = n
	}
	return b
}

func uvarintLen(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

// addStored adds the members of a stored set. It returns false if the bytes are damaged.
func (s *set) addStored(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	form, b := b[0], b[1:]
	switch form {
	case formBitmap:
		if len(b) != blockSize/8 {
			return false
		}
		for i := range s {
			s[i] |= binary.LittleEndian.Uint64(b[8*i:])
		}
		return true
	case formList:
		for next := uint64(0); len(b) > 0; next++ {
			gap, n := binary.Uvarint(b)
			next += gap
			if n <= 0 || gap >= blockSize || next >= blockSize {
				return false
			}
			s[next>>6] |= 1 << (next & 63)
			b = b[n:]
		}
		return true
	case formRuns:
		for next := uint64(0); len(b) > 0; {
			gap, n := binary.Uvarint(b)
			if n <= 0 || gap >= blockSize {
				return false
			}
			length, m := binary.Uvarint(b[n:])
			if m <= 0 || length >= blockSize || next+gap+length >= blockSize {
				return false
			}
			s.addRun(int(next+gap), int(next+gap+length))
			next += gap + length + 1
			b = b[n+m:]
		}
		return true
	}
	return false
}

// addRun adds the members from first to last.
func (s *set) addRun(first, last int) {
	low, high := ^uint64(0)<<(first&63), ^uint64(0)>>(63-last&63)
	if first>>6 == last>>6 {
		s[first>>6] |= low & high
		return
	}
	s[first>>6] |= low
	for i := first>>6 + 1; i < last>>6; i++ {
		s[i] = ^uint64(0)
	}
	s[last>>6] |= high
}

// retain removes what is not in the other set, and reports whether something is left.
func (s *set) retain(other *set) bool {
	left := uint64(0)
	for i := range s {
		s[i] &= other[i]
		left |= s[i]
	}
	return left != 0
}

// remove removes what is in the other set.
func (s *set) remove(other *set) {
	for i := range s {
		s[i] &^= other[i]
	}
}

// isEmpty reports whether it has no members.
func (s *set) isEmpty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// before returns the greatest member that is less than n; -1 if there is none.
func (s *set) before(n int) int {
	for i := (n - 1) >> 6; i >= 0 && n > 0; i-- {
		word := s[i]
		if i == (n-1)>>6 {
			word &= ^uint64(0) >> (63 - (n-1)&63)
		}
		if word != 0 {
			return i<<6 + bits.Len64(word) - 1
		}
	}
	return -1
}

// count returns how many members it has.
func (s *set) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// members appends the members, in order.
func (s *set) members(list []uint16) []uint16 {
	list = slices.Grow(list, s.count())
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint16(i<<6+bits.TrailingZeros64(word)))
		}
	}
	return list
}
