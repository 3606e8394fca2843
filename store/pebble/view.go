package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// opening is one opening of Pebble. A store has one at a time, except while another
// replaces it after a failure; see failstop.
type opening struct {
	db       *pebbledb.DB
	failstop *failstop
	options  *pebbledb.Options
	log      func(string, ...any)

	// use is held for reading while Pebble is used, and for writing to close it. What
	// waits between two reads, such as the body of a caller's loop, does not hold it.
	use  sync.RWMutex
	dead bool

	mu    sync.Mutex
	snaps map[*pebbledb.Snapshot]bool // of views that are not forgotten

	// The committer's, once the opening is installed.
	seq   uint64 // the last change
	trail trail  // the audit trail
	seal  string // why nothing more is written; "" if it is

	namespaceVersions uint64             // sum of the versions of all namespaces
	generation        stele.GenerationID // the present one

	later bool // the store has a later version than this program knows
}

// merging returns what decides when its tables are merged.
func (h *opening) merging() *merging { return h.options.Experimental.CompactionScheduler.(*merging) }

// close closes Pebble when no read is under way.
func (h *opening) close() (err error) {
	h.use.Lock()
	defer h.use.Unlock()
	if h.dead {
		return nil
	}
	h.dead = true
	h.failstop.setUnread(true)
	frozen := h.failstop.broken() != nil
	if frozen {
		h.failstop.empty()
	}
	for snap := range h.snaps {
		h.forget(snap)
	}
	defer func() {
		if p := recover(); p != nil {
			err = stele.Messagef("store.closing-failed", "closing failed: {cause}", p)
		}
		if err != nil && frozen {
			h.log("closing after a failed write", "error", err)
			err = nil // nothing of it concerns the disk
		}
	}()
	if !frozen {
		// Tables have checksums throughout. Of a log, the end may be damaged and seem to be
		// just an end.
		err = h.db.Flush()
	}
	return errors.Join(err, h.db.Close())
}

// view is a state of the store: the one after a group of commits that is durable. It
// never changes.
type view struct {
	opening *opening
	snap    *pebbledb.Snapshot
	seq     uint64 // the last change
	pins    atomic.Int64

	generation stele.GenerationID
}

// newView makes a view of Pebble's present state. Only the committer may do so, or the
// sole user of an opening: what is written meanwhile is not durable.
func (h *opening) newView(seq uint64) *view {
	v := &view{opening: h, snap: h.db.NewSnapshot(), seq: seq, generation: h.generation}
	v.pins.Store(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.snaps == nil {
		h.snaps = make(map[*pebbledb.Snapshot]bool)
	}
	h.snaps[v.snap] = true
	return v
}

func (h *opening) forget(snap *pebbledb.Snapshot) {
	h.mu.Lock()
	delete(h.snaps, snap)
	h.mu.Unlock()
	_ = snap.Close() // it has no error to return
}

// pin keeps the view's state from being forgotten. It fails if it is already.
func (v *view) pin() bool {
	for {
		n := v.pins.Load()
		if n == 0 {
			return false
		}
		if v.pins.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (v *view) unpin() {
	if v.pins.Add(-1) > 0 {
		return
	}
	v.opening.use.RLock()
	defer v.opening.use.RUnlock()
	if !v.opening.dead {
		v.opening.forget(v.snap)
	}
}

func (v *view) begin() bool { return v.opening.begin() }
func (v *view) end()        { v.opening.end() }

// begin and end stand around every use of Pebble. Begin fails if Pebble was closed,
// and then end must not be called. A goroutine must not begin twice, nor unpin a view
// in between.
func (h *opening) begin() bool {
	h.use.RLock()
	if h.dead {
		h.use.RUnlock()
		return false
	}
	return true
}

func (h *opening) end() { h.use.RUnlock() }

// look returns the present view, pinned.
func (s *Store) look(ctx context.Context, op string) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		v := s.view.Load()
		if v == nil {
			return nil, closed(op)
		}
		if v.pin() {
			return v, nil
		}
	}
}

// read calls f with the present view. If another opening replaces the view's meanwhile
// it calls f again.
func (s *Store) read(ctx context.Context, op string, f func(v *view) error) error {
	for {
		v, err := s.look(ctx, op)
		if err != nil {
			return err
		}
		if err = s.readView(v, op, f); err == nil || !v.opening.failstop.isVoid() || s.isClosing() {
			return err
		}
	}
}

// readView calls f with a pinned view, and unpins it.
func (s *Store) readView(v *view, op string, f func(v *view) error) error {
	defer v.unpin()
	if !v.begin() {
		return s.stopped(op)
	}
	defer v.end()
	return f(v)
}

// stopped is the error of a read whose opening of Pebble was closed.
func (s *Store) stopped(op string) error {
	if s.isClosing() {
		return closed(op)
	}
	return replaced(op)
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// install makes an opening the one that is used, and shows its state.
func (s *Store) install(h *opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Store(h)
	if s.watch != nil {
		s.watch.all = true // commits of unknown outcome are there now, or not
	}
	s.swap(h.newView(h.seq))
}

// publish shows a state that is durable. If another opening is in use by now it has
// that state, and more. The names are those that were taken.
func (s *Store) publish(v *view, names ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil {
		s.watch.names = append(s.watch.names, names...)
	}
	if s.current.Load() != v.opening {
		v.unpin()
		return
	}
	s.swap(v)
}

func (s *Store) swap(v *view) {
	if old := s.view.Swap(v); old != nil {
		old.unpin()
	}
}

// finder looks up whole keys. Pebble's Get ignores the filters of the last level, so
// that a miss costs as much as a hit; an iterator can be told to use them.
type finder struct {
	it *pebbledb.Iterator
}

func newFinder(r pebbledb.Reader) (finder, error) {
	it, err := r.NewIter(&pebbledb.IterOptions{UseL6Filters: true})
	return finder{it}, err
}

// find returns what is kept under key, nil if nothing is. It is valid until the next
// call.
func (f finder) find(key []byte) (value []byte, err error) {
	if !f.it.SeekPrefixGE(key) {
		return nil, f.it.Error()
	}
	if value, err = f.it.ValueAndErr(); value == nil && err == nil {
		value = []byte{}
	}
	return value, err
}

func (f finder) close() { _ = f.it.Close() } // find has returned its error

// lastChange reads the number of the last change from the keys of the feed.
func lastChange(db *pebbledb.DB) (seq uint64, err error) {
	it, err := db.NewIter(&pebbledb.IterOptions{LowerBound: []byte{familyChange}, UpperBound: []byte{familyChange + 1}})
	if err != nil {
		return 0, err
	}
	if it.Last() {
		if len(it.Key()) != 9 {
			err = errKey
		} else {
			seq = binary.BigEndian.Uint64(it.Key()[1:])
		}
	}
	return seq, errors.Join(err, it.Close())
}
