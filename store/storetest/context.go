package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// call is a method of a store, called in one way or another.
type call struct {
	name string
	do   func(ctx context.Context) error
}

// calls returns a call of each method except Close, each of which has something to do.
func (s *session) calls() []call {
	return []call{
		{"Record", func(ctx context.Context) error { _, err := s.Record(ctx, s.ark("a")); return err }},
		{"First", func(ctx context.Context) error {
			_, _, err := s.First(ctx, slices.Values([]stele.Prefix{s.prefix("ark", "ark:12345/a")}))
			return err
		}},
		{"Longest", func(ctx context.Context) error {
			_, _, err := s.Longest(ctx, s.ark("a/b"), anywhere)
			return err
		}},
		{"History", func(ctx context.Context) error { return failure(s.History(ctx, s.ark("a"))) }},
		{"HistoryBefore", func(ctx context.Context) error { return failure(s.HistoryBefore(ctx, s.ark("a"), 9)) }},
		{"Version", func(ctx context.Context) error { _, err := s.Version(ctx, s.ark("a"), 1); return err }},
		{"VersionAt", func(ctx context.Context) error {
			_, err := s.VersionAt(ctx, s.ark("a"), time.Unix(1<<33, 0))
			return err
		}},
		{"Withholding", func(ctx context.Context) error { return failure(s.Withholding(ctx)) }},
		{"NamespaceHistory", func(ctx context.Context) error {
			return failure(s.NamespaceHistory(ctx, stele.NamespaceKey{Scheme: "ark"}))
		}},
		{"Scan", func(ctx context.Context) error { return failure(s.Scan(ctx, "ark", "", "")) }},
		{"Pointing", func(ctx context.Context) error {
			return failure(s.Pointing(ctx, stele.Location{Host: "example.org"}, stele.ID{}))
		}},
		{"Changes", func(ctx context.Context) error { return failure(s.Changes(ctx, 0)) }},
		{"LastChange", func(ctx context.Context) error { _, err := s.LastChange(ctx); return err }},
		{"Namespace", func(ctx context.Context) error {
			_, err := s.Namespace(ctx, stele.NamespaceKey{Scheme: "ark"})
			return err
		}},
		{"Namespaces", func(ctx context.Context) error { return failure(s.Namespaces(ctx)) }},
		{"MinterState", func(ctx context.Context) error { _, err := s.MinterState(ctx, "m"); return err }},
		{"MinterStates", func(ctx context.Context) error { return failure(s.MinterStates(ctx)) }},
		{"Cell", func(ctx context.Context) error { _, err := s.Cell(ctx, "c"); return err }},
		{"Cells", func(ctx context.Context) error { return failure(s.Cells(ctx, "", "")) }},
		{"Count", func(ctx context.Context) error {
			_, err := s.Count(ctx, stele.NamespaceKey{Scheme: "ark"})
			return err
		}},
		{"Apply", func(ctx context.Context) error { return s.Apply(ctx, records(first(s.ark("b")))) }},
		{"Ingest", func(ctx context.Context) error {
			_, err := s.Ingest(ctx, []*stele.Record{first(s.ark("c"))}, nil, nil, nil)
			return err
		}},
		{"Purge", s.Purge},
		{"Seal", func(ctx context.Context) error { return s.Seal(ctx, "") }}, // there is none
		{"Sealed", func(ctx context.Context) error { _, err := s.Sealed(ctx); return err }},
		{"Ready", s.Ready},
		{"Backup", func(ctx context.Context) error { return s.Backup(ctx, filepath.Join(s.test.TempDir(), "backup")) }},
		{"Verify", func(ctx context.Context) error { return s.Verify(ctx, func(*stele.Message) {}) }},
	}
}

