package usage

import (
	"bytes"
	"context"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// TestSeveralServers has servers add to the same figures at the same time.
func TestSeveralServers(t *testing.T) {
	h := newHouse(t)
	const servers, rounds = 4, 25
	var all sync.WaitGroup
	for range servers {
		c := h.newCounter(h.r)
		all.Go(func() {
			c.ctx = t.Context()
			for range rounds {
				c.tally.count(&reading{at: noon.Unix(), id: stele.StoredID("ark", "ark:12345/x1"), visitor: rand.Uint64(), class: Regular, kind: Redirect})
				c.flush(noon)
			}
			for range 100 {
				if n, _ := c.keeper.keep(t.Context(), noon, nil); n == 0 {
					break
				}
			}
		})
	}
	all.Wait()
	h.want(servers*rounds, servers*rounds)
	if c := h.space(); c[Regulars] != servers*rounds || c[Visitors] != servers*rounds {
		t.Errorf("the namespace has %v", c)
	}
}

// shaky is a store that fails, before or after it has made a commit.
type shaky struct {
	Store
	fail, late bool
}

func (s *shaky) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	if !s.fail {
		return s.Store.KeepUsage(ctx, changes...)
	}
	if s.late {
		if err := s.Store.KeepUsage(ctx, changes...); err != nil {
			return err
		}
	}
	s.fail = false
	return refuse(stele.Unavailable, "x.y", "the connection is gone")
}

