package resolver

import "sync/atomic"

// Stats are counts since the resolver was made.
type Stats struct {
	RedirectHits, RedirectMisses uint64 // names that were looked for in the redirect cache
	RecordHits, RecordMisses     uint64 // names that were looked for in the cache of records; a miss reads the store
}

// Stats returns what was counted so far.
func (r *Resolver) Stats() Stats {
	t := r.records.tally
	return Stats{
		RedirectHits: t.redirects.hits.Load(), RedirectMisses: t.redirects.misses.Load(),
		RecordHits: t.records.hits.Load(), RecordMisses: t.records.misses.Load(),
	}
}

// cacheTally counts look-ups. It has memory of its own: what is written for each request
// must not share a line of the processor's cache with what is only read.
type cacheTally struct {
	_         [64]byte
	redirects hitTally
	_         [64]byte
	records   hitTally
	_         [64]byte
}

type hitTally struct{ hits, misses atomic.Uint64 }

func (t *hitTally) count(hit bool) {
	if hit {
		t.hits.Add(1)
	} else {
		t.misses.Add(1)
	}
}
