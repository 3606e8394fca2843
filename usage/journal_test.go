package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// busyNames is how many names an interval has that goes to the journal.
const busyNames = 2*cellsAtOnce + 300

func busyName(n int) string { return fmt.Sprintf("ark:12345/x%05d", n) }

// busyInterval counts a use of each of many names, by a reader of its own, and writes the figures.
func busyInterval(ctx context.Context, c *Counter, now time.Time, visitor uint64) {
	c.ctx = ctx
	for n := range busyNames {
		c.tally.count(&reading{at: now.Unix(), id: stele.StoredID("ark", busyName(n)), visitor: visitor, class: Regular, kind: Redirect})
	}
	c.flush(now)
}

// count returns how many cells begin with a prefix.
func (h *house) count(prefix string) (n int) {
	h.Helper()
	for _, err := range h.r.UsageList(asServer(h.Context()), prefix, "") {
		if err != nil {
			h.Fatal(err)
		}
		n++
	}
	return n
}

// wantBusy checks the figures of all names: those of reports, and those of cells if there should be no journal.
func (h *house) wantBusy(uses uint64) {
	h.Helper()
	b := &Book{Registrar: h.r, Schemes: h.schemes}
	at := 0
	for c, err := range b.names(h.Context(), recordCells, "") {
		if err != nil {
			h.Fatal(err)
		}
		if want := recordCell(stele.StoredID("ark", busyName(at)), DateOf(noon).number()); c.Name != want {
			h.Fatalf("cell %d is %q; should be %q", at, c.Name, want)
		}
		m, err := parseMonth(c.Value)
		if err != nil {
			h.Fatal(err)
		}
		if sum := m.Sum(); sum[Regulars] != uses || sum[RegularUnique] != uses {
			h.Fatalf("%q has %v; should have %d", c.Name, sum, uses)
		}
		at++
	}
	if at != busyNames {
		h.Fatalf("%d names; should be %d", at, busyNames)
	}
}

