// Package nsec3 keeps the chain of hashed owner names with which a signed zone denies what
// does not exist (RFC 5155). A [Chain] follows the names of one zone in memory, finds the
// links that prove a denial, and compares itself with what it was before some changes. The
// package signs nothing and does not know where the names come from.
package nsec3

import (
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/internal/dnsrr"
)

// Hash is the hash of an owner name: SHA-1 without salt and without further iterations, as
// RFC 9276 has it. It hides a name only from clients that can't guess it; to hide names is
// the purpose of signing online.
type Hash [sha1.Size]byte

// HashName hashes a name in lower case.
func HashName(name string) Hash {
	var buf [dnsrr.MaxName]byte
	n, err := dns.PackDomainName(name, buf[:], 0, nil, false)
	if err != nil {
		n = copy(buf[:], name) // it is not a domain name, and equal to none
	}
	return sha1.Sum(buf[:n])
}

// Label returns the hash as the first label of an NSEC3 record's owner name.
func (h *Hash) Label() string {
	return strings.ToLower(base32.HexEncoding.EncodeToString(h[:])) // 20 bytes need no padding
}

// Chain is all owner names of a zone in the order of their hashes, with the types of the
// records at each (RFC 5155). It takes 28 bytes a name and some room. It is used by several
// goroutines at once.
type Chain struct {
	mu     sync.RWMutex
	pages  [][]entry // none is empty; each is in order, and they are
	kinds  [][]uint16
	number map[string]uint16 // of a kind
	count  int

	watches []*Watch // that note what changes
}

// entry is a name of a chain.
type entry struct {
	hash  Hash
	below uint32 // names with records that are below this one
	kind  uint16 // number of its types; 0 if it has no records
}

const pageLinks = 512

// New returns a chain without names.
func New() *Chain {
	c := &Chain{number: make(map[string]uint16)}
	c.kindOf(nil)
	return c
}

// kindOf returns the number of a list of types. There are few lists. The caller holds the
// lock, unless it made the chain just now.
func (c *Chain) kindOf(types []uint16) uint16 {
	var key strings.Builder
	for _, t := range types {
		key.WriteByte(byte(t >> 8))
		key.WriteByte(byte(t))
	}
	n, ok := c.number[key.String()]
	if !ok {
		n = uint16(len(c.kinds))
		c.kinds = append(c.kinds, slices.Clone(types))
		c.number[key.String()] = n
	}
	return n
}

// place returns the page in which a hash is, or would be, and where.
func (c *Chain) place(h *Hash) (page, i int, found bool) {
	page = sort.Search(len(c.pages), func(i int) bool { return bytes.Compare(c.pages[i][0].hash[:], h[:]) > 0 })
	page = max(page-1, 0)
	if page == len(c.pages) {
		return page, 0, false
	}
	i, found = slices.BinarySearchFunc(c.pages[page], h, func(l entry, h *Hash) int { return bytes.Compare(l.hash[:], h[:]) })
	return page, i, found
}

// at returns the link of a hash, and makes it if need be.
func (c *Chain) at(h *Hash) *entry {
	page, i, found := c.place(h)
	if found {
		return &c.pages[page][i]
	}
	c.count++
	if page == len(c.pages) {
		c.pages = append(c.pages, []entry{{hash: *h}})
		return &c.pages[page][0]
	}
	list := slices.Insert(c.pages[page], i, entry{hash: *h})
	c.pages[page] = list
	if len(list) > pageLinks {
		half := len(list) / 2
		c.pages = slices.Insert(c.pages, page+1, slices.Clone(list[half:]))
		c.pages[page] = slices.Clip(list[:half])
		if i >= half {
			return &c.pages[page+1][i-half]
		}
	}
	return &c.pages[page][i]
}

// trim removes a link with nothing at it and nothing below it.
func (c *Chain) trim(h *Hash) {
	page, i, found := c.place(h)
	if !found || c.pages[page][i].kind != 0 || c.pages[page][i].below != 0 {
		return
	}
	c.count--
	c.pages[page] = slices.Delete(c.pages[page], i, i+1)
	if len(c.pages[page]) == 0 {
		c.pages = slices.Delete(c.pages, page, page+1)
	}
}

// Set says which types an NSEC3 record lists for a name of a zone (see [Types]); none if the
// name has no records. Set keeps count of the names between the name and the zone: empty
// non-terminals exist as long as a name below them has records.
func (c *Chain) Set(name, zone string, types []uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := HashName(name)
	l := c.at(&h)
	for _, w := range c.watches {
		if _, ok := w.was[name]; !ok {
			w.was[name] = c.kinds[l.kind]
		}
	}
	before := l.kind != 0
	l.kind = c.kindOf(types)
	if after := l.kind != 0; after != before {
		for above := name; above != zone; {
			var ok bool
			if _, above, ok = strings.Cut(above, "."); !ok || above == "" {
				break
			}
			a := HashName(above)
			if after {
				c.at(&a).below++
				continue
			}
			c.at(&a).below--
			c.trim(&a)
		}
	}
	c.trim(&h)
}