// TestUnknownOutcome checks that a commit counts once whose outcome the server was not told, although other servers go on.
func TestUnknownOutcome(t *testing.T) {
	for _, late := range []bool{false, true} {
		h := newHouse(t)
		store := &shaky{Store: h.r, late: late}
		h.counter = h.newCounter(store)
		other := h.newCounter(h.r)
		other.ctx = t.Context()
		for i := range 10 {
			h.at(time.Duration(i) * time.Minute)
			h.visit(h.ann, firefox)
			store.fail = i%3 == 0
			h.flush()
			other.tick(h.now)
			other.Redirected(h.id("ark:12345/x1"), h.bob, firefox, "")
			other.drain(h.now)
			other.flush(h.now)
		}
		h.want(20, 2)
		if s := h.counter.Stats(); s.Failed != 4 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// asked is a store that notes what is read.
type asked struct {
	Store
	one  int
	many [][]string
}

func (s *asked) UsageCell(ctx context.Context, name string) ([]byte, error) {
	s.one++
	return s.Store.UsageCell(ctx, name)
}

func (s *asked) UsageValues(ctx context.Context, names []string) ([][]byte, error) {
	s.many = append(s.many, slices.Clone(names))
	return s.Store.UsageValues(ctx, names)
}

// TestCellsAreReadAtOnce checks that the cells of a commit are read together, and only those that are not known; and that figures that are
// there are added to.
func TestCellsAreReadAtOnce(t *testing.T) {
	h := newHouse(t)
	h.visit(h.ann, firefox)
	h.flush()
	store := &asked{Store: h.r}
	h.counter = h.newCounter(store) // after a restart
	h.visit(h.ann, firefox)
	h.flush()
	h.want(2, 2)
	if len(store.many) != 1 || len(store.many[0]) < 3 || store.one != 0 { // the name's, the namespace's, and when counting began
		t.Errorf("cells were read %d times together and %d times alone: %q", len(store.many), store.one, store.many)
	}
	h.at(time.Minute)
	h.visit(h.ann, firefox)
	h.flush()
	h.want(3, 2)
	if len(store.many) != 1 || store.one != 0 {
		t.Errorf("known cells were read again: %d times together, %d times alone", len(store.many), store.one)
	}
}

// slow is a store that loses the answer to its first commit, and makes it when several others have been asked for.
type slow struct {
	Store
	held []stele.CellChange
	wait int // commits before it; -1: it was made, or can't be
}

func (s *slow) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	if s.held == nil {
		s.held = changes
		return refuse(stele.Unavailable, "x.y", "the connection is gone")
	}
	if s.wait == 0 {
		_ = s.Store.KeepUsage(ctx, s.held...)
	}
	s.wait--
	return s.Store.KeepUsage(ctx, changes...)
}

// TestLateCommit checks that a commit counts once that is made long after its connection was gone.
func TestLateCommit(t *testing.T) {
	for wait := range 4 {
		h := newHouse(t)
		store := &slow{Store: h.r, wait: wait}
		h.counter = h.newCounter(store)
		for i := range 4 {
			h.at(time.Duration(i) * time.Minute)
			h.visit(h.ann, firefox)
			h.flush()
		}
		h.flush()
		h.want(4, 1)
		if s := h.counter.Stats(); s.Failed != 1 || s.Waiting != 0 || store.wait >= 0 {
			t.Errorf("after %d commits: %+v", wait, s)
		}
	}
}

// TestMarks checks that servers leave no mark when they end, and that the marks of others are removed after a time.
func TestMarks(t *testing.T) {
	h := newHouse(t)
	h.visit(h.ann, firefox)
	h.flush()
	marks := func() (n int) {
		for _, err := range h.r.UsageList(asServer(t.Context()), markCells, "") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if marks() != 1 {
		t.Errorf("%d marks", marks())
	}
	next := h.newCounter(h.r)
	next.keeper.forgetMarks(t.Context(), h.now.Add(time.Hour))
	if marks() != 1 {
		t.Error("the mark of a server that may run was removed")
	}
	next.keeper.forgetMarks(t.Context(), h.now.Add(72*time.Hour))
	if marks() != 0 {
		t.Error("an old mark was left")
	}
	h.counter.keeper.known.clear()
	h.at(time.Minute).visit(h.ann, firefox)
	h.flush()
	h.flush()
	h.counter.keeper.end(t.Context())
	if marks() != 0 {
		t.Error("the mark of a server that ended was left")
	}
	h.want(2, 1)
}

// TestRun counts with the goroutine that a server has, which writes what is left when it ends.
func TestRun(t *testing.T) {
	h := newHouse(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.counter.Run(ctx); close(done) }()
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "")
	stop()
	<-done
	if c := h.sum(recordCell(h.id("ark:12345/x1"), DateOf(h.now).number())); c[Regulars] != 1 {
		t.Errorf("have %v", c)
	}
}

// hanging is a store whose first commit does not return before the context ends, and whose next ones fail.
type hanging struct {
	Store
	hangs chan struct{} // closed when the first hangs
	again bool
}

func (s *hanging) KeepUsage(ctx context.Context, _ ...stele.CellChange) error {
	if !s.again {
		s.again = true
		close(s.hangs)
		<-ctx.Done()
	}
	return refuse(stele.Unavailable, "x.y", "the database does not answer")
}

// TestMidnightWhileHanging checks that the key changes at midnight also if the database does not answer, and that the
// log tells what the end of the server loses.
func TestMidnightWhileHanging(t *testing.T) {
	h := newHouse(t)
	store := &hanging{Store: h.r, hangs: make(chan struct{})}
	var now atomic.Int64
	now.Store(noon.Unix())
	var log bytes.Buffer
	o := h.counter.o
	o.Store, o.Interval, o.Log = store, time.Second, slog.New(slog.NewTextHandler(&log, nil))
	o.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	c := New(o)
	c.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "")
	before := c.key.visitor(h.ann, 7)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	now.Add(2)
	<-store.hangs
	now.Add(secondsDay)
	for c.key.visitor(h.ann, 7) == before {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-done
	if !strings.Contains(log.String(), "figures of use that could not be written are lost") {
		t.Errorf("the log has %q", log.String())
	}
}

// busy is a store that calls a function before each commit.
type busy struct {
	Store
	before func()
}

func (s *busy) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	s.before()
	return s.Store.KeepUsage(ctx, changes...)
}

// TestCountsWhileWriting checks that hits do not wait in the rings until many figures are written.
func TestCountsWhileWriting(t *testing.T) {
	h := newHouse(t)
	h.visit(h.ann, firefox)
	for n := range 3 * cellsAtOnce {
		h.counter.tally.count(&reading{at: noon.Unix(), id: stele.StoredID("ark", "ark:12345/y"+strconv.Itoa(n)), visitor: 7, class: Regular, kind: Redirect})
	}
	var counted []uint64
	h.counter.keeper.store = &busy{Store: h.r, before: func() {
		counted = append(counted, h.counter.hits)
		h.counter.Redirected(h.id("ark:12345/x2"), h.bob, firefox, "")
	}}
	h.flush() // to the journal
	if h.counter.Stats().Kept != 1 {
		t.Errorf("%+v", h.counter.Stats())
	}
	h.counter.keeper.folds.queue = []string{h.counter.keeper.server}
	if err := h.counter.keeper.fold(t.Context(), h.now, 100); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{1, 2, 3, 4, 5, 6}; !slices.Equal(counted, want) { // the journal, four of its 3001 names, and what removes it
		t.Errorf("%v were counted before each commit, want %v; %+v", counted, want, h.counter.Stats())
	}
	h.flush()
	if h.counter.Stats().Kept != 7 {
		t.Errorf("%+v", h.counter.Stats())
	}
}

