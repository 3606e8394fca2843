package minting

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// minter makes the names of one namespace, for one caller after another.
type minter struct {
	*Minters
	key   stele.NamespaceKey
	queue queue
	work  atomic.Pointer[work] // nil until the first caller had the turn

	alone  atomic.Pointer[alone] // what was found out last
	logged bool                  // that the clock is wrong; once until it is right again
	lost   atomic.Int64          // when the store answered last that it is unavailable, Unix nanoseconds
}

// alone says that no namespace is below the prefixes of names that are made of
// dates: each such name belongs to the minter's namespace.
type alone struct {
	tree *namespaces.Tree
	made *dateNames
}

// work is a source of names and the settings by which it was made.
type work struct {
	settings stele.Minter
	source   source
}

// source makes names, one after the other. Only the caller that has the turn uses it,
// except for step and free.
type source interface {
	// load reads what the store has, unless that is known.
	load(ctx context.Context) error
	// forget makes load read again, after a commit failed.
	forget()
	// next takes the next name for a caller that arrived then. If a commit must be
	// made before it may be issued, it is taken only when settle is called. If it is
	// not time yet, next returns how long to wait.
	next(arrived time.Time) (x draw, reserve []stele.MinterState, wait time.Duration, err error)
	// settle is called when what next asked for is committed.
	settle()
	// skip makes sure that a name is not taken again.
	skip(x draw)
	// late returns the error that the clock is earlier than the last date, and how far.
	late() error
	// maker makes names of what is taken. It may be used after the turn.
	maker() maker
	// step is how long the next caller waits if all goes well.
	step() time.Duration
	// burst is how many names a caller takes in one turn.
	burst() int
	// free returns when a name is free, if no caller waits.
	free() time.Time
}

// timeless is the part of a source whose names do not wait for a time.
type timeless struct{}

func (timeless) late() error         { return nil }
func (timeless) step() time.Duration { return 0 }
func (timeless) free() (t time.Time) { return t }

// draw is what a source takes: a date, a number or a UUID. In the original order of a template the
// number is how many names were taken before, and the step says which name it is.
type draw struct {
	date   mint.Date
	number uint64
	step   mint.Step
	uuid   uuid
}

// maker makes the names of a draw. A label without an identifier must not be used.
type maker interface {
	label(x draw) (Label, error)
}

