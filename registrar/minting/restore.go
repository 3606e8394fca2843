package minting

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// Status is how far the minter of a namespace is.
type Status struct {
	// Last is the date up to which dates are taken; the zero time if none is, or
	// names are not made of dates.
	Last time.Time
	// Given is how many names of the template are given, as far as is known after
	// a crash, and Total how many there are; 0 if the template is not bounded.
	Given, Total uint64
	// Shut is set after a restore, until [Minters.Skip].
	Shut bool
}

// Status returns how far the minter of a namespace is.
func (ms *Minters) Status(ctx context.Context, ns *stele.Namespace) (status Status, err error) {
	keys, err := DatePrefixes(ms.schemes, ns)
	if err != nil {
		return status, err
	}
	for _, key := range keys {
		state, err := ms.State(ctx, key)
		if err != nil {
			return status, err
		}
		if state.Dates != nil && state.Dates.Issued && state.Dates.Last.Time().After(status.Last) {
			status.Last = state.Dates.Last.Time()
		}
	}
	if ns.Minter.Kind != stele.MinterNOID {
		return status, nil
	}
	names, err := templateOf(ms.schemes, ns)
	if err != nil {
		return status, err
	}
	status.Total, _ = names.total()
	state, err := ms.State(ctx, ns.Key())
	if err != nil {
		return status, err
	}
	if i := state.Templates.find(templateState(ns.Minter)); i >= 0 {
		status.Given, status.Shut = state.Templates[i].Given, state.Templates[i].Shut
	}
	return status, nil
}

// Skip sets the counter of a namespace's template ahead, so that the next
// name is the one of that number, and opens it if a restore shut it. It never goes back:
// Conflict.
func (ms *Minters) Skip(ctx context.Context, op string, ns *stele.Namespace, to uint64) error {
	if ns.Minter.Kind != stele.MinterNOID {
		return stele.Errorf(op, stele.ID{}, stele.Invalid, "mint.not-by-template", "the names of {namespace} are not made by a template", ns.Key())
	}
	return ms.changeTemplates(ctx, op, ns.Key(), func(s State) (TemplateStates, error) {
		next, i := s.Templates.with(ns.Minter)
		if to < next[i].Given {
			return nil, stele.Errorf(op, stele.ID{}, stele.Conflict,
				"mint.counter-not-set-back", "{count} names of {namespace} are given; the counter only goes ahead", next[i].Given, ns.Key())
		}
		var err error
		if next[i], err = next[i].ahead(ctx, op, to); err != nil {
			return nil, err
		}
		next[i].Shut = false
		return next, nil
	})
}

// ShutTemplate shuts a template of a prefix whose names another registry may have
// given, until [Minters.Skip]. If it is known how far the template is there, it continues from there,
// unless it is as far here already: then nothing changes.
func (ms *Minters) ShutTemplate(ctx context.Context, op string, key stele.NamespaceKey, m stele.Minter, p Progress) error {
	if p.Counters != "" {
		e := templateState(m)
		e.Given, e.Counters = p.Given, p.Counters
		if _, err := e.Subcounters(); err != nil {
			return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Reason(err)}
		}
	}
	return ms.changeTemplates(ctx, op, key, func(s State) (TemplateStates, error) {
		if s.Dates != nil {
			return nil, usedByDates(op, key)
		}
		next, i := s.Templates.with(m)
		switch {
		case p.Given > next[i].Given:
			next[i].Given, next[i].Counters = p.Given, p.Counters
		case next[i].Shut || p.Given > 0:
			return nil, nil
		}
		next[i].Shut = true
		return next, nil
	})
}

// changeTemplates commits a change of the templates of a prefix, unless change returns nil.
// The minter issues no names meanwhile.
func (ms *Minters) changeTemplates(ctx context.Context, op string, key stele.NamespaceKey, change func(State) (TemplateStates, error)) error {
	done, err := ms.minter(key).interrupt(ctx)
	if err != nil {
		return err
	}
	defer done()
	data, state, err := readMinter(ctx, op, ms.store, key)
	if err != nil {
		return err
	}
	next, err := change(state)
	if err != nil || next == nil {
		return err
	}
	m := stele.MinterState{Name: StateName(key), Before: data, After: next.Bytes()}
	return ms.registry.Apply(ctx, op, &stele.Commit{Minters: []stele.MinterState{m}})
}

// Restored returns the states that make minters safe whose states came from a backup: names
// may have been issued since. Dates continue from now, or from where the backup had them if
// that is later. Templates, also those of which the backup knows no name, are shut until an
// administrator skips their counters ahead; see [Minters.Skip].
func Restored(op string, now mint.Date, backup iter.Seq2[stele.MinterState, error], all iter.Seq2[*stele.Namespace, error]) ([]stele.MinterState, error) {
	states := make(map[string][2][]byte) // before and after, by name
	for m, err := range backup {
		if err != nil {
			return nil, stele.AsError(op, err)
		}
		if IsBookmark(m.Name) {
			continue
		}
		state, err := ReadState(m.Name, m.After)
		if err != nil {
			return nil, err
		}
		states[m.Name] = [2][]byte{m.After, state.restored(now)}
	}
	if err := shutUnused(op, all, states); err != nil {
		return nil, err
	}
	var changed []stele.MinterState
	for name, state := range states {
		if !bytes.Equal(state[0], state[1]) {
			changed = append(changed, stele.MinterState{Name: name, Before: state[0], After: state[1]})
		}
	}
	return changed, nil
}

