package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
)

// Bounds of looking for names.
const (
	maxVariants = 32  // identifiers at one owner name, which differ in case only
	maxSeeks    = 128 // in the store, for the variants of one name
	maxBelow    = 100 // records that are looked at to know whether one below a name is public
)

// errReading says that it is not known yet whether an alias has a name.
var errReading = stele.Messagef("zone.aliases-being-read", "the aliases of the registry are being read; try again in a minute")

// isVisible reports whether the public may know of a record.
func isVisible(r *stele.Record) bool { return r.State != stele.Reserved && r.IsPublic() }

// at returns the identifiers whose owner name this is, with their records, as far as
// the public may know of them.
func (z *Zone) at(ctx context.Context, name string) ([]naptr.Named, error) {
	rest, more, ok := z.mapping.Rest(name)
	if !ok || more {
		return nil, nil
	}
	if z.mapping.Casing != naptr.CaseCounts || !naptr.HasLetters(rest) {
		id, ok := z.mapping.Parse(z.zones.schemes, rest)
		if !ok {
			return nil, nil
		}
		return z.get(ctx, nil, id)
	}
	return z.variants(ctx, name, rest)
}

// get adds the record of an identifier to a list, if it is public and of this zone.
func (z *Zone) get(ctx context.Context, list []naptr.Named, id stele.ID) ([]naptr.Named, error) {
	if !z.has(id) {
		return list, nil
	}
	r, err := z.zones.store.Record(ctx, id)
	if errors.Is(err, stele.NotFound) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	if isVisible(r) {
		list = append(list, naptr.Named{ID: id, Record: r, Namespace: z.namespaceOf(id)})
	}
	return list, nil
}

// variants returns the identifiers that differ in case only and share a name. The
// store is asked for those that are identifiers of records; aliases are in the
// index, since stores do not list them.
func (z *Zone) variants(ctx context.Context, name, rest string) (list []naptr.Named, err error) {
	for _, id := range z.index.aliasesAt(name) {
		if list, err = z.get(ctx, list, id); err != nil {
			return nil, err
		}
	}
	err = z.leap(ctx, rest, false, func(r *stele.Record) bool {
		if isVisible(r) && z.set.zoneOf(r.ID) == z {
			list = append(list, naptr.Named{ID: r.ID, Record: r, Namespace: z.set.namespaceOf(r.ID)})
		}
		return len(list) < maxVariants
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && !z.index.isReady() {
		return nil, &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: fmt.Errorf("%s: %w", name, errReading)}
	}
	slices.SortFunc(list, func(a, b naptr.Named) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return list[:min(len(list), maxVariants)], nil
}

// leap yields the records whose names have a rest that differs from the given one,
// which is in lower case, in case only; with prefix set, those that begin so. It
// leaps in the store from one variant that may be there to the next, so it needs no
// memory, and no more steps than there are beginnings of names in another case.
// Exhausted if there are too many.
func (z *Zone) leap(ctx context.Context, rest string, prefix bool, yield func(*stele.Record) bool) error {
	begin := z.mapping.Prefix + z.mapping.Joint
	from := strings.ToUpper(rest) // the first in order of bytes
	for range maxSeeks {
		r, err := z.seek(ctx, begin, from)
		if err != nil || r == nil {
			return err
		}
		found := r.ID.String()[len(begin):]
		same := sharedFold(found, rest)
		if same == len(rest) && (prefix || same == len(found)) {
			if !yield(r) {
				return nil
			}
			if prefix {
				from = found + "\x00"
				continue
			}
		}
		var ok bool
		if from, ok = nextVariant(found, rest, same); !ok {
			return nil
		}
	}
	return &stele.Error{Op: "look up", Kind: stele.Exhausted, Err: stele.Messagef("zone.case-variants-too-many", `"{name}" has too many variants of case`, begin+rest)}
}

// seek returns the first record at or after a text; nil if there is none.
func (z *Zone) seek(ctx context.Context, begin, from string) (*stele.Record, error) {
	// Scan begins after a text: the greatest that is less. No name has the byte 0xff.
	last := from[len(from)-1]
	before := begin + from[:len(from)-1] + string([]byte{last - 1, 0xff})
	if last == 0 {
		before = begin + from[:len(from)-1]
	}
	for r, err := range z.zones.store.Scan(ctx, z.mapping.Scheme, begin, before) {
		return r, err
	}
	return nil, nil
}

// sharedFold returns how many bytes of text and lower are the same except for case.
func sharedFold(text, lower string) int {
	n := 0
	for n < len(text) && n < len(lower) && lowerByte(text[n]) == lower[n] {
		n++
	}
	return n
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b | 0x20
	}
	return b
}

// nextVariant returns the least text that comes after found in order of bytes and differs
// from lower in case only. same is how many bytes of both are the same except for case.
func nextVariant(found, lower string, same int) (string, bool) {
	if same < len(lower) {
		// The variants that begin like found, and go on with something greater.
		for _, b := range [...]byte{lower[same] &^ caseBit(lower[same]), lower[same]} {
			if same == len(found) || b > found[same] {
				return found[:same] + string(rune(b)) + strings.ToUpper(lower[same+1:]), true
			}
		}
	}
	for i := same - 1; i >= 0; i-- {
		if 'A' <= found[i] && found[i] <= 'Z' {
			return found[:i] + lower[i:i+1] + strings.ToUpper(lower[i+1:]), true
		}
	}
	return "", false
}

// caseBit is the bit in which a letter differs from its capital; 0 for others.
func caseBit(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return 0x20
	}
	return 0
}

// below reports whether a public identifier has its owner name below this one. It
// says so too if it would take too long to know that there is none.
func (z *Zone) below(ctx context.Context, name string) (bool, error) {
	rest, more, ok := z.mapping.Rest(name)
	if !ok {
		return false, nil
	}
	index := z.index
	if index.isAbove(name) || !index.isReady() {
		return true, nil
	}
	if !more {
		return false, nil // names with dots in them are in the index
	}
	left := maxBelow
	found := false
	look := func(r *stele.Record) bool {
		left--
		_, reason := z.mapping.Owner(r.ID.String())
		found = reason == nil && isVisible(r) && z.set.zoneOf(r.ID) == z
		return !found && left > 0
	}
	err := z.scanBelow(ctx, rest, look)
	if errors.Is(err, stele.Exhausted) {
		return true, nil
	}
	return found || left == 0, err
}

// scanBelow yields the records whose names begin with a rest in any case.
func (z *Zone) scanBelow(ctx context.Context, rest string, yield func(*stele.Record) bool) error {
	if z.mapping.Casing == naptr.CaseCounts && naptr.HasLetters(rest) {
		return z.leap(ctx, rest, true, yield)
	}
	begin := z.mapping.Prefix + z.mapping.Joint + z.mapping.Canonical(rest)
	for r, err := range z.zones.store.Scan(ctx, z.mapping.Scheme, begin, "") {
		if err != nil || !yield(r) {
			return err
		}
	}
	return nil
}
