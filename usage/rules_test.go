package usage

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// TestDoubleClicks has the examples of COUNTER and of its exact rule: a chain of quick clicks is one.
func TestDoubleClicks(t *testing.T) {
	for _, c := range []struct {
		name          string
		seconds       []int
		total, unique uint64
	}{
		{"one", []int{0}, 1, 1},
		{"29 seconds apart", []int{0, 29}, 1, 1},
		{"30 seconds apart", []int{0, 30}, 1, 1},
		{"31 seconds apart", []int{0, 31}, 2, 1},
		{"35 seconds apart", []int{0, 35}, 2, 1},
		{"a chain", []int{0, 29, 58}, 1, 1},
		{"a long chain", []int{0, 20, 40, 60, 80, 100, 120}, 1, 1},
		{"no grid of 30 seconds", []int{29, 31}, 1, 1},
		{"a chain and another one", []int{0, 25, 50, 90, 100}, 2, 1},
		{"across the hour", []int{3599, 3601}, 1, 1},
		{"two hours", []int{3500, 3700}, 2, 2},
		{"an hour, and a chain across its end", []int{3500, 3599, 3601}, 2, 2},
		{"across midnight, with another key", []int{12*3600 - 1, 12*3600 + 1}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			for _, s := range c.seconds {
				h.at(time.Duration(s)*time.Second).visit(h.ann, firefox)
			}
			h.want(c.total, c.unique)
		})
	}
}

// TestLaterClickCounts checks that the later click is the one that is kept, with its day.
func TestLaterClickCounts(t *testing.T) {
	id := stele.StoredID("ark", "ark:12345/x1")
	ty := newTally(func(stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} })
	midnight := noon.Truncate(24 * time.Hour).Unix()
	for _, at := range []int64{midnight - 1, midnight + 1} {
		ty.count(&reading{at: at, id: id, visitor: 7, class: Regular, kind: Redirect})
	}
	before, after := find(ty, id, dayOf(midnight-1)), find(ty, id, dayOf(midnight))
	if before != (delta{}) || after != (delta{Regulars: 1, RegularUnique: 1}) {
		t.Errorf("the day before has %v and the day after %v", before, after)
	}
}

func TestReaders(t *testing.T) {
	h := newHouse(t)
	h.visit(h.ann, firefox)
	h.visit(h.ann, safari) // one address, two agents
	h.visit(h.bob, firefox)
	h.visit(h.bob, curl)
	h.visit(h.bob, googlebot)
	h.visit(h.bob, googlebot)
	want := Counts{Regulars: 3, RegularUnique: 3, Machines: 1, MachineUnique: 1, Robots: 2}
	if c := h.figures("ark:12345/x1"); c != want {
		t.Errorf("have %v, want %v", c, want)
	}
	want[Visitors] = 4
	if c := h.space(); c != want {
		t.Errorf("the namespace has %v, want %v", c, want)
	}
}

