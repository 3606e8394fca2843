package links

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A temper is how a host of the simulated year behaves.
type temper string

const (
	steady   temper = "steady"   // pages work; some are removed and answer 404, 410, or 200 with "not found"
	dying    temper = "dying"    // it goes away as a whole: no name in the DNS, refused, or no answer
	returns  temper = "returns"  // it is away for some days, and comes back
	sleepy   temper = "sleepy"   // it does not answer for up to 14 hours of each day
	weekends temper = "weekends" // it is off on weekends, with 503
	offices  temper = "offices"  // it is off at night and on weekends: it does not answer, or what stands before it says 502
	flaky    temper = "flaky"    // each tenth answer is 500
	walled   temper = "walled"   // a wall, always
	moody    temper = "moody"    // a wall at times, 403 at others
	busy     temper = "busy"     // 429 with Retry-After, two times in three
	shut     temper = "shut"     // robots.txt forbids, or can't be read at times
	large    temper = "large"    // more names than politeness allows
)

type simHost struct {
	name   string
	temper temper
	gone   time.Time // of a dying host
	how    Failure
	away   []time.Time // begin and end of absences
	up     func(time.Time) bool
	rand   *rand.Rand
}

type simName struct {
	key  string
	host *simHost
	url  string
	gone time.Time // of the page; zero: never
	how  int

	status Status
	seen   map[string]Evidence // what pages are evidence of
	failed time.Time           // the first failed check after it went away
	told   time.Time           // it, or its host, was called broken
	heapAt int
}

// truth returns since when the name leads nowhere; zero: it works.
func (n *simName) truth() time.Time {
	switch {
	case n.gone.IsZero():
		return n.host.gone
	case n.host.gone.IsZero() || n.gone.Before(n.host.gone):
		return n.gone
	}
	return n.host.gone
}

// answer plays the host.
func (n *simName) answer(now time.Time) *Answer {
	h := n.host
	fail := func(f Failure) *Answer { return &Answer{URL: n.url, Final: n.url, Failure: f} }
	page := func(status int, body string, header ...string) *Answer {
		a := &Answer{URL: n.url, Final: n.url, Status: status, Header: Header{"content-type": {"text/html"}}, Body: []byte(body), Length: int64(len(body))}
		for i := 0; i+1 < len(header); i += 2 {
			a.Header[header[i]] = []string{header[i+1]}
		}
		return a
	}
	if !h.gone.IsZero() && !now.Before(h.gone) {
		return fail(h.how)
	}
	for i := 0; i+1 < len(h.away); i += 2 {
		if !now.Before(h.away[i]) && now.Before(h.away[i+1]) {
			return fail(h.how)
		}
	}
	switch h.temper {
	case sleepy:
		if !h.up(now) {
			return fail(FailTimeout)
		}
	case offices:
		if !h.up(now) && h.how == FailDNS {
			return page(502, "bad gateway")
		} else if !h.up(now) {
			return fail(FailRefused)
		}
	case weekends:
		if d := now.Weekday(); d == time.Saturday || d == time.Sunday {
			return page(503, "off")
		}
	case flaky:
		if h.rand.IntN(10) == 0 {
			return page(500, "oops")
		}
	case walled:
		return page(403, "<script>window._cf_chl_opt={}</script>", "cf-mitigated", "challenge")
	case moody:
		switch h.rand.IntN(4) {
		case 0:
			return page(503, `<div class="g-recaptcha">`)
		case 1:
			return page(403, "no")
		}
	case busy:
		if h.rand.IntN(3) > 0 {
			a := page(429, "")
			a.Wait = 2 * time.Hour
			return a
		}
	case shut:
		if h.rand.IntN(2) == 0 {
			return fail(FailRobotsUnread)
		}
		return fail(FailRobots)
	}
	if n.gone.IsZero() || now.Before(n.gone) {
		return page(200, "<title>"+n.key+"</title>"+strings.Repeat("what "+n.key+" says ", 30))
	}
	switch n.how {
	case 0:
		return page(410, "")
	case 1:
		return page(200, "<title>Page not found</title>")
	case 2:
		return fail(FailTimeout) // of this page only
	}
	return page(404, "")
}

// due is a queue of names by when they are due.
type due []*simName

func (d due) Len() int           { return len(d) }
func (d due) Less(i, j int) bool { return d[i].status.Next.Before(d[j].status.Next) }
func (d due) Swap(i, j int)      { d[i], d[j] = d[j], d[i]; d[i].heapAt, d[j].heapAt = i, j }
func (d *due) Push(x any)        { *d = append(*d, x.(*simName)) }
func (d *due) Pop() any {
	old := *d
	n := old[len(old)-1]
	*d = old[:len(old)-1]
	return n
}

