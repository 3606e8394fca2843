// Package search finds records by their words, names, URLs and properties. It keeps an inverted
// index in a folder of its own, beside the store, which follows the change feed.
//
// The index is a cache: it can be deleted at any time, and is made anew from the store if it is
// missing, damaged, of another format, or of another generation of the registry. Its position
// in the feed is committed together with what it has of the changes, so that a crash loses no
// change and indexes none twice.
//
// The index only proposes records. Each is read from the store before it is returned, is held
// against the query again, and is judged by the caller's [Sight]. Documents of namespaces that
// the caller may not list are excluded inside the index: they are neither read nor counted.
package search

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/offered"
)

// Source is the part of a [stele.Store] from which the index is made.
type Source interface {
	Record(ctx context.Context, name stele.ID) (*stele.Record, error)
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
	Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error]
	Position(ctx context.Context) (stele.Position, error)
}

// Options are where an index is, and what it is made from.
type Options struct {
	Folder string // is made if it is missing; "": the index is in memory
	Source Source
	Log    *slog.Logger // nil: nothing is logged

	// Lagging reports whether the source may return an earlier state than it did before, and when that began; once it is over,
	// when it began last; nil:
	// it never does.
	Lagging func() (since time.Time, yes bool)

	// For tests.
	fs     vfs.FS
	memory uint64 // of memtables; memTableSize if 0
}

// Index is an inverted index of a registry. It is used by many goroutines at once.
type Index struct {
	o    Options
	fs   vfs.FS
	turn chan struct{} // holds one value while a goroutine writes the index
	wake chan struct{} // holds one value if there may be changes

	mu     sync.RWMutex // held for reading while db is used, and for writing while it is replaced
	db     *pebble.DB   // nil if the index is closed
	at     atomic.Pointer[position]
	spaces atomic.Pointer[prefixes]
	last   atomic.Uint64 // the last change of the source when it was asked last
	broken atomic.Pointer[brokenIndex]

	// For the goroutine that has the turn.
	unflushed bool
	builders  *spare // while an import is indexed block by block; nil otherwise

	offers *offered.Offers
	recent recent

	// Tests set others.
	tables   int           // tablesFrom
	patience time.Duration // Patience
}

// brokenIndex is why an index must be made anew.
type brokenIndex struct{ why error }

var errDamaged = stele.Messagef("search.index-damaged", "the search index is damaged")

func refuse(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "search", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Open opens the index in a folder, or makes an empty one there. It reads nothing from the
// source except the namespaces of a new index: [Index.CatchUp] does. Unavailable if another
// process uses the folder.
func Open(ctx context.Context, o Options) (*Index, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	x := &Index{o: o, fs: o.fs, tables: tablesFrom, patience: Patience, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), offers: offered.New(maxOffered)}
	if o.Folder == "" {
		x.o.Folder = "search"
		x.fs = vfs.NewMem()
	} else if x.fs == nil {
		x.fs = vfs.Default
		if err := os.MkdirAll(o.Folder, 0o700); err != nil {
			return nil, refuse(stele.Unavailable, "search.folder-not-made", `the folder "{folder}" of the search index can't be made: {cause}`, o.Folder, err)
		}
	}
	err := x.open()
	if errors.Is(err, errDamaged) {
		x.o.Log.Warn("the search index is made anew", "folder", x.o.Folder, "reason", err.Error())
		err = x.replace(ctx)
	} else if err == nil && x.at.Load() == nil {
		err = x.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Close ends the use of the index. What was indexed is on the disk when it returns.
func (x *Index) Close() error {
	x.turn <- struct{}{}
	defer func() { <-x.turn }()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closeFiles(true)
}

// closeFiles closes Pebble, which panics if it was left in disorder. The caller holds mu.
func (x *Index) closeFiles(flush bool) (err error) {
	db := x.db
	x.db = nil
	if db == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = refuse(stele.Unavailable, "search.index-not-closed", "the search index can't be closed: {cause}", fmt.Errorf("%v", p))
		}
	}()
	if flush && x.broken.Load() == nil {
		err = db.Flush()
	}
	return errors.Join(err, db.Close())
}

