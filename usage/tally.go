package usage

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/axiomhq/hyperloglog"

	"github.com/stele-id/stele"
)

// clickWindow is how many seconds after a click of a reader the next one on the same thing replaces it (COUNTER,
// section 7.2: double-click filtering).
const clickWindow = 30

// Limits on what a tally keeps in memory. Beyond them it counts totals only.
const (
	maxClicks   = 1 << 20 // readers and names in a window, and in an hour
	maxDeltas   = 1 << 20 // names that wait to be written
	maxSketches = 4096    // namespaces whose visitors are counted
	maxFailed   = 20_000  // names that lead nowhere, in memory
	maxHosts    = 20_000  // referring hosts, in memory
	maxLands    = 100_000 // countries of namespaces, in memory
)

// tally applies the rules to hits that come in the order of their times, and collects what is to be added to the
// figures. One goroutine uses it.
type tally struct {
	seed  maphash.Seed
	space func(id stele.ID) stele.NamespaceKey // to which a name belongs; the zero key: to none

	now    int64               // the latest time, in Unix seconds
	clicks [2]map[uint64]click // those of this window, and those of the one before
	begin  int64               // of this window
	hour   int64               // of the sessions
	seen   map[uint64]struct{} // readers and names of this hour
	day    int64               // of the sketches
	crowds map[stele.NamespaceKey]*crowd

	records map[uint64]*recordDelta // by a hash of name and day
	spaces  map[spaceDay]*delta
	hosts   map[spaceText]uint64 // referring hosts, by month
	lands   map[spaceText]uint64 // countries of readers, by month
	failed  map[spaceText]uint64 // names that lead nowhere, by day

	rolled   int    // the last month whose days are not kept apart; 0: none
	doubles  uint64 // double clicks
	overflow uint64 // hits for which there was no room: double clicks and sessions are not known
}

// click is the last click of a reader on a name.
type click struct {
	at     int64
	unique bool // it is the one that its session counts
}

// crowd are the visitors of a namespace on a day.
type crowd struct {
	sketch *hyperloglog.Sketch
	told   uint64 // how many were added to the figures
}

// recordDay is a name on a day, in days since 1970.
type recordDay struct {
	id  stele.ID
	day int32
}

type recordDelta struct {
	delta
	recordDay
	space stele.NamespaceKey
}

type spaceDay struct {
	space stele.NamespaceKey
	day   int32
}

// spaceText is a text that is counted for a namespace on a day.
type spaceText struct {
	space stele.NamespaceKey
	day   int32
	text  string
}

func newTally(space func(id stele.ID) stele.NamespaceKey) *tally {
	t := &tally{seed: maphash.MakeSeed(), space: space, seen: make(map[uint64]struct{}), crowds: make(map[stele.NamespaceKey]*crowd)}
	t.clicks[0], t.clicks[1] = make(map[uint64]click), make(map[uint64]click)
	t.forgetDeltas()
	return t
}

// forgetDeltas begins with no figures to add.
func (t *tally) forgetDeltas() {
	t.records = make(map[uint64]*recordDelta)
	t.spaces = make(map[spaceDay]*delta)
	t.hosts = make(map[spaceText]uint64)
	t.lands = make(map[spaceText]uint64)
	t.failed = make(map[spaceText]uint64)
}

const (
	secondsHour = 3600
	secondsDay  = 24 * secondsHour
)

func dayOf(second int64) int32 { return int32(second / secondsDay) }

// dateOf returns the day since 1970 as a date.
func dateOf(day int32) time.Time { return time.Unix(int64(day)*secondsDay, 0).UTC() }

// advance forgets what is over at a time.
func (t *tally) advance(now int64) {
	t.now = max(t.now, now)
	if past := t.now - t.begin; past > clickWindow {
		// What is in the former window is older than clickWindow now.
		t.clicks[0], t.clicks[1] = t.clicks[1], t.clicks[0]
		clear(t.clicks[0])
		if past > 2*clickWindow {
			clear(t.clicks[1])
		}
		t.begin = t.now
	}
	if hour := t.now / secondsHour; hour != t.hour {
		t.hour = hour
		clear(t.seen)
	}
	if day := t.now / secondsDay; day != t.day {
		t.tellVisitors()
		t.day = day
		clear(t.crowds)
	}
}

// maxBack is by how many seconds the clock may go back before the tally follows it.
const maxBack = 60

// setBack follows a clock that was set back. Clicks that are in the future now are forgotten: the next ones would replace them.
func (t *tally) setBack(now int64) {
	clear(t.clicks[0])
	clear(t.clicks[1])
	t.now, t.begin = now, now
	t.advance(now)
}

// reading is what a reader did.
type reading struct {
	at      int64 // in Unix seconds
	id      stele.ID
	visitor uint64
	class   Class
	kind    Kind
	host    string // that referred to the name; "": none
	hash    uint64 // of the name
	lands   bool   // the visitor has a country
}

// count counts what a reader did.
func (t *tally) count(r *reading) {
	t.advance(r.at)
	// A hit that was overtaken by the next hour counts there: it is less than a second late.
	at := max(r.at, t.hour*secondsHour)
	switch {
	case r.class == Ignored:
		return
	case r.kind == Failure:
		t.countFailure(r, dayOf(at))
		return
	}
	r.hash = maphash.String(t.seed, r.id.String())
	d := t.record(r, dayOf(at))
	if d == nil {
		return
	}
	if r.class == Robot {
		d.delta[Robots]++
		return
	}
	if !t.click(r, d, at) || d.space.Scheme == "" {
		return
	}
	month := firstOf(dayOf(at))
	if r.host != "" {
		t.countHost(r.host, d.space, month)
	}
	if r.lands { // if there is no room, it is not counted
		addText(t.lands, spaceText{d.space, month, countryOf(r.visitor).String()}, maxLands)
	}
}

