package pebble

import (
	"context"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// fewCuts is how many prefixes of a name are looked up one by one: a look-up of what is
// not there costs a fraction of a seek, since filters answer most of them.
const fewCuts = 3

// Longest implements [stele.Store].
func (s *Store) Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (r *stele.Record, at stele.Prefix, err error) {
	err = s.read(ctx, "get", func(v *view) error {
		f, err := newFinder(v.snap)
		if err != nil {
			return v.opening.damage("get", name, err)
		}
		defer f.close()
		key := nameKey(name)
		text := name.String()
		head := len(key) - len(text)
		few, all := firstCuts(len(text), cuts)
		if !all {
			n, err := s.longest(ctx, v.snap, key, head, text, cuts)
			if ended := ctx.Err(); ended != nil {
				return ended
			}
			if err != nil {
				return v.opening.damage("get", name, err)
			}
			few = append(few[:0], n)
		}
		for _, n := range few {
			if n == 0 {
				break
			}
			if r, err = s.findRecord(f, key[:head+n]); err != nil {
				return v.opening.damage("get", name, err)
			}
			if r != nil {
				at = name.Prefix(n)
				return nil
			}
		}
		return refusal.NoPartRegistered(name)
	})
	return r, at, err
}

// firstCuts returns the longest places at which a text of some length may be cut, and
// whether these are all.
func firstCuts(length int, cuts func(n int) bool) (list []int, all bool) {
	for n := length - 1; n > 0; n-- {
		if !cuts(n) {
			continue
		}
		if len(list) == fewCuts {
			return list, false
		}
		list = append(list, n)
	}
	return list, true
}

// longest returns the length of the longest registered prefix, 0 if there is none. head is
// where the text begins in its key.
func (s *Store) longest(ctx context.Context, snap *pebbledb.Snapshot, key []byte, head int, text string, cuts func(n int) bool) (int, error) {
	it, err := snap.NewIter(&pebbledb.IterOptions{LowerBound: key[:head], UpperBound: after(key)})
	if err != nil {
		return 0, err
	}
	var limit []byte
	n, err := stele.LongestPrefix(text, cuts, func(n int) (length, common int, ok bool, err error) {
		if err := ctx.Err(); err != nil {
			return 0, 0, false, err
		}
		limit = append(append(limit[:0], key[:head+n]...), 0)
		if !it.SeekLT(limit) {
			return 0, 0, false, it.Error()
		}
		found := it.Key()
		return len(found) - head, stele.CommonPrefix(found, key[:head+n]) - head, true, nil
	})
	if closed := it.Close(); err == nil {
		err = closed
	}
	return n, err
}
