package minting

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// DefaultAhead is how far into the future dates are reserved in one commit, where the
// granularity is less than a second.
//
// A date may be issued once it is durable that it was taken. To commit each date would make
// r = 1 microsecond as slow as the disk. So a commit takes all dates up to a limit, 50 ms
// ahead of the clock, and dates up to the limit are issued at once when their time comes:
// none is ever issued in the future. The price is paid after a crash only. The next process
// begins after the limit: it waits for its date at most so long, and the dates between the
// last one issued and the limit are lost, which can make its first label longer than
// necessary. A running process shortens by the last date that it issued, not by the limit.
// From a second on every date is committed, so that labels are the shortest even over
// crashes, and no crash skips one.
const DefaultAhead = 50 * time.Millisecond

// dates is the temporal distributor of a namespace, made durable. One caller uses
// it at a time.
type dates struct {
	store    Reader
	now      func() time.Time
	made     *dateNames
	keys     []stele.NamespaceKey // of the prefixes
	holder   string
	r        mint.Granularity
	exact    bool // PILIN: no date is shortened
	interval time.Duration
	ahead    time.Duration

	loaded bool
	before [][]byte         // what the store has for each prefix
	last   mint.Distributor // the last date that was issued
	limit  mint.Date        // dates up to here are taken, in the store

	pending struct { // what a commit will make so
		last  mint.Distributor
		limit mint.Date
		after [][]byte
	}

	// The last date in Unix nanoseconds, for callers that do not have the turn.
	seen atomic.Int64
}

