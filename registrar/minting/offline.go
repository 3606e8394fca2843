package minting

import (
	"context"
	"time"

	"github.com/stele-id/stele"
)

// A minter can issue names of a template that are reserved while the store is unavailable.
//
// briefWait bounds the wait for a store that is known to be unavailable when reserved names
// suffice. A minter takes it for unavailable for lostTime after the store has answered so.
const (
	briefWait = time.Second
	lostTime  = 30 * time.Second
)

// settle tells a source that what it asked for is committed. Where the store may become
// unavailable, settle looks up now whether the reserved names are registered: a process
// that is cut off issues those, and no others. It does not see then that a user registers
// one of them by hand meanwhile; the store refuses the later of both registrations.
//
// Dates are reserved for a moment that is shorter than it takes to notice that the store is
// unavailable; so this is for numbers.
func (m *minter) settle(ctx context.Context, src source) {
	before, _ := src.(*counter)
	from := uint64(0)
	if before != nil {
		from = before.count // which is about to be issued
	}
	src.settle()
	if before == nil || !m.o.Shared {
		return
	}
	to := before.state[before.mine].Given
	labels := make([]Label, 0, to-from)
	for n := from; n < to; n++ {
		label, err := before.names.label(before.at(n))
		if err != nil {
			return
		}
		if label.ID.IsValid() {
			labels = append(labels, label)
		}
	}
	if free, err := m.areFree(ctx, labels); free && err == nil {
		before.names.free.Store(&span{from, to})
	}
}

// wereFree reports whether all names of draws were free when they were reserved.
func wereFree(made maker, draws []draw) bool {
	m, ok := made.(*templateMaker)
	if !ok {
		return false
	}
	known := m.free.Load()
	if known == nil {
		return false
	}
	for _, x := range draws {
		if x.number < known.from || x.number >= known.to {
			return false
		}
	}
	return true
}

// allFree reports whether no name of the labels is registered. If the store is unavailable,
// it suffices that no name was registered when it was reserved. The store must have answered
// that it is unavailable: a store that is slow knows of names that a user registered by hand
// meanwhile.
func (m *minter) allFree(ctx context.Context, made maker, draws []draw, labels []Label) (bool, error) {
	if !wereFree(made, draws) {
		return m.areFree(ctx, labels)
	}
	known := m.o.Now().Sub(time.Unix(0, m.lost.Load())) < lostTime
	asked, cancel := ctx, context.CancelFunc(func() {})
	if known {
		asked, cancel = context.WithTimeout(ctx, briefWait)
	}
	defer cancel()
	free, err := m.areFree(asked, labels)
	if err == nil || stele.KindOf(err) != stele.Unavailable || ctx.Err() != nil {
		if err == nil {
			m.lost.Store(0)
		}
		return free, err
	}
	if asked.Err() == nil {
		m.lost.Store(m.o.Now().UnixNano()) // the store answered so itself
	}
	m.o.Log.WarnContext(ctx, "names are given out without the store, which is away", "namespace", m.key.String(), "names", len(labels))
	return true, nil
}
