package resolver

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/stele-id/stele"
)

// leads keep the leads of names in a fixed amount of memory without pointers: the
// garbage collector has nothing to do with it, however many there are, and of ten
// million names all have room in half a gigabyte. Where it is full nothing is thrown
// out for what is new. Whoever is asked for often is kept by the cache itself.
//
// The memory is cut into parts, each with a lock, so that requests seldom wait for
// each other. A part has slots, which say where in the text the leads with a certain
// hash are, and the text, to which leads are appended.
type leads struct {
	words  words
	parts  []part
	memory []byte
}

// part is a part of the memory.
//
// A slot has 13 bits of the hash and then the lead's place in the text, in units, plus
// one; it is 0 if it is free. In the text stand the units that the lead may fill, in
// two bytes, and the lead.
type part struct {
	mu    sync.RWMutex
	slots []byte // four bytes each
	text  []byte
	used  int // bytes of text
	lost  int // of these, what nobody finds any more
}

const (
	leadUnit    = 4
	partText    = leadUnit << placeBits
	partSlots   = partText / 16 // twice as many as there are short leads, so that there is a free one
	partBytes   = partText + 4*partSlots
	placeBits   = 19
	bucketSlots = 8 // a hash leads to so many slots
)

// newLeads makes room for leads, of about so many bytes. They are taken from the
// system as they are used. It returns nil where the system has none to give.
func newLeads(size uint64) *leads {
	n := int(max(1, size/partBytes))
	text, slots := partText, partSlots
	if size < partBytes {
		text = max(maxLead+leadUnit, int(size)*4/5) &^ (leadUnit - 1)
		slots = max(bucketSlots, 1<<(bits.Len(uint(text/16))-1))
	}
	l := &leads{parts: make([]part, n), memory: newArena(n * (text + 4*slots))}
	if l.memory == nil {
		return nil
	}
	rest := l.memory
	cut := func(size int) (piece []byte) {
		piece, rest = rest[:size:size], rest[size:]
		return piece
	}
	for i := range l.parts {
		l.parts[i].slots, l.parts[i].text = cut(4*slots), cut(text)
	}
	return l
}

// close gives the memory back. Nothing is kept from then on.
func (l *leads) close() {
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		p.slots, p.text = nil, nil
		p.mu.Unlock()
	}
	freeArena(l.memory)
	l.memory = nil
}

// part returns where a name with this hash is kept.
func (l *leads) part(hash uint64) *part {
	high, _ := bits.Mul64(hash, uint64(len(l.parts)))
	return &l.parts[high]
}

// bucket returns the slots that a name with this hash may have, and what stands in
// front of the place there.
func (p *part) bucket(hash uint64) (slots []byte, mark uint32) {
	const bytes = 4 * bucketSlots
	if len(p.slots) == 0 {
		return nil, 0
	}
	i := int(hash>>9) & (len(p.slots)/bytes - 1) * bytes
	return p.slots[i : i+bytes], uint32(hash>>23) << placeBits
}

// seek returns the slot that has a name, and what follows the name in its lead; nil
// if there is none.
func (l *leads) seek(p *part, name stele.ID, hash uint64) (slot []byte, d leadReader) {
	slots, mark := p.bucket(hash)
	for ; len(slots) > 0; slots = slots[4:] {
		v := binary.LittleEndian.Uint32(slots)
		if v == 0 || v&^(1<<placeBits-1) != mark {
			continue
		}
		at := placeOf(v)
		d = l.words.reader(p.text[at+2 : at+p.room(at)])
		if d.isNamed(name) {
			return slots[:4], d
		}
	}
	return nil, leadReader{}
}

// placeOf returns where in the text a slot leads to.
func placeOf(slot uint32) int { return int(slot&(1<<placeBits-1)-1) * leadUnit }

// room returns how many bytes there are for the lead in a place.
func (p *part) room(at int) int { return int(binary.LittleEndian.Uint16(p.text[at:])) * leadUnit }

// find returns the record that has a name, as far as its lead tells of it; nil if
// there is no lead.
func (l *leads) find(name stele.ID, hash uint64) *stele.Record {
	p := l.part(hash)
	p.mu.RLock()
	defer p.mu.RUnlock()
	slot, d := l.seek(p, name, hash)
	if slot == nil {
		return nil
	}
	return d.record(name)
}

// remove removes the lead of a name.
func (l *leads) remove(name stele.ID, hash uint64) {
	p := l.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot, _ := l.seek(p, name, hash); slot != nil {
		p.free(slot)
	}
}

// removeAll removes all leads.
func (l *leads) removeAll() {
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		clear(p.slots)
		p.used, p.lost = 0, 0
		p.mu.Unlock()
	}
}

func (p *part) free(slot []byte) {
	p.lost += p.room(placeOf(binary.LittleEndian.Uint32(slot)))
	clear(slot)
}

// put keeps the lead of a name. It reports whether there was room.
func (l *leads) put(name stele.ID, hash uint64, lead []byte) bool {
	p := l.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	slot, _ := l.seek(p, name, hash)
	if slot != nil {
		at := placeOf(binary.LittleEndian.Uint32(slot))
		if room := p.text[at+2 : at+p.room(at)]; len(lead) <= len(room) {
			if !bytes.Equal(room[:len(lead)], lead) {
				copy(room, lead)
			}
			return true
		}
		p.free(slot)
	}
	return p.add(hash, lead)
}

// add appends a lead of a name that has none.
func (p *part) add(hash uint64, lead []byte) bool {
	size := (2 + len(lead) + leadUnit - 1) &^ (leadUnit - 1)
	if p.used+size > len(p.text) {
		if p.lost <= p.used/4 {
			return false
		}
		// It is simpler to begin again than to move what is left together.
		clear(p.slots)
		p.used, p.lost = 0, 0
	}
	slots, mark := p.bucket(hash)
	for ; len(slots) > 0; slots = slots[4:] {
		if binary.LittleEndian.Uint32(slots) != 0 {
			continue
		}
		binary.LittleEndian.PutUint32(slots, mark|uint32(p.used/leadUnit+1))
		binary.LittleEndian.PutUint16(p.text[p.used:], uint16(size/leadUnit))
		copy(p.text[p.used+2:], lead)
		p.used += size
		return true
	}
	return false
}
