package registrar

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// MinterStatus is how far the minter of a namespace is.
type MinterStatus struct {
	// Last is the date up to which dates are taken; the zero time if none is, or
	// names are not made of dates.
	Last time.Time
	// Given is how many names of the template are given, as far as is known after
	// a crash, and Total how many there are; 0 if without end.
	Given, Total uint64
	// Shut is set after a restore, until [Registrar.SkipCounter].
	Shut bool
}

// MinterStatus returns how far the minter of a namespace is.
func (r *Registrar) MinterStatus(ctx context.Context, key stele.NamespaceKey) (status MinterStatus, err error) {
	ns, err := r.Namespace(ctx, key)
	if err != nil {
		return status, err
	}
	made, err := dateNames(r.schemes, ns)
	if err != nil {
		return status, err
	}
	for _, key := range made.keys(ns) {
		_, state, err := r.minterState(ctx, key)
		if err != nil {
			return status, err
		}
		if state.date != nil && state.date.issued && state.date.last.Time().After(status.Last) {
			status.Last = state.date.last.Time()
		}
	}
	if ns.Minter.Kind != stele.MinterNOID {
		return status, nil
	}
	series, err := newSeries(r.schemes, ns)
	if err != nil {
		return status, err
	}
	status.Total, _ = series.plain.Total()
	_, state, err := r.minterState(ctx, key)
	if err != nil {
		return status, err
	}
	if i := state.noid.find(ns.Minter.Template, ns.Minter.Seed); i >= 0 {
		status.Given, status.Shut = state.noid[i].given, state.noid[i].shut
	}
	return status, nil
}

// SkipCounter sets the counter of a namespace's template ahead, so that the next
// name is the one of that number, and opens it if a restore shut it. Only an
// administrator may. It never goes back: Conflict.
func (r *Registrar) SkipCounter(ctx context.Context, key stele.NamespaceKey, to uint64) error {
	const op = "skip counter"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	ns, err := r.Namespace(ctx, key)
	if err != nil {
		return err
	}
	if ns.Minter.Kind != stele.MinterNOID {
		return refuse(op, stele.ID{}, stele.Invalid, "the names of %s are not made by a template", key)
	}
	done, err := r.desk(key).interrupt(ctx)
	if err != nil {
		return err
	}
	defer done()
	m, err := r.skipTo(ctx, ns, to)
	if err != nil {
		return err
	}
	return r.apply(ctx, op, &stele.Commit{Minters: []stele.MinterState{m}})
}

// skipTo returns the state in which so many names of the template are given.
func (r *Registrar) skipTo(ctx context.Context, ns *stele.Namespace, to uint64) (stele.MinterState, error) {
	data, state, err := r.minterState(ctx, ns.Key())
	if err != nil {
		return stele.MinterState{}, err
	}
	next, i := state.noid.with(ns.Minter)
	if to < next[i].given {
		return stele.MinterState{}, refuse("skip counter", stele.ID{}, stele.Conflict,
			"%d names of %s are given; the counter only goes ahead", next[i].given, ns.Key())
	}
	next[i].given, next[i].shut = to, false
	return stele.MinterState{Name: stateName(ns.Key()), Before: data, After: next.bytes()}, nil
}

// AfterRestore makes minters safe whose states came from a backup: names may have
// been given since. Dates go on from now, or from where the backup had them if that
// is later. Templates are shut until an administrator skips their counters ahead;
// see [Registrar.SkipCounter]. It is to be called before the restored store is
// used, and may be called again.
//
// It can't know of a namespace that was added after the backup. If one with a
// template is added again, skip its counter before its first name is made.
func (r *Registrar) AfterRestore(ctx context.Context) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	now, err := mint.DateOf(r.o.Now())
	if err != nil {
		return refuse(op, stele.ID{}, stele.Unavailable, "the clock is wrong: %w; set it", err)
	}
	states := make(map[string][2][]byte) // before and after, by name
	for m, err := range r.store.MinterStates(ctx) {
		if err != nil {
			return tell(op, err)
		}
		if strings.HasPrefix(m.Name, bookmarkName("")) {
			continue
		}
		state, err := readState(m.Name, m.After)
		if err != nil {
			return err
		}
		states[m.Name] = [2][]byte{m.After, state.restored(now)}
	}
	if err := r.shutUnused(ctx, states); err != nil {
		return err
	}
	c := &stele.Commit{}
	for name, state := range states {
		if !bytes.Equal(state[0], state[1]) {
			c.Minters = append(c.Minters, stele.MinterState{Name: name, Before: state[0], After: state[1]})
		}
	}
	if len(c.Minters) == 0 {
		return nil
	}
	return r.apply(ctx, op, c)
}

// shutUnused shuts the templates of which the backup knows no name.
func (r *Registrar) shutUnused(ctx context.Context, states map[string][2][]byte) error {
	for ns, err := range r.store.Namespaces(ctx) {
		if err != nil {
			return tell("restore", err)
		}
		if ns.Minter.Kind != stele.MinterNOID {
			continue
		}
		name := stateName(ns.Key())
		state, err := readState(name, states[name][1])
		if err != nil {
			return err
		}
		next, i := state.noid.with(ns.Minter)
		next[i].shut = true
		states[name] = [2][]byte{states[name][0], next.bytes()}
	}
	return nil
}

// restored returns the state as it is to be after a restore. A date that was never
// issued as far as the backup knows may have been since.
func (s minterState) restored(now mint.Date) []byte {
	if s.date != nil {
		d := *s.date
		if !d.issued || d.last.Compare(now) < 0 {
			d.last, d.issued = now, true
		}
		return d.bytes()
	}
	shut := append(noidState(nil), s.noid...)
	for i := range shut {
		shut[i].shut = true
	}
	return shut.bytes()
}