// TestRollUp checks that days become months after 400 days, and that names that lead nowhere are forgotten after a week.
func TestRollUp(t *testing.T) {
	h := newHouse(t)
	cell := recordCell(h.id("ark:12345/x1"), DateOf(noon).number())
	for day := range 3 {
		h.at(time.Duration(day)*24*time.Hour).visit(h.ann, firefox)
		h.counter.Failed(h.id("ark:12345/nothing"), h.ann, firefox)
		h.flush()
	}
	month := func() Month {
		value, err := h.r.UsageCell(asServer(t.Context()), cell)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMonth(value)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	h.at(399 * 24 * time.Hour)
	h.flush()
	if len(month().Days) != 3 {
		t.Errorf("after 399 days: %v", month())
	}
	h.at(420 * 24 * time.Hour)
	h.flush()
	h.counter.keeper.tidy(t.Context(), h.now)
	if m := month(); len(m.Days) != 1 || m.Days[0].Day != 0 || m.Sum()[Regulars] != 3 {
		t.Errorf("after 420 days: %v", m)
	}
	for c, err := range h.r.UsageList(asServer(t.Context()), failedCells, "") {
		t.Errorf("%q is left, %v", c.Name, err)
	}
	// What is added later counts for the whole month.
	value, err := addDays("ark:12345/x1", appendMonth(nil, &Month{Days: month().Days}), &dayDelta{17, delta{Regulars: 2}})
	if m, fault := parseMonth(value); err != nil || fault != nil || len(m.Days) != 1 || m.Sum()[Regulars] != 5 {
		t.Errorf("after an import: %v, %v", m, err)
	}
}

// TestZones checks that answers of the DNS count for their hours, also after the name server begins anew.
func TestZones(t *testing.T) {
	h := newHouse(t)
	answers := map[string]uint64{"id.example.org.": 5}
	h.counter.o.Zones = func() map[string]uint64 { return answers }
	h.flush()
	h.at(time.Minute).flush()
	answers["id.example.org."] = 7
	h.at(time.Hour).flush()
	answers["id.example.org."] = 1
	h.at(time.Hour).flush()
	value, err := h.r.UsageCell(asServer(t.Context()), zoneCell("id.example.org.", DateOf(noon).number()))
	if err != nil {
		t.Fatal(err)
	}
	hours, err := parseHours(value)
	if want := []Hour{{16*24 + 12, 5}, {16*24 + 13, 3}}; err != nil || !reflect.DeepEqual(hours, want) {
		t.Errorf("%v, %v; want %v", hours, err, want)
	}
}

// TestZonesOfBefore checks that a counter does not count what a counter before it has, over the same name server.
func TestZonesOfBefore(t *testing.T) {
	h := newHouse(t)
	answers := map[string]uint64{"id.example.org.": 5}
	o := h.counter.o
	o.Zones = func() map[string]uint64 { return answers }
	h.counter = New(o)
	answers["id.example.org."] = 7
	h.flush()
	value, err := h.r.UsageCell(asServer(t.Context()), zoneCell("id.example.org.", DateOf(noon).number()))
	if err != nil {
		t.Fatal(err)
	}
	if hours, err := parseHours(value); err != nil || !reflect.DeepEqual(hours, []Hour{{16*24 + 12, 2}}) {
		t.Errorf("%v, %v", hours, err)
	}
}

// TestLongNames checks that names are kept that are longer than the name of a cell may be.
func TestLongNames(t *testing.T) {
	h := newHouse(t)
	a, b := "ark:12345/"+strings.Repeat("a", 2000), "ark:12345/"+strings.Repeat("a", 2001)
	h.counter.Redirected(h.id(a), h.ann, firefox, "")
	h.flush()
	h.at(time.Minute)
	h.counter.Redirected(h.id(a), h.ann, firefox, "")
	h.counter.Redirected(h.id(b), h.ann, firefox, "")
	h.flush()
	found := make(map[string]uint64)
	for c, err := range h.r.UsageList(asServer(t.Context()), recordCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		_, text, _, ok := cutCell(c.Name[len(recordCells):], 2)
		full, value, err := cutText(text, c.Value)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		m, err := parseMonth(value)
		if err != nil {
			t.Fatal(err)
		}
		found[full] = m.Sum()[Regulars]
	}
	if len(found) != 2 || found[a] != 2 || found[b] != 1 {
		t.Errorf("%v", found)
	}
}

func drawCounts(t *rapid.T) (c Counts) {
	for i := range c {
		if rapid.Bool().Draw(t, "some") {
			c[i] = rapid.Uint64Range(1, 1<<uint(rapid.IntRange(1, 63).Draw(t, "bits"))).Draw(t, "count")
		}
	}
	return c
}

// day returns the figures of a day, which it adds if there are none.
func (m *Month) day(day int) *Counts {
	at, ok := slices.BinarySearchFunc(m.Days, day, func(d Day, day int) int { return d.Day - day })
	if !ok {
		m.Days = slices.Insert(m.Days, at, Day{Day: day})
	}
	return &m.Days[at].Counts
}

// TestAddDay compares the stored form of a month to which figures are added with what the figures of the month should be.
func TestAddDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Month
		var have []byte
		for range rapid.IntRange(1, 40).Draw(t, "additions") {
			day := rapid.IntRange(0, 31).Draw(t, "day")
			var d delta
			for i := range d {
				d[i] = rapid.Int64Range(-3, 300).Draw(t, "more")
			}
			var err error
			if have, err = addDay(have, day, &d); err != nil {
				t.Fatal(err)
			}
			if len(m.Days) > 0 && m.Days[0].Day == 0 {
				day = 0 // the days were added up
			}
			d.addTo(m.day(day))
			m.Days = slices.DeleteFunc(m.Days, func(d Day) bool { return d.IsZero() })
			if want := appendMonth(nil, &m); !bytes.Equal(have, want) {
				t.Fatalf("have %x, want %x", have, want)
			}
		}
	})
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Month
		for days := rapid.Uint32().Draw(t, "days"); days != 0; days &= days - 1 {
			if c := drawCounts(t); !c.IsZero() {
				*m.day(bits.TrailingZeros32(days)) = c
			}
		}
		again, err := parseMonth(appendMonth(nil, &m))
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%v became %v, %v", m, again, err)
		}
	})
}

