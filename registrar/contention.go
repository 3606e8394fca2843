package registrar

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// Several processes may write to one store, each with a registrar. The namespaces that one of
// them keeps in memory may be outdated then. A process reserves names only if no namespace
// has changed since (see package minting): epochCell counts the changes, and each commit that
// adds or changes a namespace increments it. So changes and reservations happen one after the
// other, as in one process, and each is judged by what is there.

// epochCell has the number of changes of namespaces that minters have to know of.
const epochCell = "namespaces"

// unchanged is the condition that no namespace has changed since s was read.
func (s *namespaceTree) unchanged() stele.CellChange {
	if s.epoch == nil { // no change was counted yet
		return stele.CellChange{Name: epochCell, After: []byte("0")}
	}
	return stele.CellChange{Name: epochCell, Before: s.epoch, After: s.epoch}
}

// changed is the same for a commit that changes a namespace, and counts.
func (s *namespaceTree) changed() stele.CellChange {
	n, _ := strconv.ParseUint(string(s.epoch), 10, 64) // a value that can't be read is replaced
	return stele.CellChange{Name: epochCell, Before: s.epoch, After: strconv.AppendUint(nil, n+1, 10)}
}

// catchUp reads the namespaces again if another process has changed one.
func (r *Registrar) catchUp(ctx context.Context) error {
	s := r.namespaceTree.Load()
	if s == nil {
		return nil
	}
	now, err := r.store.Cell(ctx, epochCell)
	if err != nil {
		return tell("read namespaces", err)
	}
	if bytes.Equal(now, s.epoch) {
		return nil
	}
	return r.Reload(ctx)
}

// maxPause is the longest pause before another attempt. Pauses are random, so that processes
// whose commits conflicted do not conflict again, and grow.
const maxPause = 64 * time.Millisecond

// again reports whether the caller should retry a commit that failed: it conflicted with
// another commit, and not too often. It pauses before it returns true.
func (r *Registrar) again(ctx context.Context, err error, attempt int) bool {
	// A sealed store refuses all commits, for ever.
	if stele.KindOf(err) != stele.Conflict || errors.Is(err, stele.ErrSealed) || attempt >= maxAttempts {
		return false
	}
	timer := time.NewTimer(rand.N(min(time.Millisecond<<min(attempt, 10), maxPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