// TestJournal has a busy server write a journal, and add it to the cells of names after a time. Reports tell all at any time.
func TestJournal(t *testing.T) {
	h := newHouse(t)
	h.counter.ctx = t.Context()
	h.counter.work(h.now) // nothing is there yet
	for i := range 3 {
		busyInterval(t.Context(), h.counter, h.now, uint64(i))
		h.wantBusy(uint64(i) + 1)
		if cells, parts := h.count(recordCells), h.count(journalCells); cells != 0 || parts != i+1 {
			t.Fatalf("after %d intervals there are %d cells of names and %d parts of a journal", i+1, cells, parts)
		}
	}
	if s := h.space(); s[Regulars] != 3*busyNames {
		t.Errorf("the namespace has %v before names have", s)
	}
	ctx := auth.With(t.Context(), auth.Local())
	if _, err := h.r.AddNamespace(ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	before, err := (&Book{Registrar: h.r, Schemes: h.schemes}).Report(ctx, apijson.UsageQuery{Name: "ark:12345/x", By: byName})
	if err != nil || len(before.Rows) != busyNames || before.Total.Regular != 3*busyNames || before.Rows[7].Regular != 3 {
		t.Fatalf("%d rows, %+v, %v", len(before.Rows), before.Total, err)
	}
	for h.now = noon; h.now.Sub(noon) < (foldAfter+2)*30*time.Second; h.now = h.now.Add(time.Second) {
		h.counter.work(h.now)
	}
	h.wantBusy(3)
	if cells, parts := h.count(recordCells), h.count(journalCells); cells != busyNames || parts != 0 {
		t.Errorf("after the fold there are %d cells of names and %d parts of a journal", cells, parts)
	}
	busyInterval(t.Context(), h.counter, h.now, 9) // on top of what is in the cells
	h.wantBusy(4)
	// A server that ended left its journal; the next one adds it up at its start.
	h.counter.end(t.Context())
	h.counter = h.newCounter(h.r)
	h.counter.work(h.now)
	h.wantBusy(4)
	if parts := h.count(journalCells); parts != 0 {
		t.Errorf("%d parts of a journal are left after a restart", parts)
	}
}

// TestAllReportsReadJournals checks that each report has what waits in a journal.
func TestAllReportsReadJournals(t *testing.T) {
	h := newHouse(t)
	ctx := auth.With(t.Context(), auth.Local())
	if _, err := h.r.AddNamespace(ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	used, unused := stele.StoredID("ark", busyName(17)), h.id("ark:12345/y1")
	for _, id := range []stele.ID{used, unused} {
		if _, err := h.r.Register(ctx, &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10}}}); err != nil {
			t.Fatal(err)
		}
	}
	b := &Book{Registrar: h.r, Schemes: h.schemes}
	if has, err := b.HasMonths(ctx); has || err != nil {
		t.Errorf("figures before there are any: %v", err)
	}
	busyInterval(ctx, h.counter, h.now, 1)
	if has, err := b.HasMonths(ctx); !has || err != nil {
		t.Errorf("no figures: %v", err)
	}
	if r, err := b.Report(ctx, apijson.UsageQuery{Name: used.String(), Of: ofRecord}); err != nil || r.Total.Regular != 1 {
		t.Errorf("the record has %+v: %v", r, err)
	}
	months := 0
	for m, err := range b.Months(ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, DateOf(noon)) {
		if err != nil || m.Counts[Regulars] != 1 {
			t.Fatalf("%+v: %v", m, err)
		}
		months++
	}
	if months != busyNames {
		t.Errorf("%d months of names", months)
	}
	page, err := b.CounterReport(ctx, apijson.UsageReportQuery{Name: "ark:12345", Limit: 10, After: busyName(1)})
	if err != nil || len(page.Names) != 10 || page.Names[0].ID[0].Value != busyName(2) {
		t.Errorf("%+v: %v", page, err)
	}
	rest, err := b.Unused(ctx, apijson.UnusedQuery{Name: "ark:12345"})
	if err != nil || len(rest.Names) != 1 || rest.Names[0].Name != unused.String() {
		t.Errorf("%+v: %v", rest, err)
	}
}

// TestFewNamesNeedNoJournal checks that figures of a few names are in their cells at once.
func TestFewNamesNeedNoJournal(t *testing.T) {
	h := newHouse(t)
	h.visit(h.ann, firefox)
	h.want(1, 1)
	if parts := h.count(journalCells); parts != 0 {
		t.Errorf("%d parts of a journal", parts)
	}
}

// mortal is a store that is cut off after some commits: the last one is made, or not, and the server is not told.
type mortal struct {
	Store
	left int
	late bool
}

func (s *mortal) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	if s.left--; s.left > 0 {
		return s.Store.KeepUsage(ctx, changes...)
	}
	if s.left == 0 && s.late {
		_ = s.Store.KeepUsage(ctx, changes...)
	}
	return refuse(stele.Unavailable, "x.y", "the power is gone")
}

// TestFoldKilled kills a server at each commit of a fold. The next one goes on, nothing is counted twice or lost, and reports are right at any time.
func TestFoldKilled(t *testing.T) {
	for _, late := range []bool{false, true} {
		for kill := 1; ; kill++ {
			h := newHouse(t)
			for i := range 3 {
				busyInterval(t.Context(), h.counter, h.now, uint64(i))
			}
			first := newKeeper(&mortal{h.r, kill, late}, h.counter.o.Log)
			first.folds.queue = []string{h.counter.keeper.server}
			err := first.fold(t.Context(), h.now, 100)
			h.wantBusy(3)
			// The server that wrote the journal is alive, and goes on.
			busyInterval(t.Context(), h.counter, h.now, 4)
			h.wantBusy(4)
			second := newKeeper(h.r, h.counter.o.Log)
			for range 2 { // the first goes on where the other one was, the second adds what came meanwhile
				second.folds.queue = []string{h.counter.keeper.server}
				if err := second.fold(t.Context(), h.now, 100); err != nil {
					t.Fatal(err)
				}
				h.wantBusy(4)
			}
			if cells, parts := h.count(recordCells), h.count(journalCells); cells != busyNames || parts != 0 {
				t.Fatalf("killed at commit %d: %d cells of names, %d parts of a journal", kill, cells, parts)
			}
			if err == nil {
				if kill < 5 { // three of cells, and what removes the parts
					t.Errorf("the fold had %d commits", kill-1)
				}
				break
			}
		}
	}
}

