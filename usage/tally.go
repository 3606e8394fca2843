package usage

import (
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/stele-id/stele"
)

// clickWindow is how many seconds after a click of a reader the next one on the same thing replaces it (COUNTER,
// section 7.2: double-click filtering).
const clickWindow = 30

// Limits on what a tally keeps in memory. Beyond maxClicks it counts totals only; a hit on a name beyond maxDeltas, or beyond maxTexts, is not
// counted at all.
const (
	maxClicks   = 1 << 20 // readers and names in a window, and in an hour
	maxDeltas   = 1 << 20 // names that wait to be written
	maxSketches = 4096    // namespaces whose visitors are counted
	maxFailed   = 20_000  // names that lead nowhere, in memory
	maxHosts    = 20_000  // referring hosts, in memory
	maxLands    = 100_000 // countries of namespaces, in memory
)

// tally applies the rules to hits that come about in the order of their times, and collects what is to be added to the
// figures. One goroutine uses it.
type tally struct {
	seed  maphash.Seed
	space func(id stele.ID) stele.NamespaceKey // to which a name belongs; the zero key: to none

	now    int64  // the latest time, in Unix seconds
	hour   int64  // of the sessions
	clicks *pairs // of this hour
	former *pairs // of the hour before, until its clicks can't be replaced any more; nil then
	day    int64  // of the sketches
	crowds map[stele.NamespaceKey]*crowd
	recent [4096]uint64 // visitors of namespaces that were added to the sketches

	records records
	spaces  map[spaceDay]*delta
	hosts   map[spaceText]uint64 // referring hosts, by month
	lands   map[spaceText]uint64 // countries of readers, by month
	failed  map[spaceText]uint64 // names that lead nowhere, by day

	rolled   int    // the last month whose days are not kept apart; 0: none
	doubles  uint64 // double clicks
	overflow uint64 // hits for whose readers there was no room: double clicks and sessions are not known
	dropped  uint64 // hits for whose names there was no room: they are not counted
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
	t := &tally{seed: maphash.MakeSeed(), space: space, clicks: newPairs(0), crowds: make(map[stele.NamespaceKey]*crowd)}
	t.forgetDeltas()
	return t
}

// forgetDeltas begins with no figures to add.
func (t *tally) forgetDeltas() {
	t.records.forget()
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
	if now <= t.now {
		return
	}
	t.now = now
	t.follow()
}

// follow forgets what is over by now.
func (t *tally) follow() {
	hour := t.now / secondsHour
	if hour != t.hour {
		t.former = nil
		if hour == t.hour+1 {
			t.former = t.clicks
		}
		t.clicks = newPairs(nextPairs(t.clicks))
		t.hour = hour
	}
	if t.former != nil && t.now-t.hour*secondsHour > clickWindow {
		t.former = nil
	}
	if day := t.now / secondsDay; day != t.day {
		t.tellVisitors()
		t.day = day
		t.forgetCrowds()
	}
}

// nextPairs returns how many slots the hour after one begins with: half of those that it needed.
func nextPairs(last *pairs) int {
	n := firstPairs
	for n < last.used && n < len(last.slots)/2 {
		n *= 2
	}
	return n
}

// maxBack is by how many seconds the clock may go back before the tally follows it.
const maxBack = 60

// setBack follows a clock that was set back. Clicks that are in the future now are forgotten: the next ones would replace them.
func (t *tally) setBack(now int64) {
	t.clicks.forgetClicks()
	t.former = nil
	t.now = now
	t.follow()
	t.former = nil
}

// reading is what a reader did.
type reading struct {
	at      int64 // in Unix seconds
	id      stele.ID
	visitor uint64
	class   Class
	kind    Kind
	host    string // that referred to the name; "": none
	hash    uint64 // of the name; 0: it is not known yet. Once it is counted, of the name that it counts for
	read    uint64 // hash of the name that was read
	lands   bool   // the visitor has a country
	rule    bool   // it counts for a namespace, because a rule answered, and for no record
}

// count counts what a reader did.
func (t *tally) count(r *reading) {
	t.advance(r.at)
	// A hit that was overtaken by the next hour counts there. It is less than a second late, or later if the counter was stopped for a while:
	// then hits wait in several rings, each of which is in order.
	at := max(r.at, t.hour*secondsHour)
	switch {
	case r.class == Ignored:
		return
	case r.kind == Failure:
		t.countFailure(r, dayOf(at))
		return
	}
	if r.hash == 0 {
		r.hash = maphash.String(t.seed, r.id.String())
	}
	r.read = r.hash
	if r.kind == byRule {
		space := t.space(r.id)
		if space.Prefix == "" {
			return
		}
		r.kind, r.id, r.rule = Redirect, stele.StoredID(space.Scheme, space.Prefix), true
		r.hash = ^maphash.String(t.seed, space.Prefix) // a record may have the prefix as its name
	}
	to := t.record(r, dayOf(at))
	if to < 0 {
		t.dropped++
		return
	}
	d := &t.records.list[to]
	if r.class == Robot {
		d.delta[Robots]++
		return
	}
	if !t.click(r, to, at) || d.space == 0 || r.host == "" && !r.lands {
		return
	}
	month, space := firstOf(dayOf(at)), t.records.spaces[d.space].key
	if r.host != "" {
		t.countHost(r.host, space, month)
	}
	if r.lands { // if there is no room, it is not counted
		addText(t.lands, spaceText{space, month, countryOf(r.visitor).String()}, maxLands)
	}
}

