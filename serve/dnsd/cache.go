package dnsd

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// packed is an answer in wire form, without the header and the question in front of
// it and the OPT record at its end: what is the same for all who ask.
type packed struct {
	rcode      uint8
	aa         bool
	answers    uint16 // counts of records
	authority  uint16
	additional uint16
	extra      int    // where in body the additional section begins
	serial     int    // where in body the serial of the SOA record is; 0: there is none
	zone       uint16 // the zone's number, for the serial
	body       []byte
	tc         bool // it did not fit

	signed  bool   // it has signatures, for those who want them
	bare    bool   // it is for those who don't
	absent  bool   // the name does not exist, though the code does not say so (RFC 9824)
	chained bool   // it depends on names beside its own: on a chain of them, or on what an alias stands for
	hour    uint16 // until when its signatures are good enough, in hours; see hourOf
}

// cache keeps packed answers. Those that say that there is nothing have a part of
// their own: who asks for names that are made up does not push out the others.
//
// Answers are dropped by name without being looked for: each name falls on one of many
// epochs, and an answer is good as long as the epoch is still the one in which the
// making of it began. So an answer that was made while its name changed is never
// found, either.
type cache struct {
	seed   maphash.Seed
	epochs []atomic.Uint32
	chains atomic.Uint32 // epoch of answers that depend on a chain of names
	words  *dictionaries
	found  rings
	absent rings
}

// rings keep packed answers in a fixed amount of memory without pointers, so that the
// garbage collector has nothing to do with it, however many there are. Each of a
// number of shards is a ring: what is new overwrites what is oldest.
type rings struct {
	shards []shard
	memory []byte
}

const (
	cacheEpochs = 1 << 16
	cacheShards = 64
	bucketSlots = 8 // a line of the processor's cache

	// slotBytes is how many bytes of answers there are for a slot of the index.
	// Answers are larger, so that a slot is free most of the time.
	slotBytes = 64

	// admit says that in a full ring one new answer of so many is kept. Those that are
	// asked for often get in soon all the same; and when all names are asked for in
	// turn, and not all have room, those that are there are found again before they are
	// overwritten.
	admit = 4

	minRings = cacheShards * (4 << 10)
)

// shard is a part of rings.
type shard struct {
	mu   sync.RWMutex
	ring []byte
	tail uint64   // where the next entry goes, counting all that were ever written
	slot []uint64 // buckets of slots, each 16 bits of the hash and the entry's place / 8; 0: free
}

// newCache makes a cache of about so many bytes. They are taken from the system as
// they are used.
func newCache(size int) *cache {
	return &cache{
		seed:   maphash.MakeSeed(),
		epochs: make([]atomic.Uint32, cacheEpochs),
		words:  newDictionaries(),
		found:  newRings(size / 8 * 7),
		absent: newRings(size / 8),
	}
}

// close gives the memory back. Nothing is found from then on.
func (c *cache) close() {
	c.found.close()
	c.absent.close()
}

func newRings(size int) rings {
	each := max(size, minRings) / cacheShards &^ 7
	slots := 1 << bits.Len(uint(each/slotBytes))
	r := rings{shards: make([]shard, cacheShards), memory: newArena(each * cacheShards)}
	for i := range r.shards {
		s := &r.shards[i]
		s.ring = r.memory[i*each : (i+1)*each : (i+1)*each]
		s.slot = make([]uint64, slots)
		s.tail = 8 // so that no place is 0
	}
	return r
}

func (r *rings) close() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.ring, s.slot = nil, nil
		s.mu.Unlock()
	}
	freeArena(r.memory)
	r.memory = nil
}

// hash is the hash of a name in wire form, in lower case.
func (c *cache) hash(name []byte) uint64 { return maphash.Bytes(c.seed, name) }

// epoch returns the present epoch of the name with a hash.
func (c *cache) epoch(hash uint64) uint32 { return c.epochs[hash%cacheEpochs].Load() }

// drop drops all that is known of a name.
func (c *cache) drop(hash uint64) { c.epochs[hash%cacheEpochs].Add(1) }

// dropAll drops everything.
func (c *cache) dropAll() {
	c.chains.Add(1)
	for i := range c.epochs {
		c.epochs[i].Add(1)
	}
}

// get finds the answer for a name and type, and appends its body to dst, as far as it
// fits into limit bytes: without the additional section if need be, or nothing. The
// result's body is what was appended.
func (c *cache) get(dst, name []byte, hash uint64, qtype uint16, limit int) (_ []byte, p packed, ok bool) {
	return c.find(dst, name, limit, wanted{key: cacheKey(hash, qtype, false), qtype: qtype, epoch: c.epoch(hash), chains: c.chains.Load()})
}

// getSigned is get for those who want signatures. hour is the time.
func (c *cache) getSigned(dst, name []byte, hash uint64, qtype uint16, limit int, hour uint16) (_ []byte, p packed, ok bool) {
	return c.find(dst, name, limit, wanted{key: cacheKey(hash, qtype, true), qtype: qtype, signed: true, hour: hour, epoch: c.epoch(hash), chains: c.chains.Load()})
}

func (c *cache) find(dst, name []byte, limit int, want wanted) (_ []byte, p packed, ok bool) {
	if dst, p, ok = c.found.get(dst, name, limit, &want, c.words); ok {
		return dst, p, true
	}
	return c.absent.get(dst, name, limit, &want, c.words)
}

