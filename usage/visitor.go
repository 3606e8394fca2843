package usage

import (
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
)

// dayKey is the secret with which visitors are hashed. It is in memory only, and each day overwrites that of the day
// before, so that no hash can be computed again, by this program either.
type dayKey struct {
	seed maphash.Seed     // of this process
	key  [2]atomic.Uint64 // of this day
}

func newDayKey() *dayKey {
	k := &dayKey{seed: maphash.MakeSeed()}
	k.change()
	return k
}

// change overwrites the key with another one.
func (k *dayKey) change() {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails, see crypto/rand
	k.key[0].Store(binary.LittleEndian.Uint64(random[:]))
	k.key[1].Store(binary.LittleEndian.Uint64(random[8:]))
	clear(random[:])
}

// visitor returns the hash by which a reader is told from others on this day: of the address, and of a hash of the user agent.
func (k *dayKey) visitor(from netip.Addr, agent uint64) uint64 {
	var fixed [40]byte
	binary.LittleEndian.PutUint64(fixed[:], k.key[0].Load())
	binary.LittleEndian.PutUint64(fixed[8:], k.key[1].Load())
	address := from.As16()
	copy(fixed[16:], address[:])
	binary.LittleEndian.PutUint64(fixed[32:], agent)
	return maphash.Bytes(k.seed, fixed[:])
}

// withCountry puts the country of a reader into the lowest bits of the hash: a hit has no other room for it. 54 bits still tell a million readers
// apart, two of whom have the same with a chance of about one to 36,000.
func withCountry(visitor uint64, land Country) uint64 {
	return visitor&^(1<<countryBits-1) | uint64(land)
}

// countryOf returns the country in a hash.
func countryOf(visitor uint64) Country { return Country(visitor & (1<<countryBits - 1)) }

// cut returns the network of an address: 24 bits of IPv4, 48 of IPv6.
func cut(from netip.Addr) netip.Addr {
	from = from.Unmap()
	bits := 48
	if from.Is4() {
		bits = 24
	}
	network, err := from.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Addr{}
	}
	return network.Addr()
}
