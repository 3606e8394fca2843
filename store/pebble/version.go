package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"math"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// History implements [stele.Store].
func (s *Store) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return s.HistoryBefore(ctx, id, math.MaxUint64)
}

// HistoryBefore implements [stele.Store].
func (s *Store) HistoryBefore(ctx context.Context, id stele.ID, version uint64) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		v, err := s.look(ctx, "history")
		if err != nil {
			yield(nil, err)
			return
		}
		defer v.unpin()
		newest, err := s.newest(v, id)
		if err != nil {
			yield(nil, err)
			return
		}
		if newest == nil || version == 0 || newest.Version < version && !yield(newest, nil) {
			return
		}
		prefix := appendHistoryPrefix(nil, id)
		from := historyKey(id, version-1) // the newest has the smallest key
		scan(ctx, s, v, "history", from, upper(prefix), func(key, value []byte) (*stele.Record, bool, error) {
			r, err := decodeRecord(key, value)
			return r, true, err
		}, yield)
	}
}

// newest returns the current version of the record with this identifier, nil if
// there is none.
func (s *Store) newest(v *view, id stele.ID) (*stele.Record, error) {
	if !v.begin() {
		return nil, s.stopped("history")
	}
	defer v.end()
	f, err := newFinder(v.snap)
	if err != nil {
		return nil, v.opening.damage("history", id, err)
	}
	defer f.close()
	r, err := findCurrent(f, id)
	if err != nil {
		return nil, v.opening.damage("history", id, err)
	}
	return r, nil
}

// findCurrent returns the current version of the record with this identifier, nil if
// there is none.
func findCurrent(f finder, id stele.ID) (*stele.Record, error) {
	key := nameKey(id)
	value, err := f.find(key)
	if err != nil || value == nil || len(value) > 0 && value[0] == isAlias {
		return nil, err
	}
	return decodeNamed(key, value)
}

// Version implements [stele.Store]: a look-up of the record, and one of the version.
func (s *Store) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	return s.findVersion(ctx, id, func(f finder, _ *view, now *stele.Record) (uint64, error) {
		if version == 0 || version > now.Version {
			return 0, refusal.VersionMissing("get version", id, version, now.Version)
		}
		return version, nil
	})
}

// VersionAt implements [stele.Store]: as Version, with a seek in the index of times.
func (s *Store) VersionAt(ctx context.Context, id stele.ID, at time.Time) (*stele.Record, error) {
	return s.findVersion(ctx, id, func(_ finder, v *view, now *stele.Record) (uint64, error) {
		if !now.Modified.After(at) {
			return now.Version, nil
		}
		prefix := appendTimePrefix(nil, id)
		it, err := v.snap.NewIter(&pebbledb.IterOptions{LowerBound: appendTime(bytes.Clone(prefix), at), UpperBound: upper(prefix)})
		if err != nil {
			return 0, err
		}
		version, err := uint64(0), error(nil)
		if it.First() {
			version, err = cutTimeKey(it.Key(), len(prefix))
		}
		if cerr := it.Close(); err == nil {
			err = cerr
		}
		if err == nil && version == 0 {
			err = refusal.NoVersionSoEarly("get version", id, at)
		}
		return version, err
	})
}

// findVersion returns the version of a record that choose names.
func (s *Store) findVersion(ctx context.Context, id stele.ID, choose func(f finder, v *view, now *stele.Record) (uint64, error)) (r *stele.Record, err error) {
	const op = "get version"
	err = s.read(ctx, op, func(v *view) error {
		f, err := newFinder(v.snap)
		if err != nil {
			return v.opening.damage(op, id, err)
		}
		defer f.close()
		if r, err = findCurrent(f, id); err != nil {
			return v.opening.damage(op, id, err)
		}
		if r == nil {
			return refusal.IdentifierUnknown(op, id)
		}
		version, err := choose(f, v, r)
		if err != nil {
			return v.opening.damage(op, id, err)
		}
		if version == r.Version {
			return nil
		}
		key := historyKey(id, version)
		value, err := f.find(key)
		if err != nil {
			return v.opening.damage(op, id, err)
		}
		if value == nil {
			return refuse(op, id, stele.Internal, "store.version-lost", "version {version} is missing; run verify", version)
		}
		r, err = decodeRecord(key, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Withholding implements [stele.Store].
func (s *Store) Withholding(ctx context.Context) iter.Seq2[stele.ID, error] {
	from := []byte{familyMark, markWithheld}
	return items(ctx, s, "list what is withheld", true, from, upper(from), func(key, _ []byte) (stele.ID, bool, error) {
		id, err := cutID(key[2:])
		return id, true, err
	})
}

// NamespaceHistory implements [stele.Store].
func (s *Store) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		const op = "history of a namespace"
		v, err := s.look(ctx, op)
		if err != nil {
			yield(nil, err)
			return
		}
		defer v.unpin()
		space := func(_, value []byte) (*stele.Namespace, bool, error) {
			n, err := decodeNamespace(value)
			return n, true, err
		}
		if bytes.IndexByte([]byte(key.Scheme), 0) >= 0 {
			return
		}
		more := true
		now := namespaceKey(key)
		scan(ctx, s, v, op, now, after(now), space, func(n *stele.Namespace, err error) bool {
			more = yield(n, err) && err == nil
			return more
		})
		if prefix := appendNamespaceHistoryPrefix(nil, key); more {
			scan(ctx, s, v, op, prefix, upper(prefix), space, yield)
		}
	}
}

// The keys that this file and its writers use; keys.go has the table.

func appendNamespaceHistoryPrefix(b []byte, k stele.NamespaceKey) []byte {
	b = append(append(b, familyNamespaceHistory), k.Scheme...)
	return appendEnded(append(b, 0), k.Prefix)
}

func namespaceHistoryKey(k stele.NamespaceKey, version uint64) []byte {
	return binary.BigEndian.AppendUint64(appendNamespaceHistoryPrefix(nil, k), ^version)
}

func withheldKey(id stele.ID) []byte {
	b := append([]byte{familyMark, markWithheld}, id.Scheme()...)
	return append(append(b, 0), id.String()...)
}

// appendTimePrefix appends what the keys of all superseded versions of a record begin
// with in the index of times, and no others.
func appendTimePrefix(b []byte, id stele.ID) []byte {
	b = append(append(b, familyMark, markTime), id.Scheme()...)
	return appendEnded(append(b, 0), id.String())
}

// appendTime appends a time so that the latest comes first.
func appendTime(b []byte, t time.Time) []byte {
	n := len(b)
	b = stele.AppendTimeKey(b, t)
	for i := n; i < len(b); i++ {
		b[i] = ^b[i]
	}
	return b
}

func timeKey(id stele.ID, at time.Time, version uint64) []byte {
	return binary.BigEndian.AppendUint64(appendTime(appendTimePrefix(nil, id), at), ^version)
}

// cutTimeKey returns the version in a key of the index of times, given the length of its
// prefix.
func cutTimeKey(key []byte, prefix int) (uint64, error) {
	if len(key) != prefix+12+8 {
		return 0, errKey
	}
	return ^binary.BigEndian.Uint64(key[prefix+12:]), nil
}
