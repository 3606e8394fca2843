package pebble

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// Purge implements [stele.Store]. What a commit has replaced or deleted is still in
// several places of the folder:
//
//   - In tables, until they are merged with the newer ones; and beyond that while a
//     reader holds a snapshot from before. All tables are rewritten, after the opening
//     of Pebble was replaced by another one, which has no snapshots.
//   - In logs that are kept to be used again, and in manifests, which name the first and
//     the last key of each table: for an index, a URL or host. So the opening is replaced
//     once more, which begins a manifest and removes all logs, and manifests that Pebble
//     keeps for the diagnosis of faults are removed.
//
// Reads begin again by themselves when the opening is replaced; iterators that have
// yielded something end with Unavailable.
func (s *Store) Purge(ctx context.Context) error {
	const op = "purge"
	if err := s.takeTurn(ctx, s.moving, op); err != nil {
		return err
	}
	defer func() { <-s.moving }()
	if err := s.renew(ctx, true); err != nil {
		return err
	}
	err := s.read(ctx, op, func(v *view) error {
		db := v.opening.db
		defer v.opening.merging().ask()()
		if err := db.Flush(); err != nil {
			return err
		}
		return db.Compact(ctx, []byte{0}, []byte{0xff}, false)
	})
	var before []string
	if err == nil {
		before, err = s.fs.List(s.folder)
	}
	if err == nil {
		err = s.renew(ctx, false)
	}
	if err == nil {
		err = s.awaitRemoval(ctx, before)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return refuse(op, stele.ID{}, stele.Unavailable, "store.tables-not-rewritten", "the tables can't be rewritten ({cause}); try again", err)
}

// renewal asks the committer to replace the present opening of Pebble by another one.
type renewal struct {
	touch bool          // the first and the last key are written again
	over  chan struct{} // closed when nothing of the old opening is left
}

var errRenewed = stele.Messagef("store.opened-again-to-erase", "the store is opened again to remove what was erased")

// renew replaces the opening, and returns once the old one is closed.
func (s *Store) renew(ctx context.Context, touch bool) error {
	r := &renewal{touch: touch, over: make(chan struct{})}
	if err := s.submit(ctx, "purge", &request{done: make(chan error, 1), renew: r}); err != nil {
		return err
	}
	select {
	case <-r.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finishRenewal is the committer's part: nothing is written meanwhile. To the old opening it
// is a crash, from which the new one recovers; see failstop.
func (s *Store) finishRenewal(r *renewal) error {
	old := s.current.Load()
	if !old.failstop.retire(errRenewed) {
		return s.stopped("purge") // a write failed, and the keeper is about to open it again
	}
	next, err := s.open(true)
	if err == nil && r.touch {
		err = next.touch()
	}
	if err != nil {
		if next != nil {
			err = errors.Join(err, next.close())
		}
		s.fail(old, err) // the keeper tries again
		return refuse("purge", stele.ID{}, stele.Unavailable, "store.not-opened-again", "the store can't be opened again ({cause}); it reads only until it can", err)
	}
	s.install(next)
	old.failstop.empty()
	s.workers.Go(func() {
		_ = old.close() // what it has to say is in the log
		next.failstop.release()
		close(r.over)
	})
	return nil
}

// touch writes the first and the last key again, as they are. A compaction of what is
// above the last level takes all tables below it that lie between, so that two keys make
// it rewrite everything.
func (h *opening) touch() error {
	it, err := h.db.NewIter(nil)
	if err != nil {
		return err
	}
	b := h.db.NewBatch()
	for _, move := range []func() bool{it.First, it.Last} {
		if !move() {
			continue
		}
		value, verr := it.ValueAndErr()
		err = errors.Join(err, verr, b.Set(it.Key(), value, nil))
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return errors.Join(err, b.Close())
	}
	return errors.Join(h.db.Apply(b, pebbledb.Sync), b.Close(), h.failstop.broken())
}

// awaitRemoval waits until nothing is left of the given files that the opening does not
// use, and removes old manifests. Pebble removes tables and logs in the background.
func (s *Store) awaitRemoval(ctx context.Context, before []string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := s.leftovers(ctx, before)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leftovers returns how many of the tables and logs are still there and not in use, and
// removes the manifests among the files: the present one is newer.
func (s *Store) leftovers(ctx context.Context, before []string) (left int, err error) {
	err = s.read(ctx, "purge", func(v *view) error {
		names, err := s.fs.List(s.folder)
		if err != nil {
			return err
		}
		levels, err := v.opening.db.SSTables()
		if err != nil {
			return err
		}
		inUse := make(map[string]bool)
		for _, t := range slices.Concat(levels...) {
			inUse[s.fs.PathBase(s.tablePath(&t))] = true
		}
		left = 0
		for _, name := range names {
			switch {
			case inUse[name] || !slices.Contains(before, name):
			case strings.HasPrefix(name, "MANIFEST-"):
				if err := s.fs.Remove(s.fs.PathJoin(s.folder, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			case strings.HasSuffix(name, ".log") || isTable(name):
				left++
			}
		}
		return nil
	})
	return left, err
}
