package resolver

import (
	"encoding/binary"

	"github.com/stele-id/stele"
)

// Epoch says for how long something may be kept that a server has made of what the resolver answers about a name: as
// long as [Resolver.IsCurrent]. The zero Epoch is never current. It rests on the tickets of the cache: a server
//
//  1. takes the epoch of the name,
//  2. then asks the resolver about the name and its namespace, on behalf of the public, and makes its answer,
//  3. keeps the answer with the epoch, if that is still good to keep ([Resolver.MayKeep]),
//  4. and uses the answer while the epoch is current.
//
// So it never serves what a finished write has replaced. What is kept that a name is not registered, or that
// depends on other names, is not covered.
type Epoch struct {
	slot  uint16
	count uint64 // see Resolver.count; 0: the zero Epoch
	lag   int64  // see cache.lag
}

// numEpochs is how many epochs the names share. More names than that one which is written grow old with it.
const numEpochs = 1 << 16

// EpochBytes is how many bytes an epoch has as [Epoch.Put] writes it.
const EpochBytes = 10

// Put writes the epoch into the first EpochBytes of b.
func (e Epoch) Put(b []byte) {
	binary.LittleEndian.PutUint16(b, e.slot)
	binary.LittleEndian.PutUint64(b[2:], e.count)
}

// ReadEpoch reads what Put has written. The epoch is one for IsCurrent.
func ReadEpoch(b []byte) Epoch {
	return Epoch{slot: binary.LittleEndian.Uint16(b), count: binary.LittleEndian.Uint64(b[2:])}
}

// Epoch returns the present epoch of a name.
func (r *Resolver) Epoch(name stele.ID) Epoch {
	c := r.records
	t := c.ticket(name)
	e := Epoch{slot: epochOf(t.hash), lag: c.lag()}
	// A writer that is removing a record from the cache, or has the namespaces read again, is waited for: what is
	// read afterwards is not older than its write.
	r.namespaces.mu.Lock()
	defer r.namespaces.mu.Unlock()
	t.shard.Lock()
	defer t.shard.Unlock()
	e.count = r.count(e.slot)
	return e
}

// MayKeep reports whether an answer may be kept that was made after the epoch was taken: not if it may be from a replica of the
// store that lags, or if records grow old by themselves.
func (r *Resolver) MayKeep(e Epoch) bool {
	c := r.records
	return e.count != 0 && c.age == 0 && e.lag >= 0 && e.lag == c.lag() && r.IsCurrent(e)
}

// IsCurrent reports whether neither the record of the epoch's name nor a namespace was written since.
func (r *Resolver) IsCurrent(e Epoch) bool { return e.count == r.count(e.slot) }

// count returns a sum that grows with each write to a name of the slot or to a namespace, and when all is forgotten. It
// is never 0.
func (r *Resolver) count(slot uint16) uint64 {
	return 1 + uint64(r.records.epochs[slot].Load()) + r.namespaces.forgotten.Load()
}

func epochOf(hash uint64) uint16 { return uint16(hash >> 32 % numEpochs) }
