package registrar

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/publish/zonekey"
)

// maxZoneKeys bounds the keys of a zone, those that were removed too.
const maxZoneKeys = 1000

// ZoneKeys returns the cells with the keys of a namespace's zone, including private
// keys, to its owners and to administrators. Conflict if it is published in no zone.
func (r *Registrar) ZoneKeys(ctx context.Context, key stele.NamespaceKey) ([]stele.Cell, error) {
	const op = "show zone keys"
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	ns, err := s.zoneOwner(ctx, op, key)
	if err != nil {
		return nil, err
	}
	return r.zoneKeys(ctx, op, ns.Publication.Zone)
}

// SetZoneKeys changes the keys of a namespace's zone: change is called with their cells
// and returns what becomes of them, and again if another writer was faster. All of it
// is committed together with a new version of the namespace, since another zone is
// served from then on. Its owners may, and administrators. Conflict if the namespace is
// published in no zone.
func (r *Registrar) SetZoneKeys(ctx context.Context, key stele.NamespaceKey, change func(cells []stele.Cell) ([]stele.CellChange, error)) error {
	const op = "set zone keys"
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	for attempt := 1; ; attempt++ {
		s, err := r.latest(ctx)
		if err != nil {
			return err
		}
		c, err := r.zoneKeyCommit(ctx, op, s, key, change)
		if c == nil || err != nil {
			return err
		}
		changed, err := s.with(c.Namespaces[0])
		if err != nil {
			return err
		}
		err = r.apply(ctx, op, c)
		if err == nil {
			r.replace(s, changed)
			return nil
		}
		r.replace(s, nil)
		if !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// zoneKeyCommit returns the commit that changes keys; nil if nothing changes.
func (r *Registrar) zoneKeyCommit(ctx context.Context, op string, s *namespaceTree, key stele.NamespaceKey, change func([]stele.Cell) ([]stele.CellChange, error)) (*stele.Commit, error) {
	before, err := s.zoneOwner(ctx, op, key)
	if err != nil {
		return nil, err
	}
	secretKey, err := r.secretKey(ctx, op)
	if err != nil {
		return nil, err
	}
	zone := before.Publication.Zone
	cells, err := r.zoneKeys(ctx, op, zone)
	if err != nil {
		return nil, err
	}
	changes, err := change(cells)
	if err != nil || len(changes) == 0 {
		return nil, tell(op, err)
	}
	for _, c := range changes {
		id, ok := strings.CutPrefix(c.Name, zonekey.CellPrefix+zone+" ")
		if !ok || id == "" || strings.Contains(id, " ") {
			return nil, refuse(op, stele.ID{}, stele.Invalid, "dnssec-key.not-a-cell-of-zone", `"{cell}" is not a cell for a key of {zone}`, c.Name, zone)
		}
	}
	if len(cells)+len(changes) > maxZoneKeys {
		return nil, refuse(op, stele.ID{}, stele.Exhausted, "dnssec-key.too-many", "{zone} has had {count} keys, and may have no more", zone, len(cells))
	}
	next := cloneNamespace(before)
	r.stampNamespace(ctx, before, next)
	return underKey(&stele.Commit{Namespaces: []*stele.Namespace{next}, Cells: changes}, secretKey), nil
}

// zoneOwner returns a namespace that is published in a zone, if the caller may manage
// its keys.
func (s *namespaceTree) zoneOwner(ctx context.Context, op string, key stele.NamespaceKey) (*stele.Namespace, error) {
	who := auth.From(ctx)
	if !who.IsKnown() {
		return nil, refuse(op, stele.ID{}, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	sp := s.listable(ctx, s.Get(key))
	switch {
	case sp == nil:
		return nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
	case !auth.MayManage(who, s.Ancestors(sp)...):
		return nil, forbidSettings(op, who, sp.Namespace)
	case sp.Publication.Zone == "":
		return nil, refuse(op, stele.ID{}, stele.Conflict, "zone.none-of-namespace", "{namespace} is published in no zone; 'stele zone add' does that", key)
	}
	return sp.Namespace, nil
}

// zoneKeys reads the cells of a zone.
func (r *Registrar) zoneKeys(ctx context.Context, op, zone string) (list []stele.Cell, err error) {
	for c, err := range r.store.Cells(ctx, zonekey.CellPrefix+zone+" ", "") {
		if err != nil {
			return nil, tell(op, err)
		}
		list = append(list, c)
	}
	return list, nil
}
