package registrar

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
)

// Legacy is what of the present registry must survive when a backup replaces it:
// decisions and numbers that the backup can't know. It is the one rule of all restores,
// of a folder, on a server and into a database: what has to be kept over a restore gets
// a field here, [ReadLegacy] reads it from the present registry, and [Registrar.Inherit]
// applies it to the restored one. The zero Legacy is that of a restore without a present
// registry. docs/bad-day.md has the table of what comes from where.
type Legacy struct {
	// Generations are those of the present registry, and Last its last change. There is
	// no present registry if Generations is empty.
	Generations stele.Generations
	Last        uint64

	// Minters are the states of the minters: how far they are.
	Minters []stele.MinterState

	// Access are the cells of users, tokens and keys; see [IsAccess].
	Access []stele.Cell

	// Zones are the states of the zones: which serials were used; see
	// [Registrar.RaiseRestoredZones].
	Zones []stele.ZoneState

	// Answers are what the secondaries of zones said when they were asked for the serials
	// of their copies: one for each that [Secondaries] returns. SerialFloor is a serial that
	// the operator knows to be as high as all of them; nil if it was not given. Neither is
	// read from the present registry.
	Answers     []stele.SecondaryAnswer
	SerialFloor *uint32

	// Hosts are, by scheme, the hosts whose names the registry reads. Those that were added
	// since the backup stay: what others wrote down under them still means the same.
	Hosts map[string][]string

	// Requests are the cells that remember idempotency keys.
	Requests []stele.Cell

	// Fixed are the cells that say which bytes a record stands for, of which the backup knows nothing: clients have
	// those bytes, and no others may be given to them.
	Fixed []stele.Cell

	// Namespaces are all namespaces: their owners, grants and signing keys survive.
	Namespaces []*stele.Namespace

	// Redactions are the records that were redacted since the backup, with the reason.
	Redactions map[stele.ID]string

	// AcceptTokens says that tokens are good although there is no present registry that
	// could know of those that were revoked. It is the administrator's decision.
	AcceptTokens bool

	trail *trailSpool // the audit trail; nil if there is none
}

// IsKnown reports whether there is a present registry that could be read.
func (l *Legacy) IsKnown() bool { return len(l.Generations) > 0 }

// ReadLegacy reads what must survive of the present registry, which the restored one will
// replace. The present one must not be written to from then on.
func ReadLegacy(ctx context.Context, present, restored stele.Store) (l Legacy, err error) {
	if l.Generations, err = present.Generations(ctx); err != nil {
		return Legacy{}, err
	}
	if l.Last, err = present.LastChange(ctx); err != nil {
		return Legacy{}, err
	}
	for m, err := range present.MinterStates(ctx) {
		if err != nil {
			return Legacy{}, err
		}
		l.Minters = append(l.Minters, m)
	}
	for cell, err := range present.Cells(ctx, "", "") {
		switch {
		case err != nil:
			return Legacy{}, err
		case IsAccess(cell):
			l.Access = append(l.Access, cell)
		case minting.IsRequest(cell):
			l.Requests = append(l.Requests, cell)
		case strings.HasPrefix(cell.Name, fixedDataCells):
			if have, err := restored.Cell(ctx, cell.Name); err != nil {
				return Legacy{}, err
			} else if have == nil {
				l.Fixed = append(l.Fixed, cell)
			}
		case strings.HasPrefix(cell.Name, hostCells):
			if err := l.addHosts(cell); err != nil {
				return Legacy{}, err
			}
		}
	}
	for z, err := range present.ZoneStates(ctx) {
		if err != nil {
			return Legacy{}, err
		}
		l.Zones = append(l.Zones, z)
	}
	for ns, err := range present.Namespaces(ctx) {
		if err != nil {
			return Legacy{}, err
		}
		l.Namespaces = append(l.Namespaces, ns)
	}
	since, err := l.common(ctx, restored)
	if err != nil {
		return Legacy{}, err
	}
	if l.Redactions, err = readRedactions(ctx, present, since); err != nil {
		return Legacy{}, err
	}
	l.trail, err = spoolTrail(ctx, present)
	return l, err
}

// NamespaceLister is the part of a [stele.Store] that has the secondaries of zones.
type NamespaceLister interface {
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
}

