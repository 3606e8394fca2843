package mint

import "time"

// Distributor is the state of a temporal distributor (algorithm 4 of the IBI
// report): the last date it issued. The zero Distributor has issued none. It is
// a value: a step returns the next state, and the caller makes that durable
// before it uses the date.
type Distributor struct {
	last    Date
	started bool
}

// Resume returns a distributor that issued last before.
func Resume(last Date) Distributor { return Distributor{last, true} }

// Last returns the last date issued; ok is false if there is none.
func (s Distributor) Last() (last Date, ok bool) { return s.last, s.started }

// Next issues the date of the next item: the first on the grid of granularity r
// that is later than all before it, shortened as far as that allows. A date is
// never in the future: if that one is not reached yet at now, Next issues none
// and says how long to wait, and the state stays as it is.
//
// r must be valid. It may differ from step to step: dates increase all the same.
func (s Distributor) Next(now Date, r Granularity) (issued Date, next Distributor, wait time.Duration) {
	creation, last, wait := s.step(now, r)
	if wait > 0 {
		return Date{}, s, wait
	}
	issued = shorten(creation, last, r)
	return issued, Distributor{issued, true}, 0
}

// NextExact is Next without shortening: the issued date is the one of the
// request, or the next that is free. PILIN's suffixes are made of such dates.
func (s Distributor) NextExact(now Date, r Granularity) (issued Date, next Distributor, wait time.Duration) {
	issued, _, wait = s.step(now, r)
	if wait > 0 {
		return Date{}, s, wait
	}
	return issued, Distributor{issued, true}, 0
}

// step is lines 1 to 7 of algorithm 4: the date of creation, the last date on
// the grid of r, and how long the date of creation is still away.
//
// Line 4 rounds the last date down, as r may have become coarser. What is issued
// is later than the unrounded one nevertheless: it is on the grid and greater
// than last there, so it is at least last + r.
func (s Distributor) step(now Date, r Granularity) (creation, last Date, wait time.Duration) {
	creation = r.floor(now)
	if !s.started {
		// Line 3 makes last = rounded - r, so that creation is the rounded date.
		// At the beginning of 1970 that lies before all dates; nothing is shorter.
		return creation, r.before(creation), 0
	}
	last = r.floor(s.last)
	if free := r.after(last); free.Compare(creation) > 0 {
		// On the grid and after the last grid date at now: still to come.
		return free, last, now.until(free)
	}
	return creation, last, 0
}

// shorten is lines 8 to 16: the date on the coarsest grid which is later than
// last and not later than creation. Each grid holds the next coarser one, so the
// first candidate that is too early ends the search.
func shorten(creation, last Date, r Granularity) Date {
	short := creation
	for s := r - 1; s >= Minute; s-- {
		candidate := s.floor(creation)
		if candidate.Compare(last) <= 0 {
			break
		}
		short = candidate
	}
	return short
}
