package minting

import (
	"context"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// Progress is how far the minter of a namespace is in another registry, or in the original program. The zero
// Progress says nothing.
type Progress struct {
	// Given is how many names of the template are given, and Counters are the subcounters of the
	// original order as [mint.Subcounters.AppendText] writes them.
	Given    uint64
	Counters string

	// Last is the date up to which dates are taken; the zero time if none is. It has nanoseconds, so
	// a finer date is rounded up.
	Last time.Time

	// Earlier are the states of the other templates that the prefix has had, a line each, as the
	// store has them: the namespace may get one of them again.
	Earlier string
}

// IsZero reports whether p says nothing.
func (p Progress) IsZero() bool {
	return p.Given == 0 && p.Counters == "" && p.Last.IsZero() && p.Earlier == ""
}

// Progress returns how far the minter of a namespace is, for another registry that is to continue it.
func (ms *Minters) Progress(ctx context.Context, ns *stele.Namespace) (p Progress, err error) {
	keys, err := DatePrefixes(ms.schemes, ns)
	if err != nil {
		return p, err
	}
	for _, key := range keys {
		state, err := ms.State(ctx, key)
		if err != nil {
			return p, err
		}
		if d := state.Dates; d != nil && d.Issued && roundUp(d.Last).After(p.Last) {
			p.Last = roundUp(d.Last)
		}
	}
	state, err := ms.State(ctx, ns.Key())
	if err != nil {
		return p, err
	}
	current := -1
	if ns.Minter.Kind == stele.MinterNOID {
		if current = state.Templates.find(templateState(ns.Minter)); current >= 0 {
			p.Given, p.Counters = state.Templates[current].Given, state.Templates[current].Counters
		}
	}
	var earlier TemplateStates
	for i, e := range state.Templates {
		if i != current && e.Given > 0 {
			e.Shut = false // another registry shuts all of them
			earlier = append(earlier, e)
		}
	}
	if earlier != nil {
		p.Earlier = strings.TrimPrefix(string(earlier.Bytes()), noidMark+"\n")
	}
	return p, nil
}

// roundUp returns a date in nanoseconds, the next one if it is finer.
func roundUp(d mint.Date) time.Time {
	t := d.Time()
	if exact, err := mint.DateOf(t); err == nil && exact.Compare(d) < 0 {
		t = t.Add(time.Nanosecond)
	}
	return t
}

// maxProgressAhead is how far ahead of this clock the last date of another registry may be: clocks
// differ. A later one would keep the minter from making names until then.
const maxProgressAhead = 24 * time.Hour

// DatesFurther reports whether the dates of another registry are taken further than those of a namespace are here.
// Invalid if they are so far in the future that they can't be right.
func (ms *Minters) DatesFurther(ctx context.Context, op string, ns *stele.Namespace, p Progress) (bool, error) {
	if p.Last.IsZero() {
		return false, nil
	}
	if p.Last.After(ms.o.Now().Add(maxProgressAhead)) {
		return false, stele.Errorf(op, stele.ID{}, stele.Invalid, "mint.progress-in-future", "the last date of its minter, {last}, is in the future; set the clock, or correct the line", p.Last.Format(time.RFC3339Nano))
	}
	keys, err := DatePrefixes(ms.schemes, ns)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		state, err := ms.State(ctx, key)
		if err != nil {
			return false, err
		}
		if d := state.Dates; d == nil || !d.Issued || roundUp(d.Last).Before(p.Last) {
			return true, nil
		}
	}
	return false, nil
}

// AdvanceDates makes the dates of a namespace continue after those of another registry, and not before now: that
// registry may have issued dates since it was read. It makes no name meanwhile. The caller has made sure that
// the namespace may have these prefixes.
func (ms *Minters) AdvanceDates(ctx context.Context, op string, ns *stele.Namespace, p Progress) error {
	last := p.Last
	if now := ms.o.Now(); now.After(last) {
		last = now
	}
	to, err := mint.DateOf(last)
	if err != nil {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Reason(err)}
	}
	keys, err := DatePrefixes(ms.schemes, ns)
	if err != nil {
		return err
	}
	done, err := ms.minter(ns.Key()).interrupt(ctx)
	if err != nil {
		return err
	}
	defer done()
	var c stele.Commit
	for _, key := range keys {
		data, state, err := readMinter(ctx, op, ms.store, key)
		if err != nil {
			return err
		}
		next := DateState{}
		if state.Dates != nil {
			next = *state.Dates
		}
		if next.Issued && next.Last.Compare(to) >= 0 {
			continue
		}
		next.Last, next.Issued = to, true
		c.Minters = append(c.Minters, stele.MinterState{Name: StateName(key), Before: data, After: next.Bytes()})
	}
	if c.Minters == nil {
		return nil
	}
	return ms.registry.Apply(ctx, op, &c)
}

// earlierTemplates reads the states of earlier templates.
func (p Progress) earlierTemplates(op string) (list TemplateStates, err error) {
	if p.Earlier != "" && !list.read(strings.Split(p.Earlier, "\n")) {
		return nil, stele.Errorf(op, stele.ID{}, stele.Invalid, "mint.progress-unreadable", `"{text}" does not say how far earlier templates are; write a line for each: how many names are given, the seed and the template`, p.Earlier)
	}
	for _, e := range list {
		if _, err := mint.ParseTemplate(e.Template); err != nil {
			return nil, &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Reason(err)}
		}
		if e.Counters == "" {
			continue
		}
		if _, err := e.Subcounters(); err != nil {
			return nil, &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Reason(err)}
		}
	}
	return list, nil
}

// EarlierFurther reports whether an earlier template of a prefix is further in another registry than here.
func (ms *Minters) EarlierFurther(ctx context.Context, op string, key stele.NamespaceKey, p Progress) (bool, error) {
	list, err := p.earlierTemplates(op)
	if err != nil || list == nil {
		return false, err
	}
	state, err := ms.State(ctx, key)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if i := state.Templates.find(e); i < 0 || state.Templates[i].Given < e.Given {
			return true, nil
		}
	}
	return false, nil
}

// AdvanceEarlier makes the earlier templates of a prefix continue after those of another registry, and shuts those that were not
// known here, until [Minters.Skip].
func (ms *Minters) AdvanceEarlier(ctx context.Context, op string, key stele.NamespaceKey, p Progress) error {
	list, err := p.earlierTemplates(op)
	if err != nil {
		return err
	}
	return ms.changeTemplates(ctx, op, key, func(s State) (TemplateStates, error) {
		if s.Dates != nil {
			return nil, usedByDates(op, key)
		}
		return s.Templates.advance(list), nil
	})
}

func usedByDates(op string, key stele.NamespaceKey) error {
	return stele.Errorf(op, stele.ID{}, stele.Conflict, "mint.prefix-used-by-dates", "names under {prefix} are made of dates here; use another prefix", key)
}
