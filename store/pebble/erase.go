package pebble

import (
	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// withhold sets what the withheld versions of a record need: the mark by which the
// record is found, and entries that replace the versions that are erased now. Old is
// the version before.
func (t *tx) withhold(n *entry, old *stele.Record) error {
	if old.Withheld.IsZero() {
		t.writes = append(t.writes, keyValue{withheldKey(n.id), []byte{}})
	}
	erased := old.Withheld.Erased
	upTo := min(n.record.Withheld.Erased, old.Version-1) // putNext writes the version before
	if upTo <= erased {
		return nil
	}
	return t.eraseHistory(n.id, erased, upTo)
}

// superseded returns what is kept of the version before an entry, given its body.
func (n *entry) superseded(old *stele.Record, body []byte) ([]byte, error) {
	if n.record.Withheld.Erased < old.Version {
		return body, nil
	}
	return binary.MarshalRecord(old.Entry())
}

// eraseHistory replaces the superseded versions after one number and up to another by
// entries. The group has no other request, so all of them are in Pebble.
func (t *tx) eraseHistory(id stele.ID, erased, upTo uint64) error {
	it, err := t.g.opening.db.NewIter(&pebbledb.IterOptions{
		LowerBound: historyKey(id, upTo),
		UpperBound: historyKey(id, erased), // the newest has the smallest key
	})
	if err != nil {
		return &readFault{id, err}
	}
	for ok := it.First(); ok; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			break
		}
		var r *stele.Record
		if r, err = decodeRecord(it.Key(), value); err != nil {
			break
		}
		var body []byte
		if body, err = binary.MarshalRecord(r.Entry()); err != nil {
			break
		}
		t.writes = append(t.writes, keyValue{append([]byte{}, it.Key()...), body})
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return &readFault{id, err}
	}
	return nil
}
