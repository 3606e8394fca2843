package links

import "time"

// Rules of broken targets. A target that failed once may be there tomorrow; false alarms teach people to ignore all of them.
const (
	brokenFails = 4 // in a row
	brokenDays  = 4 // on which it failed
	brokenAfter = 7 * 24 * time.Hour
	absentFails = 3 // with a host that the DNS does not know
	absentAfter = 3 * 24 * time.Hour
	goneTimes   = 2

	// brokenGap is how many hours may lie between the times of the day at which it failed on working days. They are closer than
	// ten hours then: a host that is up for ten hours of each working day, and off at night and at the weekend, is not broken.
	brokenGap = 9
	wantedGap = 7 // that checks aim at, since they may come late

	// LookAfter is when a person should look at a blocked target.
	LookAfter = 180 * 24 * time.Hour
)

// Row is a row of failures without a good answer between.
type Row struct {
	First, Last time.Time
	Fails       uint8
	Days        uint8  // on which it failed
	Hours       uint32 // of working days at which it failed, a bit each
	Absent      uint8  // since when the host is not in the DNS, in a row
}

// add counts a failure.
func (r *Row) add(cause Cause, now time.Time) {
	if r.Fails == 0 {
		r.First = now
	}
	if r.Fails == 0 || r.Last.Unix()/86400 != now.Unix()/86400 {
		r.Days = inc(r.Days)
	}
	if isWorkingDay(now) {
		r.Hours |= 1 << now.UTC().Hour()
	}
	r.Fails, r.Last = inc(r.Fails), now
	if cause == NoName {
		r.Absent = inc(r.Absent)
	} else {
		r.Absent = 0
	}
}

// isWorkingDay reports whether a time is on a working day in offices all over the world. Weekends are on Friday and Saturday, or on
// Saturday and Sunday; and what is the working day of Sunday in the Americas ends at about 6 on Monday in UTC.
func isWorkingDay(at time.Time) bool {
	at = at.UTC()
	d := at.Weekday()
	return d >= time.Monday && d <= time.Thursday && (d > time.Monday || at.Hour() >= 6)
}

// gaps calls yield with how many hours lie between the hours of the day that are set.
func gaps(hours uint32, yield func(length int)) {
	first, last := -1, -1
	for h := range 24 {
		if hours>>h&1 == 0 {
			continue
		}
		if first < 0 {
			first = h
		} else {
			yield(h - last)
		}
		last = h
	}
	if first >= 0 {
		yield(first + 24 - last)
	} else {
		yield(24)
	}
}

// isCovered reports whether the failures are spread over the working day.
func (r *Row) isCovered() bool {
	covered := true
	gaps(r.Hours, func(length int) { covered = covered && length <= brokenGap })
	return covered
}

// missing returns how many failures at other hours are needed until none lies further from the next than a number of hours.
func missing(hours uint32, most int) (n int) {
	gaps(hours, func(length int) { n += (length - 1) / most })
	if hours == 0 {
		n++
	}
	return n
}

func inc(n uint8) uint8 {
	if n < 255 {
		n++
	}
	return n
}

// isOver reports whether the failures are enough to call it broken.
func (r *Row) isOver() bool {
	over := r.Last.Sub(r.First)
	if r.Absent >= absentFails && over >= absentAfter {
		return true
	}
	return r.Fails >= brokenFails && r.Days >= brokenDays && over >= brokenAfter && r.isCovered()
}

// Status is what is known of one target.
type Status struct {
	URL     uint64 // hash of the address that was asked
	State   State
	Cause   Cause
	Code    uint16    // status of HTTP of the last answer; 0: none
	Since   time.Time // when the state began
	Checked time.Time // last
	Good    time.Time // the last good answer
	Next    time.Time // when it is due
	Row     Row
	Gone    uint8  // answers 410 in a row
	Looked  uint32 // the answer of which a person said that it works; 0: none
	Large   bool   // the last body was large or not text: HEAD is enough

	Print      Print
	Drift      Drift
	DriftSince time.Time
}

// Target is what a check needs to know of a target.
type Target struct {
	Key        uint64 // spreads checks over time
	Unchanging bool   // the persistence statement promises that the content does not change

	Signed  []Signed  // what is signed; none: the content is compared with what was seen first
	Servers time.Time // when the name servers of the domain changed last; zero: not since they are known
}

// Signed is content that is signed.
type Signed struct {
	Type   string   // media type; "" says nothing
	Digest [16]byte // the beginning of its SHA-256
}