// newDates returns a distributor by the namespace's settings. It does not issue again what
// an earlier one of the same namespace issued.
func newDates(ms *Minters, ns *stele.Namespace, earlier *dates) (*dates, error) {
	made, err := dateNamesOf(ms.schemes, ns)
	if err != nil {
		return nil, err
	}
	g, err := Granularity(ns)
	if err != nil {
		return nil, stele.Errorf("mint", stele.ID{}, stele.Invalid, "", "{cause}", err)
	}
	d := &dates{
		store:    ms.store,
		now:      ms.o.Now,
		made:     made,
		keys:     made.keys(ns),
		holder:   ns.Prefix,
		r:        g,
		exact:    ns.Minter.Kind == stele.MinterPILIN,
		interval: interval(g),
		ahead:    ms.o.Ahead,
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

// errMoved says that a prefix belongs to another namespace now, or will in a moment.
var errMoved = stele.Messagef("mint.prefix-not-of-namespace", "does not belong to the namespace")

// load reads how far the dates of the prefixes are taken. The distributor continues
// after all of them, and after what it issued itself.
func (s *dates) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	s.before = make([][]byte, len(s.keys))
	for i, key := range s.keys {
		data, state, err := readMinter(ctx, "mint", s.store, key)
		if err != nil {
			return err
		}
		if state.Dates == nil || state.Dates.Holder != s.holder {
			return stele.Errorf("mint", stele.ID{}, stele.Conflict, "mint.prefix-moved", "{prefix} {cause} {namespace}; look at its settings", key, errMoved, s.holder)
		}
		s.before[i] = data
		if last, ok := s.last.Last(); state.Dates.Issued && (!ok || last.Compare(state.Dates.Last) < 0) {
			s.last = mint.Resume(state.Dates.Last)
		}
	}
	s.limit, s.loaded = mint.Date{}, true // nothing after last is reserved
	s.see()
	return nil
}

func (s *dates) forget() { s.loaded = false }

// next issues a date. It is that of the caller's arrival, or the first after it
// that is free: a caller that waits in the queue does not lose what the grid has meanwhile.
// If that date is still to come, next returns how long to wait; if it is after the limit,
// what is to be committed first.
func (s *dates) next(arrived time.Time) (draw, []stele.MinterState, time.Duration, error) {
	now, err := mint.DateOf(s.now())
	if err != nil {
		return draw{}, nil, 0, stele.Errorf("mint", stele.ID{}, stele.Unavailable, "mint.clock-wrong", "the clock is wrong: {cause}; set it", err)
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
	if s.limit.Compare(issued) >= 0 {
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
	p.last, p.limit, p.after = after, issued, nil
	if s.interval < time.Second {
		limit, err := later(now, s.ahead)
		if err != nil {
			return nil, stele.Errorf("mint", stele.ID{}, stele.Exhausted, "mint.clock-past-last-date", "the clock is at the end of the dates: {cause}", err)
		}
		p.limit = limit
	}
	minters := make([]stele.MinterState, len(s.keys))
	for i, key := range s.keys {
		p.after = append(p.after, DateState{p.limit, true, s.holder}.Bytes())
		minters[i] = stele.MinterState{Name: StateName(key), Before: s.before[i], After: p.after[i]}
	}
	return minters, nil
}

// settle is called when what next asked for is committed.
func (s *dates) settle() {
	s.last, s.limit, s.before = s.pending.last, s.pending.limit, s.pending.after
	s.see()
}

// skip makes sure that a date is not issued again, though it was not committed.
func (s *dates) skip(d draw) {
	if last, ok := s.last.Last(); !ok || last.Compare(d.date) < 0 {
		s.last = mint.Resume(d.date)
	}
}

// see publishes the last date to callers that do not have the turn.
func (s *dates) see() {
	if last, ok := s.last.Last(); ok {
		s.seen.Store(last.Time().UnixNano())
	}
}

// late returns the error that the clock is earlier than the last date.
func (s *dates) late() error {
	last, _ := s.last.Last()
	return stele.Errorf("mint", stele.ID{}, stele.Unavailable,
		"mint.clock-behind", "the clock is {duration} behind the last date issued, {last}; set the clock, or wait until it has caught up",
		last.Time().Sub(s.now()).Round(time.Millisecond), last)
}

func (s *dates) maker() maker { return s.made }

// dateNames is what a [namespaces.DateNamer] returns for a namespace.
type dateNames struct {
	prefixes []string
	at       func(d mint.Date) ([]stele.ID, error)
}

// dateNamesOf returns how the namespace's names are made of dates, nil if they are
// not.
func dateNamesOf(schemes *stele.Schemes, ns *stele.Namespace) (*dateNames, error) {
	prefixes, at, err := namespaces.DateNames(schemes, ns)
	if err != nil || at == nil {
		return nil, err
	}
	return &dateNames{prefixes, at}, nil
}

// keys returns the prefixes as keys.
func (m *dateNames) keys(ns *stele.Namespace) (keys []stele.NamespaceKey) {
	if m == nil {
		return nil
	}
	for _, prefix := range m.prefixes {
		keys = append(keys, stele.NamespaceKey{Scheme: ns.Scheme, Prefix: prefix})
	}
	return keys
}

// DatePrefixes returns the prefixes below which the namespace's minter makes names of dates;
// none if it does not make names of dates.
func DatePrefixes(schemes *stele.Schemes, ns *stele.Namespace) ([]stele.NamespaceKey, error) {
	made, err := dateNamesOf(schemes, ns)
	return made.keys(ns), err
}

// Granularity returns that of the namespace's dates: a millisecond for PILIN, a
// second for an IBI server whose settings do not say it.
func Granularity(ns *stele.Namespace) (mint.Granularity, error) {
	switch {
	case ns.Minter.Kind == stele.MinterPILIN:
		return mint.Millisecond, nil
	case ns.Minter.Granularity == "":
		return mint.Second, nil
	}
	return mint.ParseGranularity(ns.Minter.Granularity)
}

// label makes the names of a date.
func (m *dateNames) label(d draw) (Label, error) {
	names, err := m.at(d.date)
	if err != nil {
		return Label{}, err
	}
	return Label{ID: names[0], Aliases: names[1:]}, nil
}

// later returns the date that follows d by a duration.
func later(d mint.Date, by time.Duration) (mint.Date, error) {
	const nano, second = 1_000_000_000, 1_000_000_000_000_000_000
	sec := d.Unix() + int64(by/time.Second)
	atto := d.Attoseconds() + uint64(by%time.Second)*nano
	if atto >= second {
		sec, atto = sec+1, atto-second
	}
	return mint.NewDate(sec, atto)
}
