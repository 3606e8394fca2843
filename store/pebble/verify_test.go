package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
	stored "github.com/stele-id/stele/store/binary"
)

// spoiler is a way to spoil a registry, and a part of what Verify says then.
type spoiler struct {
	name  string
	spoil func(b *pebbledb.Batch)
	want  string
}

// small is the registry that is spoilt: a record with three versions, another one,
// a namespace, and two cells.
type small struct {
	a1, a2, a3, b *stele.Record
	space         *stele.Namespace
}

func newSmall(t testing.TB) *small {
	alias := ark(t, "alias")
	return &small{
		sample(t, "a", 1, alias), sample(t, "a", 2, alias), sample(t, "a", 3, alias, ark(t, "later")), sample(t, "b", 1),
		&stele.Namespace{Scheme: "ark", Owner: "ana", Version: 1},
	}
}

// fill commits the registry, as the changes 1 to 5.
func (m *small) fill(t testing.TB, s *Store) {
	t.Helper()
	count := func(stele.ID) (stele.NamespaceKey, uint64) { return m.space.Key(), 0 }
	for _, r := range []*stele.Record{m.a1, m.a2, m.a3, m.b} {
		mustApply(t, s, &stele.Commit{Records: []*stele.Record{r}, Counter: count})
	}
	mustApply(t, s, &stele.Commit{
		Namespaces: []*stele.Namespace{m.space},
		Cells:      []stele.CellChange{{Name: "c", After: []byte{1}}, {Name: "empty", After: []byte{}}},
	})
}

// put sets a key, and cut removes one.
func put(key, value []byte) func(*pebbledb.Batch) {
	return func(b *pebbledb.Batch) { _ = b.Set(key, value, nil) }
}

func cut(key []byte) func(*pebbledb.Batch) {
	return func(b *pebbledb.Batch) { _ = b.Delete(key, nil) }
}

