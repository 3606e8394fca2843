package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"

	"github.com/stele-id/stele"
)

// format is the version of Pebble's files. A later one is taken on purpose, with a
// later schemaVersion, and not because Pebble was upgraded.
const format = pebbledb.FormatTableFormatV6

// What is read for one record is a block: a small one is read and decompressed
// faster, and takes a little more of the disk.
const (
	memTableSize = 32 << 20
	blockSize    = 4 << 10
)

// To look up a name is to look into one table of each level. So there is one level, the
// last, until it has so many bytes: tables that come are merged with those that they
// overlap there. And tables are large, with an index in one piece each: they are
// fewer then, and what is looked at in them is more often in the processor's cache.
const (
	lastLevel = 2 << 30
	tableSize = 64 << 20
)

// compression is fast rather than good: records take more of the disk, by something
// like two fifths, and less time. docs/decisions/0006 has figures.
var compression = block.FastestCompression

// newOptions returns how Pebble is opened.
func (s *Store) newOptions(f *failstop) *pebbledb.Options {
	o := &pebbledb.Options{
		FS:                 f,
		Cache:              s.cache,
		FormatMajorVersion: format,
		MemTableSize:       s.o.memTable,

		// Memtables wait to be written for as long as it takes rather than stop the
		// committer in the middle of a group: a disk that fails is noticed by the failstop.
		MemTableStopWritesThreshold: 8,
		L0StopWritesThreshold:       1 << 20,
		L0CompactionThreshold:       2 * s.unmerged(),
		L0CompactionFileThreshold:   1500,
		LBaseMaxBytes:               lastLevel,
		MaxManifestFileSize:         16 << 20,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },

		// A table that is damaged or missing must not keep the others from being read;
		// checkTables looks for such, and so does Verify. Statistics would be read from
		// it again and again.
		DisableConsistencyCheck: true,
		DisableTableStats:       true,

		EventListener: s.listener(f),
		Logger:        &engineLog{log: s.log, failstop: f},
	}
	o.Experimental.L0CompactionConcurrency = 10
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockSize
		o.Levels[i].IndexBlockSize = tableSize
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return compression }
	}
	for i := range o.TargetFileSizes[1:] { // except that of level 0, whose tables are not merged yet
		o.TargetFileSizes[i+1] = tableSize
	}
	o.EnsureDefaults()
	o.Experimental.CompactionScheduler = newMerging(s)
	return o
}

// unmerged is how many tables one may have to look into, beside those on lower levels,
// before they are merged. (What Pebble calls its threshold is twice that.)
func (s *Store) unmerged() int {
	if s.o.Brief {
		return 56
	}
	return 4
}

// open opens Pebble with a new failstop, which holds tables if another opening still has
// readers.
func (s *Store) open(holds bool) (*opening, error) {
	h := &opening{log: s.log.Warn}
	h.failstop = newFailstop(s.fs, s.folder, holds, func(cause error) { s.fail(h, cause) })
	h.options = s.newOptions(h.failstop)
	if err := s.checkManifests(); err != nil {
		return nil, err
	}
	var err error
	h.db, err = openPebble(s.folder, h.options)
	if cause := h.failstop.broken(); cause != nil {
		if h.db != nil {
			err = errors.Join(err, h.close())
		}
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "store.not-written", "the store can't be written: {cause}", errors.Join(cause, err))
	}
	if err != nil {
		return nil, s.openError(h.failstop, err)
	}
	h.failstop.setUnread(false)
	h.merging().opened(h.db)
	if err := s.prepareOpening(h); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// openPebble opens Pebble, which panics on some of the damage that it finds.
func openPebble(folder string, o *pebbledb.Options) (db *pebbledb.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return pebbledb.Open(folder, o)
}

// openError says what is wrong with a folder that Pebble can't open.
func (s *Store) openError(f *failstop, err error) error {
	if pebbledb.IsCorruptionError(err) {
		return refuse("open", stele.ID{}, stele.Internal, "store.damaged-near-file", `the store in "{folder}" is damaged, in the file "{file}" or one that it names ({cause}); restore a backup`, s.folder, f.lastRead(), err)
	}
	return refuse("open", stele.ID{}, stele.Unavailable, "store.not-opened", `the store in "{folder}" can't be opened: {cause}`, s.folder, err)
}

// prepareOpening checks that this program can use what Pebble has opened, and gives a
// new store its version.
func (s *Store) prepareOpening(h *opening) (err error) {
	if err := s.checkSchema(h); err != nil {
		return err
	}
	if h.seq, err = lastChange(h.db); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	if h.namespaceVersions, err = countNamespaces(h.db, nil); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	if h.trail, err = readTrail(h.db); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	if h.seal, err = readSeal(h.db); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	if h.generation, err = readGeneration(h.db); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	s.checkTables(h)
	return s.upgradeVersions(h)
}

