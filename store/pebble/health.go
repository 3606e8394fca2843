package pebble

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// Ready implements [stele.Store].
func (s *Store) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosing() {
		return closed("ready")
	}
	reason, err := s.Sealed(ctx)
	if err != nil {
		return err
	}
	return errors.Join(sealedFor("ready", reason), s.writable("ready", 0))
}

// writable returns why the store can't write so many bytes more, or nil.
func (s *Store) writable(op string, size uint64) error {
	if cause := s.current.Load().failstop.broken(); cause != nil {
		return refuse(op, stele.ID{}, stele.Unavailable, "store.reads-only-after-failed-write", `a write to "{folder}" failed ({cause}); the store reads only, and opens itself again when it can: try again later`, s.folder, cause)
	}
	usage, err := s.fs.GetDiskUsage(s.folder)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	} else if err != nil {
		return refuse(op, stele.ID{}, stele.Unavailable, "store.free-space-unknown", "the free space of the disk is unknown ({cause}); try again later", err)
	}
	if usage.AvailBytes < s.o.Reserve+size {
		return refuse(op, stele.ID{}, stele.Unavailable, "store.disk-full", `the disk of "{folder}" has {free} MiB free, and {reserve} MiB are held in reserve; the store reads only until there is more space`, s.folder, usage.AvailBytes>>20, s.o.Reserve>>20)
	}
	return nil
}

// fail is told by a failstop that it froze. It must not block. The first failure of the
// opening in use is all that the keeper needs to know of.
func (s *Store) fail(h *opening, cause error) {
	s.log.Error("a write failed; the store reads only", "folder", s.folder, "error", cause)
	if s.isClosing() {
		h.failstop.empty() // the store does not reopen it
	}
	select {
	case s.failures <- h:
	default:
	}
}

// keep opens Pebble again after a failure, until the store is closed.
func (s *Store) keep() {
	for {
		select {
		case <-s.closing:
			return
		case <-s.failures:
			// An opening may have failed while it was tried, or closed; the one in use
			// decides.
			if h := s.current.Load(); h.failstop.broken() != nil {
				s.recover(h)
			}
		}
	}
}

// recover replaces a frozen opening by another one.
func (s *Store) recover(old *opening) {
	next := s.reopen()
	if next == nil {
		return // the store is being closed
	}
	seq := next.seq
	s.install(next)
	s.log.Info("the store was opened again and can write", "folder", s.folder, "lastChange", seq)
	// No new reader uses the old opening any more. What waits in it, such as the
	// committer if it stalls, continues.
	old.failstop.empty()
	s.workers.Go(func() {
		_ = old.close() // what it has to say is in the log
		next.failstop.release()
	})
}

// reopen tries to open Pebble, with longer and longer waits, until it can or the
// store is closed.
func (s *Store) reopen() *opening {
	wait := s.o.Retry
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-s.closing:
			return nil
		case <-timer.C:
		}
		next, err := s.open(true)
		if err == nil && next.failstop.broken() == nil {
			return next
		}
		if next != nil {
			err = errors.Join(err, next.failstop.broken(), next.close())
		}
		wait = min(2*wait, 128*s.o.Retry)
		s.log.Warn("the store can't be opened again yet", "folder", s.folder, "error", err, "wait", wait)
		timer.Reset(wait)
	}
}
