package usage

import (
	"encoding/binary"
	"hash/maphash"
)

// knownCells remembers the values of cells as this server wrote them last: to read one costs more than to add to it. It has no
// pointers, see [index]. When it is full it forgets what was not written since it was full before.
type knownCells struct {
	seed  maphash.Seed
	parts [2]knownPart // what was written last, and what was written before that
}

// knownPart has entries: two bytes with the size of a cell's name, two with that of its value, and both.
type knownPart struct {
	index index
	bytes []byte
}

const (
	knownHead  = 4
	maxKnown   = 1 << 24 // bytes of a part: about 200,000 names
	mostOfCell = 1<<16 - 1
)

func newKnownCells() *knownCells { return &knownCells{seed: maphash.MakeSeed()} }

// find returns the value of a cell; nil if it has none. It is valid until put is called.
func (k *knownCells) find(name string) (value []byte, ok bool) {
	hash := maphash.String(k.seed, name)
	for i := range k.parts {
		p := &k.parts[i]
		if slot := p.find(hash, name); slot != nil {
			value := p.value(int(uint32(*slot)-1), len(name))
			return value[:len(value):len(value)], true
		}
	}
	return nil, false
}

// put remembers the value of a cell; nil if it has none.
func (k *knownCells) put(name string, value []byte) {
	hash := maphash.String(k.seed, name)
	if len(name) > mostOfCell || len(value) > mostOfCell { // it is read each time
		for i := range k.parts {
			if slot := k.parts[i].find(hash, name); slot != nil {
				k.clear()
			}
		}
		return
	}
	p := &k.parts[0]
	if len(p.bytes)+knownHead+len(name)+len(value) > maxKnown {
		k.parts[1], *p = *p, knownPart{}
	}
	slot := p.find(hash, name)
	if slot != nil {
		if have := p.value(int(uint32(*slot)-1), len(name)); len(have) == len(value) {
			copy(have, value)
			return
		}
	}
	to := uint32(len(p.bytes))
	p.bytes = binary.LittleEndian.AppendUint16(p.bytes, uint16(len(name)))
	p.bytes = binary.LittleEndian.AppendUint16(p.bytes, uint16(len(value)))
	p.bytes = append(append(p.bytes, name...), value...)
	if slot == nil {
		p.index.add(hash, to)
		return
	}
	*slot = *slot>>32<<32 | uint64(to+1)
}

// clear forgets all.
func (k *knownCells) clear() { k.parts = [2]knownPart{} }

// find returns the slot of a cell; nil if it has none.
func (p *knownPart) find(hash uint64, name string) *uint64 {
	x := &p.index
	if len(x.slots) == 0 {
		return nil
	}
	for at := x.first(hash); x.slots[at] != 0; at = x.next(at) {
		to, ok := place(x.slots[at], hash)
		if !ok || int(binary.LittleEndian.Uint16(p.bytes[to:])) != len(name) {
			continue
		}
		if from := int(to) + knownHead; string(p.bytes[from:from+len(name)]) == name {
			return &x.slots[at]
		}
	}
	return nil
}

// value returns the value of the entry at a place, whose name has a size; nil if it is empty.
func (p *knownPart) value(to, name int) []byte {
	size := int(binary.LittleEndian.Uint16(p.bytes[to+2:]))
	if size == 0 {
		return nil
	}
	return p.bytes[to+knownHead+name:][:size]
}
