package registrar

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// ahead is how far into the future dates are reserved at a time if nobody says
// otherwise, where the granularity is less than a second.
//
// A date may leave once it is durable that it was taken. To write that for each
// date would make r = 1 microsecond as slow as the disk. So the store is told that
// all dates up to a fence are taken, 50 ms ahead of the clock, and dates up to the
// fence leave at once when their time comes: none is ever issued in the future.
// The price is paid after a crash only. The process that comes next begins behind
// the fence: it waits for its date at most so long, and the dates between the last
// one issued and the fence are lost, which can make its first label longer than
// need be. Nothing else is: a running process shortens by the last date that it
// issued, not by the fence. From a second on every date is written, so that labels
// are the shortest even over crashes, and no crash skips one.
const ahead = 50 * time.Millisecond

// dates is the temporal distributor of a namespace, made durable. One caller uses
// it at a time.
type dates struct {
	store    stele.Store
	now      func() time.Time
	made     *madeOfDates
	keys     []stele.NamespaceKey // of the prefixes
	holder   string
	r        mint.Granularity
	exact    bool // PILIN: no date is shortened
	interval time.Duration
	ahead    time.Duration

	loaded bool
	before [][]byte         // what the store has for each prefix
	last   mint.Distributor // the last date that was issued
	fence  mint.Date        // dates up to here are taken, in the store

	pending struct { // what a commit will make so
		last  mint.Distributor
		fence mint.Date
		after [][]byte
	}

	// For those who have not the turn: the last date in Unix nanoseconds.
	seen atomic.Int64
}

// newDates returns a distributor by the namespace's settings. What an earlier one
// of the same namespace issued, it will not.
func newDates(r *Registrar, ns *stele.Namespace, earlier *dates) (*dates, error) {
	made, err := dateNames(r.schemes, ns)
	if err != nil {
		return nil, err
	}
	g, err := granularity(ns)
	if err != nil {
		return nil, refuse("mint", stele.ID{}, stele.Invalid, "%w", err)
	}
	d := &dates{
		store:    r.store,
		now:      r.o.Now,
		made:     made,
		keys:     made.keys(ns),
		holder:   ns.Prefix,
		r:        g,
		exact:    ns.Minter.Kind == stele.MinterPILIN,
		interval: interval(g),
		ahead:    r.o.Ahead,
	}
	if earlier != nil {
		d.last = earlier.last
		d.seen.Store(earlier.seen.Load())
	}
	return d, nil
}

// interval returns r as a duration, a nanosecond if it is less.
func interval(r mint.Granularity) time.Duration {
	if r == mint.Minute {
		return time.Minute
	}
	d := time.Second
	for range r {
		d /= 10
	}
	return max(d, 1)
}

func (s *dates) step() time.Duration { return s.interval }

// burst is how many names a caller gets in one turn: what the grid has in 10 ms.
func (s *dates) burst() int { return int(max(1, 10*time.Millisecond/s.interval)) }

// free returns when the next date is free.
func (s *dates) free() time.Time { return time.Unix(0, s.seen.Load()).Add(s.interval) }

// errMoved says that a prefix is another namespace's now, or will be in a moment.
var errMoved = errors.New("does not belong to the namespace")

// load reads how far the dates of the prefixes are taken. The distributor goes on
// behind all of them, and behind what it issued itself.
func (s *dates) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	s.before = make([][]byte, len(s.keys))
	for i, key := range s.keys {
		data, err := s.store.MinterState(ctx, stateName(key))
		if err != nil {
			return tell("mint", err)
		}
		state, err := readState(stateName(key), data)
		if err != nil {
			return err
		}
		if state.date == nil || state.date.holder != s.holder {
			return refuse("mint", stele.ID{}, stele.Conflict, "%s %w %s; look at its settings", key, errMoved, s.holder)
		}
		s.before[i] = data
		if last, ok := s.last.Last(); state.date.issued && (!ok || last.Compare(state.date.last) < 0) {
			s.last = mint.Resume(state.date.last)
		}
	}
	s.fence, s.loaded = mint.Date{}, true // nothing behind last is reserved
	s.see()
	return nil
}