// Secondaries returns the secondaries of the zones that stores publish, by zone and address,
// each once. The caller asks those for their serials that are not in a state already: one
// without an address can't be asked.
func Secondaries(ctx context.Context, stores ...NamespaceLister) ([]stele.SecondaryAnswer, error) {
	var list []stele.SecondaryAnswer
	add := func(zone, at string, state stele.SecondaryState, why string) {
		list = append(list, stele.SecondaryAnswer{Zone: zone, At: at, State: state, Why: why})
	}
	for _, store := range stores {
		for ns, err := range store.Namespaces(ctx) {
			if err != nil {
				return nil, err
			}
			zones := []string{ns.Publication.Zone}
			if catalog := ns.Publication.Catalog; catalog != "" {
				zones = append(zones, catalog) // they have it too
			}
			for _, s := range ns.Publication.Secondaries {
				for _, at := range s.Notify {
					for _, zone := range zones {
						add(zone, at, "", "")
					}
				}
				if len(s.Notify) == 0 {
					add(ns.Publication.Zone, cmp.Or(s.Network, s.Key), stele.SecondaryUnasked, "its settings name no address at which it is told of changes (--notify)")
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b stele.SecondaryAnswer) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.At, b.At), cmp.Compare(a.State, b.State))
	})
	return slices.CompactFunc(list, func(a, b stele.SecondaryAnswer) bool { return a.Zone == b.Zone && a.At == b.At }), nil
}

// common returns the last change that the present registry and the restored one share: 0
// if they share none, or it is not known.
func (l *Legacy) common(ctx context.Context, restored stele.Store) (uint64, error) {
	backup, err := restored.Generations(ctx)
	if err != nil {
		return 0, err
	}
	last, err := restored.LastChange(ctx)
	if err != nil {
		return 0, err
	}
	for i := len(l.Generations) - 1; i >= 0; i-- {
		for j := range backup {
			if backup[j].ID == l.Generations[i].ID {
				return min(until(l.Generations, i, l.Last), until(backup, j, last)), nil
			}
		}
	}
	return 0, nil
}

// until returns the last change of the generation at i that a registry has, whose last
// change is given.
func until(list stele.Generations, i int, last uint64) uint64 {
	if i+1 < len(list) && list[i+1].Restored.Generation == list[i].ID {
		return list[i+1].Restored.Change
	} else if i+1 < len(list) {
		return 0 // a generation in between is not known
	}
	return last
}

// readRedactions returns the records that were redacted after a change.
func readRedactions(ctx context.Context, present stele.Store, since uint64) (map[stele.ID]string, error) {
	changed := make(map[stele.ID]uint64) // the first version that came after it
	for c, err := range present.Changes(ctx, since) {
		if err != nil {
			return nil, err
		}
		if first, ok := changed[c.ID]; c.ID.IsValid() && (!ok || c.Version < first) {
			changed[c.ID] = c.Version
		}
	}
	found := make(map[stele.ID]string)
	for id, first := range changed {
		for rec, err := range present.History(ctx, id) { // the newest comes first
			if err != nil {
				return nil, err
			}
			if rec.Version < first {
				break
			}
			if rec.Redacted {
				if found[id] = ""; rec.Tombstone != nil {
					found[id] = rec.Tombstone.Reason
				}
				break
			}
		}
	}
	return found, nil
}

// Inherit makes a registry that was just restored from a backup safe to use, before
// anything else uses it: it is in a new generation, its minters repeat no name that may
// have been given since the backup (see [Registrar.AfterRestore]), and what survives of
// the registry that it replaces is applied. If there is none, all tokens are shut until
// an administrator opens them, and passkeys and passwords are removed, unless AcceptTokens is set. All restores call it, once.
// Only an administrator may.
func (r *Registrar) Inherit(ctx context.Context, l Legacy) error {
	if err := administrate(ctx, "restore", stele.ID{}); err != nil {
		return err
	}
	// First of all: what is written here leaves entries in the trail.
	if err := r.inheritTrail(ctx, l.trail); err != nil {
		return err
	}
	if err := r.beginGeneration(ctx, &l); err != nil {
		return err
	}
	if err := r.AfterRestore(ctx); err != nil {
		return err
	}
	if err := r.AdvanceMinters(ctx, itemsOf(l.Minters)); err != nil {
		return err
	}
	if err := r.RestoreAccess(ctx, itemsOf(l.Access)); err != nil {
		return err
	}
	if err := r.restorePasskeys(ctx, &l); err != nil {
		return err
	}
	if !l.IsKnown() && !l.AcceptTokens {
		if err := r.shutTokens(ctx); err != nil {
			return err
		}
	}
	if err := r.restoreHosts(ctx, l.Hosts); err != nil {
		return err
	}
	if err := r.restoreMissing(ctx, l.Requests); err != nil {
		return err
	}
	if err := r.restoreMissing(ctx, l.Fixed); err != nil {
		return err
	}
	if err := r.restoreNamespaces(ctx, l.Namespaces); err != nil {
		return err
	}
	if err := r.restoreRedactions(ctx, l.Redactions); err != nil {
		return err
	}
	return r.RaiseRestoredZones(ctx, l)
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