// shutUnused shuts the templates of which the backup knows no name.
func shutUnused(op string, all iter.Seq2[*stele.Namespace, error], states map[string][2][]byte) error {
	for ns, err := range all {
		if err != nil {
			return stele.AsError(op, err)
		}
		if ns.Minter.Kind != stele.MinterNOID {
			continue
		}
		name := StateName(ns.Key())
		state, err := ReadState(name, states[name][1])
		if err != nil {
			return err
		}
		next, i := state.Templates.with(ns.Minter)
		next[i].Shut = true
		states[name] = [2][]byte{states[name][0], next.Bytes()}
	}
	return nil
}

// restored returns the state as it is to be after a restore. A date that was never
// issued as far as the backup knows may have been since.
func (s State) restored(now mint.Date) []byte {
	if s.Dates != nil {
		d := *s.Dates
		if !d.Issued || d.Last.Compare(now) < 0 {
			d.Last, d.Issued = now, true
		}
		return d.Bytes()
	}
	shut := append(TemplateStates(nil), s.Templates...)
	for i := range shut {
		shut[i].Shut = true
	}
	return shut.Bytes()
}

// Advance returns the states that make minters continue after those of another store, such
// as the one that a backup replaces: the later of both dates counts, and the greater of both
// counters, which stays shut if it is. It adds the prefixes that only the other store has.
func (ms *Minters) Advance(ctx context.Context, op string, others iter.Seq2[stele.MinterState, error]) ([]stele.MinterState, error) {
	var changed []stele.MinterState
	for m, err := range others {
		if err != nil {
			return nil, stele.AsError(op, err)
		}
		if IsBookmark(m.Name) {
			continue
		}
		other, err := ReadState(m.Name, m.After)
		if err != nil {
			return nil, err
		}
		before, err := ms.store.MinterState(ctx, m.Name)
		if err != nil {
			return nil, stele.AsError(op, err)
		}
		own, err := ReadState(m.Name, before)
		if err != nil {
			return nil, err
		}
		if after := own.advance(other); after != nil && !bytes.Equal(before, after) {
			changed = append(changed, stele.MinterState{Name: m.Name, Before: before, After: after})
		}
	}
	return changed, nil
}

// advance returns the state after both; nil if the other one adds nothing.
func (s State) advance(other State) []byte {
	if other.Dates != nil {
		if s.Templates != nil {
			return nil // the prefix had another kind of minter since: names differ
		}
		own := DateState{}
		if s.Dates != nil {
			own = *s.Dates
		}
		if other.Dates.Issued && (!own.Issued || own.Last.Compare(other.Dates.Last) < 0) {
			own.Last, own.Issued = other.Dates.Last, true
		}
		return own.Bytes()
	}
	if s.Dates != nil {
		return nil
	}
	return s.Templates.advance(other.Templates).Bytes()
}

// advance returns the states after both. Templates that only the others have are shut.
func (s TemplateStates) advance(others TemplateStates) TemplateStates {
	next := append(TemplateStates(nil), s...)
	for _, e := range others {
		i := next.find(e)
		if i < 0 {
			e.Shut = true
			next = append(next, e)
			continue
		}
		if e.Given > next[i].Given {
			next[i].Given, next[i].Counters = e.Given, e.Counters
		}
	}
	return next
}

// Adopt returns the states that make minters continue after those of a registry that hands its namespaces over: the later of both
// dates counts, and the greater of both counters. A template is shut if it is so in one of them. Conflict if one of them made
// names of dates, and the other by a template.
func (ms *Minters) Adopt(ctx context.Context, op string, others []stele.MinterState) (changed []stele.MinterState, err error) {
	for _, m := range others {
		other, err := ReadState(m.Name, m.After)
		if err != nil {
			return nil, &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Reason(err)}
		}
		before, err := ms.store.MinterState(ctx, m.Name)
		if err != nil {
			return nil, stele.AsError(op, err)
		}
		own, err := ReadState(m.Name, before)
		if err != nil {
			return nil, err
		}
		if own.Templates.used() && other.Dates != nil || own.Dates != nil && (own.Dates.Issued || own.Dates.Holder != "") && other.Templates.used() {
			return nil, stele.Errorf(op, stele.ID{}, stele.Conflict, "mint.adopted-by-other-way", `the minter "{minter}" makes names of dates in one of the registries, and by a template in the other, and could repeat one`, m.Name)
		}
		if after := own.adopt(other); after != nil && !bytes.Equal(before, after) {
			changed = append(changed, stele.MinterState{Name: m.Name, Before: before, After: after})
		}
	}
	return changed, nil
}

// adopt returns the state after both; nil if the other one adds nothing.
func (s State) adopt(other State) []byte {
	if other.Dates != nil {
		return State{Dates: s.Dates}.advance(other)
	}
	if len(other.Templates) == 0 {
		return nil
	}
	next := append(TemplateStates(nil), s.Templates...)
	for _, e := range other.Templates {
		i := next.find(e)
		if i < 0 {
			next = append(next, e)
			continue
		}
		if next[i].Shut = next[i].Shut || e.Shut; e.Given > next[i].Given {
			next[i].Given, next[i].Counters = e.Given, e.Counters
		}
	}
	return next.Bytes()
}