// put keeps an answer whose making began in an epoch: that of its name, or of the chains
// if it depends on one.
func (c *cache) put(name []byte, hash uint64, qtype uint16, epoch uint32, p *packed) {
	r, topic := &c.absent, uint32(p.zone)<<16
	if p.answers > 0 {
		r, topic = &c.found, topic|uint32(qtype)
	}
	if p.signed {
		topic ^= 1 << 31 // they are like each other, and unlike those without signatures
	}
	k := kept{packed: p, qtype: qtype, epoch: epoch}
	k.stored, k.dictionary = c.words.shorten(topic, p.body)
	r.put(name, cacheKey(hash, qtype, p.signed), &k)
}

// bucket returns the slots that a key may be in, and its mark in them.
func (s *shard) bucket(key uint64) (slots []uint64, mark uint64) {
	if len(s.slot) == 0 {
		return nil, 0
	}
	i := key >> 6 & uint64(len(s.slot)-1) &^ (bucketSlots - 1)
	return s.slot[i : i+bucketSlots], key >> 48 << 48
}

const placeMask = 1<<48 - 1

// entry returns the entry of a slot, or nil if it was overwritten.
func (s *shard) entry(slot uint64) []byte {
	at := slot & placeMask * 8
	if at == 0 || at+uint64(len(s.ring)) < s.tail {
		return nil
	}
	return s.ring[at%uint64(len(s.ring)):]
}

func (r *rings) get(dst, name []byte, limit int, want *wanted, words *dictionaries) (_ []byte, p packed, ok bool) {
	s := &r.shards[want.key%cacheShards]
	s.mu.RLock()
	defer s.mu.RUnlock()
	slots, mark := s.bucket(want.key)
	for _, slot := range slots {
		if slot&^placeMask != mark || slot == 0 {
			continue
		}
		e := s.entry(slot)
		if e == nil || !is(e, name, want.qtype, want.signed) {
			continue
		}
		if !want.fits(e) {
			break
		}
		p = readEntry(e, len(name))
		if e[entryDictionary] == 0 {
			dst, p = p.appendTo(dst, limit)
			return dst, p, true
		}
		return p.lengthenTo(dst, limit, e[entryDictionary], int(binary.LittleEndian.Uint16(e[entryBody:])), words)
	}
	return dst, packed{}, false
}

// appendTo appends the body to dst, as far as it fits into limit bytes, and returns
// the answer as it is then.
func (p packed) appendTo(dst []byte, limit int) ([]byte, packed) {
	body := p.body
	if len(body) > limit {
		body, p.additional = body[:p.extra], 0
	}
	if len(body) > limit {
		body, p.tc = nil, true
		p.answers, p.authority, p.serial = 0, 0, 0
	}
	begin := len(dst)
	dst = append(dst, body...)
	p.body = dst[begin:]
	return dst, p
}

// lengthenTo is appendTo for a body that was shortened with a dictionary, and has a
// length without it.
func (p packed) lengthenTo(dst []byte, limit int, dictionary uint8, length int, words *dictionaries) (_ []byte, _ packed, ok bool) {
	if length <= limit {
		begin := len(dst)
		dst, ok = words.lengthen(dst, p.body, dictionary, length)
		p.body = dst[begin:]
		return dst, p, ok
	}
	// It does not fit, but a part of it may.
	if p.body, ok = words.lengthen(nil, p.body, dictionary, length); !ok {
		return dst, packed{}, false
	}
	dst, p = p.appendTo(dst, limit)
	return dst, p, true
}

// put keeps an answer, unless it would take more than a quarter of a shard.
func (r *rings) put(name []byte, key uint64, k *kept) {
	s := &r.shards[key%cacheShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	slots, mark := s.bucket(key)
	size := (entryHead + len(name) + len(k.stored) + 7) &^ 7
	if slots == nil || size > len(s.ring)/4 {
		return
	}
	if s.tail > uint64(len(s.ring)) && !s.has(slots, mark, name, k) && rand.Uint32()%admit != 0 {
		return
	}
	at, e := s.room(uint64(size))
	slots[s.victim(slots, mark, name, k)] = mark | at/8
	writeEntry(e, name, k)
}

// has reports whether there is an answer for a name and type, of whatever epoch.
func (s *shard) has(slots []uint64, mark uint64, name []byte, k *kept) bool {
	for _, slot := range slots {
		if slot != 0 && slot&^placeMask == mark {
			if e := s.entry(slot); e != nil && is(e, name, k.qtype, k.signed) {
				return true
			}
		}
	}
	return false
}

// room makes room for an entry at the end of the ring.
func (s *shard) room(size uint64) (at uint64, e []byte) {
	n := uint64(len(s.ring))
	if s.tail%n+size > n {
		s.tail += n - s.tail%n // it would go over the edge
	}
	at = s.tail
	s.tail += size
	return at, s.ring[at%n : at%n+size]
}

// victim chooses a slot for a new entry, which must not be written yet: the one that
// the same name and type has, a free one, or the one with the oldest entry.
func (s *shard) victim(slots []uint64, mark uint64, name []byte, k *kept) int {
	oldest := 0
	for i, slot := range slots {
		e := s.entry(slot)
		if e == nil {
			slots[i] = 0
		} else if slot&^placeMask == mark && is(e, name, k.qtype, k.signed) {
			return i
		}
		if slots[i]&placeMask < slots[oldest]&placeMask {
			oldest = i
		}
	}
	return oldest
}