func bodyOf(t testing.TB, r *stele.Record) []byte {
	t.Helper()
	data, err := stored.MarshalRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// spoilers are all ways to spoil the registry.
func (m *small) spoilers(t testing.TB) []spoiler {
	named := func(r *stele.Record) []byte { return append([]byte{isRecord}, bodyOf(t, r)...) }
	place := func(r *stele.Record) []byte {
		var e encoder
		return e.locate(r)[0]
	}
	a, b, space := m.a1.ID, m.b.ID, m.space.Key()
	twice := appendChange(nil, &feedEntry{stele.Change{ID: a, Version: 1}})
	return []spoiler{
		{"nothing", func(*pebbledb.Batch) {}, ""},
		{"an alias is missing", cut(nameKey(ark(t, "alias"))), `the alias "ark:12345/alias" of "ark:12345/a" does not lead to it`},
		{"an alias leads elsewhere", put(nameKey(ark(t, "alias")), aliasValue(nameKey(b))), "which does not have it"},
		{"an alias of nothing", put(nameKey(ark(t, "x")), aliasValue(nameKey(ark(t, "y")))), "an alias of a record that is not there"},
		{"a record is missing", cut(nameKey(b)), "leads to a record that is not there"},
		{"a record is another's", put(nameKey(b), named(m.a3)), "the record of another name"},
		{"a record can't be read", put(nameKey(b), []byte{isRecord, 1, 2, 3}), "can't be read"},
		{"a name has nothing", put(nameKey(b), nil), "leads to no record"},
		{"a version is too great", put(nameKey(b), named(sample(t, "b", 1<<60))), "has the version 1152921504606846976"},
		{"a version is not in the feed", put(nameKey(b), named(sample(t, "b", 2))), "is not in the change feed"},
		{"the first version is missing", cut(historyKey(a, 1)), `the history of "ark:12345/a" has no version 1`},
		{"the second version is missing", cut(historyKey(a, 2)), `the history of "ark:12345/a" has no version 2`},
		{"history of the future", put(historyKey(a, 3), bodyOf(t, m.a3)), "not older than the current one"},
		{"history of nothing", put(historyKey(ark(t, "zz"), 1), bodyOf(t, m.a1)), "belongs to no record"},
		{"history before everything", put(historyKey(ark(t, "0"), 1), bodyOf(t, m.a1)), "belongs to no record"},
		{"history of another", put(historyKey(a, 1), bodyOf(t, m.b)), `has version 1 of "ark:12345/b"`},
		{"history can't be read", put(historyKey(a, 1), []byte{9}), "can't be read"},
		{"history lost an alias", put(nameKey(a), named(sample(t, "a", 3))), `version 3 of "ark:12345/a" has lost the alias "ark:12345/alias"`},
		{"a reverse look-up is missing", cut(place(m.b)), `the record "ark:12345/b" can't be found by`},
		{"a reverse look-up too many", put(place(m.a2), nil), "has no target there"},
		{"a reverse look-up of nothing", put(place(sample(t, "q", 1)), nil), "leads to a record that is not there"},
		{"a reverse look-up of what", put([]byte{familyURL, 'x'}, nil), "can't be read"},
		{"a reverse look-up has a value", put(place(m.b), []byte("x")), "it should have none"},
		{"the feed has a gap", cut(appendChangeKey(nil, 2)), "the change feed has number 3 after 1"},
		{"the feed ends early", cut(appendChangeKey(nil, 5)), "the change feed ends with number 4"},
		{"the feed can't be read", put(appendChangeKey(nil, 3), []byte{1}), "can't be read"},
		{"the feed says it twice", put(appendChangeKey(nil, 3), appendChunk(nil, time.Unix(1, 0), 1, twice)), "are the same version 1"},
		{"a count is wrong", put(countKey(space), binary.AppendUvarint(nil, 7)), "counts 7 names, and the change feed has 4"},
		{"a count is missing", cut(countKey(space)), "has no count"},
		{"a count can't be read", put(countKey(space), []byte{0x80}), "can't be read"},
		{"a namespace is missing", cut(namespaceKey(space)), "is of a version that is not there"},
		{"a namespace can't be read", put(namespaceKey(space), []byte{7}), "can't be read"},
		{"a namespace is another's", put(namespaceKey(stele.NamespaceKey{Scheme: "urn"}), stored.MarshalNamespace(m.space)), "the namespace of another name"},
		{"a cell has no name", put(cellKey(""), []byte("x")), "is not what a cell can be"},
		{"a cell's name is too long", put(cellKey(strings.Repeat("n", stele.MaxCellName+1)), nil), "with a name of 1025 bytes and a value of 0, is not what a cell can be"},
		{"a cell is too large", put(cellKey("c"), make([]byte, stele.MaxCell+1)), `the cell key "c", with a name of 1 bytes and a value of 1048577`},
		{"the longest and largest cell", put(cellKey(strings.Repeat("n", stele.MaxCellName)), make([]byte, stele.MaxCell)), ""},
		{"a key behind the marks of versions", put([]byte{familyMark + 1, 1}, nil), "is none that the store writes"},
		{"an audit key of another length", put([]byte{familyAudit, 1}, nil), "can't be read"},
		{"a key of nobody", put([]byte{0x20, 1}, nil), "is none that the store writes"},
	}
}

// TestVerify spoils a small registry in every way that there is, and wants to be told
// of each.
func TestVerify(t *testing.T) {
	m := newSmall(t)
	for _, c := range m.spoilers(t) {
		t.Run(c.name, func(t *testing.T) {
			s := openOn(t, vfs.NewMem(), "db")
			defer mustClose(t, s)
			m.fill(t, s)
			batch := s.current.Load().db.NewBatch()
			c.spoil(batch)
			if !batch.Empty() {
				if err := batch.Commit(pebbledb.Sync); err != nil {
					t.Fatal(err)
				}
			}
			h := s.current.Load()
			s.publish(h.newView(h.seq))
			var problems []string
			if err := s.Verify(t.Context(), func(p *stele.Message) { problems = append(problems, p.Error()) }); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(problems, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("want %q, got:\n%s", c.want, all)
			}
			// However the names are cut into ranges, the same is found.
			for _, cuts := range [][]string{{"a"}, {"alias"}, {"b"}, {"a", "alias", "b", "c"}, {"0", "zz"}} {
				var again []string
				ranges := func(*checker) (ends [][]byte) {
					for _, name := range cuts {
						ends = append(ends, nameKey(ark(t, name)))
					}
					return append(ends, []byte{familyName + 1})
				}
				to := &told{report: func(p *stele.Message) { again = append(again, p.Error()) }, progress: func(float64) {}}
				if err := s.verify(t.Context(), to, ranges); err != nil {
					t.Fatal(err)
				}
				if got, want := slices.Sorted(slices.Values(again)), slices.Sorted(slices.Values(problems)); !slices.Equal(got, want) {
					t.Errorf("cut at %q: %q, and not %q", cuts, got, want)
				}
			}
			for _, p := range problems {
				if !strings.HasSuffix(p, ".") || strings.Contains(p, "\n") {
					t.Errorf("not a sentence: %q", p)
				}
			}
		})
	}
}

// TestVerifyEnds: Verify ends soon after its context does, wherever it is, and reports nothing as missing that it did not read.
func TestVerifyEnds(t *testing.T) {
	m := newSmall(t)
	s := openOn(t, vfs.NewMem(), "db")
	defer mustClose(t, s)
	m.fill(t, s)
	for k := 1; ; k++ {
		ctx, cancel := context.WithCancel(t.Context())
		calls, done := 0, make(chan error, 1) // told calls one at a time
		go func() {
			done <- s.VerifyProgress(ctx, func(p *stele.Message) { t.Errorf("cancelled at call %d: %s", k, p) }, func(float64) {
				if calls++; calls == k {
					cancel()
				}
			})
		}()
		var err error
		select {
		case err = <-done:
		case <-time.After(30 * time.Second):
			t.Fatalf("cancelled at call %d, it does not end", k)
		}
		cancel()
		if calls < k { // it was done before
			if k < 8 || err != nil {
				t.Errorf("%d calls, %v", calls, err)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "\n") {
			t.Errorf("cancelled at call %d: %v", k, err)
		}
	}
}

// TestZoneChangesEnd: a context that has ended is not taken for a change that is missing.
func TestZoneChangesEnd(t *testing.T) {
	s := openOn(t, vfs.NewMem(), "db")
	defer mustClose(t, s)
	newSmall(t).fill(t, s)
	v, err := s.look(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer v.unpin()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.chunkWith(ctx, v, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestBeside: a panic in a part is an error, which is the first one only, and the other parts are done. After the end of the context
// none is begun.
func TestBeside(t *testing.T) {
	c := &checker{ctx: t.Context(), told: &told{}}
	var done atomic.Int64
	good := func(f *checker) error { f.aliases.n++; done.Add(1); return nil }
	lost := func(*checker) error { panic("lost") }
	err := c.beside(good, lost, good, lost, good)
	if stele.KindOf(err) != stele.Internal || !strings.Contains(err.Error(), "lost, at verify_test.go:") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if done.Load() != 3 || c.aliases.n != 3 {
		t.Errorf("%d parts were done, and %d added", done.Load(), c.aliases.n)
	}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := c.beside(good, lost); err != context.Canceled || done.Load() != 3 {
		t.Errorf("%v, %d", err, done.Load())
	}
}