func TestKinds(t *testing.T) {
	h := newHouse(t)
	id := h.id("ark:12345/x1")
	h.counter.Redirected(id, h.ann, firefox, "https://en.wikipedia.org/wiki/Example")
	h.counter.Redirected(h.id("ark:12345/x2"), h.ann, firefox, "https://de.wikipedia.org/")
	h.counter.Redirected(h.id("ark:12345/x3"), h.ann, firefox, "http://192.0.2.77:8080/")
	h.counter.Described(id, h.ann, firefox)
	h.counter.Failed(h.id("ark:12345/unknown"), h.ann, firefox)
	h.counter.Failed(h.id("ark:12345/unknown"), h.bob, firefox)
	h.counter.Failed(h.id("ark:12345/unknown"), h.bob, googlebot)
	if c, want := h.figures("ark:12345/x1"), (Counts{Regulars: 1, RegularUnique: 1, Descriptions: 1}); c != want {
		t.Errorf("have %v, want %v", c, want)
	}
	if c := h.space(); c[Failures] != 2 || c[Regulars] != 3 || c[Visitors] != 1 {
		t.Errorf("the namespace has %v", c)
	}
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	texts := func(cell string) []Tally {
		value, err := h.r.UsageCell(asServer(t.Context()), cell)
		if err != nil {
			t.Fatal(err)
		}
		list, err := parseTexts(value)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := texts(cellName(hostCells, "ark", key.Prefix, DateOf(h.now).number())); !slices.Equal(list, []Tally{{"wikipedia.org", 2}}) {
		t.Errorf("the hosts are %v", list)
	}
	if list := texts(failedCell(key, dayOf(h.now.Unix()))); !slices.Equal(list, []Tally{{"ark:12345/unknown", 2}}) {
		t.Errorf("the failed names are %v", list)
	}
}

// TestKeyChanges checks that the key of visitors is another one after midnight and in another process, and only then.
func TestKeyChanges(t *testing.T) {
	h := newHouse(t)
	visitor := func() uint64 { return h.counter.key.visitor(h.ann, 7) }
	first := visitor()
	h.at(11*time.Hour + 59*time.Minute + 59*time.Second)
	if visitor() != first {
		t.Error("the key changed before midnight")
	}
	before := [2]uint64{h.counter.key.key[0].Load(), h.counter.key.key[1].Load()}
	h.at(12 * time.Hour)
	if visitor() == first {
		t.Error("the key is the same after midnight")
	}
	if h.counter.key.key[0].Load() == before[0] || h.counter.key.key[1].Load() == before[1] {
		t.Error("the key of yesterday was not overwritten")
	}
	if newHouse(t).counter.key.visitor(h.ann, 7) == visitor() {
		t.Error("two processes have the same key")
	}
}

func TestCut(t *testing.T) {
	for from, want := range map[string]string{"192.0.2.77": "192.0.2.0", "::ffff:192.0.2.77": "192.0.2.0", "2001:db8:1:2::3": "2001:db8:1::", "fe80::1%eth0": "fe80::"} {
		if have := cut(netip.MustParseAddr(from)); have.String() != want {
			t.Errorf("%s is cut to %s, want %s", from, have, want)
		}
	}
	h := newHouse(t)
	h.counter.o.Cut = true
	h.visit(netip.MustParseAddr("192.0.2.1"), firefox)
	h.visit(netip.MustParseAddr("192.0.2.9"), firefox)
	h.visit(netip.MustParseAddr("192.0.3.9"), firefox)
	h.want(2, 2)
}

// TestHotPath checks that counting neither allocates nor waits, and that what does not fit is counted as dropped.
func TestHotPath(t *testing.T) {
	if size := unsafe.Sizeof(hit{}); size != 40 {
		t.Errorf("a slot has %d bytes", size)
	}
	h := newHouse(t)
	id := h.id("ark:12345/x1")
	h.visit(h.ann, firefox)
	for name, add := range map[string]func(){
		"redirect":    func() { h.counter.Redirected(id, h.ann, firefox, "") },
		"referred":    func() { h.counter.Redirected(id, h.ann, firefox, "https://example.org/page") },
		"new agent":   func() { h.counter.Redirected(id, h.ann, "Mozilla/5.0 (never seen)", "") },
		"by rule":     func() { h.counter.RedirectedByRule(id, h.bob, firefox, "") },
		"description": func() { h.counter.Described(id, h.bob, firefox) },
		"failure":     func() { h.counter.Failed(id, h.bob, firefox) },
	} {
		if n := testing.AllocsPerRun(1000, add); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	for range len(h.counter.rings) * ringSize * 2 {
		h.counter.Redirected(id, h.ann, firefox, "")
	}
	if h.counter.Stats().Dropped == 0 {
		t.Error("nothing was dropped")
	}
	h.at(time.Second)
	h.counter.Redirected(id, h.bob, safari, "")
	if c := h.figures("ark:12345/x1"); c[Regulars] != 2+1 { // ann, ann with an agent that was never seen, and bob
		t.Errorf("after that, %v", c)
	}
}

// TestClockGoesOn checks that a hit counts for its time that came while others were counted, when the clock had gone on.
func TestClockGoesOn(t *testing.T) {
	h := newHouse(t)
	h.at(10 * time.Minute)
	h.counter.Redirected(h.id("ark:12345/x2"), h.ann, firefox, "") // the class of the agent is known then
	h.counter.drain(h.now)
	h.counter.second.Add(1)
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "")
	h.counter.drain(h.now)
	h.at(10*time.Minute+2*time.Second).visit(h.ann, firefox)
	h.want(1, 1)
}

// TestClockSetBack checks that figures are counted for the time of the clock, and written, after it was set back.
func TestClockSetBack(t *testing.T) {
	h := newHouse(t)
	h.at(50*time.Hour).visit(h.ann, firefox)
	h.counter.work(h.now)
	h.at(0).visit(h.ann, firefox)
	h.at(time.Minute).visit(h.ann, firefox)
	h.counter.work(h.now)
	value, err := h.r.UsageCell(asServer(t.Context()), recordCell(h.id("ark:12345/x1"), DateOf(noon).number()))
	m, fault := parseMonth(value)
	if want := []Day{{17, Counts{Regulars: 2, RegularUnique: 1}}, {19, Counts{Regulars: 1, RegularUnique: 1}}}; err != nil || fault != nil || !slices.Equal(m.Days, want) {
		t.Errorf("have %v, want %v; %v, %v", m.Days, want, err, fault)
	}
}

// TestReferredWithoutRoom checks that a hit with a referring page counts without it if there is no room for more.
func TestReferredWithoutRoom(t *testing.T) {
	h := newHouse(t)
	h.visit(h.ann, firefox)
	h.at(time.Minute)
	for range rareSize {
		h.counter.rare <- rare{event: event{text: "ark:12345/x2", visitor: 7, second: 0, scheme: uint8(h.counter.scheme("ark")), what: 0}, known: Robot}
	}
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "https://example.org/")
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, "Mozilla/5.0 (never seen)", "")
	h.want(2, 1)
	if dropped := h.counter.Stats().Dropped; dropped != 1 {
		t.Errorf("%d were dropped", dropped)
	}
}