func errOf(_ []byte, err error) error { return err }

func FuzzPack(f *testing.F) {
	f.Add(appendMonth(nil, &Month{Days: []Day{{3, Counts{1, 1}}, {31, Counts{500, 2, 3, 4, 5, 6, 7, 8}}}}))
	f.Add(appendTexts(nil, []Tally{{"example.org", 3}, {"", 900}}))
	f.Add(appendHours(nil, []Hour{{0, 1}, {743, 1 << 40}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseMonth(b); err == nil {
			if again, err := parseMonth(appendMonth(nil, &m)); err != nil || !reflect.DeepEqual(m, again) {
				t.Fatalf("%v became %v, %v", m, again, err)
			}
		}
		if _, err := parseMonth(b); (err == nil) != (errOf(addDay(b, 7, &delta{1})) == nil) {
			t.Fatalf("%x is read with the error %v, and added to without", b, err)
		}
		if list, err := parseTexts(b); err == nil {
			if again, err := parseTexts(appendTexts(nil, list)); err != nil || !reflect.DeepEqual(list, again) {
				t.Fatalf("%v became %v, %v", list, again, err)
			}
		}
		if hours, err := parseHours(b); err == nil {
			if again, err := parseHours(appendHours(nil, hours)); err != nil || !reflect.DeepEqual(hours, again) {
				t.Fatalf("%v became %v, %v", hours, again, err)
			}
		}
	})
}

func TestTop(t *testing.T) {
	list := top([]Tally{{"a", 1}, {"b", 3}, {otherText, 10}, {"c", 3}, {"d", 2}}, 2, true)
	if want := []Tally{{"b", 3}, {"c", 3}, {otherText, 13}}; !reflect.DeepEqual(list, want) {
		t.Errorf("%v", list)
	}
}
