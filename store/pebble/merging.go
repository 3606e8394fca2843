package pebble

import (
	"sync"
	"sync/atomic"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// How tables are merged while a server answers.
const (
	restPerWork = 3                      // how long merging rests for the time that it worked
	longestRest = 50 * time.Millisecond  // at once, so that Close does not wait for it
	ingestsLast = 10 * time.Second       // merging keeps up with tables that came so long ago
	lookOften   = 100 * time.Millisecond // whether another merge may begin
	lookAround  = time.Second            // how often the store looks whether merging keeps up
	mayGrow     = 16                     // how many more tables than at the beginning a look-up may meet
	fewUnmerged = int64(64) << 20        // bytes that are merged in a moment
)

// merging decides when Pebble merges tables, how many merges run at the same time, and how fast.
//
// An opening for a moment merges only what it brought itself, or what is little: Close waits for what is
// being merged, and what a large import leaves takes a minute. The next opening that stays merges it.
// That one rests after each piece of work, so that requests have most of the processor, unless
// tables come faster than they are merged then.
type merging struct {
	now     func() time.Time
	closing <-chan struct{}
	brief   bool

	little   atomic.Bool                 // there was little to merge when the store was opened
	asked    atomic.Int32                // callers that wait for all tables of a range to be merged
	ingested atomic.Int64                // when tables were ingested last, Unix nanoseconds; 0 for never
	opening  atomic.Pointer[pebbledb.DB] // nil while it is being opened
	first    atomic.Int32                // how many tables a look-up met then
	looked   atomic.Int64                // when the store looked last, Unix nanoseconds
	behind   atomic.Bool                 // what the look found

	db      pebbledb.DBForCompaction
	mu      sync.Mutex
	running int           // merges
	over    bool          // none begins any more
	poke    chan struct{} // a merge may begin
	stop    chan struct{}
	granter sync.WaitGroup
}

func newMerging(s *Store) *merging {
	return &merging{now: s.now, closing: s.closing, brief: s.o.Brief, poke: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Register implements [pebbledb.CompactionScheduler].
func (m *merging) Register(_ int, db pebbledb.DBForCompaction) {
	m.db = db
	m.granter.Go(m.grant)
}

// Unregister implements [pebbledb.CompactionScheduler].
func (m *merging) Unregister() {
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	close(m.stop)
	m.granter.Wait()
}

// TrySchedule implements [pebbledb.CompactionScheduler].
func (m *merging) TrySchedule() (bool, pebbledb.CompactionGrantHandle) {
	if !m.take() {
		return false, nil
	}
	return true, &merge{m: m}
}

// UpdateGetAllowedWithoutPermission implements [pebbledb.CompactionScheduler].
func (m *merging) UpdateGetAllowedWithoutPermission() { m.wake() }

// take counts one more merge, if one may begin. Pebble calls it under a lock of its own, under which it may be asked how many it allows.
func (m *merging) take() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || !m.mayBegin() || m.running >= m.db.GetAllowedWithoutPermission() {
		return false
	}
	m.running++
	return true
}

// give takes a merge back that ended or did not begin.
func (m *merging) give() {
	m.mu.Lock()
	m.running--
	m.mu.Unlock()
}

// wake has the granter look whether a merge may begin.
func (m *merging) wake() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// grant lets merges begin that could not when Pebble wanted them. Pebble does not tell of all that changes how many it allows.
func (m *merging) grant() {
	often := time.NewTicker(lookOften)
	defer often.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-m.poke:
		case <-often.C:
		}
		for m.take() {
			if waits, _ := m.db.GetWaitingCompaction(); !waits || !m.db.Schedule(&merge{m: m}) {
				m.give()
				break
			}
		}
	}
}

// opened says that the store is open.
func (m *merging) opened(db *pebbledb.DB) {
	level := db.Metrics().Levels[0]
	m.little.Store(level.TablesSize <= fewUnmerged)
	m.first.Store(level.Sublevels)
	m.opening.Store(db)
}

// ingests says that tables come.
func (m *merging) ingests() { m.ingested.Store(max(m.now().UnixNano(), 1)) }

// ask says that a caller waits for tables to be merged, until done is called.
func (m *merging) ask() (done func()) {
	m.asked.Add(1)
	m.wake()
	return func() { m.asked.Add(-1) }
}

// mayBegin reports whether tables may be merged. It takes no lock: Pebble asks under its own.
func (m *merging) mayBegin() bool {
	return !m.brief || m.little.Load() || m.asked.Load() > 0 || m.ingested.Load() != 0
}

// givesWay reports whether merging rests.
func (m *merging) givesWay() bool {
	if m.brief || m.asked.Load() > 0 {
		return false
	}
	now := m.now().UnixNano()
	if at := m.ingested.Load(); at != 0 && now-at < int64(ingestsLast) {
		return false
	}
	if db, before := m.opening.Load(), m.looked.Load(); db != nil && now-before >= int64(lookAround) && m.looked.CompareAndSwap(before, now) {
		m.behind.Store(db.Metrics().Levels[0].Sublevels > m.first.Load()+mayGrow)
	}
	return !m.behind.Load()
}

// merge is the permission for one merge.
type merge struct {
	m     *merging
	since time.Time // the work that is not rested for
}

// Started implements [pebbledb.CompactionGrantHandle].
func (g *merge) Started() { g.since = g.m.now() }

// MeasureCPU implements [pebbledb.CompactionGrantHandle].
func (g *merge) MeasureCPU(pebbledb.CompactionGoroutineKind) {}

// CumulativeStats implements [pebbledb.CompactionGrantHandle]. Pebble calls it after each thousand keys or so, and allows it to wait.
func (g *merge) CumulativeStats(pebbledb.CompactionGrantHandleStats) {
	if rest := min(restPerWork*g.m.now().Sub(g.since), longestRest); rest > 0 && g.m.givesWay() {
		pause := time.NewTimer(rest)
		select {
		case <-pause.C:
		case <-g.m.closing:
			pause.Stop()
		}
	}
	g.since = g.m.now()
}

// Done implements [pebbledb.CompactionGrantHandle].
func (g *merge) Done() {
	g.m.give()
	g.m.wake()
}
