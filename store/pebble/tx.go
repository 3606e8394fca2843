package pebble

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/stele-id/stele"
	stored "github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// readFault is a failed read of the committer's.
type readFault struct {
	id  stele.ID
	err error
}

func (f *readFault) Error() string { return f.err.Error() }

// tx is one commit while its conditions are checked.
type tx struct {
	g       *group
	pending map[string][]byte // what the commit has set so far, of what is looked up
	writes  []keyValue        // in order; a nil value deletes
	late    [][]byte
	taken   [][]byte
	feed    []byte // entries of the change feed
	changes []int  // where each ends
	runs    stele.ZoneRuns
	repeats bool // some keys come several times
}

type keyValue struct{ key, value []byte }

// fewWrites is how many keys are written in the order in which they came. More are
// sorted: a memtable takes neighbours faster.
const fewWrites = 64

func (t *tx) reset(g *group) {
	if t.g == nil {
		t.g, t.pending, t.runs = g, make(map[string][]byte), make(stele.ZoneRuns)
	}
	clear(t.pending)
	t.writes, t.late, t.taken, t.feed, t.changes = t.writes[:0], t.late[:0], t.taken[:0], t.feed[:0], t.changes[:0]
}

// find returns what is kept under a key, with what group and commit have set; nil if
// nothing is. It is valid until the next call.
func (t *tx) find(id stele.ID, key []byte) ([]byte, error) {
	if value, ok := t.pending[string(key)]; ok {
		return value, nil
	}
	if value, ok := t.g.pending[string(key)]; ok {
		return value, nil
	}
	f := t.g.finder
	if key[0] == familyName && !t.g.store.recent.mayHave(key) {
		f = t.g.tables
	}
	value, err := f.find(key)
	if err == nil && value != nil && len(value) == 0 && key[0] == familyName {
		err = errKey
	}
	if err != nil {
		return nil, &readFault{id, err}
	}
	return value, nil
}

// set sets a key that is looked up.
func (t *tx) set(key, value []byte) {
	t.pending[string(key)] = value
	t.writes = append(t.writes, keyValue{key, value})
}

// setLate sets a key of which only the last value in the group is written.
func (t *tx) setLate(key, value []byte) {
	t.pending[string(key)] = value
	t.late = append(t.late, key)
}

// change adds to the change feed.
func (t *tx) change(e *feedEntry) {
	t.feed = appendChange(t.feed, e)
	t.changes = append(t.changes, len(t.feed))
}

// sortChanges puts the changes of the records, which are all there are, in the order
// that the records had in the commit.
func (t *tx) sortChanges(records []entry) {
	ends := make([]int, len(records)) // by turn: the place in t.changes
	for i := range records {
		ends[records[i].turn] = i
	}
	feed, changes := make([]byte, 0, len(t.feed)), make([]int, 0, len(t.changes))
	for _, i := range ends {
		begin := 0
		if i > 0 {
			begin = t.changes[i-1]
		}
		feed = append(feed, t.feed[begin:t.changes[i]]...)
		changes = append(changes, len(feed))
	}
	t.feed, t.changes = feed, changes
}

// accept makes the commit a part of the group. Its changes have the times of those that
// are replayed, if there are some.
func (t *tx) accept(replay []stele.Change) {
	g := t.g
	if len(t.writes) > fewWrites {
		t.sortWrites()
	}
	for _, w := range t.writes {
		if w.value == nil {
			g.note(g.batch.Delete(w.key, nil))
		} else {
			g.note(g.batch.Set(w.key, w.value, nil))
		}
		if w.key[0] == familyName {
			g.store.recent.add(w.key)
		}
	}
	begin, now := 0, g.at
	for i, end := range t.changes {
		if replay != nil && !replay[i].At.Equal(g.at) {
			g.writeChunk() // all of a chunk have one time
			g.at = replay[i].At
		}
		g.seq++
		g.changes++
		g.feed = append(g.feed, t.feed[begin:end]...)
		if begin = end; g.changes == maxChunk {
			g.writeChunk()
		}
	}
	if !g.at.Equal(now) {
		g.writeChunk()
		g.at = now
	}
	for _, key := range t.late {
		if _, ok := g.pending[string(key)]; !ok {
			g.late = append(g.late, key)
		}
	}
	maps.Copy(g.pending, t.pending)
	g.taken = append(g.taken, t.taken...)
	g.acceptZones(t.runs)
}

// sortWrites puts the keys in order. Those of a family that follow the names of the records
// are in order already. A record with its history writes some keys several times: the last
// value counts, so they stay in the order in which they came.
func (t *tx) sortWrites() {
	var families [256][]keyValue
	var sizes [256]int
	for _, w := range t.writes {
		sizes[w.key[0]]++
	}
	room := make([]keyValue, len(t.writes))
	for f, n := range sizes {
		families[f], room = room[:0:n], room[n:]
	}
	for _, w := range t.writes {
		families[w.key[0]] = append(families[w.key[0]], w)
	}
	t.writes = t.writes[:0]
	order := func(a, b keyValue) int { return bytes.Compare(a.key, b.key) }
	sort := slices.SortFunc[[]keyValue]
	if t.repeats {
		sort = slices.SortStableFunc[[]keyValue] // takes longer
	}
	for _, list := range families {
		if !slices.IsSortedFunc(list, order) {
			sort(list, order)
		}
		t.writes = append(t.writes, list...)
	}
}

// putMinter checks and sets the state of a minter.
func (t *tx) putMinter(m *minterEntry) error {
	have, err := t.find(stele.ID{}, m.key)
	if err != nil {
		return err
	}
	if (have == nil) != (m.before == nil) || !bytes.Equal(have, m.before) {
		return refusal.MinterChanged(m.name)
	}
	t.setLate(m.key, m.after)
	return nil
}

// putNamespace checks and sets a version of a namespace.
func (t *tx) putNamespace(n *namespaceEntry) error {
	value, err := t.find(stele.ID{}, n.key)
	if err != nil {
		return err
	}
	var have uint64
	if value != nil {
		var old stele.Namespace
		if err := stored.UnmarshalNamespace(value, &old); err != nil {
			return err
		}
		have = old.Version
		value = bytes.Clone(value)
	}
	if n.version != have+1 {
		return refusal.NamespaceVersionDiffers(n.name, n.version, have)
	}
	if value != nil {
		t.writes = append(t.writes, keyValue{namespaceHistoryKey(n.name, have), value})
	}
	t.set(n.key, n.value)
	t.change(&feedEntry{stele.Change{Namespace: n.name, Version: n.version}})
	return nil
}

// count counts one more name.
func (t *tx) count(id stele.ID, c stele.NameCount) error {
	if c.Namespace == (stele.NamespaceKey{}) {
		return nil
	}
	under := countKey(c.Namespace)
	value, err := t.find(id, under)
	if err != nil {
		return err
	}
	n, err := parseCount(value)
	if err != nil {
		return &readFault{id, err}
	}
	if c.Quota > 0 && n >= c.Quota {
		return exhausted(id, c)
	}
	t.setLate(under, binary.AppendUvarint(nil, n+1))
	return nil
}

func exhausted(id stele.ID, c stele.NameCount) error {
	return refusal.QuotaReached(id, c.Namespace, c.Quota)
}

// parseCount reads a count; nothing is 0.
func parseCount(value []byte) (uint64, error) {
	if value == nil {
		return 0, nil
	}
	n, err := parseUvarint(value)
	if err != nil {
		return 0, stele.Messagef("store.count-malformed", "{problem}: a count: {cause}", errKey, err)
	}
	return n, nil
}
