package mem

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// Record implements [stele.Store].
func (s *Store) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	st, err := s.view(ctx, "get")
	if err != nil {
		return nil, err
	}
	id, ok := st.names.get(idKey(name))
	if !ok {
		return nil, refusal.NotRegistered(name)
	}
	return st.record(id)
}

// record returns the newest version of a record that is known to be there.
func (st *state) record(id stele.ID) (*stele.Record, error) {
	v, ok := st.records.get(idKey(id))
	if !ok {
		return nil, refuse("get", id, stele.Internal, "store.record-of-name-missing", "the name is known and its record is not there")
	}
	return v.record()
}

func (v *version) record() (*stele.Record, error) {
	r := new(stele.Record)
	return r, binary.UnmarshalRecord(v.body, r)
}

// Longest implements [stele.Store].
func (s *Store) Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (*stele.Record, stele.Prefix, error) {
	st, err := s.view(ctx, "get")
	if err != nil {
		return nil, stele.Prefix{}, err
	}
	key, text := idKey(name), name.String()
	head := len(key) - len(text)
	n, err := stele.LongestPrefix(text, cuts, func(n int) (length, common int, ok bool, err error) {
		if err := ctx.Err(); err != nil {
			return 0, 0, false, err
		}
		found, ok := st.names.floor(key[:head+n])
		if common = stele.CommonPrefix(found, key[:head+n]); !ok || common < head {
			return 0, 0, false, nil
		}
		return len(found) - head, common - head, true, nil
	})
	switch {
	case err != nil:
		return nil, stele.Prefix{}, err
	case n == 0:
		return nil, stele.Prefix{}, refusal.NoPartRegistered(name)
	}
	id, _ := st.names.get(key[:head+n])
	r, err := st.record(id)
	return r, name.Prefix(n), err
}

// First implements [stele.Store].
func (s *Store) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (*stele.Record, stele.Prefix, error) {
	st, err := s.view(ctx, "get")
	if err != nil {
		return nil, stele.Prefix{}, err
	}
	for p := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, stele.Prefix{}, err
		}
		if id, ok := st.names.get(nameKey(p.Scheme(), p.String())); ok {
			r, err := st.record(id)
			return r, p, err
		}
	}
	return nil, stele.Prefix{}, refusal.NeitherRegistered()
}

// History implements [stele.Store].
func (s *Store) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return read(ctx, s, "history", func(st *state, yield func(*stele.Record, error) bool) {
		v, _ := st.records.get(idKey(id))
		for ; v != nil && yield(v.record()); v = v.before {
		}
	})
}

// HistoryBefore implements [stele.Store].
func (s *Store) HistoryBefore(ctx context.Context, id stele.ID, version uint64) iter.Seq2[*stele.Record, error] {
	return read(ctx, s, "history", func(st *state, yield func(*stele.Record, error) bool) {
		v, _ := st.records.get(idKey(id))
		for ; v != nil && (v.number >= version || yield(v.record())); v = v.before {
		}
	})
}

// Version implements [stele.Store]. It goes through the versions: this store is for
// tests, whose histories are short.
func (s *Store) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	st, err := s.view(ctx, "get version")
	if err != nil {
		return nil, err
	}
	newest, _ := st.records.get(idKey(id))
	if newest == nil {
		return nil, refusal.IdentifierUnknown("get version", id)
	}
	for v := newest; v != nil; v = v.before {
		if v.number == version {
			return v.record()
		}
	}
	return nil, refusal.VersionMissing("get version", id, version, newest.number)
}

// VersionAt implements [stele.Store].
func (s *Store) VersionAt(ctx context.Context, id stele.ID, at time.Time) (best *stele.Record, err error) {
	st, err := s.view(ctx, "get version")
	if err != nil {
		return nil, err
	}
	newest, _ := st.records.get(idKey(id))
	if newest == nil {
		return nil, refusal.IdentifierUnknown("get version", id)
	}
	for v := newest; v != nil; v = v.before {
		r, err := v.record()
		if err != nil {
			return nil, err
		}
		if !r.Modified.After(at) && (best == nil || r.Modified.After(best.Modified)) {
			if best = r; v == newest {
				break
			}
		}
	}
	if best == nil {
		return nil, refusal.NoVersionSoEarly("get version", id, at)
	}
	return best, nil
}

