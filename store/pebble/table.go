package pebble

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// build is the tables of an ingest: some for each family, so that each covers no more
// keys than it must, and Pebble can put it on a low level. A table is synced when it is
// written; Pebble's Ingest links it into the store's folder, and syncs that and its
// manifest before it returns.
type build struct {
	store    *Store
	opening  *opening
	in       *ingest
	paths    []string
	accepted uint64
	feed     feedTable

	mu sync.Mutex // for paths
}

// feedTable is the table of the change feed. It is built with the numbers and the
// time that the changes will have if no commit is made meanwhile.
type feedTable struct {
	path string
	seq  uint64 // the change before the first
}

func newBuild(s *Store, h *opening, in *ingest) *build {
	b := &build{store: s, opening: h, in: in}
	for _, err := range in.refused {
		if err == nil {
			b.accepted++
		}
	}
	return b
}

// write writes all tables but that of counts and minter, several at once.
func (b *build) write(seq uint64) error {
	if b.accepted == 0 {
		return nil
	}
	at := b.store.now()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	wg.Go(func() { errs[0] = b.writeNames() })
	wg.Go(func() { errs[1] = b.writePlaces("urls", familyURL) })
	wg.Go(func() { errs[2] = b.writePlaces("hosts", familyHost) })
	wg.Go(func() { errs[3] = b.writeFeed(seq, at) })
	wg.Wait()
	return errors.Join(errs...)
}

// tablePart is how many keys a table has at least, if it is not the only one of its
// family.
const tablePart = 1 << 14

// inParts calls write for the parts of n keys in order, a processor each, all at once.
func inParts(n int, write func(part, from, to int) error) error {
	parts := max(1, min(runtime.GOMAXPROCS(0), n/tablePart))
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() { errs[i] = write(i, i*n/parts, (i+1)*n/parts) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// finish writes what depends on what was committed up to now: counts, the minter, zones,
// the audit entries, and the change feed if its numbers are others. It returns what
// becomes of the audit trail.
func (b *build) finish(h *opening, at time.Time) (after trail, err error) {
	before := h.trail
	if b.accepted > 0 && b.feed.seq != h.seq {
		if err := b.writeFeed(h.seq, at); err != nil {
			return before, err
		}
	}
	set, err := b.in.lateKeys(h.db)
	if err != nil {
		return before, err
	}
	if after, err = b.in.auditKeys(set, before, at); err != nil {
		return before, err
	}
	zones, err := b.in.zoneKeys(h.db, h.seq, h.namespaceVersions)
	if err == nil {
		err = errors.Join(b.writeSet("late", set), b.writeSet("zones", zones))
	}
	if err != nil {
		return before, err
	}
	return after, nil
}

// writeSet writes a table of keys and values, if there are some.
func (b *build) writeSet(name string, set map[string][]byte) error {
	if len(set) == 0 {
		return nil
	}
	return b.table(name, false, func(add func(key, value []byte) error) error {
		for _, key := range sortedKeys(set) {
			if err := add([]byte(key), set[key]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *build) writeNames() error {
	return inParts(len(b.in.names), func(part, from, to int) error {
		return b.writeSomeNames(fmt.Sprint("names", part), b.in.names[from:to])
	})
}

func (b *build) writeSomeNames(file string, names []nameEntry) error {
	// All of them may be refused, and a table must not be empty.
	if !slices.ContainsFunc(names, func(n nameEntry) bool { return b.in.refused[n.record] == nil }) {
		return nil
	}
	var value []byte
	return b.table(file, true, func(add func(key, value []byte) error) error {
		for i := range names {
			n := &names[i]
			if b.in.refused[n.record] != nil {
				continue
			}
			e := &b.in.entries[n.record]
			if value = e.value; n.alias {
				value = aliasValue(e.key)
			}
			if err := add(n.key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// writePlaces writes the table by URL or the one by host.
func (b *build) writePlaces(name string, family byte) error {
	keys := make([]sortKey, 0, b.accepted)
	// In order of names: what points to one host, or to URLs that the names are part of,
	// is in order then.
	for i := range b.in.names {
		n := &b.in.names[i]
		if n.alias || b.in.refused[n.record] != nil {
			continue
		}
		for _, key := range b.in.entries[n.record].places {
			if key[0] == family {
				keys = append(keys, sortKey{key: key})
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	sortKeys(keys, func(k *sortKey) *sortKey { return k }, sortKey.compare)
	return inParts(len(keys), func(part, from, to int) error {
		return b.table(fmt.Sprint(name, part), false, func(add func(key, value []byte) error) error {
			for _, k := range keys[from:to] {
				if err := add(k.key, nil); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// writeFeed writes the table of the change feed, anew if there is one.
func (b *build) writeFeed(seq uint64, at time.Time) error {
	if b.feed.path != "" {
		b.paths = slices.DeleteFunc(b.paths, func(p string) bool { return p == b.feed.path })
		if err := b.store.fs.Remove(b.feed.path); err != nil {
			return err
		}
	}
	b.feed = feedTable{path: b.path("changes"), seq: seq}
	return b.table("changes", false, func(add func(key, value []byte) error) error {
		var key, value, entries []byte
		n, last := 0, seq+b.accepted
		for i := range b.in.entries {
			if b.in.refused[i] != nil {
				continue
			}
			seq++
			n++
			if entries = appendChange(entries, b.in.entries[i].change()); n < maxChunk && seq < last {
				continue
			}
			key = appendChangeKey(key[:0], seq)
			value = appendChunk(value[:0], at, n, entries)
			if err := add(key, value); err != nil {
				return err
			}
			n, entries = 0, entries[:0]
		}
		return nil
	})
}

func (b *build) path(name string) string {
	return b.store.fs.PathJoin(b.store.tables(), name+".sst")
}

// table writes and syncs one table. Those whose keys are looked up have a filter.
func (b *build) table(name string, filter bool, fill func(add func(key, value []byte) error) error) error {
	path := b.path(name)
	f, err := b.store.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.paths = append(b.paths, path)
	b.mu.Unlock()
	o := b.opening.options.MakeWriterOptions(6, format.MaxTableFormat())
	if !filter {
		o.FilterPolicy = pebbledb.NoFilterPolicy
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), o)
	if err := fill(w.Set); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close() // it syncs
}

// remove removes tables that Pebble did not take. It may be called on nil.
func (b *build) remove(fs vfs.FS) {
	if b == nil {
		return
	}
	for _, path := range b.paths {
		if err := fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			b.store.log.Warn("a table of an ingest can't be removed", "file", path, "error", err)
		}
	}
	b.paths = nil
}
