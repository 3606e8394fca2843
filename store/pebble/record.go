package pebble

import (
	"bytes"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// putRecord checks and sets a version of a record.
func (t *tx) putRecord(n *entry) error {
	value, err := t.find(n.id, n.key)
	if err != nil {
		return err
	}
	switch {
	case value == nil && n.version == 1:
		err = t.putFirst(n)
	case value == nil:
		err = late(n, 0)
	case value[0] == isAlias:
		err = t.takenBy(n, n.id, value)
	default:
		err = t.putNext(n, bytes.Clone(value[1:]))
	}
	if err != nil {
		return err
	}
	t.set(n.key, n.value)
	t.change(n.change())
	return nil
}

// checkSeen makes sure that a record which the caller has read is as it was.
func (t *tx) checkSeen(seen stele.SeenRecord) error {
	value, err := t.find(seen.ID, nameKey(seen.ID))
	if err != nil {
		return err
	}
	var have stele.Record
	if value != nil && value[0] != isAlias {
		if err := binary.UnmarshalRecord(bytes.Clone(value[1:]), &have); err != nil {
			return err
		}
	}
	if have.Version != seen.Version {
		return refusal.SeenDiffers(seen.ID, seen.Version, have.Version)
	}
	return nil
}

// putFirst checks and sets all of a new record but the record itself.
func (t *tx) putFirst(n *entry) error {
	t.taken = append(t.taken, n.key)
	if err := t.putAliases(n, nil); err != nil {
		return err
	}
	if err := t.count(n.id, n.counted); err != nil {
		return err
	}
	for _, key := range n.places {
		t.writes = append(t.writes, keyValue{key, []byte{}})
	}
	return nil
}

// putNext checks and sets all of a further version but the version itself. The body
// is that of the one before.
func (t *tx) putNext(n *entry, body []byte) error {
	var old stele.Record
	if err := binary.UnmarshalRecord(body, &old); err != nil {
		return err
	}
	if n.version != old.Version+1 {
		return late(n, old.Version)
	}
	if err := n.record.CheckFollows(&old); err != nil {
		return err
	}
	var e encoder
	ours := make(map[string]bool, len(n.aliases))
	for _, key := range n.aliases {
		ours[string(key)] = false
	}
	for _, alias := range old.Aliases {
		key := nameKey(alias)
		if _, ok := ours[string(key)]; !ok {
			return refusal.AliasMissing(n.id, alias.String())
		}
		ours[string(key)] = true
	}
	if err := t.putAliases(n, ours); err != nil {
		return err
	}
	past, err := n.superseded(&old, body)
	if err != nil {
		return err
	}
	t.writes = append(t.writes,
		keyValue{historyKey(n.id, old.Version), past},
		keyValue{timeKey(n.id, old.Modified, old.Version), []byte{}})
	t.move(e.locate(&old), n.places)
	if n.record.Withheld.IsZero() {
		return nil
	}
	return t.withhold(n, &old)
}

// putAliases checks, sets and counts the aliases that the record does not have already.
func (t *tx) putAliases(n *entry, ours map[string]bool) error {
	if !n.replayed {
		n.countedAliases = nil // this may be another attempt
	}
	for i, key := range n.aliases {
		if ours[string(key)] {
			continue
		}
		if err := t.putAlias(n, key); err != nil {
			return err
		}
		if n.aliasCounts == nil {
			continue
		}
		c := n.aliasCounts[i]
		if err := t.count(n.id, c); err != nil {
			return err
		}
		if c.Namespace != (stele.NamespaceKey{}) {
			n.countedAliases = append(n.countedAliases, c.Namespace)
		}
	}
	if n.replayed {
		for _, space := range n.countedAliases {
			if err := t.count(n.id, stele.NameCount{Namespace: space}); err != nil {
				return err
			}
		}
	}
	return nil
}

// putAlias checks and sets a new alias.
func (t *tx) putAlias(n *entry, key []byte) error {
	value, err := t.find(n.id, key)
	if err != nil {
		return err
	}
	if value != nil {
		alias, err := cutID(key[1:])
		if err != nil {
			return &readFault{n.id, err}
		}
		return t.takenBy(n, alias, value)
	}
	t.taken = append(t.taken, key)
	t.set(key, aliasValue(n.key))
	return nil
}

// aliasValue is what stands under an alias of the record with this key.
func aliasValue(key []byte) []byte {
	value := bytes.Clone(key)
	value[0] = isAlias
	return value
}

// takenBy makes the error about a name that another record has, or that is not an
// identifier. The value is what stands under it.
func (t *tx) takenBy(n *entry, name stele.ID, value []byte) error {
	owner := name
	if len(value) > 0 && value[0] == isAlias {
		if id, err := cutID(value[1:]); err == nil {
			owner = id
		}
	}
	return taken(n.id, name, owner)
}

func taken(id, name, owner stele.ID) error {
	return refusal.NameTaken(id, name.String(), owner.String())
}

// late makes the error about a version that does not follow the one that there is.
func late(n *entry, have uint64) error {
	return refusal.VersionDiffers("commit", n.id, n.version, have)
}

// move replaces the keys by which a record is found in reverse. Both lists are in
// order.
func (t *tx) move(before, now [][]byte) {
	for len(before) > 0 || len(now) > 0 {
		c := 0
		switch {
		case len(before) == 0:
			c = 1
		case len(now) == 0:
			c = -1
		default:
			c = bytes.Compare(before[0], now[0])
		}
		if c < 0 {
			t.writes = append(t.writes, keyValue{before[0], nil})
		} else if c > 0 {
			t.writes = append(t.writes, keyValue{now[0], []byte{}})
		}
		if c <= 0 {
			before = before[1:]
		}
		if c >= 0 {
			now = now[1:]
		}
	}
}

// change is what the change feed says of the entry.
func (n *entry) change() *feedEntry {
	return &feedEntry{stele.Change{ID: n.id, Version: n.version, Counted: n.counted.Namespace, CountedAliases: n.countedAliases}}
}
