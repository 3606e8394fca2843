package pebble

import (
	"hash/maphash"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// recent knows which names were written so lately that they may be in no table yet.
// Most names that a commit looks up are new, so absent: a miss in a memtable costs the
// committer as much as all the rest, while tables have filters. So a name that is not
// among the recent ones is looked for in tables only.
//
// It forgets by generations. When there are many names Pebble is told to write its
// memtables to tables, and once that is done those before are forgotten. False
// positives are safe: a name that is here, or shares its hash with one that is, is
// looked for everywhere.
type recent struct {
	seed    maphash.Seed
	opening *opening
	limit   int
	now     map[uint64]bool
	before  map[uint64]bool
	written <-chan struct{} // closed when all in before is in tables
	all     bool            // names that are not here may be in memtables too
}

// recentNames is how many names make a generation.
const recentNames = 1 << 17

func newRecent(limit int) *recent {
	return &recent{seed: maphash.MakeSeed(), limit: limit, now: make(map[uint64]bool)}
}

// begin readies it for a group on an opening. Of another opening than before nothing
// is known, and neither after an ingest, whose tables may wait beside memtables.
func (r *recent) begin(h *opening) error {
	if r.opening != h {
		clear(r.now)
		r.opening, r.before, r.written, r.all = h, nil, nil, true
	}
	if r.written != nil {
		select {
		case <-r.written:
			r.before, r.written = nil, nil
		default:
			return nil
		}
	}
	if !r.all && len(r.now) < r.limit {
		return nil
	}
	written, err := h.db.AsyncFlush()
	if err != nil {
		return err
	}
	// What is written before this moment will be in tables; what comes later is in now.
	r.written, r.before = written, r.now
	if r.all {
		r.before = nil // it would miss names: see mayHave
	}
	r.now, r.all = make(map[uint64]bool), false
	return nil
}

// ingested says that tables were ingested.
func (r *recent) ingested() { r.all = true }

// add says that a name was written. It may not be on the disk yet.
func (r *recent) add(key []byte) { r.now[maphash.Bytes(r.seed, key)] = true }

// mayHave reports whether a name may be in a memtable.
func (r *recent) mayHave(key []byte) bool {
	if r.all || r.written != nil && r.before == nil {
		return true
	}
	hash := maphash.Bytes(r.seed, key)
	return r.now[hash] || r.before[hash]
}

// newTableFinder makes a finder that looks in tables only.
func newTableFinder(db *pebbledb.DB) (finder, error) {
	it, err := db.NewIter(&pebbledb.IterOptions{UseL6Filters: true, OnlyReadGuaranteedDurable: true})
	return finder{it}, err
}