// world makes 200 hosts and 10,000 names.
func world(r *rand.Rand, start time.Time) (hosts []*simHost, names []*simName) {
	tempers := []temper{steady, steady, steady, steady, dying, returns, sleepy, weekends, offices, flaky, walled, moody, busy, shut}
	for i := range 200 {
		h := &simHost{name: fmt.Sprintf("www.host%d.example", i), temper: tempers[i%len(tempers)], rand: r, how: []Failure{FailNoName, FailRefused, FailTimeout, FailDNS}[r.IntN(4)]}
		if i == 199 {
			h.temper = large
		}
		switch h.temper {
		case sleepy:
			from, length := r.IntN(24), 10+r.IntN(9)
			h.up = func(now time.Time) bool { return now.Add(-time.Duration(from)*hour).Hour() < length }
		case offices:
			h.up = office(r.IntN(20), 10, r.IntN(2) == 0)
		case dying:
			h.gone = start.Add(time.Duration(r.IntN(int(300*day/time.Second))) * time.Second)
		case returns:
			for i := range 3 { // not one after the other: that is one longer absence
				from := start.Add(time.Duration(i)*115*day + time.Duration(r.IntN(int(105*day/time.Second)))*time.Second)
				most := 6 * day
				if h.how == FailNoName { // a zone that is missing for days is gone for most purposes
					most = 2 * day
				}
				h.away = append(h.away, from, from.Add(time.Duration(r.IntN(int(most/time.Second)))*time.Second))
			}
		}
		hosts = append(hosts, h)
	}
	for i := range 10_000 {
		h := hosts[i%199]
		if i%10 < 2 {
			h = hosts[199]
		}
		n := &simName{key: fmt.Sprintf("ark:12345/x%d", i), host: h, how: r.IntN(6)}
		n.url = "https://" + h.name + "/" + n.key
		if r.IntN(12) == 0 && (h.temper == steady || h.temper == large || h.temper == flaky || h.temper == sleepy) {
			n.gone = start.Add(time.Duration(r.IntN(int(300*day/time.Second))) * time.Second)
		}
		names = append(names, n)
	}
	return hosts, names
}

