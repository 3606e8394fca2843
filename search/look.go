package search

import (
	"context"
	"errors"
	"slices"

	"github.com/stele-id/stele"
)

// readTogether is how many records a search reads at once, at most.
const readTogether = 64

// candidate is a document that has all terms, with the identifier of its record, which the caller
// may find.
type candidate struct {
	number uint64
	id     stele.ID
	record *stele.Record // nil if there is none, or until it was read
}

// searchBlock adds what is found in a block before a place to the page. It returns true if the
// page is full. It reads no record that a search one by one would not read: as many as the page
// still has room for, and one more, which tells whether another page follows.
func (s *seeking) searchBlock(ctx context.Context, block uint32, end int) (full bool, err error) {
	found, err := s.candidates(block)
	if err != nil || !found {
		return false, err
	}
	for at := s.members.before(end); at >= 0; at = s.members.before(end) {
		if s.reads >= maxReads {
			s.page.Next = uint64(block)<<blockBits | uint64(at) + 1
			return true, nil
		}
		if end, err = s.list(block, end, min(s.limit+1-len(s.page.Records), readTogether, maxReads-s.reads)); err != nil {
			return false, err
		}
		if err := s.read(ctx); err != nil {
			s.page.Next = s.looked[0].number + 1
			return false, err
		}
		s.page.Records, s.page.Documents = slices.Grow(s.page.Records, len(s.looked)), slices.Grow(s.page.Documents, len(s.looked))
		for i := range s.looked {
			d := &s.looked[i]
			if d.record == nil || d.record.ID != d.id || !s.match.matches(d.record) {
				continue
			}
			if len(s.page.Records) == s.limit {
				s.page.Next = d.number + 1
				return true, nil
			}
			s.page.Records, s.page.Documents = append(s.page.Records, d.record), append(s.page.Documents, d.number)
		}
	}
	return false, nil
}

// list lists the last documents before a place in a block, n at most, and returns the place before
// which the others are.
func (s *seeking) list(block uint32, end, n int) (rest int, err error) {
	s.looked = slices.Grow(s.looked[:0], n)
	for at := s.members.before(end); at >= 0; at = s.members.before(at) {
		number := uint64(block)<<blockBits | uint64(at)
		id, ok, err := s.identify(number)
		if err != nil {
			s.page.Next = number + 1
			return 0, err
		}
		if !ok {
			continue
		}
		if s.looked = append(s.looked, candidate{number: number, id: id}); len(s.looked) == n {
			return at, nil
		}
	}
	return 0, nil
}

// identify returns the identifier of a document, and whether the query asks for such a one and the
// caller may find it.
func (s *seeking) identify(number uint64) (id stele.ID, ok bool, err error) {
	s.page.Looked++
	name, err := s.name(number)
	if err != nil {
		return stele.ID{}, false, err
	}
	scheme, text := cutName(name)
	if s.keys++; s.names != nil && !s.names(scheme, text) {
		return stele.ID{}, false, nil
	}
	if id, err = stele.NewID(scheme, text); err != nil {
		return stele.ID{}, false, errors.Join(errDamaged, err)
	}
	return id, s.sight.Everything() || s.sight.Lists(id), nil
}

// read reads the records of the documents that were listed, except those that are kept from an earlier
// search.
func (s *seeking) read(ctx context.Context) error {
	s.reads += len(s.looked)
	kept := &s.index.recent
	if !s.current {
		return s.gather(ctx, len(s.looked))
	}
	missing := kept.fill(s.at.generation, s.looked)
	if missing == 0 {
		return ctx.Err()
	}
	if err := s.gather(ctx, missing); err != nil {
		return err
	}
	if since, yes := s.index.lagging(); !yes && since.Equal(s.lagged) {
		kept.keep(s.at.generation, s.looked)
	}
	return nil
}

// gather reads the missing records of the documents that were listed. A store that reads many at once is
// asked for them in the order of their names, so that it finds neighbours together.
func (s *seeking) gather(ctx context.Context, missing int) error {
	many, ok := s.index.o.Source.(stele.Gatherer)
	if !ok || missing < 2 {
		for i := range s.looked {
			if s.looked[i].record != nil {
				continue
			}
			record, err := s.index.o.Source.Record(ctx, s.looked[i].id)
			if err != nil && !errors.Is(err, stele.NotFound) {
				return err
			}
			s.looked[i].record = record
		}
		return nil
	}
	type place struct {
		id stele.ID
		at int
	}
	order, names := make([]place, 0, missing), make([]stele.ID, missing)
	for i := range s.looked {
		if s.looked[i].record == nil {
			order = append(order, place{s.looked[i].id, i})
		}
	}
	slices.SortFunc(order, func(a, b place) int { return a.id.Compare(b.id) })
	for i := range order {
		names[i] = order[i].id
	}
	records, err := many.Gather(ctx, names)
	for i := range records {
		s.looked[order[i].at].record = records[i]
	}
	return err
}

// name returns the identifier of a document.
func (s *seeking) name(number uint64) (string, error) {
	page := number>>8 + 1
	if s.paged != page {
		key := append(appendBlock(s.key[:0], familyBlock, uint32(number>>blockBits)), kindPage, byte(number>>8))
		value, err := s.get(key)
		if err != nil {
			return "", err
		}
		if !readPage(value, &s.names8) {
			return "", errDamaged
		}
		s.paged = page
	}
	name := s.names8[byte(number)]
	if name == "" {
		return "", errDamaged
	}
	return name, nil
}