// TestAppendKilled kills the connection at each commit of an interval that goes to the journal.
func TestAppendKilled(t *testing.T) {
	for _, late := range []bool{false, true} {
		h := newHouse(t)
		store := &shaky{Store: h.r, late: late}
		h.counter = h.newCounter(store)
		for i := range 4 {
			store.fail = i%2 == 0
			busyInterval(t.Context(), h.counter, h.now, uint64(i))
		}
		h.wantBusy(4)
		if s := h.counter.Stats(); s.Failed != 2 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestFoldTogether has two servers fold the journal of a third, which is alive, in turns of one commit.
func TestFoldTogether(t *testing.T) {
	h := newHouse(t)
	for i := range 3 {
		busyInterval(t.Context(), h.counter, h.now, uint64(i))
	}
	one, two := newKeeper(h.r, h.counter.o.Log), newKeeper(h.r, h.counter.o.Log)
	for turn := range 40 {
		for i, k := range []*keeper{one, two, h.counter.keeper} {
			if k.folds.now == nil && len(k.folds.queue) == 0 {
				k.folds.queue = []string{h.counter.keeper.server}
			}
			if err := k.fold(t.Context(), h.now.Add(time.Duration(i)*time.Second), 1); err != nil { // their clocks differ, so their heads do
				t.Fatal(err)
			}
		}
		if turn == 2 {
			busyInterval(t.Context(), h.counter, h.now, 4)
		}
	}
	h.wantBusy(4)
	if parts := h.count(journalCells); parts != 0 {
		t.Errorf("%d parts of a journal are left", parts)
	}
}

// TestLookForJournals checks whose journals a server folds: its own, and those of servers that have ended.
func TestLookForJournals(t *testing.T) {
	h := newHouse(t)
	ended, alive := h.newCounter(h.r), h.newCounter(h.r)
	busyInterval(t.Context(), h.counter, h.now, 1)
	busyInterval(t.Context(), ended, h.now, 2)
	busyInterval(t.Context(), alive, h.now, 3)
	every := foldAfter * h.counter.o.Interval
	want := func(now time.Time, servers ...*Counter) {
		t.Helper()
		var names []string
		for _, c := range servers {
			names = append(names, c.keeper.server)
		}
		slices.Sort(names)
		k := h.counter.keeper
		k.folds = folds{}
		if k.look(t.Context(), now, every); !slices.Equal(k.folds.queue, names) {
			t.Errorf("%d journals are folded: %q; should be %q", len(k.folds.queue), k.folds.queue, names)
		}
	}
	want(h.now, h.counter)
	ended.keeper.end(t.Context())
	want(h.now, h.counter, ended)
	want(h.now.Add(2*every+2*time.Minute), h.counter, ended, alive) // its mark is old
	// A server that does not count adds up what others left.
	k := newKeeper(h.r, h.counter.o.Log)
	k.foldAll(t.Context(), h.now.Add(time.Hour))
	if parts := h.count(journalCells); parts != 0 {
		t.Errorf("%d parts of a journal are left", parts)
	}
	h.wantBusy(3)
}

// paged is a store that shows cells as they are when it comes to them, and not as they were when it began, as a database does that is read page by page.
type paged struct{ stele.Store }

func (s paged) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		for more := true; more; {
			more = false
			for c, err := range s.Store.Cells(ctx, prefix, after) {
				if !yield(c, err) || err != nil {
					return
				}
				after, more = c.Name, true
				break
			}
		}
	}
}