// Has reports whether a name has records.
func (c *Chain) Has(name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l, _ := c.entryOf(name)
	return l.kind != 0
}

// Link is what an NSEC3 record says: a hash, the one that follows it in the zone, and the
// types of the records at the name.
type Link struct {
	Hash, Next Hash
	Types      []uint16
}

// Record returns the NSEC3 record of the link in a zone.
func (l *Link) Record(zone string, ttl uint32) dns.RR {
	return &dns.NSEC3{
		Hdr:  dns.RR_Header{Name: l.Hash.Label() + "." + zone, Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: ttl},
		Hash: dns.SHA1, HashLength: uint8(len(l.Next)), NextDomain: strings.ToUpper(l.Next.Label()), TypeBitMap: l.Types,
	}
}

// Types returns what an NSEC3 record says of a name with records of these types. At a
// delegation without DS records no set is signed (RFC 5155, section 7.1).
func Types(types []uint16) []uint16 {
	if len(types) == 0 || len(types) == 1 && types[0] == dns.TypeNS {
		return types
	}
	types = append(slices.Clone(types), dns.TypeRRSIG)
	slices.Sort(types)
	return types
}

// Match returns the link of a name; ok is false if it does not exist.
func (c *Chain) Match(name string) (l Link, ok bool) {
	h := HashName(name)
	c.mu.RLock()
	defer c.mu.RUnlock()
	page, i, found := c.place(&h)
	if !found {
		return l, false
	}
	return c.link(page, i), true
}

// Cover returns the link after which a name would be if it existed; ok is false if it
// exists.
func (c *Chain) Cover(name string) (l Link, ok bool) {
	h := HashName(name)
	c.mu.RLock()
	defer c.mu.RUnlock()
	page, i, found := c.place(&h)
	if found || len(c.pages) == 0 {
		return l, false
	}
	if i--; i < 0 { // it is before the first of all: the last covers it
		page = len(c.pages) - 1
		i = len(c.pages[page]) - 1
	}
	return c.link(page, i), true
}

// link returns the link of an entry. The caller holds the lock.
func (c *Chain) link(page, i int) Link {
	e := &c.pages[page][i]
	l := Link{Hash: e.hash, Types: c.kinds[e.kind]}
	switch {
	case i+1 < len(c.pages[page]):
		l.Next = c.pages[page][i+1].hash
	case page+1 < len(c.pages):
		l.Next = c.pages[page+1][0].hash
	default:
		l.Next = c.pages[0][0].hash
	}
	return l
}

// Deny returns the links that prove that a name does not exist, nor a wildcard that would
// match it (RFC 5155, section 7.2.1): the link of the closest encloser, and those that cover
// the next closer name and the wildcard.
func (c *Chain) Deny(name string) (list []Link) {
	add := func(l Link, ok bool) {
		if ok && !slices.ContainsFunc(list, func(o Link) bool { return o.Hash == l.Hash }) {
			list = append(list, l)
		}
	}
	nextCloser := name
	for off, end := dns.NextLabel(name, 0); !end; off, end = dns.NextLabel(name, off) {
		above := name[off:]
		if l, ok := c.Match(above); ok {
			add(l, ok)
			add(c.Cover(nextCloser))
			add(c.Cover("*." + above))
			break
		}
		nextCloser = above
	}
	return list
}

// Each calls do with all links of the chain as it is now, in order.
func (c *Chain) Each(do func(*Link) error) error {
	c.mu.RLock()
	list := make([]entry, 0, c.count)
	for _, page := range c.pages {
		list = append(list, page...)
	}
	kinds := c.kinds
	c.mu.RUnlock()
	for i := range list {
		l := Link{Hash: list[i].hash, Next: list[(i+1)%len(list)].hash, Types: kinds[list[i].kind]}
		if err := do(&l); err != nil {
			return err
		}
	}
	return nil
}

// follow returns the entry after a hash in the order of hashes, which begins again after
// the last; with back, the one before it. There must be one. The caller holds the lock.
func (c *Chain) follow(h *Hash, back bool) *entry {
	page, i, found := c.place(h)
	switch {
	case back:
		i--
	case found:
		i++
	}
	switch {
	case i < 0:
		page = (page + len(c.pages) - 1) % len(c.pages)
		i = len(c.pages[page]) - 1
	case i >= len(c.pages[page]):
		page, i = (page+1)%len(c.pages), 0
	}
	return &c.pages[page][i]
}
