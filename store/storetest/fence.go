package storetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/stele-id/stele"
)

// sealing returns a commit of a namespace that raises the fence, by a caller that knows namespaces with this sum of versions.
func sealing(ns *stele.Namespace, before []byte, namespaceVersions uint64) *stele.Commit {
	after := binary.BigEndian.AppendUint64(nil, namespaceVersions+1)
	return &stele.Commit{
		Namespaces: []*stele.Namespace{ns}, Touch: touching(namespaceVersions),
		Cells: []stele.CellChange{{Name: stele.NamespaceFence, Before: before, After: after}},
	}
}

// checkFence: records that were judged before a namespace was sealed are refused, and all else goes on.
func checkFence(s *session) {
	a := func(text string) *stele.Record { return first(s.ark(text)) }
	ns := space("ark", "ark:12345/")
	s.apply(&stele.Commit{Records: []*stele.Record{a("1")}, Touch: touching(0)})
	s.apply(sealing(ns, nil, 0))
	late := &stele.Commit{Records: []*stele.Record{a("2")}, Touch: touching(0)}
	if err := s.Apply(s.ctx, late); stele.KindOf(err) != stele.Conflict || !errors.Is(err, stele.ErrFenced) {
		s.Errorf("a record that was judged before the seal: %v", err)
	}
	if _, err := s.Ingest(s.ctx, []*stele.Record{a("2")}, nil, touching(0), nil); stele.KindOf(err) != stele.Conflict || !errors.Is(err, stele.ErrFenced) {
		s.Errorf("an ingest that was judged before the seal: %v", err)
	}
	if _, err := s.Record(s.ctx, s.ark("2")); !errors.Is(err, stele.NotFound) {
		s.Errorf("what was refused is there: %v", err)
	}
	s.apply(&stele.Commit{Records: []*stele.Record{a("3")}, Touch: touching(1)})
	s.apply(&stele.Commit{Records: []*stele.Record{a("4")}, Touch: touching(7)}) // of a caller that knows more than the store
	s.apply(&stele.Commit{Records: []*stele.Record{a("5")}})
	if errs, err := s.Ingest(s.ctx, []*stele.Record{a("6")}, nil, touching(1), nil); err != nil || errs[0] != nil {
		s.Errorf("an ingest that was judged after the seal: %v, %v", errs, err)
	}
	s.apply(&stele.Commit{Cells: []stele.CellChange{{Name: "c", After: []byte("1")}}, Touch: touching(0)})
	// A change of another namespace does not raise the fence.
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{space("ark", "ark:12345/x")}, Touch: touching(1)})
	s.apply(&stele.Commit{Records: []*stele.Record{a("7")}, Touch: touching(1)})
	// Nor is something refused for a fence that can't be read.
	s.apply(&stele.Commit{Cells: []stele.CellChange{{Name: stele.NamespaceFence, Before: binary.BigEndian.AppendUint64(nil, 1), After: []byte("high")}}})
	s.apply(&stele.Commit{Records: []*stele.Record{a("8")}, Touch: touching(0)})
}

// checkFenceLoad: of records that are written while a namespace is sealed, none comes after it in the feed.
func checkFenceLoad(s *session) {
	const writers, each = 8, 20
	ns := space("ark", "ark:12345/")
	var wg sync.WaitGroup
	sealed := make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if w == 0 && i == each/2 {
					s.apply(sealing(ns, nil, 0))
					close(sealed)
				}
				r := first(s.ark(fmt.Sprintf("%d-%d", w, i)))
				var err error
				if i%2 == 0 {
					err = s.Apply(s.ctx, &stele.Commit{Records: []*stele.Record{r}, Touch: touching(0)})
				} else {
					_, err = s.Ingest(s.ctx, []*stele.Record{r}, nil, touching(0), nil)
				}
				switch {
				case err != nil && !errors.Is(err, stele.ErrFenced):
					s.Errorf("a write during the seal: %v", err)
				case err == nil:
					select {
					case <-sealed:
						if w == 0 {
							s.Errorf("a write after the seal is accepted")
						}
					default:
					}
				}
			}
		})
	}
	wg.Wait()
	var at uint64
	for _, c := range all(s, "Changes", s.Changes(s.ctx, 0)) {
		if !c.ID.IsValid() {
			at = c.Seq
		} else if at > 0 {
			s.Errorf("change %d is of %s, and the namespace was sealed by change %d", c.Seq, c.ID, at)
		}
	}
	if at == 0 {
		s.Errorf("the namespace is not in the feed")
	}
}
