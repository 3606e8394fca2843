package postgres

import (
	"bytes"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// maxCommit is how much is committed at once. Callers have smaller limits of their own.
const maxCommit = 4 * stele.MaxKept

// entry is a version of a record as it will be kept. It is made by the goroutine of the
// caller, so that a committer only compares and copies.
type entry struct {
	id      stele.ID
	version uint64
	name    []byte
	key     string
	body    []byte
	aliases []label
	places  []string        // keys of its places, in order, each once
	counted stele.NameCount // how its identifier counts, if it is new
	// aliasCounts says for each of aliases how it counts; nil if none counts.
	aliasCounts []stele.NameCount
	// countedAliases are the namespaces for which new aliases count. Those of a replay are
	// given; otherwise the committer finds out which aliases are new.
	countedAliases []stele.NamespaceKey
	replayed       bool
	zones          []string      // that it touches
	record         *stele.Record // only when it was changed, and what it withholds, is read of it
}

// label is a name and its key.
type label struct {
	name []byte
	key  string
}

func newLabel(id stele.ID) label {
	name := nameOf(id)
	return label{name, string(key(name))}
}

// newEntry makes an entry of a record that was checked, or returns why it can't.
func newEntry(r *stele.Record, count stele.NamespaceCounter) (*entry, error) {
	own := newLabel(r.ID)
	e := &entry{id: r.ID, version: r.Version, name: own.name, key: own.key, aliases: labels(r), record: r}
	var err error
	if e.body, err = binary.MarshalRecord(r); err != nil {
		return nil, err
	}
	if len(e.body) > stele.MaxKept {
		return nil, refusal.RecordTooLarge(r.ID, len(e.body))
	}
	e.places = placesOf(r)
	if e.counted, e.aliasCounts, err = count.Count(r); err != nil {
		return nil, err
	}
	return e, nil
}

// countAs counts as another change did, without limit.
func (e *entry) countAs(made *stele.Change) {
	e.counted, e.aliasCounts = stele.NameCount{Namespace: made.Counted}, nil
	e.countedAliases, e.replayed = made.CountedAliases, true
}

// labels returns the aliases of a record.
func labels(r *stele.Record) []label {
	if len(r.Aliases) == 0 {
		return nil
	}
	list := make([]label, len(r.Aliases))
	for i, alias := range r.Aliases {
		list[i] = newLabel(alias)
	}
	return list
}

// placesOf returns the keys of the places at which a record has a target, in order, each
// once.
func placesOf(r *stele.Record) []string {
	var list []string
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.URL == "" {
			continue
		}
		list = append(list, string(key(placeOf(stele.Location{URL: t.URL}))))
		if host := t.Host(); host != "" {
			list = append(list, string(key(placeOf(stele.Location{Host: host}))))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// namespaceEntry is a version of a namespace as it will be kept.
type namespaceEntry struct {
	label
	space   stele.NamespaceKey
	version uint64
	body    []byte
}

func newNamespaceEntry(n *stele.Namespace) *namespaceEntry {
	name := namespaceName(n.Key())
	e := &namespaceEntry{label: label{name, string(key(name))}, space: n.Key(), version: n.Version}
	e.body = binary.MarshalNamespace(n)
	return e
}

// swap is a new value of something that has a name, a minter or a cell, and the value
// that it must have now.
type swap struct {
	label
	before, after []byte // nil for none
}

func newMinter(m *stele.MinterState) *swap {
	name := []byte(m.Name)
	return &swap{label{name, string(key(name))}, bytes.Clone(m.Before), bytes.Clone(m.After)}
}

func newCell(c *stele.CellChange) *swap {
	return &swap{label{[]byte(c.Name), c.Name}, bytes.Clone(c.Before), bytes.Clone(c.After)}
}

// same compares values of which nil means that there is none.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