// checkTables looks whether all tables are there and have their size. It tells the
// log: what is in the others can still be read.
func (s *Store) checkTables(h *opening) {
	for _, problem := range s.tableProblems(h) {
		s.log.Error("the store is damaged; restore a backup", "problem", problem)
	}
}

// tableProblems returns a message for each table that is missing or has not its
// size.
func (s *Store) tableProblems(h *opening) (problems []*stele.Message) {
	found := make(map[string]bool) // by file
	// A table that is merged with others between list and look is missing the first
	// time, and not on the list the second time.
	for round := range 2 {
		levels, err := h.db.SSTables()
		if err != nil {
			return []*stele.Message{stele.Messagef("verify.table-missing", "a table is missing: {cause}", err)}
		}
		problems = problems[:0]
		for _, t := range slices.Concat(levels...) {
			name := s.tablePath(&t)
			if round == 0 || found[name] {
				if problem := s.tableProblem(name, &t); problem != nil {
					found[name] = true
					problems = append(problems, problem)
				}
			}
		}
		if len(problems) == 0 {
			break
		}
	}
	return problems
}

func (s *Store) tablePath(t *pebbledb.SSTableInfo) string {
	return s.fs.PathJoin(s.folder, fmt.Sprintf("%s.sst", t.BackingSSTNum))
}

func (s *Store) tableProblem(name string, t *pebbledb.SSTableInfo) *stele.Message {
	info, err := s.fs.Stat(name)
	switch {
	case err != nil:
		return stele.Messagef("verify.table-file-missing", `the file "{file}" is missing: {cause}`, name, err)
	case !t.Virtual && uint64(info.Size()) != t.Size:
		return stele.Messagef("verify.table-size-differs", `the file "{file}" has {size} bytes, and should have {expected}`, name, info.Size(), t.Size)
	}
	return nil
}

// damage makes the error of a read that failed. Damage is named, and of kind Internal;
// an error that a retry may avoid is Unavailable.
func (h *opening) damage(op string, id stele.ID, err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	if h.failstop.isVoid() {
		return replaced(op) // tables that were never written seem to be missing
	}
	if info := pebbledb.ExtractDataCorruptionInfo(err); info != nil {
		return refuse(op, id, stele.Internal, "store.table-file-damaged", `the file "{file}" is damaged ({cause}); restore a backup`, info.Path, newTableError(info))
	}
	if pebbledb.IsCorruptionError(err) || errors.Is(err, errKey) || errors.Is(err, errChange) {
		return refuse(op, id, stele.Internal, "store.damaged", `the store in "{folder}" is damaged ({cause}); restore a backup`, h.failstop.folder, err)
	}
	return refuse(op, id, stele.Unavailable, "store.not-read", "reading failed: {cause}", err)
}

// replaced is the error of a read from an opening that was replaced.
func replaced(op string) error {
	return refuse(op, stele.ID{}, stele.Unavailable, "store.opened-again-meanwhile", "the store was opened again meanwhile; begin again")
}

// damageLog remembers what was logged about damage, so that it is said once.
type damageLog struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (d *damageLog) isNew(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[text] || len(d.seen) > 1000 {
		return false
	}
	if d.seen == nil {
		d.seen = make(map[string]bool)
	}
	d.seen[text] = true
	return true
}

// listener passes on what Pebble has to tell. It says nothing about failed writes,
// which the failstop reports, and what it says when the failstop is void is about files that
// were never written.
func (s *Store) listener(f *failstop) *pebbledb.EventListener {
	return &pebbledb.EventListener{
		DataCorruption: func(info pebbledb.DataCorruptionInfo) {
			if !f.isVoid() && s.damaged.isNew(info.Path) {
				s.log.Error("a file is damaged; restore a backup", "file", info.Path, "error", info.Details.Error())
			}
		},
		BackgroundError: func(err error) {
			if !f.isVoid() && s.damaged.isNew(err.Error()) {
				s.log.Error("work in the background failed; it is tried again", "error", err)
			}
		},
	}
}

// engineLog is Pebble's way to log.
type engineLog struct {
	log      *slog.Logger
	failstop *failstop
}

func (l *engineLog) Infof(string, ...any) {}

func (l *engineLog) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is called when Pebble can't continue, and should end the process. Instead the
// failstop keeps Pebble from the disk, and the store opens Pebble again. The failstop keeps
// failed writes from getting here, so a call is a fault of Pebble's or its caller's.
func (l *engineLog) Fatalf(format string, args ...any) {
	err := stele.Messagef("store.engine-stopped", "pebble: {reason}", fmt.Sprintf(format, args...))
	l.log.Error("the storage engine gave up", "error", err)
	l.failstop.freeze(err)
}
