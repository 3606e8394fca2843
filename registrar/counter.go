package registrar

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// counter counts the names of a NOID template, durably. One caller uses it at a
// time. The store is told that a block of names is given before the first of them
// leaves; a crash skips the rest.
type counter struct {
	timeless
	store   stele.Store
	schemes *stele.Schemes
	ns      *stele.Namespace
	above   []*stele.Namespace
	series  *series
	size    int

	loaded bool
	before []byte
	state  noidState
	mine   int    // which of state is this template's
	count  uint64 // names that have left, or were skipped
	names  *seriesMaker

	pending noidState
}

func newCounter(r *Registrar, chain []*stele.Namespace) (*counter, error) {
	ns := chain[0]
	series, err := newSeries(r.schemes, ns)
	if err != nil {
		return nil, err
	}
	return &counter{store: r.store, schemes: r.schemes, ns: ns, above: chain[1:], series: series, size: r.o.BlockSize}, nil
}

func (c *counter) burst() int { return c.size }

// load reads how many names are given. Another template of the same prefix, or of
// one above it, may have given some of this one's names: they are known then.
func (c *counter) load(ctx context.Context) error {
	if c.loaded {
		return nil
	}
	data, state, err := c.read(ctx, c.ns.Key())
	if err != nil {
		return err
	}
	c.before, c.names = data, &seriesMaker{series: c.series}
	c.state, c.mine = state.with(c.ns.Minter)
	c.count = max(c.count, c.state[c.mine].given) // more, if some were skipped
	for i, e := range state {
		if i != c.mine {
			if err := c.other(c.ns, e); err != nil {
				return err
			}
		}
	}
	for _, ns := range c.above {
		_, state, err := c.read(ctx, ns.Key())
		if err != nil {
			return err
		}
		for _, e := range state {
			if err := c.other(ns, e); err != nil {
				return err
			}
		}
	}
	c.loaded = true
	return nil
}

func (c *counter) read(ctx context.Context, key stele.NamespaceKey) ([]byte, noidState, error) {
	data, err := c.store.MinterState(ctx, stateName(key))
	if err != nil {
		return nil, nil, tell("mint", err)
	}
	state, err := readState(stateName(key), data)
	return data, state.noid, err
}

func (c *counter) other(ns *stele.Namespace, e seriesState) error {
	s, err := seriesOf(c.schemes, ns, e.template, e.seed)
	if err == nil {
		c.names.others = append(c.names.others, given{s, e.given})
	}
	return err
}

func (c *counter) forget() { c.loaded = false }

// next takes a number, and says what is to be committed before it leaves.
func (c *counter) next(time.Time) (draw, []stele.MinterState, time.Duration, error) {
	mine := c.state[c.mine]
	if mine.shut {
		return draw{}, nil, 0, refuse("mint", stele.ID{}, stele.Conflict,
			"the counter of %s came from a backup, and names may have been given since; skip it ahead first", c.ns.Key())
	}
	d := draw{number: c.count}
	if c.count < mine.given {
		c.count++
		return d, nil, 0, nil
	}
	if _, err := c.series.text(c.count); err != nil {
		return draw{}, nil, 0, err // used up
	}
	given := c.count + c.series.block(c.size)
	if total, bounded := c.series.plain.Total(); bounded {
		given = min(given, total)
	}
	c.pending = append(noidState(nil), c.state...)
	c.pending[c.mine].given = given
	return d, []stele.MinterState{{Name: stateName(c.ns.Key()), Before: c.before, After: c.pending.bytes()}}, 0, nil
}

func (c *counter) settle() {
	c.state, c.before = c.pending, c.pending.bytes()
	c.count++
}

func (c *counter) skip(d draw) { c.count = max(c.count, d.number+1) }

func (c *counter) maker() maker { return c.names }

// seriesMaker makes the names of numbers. It does not change, but for what is known of
// them.
type seriesMaker struct {
	series *series
	others []given
	free   atomic.Pointer[span] // numbers whose names were not registered when they were reserved
}

// span is numbers, from one to one before another.
type span struct{ from, to uint64 }

// label returns the name of a number, and an empty label if it was given before.
func (m *seriesMaker) label(d draw) (Label, error) {
	id, err := m.series.id(d.number)
	if err != nil || givenBefore(m.others, id) {
		return Label{}, err
	}
	return Label{ID: id}, nil
}
