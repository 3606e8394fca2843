// Package pebble keeps a registry in a folder, by way of Pebble, an embedded
// key-value store: the default store. It keeps all that [stele.Store] asks for, on one
// machine and for one process at a time. It decides nothing about what a record may be,
// and never deletes one.
//
//   - keys.go has all keys and values that are kept.
//   - commit.go has the one goroutine that writes. It takes what is queued as one
//     group, so that many commits share a sync of the disk, and numbers the changes.
//   - ingest.go writes many new records as sorted tables, past log and memtables.
//   - view.go and read.go show what is durable: a reader sees the state after the last
//     acknowledged group, not the one that is on its way to the disk.
//   - failstop.go and health.go are about a disk that fails or is full. The store is
//     read-only then, and opens itself again when it can.
package pebble

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Options say how a store is opened. Only Now must be given.
type Options struct {
	// Now is the clock: the time of entries in the change feed, and since when a
	// process holds the folder.
	Now func() time.Time

	// Log is told of failures, damage, and their ends. Nothing is logged if it is nil.
	Log *slog.Logger

	// Reserve is how many bytes of free space there must be on the disk to write;
	// DefaultReserve if 0. Pebble needs some to work at all.
	Reserve uint64

	// CacheSize is how many bytes of blocks are kept in memory, uncompressed;
	// DefaultCacheSize if 0.
	CacheSize int64

	// Retry is how long the store waits after a failed write before it opens itself
	// again; DefaultRetry if 0. The wait doubles each time that it fails, up to 128
	// times as long.
	Retry time.Duration

	// Brief says that the store is opened for a moment, or to be filled. Tables are
	// merged when there are many of them then, and not when there are a few: Close waits
	// for what is being merged, and what is merged while more and more comes is merged
	// again and again. What an earlier import left is not merged at all. A later opening
	// without Brief does it, and gives way to requests meanwhile.
	Brief bool

	// Existing says that the store must be there: Open then refuses a folder without
	// one, with NotFound, and writes nothing to it.
	Existing bool

	// FS is the file system; the operating system's if nil.
	FS vfs.FS

	memTable uint64 // how much is kept in memory before it is written to a table
	recent   int    // how many names make a generation of recent ones

	schema numbers // of the program; ours if zero
}

// What Options are if they do not say.
const (
	DefaultReserve   = 256 << 20
	DefaultCacheSize = 128 << 20
	DefaultRetry     = 250 * time.Millisecond
)

// queueSize is how many commits wait for their turn. More callers wait to get in.
const queueSize = 1024

// Store is a registry in a folder. It is made by Open.
type Store struct {
	folder string
	fs     vfs.FS
	now    func() time.Time
	log    *slog.Logger
	o      Options
	cache  *pebbledb.Cache
	unlock func() error
	since  time.Time // the folder is locked

	queue     chan *request // to the committer
	queueing  sync.RWMutex  // held for reading while a caller puts something there
	closing   chan struct{} // closed by Close
	failures  chan *opening // to the keeper, openings that are frozen
	workers   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error

	// What readers see, and the opening that the committer writes to. They change
	// under mu.
	mu      sync.Mutex
	view    atomic.Pointer[view]
	current atomic.Pointer[opening]
	watch   *watch // of the ingest under way

	building chan struct{} // holds one value while an ingest builds tables
	known    *known        // of the ingest that builds them
	moving   chan struct{} // holds one value while tables are ingested, or a backup is taken
	recent   *recent       // the committer's
	tally    stele.CommitTally
	damaged  damageLog
}

var (
	_ stele.Store     = (*Store)(nil)
	_ stele.Schematic = (*Store)(nil)
)

