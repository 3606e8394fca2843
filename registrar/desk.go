package registrar

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// desk is where the names of one namespace are given out, to one caller after
// another.
type desk struct {
	*Registrar
	key  stele.NamespaceKey
	room room
	work atomic.Pointer[work] // nil until somebody had the turn

	alone atomic.Pointer[alone] // what was found out last
	told  bool                  // of a clock that is behind, once until it is not
	lost  atomic.Int64          // when the store said last that it is away, Unix nanoseconds
}

// alone says that no namespace is below the prefixes of names that are made of
// dates: each such name is the desk's namespace's.
type alone struct {
	spaces *spaces
	made   *madeOfDates
}

// work is a source of names and the settings by which it was made.
type work struct {
	settings stele.Minter
	source   source
}

// source makes names, one after the other. Who has the turn uses it, but for step
// and free.
type source interface {
	// load reads what the store has, unless that is known.
	load(ctx context.Context) error
	// forget makes load read again: a commit failed.
	forget()
	// next takes the next name for a caller who arrived then. If a commit must be
	// made before it may leave, it is taken only when settle is called. If it is
	// not time yet, next says how long to wait.
	next(arrived time.Time) (x draw, reserve []stele.MinterState, wait time.Duration, err error)
	// settle is told that what next asked for is committed.
	settle()
	// skip makes sure that a name is not taken again.
	skip(x draw)
	// behind says that the clock is behind, and how far.
	behind() error
	// maker makes names of what is taken. It may be used after the turn.
	maker() maker
	// step is how long the next caller waits if all goes well.
	step() time.Duration
	// burst is how many names a caller takes in one turn.
	burst() int
	// free returns when a name is free, if nobody waits.
	free() time.Time
}

// timeless is the part of a source whose names wait for no time.
type timeless struct{}

func (timeless) behind() error       { return nil }
func (timeless) step() time.Duration { return 0 }
func (timeless) free() (t time.Time) { return t }

// draw is what a source takes: a date, a number or a UUID.
type draw struct {
	date   mint.Date
	number uint64
	uuid   uuid
}

// maker makes the names of a draw. A label without an identifier is one that must
// not be used.
type maker interface {
	label(x draw) (Label, error)
}

// desk returns the desk of a namespace.
func (r *Registrar) desk(key stele.NamespaceKey) *desk {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.desks[key]
	if d == nil {
		d = &desk{Registrar: r, key: key, room: room{size: r.o.RoomSize}}
		r.desks[key] = d
	}
	return d
}

// open returns the source of names by the namespace's present settings. The caller
// has the turn.
func (d *desk) open(ctx context.Context, s *spaces) (source, error) {
	sp := s.Get(d.key)
	if sp == nil {
		return nil, refuse("mint", stele.ID{}, stele.NotFound, "there is no namespace %s; add it first", d.key)
	}
	w := d.work.Load()
	if w == nil || w.settings != sp.Minter {
		made, err := d.newSource(s.Chain(sp), w)
		if err != nil {
			return nil, err
		}
		w = &work{sp.Minter, made}
		d.work.Store(w)
	}
	if sp.Delegate != "" {
		return nil, refuse("mint", stele.ID{}, stele.Conflict, "names in %s are kept by another resolver, %q; mint there", d.key, sp.Delegate)
	}
	return w.source, w.source.load(ctx)
}

// newSource makes a source by the settings of the chain's first namespace, in the
// place of another.
func (d *desk) newSource(chain []*stele.Namespace, earlier *work) (source, error) {
	ns := chain[0]
	var before source
	if earlier != nil {
		before = earlier.source
	}
	switch ns.Minter.Kind {
	case stele.MinterIBI, stele.MinterPILIN:
		e, _ := before.(*dates)
		return newDates(d.Registrar, ns, e)
	case stele.MinterNOID:
		return newCounter(d.Registrar, chain)
	case stele.MinterUUID:
		e, _ := before.(*uuids)
		return newUUIDs(d.Registrar, ns, e)
	}
	return nil, refuse("mint", stele.ID{}, stele.Invalid, "the namespace %s has no minter; set one", d.key)
}

// errEarly says that the next name has its time still to come.
var errEarly = errors.New("it is not time yet")

// take takes a name, and waits for its time, or else says errEarly. If a commit is to
// be made before it leaves, that is returned. The caller has the turn.
//
// If all is well the last date is not after now, and the wait is the distance to
// the next date on the grid. What is more than that is a clock that stepped back:
// for that one waits a while and no longer.
func (d *desk) take(ctx context.Context, arrived time.Time, patient bool) (source, draw, *stele.Commit, error) {
	waited, reloaded := time.Duration(0), false
	for {
		s, err := d.view(ctx)
		if err != nil {
			return nil, draw{}, nil, err
		}
		src, err := d.open(ctx, s)
		if errors.Is(err, errMoved) && !reloaded {
			// What is known of the namespaces is not what the store has: settings
			// are just being changed, or were by another process.
			reloaded = true
			if err = d.Reload(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, draw{}, nil, err
		}
		x, minters, wait, err := src.next(arrived)
		if err != nil || wait == 0 {
			d.told = false
			var reserve *stele.Commit
			if minters != nil {
				reserve = &stele.Commit{Minters: minters, Cells: []stele.CellChange{s.unchanged()}}
			}
			return src, x, reserve, err
		}
		if !patient {
			return src, draw{}, nil, errEarly
		}
		if wait > src.step()+d.o.Wait-waited {
			err := src.behind()
			if !d.told {
				d.o.Log.Error("no names are given", "namespace", d.key.String(), "err", err)
			}
			d.told = true
			return nil, draw{}, nil, err
		}
		slept, err := d.sleep(ctx, wait, s.replaced)
		if err != nil {
			return nil, draw{}, nil, err
		}
		if slept {
			waited += wait
		}
	}
}

// spins is how often the clock is asked before a short wait becomes a sleep, and
// shortWait is what is short: a timer may oversleep by a millisecond, which is a
// thousand names at r = 1 microsecond.
const (
	spins     = 200
	shortWait = 20 * time.Microsecond
)

// sleep waits. It returns false if the namespaces changed meanwhile, and with them
// perhaps what is waited for.
func (d *desk) sleep(ctx context.Context, wait time.Duration, changed <-chan struct{}) (bool, error) {
	if wait < shortWait {
		start := d.o.Now()
		for range spins {
			runtime.Gosched()
			if d.o.Now().Sub(start) >= wait {
				return true, nil
			}
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-changed:
		return false, nil
	case <-ctx.Done():
		return false, tell("mint", ctx.Err())
	}
}

// interrupt takes a turn at the desk, for who changes what names are made of: before
// everybody who waits there. Done ends it, and has the desk read its state anew.
func (d *desk) interrupt(ctx context.Context) (done func(), err error) {
	p, err := d.room.join(true)
	if err != nil {
		return nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return func() {
		if w := d.work.Load(); w != nil {
			w.source.forget()
		}
		d.room.leave()
	}, nil
}
