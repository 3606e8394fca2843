package pebble

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// Record implements [stele.Store]. Most names that are asked for are there, so it does
// not look into the filters of the last level: for a name that is there they are extra
// work, and for another one only a block is read needlessly.
func (s *Store) Record(ctx context.Context, name stele.ID) (r *stele.Record, err error) {
	err = s.read(ctx, "get", func(v *view) error {
		if r, err = s.getRecord(v.snap, nameKey(name)); err != nil {
			return v.opening.damage("get", name, err)
		}
		if r == nil {
			return refusal.NotRegistered(name)
		}
		return nil
	})
	return r, err
}

// Gather implements [stele.Gatherer]: one iterator finds all names. It does not look into the filters of
// the last level, as Record does not.
func (s *Store) Gather(ctx context.Context, names []stele.ID) (list []*stele.Record, err error) {
	err = s.read(ctx, "get", func(v *view) error {
		it, err := v.snap.NewIter(&pebbledb.IterOptions{LowerBound: []byte{familyName}, UpperBound: []byte{familyName + 1}})
		if err != nil {
			return v.opening.damage("get", stele.ID{}, err)
		}
		f := finder{it}
		defer f.close()
		list = make([]*stele.Record, len(names))
		var key []byte
		for i, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			key = appendSchemed(key[:0], familyName, name.Scheme(), name.String())
			if list[i], err = s.findRecord(f, key); err != nil {
				return v.opening.damage("get", name, err)
			}
		}
		return nil
	})
	return list, err
}

// getRecord is findRecord for a name that is likely to be there.
func (s *Store) getRecord(db pebbledb.Reader, key []byte) (*stele.Record, error) {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebbledb.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer closer.Close()
	if len(value) > 0 && value[0] == isAlias {
		f, err := newFinder(db)
		if err != nil {
			return nil, err
		}
		defer f.close()
		return s.findRecord(f, key)
	}
	return decodeNamed(key, value)
}

// findRecord returns the record that has the name with this key, nil if there is
// none.
func (s *Store) findRecord(f finder, key []byte) (*stele.Record, error) {
	value, err := f.find(key)
	if err != nil || value == nil {
		return nil, err
	}
	if len(value) > 0 && value[0] == isAlias {
		owner := bytes.Clone(value)
		owner[0] = familyName
		if value, err = f.find(owner); err != nil {
			return nil, err
		}
		if value == nil || len(value) > 0 && value[0] == isAlias {
			return nil, refuse("get", stele.ID{}, stele.Internal, "store.alias-of-missing-record", "{key} is an alias of a record that is not there; run verify", describeKey(key))
		}
	}
	return decodeNamed(key, value)
}

// decodeNamed decodes what stands under the identifier of a record.
func decodeNamed(key, value []byte) (*stele.Record, error) {
	if len(value) == 0 || value[0] != isRecord {
		return nil, refuse("get", stele.ID{}, stele.Internal, "store.key-without-record", "{key} leads to no record; run verify", describeKey(key))
	}
	return decodeRecord(key, value[1:])
}

// decodeRecord decodes a version of a record that stands under a key.
func decodeRecord(key, body []byte) (*stele.Record, error) {
	r := new(stele.Record)
	if err := binary.UnmarshalRecord(body, r); err != nil {
		return nil, refuse("get", stele.ID{}, stele.Internal, "store.key-unreadable", "{key} can't be read: {cause}", describeKey(key), err)
	}
	return r, nil
}

// First implements [stele.Store].
func (s *Store) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (r *stele.Record, at stele.Prefix, err error) {
	err = s.read(ctx, "get", func(v *view) error {
		f, err := newFinder(v.snap)
		if err != nil {
			return v.opening.damage("get", stele.ID{}, err)
		}
		defer f.close()
		var key []byte
		for p := range candidates {
			if err := ctx.Err(); err != nil {
				return err
			}
			key = appendSchemed(key[:0], familyName, p.Scheme(), p.String())
			if r, err = s.findRecord(f, key); err != nil {
				return v.opening.damage("get", stele.ID{}, err)
			}
			if r != nil {
				at = p
				return nil
			}
		}
		return refusal.NeitherRegistered()
	})
	return r, at, err
}

