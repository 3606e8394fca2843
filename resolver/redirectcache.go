package resolver

import (
	"bytes"
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/slab"
)

// redirectCache keeps redirect entries of names in pointer-free memory, so that ten million
// names fit into half a gigabyte and cost the garbage collector nothing. When it is full it
// refuses new entries instead of overwriting old ones: the cache of records keeps the names
// that clients ask for often.
type redirectCache struct {
	dictionary dictionary
	entries    *slab.Slab
}

// slotBytes is how many bytes of entries there are for a slot of the index: half of what a
// short entry has, so that most buckets have a free slot.
const slotBytes = 16

// newRedirectCache returns a cache of about so many bytes.
func newRedirectCache(size uint64) *redirectCache {
	return &redirectCache{entries: slab.New(slab.Options{Bytes: size, EntryBytes: slotBytes, MaxEntry: maxRedirect})}
}

// close returns the memory to the system. The cache keeps nothing from then on.
func (c *redirectCache) close() { c.entries.Close() }

// removeAll removes all entries.
func (c *redirectCache) removeAll() { c.entries.Clear() }

// seek returns the entry of a name, its slot, and a reader of what follows the name in it;
// nil if there is none.
func (c *redirectCache) seek(p *slab.Part, name stele.ID, hash uint64) (entry []byte, slot int, d redirectReader) {
	for entry, slot = p.Seek(hash, 0); entry != nil; entry, slot = p.Seek(hash, slot+1) {
		if d = c.dictionary.reader(entry); d.isNamed(name) {
			return entry, slot, d
		}
	}
	return nil, slot, redirectReader{}
}

// find returns the record that has a name, as far as its redirect entry has it; nil if
// there is no entry.
func (c *redirectCache) find(name stele.ID, hash uint64) *stele.Record {
	p := c.entries.Part(hash)
	p.RLock()
	defer p.RUnlock()
	entry, _, d := c.seek(p, name, hash)
	if entry == nil {
		return nil
	}
	return d.record(name)
}

// remove removes the entry of a name.
func (c *redirectCache) remove(name stele.ID, hash uint64) {
	p := c.entries.Part(hash)
	p.Lock()
	defer p.Unlock()
	if entry, slot, _ := c.seek(p, name, hash); entry != nil {
		p.Remove(hash, slot)
	}
}

// put keeps the entry of a name. It reports whether there was room.
func (c *redirectCache) put(name stele.ID, hash uint64, entry []byte) bool {
	p := c.entries.Part(hash)
	p.Lock()
	defer p.Unlock()
	if old, slot, _ := c.seek(p, name, hash); old != nil {
		if len(entry) <= len(old) {
			if !bytes.Equal(old[:len(entry)], entry) {
				copy(old, entry)
			}
			return true
		}
		p.Remove(hash, slot)
	}
	room := p.Add(hash, -1, len(entry))
	copy(room, entry)
	return room != nil
}

// loadPage is how many records are read with one iterator of the store. Of these, load does
// not keep names that a writer changes meanwhile, nor names with the same tickets.
const loadPage = 1 << 12

// Load reads the whole registry and fills the redirect cache, as far as there is room
// ([Options.RedirectBytes]), so that answers to requests that are Brief need not ask the
// store. A server calls it when it starts; other methods may run at the same time.
func (r *Resolver) Load(ctx context.Context) error {
	c := r.records
	if c.redirects == nil {
		return nil
	}
	for s := range r.schemes.All() {
		for after, more := "", true; more; {
			var err error
			if after, more, err = c.load(ctx, s.Name(), after); err != nil {
				return err
			}
		}
	}
	return nil
}

// load keeps the redirect entries of a page of records of a scheme, those after a text. It
// returns the last one's text, and whether there is more and enough room to go on.
func (c *cache) load(ctx context.Context, scheme, after string) (last string, more bool, err error) {
	var forgotten [numShards]uint64
	for i := range c.shards {
		forgotten[i] = c.shards[i].state()
	}
	lag, count, refused := c.lag(), 0, 0
	for record, err := range c.store.Scan(ctx, scheme, "", after) {
		if err != nil {
			return after, false, err
		}
		after = record.ID.String()
		for name := range names(record) {
			t := c.ticket(name)
			t.lag, t.forgotten = lag, forgotten[t.hash%numShards]
			if !c.keepRedirect(t, name, record) {
				refused++
			}
		}
		if count++; count == loadPage {
			return after, refused < loadPage/2, nil
		}
	}
	return after, false, nil
}

// names yields all names of a record.
func names(r *stele.Record) func(yield func(stele.ID) bool) {
	return func(yield func(stele.ID) bool) {
		if !yield(r.ID) {
			return
		}
		for _, alias := range r.Aliases {
			if !yield(alias) {
				return
			}
		}
	}
}
