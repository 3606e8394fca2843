package registrar

import (
	"context"
	"time"
)

// askBriefly is how long it is waited for a store by who can do without it, and knows that
// it is away. That is believed for stayAway after the store has said so.
const (
	askBriefly = time.Second
	stayAway   = 30 * time.Second
)

// settle tells a source that what it asked for is committed. Where the store may be away
// later, it is looked up now whether the names that were reserved are registered: whoever
// is cut off gives them out to the end, and no others. That somebody registers one of
// them by hand meanwhile can't be seen then; it is refused to whoever registers it next.
//
// Dates are reserved for a moment, which is over before anybody notices that the store is
// away; so this is for numbers.
func (d *desk) settle(ctx context.Context, src source) {
	before, _ := src.(*counter)
	from := uint64(0)
	if before != nil {
		from = before.count // which is about to leave
	}
	src.settle()
	if before == nil || !d.o.Shared {
		return
	}
	to := before.state[before.mine].given
	labels := make([]Label, 0, to-from)
	for n := from; n < to; n++ {
		label, err := before.names.label(draw{number: n})
		if err != nil {
			return
		}
		if label.ID.IsValid() {
			labels = append(labels, label)
		}
	}
	if free, err := d.areFree(ctx, labels); free && err == nil {
		before.names.free.Store(&span{from, to})
	}
}

// foreseen reports whether it was looked up, when they were reserved, that all names of
// draws are free.
func foreseen(made maker, draws []draw) bool {
	m, ok := made.(*seriesMaker)
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
