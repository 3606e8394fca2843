package dnsd

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// nameHash is the hash of a name in a chain: SHA-1 without salt and without further
// rounds, as RFC 9276 has it. It hides nothing from who knows the names; that is what
// the other mode of signing is for.
type nameHash [sha1.Size]byte

// hashName hashes a name in lower case.
func hashName(name string) nameHash {
	var buf [maxName]byte
	n, err := dns.PackDomainName(name, buf[:], 0, nil, false)
	if err != nil {
		n = copy(buf[:], name) // it is no name, and equal to none
	}
	return sha1.Sum(buf[:n])
}

// nsec3Chain is all names of a zone in the order of their hashes, with the types of the
// records at each (RFC 5155). It takes 28 bytes a name and some room. It is told of every change
// before the change is acknowledged.
type nsec3Chain struct {
	mu     sync.RWMutex
	pages  [][]link // none is empty; each is in order, and they are
	kinds  [][]uint16
	number map[string]uint16 // of a kind
	count  int
	ready  chan struct{}       // closed when all names are in it
	born   uint64              // the change before which all are read, and told of from then on
	late   map[string]struct{} // names to look up when all are read; under changes

	watches []*watch // of those who compare it with what it was

	// changes waits for nobody but those who look up and note what stands at a name:
	// otherwise one could note what another has seen change already.
	changes sync.Mutex
}

// link is a name of a chain.
type link struct {
	hash  nameHash
	below uint32 // names with records that are below this one
	kind  uint16 // number of its types; 0 if it has no records
}

const pageLinks = 512

func newNSEC3Chain() *nsec3Chain {
	c := &nsec3Chain{number: make(map[string]uint16), late: make(map[string]struct{}), ready: make(chan struct{})}
	c.kindOf(nil)
	return c
}

// kindOf returns the number of a list of types. There are few lists. The caller holds
// the lock, but where nobody else has the chain yet.
func (c *nsec3Chain) kindOf(types []uint16) uint16 {
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
func (c *nsec3Chain) place(h *nameHash) (page, i int, found bool) {
	page = sort.Search(len(c.pages), func(i int) bool { return bytes.Compare(c.pages[i][0].hash[:], h[:]) > 0 })
	page = max(page-1, 0)
	if page == len(c.pages) {
		return page, 0, false
	}
	i, found = slices.BinarySearchFunc(c.pages[page], h, func(l link, h *nameHash) int { return bytes.Compare(l.hash[:], h[:]) })
	return page, i, found
}

// at returns the link of a hash, and makes it if need be.
func (c *nsec3Chain) at(h *nameHash) *link {
	page, i, found := c.place(h)
	if found {
		return &c.pages[page][i]
	}
	c.count++
	if page == len(c.pages) {
		c.pages = append(c.pages, []link{{hash: *h}})
		return &c.pages[page][0]
	}
	list := slices.Insert(c.pages[page], i, link{hash: *h})
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
func (c *nsec3Chain) trim(h *nameHash) {
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

// set says which types there are at a name of a zone; none if there is nothing. It
// keeps count of the names between, which exist as long as something is below them.
func (c *nsec3Chain) set(name, zone string, types []uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := hashName(name)
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
			a := hashName(above)
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

// isReady reports whether all names are in the chain.
func (c *nsec3Chain) isReady() bool { return isClosed(c.ready) }

// await waits until all names are in the chain.
func (c *nsec3Chain) await(ctx context.Context) error { return await(ctx, c.ready) }

// has reports whether a name has records.
func (c *nsec3Chain) has(name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l, _ := c.linkOf(name)
	return l.kind != 0
}

// proof is a link, with what an NSEC3 record says of it.
type proof struct {
	hash, next nameHash
	types      []uint16
}

// match returns the link of a name; ok is false if it does not exist.
func (c *nsec3Chain) match(name string) (p proof, ok bool) {
	h := hashName(name)
	c.mu.RLock()
	defer c.mu.RUnlock()
	page, i, found := c.place(&h)
	if !found {
		return p, false
	}
	return c.proof(page, i), true
}

// cover returns the link behind which a name would be if it existed.
func (c *nsec3Chain) cover(name string) (p proof, ok bool) {
	h := hashName(name)
	c.mu.RLock()
	defer c.mu.RUnlock()
	page, i, found := c.place(&h)
	if found || len(c.pages) == 0 {
		return p, false
	}
	if i--; i < 0 { // it is before the first of all: the last covers it
		page = len(c.pages) - 1
		i = len(c.pages[page]) - 1
	}
	return c.proof(page, i), true
}

func (c *nsec3Chain) proof(page, i int) proof {
	l := &c.pages[page][i]
	p := proof{hash: l.hash, types: c.kinds[l.kind]}
	switch {
	case i+1 < len(c.pages[page]):
		p.next = c.pages[page][i+1].hash
	case page+1 < len(c.pages):
		p.next = c.pages[page+1][0].hash
	default:
		p.next = c.pages[0][0].hash
	}
	return p
}

// follow returns the link that follows a hash in the order of hashes, which begins again
// behind the last; with back, the one in front of it. There must be one. The caller
// holds the lock.
func (c *nsec3Chain) follow(h *nameHash, back bool) *link {
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

// check returns an error as long as the chain is not complete.
func (c *nsec3Chain) check(zone string) error {
	if c.isReady() {
		return nil
	}
	return &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: fmt.Errorf(
		"the names of %s are being read, and it is not known yet what does not exist; try again in a minute", zone)}
}
