package pebble

import (
	"bytes"
	"errors"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// fillBytes is how much of what is filled in is written at once.
const fillBytes = 4 << 20

// fillVersions brings what an earlier program wrote up to date: it adds each superseded
// version to the index of times, and computes what the records withhold, since such a
// program marked the redacted version alone. It may be done again. It is not durable
// until something is written with a sync.
func fillVersions(db *pebbledb.DB) (err error) {
	it, err := db.NewIter(&pebbledb.IterOptions{LowerBound: []byte{familyHistory}, UpperBound: []byte{familyHistory + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	f := &filler{db: db, batch: db.NewBatch()}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		r, err := decodeRecord(it.Key(), value)
		if err != nil {
			return err
		}
		if err := f.add(r); err != nil {
			return err
		}
	}
	if err := f.finish(); err != nil {
		return err
	}
	return f.flush(0)
}

// filler fills in what belongs to superseded versions, which come by record and the
// newest first.
type filler struct {
	db       *pebbledb.DB
	batch    *pebbledb.Batch
	id       stele.ID // of the record whose versions come
	redacted uint64   // the highest of its versions so far that was redacted
}

func (f *filler) add(r *stele.Record) error {
	if r.ID != f.id {
		if err := f.finish(); err != nil {
			return err
		}
		f.id, f.redacted = r.ID, 0
	}
	if r.Redacted {
		f.redacted = max(f.redacted, r.Version)
	}
	if err := f.batch.Set(timeKey(r.ID, r.Modified, r.Version), nil, nil); err != nil {
		return err
	}
	return f.flush(fillBytes)
}

// finish computes what the record withholds whose versions came.
func (f *filler) finish() error {
	if !f.id.IsValid() {
		return nil
	}
	key := nameKey(f.id)
	value, closer, err := f.db.Get(key)
	if errors.Is(err, pebbledb.ErrNotFound) {
		return nil // damage, which Verify reports
	} else if err != nil {
		return err
	}
	value = bytes.Clone(value)
	_ = closer.Close() // it has no error to return
	now, err := decodeNamed(key, value)
	if err != nil {
		return err
	}
	if now.Redacted {
		f.redacted = now.Version
	}
	if f.redacted > now.Withheld.Redacted {
		now.Withheld.Redacted = f.redacted
		body, err := binary.AppendRecord([]byte{isRecord}, now)
		if err != nil {
			return err
		}
		if err := f.batch.Set(key, body, nil); err != nil {
			return err
		}
	}
	if now.Withheld.IsZero() {
		return nil
	}
	return f.batch.Set(withheldKey(f.id), nil, nil)
}

// flush writes what was gathered, if it is more than so many bytes.
func (f *filler) flush(limit int) error {
	if f.batch.Len() < limit || f.batch.Empty() {
		return nil
	}
	err := f.db.Apply(f.batch, pebbledb.NoSync)
	f.batch.Reset()
	return err
}

// upgradeVersions fills in what an earlier program left out, once.
func (s *Store) upgradeVersions(h *opening) error {
	_, closer, err := h.db.Get(metaVersions)
	if err == nil {
		return closer.Close()
	}
	if errors.Is(err, pebbledb.ErrNotFound) {
		if err = fillVersions(h.db); err == nil {
			err = h.db.Set(metaVersions, nil, pebbledb.Sync)
		}
	}
	if err := h.failstop.broken(); err != nil {
		return refuse("open", stele.ID{}, stele.Unavailable, "store.not-written", "the store can't be written: {cause}", err)
	}
	if err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	return nil
}
