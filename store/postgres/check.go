package postgres

import (
	"maps"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// state is what is kept, as far as a group of commits is concerned with it: what was read
// of the database, or what the group sets. In the latter a value may be nil, for none.
type state struct {
	names      map[string]*named // by key
	namespaces map[string]*namespaceEntry
	minters    map[string]*swap // their values are in after
	cells      map[string]*swap
	counts     map[string]uint64 // by key of the namespace; what the group sets is added to that
}

func newState() *state {
	return &state{
		names: make(map[string]*named), namespaces: make(map[string]*namespaceEntry),
		minters: make(map[string]*swap), cells: make(map[string]*swap), counts: make(map[string]uint64),
	}
}

func (st *state) clear() {
	clear(st.names)
	clear(st.namespaces)
	clear(st.minters)
	clear(st.cells)
	clear(st.counts)
}

// named is what stands under a name.
type named struct {
	owner   string // the key of the record
	full    []byte // of the name
	version uint64 // of the record, if the name is its identifier
	body    []byte // of the record; nil if it was not read
	entry   *entry // if a commit of the group set it
}

// tx is one commit while its conditions are checked, against the database as it was read
// and what the commits of the group before it set.
type tx struct {
	have  *state // of the database
	group *state
	own   *state

	past           []past  // versions that are superseded
	pastNamespaces []past  // of namespaces
	withheld       []label // records that withhold something from now on
	erased         []erasure
	changes        []feedRow
}

// past is a row of the history, of records or namespaces.
type past struct {
	key     string
	version uint64
	body    []byte
	at      []byte // its time, as stele.AppendTimeKey has it; nil for a namespace
}

// feedRow is a row of the change feed before it has a number.
type feedRow struct {
	stele.Change
	name    []byte
	space   bool
	counted []byte // see countedValue
	zones   []string
}

func (t *tx) reset() {
	t.own.clear()
	t.past, t.pastNamespaces, t.changes = t.past[:0], t.pastNamespaces[:0], t.changes[:0]
	t.withheld, t.erased = t.withheld[:0], t.erased[:0]
}

func (t *tx) name(key string) *named {
	if n, ok := t.own.names[key]; ok {
		return n
	}
	if n, ok := t.group.names[key]; ok {
		return n
	}
	return t.have.names[key]
}

// accept makes the commit a part of the group.
func (t *tx) accept() {
	maps.Copy(t.group.names, t.own.names)
	maps.Copy(t.group.namespaces, t.own.namespaces)
	maps.Copy(t.group.minters, t.own.minters)
	maps.Copy(t.group.cells, t.own.cells)
	for key, n := range t.own.counts {
		t.group.counts[key] += n
	}
}

// putRecord checks and sets a version of a record. A first version that is refused has set
// nothing, so that an ingest can go on without it.
func (t *tx) putRecord(e *entry) error {
	have := t.name(e.key)
	var err error
	switch {
	case have == nil && e.version == 1:
		err = t.putFirst(e)
	case have == nil:
		err = late(e, 0)
	case have.owner != e.key:
		err = t.taken(e, e.id, have)
	case e.version != have.version+1:
		err = late(e, have.version)
	default:
		err = t.putNext(e, have)
	}
	if err != nil {
		return err
	}
	t.own.names[e.key] = &named{owner: e.key, full: full(e.name), version: e.version, body: e.body, entry: e}
	row := feedRow{Change: stele.Change{ID: e.id, Version: e.version}, name: e.name, zones: e.zones}
	row.counted = countedValue(e.counted.Namespace, e.countedAliases)
	t.changes = append(t.changes, row)
	return nil
}

// putFirst checks and sets all of a new record but the record itself.
func (t *tx) putFirst(e *entry) error {
	for _, alias := range e.aliases {
		if have := t.name(alias.key); have != nil {
			return t.takenLabel(e, alias, have)
		}
	}
	if err := t.count(e, nil); err != nil {
		return err
	}
	for _, alias := range e.aliases {
		t.own.names[alias.key] = &named{owner: e.key, full: full(alias.name)}
	}
	return nil
}

// putNext checks and sets all of a further version but the version itself.
func (t *tx) putNext(e *entry, have *named) error {
	before, err := have.record()
	if err != nil {
		return refuse("commit", e.id, stele.Internal, "store.record-damaged", "the record that is kept is damaged ({cause}); verify the store", err)
	}
	if err := e.record.CheckFollows(before); err != nil {
		return err
	}
	old := labels(before)
	ours := make(map[string]bool, len(e.aliases))
	for _, alias := range e.aliases {
		ours[alias.key] = false
	}
	for _, alias := range old {
		if _, ok := ours[alias.key]; !ok {
			return refusal.AliasMissing(e.id, string(alias.name))
		}
		ours[alias.key] = true
	}
	for _, alias := range e.aliases {
		if ours[alias.key] {
			continue
		}
		if taken := t.name(alias.key); taken != nil {
			return t.takenLabel(e, alias, taken)
		}
		t.own.names[alias.key] = &named{owner: e.key, full: full(alias.name)}
	}
	if err := t.count(e, ours); err != nil {
		return err
	}
	t.past = append(t.past, past{e.key, have.version, have.body, stele.AppendTimeKey(nil, before.Modified)})
	t.withhold(e, before)
	return nil
}

// record returns the record that stands under its identifier.
func (n *named) record() (*stele.Record, error) {
	if n.entry != nil {
		return n.entry.record, nil
	}
	r := new(stele.Record)
	return r, binary.UnmarshalRecord(n.body, r)
}

// places returns those of a record as it is in the database.
func (n *named) places() ([]string, error) {
	var r stele.Record
	if err := binary.UnmarshalRecord(n.body, &r); err != nil {
		return nil, err
	}
	return placesOf(&r), nil
}

func (t *tx) takenLabel(e *entry, alias label, have *named) error {
	id, err := cutID(alias.name)
	if err != nil {
		return err
	}
	return t.taken(e, id, have)
}

// taken makes the error about a name that another record has, or that is not an identifier.
func (t *tx) taken(e *entry, name stele.ID, have *named) error {
	owner := have.owner
	if len(owner) > maxKey {
		owner = owner[:maxKey]
	}
	if k, err := cutNamespace([]byte(owner)); err == nil {
		owner = k.Prefix
	}
	return refusal.NameTaken(e.id, name.String(), owner)
}

// late makes the error about a version that does not follow the one that there is.
func late(e *entry, have uint64) error {
	return refusal.VersionDiffers("commit", e.id, e.version, have)
}

// count counts the names that a version adds, or none of them if one is beyond the quota of
// its namespace. The aliases that are true in ours are those of the version before.
func (t *tx) count(e *entry, ours map[string]bool) error {
	counts := make([]stele.NameCount, 0, 1+len(e.aliases))
	if e.counted.Namespace != (stele.NamespaceKey{}) {
		counts = append(counts, e.counted)
	}
	own := len(counts)
	if e.replayed {
		for _, space := range e.countedAliases {
			counts = append(counts, stele.NameCount{Namespace: space})
		}
	}
	for i, c := range e.aliasCounts {
		if !ours[e.aliases[i].key] && c.Namespace != (stele.NamespaceKey{}) {
			counts = append(counts, c)
		}
	}
	for i, c := range counts {
		under := string(key(namespaceName(c.Namespace)))
		if n := t.have.counts[under] + t.group.counts[under] + t.own.counts[under]; c.Quota > 0 && n >= c.Quota {
			for _, c := range counts[:i] {
				t.own.counts[string(key(namespaceName(c.Namespace)))]--
			}
			return refusal.QuotaReached(e.id, c.Namespace, c.Quota)
		}
		t.own.counts[under]++
	}
	e.countedAliases = nil
	for _, c := range counts[own:] {
		e.countedAliases = append(e.countedAliases, c.Namespace)
	}
	return nil
}

// putNamespace checks and sets a version of a namespace.
func (t *tx) putNamespace(n *namespaceEntry) error {
	have, ok := t.group.namespaces[n.key]
	if !ok {
		have = t.have.namespaces[n.key]
	}
	var version uint64
	if have != nil {
		version = have.version
	}
	if n.version != version+1 {
		return refusal.NamespaceVersionDiffers(n.space, n.version, version)
	}
	if have != nil {
		t.pastNamespaces = append(t.pastNamespaces, past{key: n.key, version: version, body: have.body})
	}
	t.own.namespaces[n.key] = n
	t.changes = append(t.changes, feedRow{Change: stele.Change{Namespace: n.space, Version: n.version}, name: n.name, space: true})
	return nil
}

// putMinter checks and sets the state of a minter.
func (t *tx) putMinter(m *swap) error {
	if !same(value(t.group.minters, t.have.minters, m.key), m.before) {
		return refusal.MinterChanged(string(m.name))
	}
	t.own.minters[m.key] = m
	return nil
}

// putCell checks and sets, or removes, a cell. An unchanged value is not written: it is
// only a condition of the commit.
func (t *tx) putCell(c *swap) error {
	have := value(t.group.cells, t.have.cells, c.key)
	if !same(have, c.before) {
		return refusal.CellChanged(string(c.name))
	}
	if !same(have, c.after) {
		t.own.cells[c.key] = c
	}
	return nil
}

// value is what a minter or cell has now; nil for nothing.
func value(set, have map[string]*swap, key string) []byte {
	if s, ok := set[key]; ok {
		return s.after
	}
	if s, ok := have[key]; ok {
		return s.after
	}
	return nil
}

// put checks and sets a whole request: all of it or, with an error, nothing.
func (t *tx) put(q *request) error {
	for _, seen := range q.seen {
		key, version := newLabel(seen.ID).key, uint64(0)
		if have := t.name(key); have != nil && have.owner == key {
			version = have.version
		}
		if version != seen.Version {
			return refusal.SeenDiffers(seen.ID, seen.Version, version)
		}
	}
	for i, e := range q.records {
		if q.ingest && q.invalid[i] != nil {
			continue
		}
		err := t.putRecord(e)
		if err != nil && !q.ingest {
			return err
		}
		if err != nil {
			q.refused[i] = err
		}
	}
	for _, n := range q.namespaces {
		if err := t.putNamespace(n); err != nil {
			return err
		}
	}
	for _, m := range q.minters {
		if err := t.putMinter(m); err != nil {
			return err
		}
	}
	for _, c := range q.cells {
		if err := t.putCell(c); err != nil {
			return err
		}
	}
	if q.ingest {
		return q.ingestAudit()
	}
	return nil
}
