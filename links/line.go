package links

import (
	"slices"
	"time"
)

// Limits of politeness.
const (
	Gap           = 5 * time.Second // between two requests to a domain, at least
	OwnGap        = time.Second     // the same, where the owner of a namespace wants less and the administrator does not know the host
	gapTimes      = 10              // or so many times as long as the last answer took
	maxGap        = 5 * time.Minute
	MaxCrawlDelay = time.Minute
	maxWait       = 24 * time.Hour // that a server may ask for
	AtOnce        = 20             // domains that are asked at the same time
	maxInLane     = 200            // targets of a domain that wait in memory

	// laneTime is how long the routine tasks of a domain in memory may take, so that a slow host does not hold up others: what
	// waits in memory is a part of what is due everywhere.
	laneTime = 8 * time.Minute
	// longWait is a pause of a domain during which its tasks do not wait in memory.
	longWait = 10 * time.Minute
)

// Task is a target that is to be asked, for all names that lead there.
type Task struct {
	URL  string
	Host string   // of the URL
	Keys []string // of the targets
	Rank Rank
}

// Rank says which tasks of a domain come first.
type Rank uint8

// The ranks, the first one first.
const (
	Urgent  Rank = iota // a user waits for it
	Retried             // it failed, and the next answer decides
	Routine
)

// Report is how a request went.
type Report struct {
	Took       time.Duration
	CrawlDelay time.Duration // of robots.txt
	Address    string        // that was connected to
}

// Line says which target is asked next, so that no domain and no address is asked by two requests at once or
// too often. It holds what is due soon, and is used by one goroutine.
type Line struct {
	// Pace returns the gap that the owner of a namespace wants for a host of their own; 0: the usual one. Trusted says that the administrator
	// knows the host to be one of their own. It may be nil.
	Pace func(host string) (gap time.Duration, trusted bool)

	lanes map[string]*lane
	hosts map[string]*Host
	at    map[string]time.Time // when an address may be asked again
	using map[string]int       // addresses that are asked now
	busy  int
	size  int

	out      outage
	forgetAt time.Time // when hosts are forgotten the next time
}

// lane is the queue of a domain.
type lane struct {
	tasks   []*Task
	next    time.Time     // when the domain may be asked again
	gap     time.Duration // after the last answer
	crawl   time.Duration
	address string
	busy    bool

	refused time.Time // when the last task that was refused is due
	asleep  time.Time // the same for tasks of hosts that do not answer
}

// Postponed is a task that does not wait in the line any more.
type Postponed struct {
	Task
	Until time.Time
}

// NewLine returns an empty line.
func NewLine() *Line {
	return &Line{lanes: make(map[string]*lane), hosts: make(map[string]*Host), at: make(map[string]time.Time), using: make(map[string]int)}
}

// Len returns how many tasks wait.
func (l *Line) Len() int { return l.size }

// Busy returns how many domains are asked now.
func (l *Line) Busy() int { return l.busy }

// Host returns what is known of a host. The caller may set it before the first task.
func (l *Line) Host(name string) *Host {
	h := l.hosts[name]
	if h == nil {
		h = &Host{}
		l.hosts[name] = h
	}
	return h
}

// Add puts a task into the line. If the line can't take it, it returns when to try again: the host does not
// answer and another task probes it, or the domain has enough to do.
func (l *Line) Add(t Task, now time.Time) (later time.Time, ok bool) {
	q := l.lanes[Domain(t.Host)]
	if q == nil {
		q = &lane{}
		l.lanes[Domain(t.Host)] = q
	}
	probed := false
	for i, other := range q.tasks {
		if other.URL == t.URL {
			for _, k := range t.Keys {
				if !slices.Contains(other.Keys, k) {
					other.Keys = append(other.Keys, k)
				}
			}
			q.raise(i, t.Rank)
			return time.Time{}, true
		}
		probed = probed || other.Host == t.Host
	}
	if h := l.Host(t.Host); h.IsOpen() && t.Rank != Urgent && (probed || now.Before(h.Probe)) {
		if !probed { // it becomes the probe, when that is due
			return h.Probe, false
		}
		return l.sleep(q, t.Host, now), false
	}
	switch {
	case t.Rank == Urgent && q.next.Sub(now) > longWait:
		return q.next, false
	case t.Rank == Urgent:
	case q.next.Sub(now) > longWait, len(q.tasks) >= maxInLane, t.Rank == Routine && len(q.tasks) >= l.room(q, t.Host):
		return l.wait(q, t.Host, now), false
	}
	q.insert(&t)
	l.size++
	return time.Time{}, true
}