// Scan implements [stele.Store].
func (s *Store) Scan(ctx context.Context, scheme, prefix, cursor string) iter.Seq2[*stele.Record, error] {
	from := appendSchemed(nil, familyName, scheme, prefix)
	end := upper(from)
	if cursor >= prefix {
		from = after(appendSchemed(nil, familyName, scheme, cursor))
	}
	return items(ctx, s, "scan", !strings.Contains(scheme, "\x00"), from, end, func(key, value []byte) (*stele.Record, bool, error) {
		if len(value) > 0 && value[0] == isAlias {
			return nil, false, nil
		}
		r, err := decodeNamed(key, value)
		return r, true, err
	})
}

// Pointing implements [stele.Store].
func (s *Store) Pointing(ctx context.Context, at stele.Location, cursor stele.ID) iter.Seq2[stele.ID, error] {
	family, text := byte(familyURL), at.URL
	if text == "" {
		family, text = familyHost, at.Host
	}
	from := appendLocation(nil, family, text)
	end, length := upper(from), len(from)
	if cursor.IsValid() {
		from = append(append(append(from, cursor.Scheme()...), 0), cursor.String()...)
		from = after(from)
	}
	return items(ctx, s, "look up", true, from, end, func(key, _ []byte) (stele.ID, bool, error) {
		id, err := cutID(key[length:])
		return id, true, err
	})
}

// Changes implements [stele.Store]. The first change is read for itself, since many callers want no more than one, and after it a chunk is parsed
// when the caller comes to it.
func (s *Store) Changes(ctx context.Context, cursor uint64) iter.Seq2[stele.Change, error] {
	const op = "changes"
	type chunk struct{ key, value []byte }
	return func(yield func(stele.Change, error) bool) {
		v, err := s.look(ctx, op)
		if err != nil {
			yield(stele.Change{}, err)
			return
		}
		defer v.unpin()
		first, err := s.firstChange(ctx, v, op, cursor)
		if err != nil || first == nil {
			if err != nil {
				yield(stele.Change{}, err)
			}
			return
		}
		if !yield(first.Change, nil) {
			return
		}
		cursor := first.Seq
		stored := func(key, value []byte) (chunk, bool, error) {
			return chunk{bytes.Clone(key), bytes.Clone(value)}, true, nil
		}
		from := after(appendChangeKey(nil, cursor))
		scanPages(ctx, s, v, op, 2, from, []byte{familyChange + 1}, stored, func(c chunk, err error) bool {
			more := true
			if err == nil {
				err = eachChange(c.key, c.value, cursor, func(e *feedEntry) bool {
					if err := ctx.Err(); err != nil {
						yield(stele.Change{}, err)
						more = false
					} else {
						more = yield(e.Change, nil)
					}
					return more
				})
				if err != nil {
					err = v.opening.damage(op, stele.ID{}, err)
				}
			}
			if err != nil {
				yield(stele.Change{}, err)
				return false
			}
			return more
		})
	}
}

// firstChange returns the first change of a view after one, nil if there is none.
func (s *Store) firstChange(ctx context.Context, v *view, op string, cursor uint64) (first *feedEntry, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from := after(appendChangeKey(nil, cursor))
	_, err = readPage(ctx, s, v, op, from, []byte{familyChange + 1}, 1, func(key, value []byte) error {
		return eachChange(key, value, cursor, func(e *feedEntry) bool {
			first = e
			return false
		})
	})
	return first, err
}

// LastChange implements [stele.Store].
func (s *Store) LastChange(ctx context.Context) (uint64, error) {
	v, err := s.look(ctx, "changes")
	if err != nil {
		return 0, err
	}
	defer v.unpin()
	return v.seq, nil
}

// Namespace implements [stele.Store].
func (s *Store) Namespace(ctx context.Context, key stele.NamespaceKey) (n *stele.Namespace, err error) {
	err = s.lookUp(ctx, "get namespace", namespaceKey(key), func(value []byte) error {
		if value == nil || strings.Contains(key.Scheme, "\x00") {
			return refusal.NamespaceMissing(key)
		}
		n, err = decodeNamespace(value)
		return err
	})
	return n, err
}

func decodeNamespace(value []byte) (*stele.Namespace, error) {
	n := new(stele.Namespace)
	if err := binary.UnmarshalNamespace(value, n); err != nil {
		return nil, err
	}
	return n, nil
}

// Namespaces implements [stele.Store].
func (s *Store) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return items(ctx, s, "list namespaces", true, []byte{familyNamespace}, []byte{familyNamespace + 1}, func(_, value []byte) (*stele.Namespace, bool, error) {
		n, err := decodeNamespace(value)
		return n, true, err
	})
}

// MinterState implements [stele.Store].
func (s *Store) MinterState(ctx context.Context, name string) (state []byte, err error) {
	err = s.lookUp(ctx, "get minter", minterKey(name), func(value []byte) error {
		state = bytes.Clone(value)
		return nil
	})
	return state, err
}