const (
	cacheSize    = 16 << 20
	memTableSize = 16 << 20
	pebbleFormat = pebble.FormatTableFormatV6

	// looseTables is how many tables with the same range of keys Pebble leaves as they are. An import
	// writes one with the names of each block, and to merge them at every fourth took a tenth of the
	// time of the index. A search looks into as many tables more.
	looseTables = 20
)

// pebbleOptions are how Pebble is opened. There is no log: what a crash loses is indexed again,
// because the position is lost with it.
func (x *Index) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS: x.fs, FormatMajorVersion: pebbleFormat, Merger: &merger, DisableWAL: true,
		MemTableSize: cmp.Or(x.o.memory, memTableSize), MemTableStopWritesThreshold: 4, CacheSize: cacheSize,
		LBaseMaxBytes: 256 << 20, L0CompactionThreshold: looseTables, L0StopWritesThreshold: 2 * looseTables,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 1 },
		Logger:                     engineLog{x},
		EventListener: &pebble.EventListener{
			DataCorruption: func(info pebble.DataCorruptionInfo) { x.breakOff(errors.Join(errDamaged, info.Details)) },
		},
	}
	o.Experimental.DisableIngestAsFlushable = func() bool { return true }
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10
		o.Levels[i].IndexBlockSize = 64 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return block.FastestCompression }
	}
	o.EnsureDefaults()
	return o
}

// engineLog is Pebble's log.
type engineLog struct{ x *Index }

// Infof implements [pebble.Logger], as the others do.
func (engineLog) Infof(string, ...any) {}

func (l engineLog) Errorf(format string, args ...any) {
	l.x.o.Log.Warn("search index: " + fmt.Sprintf(format, args...))
}

// Fatalf is called when Pebble can't continue. The index is made anew then.
func (l engineLog) Fatalf(format string, args ...any) {
	l.x.breakOff(errors.Join(errDamaged, stele.Messagef("store.engine-stopped", "pebble: {reason}", fmt.Sprintf(format, args...))))
}

// breakOff notes that the index must be made anew.
func (x *Index) breakOff(why error) {
	if x.broken.CompareAndSwap(nil, &brokenIndex{why}) {
		x.Notify()
	}
}

// open opens the files. The position stays nil in a new folder. It returns errDamaged if the
// index must be made anew. The caller is the only user of the index, or holds mu.
func (x *Index) open() (err error) {
	x.at.Store(nil)
	x.broken.Store(nil)
	defer func() {
		if p := recover(); p != nil { // Pebble panics on some of the damage that it finds
			x.db, err = nil, errors.Join(errDamaged, fmt.Errorf("%v", p))
		}
	}()
	lock, err := pebble.LockDirectory(x.o.Folder, x.fs)
	if err != nil {
		if mkdir := x.fs.MkdirAll(x.o.Folder, 0o700); mkdir == nil {
			lock, err = pebble.LockDirectory(x.o.Folder, x.fs)
		}
		if err != nil {
			return refuse(stele.Unavailable, "search.index-in-use", `the search index in "{folder}" can't be used, perhaps because another process uses it: {cause}`, x.o.Folder, err)
		}
	}
	o := x.pebbleOptions()
	o.Lock = lock
	db, err := pebble.Open(x.o.Folder, o)
	if err := lock.Close(); err != nil {
		x.o.Log.Warn("the lock of the search index is not released", "error", err.Error())
	}
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	x.db = db
	return x.load()
}

// load reads the position and the prefixes.
func (x *Index) load() error {
	version, err := x.value(keyFormat)
	switch {
	case err != nil:
		return errors.Join(errDamaged, err)
	case version == nil:
		return nil
	}
	if n, _ := binary.Uvarint(version); n != format {
		return errors.Join(errDamaged, stele.Messagef("search.index-of-other-format", "the search index has format {format}, and this program writes format {wanted}", n, format))
	}
	text, err := x.value(keyPosition)
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	at, ok := readPosition(text)
	if !ok {
		return errDamaged
	}
	spaces := newPrefixes()
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{familySpace}, UpperBound: []byte{familySpace + 1}})
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		scheme, prefix := cutName(string(it.Key()[1:]))
		spaces.add(stele.NamespaceKey{Scheme: scheme, Prefix: prefix})
	}
	if err := it.Close(); err != nil {
		return errors.Join(errDamaged, err)
	}
	x.spaces.Store(spaces)
	x.at.Store(&at)
	return nil
}

