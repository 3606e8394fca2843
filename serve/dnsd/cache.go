package dnsd

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"

	"github.com/stele-id/stele/internal/slab"
)

// packed is an answer in wire form, without the header and the question in front of it and
// the OPT record at its end: what is the same for all clients.
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

	signed  bool   // it has signatures, for clients that want them
	bare    bool   // it is for clients that do not
	absent  bool   // the name does not exist, though the code does not say so (RFC 9824)
	chained bool   // it depends on names beside its own: on a chain of them, or on what an alias stands for
	hour    uint16 // until when its signatures are good enough, in hours; see hourOf
}

// cache keeps packed answers. Those that say that there is nothing have a part of their
// own: a client that asks for names that are made up does not push out the others.
//
// Answers are dropped by name without being looked for: each name falls on one of many
// epochs, and an answer is good as long as the epoch is still the one in which the making
// of it began. So an answer that was made while its name changed is never found, either.
type cache struct {
	seed   maphash.Seed
	epochs []atomic.Uint32
	chains atomic.Uint32 // epoch of answers that depend on a chain of names
	words  *dictionaries
	found  rings
	absent rings
}

// rings keep packed answers in pointer-free memory; new answers overwrite the oldest ones.
type rings struct{ *slab.Slab }

const (
	cacheEpochs = 1 << 16
	cacheShards = 64

	// slotBytes is how many bytes of answers there are for a slot of the index. Answers
	// are larger, so that most buckets have a free slot.
	slotBytes = 32

	// admit says that a full ring keeps one new answer of so many. Answers that clients ask
	// for often get in soon all the same; and when clients ask for all names in turn, and not
	// all have room, the cache finds the ones that it has before they are overwritten.
	admit = 4

	minRings = cacheShards * (4 << 10)
)

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

// close returns the memory to the system. The cache finds nothing from then on.
func (c *cache) close() {
	c.found.Close()
	c.absent.Close()
}

func newRings(size int) rings {
	return rings{slab.New(slab.Options{Bytes: uint64(max(size, minRings)), EntryBytes: slotBytes, MaxEntry: 512, MinParts: cacheShards, Overwrite: true})}
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

// getSigned is get for clients that want signatures. hour is the time.
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
	room := c.words.takeRoom()
	defer c.words.giveRoom(room)
	k.stored, k.dictionary = c.words.shorten(topic, p.body, *room)
	r.put(name, cacheKey(hash, qtype, p.signed), &k)
}

func (r rings) get(dst, name []byte, limit int, want *wanted, words *dictionaries) (_ []byte, p packed, ok bool) {
	part := r.Part(want.key)
	part.RLock()
	defer part.RUnlock()
	for e, at := part.Seek(want.key, 0); e != nil; e, at = part.Seek(want.key, at+1) {
		if !is(e, name, want.qtype, want.signed) {
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

// put keeps an answer, if there is room and the ring admits it.
func (r rings) put(name []byte, key uint64, k *kept) {
	part := r.Part(key)
	part.Lock()
	defer part.Unlock()
	e, at := part.Seek(key, 0)
	for e != nil && !is(e, name, k.qtype, k.signed) {
		e, at = part.Seek(key, at+1)
	}
	if e == nil && part.Full() && rand.Uint32()%admit != 0 {
		return
	}
	if e = part.Add(key, at, entryHead+len(name)+len(k.stored)); e != nil {
		writeEntry(e, name, k)
	}
}