// MinterStates implements [stele.Store]. It yields a state as After.
func (s *Store) MinterStates(ctx context.Context) iter.Seq2[stele.MinterState, error] {
	return items(ctx, s, "list minters", true, []byte{familyMinter}, []byte{familyMinter + 1}, func(key, value []byte) (stele.MinterState, bool, error) {
		return stele.MinterState{Name: string(key[1:]), After: append([]byte{}, value...)}, true, nil
	})
}

// Count implements [stele.Store].
func (s *Store) Count(ctx context.Context, key stele.NamespaceKey) (n uint64, err error) {
	err = s.lookUp(ctx, "count", countKey(key), func(value []byte) error {
		n, err = parseCount(value)
		return err
	})
	return n, err
}

// lookUp calls f with what is kept under a key, nil if nothing is.
func (s *Store) lookUp(ctx context.Context, op string, key []byte, f func(value []byte) error) error {
	return s.read(ctx, op, func(v *view) error {
		find, err := newFinder(v.snap)
		if err != nil {
			return v.opening.damage(op, stele.ID{}, err)
		}
		defer find.close()
		value, err := find.find(key)
		if err == nil {
			err = f(value)
		}
		if err != nil {
			return v.opening.damage(op, stele.ID{}, err)
		}
		return nil
	})
}

// items makes an iterator over what is kept from one key to before another; over
// nothing if some is false. The function makes an item of key and value, or skips
// them.
func items[T any](ctx context.Context, s *Store, op string, some bool, from, end []byte, item func(key, value []byte) (T, bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		v, err := s.look(ctx, op)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		defer v.unpin()
		if some {
			scan(ctx, s, v, op, from, end, item, yield)
		}
	}
}

// How many items are read at once. It begins with a few: many callers want no more.
const (
	firstPage = 8
	lastPage  = 512
	pageBytes = 1 << 20
)

// scan yields the items of a view from one key to before another. They are read a
// page at a time, and while the caller has one of them no part of Pebble is held but
// the view: an export that takes an hour keeps no files from being deleted, and the
// store can be closed from the body of a loop.
func scan[T any](ctx context.Context, s *Store, v *view, op string, from, end []byte, item func(key, value []byte) (T, bool, error), yield func(T, error) bool) {
	scanPages(ctx, s, v, op, firstPage, from, end, item, yield)
}

// scanPages is scan with a first page of another size.
func scanPages[T any](ctx context.Context, s *Store, v *view, op string, first int, from, end []byte, item func(key, value []byte) (T, bool, error), yield func(T, error) bool) {
	var none T
	page := make([]T, 0, first)
	for size := first; from != nil && bytes.Compare(from, end) < 0; size = min(2*size, lastPage) {
		if err := ctx.Err(); err != nil {
			yield(none, err)
			return
		}
		var err error
		page = page[:0]
		from, err = readPage(ctx, s, v, op, from, end, size, func(key, value []byte) error {
			t, ok, err := item(key, value)
			if ok && err == nil {
				page = append(page, t)
			}
			return err
		})
		for _, t := range page {
			if err := ctx.Err(); err != nil {
				yield(none, err)
				return
			}
			if !yield(t, nil) {
				return
			}
		}
		if err != nil {
			yield(none, err)
			return
		}
	}
}

// readPage calls f for up to size entries of a view, and returns the key to continue
// from, nil at the end. It lets other goroutines run first: a commit passes through
// several goroutines, and would wait for a time slice of every scan each time.
func readPage(ctx context.Context, s *Store, v *view, op string, from, end []byte, size int, f func(key, value []byte) error) (next []byte, err error) {
	runtime.Gosched()
	if !v.begin() {
		return nil, s.stopped(op)
	}
	defer v.end()
	it, err := v.snap.NewIter(&pebbledb.IterOptions{LowerBound: from, UpperBound: end})
	if err != nil {
		return nil, v.opening.damage(op, stele.ID{}, err)
	}
	defer it.Close()
	bytesLeft := pageBytes
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key(), value)
		}
		if err != nil {
			return nil, v.opening.damage(op, stele.ID{}, err)
		}
		size--
		bytesLeft -= len(value)
		if size == 0 || bytesLeft <= 0 || ctx.Err() != nil {
			return after(it.Key()), nil // a copy
		}
	}
	if err := it.Error(); err != nil {
		return nil, v.opening.damage(op, stele.ID{}, err)
	}
	return nil, nil
}
