package postgres

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Limits of what is committed. Callers have smaller ones of their own.
const (
	maxBody   = 64 << 20 // bytes of a record in binary form
	maxCommit = 4 * maxBody
	maxName   = 1 << 16 // bytes of a minter's name, or a namespace's
)

// entry is a version of a record as it will be kept. It is made by the goroutine of the
// caller, so that a committer only compares and copies.
type entry struct {
	id      stele.ID
	version uint64
	name    []byte
	key     string
	body    []byte
	aliases []label
	places  []string // keys of its places, in order, each once
	counted stele.NamespaceKey
	quota   uint64
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

// newEntry makes an entry of a record, or says why it can be none.
func newEntry(r *stele.Record, count stele.NamespaceCounter) (*entry, error) {
	if err := checkRecord(r); err != nil {
		return nil, err
	}
	own := newLabel(r.ID)
	e := &entry{id: r.ID, version: r.Version, name: own.name, key: own.key, aliases: labels(r)}
	if repeats(e.key, e.aliases) {
		return nil, refuse("commit", r.ID, stele.Invalid, "a name is there twice; leave one out")
	}
	var err error
	if e.body, err = r.MarshalBinary(); err != nil {
		return nil, err
	}
	if len(e.body) > maxBody {
		return nil, refuse("commit", r.ID, stele.Invalid, "the record has %d bytes; at most %d are kept", len(e.body), maxBody)
	}
	e.places = placesOf(r)
	if count != nil && r.Version == 1 {
		e.counted, e.quota = count(r.ID)
		if err := checkSpace(e.counted); err != nil {
			return nil, err
		}
	}
	return e, nil
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

// repeats reports whether a key is among the others, or one of those is there twice.
func repeats(key string, others []label) bool {
	if len(others) == 0 {
		return false
	}
	seen := map[string]bool{key: true}
	for _, o := range others {
		if seen[o.key] {
			return true
		}
		seen[o.key] = true
	}
	return false
}

// checkRecord refuses what can be no version of a record.
func checkRecord(r *stele.Record) error {
	switch {
	case r == nil:
		return refuse("commit", stele.ID{}, stele.Invalid, "a record is nil; leave it out")
	case !r.ID.IsValid():
		return refuse("commit", stele.ID{}, stele.Invalid, "a record has no identifier; give it one")
	case r.Version == 0:
		return refuse("commit", r.ID, stele.Invalid, "the version is 0; the first is 1")
	}
	for _, name := range r.Names() {
		if _, err := stele.NewID(name.Scheme(), name.String()); err != nil {
			return refuse("commit", r.ID, stele.Invalid, "the name %.100q can't be kept: %w", name, err)
		}
	}
	return nil
}

// checkSpace refuses the name of a namespace that can't be kept. The zero one is none.
func checkSpace(k stele.NamespaceKey) error {
	switch {
	case strings.IndexByte(k.Scheme, 0) >= 0:
		return refuse("commit", stele.ID{}, stele.Invalid, "the scheme %.100q of a namespace has a zero byte; name one that there is", k.Scheme)
	case len(k.Scheme)+len(k.Prefix) > maxName:
		return refuse("commit", stele.ID{}, stele.Invalid, "the namespace %.100q has a name of more than %d bytes; shorten it", k.Prefix, maxName)
	}
	return nil
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

// spaceEntry is a version of a namespace as it will be kept.
type spaceEntry struct {
	label
	space   stele.NamespaceKey
	version uint64
	body    []byte
}

func newSpaceEntry(n *stele.Namespace) (*spaceEntry, error) {
	switch {
	case n == nil || n.Scheme == "":
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "a namespace has no scheme; name one")
	case n.Version == 0:
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "namespace %.100q has the version 0; the first is 1", n.Key())
	}
	if err := checkSpace(n.Key()); err != nil {
		return nil, err
	}
	name := spaceName(n.Key())
	e := &spaceEntry{label: label{name, string(key(name))}, space: n.Key(), version: n.Version}
	var err error
	e.body, err = n.MarshalBinary()
	return e, err
}

// swap is a new value of something that has a name, a minter or a cell, and the value
// that it must have now.
type swap struct {
	label
	before, after []byte // nil for none
}

func newMinter(m *stele.MinterState) (*swap, error) {
	if m.After == nil {
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "minter %.100q has no new state; a state is replaced, never removed", m.Name)
	}
	if len(m.Name) > maxName || len(m.After) > maxBody {
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "minter %.100q has a name of more than %d bytes, or a state of more than %d", m.Name, maxName, maxBody)
	}
	name := []byte(m.Name)
	return &swap{label{name, string(key(name))}, bytes.Clone(m.Before), bytes.Clone(m.After)}, nil
}

func newCell(c *stele.CellChange) (*swap, error) {
	switch {
	case c.Name == "":
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "a cell has no name; give it one")
	case len(c.Name) > stele.MaxCellName:
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "cell %.100q has a name of more than %d bytes; shorten it", c.Name, stele.MaxCellName)
	case len(c.After) > stele.MaxCell:
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "cell %.100q was to have %d bytes; at most %d are kept", c.Name, len(c.After), stele.MaxCell)
	}
	return &swap{label{[]byte(c.Name), c.Name}, bytes.Clone(c.Before), bytes.Clone(c.After)}, nil
}

// same compares values of which nil is none.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