// Withholding implements [stele.Store].
func (s *Store) Withholding(ctx context.Context) iter.Seq2[stele.ID, error] {
	return read(ctx, s, "list what is withheld", func(st *state, yield func(stele.ID, error) bool) {
		for _, v := range st.records.from("") {
			if r, err := v.record(); err != nil || !r.Withheld.IsZero() {
				if !yield(r.ID, err) {
					return
				}
			}
		}
	})
}

// NamespaceHistory implements [stele.Store].
func (s *Store) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return read(ctx, s, "history of a namespace", func(st *state, yield func(*stele.Namespace, error) bool) {
		v, _ := st.namespaces.get(namespaceKey(key))
		for ; v != nil && yield(v.namespace()); v = v.before {
		}
	})
}

// Purge implements [stele.Store]. There are no files.
func (s *Store) Purge(ctx context.Context) error {
	_, err := s.view(ctx, "purge")
	return err
}

// Scan implements [stele.Store].
func (s *Store) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return read(ctx, s, "scan", func(st *state, yield func(*stele.Record, error) bool) {
		cursor := nameKey(scheme, after)
		for key, v := range st.records.from(nameKey(scheme, max(prefix, after))) {
			if !strings.HasPrefix(key, nameKey(scheme, prefix)) {
				return
			}
			if key != cursor && !yield(v.record()) {
				return
			}
		}
	})
}

// Pointing implements [stele.Store].
func (s *Store) Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
	return read(ctx, s, "look up", func(st *state, yield func(stele.ID, error) bool) {
		for key, id := range st.pointing.from(locationKey(at) + idKey(after)) {
			if !strings.HasPrefix(key, locationKey(at)) || id != after && !yield(id, nil) {
				return
			}
		}
	})
}

// Changes implements [stele.Store].
func (s *Store) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return read(ctx, s, "changes", func(st *state, yield func(stele.Change, error) bool) {
		for _, e := range st.journal[min(after, uint64(len(st.journal))):] {
			if !yield(e.Change, nil) {
				return
			}
		}
	})
}

// LastChange implements [stele.Store].
func (s *Store) LastChange(ctx context.Context) (uint64, error) {
	st, err := s.view(ctx, "changes")
	if err != nil {
		return 0, err
	}
	return uint64(len(st.journal)), nil
}

// Namespace implements [stele.Store].
func (s *Store) Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	st, err := s.view(ctx, "get namespace")
	if err != nil {
		return nil, err
	}
	v, ok := st.namespaces.get(namespaceKey(key))
	if !ok {
		return nil, refusal.NamespaceMissing(key)
	}
	return v.namespace()
}

func (v *version) namespace() (*stele.Namespace, error) {
	n := new(stele.Namespace)
	return n, binary.UnmarshalNamespace(v.body, n)
}

// Namespaces implements [stele.Store].
func (s *Store) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return read(ctx, s, "list namespaces", func(st *state, yield func(*stele.Namespace, error) bool) {
		for _, v := range st.namespaces.from("") {
			if !yield(v.namespace()) {
				return
			}
		}
	})
}

// MinterState implements [stele.Store].
func (s *Store) MinterState(ctx context.Context, name string) ([]byte, error) {
	st, err := s.view(ctx, "get minter")
	if err != nil {
		return nil, err
	}
	kept, _ := st.minters.get(name)
	return slices.Clone(kept), nil
}

// MinterStates implements [stele.Store]. It yields a state as After.
func (s *Store) MinterStates(ctx context.Context) iter.Seq2[stele.MinterState, error] {
	return read(ctx, s, "list minters", func(st *state, yield func(stele.MinterState, error) bool) {
		for name, kept := range st.minters.from("") {
			if !yield(stele.MinterState{Name: name, After: bytes.Clone(kept)}, nil) {
				return
			}
		}
	})
}

// Count implements [stele.Store].
func (s *Store) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	st, err := s.view(ctx, "count")
	if err != nil {
		return 0, err
	}
	n, _ := st.counts.get(namespaceKey(key))
	return n, nil
}

// read makes an iterator over the state that is there when it begins. It looks at
// the context before each item, and ends after an error.
func read[T any](ctx context.Context, s *Store, op string, items func(st *state, yield func(T, error) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		st, err := s.view(ctx, op)
		if err != nil {
			yield(none, err)
			return
		}
		items(st, func(item T, err error) bool {
			if ctxErr := ctx.Err(); ctxErr != nil {
				yield(none, ctxErr)
				return false
			}
			if err != nil {
				yield(none, err)
				return false
			}
			return yield(item, nil)
		})
	}
}