// click counts a click of a reader who is not a robot on the name at a place. It reports whether it is not one that replaces another.
func (t *tally) click(r *reading, to int, at int64) bool {
	total, unique := Regulars, RegularUnique
	if r.class == Machine {
		total, unique = Machines, MachineUnique
	}
	if r.kind == Description {
		total = Descriptions
	}
	key, second := t.pair(r), at-t.hour*secondsHour
	if slot := t.clicks.find(key); *slot != 0 { // its session is counted
		last, isUnique, known := lastClick(*slot)
		again := known && second-last <= clickWindow && last-second <= clickWindow
		if again {
			t.doubles++
		} else {
			isUnique = isUnique && second < last // the last click stays what it is
			t.records.list[to].delta[total]++
		}
		setClick(slot, max(second, last), isUnique)
		return !again
	}
	isUnique := r.kind == Redirect
	if t.former != nil {
		if slot := t.former.find(key); *slot != 0 {
			if last, wasUnique, known := lastClick(*slot); known && second+secondsHour-last <= clickWindow {
				t.doubles++
				if t.clicks.add(key, second, isUnique) {
					t.moveClick(r, to, t.hour*secondsHour-1, wasUnique, total, unique)
				} else {
					t.overflow++
				}
				return false
			}
		}
	}
	t.visit(t.records.list[to].space, r.visitor)
	d := &t.records.list[to]
	d.delta[total]++
	switch {
	case !t.clicks.add(key, second, isUnique):
		t.overflow++
	case isUnique:
		d.delta[unique]++
	}
	return true
}

// moveClick counts a click that replaces one of the hour before, which was the session's if wasUnique says so: the later one is what counts.
func (t *tally) moveClick(r *reading, to int, before int64, wasUnique bool, total, unique int) {
	day := t.records.list[to].day
	if dayOf(before) != day {
		t.subtract(r, dayOf(before), total)
		t.records.list[to].delta[total]++
	}
	if r.kind != Redirect {
		return
	}
	if wasUnique {
		t.subtract(r, dayOf(before), unique)
	}
	t.records.list[to].delta[unique]++
}

// subtract takes one from a figure of another day, from which a click was moved.
func (t *tally) subtract(r *reading, day int32, figure int) {
	to := t.record(r, day)
	if to < 0 {
		t.overflow++
		return
	}
	t.records.list[to].delta[figure]--
}

// touch reads what is needed to count hits, and returns what does not matter: the processor fetches it for many hits at once, and waits for
// memory once instead of once for each.
func (t *tally) touch(batch []event) (sum uint64) {
	x := &t.records.index
	var places [batchSize]uint64
	for i := range batch {
		e := &batch[i]
		sum += t.clicks.touch(pairKey(e.name, e.visitor, Kind(e.what>>4)))
		if len(x.slots) > 0 {
			places[i] = x.slots[x.first(hashOfDay(e.name, int32(t.day)))]
		}
	}
	for i := range batch {
		if to := uint32(places[i]); to > 0 {
			sum += t.records.list[to-1].hash
		}
	}
	return sum
}

// isEmpty reports whether nothing was counted since figures were written.
func (t *tally) isEmpty() bool {
	return len(t.records.list)+len(t.spaces)+len(t.hosts)+len(t.lands)+len(t.failed) == 0
}

// pair returns the key of a reader and what was read: two hashes with different secrets in one.
func (t *tally) pair(r *reading) uint64 { return pairKey(r.read, r.visitor, r.kind) }

func pairKey(name, visitor uint64, kind Kind) uint64 {
	return name ^ bits.RotateLeft64(visitor, 17) ^ uint64(kind)<<62
}

// record returns the place of the figures of a name on a day that are to be added; -1 if there is no room.
func (t *tally) record(r *reading, day int32) int {
	hash := hashOfDay(r.hash, day)
	to := t.records.find(hash)
	if to < 0 {
		if to = t.records.add(hash, r.id, day, t.space(r.id)); to >= 0 {
			t.records.list[to].rule = r.rule
		}
	}
	return to
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