// Open opens the store in the folder. It makes folder and store if they are not there,
// unless the options say that they must be; Invalid if it would have to make the store
// among files of something else. It brings a store that an earlier program wrote up to
// date. Unavailable if another process has it open, whose number and time of opening the
// error names; Invalid if only later programs may use it; Internal if it is damaged so
// that it can't be opened.
func Open(ctx context.Context, folder string, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkPlace(folder, o); err != nil {
		return nil, err
	}
	s, err := newStore(folder, o)
	if err != nil {
		return nil, err
	}
	if s.unlock, err = s.lock(); err != nil {
		return nil, err
	}
	s.cache = pebbledb.NewCache(s.o.CacheSize)
	first, err := s.begin()
	if err != nil {
		s.cache.Unref()
		return nil, errors.Join(err, s.unlock())
	}
	s.install(first)
	s.workers.Go(s.commit)
	s.workers.Go(s.keep)
	return s, nil
}

func newStore(folder string, o Options) (*Store, error) {
	if o.Now == nil || folder == "" {
		return nil, refuse("open", stele.ID{}, stele.Invalid, "store.folder-or-clock-missing", "a store needs a folder and a clock; give both")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	if o.CacheSize == 0 {
		o.CacheSize = DefaultCacheSize
	}
	if o.Retry == 0 {
		o.Retry = DefaultRetry
	}
	if o.memTable == 0 {
		o.memTable = memTableSize
	}
	if o.recent == 0 {
		o.recent = recentNames
	}
	if o.schema == (numbers{}) {
		o.schema = ours
	}
	folder = filepath.Clean(folder)
	if o.FS == nil {
		// A lock belongs to the process and to the path as given, so two ways to
		// write one path must be the same.
		o.FS = privateFS{vfs.Default}
		absolute, err := filepath.Abs(folder)
		if err == nil {
			err = makeFolder(o.FS, absolute)
		}
		if err == nil {
			folder, err = filepath.EvalSymlinks(absolute)
		}
		if err != nil {
			return nil, refuse("open", stele.ID{}, stele.Unavailable, "store.folder-not-made", "the folder can't be made: {cause}", err)
		}
	} else if err := makeFolder(o.FS, folder); err != nil {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "store.folder-not-made", "the folder can't be made: {cause}", err)
	}
	return &Store{
		folder: folder, fs: o.FS, now: o.Now, log: o.Log, o: o,
		queue:    make(chan *request, queueSize),
		closing:  make(chan struct{}),
		failures: make(chan *opening, 1),
		building: make(chan struct{}, 1),
		moving:   make(chan struct{}, 1),
		recent:   newRecent(o.recent),
	}, nil
}

// begin opens Pebble for the first time: leftovers of ingests that a crash cut off
// are removed, and a new store gets its version.
func (s *Store) begin() (*opening, error) {
	if err := s.fs.RemoveAll(s.tables()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "store.leftover-tables-not-removed", `tables of an ingest that was cut off can't be removed from "{folder}": {cause}`, s.tables(), err)
	}
	if err := s.fs.MkdirAll(s.tables(), private); err != nil {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	return s.open(false)
}

// tables is the folder where tables are built that will be ingested.
func (s *Store) tables() string { return s.fs.PathJoin(s.folder, "ingest") }

// Close implements [stele.Store]. Commits in the queue are finished. Reads under way
// end with an error of kind Unavailable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		if h := s.current.Load(); h.failstop.broken() != nil {
			h.failstop.empty() // the committer may wait for what it writes
		}
		s.queueing.Lock() // no caller is putting something in the queue any more
		close(s.queue)
		s.queueing.Unlock()
		s.workers.Wait()
		s.mu.Lock()
		last := s.view.Swap(nil)
		s.mu.Unlock()
		last.unpin()
		s.closeErr = errors.Join(s.current.Load().close(), s.unlock())
		s.cache.Unref()
	})
	return s.closeErr
}

// closed is the error of a call after Close.
func closed(op string) error {
	return refusal.Closed(op)
}

// refuse makes an error.
func refuse(op string, id stele.ID, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: kind, Err: stele.Messagef(code, text, args...)}
}
