package mem

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/stele-id/stele"
	stored "github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// state is all that a store keeps at one moment. A holder only reads it; the put
// methods are for a copy that no other goroutine has seen yet. If one of them returns
// an error it has changed nothing.
type state struct {
	names      tree[stele.ID] // by nameKey: the record that has the name, as identifier or alias
	records    tree[*version] // by nameKey of the identifier: the newest version
	pointing   tree[stele.ID] // by locationKey and nameKey: records by what they point at
	namespaces tree[*version] // by nameKey of scheme and prefix: the newest version
	counts     tree[uint64]   // by nameKey of a namespace: how many records count there
	minters    tree[[]byte]   // by name; no state is nil
	cells      tree[[]byte]   // by name; no value is nil

	trail             trail                 // of audit entries
	zones             tree[stele.ZoneState] // by name, stele.EveryZone among them
	runs              tree[uint64]          // by runKey: the first change of the run
	namespaceVersions uint64                // sum of the versions of all namespaces

	seal string // why nothing more is written; "" if it is

	generations stele.Generations // never changed, only replaced

	// journal has all changes in order: the feed, and enough to make all of the above
	// again except minters and cells. States share its array: an entry is written
	// before any state that reaches so far is seen.
	journal []entry
}

// version is one version of a record or namespace, in binary form, so that no caller
// has a pointer into what is kept.
type version struct {
	number uint64
	body   []byte
	before *version
}

// entry is a change, and what it made.
type entry struct {
	stele.Change
	body []byte
}

// nameKey orders names by scheme, then by the bytes of their texts: no scheme's
// name has a zero byte.
func nameKey(scheme, text string) string { return scheme + "\x00" + text }

func idKey(id stele.ID) string { return nameKey(id.Scheme(), id.String()) }

func namespaceKey(k stele.NamespaceKey) string { return nameKey(k.Scheme, k.Prefix) }

// locationKey is what the keys of a location's entries begin with, and no
// others': its length stands before it.
func locationKey(at stele.Location) string {
	kind, text := "url", at.URL
	if text == "" {
		kind, text = "host", at.Host
	}
	return string(binary.BigEndian.AppendUint32([]byte(kind), uint32(len(text)))) + text
}

// pointers returns the keys under which a record is found in reverse.
func pointers(r *stele.Record) (keys []string) {
	for _, t := range r.Targets {
		keys = append(keys, locationKey(stele.Location{URL: t.URL})+idKey(r.ID))
		if host := t.Host(); host != "" {
			keys = append(keys, locationKey(stele.Location{Host: host})+idKey(r.ID))
		}
	}
	return keys
}

// checkSeen makes sure that records which the caller has read are as they were.
func (st *state) checkSeen(list []stele.SeenRecord) error {
	for _, seen := range list {
		newest, _ := st.records.get(idKey(seen.ID))
		if have := newest.version(); have != seen.Version {
			return refusal.SeenDiffers(seen.ID, seen.Version, have)
		}
	}
	return nil
}

// putRecord adds a version of a record. It counts what count says, for the identifier if the
// record is new and for the aliases that are.
func (st *state) putRecord(r *stele.Record, at time.Time, count counting) error {
	before, newest, err := st.checkVersion(r)
	if err != nil {
		return err
	}
	for _, name := range r.Names() {
		if owner, taken := st.names.get(idKey(name)); taken && (newest == nil || owner != r.ID) {
			return refusal.NameTaken(r.ID, name.String(), owner.String())
		}
	}
	body, err := stored.MarshalRecord(r)
	if err != nil {
		return err
	}

	next := *st
	change := stele.Change{ID: r.ID, Version: r.Version, At: at}
	if err := count(&next, &change, r, before); err != nil {
		return err
	}
	for _, name := range r.Names() {
		next.names = next.names.with(idKey(name), r.ID)
	}
	if r.Withheld.Erased > before.Withheld.Erased {
		if newest, err = next.erase(newest, r.Withheld.Erased); err != nil {
			return err
		}
	}
	next.records = next.records.with(idKey(r.ID), &version{r.Version, body, newest})
	for _, key := range pointers(before) {
		next.pointing = next.pointing.without(key)
	}
	for _, key := range pointers(r) {
		next.pointing = next.pointing.with(key, r.ID)
	}
	next.log(entry{change, body})
	*st = next
	return nil
}