func (s *dates) forget() { s.loaded = false }

// next issues a date. It is that of the caller's arrival, or the first after it
// that is free: who waits in the room does not lose what the grid has meanwhile. If
// that date is still to come, next says how long; if it is behind the fence, what
// is to be committed first.
func (s *dates) next(arrived time.Time) (draw, []stele.MinterState, time.Duration, error) {
	now, err := mint.DateOf(s.now())
	if err != nil {
		return draw{}, nil, 0, refuse("mint", stele.ID{}, stele.Unavailable, "the clock is wrong: %w; set it", err)
	}
	at, err := mint.DateOf(arrived)
	if err != nil || at.Compare(now) > 0 { // the clock stepped back meanwhile
		at = now
	}
	issued, after, wait := s.distribute(at)
	if wait > 0 {
		if free, err := later(at, wait); err == nil && free.Compare(now) <= 0 {
			issued, after, wait = s.distribute(free)
		} else {
			issued, after, wait = s.distribute(now)
		}
		if wait > 0 {
			return draw{}, nil, wait, nil
		}
	}
	if s.fence.Compare(issued) >= 0 {
		s.last = after
		s.see()
		return draw{date: issued}, nil, 0, nil
	}
	reserve, err := s.reserve(issued, after, now)
	return draw{date: issued}, reserve, 0, err
}

func (s *dates) distribute(at mint.Date) (mint.Date, mint.Distributor, time.Duration) {
	if s.exact {
		return s.last.NextExact(at, s.r)
	}
	return s.last.Next(at, s.r)
}

// reserve returns the states that make a date, and those of a while after now,
// taken.
func (s *dates) reserve(issued mint.Date, after mint.Distributor, now mint.Date) ([]stele.MinterState, error) {
	p := &s.pending
	p.last, p.fence, p.after = after, issued, nil
	if s.interval < time.Second {
		fence, err := later(now, s.ahead)
		if err != nil {
			return nil, refuse("mint", stele.ID{}, stele.Exhausted, "the clock is at the end of the dates: %w", err)
		}
		p.fence = fence
	}
	minters := make([]stele.MinterState, len(s.keys))
	for i, key := range s.keys {
		p.after = append(p.after, dateState{p.fence, true, s.holder}.bytes())
		minters[i] = stele.MinterState{Name: stateName(key), Before: s.before[i], After: p.after[i]}
	}
	return minters, nil
}

// settle is told that what next asked for is committed.
func (s *dates) settle() {
	s.last, s.fence, s.before = s.pending.last, s.pending.fence, s.pending.after
	s.see()
}

// skip makes sure that a date is not issued again, though it was not committed.
func (s *dates) skip(d draw) {
	if last, ok := s.last.Last(); !ok || last.Compare(d.date) < 0 {
		s.last = mint.Resume(d.date)
	}
}

// see tells those who have not the turn.
func (s *dates) see() {
	if last, ok := s.last.Last(); ok {
		s.seen.Store(last.Time().UnixNano())
	}
}

// behind says how far the clock is behind the last date.
func (s *dates) behind() error {
	last, _ := s.last.Last()
	return refuse("mint", stele.ID{}, stele.Unavailable,
		"the clock is %s behind the last date issued, %s; set the clock, or wait until it has caught up",
		last.Time().Sub(s.now()).Round(time.Millisecond), last)
}

func (s *dates) maker() maker { return s.made }

// label makes the names of a date.
func (m *madeOfDates) label(d draw) (Label, error) {
	names, err := m.at(d.date)
	if err != nil {
		return Label{}, err
	}
	return Label{ID: names[0], Aliases: names[1:]}, nil
}

// later returns the date that is so long after d.
func later(d mint.Date, by time.Duration) (mint.Date, error) {
	const nano, second = 1_000_000_000, 1_000_000_000_000_000_000
	sec := d.Unix() + int64(by/time.Second)
	atto := d.Attoseconds() + uint64(by%time.Second)*nano
	if atto >= second {
		sec, atto = sec+1, atto-second
	}
	return mint.NewDate(sec, atto)
}