// Add takes over what an answer says. Answered is when something else on the same host answered last: while
// nothing does, it is the host that is down, and not its names.
func (s *Status) Add(e *Evidence, t Target, answered time.Time, now time.Time) {
	if s.Looked != 0 && s.Looked == e.sight() && e.Weight != Good {
		e = &Evidence{Weight: Good, Cause: LookedFine, State: OK, Status: e.Status, Final: e.Final}
	}
	s.Checked = now
	if e.Cause == OwnFault && s.State != Unchecked {
		s.Next = now.Add(e.Wait)
		return
	}
	s.Code = uint16(e.Status)
	if e.Cause == AskedToWait || e.Cause == OwnFault { // as before
		s.Next = now.Add(e.Wait)
		if s.State == Unchecked {
			s.Cause = e.Cause
		}
		return
	}
	if e.Cause != SaysGone {
		s.Gone = 0
	}
	switch e.Weight {
	case Good:
		s.Row, s.Good = Row{}, now
		s.set(e.State, e.Cause, now)
		switch {
		case e.Status == 304 && s.Drift == Suspected: // what is kept is there again
			s.Drift, s.DriftSince = NoDrift, time.Time{}
		case e.Status != 304 && e.Cause != LookedFine && e.Print != (Print{}):
			s.drift(&e.Print, &t, now)
		}
	case Bad:
		s.fail(e, answered, now)
	default: // weak, or nothing is known: it may be there
		if s.State == Gone && s.Cause == LookedGone {
			break
		}
		s.Row = Row{}
		s.set(e.State, e.Cause, now)
	}
	s.Next = s.due(t.Key, now)
	// Content that seems to be another one is looked at again after a week. If that look finds out nothing, its turn comes as usual.
	if second := s.DriftSince.Add(driftWait); s.Drift == Suspected && e.Weight == Good && now.Before(second) {
		s.Next = minTime(s.Next, second)
	}
}

func (s *Status) set(state State, cause Cause, now time.Time) {
	if s.State != state {
		s.State, s.Since = state, now
	}
	s.Cause = cause
}

// fail counts a failure.
func (s *Status) fail(e *Evidence, answered, now time.Time) {
	s.Row.add(e.Cause, now)
	state := Failing
	switch {
	case e.Cause == SaysGone:
		if s.Gone = inc(s.Gone); s.Gone >= goneTimes {
			state = Gone
		}
	case !s.Row.isOver():
	case e.Cause.ofHost() && !e.Redirected && !answered.After(s.Row.First):
		// The host is down; see [Host].
	default:
		state = Broken
	}
	if s.State == Gone && (s.Cause == LookedGone || s.Cause == SaysGone) || s.State == Broken && state == Failing {
		state = s.State // it was found before, and nothing good was seen since
	}
	if s.State == Gone && s.Cause == LookedGone {
		return
	}
	s.set(state, e.Cause, now)
}

// LookedFine notes that a person looked, and that it works. That holds for the answer that e is.
func (s *Status) LookedFine(cause Cause, code int, final string, key uint64, now time.Time) {
	if s.State != OK || s.Cause != LookedFine || s.Looked == 0 { // who says it twice means the same answer
		e := Evidence{Cause: cause, Status: code, Final: final}
		s.Looked = e.sight()
	}
	s.Row, s.Gone, s.Good = Row{}, 0, now
	s.set(OK, LookedFine, now)
	s.Next = s.due(key, now)
}

// LookedGone notes that a person looked, and that it is gone.
func (s *Status) LookedGone(key uint64, now time.Time) {
	s.Looked = 0
	s.set(Gone, LookedGone, now)
	s.Next = s.due(key, now)
}

const (
	hour = time.Hour
	day  = 24 * time.Hour

	// Turn is how often a target is asked that works.
	Turn = 30 * day
	// leastGap is how long after a check the turn of a target may come again.
	leastGap = 12 * hour
)

// pauses are those after the first failures.
var pauses = [...]time.Duration{hour, 6 * hour, day}

// After the first failures a target is asked again after at least leastPause and at most mostPause.
const (
	leastPause = 16 * hour
	mostPause  = 2 * day
)

// next returns when a target is asked again after a failure. After the first ones it is asked at times of working days at which it
// was not asked yet.
func (r *Row) next(now time.Time) time.Time {
	n := max(int(r.Fails), 1) - 1
	if n < len(pauses)-1 {
		return now.Add(pauses[n])
	}
	if r.Absent > 0 {
		return now.Add(pauses[len(pauses)-1])
	}
	at, latest := now.Add(leastPause), now.Add(mostPause)
	if r.isCovered() {
		if end := r.First.Add(brokenAfter); end.After(now) {
			return minTime(maxTime(at, end), latest)
		}
		return latest
	}
	for _, most := range [...]int{wantedGap, brokenGap} {
		left := missing(r.Hours, most)
		for at := at; at.Before(latest); at = at.Truncate(hour).Add(hour) {
			if isWorkingDay(at) && missing(r.Hours|1<<at.UTC().Hour(), most) < left {
				return at
			}
		}
	}
	return latest
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// due returns when a target is asked again after a check.
func (s *Status) due(key uint64, now time.Time) time.Time {
	switch s.State {
	case Failing:
		return s.Row.next(now)
	case Broken:
		return now.Add(7 * day)
	case Blocked, Excluded:
		if s.Cause == RobotsUnread { // a server that did not answer well today
			return now.Add(7 * day)
		}
		return Slot(key, now.Add(2*Turn))
	}
	return Slot(key, now)
}

// Slot returns when the next turn of a key comes: turns are spread over 30 days.
func Slot(key uint64, now time.Time) time.Time {
	turn := int64(Turn / time.Second)
	at := int64(mix(key) % uint64(turn))
	from := now.Add(leastGap).Unix()
	next := from - from%turn + at
	if next < from {
		next += turn
	}
	return time.Unix(next, 0).UTC()
}
