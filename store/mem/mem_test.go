package mem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept is a store whose Close writes what it has to a folder, so that the suite
// can open it again.
type kept struct {
	*Store
	folder string
}

func (k kept) Close() error {
	st := k.shut()
	if st == nil {
		return nil
	}
	if err := os.RemoveAll(k.folder); err != nil {
		return err
	}
	if err := os.MkdirAll(k.folder, 0o777); err != nil {
		return err
	}
	return st.save(context.Background(), filepath.Join(k.folder, backupFile))
}

func open(t testing.TB, folder string) stele.Store {
	t.Helper()
	s, err := Open(folder, time.Now)
	if errors.Is(err, stele.NotFound) {
		s, err = New(time.Now), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return kept{s, folder}
}

func TestStore(t *testing.T) { storetest.Run(t, storetest.Harness{Open: open, Durable: true}) }

// id makes an identifier of a scheme that does not matter.
func id(t testing.TB, text string) stele.ID {
	t.Helper()
	id, err := stele.NewID("x", text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// One commit a record must not take longer the more there are.
func TestManyCommits(t *testing.T) {
	s := New(time.Now)
	const n = 30_000
	for i := range n {
		r := &stele.Record{
			ID: id(t, fmt.Sprintf("%06d", i*7919%n)), State: stele.Active, Version: 1,
			Targets: []stele.Target{{Service: stele.N2L, URL: fmt.Sprint("https://example.org/", i)}},
		}
		if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for r, err := range s.Scan(t.Context(), "x", "", "") {
		if want := fmt.Sprintf("%06d", i); err != nil || r.ID.String() != want {
			t.Fatalf("record %d is %v, %v; want %s", i, r, err, want)
		}
		i++
	}
	if i != n {
		t.Errorf("Scan found %d records, want %d", i, n)
	}
}

// Each kind of damage must be reported: a check that finds nothing is not a check.
func TestVerifyFindsDamage(t *testing.T) {
	good := func() *state {
		s := New(time.Now)
		ctx := t.Context()
		first := &stele.Record{
			ID: id(t, "a"), Aliases: []stele.ID{id(t, "b")}, State: stele.Active, Version: 1,
			Targets: []stele.Target{{URL: "https://example.org/"}},
		}
		second := *first
		second.Version = 2
		for _, c := range []*stele.Commit{
			{Records: []*stele.Record{first}, Counter: func(stele.ID) (stele.NamespaceKey, uint64) { return stele.NamespaceKey{Scheme: "x"}, 0 }},
			{Records: []*stele.Record{&second}, Minters: []stele.MinterState{{Name: "m", After: []byte{1}}}},
			{Cells: []stele.CellChange{{Name: "c", After: []byte{1}}, {Name: "empty", After: []byte{}}}},
			{Namespaces: []*stele.Namespace{{Scheme: "x", Version: 1}}},
		} {
			if err := s.Apply(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		st := *s.shut()
		st.journal = slices.Clone(st.journal)
		return &st
	}
	for name, c := range map[string]struct {
		damage func(st *state)
		want   string
	}{
		"none":              {func(*state) {}, ""},
		"alias lost":        {func(st *state) { st.names = st.names.without(idKey(id(t, "b"))) }, `name "x\x00b" of the journal is missing`},
		"name of nobody":    {func(st *state) { st.names = st.names.with(idKey(id(t, "c")), id(t, "a")) }, `name "x\x00c" is not`},
		"name of another":   {func(st *state) { st.names = st.names.with(idKey(id(t, "b")), id(t, "z")) }, `name "x\x00b" is not`},
		"record lost":       {func(st *state) { st.records = tree[*version]{} }, `record "x\x00a" of the journal is missing`},
		"version lost":      {func(st *state) { v, _ := st.records.get(idKey(id(t, "a"))); v.before = nil }, "record"},
		"version changed":   {func(st *state) { v, _ := st.records.get(idKey(id(t, "a"))); v.before.body = nil }, "record"},
		"reverse lost":      {func(st *state) { st.pointing = tree[stele.ID]{} }, "reverse look-up"},
		"namespace lost":    {func(st *state) { st.namespaces = tree[*version]{} }, "namespace"},
		"count wrong":       {func(st *state) { st.counts = st.counts.with("x\x00", 3) }, "count"},
		"minter lost":       {func(st *state) { st.minters = st.minters.with("m", nil) }, `minter "m"`},
		"cell lost":         {func(st *state) { st.cells = st.cells.with("c", nil) }, `cell "c"`},
		"cell of no name":   {func(st *state) { st.cells = st.cells.with("", []byte{1}) }, `cell ""`},
		"cell misnamed":     {func(st *state) { st.cells = st.cells.with(strings.Repeat("n", stele.MaxCellName+1), []byte{1}) }, `cell "nnn`},
		"cell too large":    {func(st *state) { st.cells = st.cells.with("c", make([]byte, stele.MaxCell+1)) }, "1048577 bytes"},
		"change lost":       {func(st *state) { st.journal = st.journal[1:] }, "the change at place 1 has the number 2"},
		"change damaged":    {func(st *state) { st.journal[1].body = []byte{9} }, "change 2 can't have been made"},
		"change misnamed":   {func(st *state) { st.journal[1].ID = id(t, "z") }, "change 2 names"},
		"change of nothing": {func(st *state) { st.journal[2].Version = 7 }, "change 3 names"},
	} {
		st := good()
		c.damage(st)
		var problems []string
		if err := newStore(time.Now, st).Verify(t.Context(), func(p *stele.Message) { problems = append(problems, p.Error()) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := strings.Join(problems, "\n")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: Verify reports %q, want %q", name, problems, c.want)
		}
	}
}

// A backup that was cut off or changed is refused, at any byte.
func TestOpenDamagedBackup(t *testing.T) {
	s := New(time.Now)
	err := s.Apply(t.Context(), &stele.Commit{
		Records: []*stele.Record{{ID: id(t, "a"), State: stele.Active, Version: 1}},
		Minters: []stele.MinterState{{Name: "m", After: []byte{1}}},
		Cells:   []stele.CellChange{{Name: "c", After: []byte{1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, backupFile)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(folder, time.Now); !errors.Is(err, stele.Internal) {
			t.Errorf("%s: %v, want an error of kind internal", what, err)
		}
	}
	for i := range data {
		try(fmt.Sprintf("the first %d bytes", i), data[:i])
		bad := slices.Clone(data)
		bad[i] ^= 1
		try(fmt.Sprintf("byte %d changed", i), bad)
	}
	if _, err := Open(t.TempDir(), time.Now); !errors.Is(err, stele.NotFound) {
		t.Errorf("a folder without a backup: %v", err)
	}
}

// A tree does what a map does, and what was taken of it before stays as it was.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[ab]{0,4}`)
		var now, before tree[int]
		model, past := map[string]int{}, map[string]int{}
		compare := func(tr tree[int], m map[string]int) {
			from := key.Draw(t, "from")
			var want, got []string
			for k, v := range m {
				if k >= from {
					want = append(want, fmt.Sprint(k, "=", v))
				}
				if got, ok := tr.get(k); !ok || got != v {
					t.Fatalf("get(%q) = %d, %v; want %d", k, got, ok, v)
				}
			}
			last := ""
			for k, v := range tr.from(from) {
				if k < last {
					t.Fatalf("%q comes after %q", k, last)
				}
				got, last = append(got, fmt.Sprint(k, "=", v)), k
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("from %q: %q, want %q", from, got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"with": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				now, model[k] = now.with(k, v), v
			},
			"without": func(t *rapid.T) {
				k := key.Draw(t, "key")
				now = now.without(k)
				delete(model, k)
			},
			"keep": func(*rapid.T) {
				before, past = now, map[string]int{}
				for k, v := range model {
					past[k] = v
				}
			},
			"": func(*rapid.T) {
				compare(now, model)
				compare(before, past)
			},
		})
	})
}