// TestReportWhileFolding has figures move from a journal to the cells while a report reads them.
func TestReportWhileFolding(t *testing.T) {
	h := newHouse(t)
	for i := range 3 {
		busyInterval(t.Context(), h.counter, h.now, uint64(i))
	}
	k := newKeeper(h.r, h.counter.o.Log)
	k.folds.queue = []string{h.counter.keeper.server}
	if err := k.fold(t.Context(), h.now, 2); err != nil { // so there are cells, and parts that are not in all of them
		t.Fatal(err)
	}
	b := &Book{Registrar: registrar.New(paged{h.store}, h.schemes, registrar.Options{Now: h.clock}), Schemes: h.schemes}
	n := 0
	for c, err := range b.names(t.Context(), recordCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMonth(c.Value)
		if sum := m.Sum(); err != nil || sum[Regulars] != 3 {
			t.Fatalf("cell %d has %v: %v", n, sum, err)
		}
		if n%300 == 0 {
			if err := k.fold(t.Context(), h.now, 1); err != nil {
				t.Fatal(err)
			}
		}
		n++
	}
	if n != busyNames {
		t.Errorf("%d cells", n)
	}
}

// TestOldHeads checks that the head of a journal is removed after two days, if the journal has no parts.
func TestOldHeads(t *testing.T) {
	h := newHouse(t)
	busyInterval(t.Context(), h.counter, h.now, 1)
	k := newKeeper(h.r, h.counter.o.Log)
	k.foldAll(t.Context(), h.now.Add(time.Hour))
	for _, step := range []struct {
		after time.Duration
		heads int
	}{{47 * time.Hour, 1}, {50 * time.Hour, 0}} {
		k.forgetMarks(t.Context(), h.now.Add(step.after))
		if heads := h.count(headCells); heads != step.heads {
			t.Errorf("after %v there are %d heads", step.after, heads)
		}
	}
	busyInterval(t.Context(), h.counter, h.now, 2) // the server was alive
	h.wantBusy(2)
	k.foldAll(t.Context(), h.now.Add(80*time.Hour))
	h.wantBusy(2)
}

// TestDamagedPart checks that a part that can't be read is left where it is, and the others are added up.
func TestDamagedPart(t *testing.T) {
	h := newHouse(t)
	for i := range 3 {
		busyInterval(t.Context(), h.counter, h.now, uint64(i))
	}
	server := asServer(t.Context())
	second := partCell(h.counter.keeper.server, 2)
	value, err := h.r.UsageCell(server, second)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.r.KeepUsage(server, stele.CellChange{Name: second, Before: value, After: value[:len(value)-1]}); err != nil {
		t.Fatal(err)
	}
	h.wantBusy(2)
	k := newKeeper(h.r, h.counter.o.Log)
	for range 3 {
		k.foldAll(t.Context(), h.now.Add(time.Hour))
		h.wantBusy(2)
	}
	if parts := h.count(journalCells); parts != 1 {
		t.Errorf("%d parts are left", parts)
	}
}

