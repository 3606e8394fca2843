// Package mem keeps a registry in memory: a [stele.Store] for the tests of
// everything above stores, which is simple enough to be trusted. It keeps the contract
// except in one thing: nothing survives the process, unless Backup wrote it to a folder
// from which Open reads it.
//
// All that is kept is one value that never changes, a [state]. A commit makes another
// one and replaces it, so a commit that fails leaves nothing behind, and a reader
// continues with the state that it found.
package mem

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Store is a store in memory. It is made by New or Open.
type Store struct {
	now   func() time.Time
	turn  chan struct{}         // holds one value while a goroutine writes
	state atomic.Pointer[state] // nil once the store is closed
}

var _ stele.Store = (*Store)(nil)

// New returns an empty store. The clock gives the time of entries in the change
// feed.
func New(now func() time.Time) *Store {
	return newStore(now, &state{generations: stele.FirstGeneration(now())})
}

func newStore(now func() time.Time, st *state) *Store {
	s := &Store{now: now, turn: make(chan struct{}, 1)}
	s.state.Store(st)
	return s
}

// Apply implements [stele.Store].
func (s *Store) Apply(ctx context.Context, c *stele.Commit) error {
	return s.write(ctx, "commit", func(st *state, at time.Time) error {
		if err := c.Check(); err != nil {
			return err
		}
		if err := st.putNamed(c, at); err != nil {
			return err
		}
		for _, z := range c.Zones {
			if err := st.raise(z); err != nil {
				return err
			}
		}
		for _, m := range c.Minters {
			if err := st.putMinter(m); err != nil {
				return err
			}
		}
		for _, cell := range c.Cells {
			if err := st.putCell(cell); err != nil {
				return err
			}
		}
		if err := st.putAudit(c.Audit, c.TrimAudit, at); err != nil {
			return err
		}
		return ctx.Err()
	})
}

// putNamed adds the records and namespaces of a commit.
func (st *state) putNamed(c *stele.Commit, at time.Time) error {
	if have := uint64(len(st.journal)); len(c.Replay) > 0 && c.Replay[0].Seq != have+1 {
		return refusal.ReplayOutOfOrder(c.Replay[0].Seq, have)
	}
	if t := c.Touch; t != nil && len(c.Namespaces) > 0 && c.Replay == nil && t.NamespaceVersions != st.namespaceVersions {
		return refusal.NamespaceChanged()
	}
	if len(c.Records)+len(c.Seen) > 0 && c.Replay == nil && st.isFenced(c.Touch) {
		return refusal.Fenced("commit")
	}
	if err := st.checkSeen(c.Seen); err != nil {
		return err
	}
	first := uint64(len(st.journal)) + 1
	zones := c.Touch.RecordZones(c.Records)
	count := countBy(c.Counter)
	for i, r := range c.Records {
		if c.Replay != nil {
			at, count = c.Replay[i].At.Round(0).UTC(), countAs(c.Replay[i])
		}
		if err := st.putRecord(r, at, count); err != nil {
			return err
		}
	}
	for i, n := range c.Namespaces {
		if c.Replay != nil {
			at = c.Replay[len(c.Records)+i].At.Round(0).UTC()
		}
		if err := st.putNamespace(n, at); err != nil {
			return err
		}
	}
	for _, list := range zones {
		if err := stele.CheckZoneNames(list); err != nil {
			return err
		}
	}
	st.touch(first, zones, c.Touch, len(c.Namespaces), c.Replay != nil)
	return nil
}

// Ingest implements [stele.Store]. A record beyond its namespace's quota is
// refused by itself, as one whose name is taken is.
func (s *Store) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, minter *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	if err := stele.CheckModels(models); err != nil {
		return nil, err
	}
	errs := make([]error, len(records))
	err := s.write(ctx, "ingest", func(st *state, at time.Time) error {
		if st.isFenced(touch) {
			return refusal.Fenced("ingest")
		}
		counts := make(map[stele.NamespaceKey]uint64)
		first, zones := uint64(len(st.journal))+1, touch.RecordZones(records)
		for i, r := range records {
			if err := ctx.Err(); err != nil {
				return err
			}
			if errs[i] = r.CheckFirst(); errs[i] == nil {
				errs[i] = stele.CheckZoneNames(zones[i])
			}
			if errs[i] == nil {
				errs[i] = st.putRecord(r, at, countBy(count))
			}
			if errs[i] == nil {
				counts[st.journal[len(st.journal)-1].Counted]++
			}
		}
		if err := st.putAudit(stele.AuditByNamespace(models, counts), 0, at); err != nil {
			return err
		}
		st.touch(first, accepted(zones, errs), touch, 0, false)
		if minter != nil {
			if err := minter.Check(); err != nil {
				return err
			}
			return st.putMinter(*minter)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// accepted returns the zones of the records that have no error.
func accepted(zones [][]string, errs []error) (list [][]string) {
	for i, err := range errs {
		if err == nil {
			list = append(list, zones[i])
		}
	}
	return list
}

// write waits for its turn and lets change work on a copy of the state, which
// becomes the store's if there is no error.
func (s *Store) write(ctx context.Context, op string, change func(st *state, at time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	st, err := s.view(ctx, op)
	if err != nil {
		return err
	}
	if err := st.checkSeal(op); err != nil && op != opSeal {
		return err
	}
	next := *st
	if err := change(&next, s.now().Round(0).UTC()); err != nil {
		return err
	}
	s.state.Store(&next)
	return nil
}

// view returns the present state.
func (s *Store) view(ctx context.Context, op string) (*state, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	st := s.state.Load()
	if st == nil {
		return nil, refusal.Closed(op)
	}
	return st, nil
}

// Ready implements [stele.Store]. A store in memory can write until it is closed, or
// sealed.
func (s *Store) Ready(ctx context.Context) error {
	st, err := s.view(ctx, "ready")
	if err != nil {
		return err
	}
	return st.checkSeal("ready")
}

// Close implements [stele.Store].
func (s *Store) Close() error {
	s.shut()
	return nil
}

// shut closes the store and returns its last state, nil if it was closed before.
// Iterators under way have a state of their own and continue.
func (s *Store) shut() *state {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.state.Swap(nil)
}

// refuse makes an error.
func refuse(op string, id stele.ID, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: kind, Err: stele.Messagef(code, text, args...)}
}