// value returns a copy of what is kept under a key; nil if nothing is.
func (x *Index) value(key []byte) ([]byte, error) {
	value, closer, err := x.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), closer.Close()
}

// begin writes the position of an empty index. All namespaces that there are become terms.
func (x *Index) begin(ctx context.Context) error {
	at, err := x.o.Source.Position(ctx)
	if err != nil {
		return err
	}
	spaces := newPrefixes()
	for ns, err := range x.o.Source.Namespaces(ctx) {
		if err != nil {
			return err
		}
		spaces.add(ns.Key())
	}
	p := position{generation: at.Generation}
	b := x.db.NewBatch()
	defer b.Close()
	for key := range spaces.known {
		_ = b.Set(appendName([]byte{familySpace}, key.Scheme, key.Prefix), nil, nil) // a batch in memory does not fail
	}
	_ = b.Set(keyFormat, binary.AppendUvarint(nil, format), nil)
	_ = b.Set(keyPosition, p.append(nil), nil)
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	x.spaces.Store(spaces)
	x.at.Store(&p)
	x.last.Store(at.Change)
	return nil
}

// replace makes an empty index in the place of the present one. The caller has the turn, or is
// the only user.
func (x *Index) replace(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recent.forget() // the searches that keep records hold the lock
	if err := x.closeFiles(false); err != nil {
		x.o.Log.Warn("the search index was not closed", "error", err.Error())
	}
	if err := x.removeFiles(); err != nil {
		return refuse(stele.Unavailable, "search.folder-not-removed", `the search index in "{folder}" can't be removed: {cause}; remove the folder`, x.o.Folder, err)
	}
	if err := x.open(); err != nil {
		return err
	}
	return x.begin(ctx)
}

// removeFiles removes the content of the folder. The folder itself stays, with the rights that
// an administrator may have given it.
func (x *Index) removeFiles() error {
	names, err := x.fs.List(x.o.Folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := x.fs.RemoveAll(x.fs.PathJoin(x.o.Folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the index in a folder, if there is one. It refuses a folder that has something
// else.
func Remove(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return refuse(stele.Unavailable, "search.folder-unreadable", `the folder "{folder}" of the search index can't be read: {cause}`, folder, err)
	}
	if there, err := filepath.Glob(filepath.Join(folder, "MANIFEST-*")); len(entries) > 0 && (err != nil || len(there) == 0) {
		return refuse(stele.Invalid, "search.folder-has-other-files", `"{folder}" has files, and is not a search index; name another folder`, folder)
	}
	lock, err := pebble.LockDirectory(folder, vfs.Default)
	if err != nil {
		return refuse(stele.Unavailable, "search.index-in-use", `the search index in "{folder}" can't be used, perhaps because another process uses it: {cause}`, folder, err)
	}
	return errors.Join(os.RemoveAll(folder), lock.Close())
}

// Status is how an index is.
type Status struct {
	Change    uint64 // all changes up to this one are in the index
	Last      uint64 // the last change of the registry when it was asked last
	Documents uint64 // records in the index
	Bytes     uint64 // on the disk
}

// Behind returns how many changes the index does not have yet.
func (s Status) Behind() uint64 { return s.Last - min(s.Last, s.Change) }

// Status returns how the index is.
func (x *Index) Status() (s Status) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if at := x.at.Load(); at != nil {
		s.Change, s.Documents = at.mark.Seq, at.documents-min(at.documents, at.dead)
	}
	s.Last = max(x.last.Load(), s.Change)
	if x.db != nil {
		s.Bytes = x.db.Metrics().DiskSpaceUsage()
	}
	return s
}
