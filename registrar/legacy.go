package registrar

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
)

// Legacy is what of the present registry must survive when a backup takes its place:
// decisions and numbers that the backup can't know. It is the one rule of all restores,
// of a folder, on a server and into a database: what has to be kept over a restore gets
// a field here, [ReadLegacy] reads it from the present registry, and [Registrar.Inherit]
// applies it to the restored one. The zero Legacy is that of a restore without a present
// registry.
type Legacy struct {
	// Minters are the states of the minters: how far they are.
	Minters []stele.MinterState

	// Access are the cells that say who may enter, and what proves it; see [IsAccess].
	Access []stele.Cell

	// Zones are the states of the zones: which serials were used; see
	// [Registrar.OvertakeZones].
	Zones []stele.ZoneState

	// Secondaries are, by zone, the addresses that are told of changes. Whoever restores
	// asks there which serials they have.
	Secondaries map[string][]string

	// Serials are, by zone, the serials that secondaries said they have, and SerialFloor is
	// one that the operator knows to be as high as all of them; nil if it was not given.
	// Neither is read from the present registry.
	Serials     map[string][]uint32
	SerialFloor *uint32

	trail *trailSpool // the audit trail; nil if there is none
}

// ReadLegacy reads what must survive of the registry in the store, which is replaced.
// The store must not be written to from then on.
func ReadLegacy(ctx context.Context, present stele.Store) (l Legacy, err error) {
	for m, err := range present.MinterStates(ctx) {
		if err != nil {
			return l, err
		}
		l.Minters = append(l.Minters, m)
	}
	for cell, err := range present.Cells(ctx, "", "") {
		if err != nil {
			return l, err
		}
		if IsAccess(cell) {
			l.Access = append(l.Access, cell)
		}
	}
	for z, err := range present.ZoneStates(ctx) {
		if err != nil {
			return l, err
		}
		l.Zones = append(l.Zones, z)
	}
	if l.Secondaries, err = Secondaries(ctx, present); err != nil {
		return l, err
	}
	l.trail, err = spoolTrail(ctx, present)
	return l, err
}

// Secondaries returns the addresses of the secondaries of each zone that a store publishes.
func Secondaries(ctx context.Context, store stele.Store) (map[string][]string, error) {
	list := make(map[string][]string)
	for ns, err := range store.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		for _, s := range ns.Publication.Secondaries {
			list[ns.Publication.Zone] = append(list[ns.Publication.Zone], s.Notify...)
		}
	}
	return list, nil
}

// Inherit makes a registry that was just restored from a backup safe to use, before
// anything else uses it: its minters repeat no name that may have been given since the
// backup (see [Registrar.AfterRestore]), and what survives of the registry that it
// replaces is applied. All restores call it, once; calling it again changes nothing
// more. Only an administrator may.
func (r *Registrar) Inherit(ctx context.Context, l Legacy) error {
	if err := administrate(ctx, "restore", stele.ID{}); err != nil {
		return err
	}
	// First of all: what is written here leaves entries in the trail.
	if err := r.inheritTrail(ctx, l.trail); err != nil {
		return err
	}
	if err := r.AfterRestore(ctx); err != nil {
		return err
	}
	if err := r.Overtake(ctx, itemsOf(l.Minters)); err != nil {
		return err
	}
	if err := r.OvertakeAccess(ctx, itemsOf(l.Access)); err != nil {
		return err
	}
	return r.OvertakeZones(ctx, l)
}

// itemsOf yields the items of a list.
func itemsOf[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}
