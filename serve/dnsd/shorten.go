package dnsd

import (
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/compress/s2"
)

// dictionary is a text of which parts stand in other texts, and where they are in it. It writes the
// form of package s2, which reads it: there, a text of some hundred bytes is looked through with a
// table of 64 KiB, and to clear that takes longer than all the rest.
type dictionary struct {
	*s2.Dict
	text   []byte
	places [1 << placesBits]uint16 // by the hash of what stands there: the last such place, plus one
}

const (
	placesBits = 13 // of a dictionary
	seenBits   = 9  // of the text that is shortened
	leastMatch = 5  // bytes that are hashed
	leastAgain = 4  // bytes that are copied from where the last ones were: an element of two bytes

	// Elements of the form: bits of their first byte.
	elementLiteral = 0
	elementCopy1   = 1 // of 4 to 11 bytes that begin less than 2 KiB before; with 0: as far as the last copy
	elementCopy2   = 2 // of 1 to 64 bytes that begin less than 64 KiB before
)

// newDictionary makes a dictionary of a text of less than 32 KiB, which is not changed afterwards. It
// returns nil if the text is too short for one.
func newDictionary(text []byte) *dictionary {
	dict := s2.MakeDict(text, nil)
	if dict == nil {
		return nil
	}
	d := &dictionary{Dict: dict, text: text}
	for i := range len(text) - 7 {
		d.places[matchHash(load64(text, i))>>(64-placesBits)] = uint16(i + 1)
	}
	return d
}

func load64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// matchHash is a hash of the first bytes of eight.
func matchHash(b uint64) uint64 { return b << (64 - 8*leastMatch) * 0x9e3779b97f4a7c15 }

// matching returns how many bytes two texts have in common at their beginning.
func matching(a, b []byte) (n int) {
	for n+8 <= len(a) && n+8 <= len(b) {
		if differ := load64(a, n) ^ load64(b, n); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// shorten appends a text of at most [maxShortened] bytes in the form that Decode reads. A place is an
// offset from the place where it is copied to: that of the dictionary is the end of its text before
// the beginning of this one.
func (d *dictionary) shorten(to, text []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(text)))
	var seen [1 << seenBits]uint16 // places in text, plus one
	done, last := 0, len(d.text)   // bytes that are written; offset of the last copy: at first the text of the dictionary
	for at := 0; at+8 <= len(text); {
		hash := matchHash(load64(text, at))
		length, offset, before := d.again(text, at, last)
		slot := &seen[hash>>(64-seenBits)]
		if i := int(*slot) - 1; i >= 0 {
			if n := matching(text[i:], text[at:]); n >= leastMatch && n > length+1 {
				length, offset, before = n, at-i, text[:i]
			}
		}
		if i := int(d.places[hash>>(64-placesBits)]) - 1; i >= 0 {
			if n := matching(d.text[i:], text[at:]); n >= leastMatch && n > length+1 {
				length, offset, before = n, len(d.text)-i+at, d.text[:i]
			}
		}
		*slot = uint16(at + 1)
		if length == 0 {
			at += 1 + (at-done)>>6 // it may be a text that is not like any other
			continue
		}
		begin := at
		for n := len(before); n > 0 && begin > done && before[n-1] == text[begin-1]; n-- {
			begin--
		}
		at += length
		to = appendCopy(appendLiteral(to, text[done:begin]), offset, at-begin, offset == last)
		done, last = at, offset
	}
	return appendLiteral(to, text[done:])
}

// again returns how many bytes can be copied to a place from the offset of the last copy, and what
// stands before them; none if there are too few.
func (d *dictionary) again(text []byte, at, last int) (length, offset int, before []byte) {
	from, i := text, at-last
	if i < 0 {
		from, i = d.text, len(d.text)+i
	}
	if i < 0 || i >= len(from) {
		return 0, 0, nil
	}
	if length = matching(from[i:], text[at:]); length < leastAgain {
		return 0, 0, nil
	}
	return length, last, from[:i]
}

// appendLiteral appends a text of at most [maxShortened] bytes as it is.
func appendLiteral(to, text []byte) []byte {
	n := len(text) - 1
	switch {
	case n < 0:
		return to
	case n < 60:
		to = append(to, uint8(n)<<2|elementLiteral)
	case n < 1<<8:
		to = append(to, 60<<2|elementLiteral, uint8(n))
	default:
		to = append(to, 61<<2|elementLiteral, uint8(n), uint8(n>>8))
	}
	return append(to, text...)
}

// appendCopy appends that so many bytes, at least four, are copied from an offset. repeats says that
// it is the offset of the last copy.
func appendCopy(to []byte, offset, n int, repeats bool) []byte {
	switch {
	case repeats:
		return appendRepeat(to, n)
	case n > 64:
		to = append(to, 59<<2|elementCopy2, uint8(offset), uint8(offset>>8)) // 60 bytes
		return appendRepeat(to, n-60)
	case n < 12 && offset < 1<<11:
		return append(to, uint8(offset>>8)<<5|uint8(n-4)<<2|elementCopy1, uint8(offset))
	}
	return append(to, uint8(n-1)<<2|elementCopy2, uint8(offset), uint8(offset>>8))
}

// appendRepeat appends that so many bytes, at least four, are copied from the offset of the last copy.
func appendRepeat(to []byte, n int) []byte {
	switch n -= 4; {
	case n <= 4:
		return append(to, uint8(n)<<2|elementCopy1, 0)
	case n < 1<<8+4:
		return append(to, 5<<2|elementCopy1, 0, uint8(n-4))
	}
	n -= 1 << 8
	return append(to, 6<<2|elementCopy1, 0, uint8(n), uint8(n>>8))
}