// open returns the source of names by the namespace's present settings. The caller
// has the turn.
func (m *minter) open(ctx context.Context, v View) (source, error) {
	ns := v.Get(m.key)
	if ns == nil {
		return nil, stele.Errorf("mint", stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", m.key)
	}
	w := m.work.Load()
	if w == nil || w.settings != ns.Minter {
		made, err := m.newSource(v.Ancestors(ns), w)
		if err != nil {
			return nil, err
		}
		w = &work{ns.Minter, made}
		m.work.Store(w)
	}
	switch {
	case ns.IsSealed():
		return nil, stele.Errorf("mint", stele.ID{}, stele.Conflict, "mint.namespace-sealed", `names in {namespace} are made by another registry, {heir}, which it was handed over to; mint there: {address}`, m.key, ns.HandOver.Heir, ns.HandOver.Address)
	case ns.IsRead():
		return nil, stele.Errorf("mint", stele.ID{}, stele.Conflict, "mint.namespace-read-only", `{namespace} was taken over from {giver} for reading only, so names of it are made there`, m.key, ns.Adoptions[len(ns.Adoptions)-1].From)
	case ns.IsSilent():
		return nil, stele.Errorf("mint", stele.ID{}, stele.Conflict, "mint.namespace-silent", `{namespace} was taken over since {giver} fell silent, which may come back and make names of it; add a namespace below it for new names, or, if that registry has ended for good, say so with 'stele escrow ended'`, m.key, ns.Adoptions[len(ns.Adoptions)-1].From)
	case ns.Delegate != "":
		return nil, stele.Errorf("mint", stele.ID{}, stele.Conflict, "mint.namespace-delegated", `names in {namespace} are kept by another resolver, "{resolver}"; mint there`, m.key, ns.Delegate)
	}
	return w.source, w.source.load(ctx)
}

// newSource makes a source by the settings of the first of a namespace and its ancestors. It
// takes the place of an earlier one.
func (m *minter) newSource(ancestors []*stele.Namespace, earlier *work) (source, error) {
	ns := ancestors[0]
	var before source
	if earlier != nil {
		before = earlier.source
	}
	switch ns.Minter.Kind {
	case stele.MinterIBI, stele.MinterPILIN:
		e, _ := before.(*dates)
		return newDates(m.Minters, ns, e)
	case stele.MinterNOID:
		return newCounter(m.Minters, ancestors)
	case stele.MinterUUID:
		e, _ := before.(*uuids)
		return newUUIDs(m.Minters, ns, e)
	}
	return nil, stele.Errorf("mint", stele.ID{}, stele.Invalid, "namespace.no-minter", "the namespace {namespace} has no minter; set one", m.key)
}

// errEarly says that the time of the next name has not come yet.
var errEarly = stele.Messagef("mint.too-early", "it is not time yet")

// take takes a name. If its time has not come, take waits, or returns errEarly if wait is
// false. It returns the commit that must be made before the name is issued, if any. The
// caller has the turn.
//
// If all is well the last date is not after now, and the wait is the distance to
// the next date on the grid. A longer wait means that the clock stepped back: take waits
// for that only as long as the options say.
func (m *minter) take(ctx context.Context, arrived time.Time, mayWait bool) (source, draw, *stele.Commit, error) {
	waited, reloaded := time.Duration(0), false
	for {
		v, err := m.registry.View(ctx)
		if err != nil {
			return nil, draw{}, nil, err
		}
		src, err := m.open(ctx, v)
		if errors.Is(err, errMoved) && !reloaded {
			// What is known of the namespaces is not what the store has: settings
			// are just being changed, or were by another process.
			reloaded = true
			if err = m.registry.Reload(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, draw{}, nil, err
		}
		x, minters, wait, err := src.next(arrived)
		if err != nil || wait == 0 {
			m.logged = false
			var reserve *stele.Commit
			if minters != nil {
				reserve = &stele.Commit{Minters: minters, Cells: []stele.CellChange{v.Unchanged}}
			}
			return src, x, reserve, err
		}
		if !mayWait {
			return src, draw{}, nil, errEarly
		}
		if wait > src.step()+m.o.Wait-waited {
			err := src.late()
			if !m.logged {
				m.o.Log.ErrorContext(ctx, "no names are given", "namespace", m.key.String(), "err", err)
			}
			m.logged = true
			return nil, draw{}, nil, err
		}
		slept, err := m.sleep(ctx, wait, v.Replaced)
		if err != nil {
			return nil, draw{}, nil, err
		}
		if slept {
			waited += wait
		}
	}
}

// spins is how often sleep reads the clock before a wait below shortWait becomes a timer: a
// timer may oversleep by a millisecond, which is a thousand names at r = 1 microsecond.
const (
	spins     = 200
	shortWait = 20 * time.Microsecond
)

// sleep waits. It returns false if the namespaces changed meanwhile, since the settings that
// decide about the wait may have changed.
func (m *minter) sleep(ctx context.Context, wait time.Duration, changed <-chan struct{}) (bool, error) {
	if wait < shortWait {
		start := m.o.Now()
		for range spins {
			runtime.Gosched()
			if m.o.Now().Sub(start) >= wait {
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
		return false, stele.AsError("mint", ctx.Err())
	}
}

// interrupt takes the turn for a caller that changes the state of the minter. Done ends the
// turn, and makes the minter read its state from the store again.
func (m *minter) interrupt(ctx context.Context) (done func(), err error) {
	p, err := m.queue.join(true)
	if err != nil {
		return nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return func() {
		if w := m.work.Load(); w != nil {
			w.source.forget()
		}
		m.queue.leave()
	}, nil
}
