package hdld

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/slab"
)

// kept are the values of handles as answers have them, by the body of the request, in memory without pointers. The octets of a request
// say all that the values depend on, except whether the client wants what is for the public only; so one request that
// is spelled like another gets the same values, without being read. Entries hold what any client may read, and nothing else: see
// [Server.keep].
//
// An entry is good while its epoch is current: a write of the record, or of a namespace, by this server ends it before the write is
// acknowledged (see [handles.Epoch]), and one by another server as soon as this one has followed it. New entries overwrite the oldest ones.
type kept struct {
	seed    maphash.Seed
	entries *slab.Slab
}

// Fields of an entry, in front of the body of the request and the values.
const (
	entryFlags  = handles.EpochBytes // 1 octet
	entryBody   = entryFlags + 1     // length of the body of the request: 2
	entryValues = entryBody + 2      // length of the values: 2
	entryHead   = entryValues + 2

	flagPublic = 1 << 0 // the client wants what is for the public only

	// maxEntry is how many octets an entry has at most. Longer answers are made each time.
	maxEntry = 4 << 10

	// slotBytes is how many bytes of entries there are for a slot of the index. Entries are larger, so that most buckets
	// have a free slot.
	slotBytes = 64

	minParts = 64

	// admit says that a full part keeps one new entry of so many: what clients ask for often gets in soon all the same,
	// and a client that asks for every handle in turn does not push out the rest.
	admit = 4

	usualCache = 256 << 20
)

// newKept returns the memory for so many bytes of answers. With a negative size nothing is kept: the nil kept.
func newKept(size int) *kept {
	if size < 0 {
		return nil
	}
	return &kept{seed: maphash.MakeSeed(), entries: slab.New(slab.Options{Bytes: uint64(max(size, 1<<20)), EntryBytes: slotBytes, MaxEntry: maxEntry, MinParts: minParts, Overwrite: true})}
}

func (k *kept) hash(body []byte, flags uint8) uint64 {
	return maphash.Bytes(k.seed, body) ^ uint64(flags)*0x9e3779b97f4a7c15
}

// is reports whether an entry is for a request.
func is(e, body []byte, flags uint8) bool {
	return e[entryFlags] == flags && int(binary.LittleEndian.Uint16(e[entryBody:])) == len(body) && bytes.Equal(e[entryHead:entryHead+len(body)], body)
}

// find appends the values that answer a request to dst.
func (k *kept) find(dst, body []byte, flags uint8, service *handles.Service) (_ []byte, ok bool) {
	if k == nil {
		return dst, false
	}
	hash := k.hash(body, flags)
	part := k.entries.Part(hash)
	part.RLock()
	defer part.RUnlock()
	for e, at := part.Seek(hash, 0); e != nil; e, at = part.Seek(hash, at+1) {
		if !is(e, body, flags) {
			continue
		}
		if !service.IsCurrent(handles.ReadEpoch(e)) {
			break
		}
		values := e[entryHead+len(body):]
		return append(dst, values[:binary.LittleEndian.Uint16(e[entryValues:])]...), true
	}
	return dst, false
}

// put keeps the values that answer a request, if there is room.
func (k *kept) put(body []byte, flags uint8, values []byte, epoch handles.Epoch) {
	size := entryHead + len(body) + len(values)
	if k == nil || size > maxEntry {
		return
	}
	hash := k.hash(body, flags)
	part := k.entries.Part(hash)
	part.Lock()
	defer part.Unlock()
	e, at := part.Seek(hash, 0)
	for e != nil && !is(e, body, flags) {
		e, at = part.Seek(hash, at+1)
	}
	if e == nil && part.Full() && rand.Uint32()%admit != 0 {
		return
	}
	if e = part.Add(hash, at, size); e == nil {
		return
	}
	epoch.Put(e)
	e[entryFlags] = flags
	binary.LittleEndian.PutUint16(e[entryBody:], uint16(len(body)))
	binary.LittleEndian.PutUint16(e[entryValues:], uint16(len(values)))
	copy(e[entryHead+copy(e[entryHead:], body):], values)
}

// close returns the memory to the system. Nothing is found from then on.
func (k *kept) close() {
	if k != nil {
		k.entries.Close()
	}
}
