package auth

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// use is when a token was used last. It outlives the roll: Forget does not clear it.
type use struct {
	last    atomic.Int64 // Unix seconds; 0: not since this process began
	written int64        // the last that was written to the store; under the directory's mu
}

// touch notes a use. Most come within a second of another, and write nothing.
func (u *use) touch(now time.Time) {
	if s := now.Unix(); u.last.Load() < s {
		u.last.Store(s)
	}
}

// keepUses gives each token of a roll its use.
func (d *Directory) keepUses(r *roll) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := make(map[string]*use, len(r.tokens))
	for id, e := range r.tokens {
		e.use = d.uses[id]
		if e.use == nil {
			e.use = new(use)
		}
		kept[id] = e.use
	}
	d.uses = kept
}

// usesAtOnce is how many uses are written in one commit.
const usesAtOnce = 500

// Flush writes when tokens were used last, where the store does not have it. The caller calls
// it once a minute or so, and at the end; a crash loses that minute. A later use that another
// process has written stays.
func (d *Directory) Flush(ctx context.Context) error {
	d.mu.Lock()
	pending := make(map[string]int64)
	for id, u := range d.uses {
		if last := u.last.Load(); last > u.written {
			pending[id] = last
		}
	}
	d.mu.Unlock()
	batch := make(map[string]int64, min(len(pending), usesAtOnce))
	for id, last := range pending {
		batch[id] = last
		if len(batch) == usesAtOnce {
			if err := d.write(ctx, batch); err != nil {
				return err
			}
			clear(batch)
		}
	}
	return d.write(ctx, batch)
}

// write commits some uses. It tries again if another process writes at the same time.
func (d *Directory) write(ctx context.Context, batch map[string]int64) error {
	if len(batch) == 0 {
		return nil
	}
	const attempts = 5
	var err error
	for range attempts {
		c := &stele.Commit{}
		for id, last := range batch {
			name := UsedCells + id
			before, err := d.store.Cell(ctx, name)
			if err != nil {
				return tell(err)
			}
			at := time.Unix(last, 0).UTC()
			if known, err := time.Parse(time.RFC3339, string(before)); err == nil && !known.Before(at) {
				continue
			}
			c.Cells = append(c.Cells, stele.CellChange{Name: name, Before: before, After: []byte(at.Format(time.RFC3339))})
		}
		if len(c.Cells) == 0 {
			err = nil
			break
		}
		if err = d.store.Apply(ctx, c); !errors.Is(err, stele.Conflict) {
			break
		}
	}
	if err != nil {
		return tell(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, last := range batch {
		if u := d.uses[id]; u != nil {
			u.written = max(u.written, last)
		}
	}
	return nil
}
