package copy

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/stele-id/stele"
)

// keptAtOnce is how many minters or cells are committed at once.
const keptAtOnce = 500

// errEnough ends pairs early.
var errEnough = stele.Messagef("copy.comparison-ended-early", "enough")

// pairs goes through two lists that are in order, and calls visit with what both have at
// a place: one of both may be nil.
func pairs[T any](a, b iter.Seq2[T, error], order func(a, b T) int, visit func(a, b *T) error) error {
	nextA, stopA := iter.Pull2(a)
	defer stopA()
	nextB, stopB := iter.Pull2(b)
	defer stopB()
	x, errA, okA := nextA()
	y, errB, okB := nextB()
	for okA || okB {
		switch {
		case okA && errA != nil:
			return errA
		case okB && errB != nil:
			return errB
		}
		left, right := x, y
		var l, r *T
		if okA && (!okB || order(left, right) <= 0) {
			l = &left
		}
		if okB && (!okA || order(left, right) >= 0) {
			r = &right
		}
		if err := visit(l, r); err != nil {
			return err
		}
		if l != nil {
			x, errA, okA = nextA()
		}
		if r != nil {
			y, errB, okB = nextB()
		}
	}
	return nil
}

func byMinter(a, b stele.MinterState) int { return cmp.Compare(a.Name, b.Name) }
func byCell(a, b stele.Cell) int          { return cmp.Compare(a.Name, b.Name) }

// copyMinters makes the target's states of minters equal to the source's.
func (c *Copier) copyMinters(ctx context.Context) error {
	next := new(stele.Commit)
	flush := func() error {
		commit := next
		next = new(stele.Commit)
		return c.To.Apply(ctx, commit)
	}
	err := pairs(c.From.MinterStates(ctx), c.To.MinterStates(ctx), byMinter, func(have, copied *stele.MinterState) error {
		if have == nil {
			return fail(stele.Conflict, "copy.minter-not-in-source", `the unfinished copy {copy} has a minter "{minter}", and {source} has not; copy into an empty place`, c.ToPlace, copied.Name, c.FromPlace)
		}
		m := stele.MinterState{Name: have.Name, After: have.After}
		if copied != nil {
			m.Before = copied.After
		}
		if copied == nil || !bytes.Equal(m.Before, m.After) {
			next.Minters = append(next.Minters, m)
		}
		if len(next.Minters) < keptAtOnce {
			return nil
		}
		return flush()
	})
	if err != nil || len(next.Minters) == 0 {
		return err
	}
	return flush()
}

// copyGenerations makes the copy one of the same generation: it has the same changes
// under the same numbers, so that version tokens and cursors stay valid.
func (c *Copier) copyGenerations(ctx context.Context) error {
	list, err := c.From.Generations(ctx)
	if err != nil {
		return err
	}
	have, err := c.To.Generations(ctx)
	if err != nil || slices.Equal(have, list) {
		return err
	}
	return c.To.SetGenerations(ctx, have.Last().ID, list)
}

// copyCells makes the target's cells equal to the source's, except the mark.
func (c *Copier) copyCells(ctx context.Context) error {
	next, size := new(stele.Commit), 0
	flush := func() error {
		commit := next
		next, size = new(stele.Commit), 0
		return c.To.Apply(ctx, commit)
	}
	err := pairs(c.From.Cells(ctx, "", ""), c.To.Cells(ctx, "", ""), byCell, func(have, copied *stele.Cell) error {
		var change stele.CellChange
		if copied != nil {
			change.Name, change.Before = copied.Name, copied.Value
		}
		if have != nil {
			change.Name, change.After = have.Name, have.Value
		}
		if change.Name == MarkCell || have != nil && copied != nil && bytes.Equal(have.Value, copied.Value) {
			return nil
		}
		next.Cells = append(next.Cells, change)
		if size += len(change.After); len(next.Cells) < keptAtOnce && size < commitBytes {
			return nil
		}
		return flush()
	})
	if err != nil || len(next.Cells) == 0 {
		return err
	}
	return flush()
}

func byZone(a, b stele.ZoneState) int { return cmp.Compare(a.Zone, b.Zone) }

// sameZone reports whether two zones have the same serial, for the same reason. Which
// changes the index has may differ: a secondary that has the zone from before a copy gets it whole.
func sameZone(a, b stele.ZoneState) bool {
	return a.Base == b.Base && a.Last == b.Last && a.Shut == b.Shut
}

// copyZones gives the zones of the copy the serials of the source's.
func (c *Copier) copyZones(ctx context.Context) error {
	next := new(stele.Commit)
	err := pairs(c.From.ZoneStates(ctx), c.To.ZoneStates(ctx), byZone, func(have, copied *stele.ZoneState) error {
		if have == nil {
			return fail(stele.Conflict, "copy.zone-not-in-source", `the unfinished copy {copy} has a zone "{zone}", and {source} has not; copy into an empty place`, c.ToPlace, copied.Zone, c.FromPlace)
		}
		raise := stele.ZoneRaise{Zone: have.Zone, Base: have.Base, Shut: have.Shut, Last: have.Last}
		if copied != nil {
			raise.Before = copied.Base
		}
		if copied == nil || !sameZone(*have, *copied) {
			next.Zones = append(next.Zones, raise)
		}
		return nil
	})
	for err == nil && len(next.Zones) > 0 {
		n := min(keptAtOnce, len(next.Zones))
		err = c.To.Apply(ctx, &stele.Commit{Zones: next.Zones[:n]})
		next.Zones = next.Zones[n:]
	}
	return err
}