// checkVersion checks that r is the next version of its record and has all names
// of the one before. It returns that one, decoded and as it is kept: an empty
// record and nil if r is new.
func (st *state) checkVersion(r *stele.Record) (*stele.Record, *version, error) {
	before := new(stele.Record)
	newest, _ := st.records.get(idKey(r.ID))
	if have := newest.version(); r.Version != have+1 {
		return nil, nil, refusal.VersionDiffers("commit", r.ID, r.Version, have)
	}
	if newest == nil {
		return before, nil, nil
	}
	if err := stored.UnmarshalRecord(newest.body, before); err != nil {
		return nil, nil, err
	}
	if err := r.CheckFollows(before); err != nil {
		return nil, nil, err
	}
	names := make(map[stele.ID]bool)
	for _, name := range r.Names() {
		names[name] = true
	}
	for _, name := range before.Names() {
		if !names[name] {
			return nil, nil, refusal.AliasMissing(r.ID, name.String())
		}
	}
	return before, newest, nil
}

// erase returns the versions of a record, of which those up to a number are entries only.
// The journal has the entries too: it is copied, since other states share its array.
func (st *state) erase(newest *version, upTo uint64) (*version, error) {
	entries := make(map[uint64][]byte)
	var id stele.ID
	var copied func(v *version) (*version, error)
	copied = func(v *version) (*version, error) {
		if v == nil {
			return nil, nil
		}
		before, err := copied(v.before)
		if err != nil || v.number > upTo {
			return &version{v.number, v.body, before}, err
		}
		r, err := v.record()
		if err != nil {
			return nil, err
		}
		id = r.ID
		entries[v.number], err = stored.MarshalRecord(r.Entry())
		return &version{v.number, entries[v.number], before}, err
	}
	next, err := copied(newest)
	if err != nil {
		return nil, err
	}
	st.journal = slices.Clone(st.journal)
	for i := range st.journal {
		if e := &st.journal[i]; e.ID == id && e.Version <= upTo {
			e.body = entries[e.Version]
		}
	}
	return next, nil
}

// version returns the number of v, 0 if there is none.
func (v *version) version() uint64 {
	if v == nil {
		return 0
	}
	return v.number
}

// counting counts the names that a version of a record adds to those of the version before,
// and says so in the change.
type counting func(st *state, change *stele.Change, r, before *stele.Record) error

// countBy counts by a counter, which may be nil.
func countBy(counter stele.NamespaceCounter) counting {
	return func(st *state, change *stele.Change, r, before *stele.Record) error {
		if counter == nil {
			return nil
		}
		for i, name := range r.Names() {
			if name == before.ID || slices.Contains(before.Aliases, name) {
				continue
			}
			key, quota := counter(name)
			if err := st.addCount(r.ID, key, quota); err != nil {
				return err
			}
			switch {
			case i == 0:
				change.Counted = key
			case key != stele.NamespaceKey{}:
				change.CountedAliases = append(change.CountedAliases, key)
			}
		}
		return nil
	}
}

// countAs counts as another change did, without limit.
func countAs(made stele.Change) counting {
	return func(st *state, change *stele.Change, r, _ *stele.Record) error {
		change.Counted, change.CountedAliases = made.Counted, made.CountedAliases
		for _, key := range append([]stele.NamespaceKey{made.Counted}, made.CountedAliases...) {
			if err := st.addCount(r.ID, key, 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// addCount counts one more name for a namespace, the zero one being none.
func (st *state) addCount(id stele.ID, key stele.NamespaceKey, quota uint64) error {
	if key == (stele.NamespaceKey{}) {
		return nil
	}
	n, _ := st.counts.get(namespaceKey(key))
	if quota > 0 && n >= quota {
		return refusal.QuotaReached(id, key, quota)
	}
	st.counts = st.counts.with(namespaceKey(key), n+1)
	return nil
}

// putNamespace adds a version of a namespace.
func (st *state) putNamespace(n *stele.Namespace, at time.Time) error {
	newest, _ := st.namespaces.get(namespaceKey(n.Key()))
	if have := newest.version(); n.Version != have+1 {
		return refusal.NamespaceVersionDiffers(n.Key(), n.Version, have)
	}
	body := stored.MarshalNamespace(n)
	st.namespaces = st.namespaces.with(namespaceKey(n.Key()), &version{n.Version, body, newest})
	st.namespaceVersions++
	st.log(entry{Change: stele.Change{Namespace: n.Key(), Version: n.Version, At: at}, body: body})
	return nil
}

// putMinter replaces a minter's state.
func (st *state) putMinter(m stele.MinterState) error {
	have, ok := st.minters.get(m.Name)
	if ok != (m.Before != nil) || !bytes.Equal(have, m.Before) {
		return refusal.MinterChanged(m.Name)
	}
	st.minters = st.minters.with(m.Name, append([]byte{}, m.After...))
	return nil
}

// log gives a change its number.
func (st *state) log(e entry) {
	e.Seq = uint64(len(st.journal)) + 1
	st.journal = append(st.journal, e)
}