// insert puts a task into a lane, after those of its rank.
func (q *lane) insert(t *Task) {
	i := slices.IndexFunc(q.tasks, func(o *Task) bool { return o.Rank > t.Rank })
	if i < 0 {
		i = len(q.tasks)
	}
	q.tasks = slices.Insert(q.tasks, i, t)
}

// raise gives a task a rank that is not below its own.
func (q *lane) raise(i int, rank Rank) {
	if t := q.tasks[i]; rank < t.Rank {
		t.Rank = rank
		q.tasks = slices.Delete(q.tasks, i, i+1)
		q.insert(t)
	}
}

// Raise has a task asked first that waits in the line; a user waits for it now. It does nothing if the task is not there.
func (l *Line) Raise(host, url string) {
	if q := l.lanes[Domain(host)]; q != nil {
		if i := slices.IndexFunc(q.tasks, func(o *Task) bool { return o.URL == url }); i >= 0 {
			q.raise(i, Urgent)
		}
	}
}

// room returns how many tasks of a domain wait in memory.
func (l *Line) room(q *lane, host string) int {
	return min(max(int(laneTime/max(q.gap, l.gap(q, host, 0))), 1), maxInLane)
}

// wait returns when a task is due for which a domain has no time now: one after the other, so that not all come back at once.
func (l *Line) wait(q *lane, host string, now time.Time) time.Time {
	gap := l.gap(q, host, 0)
	from := now.Add(time.Duration(len(q.tasks)+1) * gap)
	if q.next.After(from) {
		from = q.next
	}
	if rested := now.Add(ownWait); !l.Rests(now).IsZero() && rested.After(from) { // the tasks in the line are enough to find that hosts answer again
		from = rested
	}
	return spread(&q.refused, from, gap)
}

// sleep returns when a task of a host is due that does not answer, and that another task probes.
func (l *Line) sleep(q *lane, host string, now time.Time) time.Time {
	return spread(&q.asleep, now.Add(day), l.gap(q, host, 0))
}

// spread moves last on by a gap, within a turn from a time on, and returns it.
func spread(last *time.Time, from time.Time, gap time.Duration) time.Time {
	if *last = last.Add(gap); last.Before(from) || last.Sub(from) > Turn {
		*last = from
	}
	return *last
}

// gap returns how long a domain is left alone after an answer that took so long.
func (l *Line) gap(q *lane, host string, took time.Duration) time.Duration {
	if l.Pace != nil {
		if own, trusted := l.Pace(host); own > 0 && trusted {
			return max(own, q.crawl)
		} else if own > 0 { // an owner may name the host of a stranger
			return max(own, OwnGap, q.crawl, min(gapTimes*took, maxGap))
		}
	}
	return max(Gap, q.crawl, min(gapTimes*took, maxGap))
}

// ready returns when a lane may be asked.
func (l *Line) ready(q *lane) time.Time {
	at := q.next
	if q.address != "" {
		if a := l.at[q.address]; a.After(at) {
			at = a
		}
	}
	if h := l.hosts[q.tasks[0].Host]; h != nil && h.IsOpen() && q.tasks[0].Rank != Urgent && h.Probe.After(at) {
		at = h.Probe
	}
	return at
}

// Next returns the task that is asked next, and takes it out of the line. If there is none now, it returns
// when to look again; zero if that depends on a task under way or on a new one.
func (l *Line) Next(now time.Time) (t Task, again time.Time, ok bool) {
	l.forgetHosts(now)
	if l.busy >= AtOnce || l.busy > 0 && !l.out.since.IsZero() { // one host is tried, if none answers
		return Task{}, time.Time{}, false
	}
	if until := l.Rests(now); !until.IsZero() {
		return Task{}, until, false
	}
	var best *lane
	var bestAt time.Time
	var bestName string
	for name, q := range l.lanes {
		if len(q.tasks) == 0 && !q.busy && now.Sub(q.next) > day {
			delete(l.lanes, name)
			continue
		}
		if q.busy || len(q.tasks) == 0 || q.address != "" && l.using[q.address] > 0 {
			continue
		}
		at := l.ready(q)
		if best == nil || at.Before(bestAt) || at.Equal(bestAt) && name < bestName {
			best, bestAt, bestName = q, at, name
		}
	}
	if best == nil {
		return Task{}, time.Time{}, false
	}
	if bestAt.After(now) {
		return Task{}, bestAt, false
	}
	t = *best.tasks[0]
	best.tasks = best.tasks[1:]
	best.busy = true
	if best.address != "" {
		l.using[best.address]++
	}
	l.busy++
	l.size--
	return t, time.Time{}, true
}

