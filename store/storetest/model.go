package storetest

import (
	"bytes"
	"slices"

	"github.com/stele-id/stele"
)

// model is the simplest possible store: maps, and a list of changes. It predicts what a
// commit does, for the random check.
type model struct {
	versions   map[stele.ID][]*stele.Record // by identifier, the oldest first
	owners     map[stele.ID]stele.ID        // of all names
	namespaces map[stele.NamespaceKey]*stele.Namespace
	minters    map[string][]byte
	cells      map[string][]byte
	counts     map[stele.NamespaceKey]uint64
	changes    [][]stele.Change // of each commit, without numbers and times
}

func newModel() *model {
	return &model{
		versions:   make(map[stele.ID][]*stele.Record),
		owners:     make(map[stele.ID]stele.ID),
		namespaces: make(map[stele.NamespaceKey]*stele.Namespace),
		minters:    make(map[string][]byte),
		cells:      make(map[string][]byte),
		counts:     make(map[stele.NamespaceKey]uint64),
	}
}

// version returns the number of a record's current version, 0 if there is none.
func (m *model) version(id stele.ID) uint64 { return uint64(len(m.versions[id])) }

// current returns the record that has a name, or nil.
func (m *model) current(name stele.ID) *stele.Record {
	list := m.versions[m.owners[name]]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// records returns the current versions.
func (m *model) records() (list []*stele.Record) {
	for id := range m.versions {
		list = append(list, m.current(id))
	}
	return list
}

// faults returns the kinds of error with which a commit may be refused: one for
// each fault that it has. A commit without faults must succeed.
func (m *model) faults(c *stele.Commit) (kinds []stele.Kind) {
	fresh := make(map[stele.NamespaceKey]uint64)
	wanted := make(map[stele.ID]bool) // names that records of this commit have
	var before *stele.Record          // the version before of a new record that comes with its history; nil if this is not one
	for i, r := range c.Records {
		if before = previous(c.Records[:i], before, r); before != nil {
			kinds = append(kinds, m.laterFaults(before, r, wanted)...)
			for _, name := range r.Names() {
				if c.Counter == nil || m.owners[name] == r.ID || slices.Contains(before.Names(), name) {
					continue
				}
				key, quota := c.Counter(name)
				if fresh[key]++; quota > 0 && m.counts[key]+fresh[key] > quota {
					kinds = append(kinds, stele.Exhausted)
				}
			}
			continue
		}
		kinds = append(kinds, m.recordFaults(r)...)
		if slices.ContainsFunc(c.Records[:i], func(b *stele.Record) bool { return b.ID == r.ID }) {
			kinds = append(kinds, stele.Invalid)
		}
		for _, name := range r.Names() {
			if wanted[name] {
				kinds = append(kinds, stele.Conflict, stele.Invalid)
			}
			wanted[name] = true
		}
		for _, name := range m.newNames(r) {
			if c.Counter == nil {
				break
			}
			key, quota := c.Counter(name)
			if fresh[key]++; quota > 0 && m.counts[key]+fresh[key] > quota {
				kinds = append(kinds, stele.Exhausted)
			}
		}
	}
	for _, n := range c.Namespaces {
		var have uint64
		if old := m.namespaces[n.Key()]; old != nil {
			have = old.Version
		}
		if n.Version != have+1 {
			kinds = append(kinds, stele.Conflict)
		}
	}
	for _, s := range c.Minters {
		if have, ok := m.minters[s.Name]; ok != (s.Before != nil) || !bytes.Equal(have, s.Before) {
			kinds = append(kinds, stele.Conflict)
		}
	}
	return append(kinds, m.cellFaults(c.Cells)...)
}

// previous returns the version before r of a new record whose versions stand one after the other in a commit, from the first on;
// nil if r is not a later one of them. Earlier is what stands before r, and before what previous returned for the last of it.
func previous(earlier []*stele.Record, before, r *stele.Record) *stele.Record {
	if len(earlier) == 0 {
		return nil
	}
	last := earlier[len(earlier)-1]
	if last.ID != r.ID || r.Version != last.Version+1 || last.Version > 1 && before == nil {
		return nil
	}
	return last
}

// laterFaults are those of a later version of a new record that comes with its history. Wanted are the names that records of the
// commit have so far.
func (m *model) laterFaults(before, r *stele.Record, wanted map[stele.ID]bool) (kinds []stele.Kind) {
	for _, name := range r.Names() {
		if slices.Contains(before.Names(), name) {
			continue
		}
		if owner, taken := m.owners[name]; taken && owner != r.ID {
			kinds = append(kinds, stele.Conflict)
		}
		if wanted[name] {
			kinds = append(kinds, stele.Conflict, stele.Invalid)
		}
		wanted[name] = true
	}
	for _, name := range before.Names() {
		if !slices.Contains(r.Names(), name) {
			kinds = append(kinds, stele.Invalid)
		}
	}
	return kinds
}

// newNames returns the names that a version of a record adds.
func (m *model) newNames(r *stele.Record) []stele.ID {
	return slices.DeleteFunc(r.Names(), func(name stele.ID) bool { return m.owners[name] == r.ID })
}

// cellFaults are those of the cells of a commit.
func (m *model) cellFaults(list []stele.CellChange) (kinds []stele.Kind) {
	for i, c := range list {
		if have, ok := m.cells[c.Name]; ok != (c.Before != nil) || !bytes.Equal(have, c.Before) {
			kinds = append(kinds, stele.Conflict)
		}
		if slices.ContainsFunc(list[:i], func(b stele.CellChange) bool { return b.Name == c.Name }) {
			kinds = append(kinds, stele.Invalid)
		}
	}
	return kinds
}

// recordFaults are those of one record by itself.
func (m *model) recordFaults(r *stele.Record) (kinds []stele.Kind) {
	if r.Version != m.version(r.ID)+1 {
		kinds = append(kinds, stele.Conflict)
	}
	for _, name := range r.Names() {
		if owner, taken := m.owners[name]; taken && owner != r.ID {
			kinds = append(kinds, stele.Conflict)
		}
	}
	if m.version(r.ID) > 0 {
		for _, name := range m.current(r.ID).Names() {
			if !slices.Contains(r.Names(), name) {
				kinds = append(kinds, stele.Invalid)
			}
		}
	}
	return kinds
}

// log keeps the changes of one commit.
func (m *model) log(changes []stele.Change) { m.changes = append(m.changes, changes) }

// apply makes a commit that has no faults, and returns its changes.
func (m *model) apply(c *stele.Commit) (changes []stele.Change) {
	for _, r := range c.Records {
		change := stele.Change{ID: r.ID, Version: r.Version}
		for _, name := range m.newNames(r) {
			if c.Counter == nil {
				break
			}
			key, _ := c.Counter(name)
			m.counts[key]++
			if name == r.ID {
				change.Counted = key
			} else if key != (stele.NamespaceKey{}) {
				change.CountedAliases = append(change.CountedAliases, key)
			}
		}
		m.versions[r.ID] = append(m.versions[r.ID], r)
		for _, name := range r.Names() {
			m.owners[name] = r.ID
		}
		changes = append(changes, change)
	}
	for _, n := range c.Namespaces {
		m.namespaces[n.Key()] = n
		changes = append(changes, stele.Change{Namespace: n.Key(), Version: n.Version})
	}
	for _, s := range c.Minters {
		m.minters[s.Name] = s.After
	}
	for _, cell := range c.Cells {
		if cell.After == nil {
			delete(m.cells, cell.Name)
		} else {
			m.cells[cell.Name] = cell.After
		}
	}
	return changes
}

// pointing returns the identifiers of records that point at a location.
func (m *model) pointing(l stele.Location, after stele.ID) (ids []stele.ID) {
	for _, r := range m.records() {
		if r.ID.Compare(after) > 0 && slices.ContainsFunc(r.Targets, func(t stele.Target) bool {
			return t.URL == l.URL || l.URL == "" && t.Host() == l.Host
		}) {
			ids = append(ids, r.ID)
		}
	}
	slices.SortFunc(ids, stele.ID.Compare)
	return ids
}