// TestSortedAsCells checks that records are sorted as their cells are: long names, names that others begin with, schemes, months.
func TestSortedAsCells(t *testing.T) {
	long := strings.Repeat("n", maxCellText)
	rapid.Check(t, func(t *rapid.T) {
		var r records
		r.forget()
		seed := maphash.MakeSeed()
		want := make(map[string]uint64)
		for range rapid.IntRange(0, 60).Draw(t, "lines") {
			text := rapid.SampledFrom([]string{"", "ab", long[:maxCellText-4], long[:maxCellText-1], long, long + "n"}).Draw(t, "begin") + rapid.StringMatching(`[a-c]{1,3}`).Draw(t, "end")
			l := journalLine{day: dayOf(noon.Unix()) + int32(rapid.IntRange(0, 40).Draw(t, "day")), scheme: rapid.SampledFrom([]string{"purl", "ark", "hdl"}).Draw(t, "scheme"), text: []byte(text), delta: [figures]int32{1}}
			r.gather(seed, &l)
			want[cellName(recordCells, l.scheme, text, monthNumber(l.day))]++
		}
		last, got := "", 0
		for s := r.sort(0); len(s.order) > 0; {
			for _, a := range s.take() {
				if a.cell <= last {
					t.Fatalf("%q comes after %q", a.cell, last)
				}
				value, err := a.add(nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _, rest, _ := cutCell(a.cell[len(recordCells):], 2)
				_, text, _, _ := cutCell(a.cell[len(recordCells):], 2)
				m, err := readMonth(text, value)
				if sum := m.Sum(); err != nil || sum[Regulars] != want[a.cell] {
					t.Fatalf("%q %q has %v, %v; should have %d", a.cell, rest, sum, err, want[a.cell])
				}
				last = a.cell
				got++
			}
		}
		if got != len(want) {
			t.Fatalf("%d cells; should be %d", got, len(want))
		}
	})
}

// TestParts writes lines and reads them.
func TestParts(t *testing.T) {
	tally := newTally(func(stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} })
	type line struct {
		scheme, text string
		day          int32
		delta        [figures]int32
	}
	var want, got []line
	for i := range 60_000 {
		l := line{"ark", fmt.Sprintf("ark:12345/x%d", i), int32(20_000 + i/20_000), [figures]int32{Regulars: int32(i%7) - 1, Robots: 1 << 30}}
		if i%2 == 1 {
			l.scheme = "hdl"
		}
		at := tally.records.add(uint64(i)*0x9e3779b97f4a7c15, stele.StoredID(l.scheme, l.text), l.day, stele.NamespaceKey{})
		tally.records.list[at].delta = l.delta
		want = append(want, l)
	}
	number := 0
	parts := tally.journal(func() string { number++; return partCell("s", uint64(number)) })
	for _, a := range parts {
		value, err := a.add(nil)
		if err != nil || len(value) > stele.MaxCell {
			t.Fatalf("%d bytes: %v", len(value), err)
		}
		if err := parsePart(value, func(l *journalLine) { got = append(got, line{l.scheme, string(l.text), l.day, l.delta}) }); err != nil {
			t.Fatal(err)
		}
		if _, err := a.add(value); err == nil {
			t.Error("a part was written over another one")
		}
	}
	if len(parts) < 2 || !slices.Equal(got, want) {
		t.Errorf("%d parts, %d lines of %d", len(parts), len(got), len(want))
	}
	if n := weigh(parts); n != len(want) {
		t.Errorf("the parts have %d lines", n)
	}
}

// FuzzPart reads anything as a part: what can be read has the same lines when it is written again.
func FuzzPart(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendLine([]byte("\x00\x80\x9c\x01\x03ark"), &[figures]int32{1, 1}, []byte("ark:12345/x1")))
	f.Add(appendLine(nil, &[figures]int32{1}, []byte("no day")))
	f.Fuzz(func(t *testing.T, value []byte) {
		n := 0
		err := parsePart(value, func(l *journalLine) {
			n++
			var again journalLine
			again.day = l.day
			rest, err := again.parse(appendLine(nil, &l.delta, l.text))
			if l.delta != [figures]int32{} && (err != nil || len(rest) > 0 || !bytes.Equal(again.text, l.text) || again.delta != l.delta) {
				t.Errorf("%+v becomes %+v: %v", l, again, err)
			}
		})
		if err != nil && n > 0 {
			t.Errorf("%d lines before %v", n, err)
		}
	})
}

// FuzzHead reads anything as the head of a journal.
func FuzzHead(f *testing.F) {
	f.Add([]byte("7 2026-11-17T12:00:00Z use rark\x00x\x00\x01\x02"))
	f.Add([]byte("7 2026-11-17T12:00:00Z "))
	f.Fuzz(func(t *testing.T, value []byte) {
		h, err := readHead(value)
		if err != nil {
			return
		}
		if again, err := readHead(h.value()); err != nil && h.at.Year() >= 0 && h.at.Year() <= 9999 || err == nil && (again.until != h.until || again.after != h.after) {
			t.Errorf("%+v becomes %+v: %v", h, again, errors.Join(err))
		}
	})
}