// Done says that a task that Next returned was asked. It returns the tasks that leave the line: their host does not answer, or their
// domain wants to be left alone for long or has become slow. If no host answers at all, Done changes the evidence: that says nothing of this one.
func (l *Line) Done(t *Task, r Report, e *Evidence, now time.Time) (out []Postponed) {
	q := l.release(t)
	if q == nil {
		return nil
	}
	l.out.add(t.Host, l.Host(t.Host), e, now)
	if r.CrawlDelay > 0 {
		q.crawl = min(r.CrawlDelay, MaxCrawlDelay)
	}
	gap := l.gap(q, t.Host, r.Took)
	if e.Wait > 0 {
		gap = max(gap, min(e.Wait, maxWait))
	}
	q.next, q.gap = now.Add(gap), min(gap, maxGap)
	if r.Address != "" {
		q.address = r.Address
	}
	if q.address != "" {
		l.at[q.address] = now.Add(min(gap, maxGap))
		if len(l.at) > 10_000 {
			l.forget(now)
		}
	}
	l.Host(t.Host).Add(e, now)
	return l.thin(q, t.Host, now)
}

// thin takes out of a lane what would hold up others after an answer of a host.
func (l *Line) thin(q *lane, host string, now time.Time) (out []Postponed) {
	h := l.Host(host)
	all, probed := q.tasks, false
	q.tasks = nil
	for _, o := range all {
		switch {
		case o.Rank == Urgent && q.next.Sub(now) > longWait:
			out = append(out, Postponed{*o, q.next})
		case o.Rank == Urgent:
			q.tasks = append(q.tasks, o)
		case h.IsOpen() && o.Host == host:
			until := h.Probe
			if probed {
				until = l.sleep(q, host, now)
			}
			probed = true
			out = append(out, Postponed{*o, until})
		case q.next.Sub(now) > longWait, o.Rank == Routine && len(q.tasks) >= l.room(q, o.Host):
			out = append(out, Postponed{*o, l.wait(q, o.Host, now)})
		default:
			q.tasks = append(q.tasks, o)
		}
	}
	l.size -= len(out)
	return out
}

// Cancel says that a task that Next returned was not asked.
func (l *Line) Cancel(t *Task) { l.release(t) }

// release ends a task under way, and returns its lane; nil if there is none.
func (l *Line) release(t *Task) *lane {
	q := l.lanes[Domain(t.Host)]
	if q == nil || !q.busy {
		return nil
	}
	q.busy = false
	l.busy--
	if q.address != "" {
		if l.using[q.address]--; l.using[q.address] <= 0 {
			delete(l.using, q.address)
		}
	}
	return q
}

// forgetHosts drops hosts that answered, when a row of failures of their names would be over that they are needed for.
func (l *Line) forgetHosts(now time.Time) {
	if now.Before(l.forgetAt) {
		return
	}
	l.forgetAt = now.Add(time.Hour)
	for name, h := range l.hosts {
		if h.Streak == 0 && h.Down.IsZero() && now.Sub(h.Answered) > brokenAfter+day {
			delete(l.hosts, name)
		}
	}
}

// Forget drops what is known of a host, unless some of its tasks wait or are asked.
func (l *Line) Forget(host string) {
	q := l.lanes[Domain(host)]
	if q == nil || !q.busy && !slices.ContainsFunc(q.tasks, func(t *Task) bool { return t.Host == host }) {
		delete(l.hosts, host)
	}
}

// forget drops addresses that may be asked again.
func (l *Line) forget(now time.Time) {
	for a, at := range l.at {
		if at.Before(now) {
			delete(l.at, a)
		}
	}
}

// Share returns which part of so many names of a domain can be asked in a turn, in thousandths. Half of the
// time is left for failures.
func Share(names int, gap time.Duration) int {
	most := int(Turn / max(gap, time.Millisecond) / 2)
	if names <= most {
		return 1000
	}
	return max(1, int(int64(most)*1000/int64(names)))
}

// IsSampled reports whether a target belongs to the part that is asked.
func IsSampled(key uint64, share int) bool { return int(mix(key^0x5bd1e995)%1000) < share }
