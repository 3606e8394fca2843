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

// Several processes may write to one store, each with a registrar of its own. What one
// of them keeps in memory of minters and namespaces may be old then. Two things make
// sure that no name is given twice all the same:
//
//   - A reservation is committed only if the state of the minter is what this process
//     has seen. So the dates and numbers that are reserved belong to one process, and
//     what it leaves unused is skipped by all.
//   - It is committed only if no namespace has changed either: another template of the
//     prefix, or a namespace below it, may make the same names. epochCell counts the
//     changes, and whoever adds or changes a namespace counts on. So they happen one
//     after the other, as in one process, and each is judged by what is there.
//
// What was reserved before a namespace changed may leave after that, from a process
// that has not heard of it. It is in the minter's state, which the minters of other
// templates read when they begin: they leave those names out.

// epochCell has the number of changes of namespaces that minters have to know of.
const epochCell = "namespaces"

// unchanged is the condition that no namespace has changed since s was read.
func (s *spaces) unchanged() stele.CellChange {
	if s.epoch == nil { // nobody has counted yet
		return stele.CellChange{Name: epochCell, After: []byte("0")}
	}
	return stele.CellChange{Name: epochCell, Before: s.epoch, After: s.epoch}
}

// changed is the same for who changes one, and counts.
func (s *spaces) changed() stele.CellChange {
	n, _ := strconv.ParseUint(string(s.epoch), 10, 64) // what can't be read is another value, too
	return stele.CellChange{Name: epochCell, Before: s.epoch, After: strconv.AppendUint(nil, n+1, 10)}
}

// catchUp has the namespaces read again if another process has changed some.
func (r *Registrar) catchUp(ctx context.Context) error {
	s := r.spaces.Load()
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

// Pauses before another attempt are as long as chance will have it, so that processes
// which met do not meet again. They grow up to this.
const maxPause = 64 * time.Millisecond

// again reports whether a commit is worth another attempt: it met one of somebody else,
// and not too often. It waits a moment first.
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
