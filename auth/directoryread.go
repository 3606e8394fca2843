package auth

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/stele-id/stele"
)

const (
	// tryAgain is how many times Age pass before the directory asks a store again that was
	// away.
	tryAgain = 5

	// patience is how many times Age the directory waits for a store before it takes it to be
	// away: as long as the store waits for its database.
	patience = 10
)

// current returns the users and tokens as they are now, as far as this process can
// know: what was committed Age before now is in them, unless the store is away.
func (d *Directory) current(ctx context.Context, now time.Time) (*roll, error) {
	old := d.roll.Load()
	if d.holds(old, now) {
		return old, nil
	}
	if d.without(old, now) {
		d.lookAgain(ctx, now)
		return old, nil
	}
	select {
	case d.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, tell(ctx.Err())
	}
	// Another goroutine may have read meanwhile, or found that the store is away.
	r := d.roll.Load()
	if d.holds(r, now) || r != old && d.covers(r, now) || d.without(r, now) {
		<-d.reading
		return r, nil
	}
	if !d.lasts(r, now) {
		defer func() { <-d.reading }()
		return d.renew(ctx)
	}
	return d.renewOr(ctx, r, now)
}

// holds reports whether a roll is young enough.
func (d *Directory) holds(r *roll, now time.Time) bool {
	return r != nil && r.epoch == d.epoch.Load() && (d.Age <= 0 || now.Sub(r.at).Abs() < d.Age)
}

// covers is holds for a caller that came at this time and waited while the roll was read. The
// roll may be old already if reading took long, but it is new enough for that caller; else
// all that wait would have to read, one after the other.
func (d *Directory) covers(r *roll, came time.Time) bool {
	return r != nil && r.epoch == d.epoch.Load() && came.Sub(r.at) < d.Age
}

// lasts reports whether a roll may be used as long as the store is away.
func (d *Directory) lasts(r *roll, now time.Time) bool {
	return r != nil && r.epoch == d.epoch.Load() && now.Sub(r.at).Abs() < d.Age+d.Grace && d.Grace > 0
}

// without reports whether a roll must suffice because the store is away: the last attempt to
// read it failed, and the time for the next one has not passed.
func (d *Directory) without(r *roll, now time.Time) bool {
	tried := d.tried.Load()
	return tried != 0 && d.lasts(r, now) && now.Sub(time.Unix(0, tried)).Abs() < (tryAgain+patience)*d.Age
}

// lookAgain asks a store that was away, if no other call has done so for a while. It does not
// wait for the answer.
func (d *Directory) lookAgain(ctx context.Context, now time.Time) {
	if now.Sub(time.Unix(0, d.tried.Load())).Abs() < tryAgain*d.Age {
		return
	}
	select {
	case d.reading <- struct{}{}:
		d.renewInBackground(ctx)
	default: // another goroutine reads
	}
}

// outcome is what became of reading.
type outcome struct {
	roll *roll
	err  error
}

// renewOr reads for the caller, which holds d.reading, or returns the old roll if the store
// is away.
func (d *Directory) renewOr(ctx context.Context, old *roll, now time.Time) (*roll, error) {
	select {
	case o := <-d.renewInBackground(ctx):
		if stele.KindOf(o.err) == stele.Unavailable && d.lasts(old, now) {
			return old, nil
		}
		return o.roll, o.err
	case <-ctx.Done():
		return nil, tell(ctx.Err())
	}
}

// renewInBackground reads in the background for the caller, which holds d.reading, and releases
// that. It goes on when the caller has gone: others wait for it, too.
func (d *Directory) renewInBackground(ctx context.Context) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience*d.Age)
		defer cancel()
		r, err := d.renew(reading)
		if stele.KindOf(err) == stele.Unavailable {
			d.tried.Store(d.now().UnixNano())
		}
		<-d.reading
		done <- outcome{r, err}
	}()
	return done
}

// renew reads for the caller, which holds d.reading.
func (d *Directory) renew(ctx context.Context) (*roll, error) {
	epoch, at := d.epoch.Load(), d.now() // before reading: what is forgotten meanwhile is read again
	r, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	d.tried.Store(0)
	r.epoch, r.at = epoch, at
	d.roll.Store(r)
	return r, nil
}

// read reads all users and tokens. A user or token that can't be read does not lock the
// others out: its owner is unknown until it is repaired.
func (d *Directory) read(ctx context.Context) (*roll, error) {
	tree := NewTree()
	for c, err := range d.store.Cells(ctx, UserCells, "") {
		if err != nil {
			return nil, tell(err)
		}
		if u, err := ReadUser(c); err == nil {
			tree.AddUser(u)
		}
	}
	r := &roll{tokens: make(map[string]*entry), users: tree.users}
	for c, err := range d.store.Cells(ctx, TokenCells, "") {
		if err != nil {
			return nil, tell(err)
		}
		t, err := ReadToken(c)
		if err != nil || len(t.Hash) != sha256.Size {
			continue
		}
		r.tokens[t.ID] = &entry{hash: [sha256.Size]byte(t.Hash)}
		tree.AddToken(t)
	}
	for id, e := range r.tokens {
		e.principal, e.refused = tree.principal(id)
	}
	d.keepUses(r)
	return r, nil
}
