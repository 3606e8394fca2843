package registrar

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

const (
	// maxNoted is how many refusals of one user have an entry each in a minute. More are
	// counted.
	maxNoted = 30

	// maxTallied is how many different things are counted in a minute. All that comes
	// after them is counted as one.
	maxTallied = 1000
)

// tally counts what happens too often to have an entry each: refusals of callers that are
// not known, and names that were minted. It is kept in memory by minute, and written as
// one entry for each thing that was counted. A crash loses the counts of a minute or two.
type tally struct {
	mu     sync.Mutex
	counts map[tallied]uint64
	noted  map[string]int // refusals by user, in the minute of at
	at     time.Time
}

// tallied is what is counted.
type tallied struct {
	minute                      time.Time
	by, token, system, via      string
	address, operation, details string
	namespace                   stele.NamespaceKey
	outcome                     stele.AuditOutcome
	kind                        stele.Kind
}

// add counts n times what an entry says.
func (t *tally) add(e *stele.AuditEntry, n uint64, now time.Time) {
	k := tallied{
		minute: now.Truncate(time.Minute), by: e.By, token: e.Token, system: e.System, via: e.Via, address: e.Address,
		operation: e.Operation, details: e.Details, namespace: e.Namespace, outcome: e.Outcome, kind: e.Kind,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(k, n)
}

func (t *tally) count(k tallied, n uint64) {
	if t.counts == nil {
		t.counts = make(map[tallied]uint64)
	}
	if _, ok := t.counts[k]; !ok && len(t.counts) >= maxTallied {
		k = tallied{minute: k.minute, operation: "other operations", details: "more than can be counted one by one", outcome: k.outcome, kind: k.kind}
	}
	t.counts[k] += n
}

// mayNote reports whether a refusal of a user gets an entry of its own.
func (t *tally) mayNote(user string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if minute := now.Truncate(time.Minute); t.noted == nil || !minute.Equal(t.at) {
		t.noted, t.at = make(map[string]int), minute
	}
	t.noted[user]++
	return t.noted[user] <= maxNoted
}

// take removes and returns what was counted in minutes that are over, or all of it, as
// entries and as what back takes.
func (t *tally) take(now time.Time, all bool) (list []*stele.AuditEntry, counts map[tallied]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	minutes := make(map[*stele.AuditEntry]time.Time)
	counts = make(map[tallied]uint64)
	for k, n := range t.counts {
		if !all && !k.minute.Before(now.Truncate(time.Minute)) {
			continue
		}
		e := &stele.AuditEntry{
			By: k.by, Token: k.token, System: k.system, Via: k.via, Address: k.address, Operation: k.operation,
			Namespace: k.namespace, Outcome: k.outcome, Kind: k.kind, Count: n,
			Details: "counted in the minute " + k.minute.UTC().Format("2006-01-02T15:04Z"),
		}
		if k.details != "" {
			e.Details += "; " + k.details
		}
		minutes[e], counts[k] = k.minute, n
		list = append(list, e)
		delete(t.counts, k)
	}
	slices.SortFunc(list, func(a, b *stele.AuditEntry) int {
		return cmp.Or(minutes[a].Compare(minutes[b]), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.By, b.By), cmp.Compare(a.Kind, b.Kind))
	})
	return list, counts
}

// back counts again what could not be written, in the minutes in which it happened.
func (t *tally) back(counts map[tallied]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, n := range counts {
		t.count(k, n)
	}
}

// FlushAudit writes what was counted in minutes that are over; with all, of the present
// minute too. If it can't be written the counts are kept.
func (r *Registrar) FlushAudit(ctx context.Context, all bool) error {
	list, counts := r.tally.take(r.now(), all)
	if len(list) == 0 {
		return nil
	}
	for _, e := range list {
		e.Bound()
	}
	err := r.store.Apply(ctx, &stele.Commit{Audit: list})
	if err != nil && !unsure(err) {
		return tell("write audit trail", err) // a sealed store takes none, and never will
	}
	if err != nil {
		r.tally.back(counts)
	}
	return tell("write audit trail", err)
}

// minted counts names that were given to the caller.
func (r *Registrar) minted(ctx context.Context, pool []stele.NamespaceKey, n int) {
	if n == 0 || len(pool) == 0 || !auth.From(ctx).IsKnown() {
		return
	}
	e := entry(ctx, opMint, "")
	e.Namespace = pool[0]
	e.Bound()
	r.tally.add(e, uint64(n), r.now())
}