// TestRing puts hits from many goroutines, and takes them at the same time: none is lost, none comes twice.
func TestRing(t *testing.T) {
	r := newRing(64)
	const writers, each = 8, 2000
	done := make(chan int)
	for w := range writers {
		go func() {
			put := 0
			for i := range each {
				if _, ok := r.put(&event{text: "x", visitor: uint64(w*each + i + 1)}); ok {
					put++
				}
			}
			done <- put
		}()
	}
	seen := make(map[uint64]bool)
	var batch [64]event
	take := func() {
		for _, e := range batch[:r.take(batch[:])] {
			if e.text != "x" || seen[e.visitor] {
				t.Fatalf("%q %d came twice or damaged", e.text, e.visitor)
			}
			seen[e.visitor] = true
		}
	}
	put := 0
	for ended := 0; ended < writers; {
		select {
		case n := <-done:
			put += n
			ended++
		default:
			take()
		}
	}
	take()
	if len(seen) != put {
		t.Errorf("%d were put, and %d taken", put, len(seen))
	}
}

// oracle counts by the words of the rules: of clicks in order, it keeps those that no other follows within 30 seconds; uniques are the
// hours that kept ones are in.
func oracle(seconds []int64) (total, unique uint64) {
	hours := make(map[int64]bool)
	for i, at := range seconds {
		if i+1 < len(seconds) && seconds[i+1]-at <= 30 {
			continue
		}
		total++
		hours[at/3600] = true
	}
	return total, uint64(len(hours))
}

// TestRulesByOracle compares the tally with the rules, for readers that click whenever they like.
func TestRulesByOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := newTally(func(stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} })
		ids := []stele.ID{stele.StoredID("ark", "ark:12345/a"), stele.StoredID("ark", "ark:12345/b")}
		clicks := make(map[[2]int][]int64)
		at := noon.Unix() + int64(rapid.IntRange(0, 12*3600).Draw(t, "begin"))
		for range rapid.IntRange(1, 60).Draw(t, "clicks") {
			at += rapid.SampledFrom([]int64{0, 1, 5, 15, 29, 30, 31, 60, 61, 62, 600, 3600}).Draw(t, "later")
			name, visitor := rapid.IntRange(0, 1).Draw(t, "name"), rapid.IntRange(0, 2).Draw(t, "visitor")
			clicks[[2]int{name, visitor}] = append(clicks[[2]int{name, visitor}], at)
			ty.count(&reading{at: at, id: ids[name], visitor: uint64(visitor), class: Regular, kind: Redirect})
		}
		var want, have [2][2]uint64
		for who, list := range clicks {
			total, unique := oracle(list)
			want[who[0]][0] += total
			want[who[0]][1] += unique
		}
		for _, d := range ty.records.list {
			i := slices.IndexFunc(ids, func(id stele.ID) bool { return id.String() == string(ty.records.text(&d)) })
			have[i][0] += uint64(d.delta[Regulars])
			have[i][1] += uint64(d.delta[RegularUnique])
		}
		if have != want {
			t.Fatalf("have %v, want %v", have, want)
		}
	})
}

// TestCaps checks that a flood of readers uses bounded memory, and that totals are counted all the same.
func TestCaps(t *testing.T) {
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	ty := newTally(func(stele.ID) stele.NamespaceKey { return key })
	id := stele.StoredID("ark", "ark:12345/a")
	random := rand.New(rand.NewPCG(1, 2))
	const n = maxClicks + 1000
	for range n {
		ty.count(&reading{at: noon.Unix(), id: id, visitor: random.Uint64(), class: Regular, kind: Redirect})
	}
	d := find(ty, id, dayOf(noon.Unix()))
	if d[Regulars] != n || d[RegularUnique] != maxClicks || ty.overflow != n-maxClicks || ty.clicks.used > maxClicks {
		t.Errorf("%v, %d beyond the cap", d, ty.overflow)
	}
	// Visitors are estimated in bounded memory: readers beyond the cap, and of descriptions, are among them.
	ty.forgetCrowds()
	for _, kind := range []Kind{Redirect, Description} {
		ty.count(&reading{at: noon.Unix(), id: id, visitor: random.Uint64(), class: Regular, kind: kind})
	}
	if ty.tellVisitors(); ty.spaceDelta(key, dayOf(noon.Unix()))[Visitors] != 2 {
		t.Errorf("the namespace has %v", ty.spaceDelta(key, dayOf(noon.Unix())))
	}
}

