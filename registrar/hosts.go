package registrar

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// hostCells is what the name of the cell with the hosts of a scheme begins with; the name
// of the scheme follows. The value is a list in JSON. It belongs to the registry, so that
// every program which opens it, a copy or a backup of it reads names alike.
const hostCells = "hosts "

// LearnHosts makes the schemes know the hosts that the registry keeps. A registry of an
// earlier program keeps none: there, the hosts are those of the records, and of the
// namespaces, that it has. A program that opens a registry calls it before it reads names.
func (r *Registrar) LearnHosts(ctx context.Context) error {
	for scheme := range r.schemes.All() {
		hosted, ok := scheme.(stele.HostScheme)
		if !ok {
			continue
		}
		kept, value, err := r.keptHosts(ctx, hosted)
		if err == nil && value == nil {
			kept, err = r.usedHosts(ctx, hosted)
		}
		if err != nil {
			return err
		}
		if err := hosted.AddHosts(kept...); err != nil {
			return refuse("read hosts", stele.ID{}, stele.Internal, "registry.hosts-unreadable", "the hosts of {scheme} names that the registry keeps can't be read ({cause}); restore a backup", hosted.Name(), err)
		}
	}
	return nil
}

// keptHosts returns the hosts in the cell of a scheme, and the cell's value, nil if there
// is none.
func (r *Registrar) keptHosts(ctx context.Context, scheme stele.HostScheme) (hosts []string, value []byte, err error) {
	value, err = r.store.Cell(ctx, hostCells+scheme.Name())
	if err != nil || value == nil {
		return nil, nil, tell("read hosts", err)
	}
	if err := json.Unmarshal(value, &hosts); err != nil {
		return nil, nil, refuse("read hosts", stele.ID{}, stele.Internal, "registry.hosts-unreadable", "the hosts of {scheme} names that the registry keeps can't be read ({cause}); restore a backup", scheme.Name(), err)
	}
	return hosts, value, nil
}

// usedHosts returns the hosts of names that are registered, and of namespaces. It looks
// at one record of each host.
func (r *Registrar) usedHosts(ctx context.Context, scheme stele.HostScheme) (hosts []string, err error) {
	for after := ""; ; {
		host := ""
		for rec, err := range r.store.Scan(ctx, scheme.Name(), "", after) {
			if err != nil {
				return nil, tell("read hosts", err)
			}
			host = scheme.HostOf(rec.ID)
			break
		}
		if host == "" {
			break
		}
		hosts = append(hosts, host)
		prefix := []byte(scheme.HostPrefix(host))
		prefix[len(prefix)-1]++ // the first text after all that begin so
		after = string(prefix)
	}
	for ns, err := range r.store.Namespaces(ctx) {
		if err != nil {
			return nil, tell("read hosts", err)
		}
		if id, err := stele.NewID(ns.Scheme, ns.Prefix); ns.Scheme == scheme.Name() && err == nil {
			if host := scheme.HostOf(id); host != "" && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts, nil
}

// Hosts returns the hosts whose names the schemes read, in order.
func (r *Registrar) Hosts() []string { return r.schemes.Hosts() }

// AddHosts adds hosts to those that the registry keeps, for good, and returns those that
// it did not keep before. Only an administrator may.
func (r *Registrar) AddHosts(ctx context.Context, hosts ...string) (added []string, err error) {
	const op = "add hosts"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	for scheme := range r.schemes.All() {
		if hosted, ok := scheme.(stele.HostScheme); ok {
			return r.addHosts(ctx, op, hosted, hosts)
		}
	}
	return nil, refuse(op, stele.ID{}, stele.Invalid, "registry.no-scheme-with-hosts", "no scheme has names under hosts")
}

func (r *Registrar) addHosts(ctx context.Context, op string, scheme stele.HostScheme, hosts []string) (added []string, err error) {
	before := scheme.Hosts()
	if err := scheme.AddHosts(hosts...); err != nil {
		return nil, refuse(op, stele.ID{}, stele.Invalid, "", "{cause}", err)
	}
	for attempt := 1; ; attempt++ {
		kept, value, err := r.keptHosts(ctx, scheme)
		if err != nil {
			return nil, err
		}
		if value == nil {
			if kept, err = r.usedHosts(ctx, scheme); err != nil {
				return nil, err
			}
		}
		// Those that only this process knows, by a flag, are not the registry's.
		next := slices.Concat(kept, slices.DeleteFunc(scheme.Hosts(), func(h string) bool {
			return slices.Contains(before, h) && !slices.ContainsFunc(hosts, func(asked string) bool { return strings.EqualFold(asked, h) })
		}))
		slices.Sort(next)
		next = slices.Compact(next)
		added = slices.DeleteFunc(slices.Clone(next), func(h string) bool { return slices.Contains(kept, h) })
		if len(added) == 0 && value != nil {
			return nil, nil
		}
		after, err := json.Marshal(next)
		if err != nil {
			return nil, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: hostCells + scheme.Name(), Before: value, After: after}}})
		if stele.KindOf(err) != stele.Conflict || attempt == 5 {
			return added, err
		}
	}
}

// addHosts notes the hosts in a cell of the registry that is replaced.
func (l *Legacy) addHosts(cell stele.Cell) error {
	scheme, hosts := strings.TrimPrefix(cell.Name, hostCells), []string(nil)
	if err := json.Unmarshal(cell.Value, &hosts); err != nil {
		return refuse("restore", stele.ID{}, stele.Internal, "restore.replaced-hosts-unreadable", "the hosts of {scheme} names of the registry that is replaced can't be read: {cause}", scheme, err)
	}
	if l.Hosts == nil {
		l.Hosts = make(map[string][]string)
	}
	l.Hosts[scheme] = hosts
	return nil
}

// restoreHosts adds the hosts of the registry that is replaced to those of the restored
// one. None is ever removed.
func (r *Registrar) restoreHosts(ctx context.Context, hosts map[string][]string) error {
	for scheme := range r.schemes.All() {
		hosted, ok := scheme.(stele.HostScheme)
		if !ok || len(hosts[scheme.Name()]) == 0 {
			continue
		}
		if _, err := r.addHosts(ctx, "restore", hosted, hosts[scheme.Name()]); err != nil {
			return err
		}
	}
	return nil
}
