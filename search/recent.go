package search

import (
	"sync"

	"github.com/stele-id/stele"
)

// Bounds of the records that are kept: how many, and how many bytes each may have as a store has it.
const (
	maxRecent     = 512
	maxRecentSize = 4 << 10
)

// recent keeps the records of documents that were read last. Curators open the first page of a list
// again and again, and to find its records among a million others took a third of the time of the page.
//
// A document is the number of a change, and the index has it until a later version of its record
// replaces it. So the record of a document never changes, and if the index has all changes that
// were committed before a search began, no later version of the record can be missing. A search
// that has not caught up with the registry must not use what is kept. Nor must what is read from a copy of
// the registry that lags be kept: it may be the version before that of the document.
type recent struct {
	mu         sync.Mutex
	generation stele.GenerationID
	places     []candidate // maxRecent of them; nil if nothing was kept yet
}

// fill gives candidates the records that are kept, and returns how many have none.
func (r *recent) fill(generation stele.GenerationID, list []candidate) (missing int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places == nil || r.generation != generation {
		return len(list)
	}
	for i := range list {
		if p := &r.places[list[i].number%maxRecent]; p.number == list[i].number && p.id == list[i].id {
			list[i].record = p.record
		}
		if list[i].record == nil {
			missing++
		}
	}
	return missing
}

// forget drops all that is kept. A registry that lost its last changes goes on with others of the same numbers, in the same
// generation.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.places = nil
}

// keep keeps the records of candidates, each in the place of an earlier one. They must not be changed any
// more. Changes of another generation of the registry have the same numbers, so what is kept of
// that goes.
func (r *recent) keep(generation stele.GenerationID, list []candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places == nil || r.generation != generation {
		r.places, r.generation = make([]candidate, maxRecent), generation
	}
	for _, c := range list {
		if c.record != nil && c.record.StoredSize() <= maxRecentSize {
			r.places[c.number%maxRecent] = c
		}
	}
}