// TestNoRoomForNames checks that hits on names for which there is no room are told as such, and not as counted.
func TestNoRoomForNames(t *testing.T) {
	h := newHouse(t)
	h.counter.ctx = t.Context()
	list := h.counter.tally.records.list
	h.counter.tally.records.list = make([]recordDelta, maxDeltas)
	h.visit(h.ann, firefox)
	h.visit(h.bob, firefox)
	h.counter.drain(h.now)
	h.counter.tally.records.list = list
	h.counter.flush(h.now)
	if s := h.counter.Stats(); s.Dropped != 2 || s.Kept != 0 || s.Overflow != 0 {
		t.Errorf("%+v", s)
	}
}

// TestClicksOutOfOrder checks that clicks which are far apart are two, also if the later one is counted first: they wait in several rings
// while the counter is stopped.
func TestClicksOutOfOrder(t *testing.T) {
	id := stele.StoredID("ark", "ark:12345/x1")
	for _, c := range []struct {
		seconds []int64
		want    int64
	}{{[]int64{100, 5}, 2}, {[]int64{100, 70}, 1}, {[]int64{100, 69}, 2}, {[]int64{100, 5, 101}, 2}} {
		ty := newTally(func(stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} })
		for _, s := range c.seconds {
			ty.count(&reading{at: noon.Unix() + s, id: id, visitor: 7, class: Regular, kind: Redirect})
		}
		if d := find(ty, id, dayOf(noon.Unix())); d[Regulars] != c.want || d[RegularUnique] != 1 {
			t.Errorf("%v: %v, want %d", c.seconds, d, c.want)
		}
	}
}

// TestTextsGivenBack checks that memory of long names is given back, however few they are.
func TestTextsGivenBack(t *testing.T) {
	ty := newTally(func(stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} })
	for i := range 300 {
		id := stele.StoredID("ark", "ark:12345/"+strconv.Itoa(i)+strings.Repeat("x", 4000))
		ty.count(&reading{at: noon.Unix(), id: id, visitor: 7, class: Regular, kind: Redirect})
	}
	ty.forgetDeltas()
	ty.forgetDeltas() // after a time without use
	if n := cap(ty.records.texts); n > minTexts {
		t.Errorf("%d bytes are kept", n)
	}
}

// find returns what is to be added to a name on a day.
func find(ty *tally, id stele.ID, day int32) delta {
	for _, d := range ty.records.list {
		if string(ty.records.text(&d)) == id.String() && d.day == day {
			var wide delta
			for f, n := range d.delta {
				wide[f] = int64(n)
			}
			return wide
		}
	}
	return delta{}
}

// TestByRule checks that names for which a rule answers count for their namespace, however many there are, that two
// clicks on different names are two, and that a record whose name is the prefix gets none of them.
func TestByRule(t *testing.T) {
	h := newHouse(t)
	for i := range 500 {
		h.counter.RedirectedByRule(h.id(fmt.Sprintf("ark:12345/x%d", i)), h.ann, firefox, "")
		h.counter.RedirectedByRule(h.id(fmt.Sprintf("ark:12345/x%d", i)), h.ann, firefox, "") // a double click
	}
	prefix := stele.StoredID("ark", "ark:12345")
	h.counter.Redirected(prefix, h.bob, firefox, "")
	h.counter.drain(h.now)
	if n := len(h.counter.tally.records.list); n != 2 {
		t.Errorf("%d names have figures", n)
	}
	h.flush()
	month := DateOf(h.now).number()
	if c := h.sum(recordCell(prefix, month)); c[Regulars] != 1 || c[RegularUnique] != 1 {
		t.Errorf("the record has %v", c)
	}
	if c := h.sum(spaceCell(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, month)); c[Regulars] != 501 || c[RegularUnique] != 501 {
		t.Errorf("the namespace has %v", c)
	}
}

// TestByRuleLinked is TestByRule for the additions of a log file, which come with those of their names.
func TestByRuleLinked(t *testing.T) {
	h := newHouse(t)
	prefix := stele.StoredID("ark", "ark:12345")
	h.counter.RedirectedByRule(h.id("ark:12345/x1"), h.ann, firefox, "")
	h.counter.drain(h.now)
	space, month := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, DateOf(h.now).number()
	cells := make(map[string]int)
	for _, a := range h.counter.tally.linked() {
		cells[a.cell]++
	}
	if cells[spaceCell(space, month)] != 1 || cells[recordCell(prefix, month)] != 0 {
		t.Errorf("%v", cells)
	}
}
