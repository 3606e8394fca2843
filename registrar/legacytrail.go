package registrar

import (
	"bufio"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/stele-id/stele"
)

// trailSpool is the audit trail of a registry that is replaced. It may be long, and the
// registry is closed before it is needed, so that it waits in a file without a name.
type trailSpool struct {
	file        *os.File // closed when it is not used any more
	first, last uint64
}

// spoolTrail reads the trail of a store; nil if there is none.
func spoolTrail(ctx context.Context, present stele.Store) (_ *trailSpool, err error) {
	first, last, err := present.AuditRange(ctx)
	if err != nil || last == 0 {
		return nil, err
	}
	file, err := os.CreateTemp("", "stele-audit-*")
	if err != nil {
		return nil, refuse("restore", stele.ID{}, stele.Unavailable, "restore.no-room-for-replaced-audit", "there is no room for the audit trail of the registry that is replaced: {cause}", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close() // the first error is returned
		}
	}()
	if err := os.Remove(file.Name()); err != nil {
		return nil, err
	}
	w := bufio.NewWriter(file)
	spool := gob.NewEncoder(w)
	for e, err := range present.Audit(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if err := spool.Encode(e); err != nil {
			return nil, err
		}
		last = e.Number
	}
	return &trailSpool{file, first, last}, w.Flush()
}

// entries yields the trail.
func (t *trailSpool) entries() iter.Seq2[*stele.AuditEntry, error] {
	return func(yield func(*stele.AuditEntry, error) bool) {
		if _, err := t.file.Seek(0, io.SeekStart); err != nil {
			yield(nil, err)
			return
		}
		for spool := gob.NewDecoder(bufio.NewReader(t.file)); ; {
			e := new(stele.AuditEntry)
			err := spool.Decode(e)
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// inheritTrail appends to the trail of a restored registry what the registry that it
// replaces has beyond it, and an entry about the restore itself.
//
// A backup of the same registry has the beginning of the present trail: what follows is
// appended with its numbers and times. The trail of another registry is appended whole, with
// the next numbers; an entry that is earlier than the one before it has its time in its
// details.
func (r *Registrar) inheritTrail(ctx context.Context, t *trailSpool) error {
	details := "without a registry that is replaced"
	if t != nil {
		var err error
		if details, err = r.copyTrail(ctx, t); err != nil {
			return tell("restore", err)
		}
	}
	e := entry(ctx, "restore", "")
	e.Details = details
	e.Bound()
	return tell("restore", r.store.Apply(ctx, &stele.Commit{Audit: []*stele.AuditEntry{e}}))
}

// trailBlock is how many entries are copied at a time.
const trailBlock = 500

// copyTrail copies the trail, and says what it did.
func (r *Registrar) copyTrail(ctx context.Context, t *trailSpool) (string, error) {
	_, last, err := r.store.AuditRange(ctx)
	if err != nil {
		return "", err
	}
	from, same, err := r.meet(ctx, t, last)
	if err != nil {
		return "", err
	}
	next := last + 1
	if last == 0 {
		next = t.first
	}
	var at time.Time
	if last > 0 {
		for e, err := range r.store.Audit(ctx, last-1) {
			if err != nil {
				return "", err
			}
			at = e.At
		}
	}
	var block []*stele.AuditEntry
	copied := 0
	flush := func() error {
		if len(block) == 0 {
			return nil
		}
		err := r.store.Apply(ctx, &stele.Commit{Audit: block})
		copied += len(block)
		block = nil
		return err
	}
	for e, err := range t.entries() {
		if err != nil {
			return "", err
		}
		if same && e.Number <= from {
			continue
		}
		if e.At.Before(at) {
			e.Details = fmt.Sprintf("at %s as entry %d of the registry that was replaced; %s", e.At.Format(time.RFC3339Nano), e.Number, e.Details)
			e.At = at
			e.Bound()
		}
		at, e.Number = e.At, next
		next++
		if block = append(block, e); len(block) == trailBlock {
			if err := flush(); err != nil {
				return "", err
			}
		}
	}
	if err := flush(); err != nil {
		return "", err
	}
	if !same {
		return fmt.Sprintf("the audit trail of the backup ends with entry %d and is not that of the registry that was replaced, whose %d entries follow it", last, copied), nil
	}
	return fmt.Sprintf("%d entries of the registry that was replaced follow those of the backup", copied), nil
}

// meet finds out up to which entry the trail of the store and the present one are the
// same. They are not if the last entry of the one is not in the other.
func (r *Registrar) meet(ctx context.Context, t *trailSpool, last uint64) (from uint64, same bool, err error) {
	if last == 0 {
		return 0, true, nil
	}
	number := min(last, t.last) // after a restore that was cut off, the store has more
	if number < t.first {
		return 0, false, nil
	}
	var ours *stele.AuditEntry
	for e, err := range r.store.Audit(ctx, number-1) {
		if err != nil {
			return 0, false, err
		}
		ours = e
		break
	}
	for e, err := range t.entries() {
		if err != nil {
			return 0, false, err
		}
		if e.Number == number {
			return number, ours != nil && e.Equal(ours), nil
		}
	}
	return 0, false, nil
}