// years is how many worlds TestYear has: a few, or as many as `make soak` asks for.
func years(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STELE_YEARS")
	if text == "" {
		return worlds
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestYear runs a year of checks with a false clock in several worlds, and compares what is called broken with the truth.
func TestYear(t *testing.T) {
	for seed := range years(t) {
		t.Run(strconv.Itoa(seed+1), func(t *testing.T) {
			t.Parallel()
			play(t, uint64(seed+1), false)
		})
	}
}

// TestYearWithOutage has this server reach no host for eight days of a year. No host is called down for that, and nothing is missed.
func TestYearWithOutage(t *testing.T) {
	t.Parallel()
	play(t, 1, true)
}

// play runs a year in a world, with an outage of this server or without.
func play(t *testing.T, seed uint64, outage bool) {
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(seed)%7)
	hosts, names := world(rand.New(rand.NewPCG(seed, 2)), start)
	y := &year{rules: rules(t), line: NewLine(), now: start, byKey: make(map[string]*simName), last: make(map[string]time.Time)}
	if outage {
		y.away = func(now time.Time) bool { return now.After(start.Add(100*day)) && now.Before(start.Add(108*day)) }
	}
	count := make(map[string]int)
	for _, n := range names {
		count[n.host.name]++
	}
	left := 0
	gap := Gap
	for _, n := range names {
		share := 1000
		if n.host.temper == large { // it is so slow that a part must do
			gap = 30 * time.Minute
			share = Share(count[n.host.name], gap)
		}
		if !IsSampled(Hash(n.key), share) {
			left++
			continue
		}
		n.status.Next = start
		y.byKey[n.key] = n
		heap.Push(&y.due, n)
	}
	slow := hosts[199].name
	y.line.Pace = func(host string) (time.Duration, bool) {
		if host == slow {
			return gap, true
		}
		return 0, false
	}
	y.run(t, start.Add(365*day))

	type tally struct{ names, told, wrong, missed, late, lateGone int }
	sums := make(map[temper]*tally)
	told, right, away, found := 0, 0, 0, 0
	for _, n := range y.byKey {
		s := sums[n.host.temper]
		if s == nil {
			s = &tally{}
			sums[n.host.temper] = s
		}
		s.names++
		truth := n.truth()
		if !n.told.IsZero() {
			told, s.told = told+1, s.told+1
			if !truth.IsZero() && !n.told.Before(truth) {
				right++
			} else {
				s.wrong++
				t.Logf("%s of a %s host is called %s (%s)", n.key, n.host.temper, n.status.State, n.status.Cause)
			}
		}
		if truth.IsZero() || start.Add(365*day).Sub(truth) < 40*day {
			continue
		}
		away++
		switch {
		case n.told.IsZero():
			s.missed++
			t.Logf("%s of a %s host went away on %s and is %s (%s); %+v", n.key, n.host.temper, truth, n.status.State, n.status.Cause, n.status.Row)
			continue
		case outage: // it makes all later
		case n.told.Sub(truth) > 40*day:
			s.lateGone++
		case !n.failed.IsZero() && n.told.Sub(n.failed) > 9*day:
			s.late++
			t.Logf("%s of a %s host: first failed check %s, told %s", n.key, n.host.temper, n.failed, n.told)
		}
		found++
	}
	for _, name := range slices.Sorted(func(yield func(temper) bool) {
		for k := range sums {
			if !yield(k) {
				return
			}
		}
	}) {
		s := sums[name]
		t.Logf("%-9s %5d names, %4d called broken or gone, %d of them wrongly, %d missed, %d later than 9 days after the first failure, %d later than 40 days", name, s.names, s.told, s.wrong, s.missed, s.late, s.lateGone)
		if s.wrong+s.missed+s.late+s.lateGone > 0 {
			t.Errorf("%s: not every answer is right and in time", name)
		}
	}
	if told == 0 || away == 0 {
		t.Fatal("nothing is broken in this world")
	}
	t.Logf("a year: %d requests, %d notices of whole hosts, %d names of a large host are not in its sample of %d in a thousand", y.requests, y.notices, left, Share(count[slow], gap))
	t.Logf("broken: precision %.4f (%d of %d), recall %.4f (%d of %d)", float64(right)/float64(told), right, told, float64(found)/float64(away), found, away)
	if y.tooSoon > 0 {
		t.Errorf("%d requests came too soon after another of the same domain", y.tooSoon)
	}
}

type year struct {
	rules    *Rules
	away     func(now time.Time) bool // this server reaches no host; nil: it always does
	line     *Line
	due      due
	byKey    map[string]*simName
	now      time.Time
	requests int
	notices  int
	tooSoon  int
	last     map[string]time.Time
}

func (y *year) run(t *testing.T, end time.Time) {
	for y.now.Before(end) {
		for len(y.due) > 0 && !y.due[0].status.Next.After(y.now) {
			n := heap.Pop(&y.due).(*simName)
			rank := Routine
			if n.status.State == Failing {
				rank = Retried
			}
			later, ok := y.line.Add(Task{URL: n.url, Host: n.host.name, Keys: []string{n.key}, Rank: rank}, y.now)
			if !ok {
				n.status.Next = later
				if !later.After(y.now) {
					t.Fatalf("later is not later: %s", later)
				}
				heap.Push(&y.due, n)
			}
		}
		task, again, ok := y.line.Next(y.now)
		if ok {
			y.ask(&task)
			continue
		}
		next := end
		if len(y.due) > 0 {
			next = y.due[0].status.Next
		}
		if !again.IsZero() && again.Before(next) {
			next = again
		}
		y.now = slices.MaxFunc([]time.Time{next, y.now.Add(time.Second)}, time.Time.Compare)
	}
}

// judge judges the answer of a name. The same page is read once.
func (y *year) judge(n *simName) Evidence {
	a := n.answer(y.now)
	if y.away != nil && y.away(y.now) {
		a = &Answer{URL: n.url, Final: n.url, Failure: FailDNS}
	}
	if a.Failure != NoFailure {
		return y.rules.Judge(a)
	}
	key := strconv.Itoa(a.Status) + string(a.Body)
	e, ok := n.seen[key]
	if !ok {
		e = y.rules.Judge(a)
		if n.seen == nil {
			n.seen = make(map[string]Evidence)
		}
		n.seen[key] = e
	}
	return e
}

// ask asks a task; the answer takes half a second.
func (y *year) ask(task *Task) {
	y.requests++
	domain := Domain(task.Host)
	if y.now.Sub(y.last[domain]) < Gap {
		y.tooSoon++
	}
	y.last[domain] = y.now
	h := y.line.Host(task.Host)
	for _, key := range task.Keys {
		n := y.byKey[key]
		e := y.judge(n)
		answered := h.Answered
		wasDown := !h.Down.IsZero()
		left := y.line.Done(task, Report{Took: time.Second / 2}, &e, y.now)
		n.status.Add(&e, Target{Key: Hash(n.key)}, answered, y.now)
		for _, out := range left {
			if !out.Until.After(y.now) {
				panic("a task is postponed to " + out.Until.String())
			}
			for _, key := range out.Keys {
				other := y.byKey[key]
				other.status.Next = out.Until
				heap.Push(&y.due, other)
			}
		}
		truth := n.truth()
		away := !truth.IsZero() && !y.now.Before(truth)
		if away && e.Weight == Bad && n.failed.IsZero() {
			n.failed = y.now
		}
		if n.told.IsZero() && (n.status.State == Broken || n.status.State == Gone) {
			n.told = y.now
		}
		if !wasDown && !h.Down.IsZero() { // one notice, for all names of the host
			y.notices++
			for _, other := range y.byKey {
				if other.host == n.host && other.told.IsZero() {
					other.told = y.now
				}
			}
		}
		n.status.Next = slices.MaxFunc([]time.Time{n.status.Next, y.now.Add(time.Minute)}, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
		heap.Push(&y.due, n)
	}
}
