package search

import (
	"bytes"
	"encoding/binary"
)

// packWords is how many words a pack has. More make an index smaller and a lookup slower, which
// reads half of a pack.
const packWords = 64

// pack has words of a block that stand in one document each. Most words are such: names and
// numbers. A key for each would cost most of the time that an index takes.
//
// The key of a pack has its first word. The value has, of each word, how many bytes it shares
// with the word before, the first one with the word of the key, how many bytes follow, these, and
// the document, in 2 bytes, the greatest first.
type pack struct {
	words  int
	before []byte
	key    []byte // of the block family
	value  []byte
}

// add adds a word, which is after all that were added before.
func (p *pack) add(word []byte, document uint16) {
	if p.words == 0 {
		p.key = append(p.key, word...)
		p.before = append(p.before[:0], word...)
	}
	shared := commonLength(p.before, word)
	p.value = binary.AppendUvarint(p.value, uint64(shared))
	p.value = binary.AppendUvarint(p.value, uint64(len(word)-shared))
	p.value = append(p.value, word[shared:]...)
	p.value = binary.BigEndian.AppendUint16(p.value, document)
	p.before = append(p.before[:shared], word[shared:]...)
	p.words++
}

// begin makes the pack empty.
func (p *pack) begin(block uint32) {
	p.words, p.value = 0, p.value[:0]
	p.key = append(appendBlock(p.key[:0], familyBlock, block), kindPack)
}

// readPack calls found with each word of a pack and its document, until that returns false. first
// is the word of the key. It returns false if the bytes are damaged.
func readPack(first, value []byte, found func(word []byte, document uint16) bool) bool {
	var buffer [maxWord]byte
	word := append(buffer[:0], first...)
	for len(value) > 0 {
		shared, n := binary.Uvarint(value)
		if n <= 0 || shared > uint64(len(word)) {
			return false
		}
		value = value[n:]
		rest, n := binary.Uvarint(value)
		if n <= 0 || rest > maxWord || uint64(len(value)-n) < rest+2 {
			return false
		}
		word = append(word[:shared], value[n:n+int(rest)]...)
		value = value[n+int(rest):]
		if !found(word, binary.BigEndian.Uint16(value)) {
			return true
		}
		value = value[2:]
	}
	return true
}

// addPacked adds the document of a block that alone has a word, if it is in a pack, and reports
// whether it is.
func (s *seeking) addPacked(to *set, block uint32, word []byte) (found bool, err error) {
	first, err := s.packOf(block, word)
	if err != nil || first == nil {
		return false, err
	}
	value, err := s.it.ValueAndErr()
	if err != nil {
		return false, err
	}
	ok := readPack(first, value, func(have []byte, document uint16) bool {
		order := bytes.Compare(have, word)
		if order == 0 {
			to[document>>6] |= 1 << (document & 63)
			found = true
		}
		return order < 0
	})
	if !ok {
		return false, errDamaged
	}
	return found, nil
}

// packOf goes to the pack of a block that has a word if one has it, and returns its first word; nil
// if all packs begin after the word.
func (s *seeking) packOf(block uint32, word []byte) (first []byte, err error) {
	head := append(appendBlock(s.key[:0], familyBlock, block), kindPack)
	s.key = append(append(head, word...), 0) // the first key after the one that begins with the word itself
	if !s.it.SeekLT(s.key) {
		return nil, s.it.Error()
	}
	key := s.it.Key()
	if !bytes.HasPrefix(key, s.key[:len(head)]) {
		return nil, nil
	}
	return key[len(head):], nil
}

// addPackedBeginning adds the documents of all words in packs of a block that begin so.
func (s *seeking) addPackedBeginning(to *set, block uint32, beginning []byte) error {
	first, err := s.packOf(block, beginning)
	if err != nil {
		return err
	}
	head := append(appendBlock(nil, familyBlock, block), kindPack)
	ok := first != nil
	if !ok {
		ok = s.it.SeekGE(head)
	}
	for more := true; ok && more && bytes.HasPrefix(s.it.Key(), head); ok = s.it.Next() {
		value, err := s.it.ValueAndErr()
		if err != nil {
			return err
		}
		sound := readPack(s.it.Key()[len(head):], value, func(word []byte, document uint16) bool {
			if bytes.HasPrefix(word, beginning) {
				to[document>>6] |= 1 << (document & 63)
				s.keys++
				return true
			}
			more = bytes.Compare(word, beginning) < 0
			return more
		})
		if !sound {
			return errDamaged
		}
	}
	return s.it.Error()
}