// failure drains an iterator for its error.
func failure[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// something puts a little of everything into the store.
func (s *session) something() {
	s.Helper()
	s.apply(&stele.Commit{
		Records:    []*stele.Record{s.full(s.ark("a"), s.ark("alias"))},
		Counter:    countFor(stele.NamespaceKey{Scheme: "ark"}, 0),
		Namespaces: []*stele.Namespace{space("ark", "")},
		Minters:    []stele.MinterState{{Name: "m", After: []byte{1}}, {Name: "empty", After: []byte{}}},
		Cells:      []stele.CellChange{{Name: "c", After: []byte{1}}, {Name: "empty", After: []byte{}}, {Name: "short", After: []byte{1}}},
	})
}

// checkEnded: with a context that has ended no method does anything.
func checkEnded(s *session) {
	s.something()
	before := s.image()
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	for _, c := range s.calls() {
		if err := c.do(ended); !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a context that has ended: %v, want the context's error", c.name, err)
		}
	}
	s.wantImage("a context that had ended, and something was done", before)
	for _, c := range s.calls() {
		if err := c.do(s.ctx); err != nil {
			s.Errorf("%s: %v", c.name, err)
		}
	}
}

// checkEnding: iterations and commits end when their context does.
func checkEnding(s *session) {
	const n = 5000
	list := s.numbered("%d", n)
	for _, r := range list {
		r.Targets = []stele.Target{at("https://example.org/all")}
	}
	s.ingest(list, nil, nil)
	many := &stele.Commit{}
	for i := range n {
		many.Cells = append(many.Cells, stele.CellChange{Name: fmt.Sprint(i), After: []byte{1}})
	}
	s.apply(many)
	during := func(what string, iterate func(ctx context.Context, visit func(error) bool)) {
		s.Helper()
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		items, last := 0, error(nil)
		iterate(ctx, func(err error) bool {
			if items++; items == 3 {
				cancel()
			}
			last = err
			return true
		})
		if !errors.Is(last, context.Canceled) || items > n/2 {
			s.Errorf("%s: its context ended after 3 items; it gave %d and ended with %v", what, items, last)
		}
	}
	during("Scan", func(ctx context.Context, visit func(error) bool) { each(s.Scan(ctx, "ark", "", ""), visit) })
	during("Changes", func(ctx context.Context, visit func(error) bool) { each(s.Changes(ctx, 0), visit) })
	during("Cells", func(ctx context.Context, visit func(error) bool) { each(s.Cells(ctx, "", ""), visit) })
	for _, l := range []stele.Location{{URL: "https://example.org/all"}, {Host: "example.org"}} {
		during("Pointing", func(ctx context.Context, visit func(error) bool) { each(s.Pointing(ctx, l, stele.ID{}), visit) })
	}
	s.checkWaiting()
}

func each[T any](seq iter.Seq2[T, error], visit func(error) bool) {
	for _, err := range seq {
		if !visit(err) {
			return
		}
	}
}

// checkWaiting: a commit whose context ends while it waits is there if it returned nil,
// is not there if it returned an error, and may be either if the error says so.
func (s *session) checkWaiting() {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	verdicts := make([][]error, writers)
	var acknowledged atomic.Int32
	together(writers, func(i int) {
		for j := range 20 {
			err := s.commit(ctx, j, first(s.ark(fmt.Sprintf("w%d-%d", i, j))))
			verdicts[i] = append(verdicts[i], err)
			if err == nil && acknowledged.Add(1) == writers {
				cancel()
			}
		}
	})
	if acknowledged.Load() < writers {
		s.Errorf("%d commits were acknowledged before the context ended, want %d", acknowledged.Load(), writers)
	}
	for i, list := range verdicts {
		for j, err := range list {
			id := s.ark(fmt.Sprintf("w%d-%d", i, j))
			switch {
			case err == nil:
				s.want(id, first(id))
			case !isContextError(err):
				s.Errorf("a commit whose context ended: %v, want the context's error", err)
			case !errors.Is(err, stele.Unavailable):
				s.wantNone(id)
			}
		}
	}
}
