package minting

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// counter counts the names of a NOID template, durably. One caller uses it at a
// time. A block of names is committed as given before the first of them is issued; a crash
// skips the rest.
type counter struct {
	timeless
	store    Reader
	schemes  *stele.Schemes
	ns       *stele.Namespace
	above    []*stele.Namespace
	template *template
	size     int

	loaded bool
	before []byte
	state  TemplateStates
	mine   int    // the index of this template in state
	count  uint64 // names that were issued or skipped
	names  *templateMaker

	pending TemplateStates

	block        originalBlock // in the original order: what is reserved
	pendingBlock originalBlock
}

func newCounter(ms *Minters, ancestors []*stele.Namespace) (*counter, error) {
	ns := ancestors[0]
	names, err := templateOf(ms.schemes, ns)
	if err != nil {
		return nil, err
	}
	return &counter{store: ms.store, schemes: ms.schemes, ns: ns, above: ancestors[1:], template: names, size: ms.o.BlockSize}, nil
}

func (c *counter) burst() int { return c.size }

// load reads how many names are given. It also reads the states of other templates of the
// same prefix, and of prefixes above it, since they may have issued names of this one.
func (c *counter) load(ctx context.Context) error {
	if c.loaded {
		return nil
	}
	data, state, err := c.read(ctx, c.ns.Key())
	if err != nil {
		return err
	}
	c.before, c.names = data, &templateMaker{template: c.template}
	c.state, c.mine = state.with(c.ns.Minter)
	c.count = max(c.count, c.state[c.mine].Given) // more, if some were skipped
	if c.template.original != nil {
		walk, err := c.state[c.mine].Subcounters()
		if err != nil {
			return err
		}
		c.block = originalBlock{walk: walk, from: c.count}
	}
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

func (c *counter) read(ctx context.Context, key stele.NamespaceKey) ([]byte, TemplateStates, error) {
	data, state, err := readMinter(ctx, "mint", c.store, key)
	return data, state.Templates, err
}

func (c *counter) other(ns *stele.Namespace, e TemplateState) error {
	s, err := newTemplate(c.schemes, ns, e)
	if err != nil {
		return err
	}
	other := issued{template: s, count: e.Given}
	if s.original != nil {
		if other.walk, err = e.Subcounters(); err != nil {
			return err
		}
	}
	c.names.others = append(c.names.others, other)
	return nil
}

func (c *counter) forget() { c.loaded = false }

// next takes a number, and returns what is to be committed before its name is issued.
func (c *counter) next(time.Time) (draw, []stele.MinterState, time.Duration, error) {
	mine := c.state[c.mine]
	if mine.Shut {
		return draw{}, nil, 0, stele.Errorf("mint", stele.ID{}, stele.Conflict,
			"mint.counter-from-backup", "the counter of {namespace} came from a backup or from another system, and names may have been given since; skip it ahead first", c.ns.Key())
	}
	if c.count < mine.Given {
		d := c.at(c.count)
		c.count++
		return d, nil, 0, nil
	}
	c.pending = append(TemplateStates(nil), c.state...)
	d := draw{number: c.count}
	var err error
	if c.template.original != nil {
		d, err = c.reserveOriginal()
	} else {
		err = c.reserve()
	}
	if err != nil {
		return draw{}, nil, 0, err // used up
	}
	return d, []stele.MinterState{{Name: StateName(c.ns.Key()), Before: c.before, After: c.pending.Bytes()}}, 0, nil
}

// reserve makes a block of names pending.
func (c *counter) reserve() error {
	if _, err := c.template.text(draw{number: c.count}); err != nil {
		return err
	}
	given := c.count + c.template.block(c.size)
	if total, bounded := c.template.total(); bounded {
		given = min(given, total)
	}
	c.pending[c.mine].Given = given
	return nil
}

// reserveOriginal makes a block of names in the original order pending, and returns the first.
func (c *counter) reserveOriginal() (draw, error) {
	block, err := c.block.next(c.count, c.template.block(c.size))
	if err != nil {
		return draw{}, err
	}
	c.pendingBlock = block
	mine := &c.pending[c.mine]
	mine.Given, mine.Counters = block.walk.Given(), string(block.walk.AppendText(nil))
	return draw{number: c.count, step: block.steps[0]}, nil
}

// at returns the draw of a number that is reserved.
func (c *counter) at(number uint64) draw {
	d := draw{number: number}
	if c.template.original != nil {
		d.step = c.block.steps[number-c.block.from]
	}
	return d
}

func (c *counter) settle() {
	c.state, c.before = c.pending, c.pending.Bytes()
	c.block = c.pendingBlock
	c.count++
}

func (c *counter) skip(d draw) { c.count = max(c.count, d.number+1) }

func (c *counter) maker() maker { return c.names }

// templateMaker makes the names of numbers. Only free changes.
type templateMaker struct {
	template *template
	others   []issued
	free     atomic.Pointer[span] // numbers whose names were not registered when they were reserved
}

// span is the numbers from one to the one before another.
type span struct{ from, to uint64 }

// label returns the name of a number, and an empty label if it was issued before.
func (m *templateMaker) label(d draw) (Label, error) {
	id, err := m.template.id(d)
	if err != nil || issuedBefore(m.others, id) {
		return Label{}, err
	}
	return Label{ID: id}, nil
}