// click counts a click of a reader who is not a robot. It reports whether it is not one that replaces another.
func (t *tally) click(r *reading, d *recordDelta, at int64) bool {
	total, unique := Regulars, RegularUnique
	if r.class == Machine {
		total, unique = Machines, MachineUnique
	}
	if r.kind == Description {
		total = Descriptions
	}
	key := t.pair(r)
	before, again := t.lastClick(key, at)
	next := click{at: max(at, before.at), unique: before.unique}
	if again {
		t.doubles++
	} else {
		t.visit(d.space, r.visitor)
	}
	switch {
	case !again:
		if len(t.clicks[0]) >= maxClicks || len(t.seen) >= maxClicks {
			t.overflow++
			d.delta[total]++
			return true
		}
		d.delta[total]++
	case dayOf(before.at) != dayOf(next.at): // the later click is the one that counts
		t.subtract(r, dayOf(before.at), total)
		d.delta[total]++
	}
	if r.kind == Redirect && (!again || before.at/secondsHour != next.at/secondsHour) {
		if again && before.unique {
			t.subtract(r, dayOf(before.at), unique)
		}
		_, had := t.seen[key]
		next.unique = !had
		if !had {
			t.seen[key] = struct{}{}
			d.delta[unique]++
		}
	}
	t.clicks[0][key] = next
	return !again
}

// subtract takes one from a figure of another day, from which a click was moved.
func (t *tally) subtract(r *reading, day int32, figure int) {
	if d := t.record(r, day); d != nil {
		d.delta[figure]--
	}
}

// pair returns the key of a reader and what was read: two hashes with different secrets in one. Two pairs have the same key with
// a chance of about one to 10^13 for each pair that is in memory.
func (t *tally) pair(r *reading) uint64 {
	return r.hash ^ bits.RotateLeft64(r.visitor, 17) ^ uint64(r.kind)<<62
}

// lastClick returns the click that one at a time replaces.
func (t *tally) lastClick(key uint64, at int64) (click, bool) {
	for _, window := range t.clicks {
		if c, ok := window[key]; ok {
			return c, at-c.at <= clickWindow
		}
	}
	return click{}, false
}

// record returns the figures of a name on a day that are to be added; nil if there is no room.
func (t *tally) record(r *reading, day int32) *recordDelta {
	key := r.hash + uint64(day)*0x9e3779b97f4a7c15
	d := t.records[key]
	if d == nil || d.id != r.id || d.day != day {
		if d != nil || len(t.records) >= maxDeltas {
			t.overflow++
			return nil
		}
		d = &recordDelta{recordDay: recordDay{r.id, day}, space: t.space(r.id)}
		t.records[key] = d
	}
	return d
}

// visit counts a visitor of a namespace. What the sketch gets tells nothing about visits of other namespaces.
func (t *tally) visit(space stele.NamespaceKey, visitor uint64) {
	c := t.crowds[space]
	if c == nil {
		sketch, err := hyperloglog.NewSketch(12, true) // 4 KB at most, an error of 1.6%
		if err != nil || len(t.crowds) >= maxSketches || space.Scheme == "" {
			return
		}
		c = &crowd{sketch: sketch}
		t.crowds[space] = c
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	var fixed [8]byte
	binary.LittleEndian.PutUint64(fixed[:], visitor)
	_, _ = h.Write(fixed[:])
	_, _ = h.WriteString(space.Prefix)
	c.sketch.InsertHash(h.Sum64())
}

// tellVisitors adds the visitors that came since it was called last to the figures of namespaces.
func (t *tally) tellVisitors() {
	for space, c := range t.crowds {
		if n := c.sketch.Estimate(); n > c.told {
			t.spaceDelta(space, int32(t.day))[Visitors] += int64(n - c.told)
			c.told = n
		}
	}
}

func (t *tally) spaceDelta(space stele.NamespaceKey, day int32) *delta {
	key := spaceDay{space, day}
	d := t.spaces[key]
	if d == nil {
		d = new(delta)
		t.spaces[key] = d
	}
	return d
}

// countFailure counts a name that leads nowhere. Robots try many: they are not counted.
func (t *tally) countFailure(r *reading, day int32) {
	space := t.space(r.id)
	if space.Scheme == "" || r.class == Robot {
		return
	}
	t.spaceDelta(space, day)[Failures]++
	// What belongs to no namespace may be anything.
	if text := r.id.String(); space.Prefix != "" && len(text) <= maxFailedName {
		addText(t.failed, spaceText{space, day, text}, maxFailed)
	}
}

func (t *tally) countHost(host string, space stele.NamespaceKey, month int32) {
	if !addText(t.hosts, spaceText{space, month, host}, maxHosts) {
		t.hosts[spaceText{space, month, otherText}]++
	}
}

// otherText stands for all texts for which there is no room.
const otherText = ""

// addText counts a text, if there is room.
func addText(in map[spaceText]uint64, key spaceText, most int) bool {
	if _, ok := in[key]; !ok && len(in) >= most {
		return false
	}
	in[key]++
	return true
}

// firstOf returns the first day of the month of a day.
func firstOf(day int32) int32 {
	at := dateOf(day)
	return day - int32(at.Day()-1)
}
