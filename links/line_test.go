package links

import (
	"strconv"
	"testing"
	"time"
)

func task(url, host string) Task {
	return Task{URL: url, Host: host, Keys: []string{url}, Rank: Routine}
}

func add(t *testing.T, l *Line, list ...Task) {
	t.Helper()
	for _, one := range list {
		if later, ok := l.Add(one, begin); !ok {
			t.Fatalf("%s has to wait until %s", one.URL, later)
		}
	}
}

func next(t *testing.T, l *Line, now time.Time, want string) Task {
	t.Helper()
	got, again, ok := l.Next(now)
	if got.URL != want {
		t.Fatalf("next is %q (%t, again at %s), want %q", got.URL, ok, again, want)
	}
	return got
}

var fine = &Evidence{Weight: Good, State: OK, Status: 200}

func TestOneAtATime(t *testing.T) {
	l := NewLine()
	add(t, l, task("a1", "www.a.example"), task("a2", "data.a.example"), task("b1", "b.example"), task("b1", "b.example"))
	a := next(t, l, begin, "a1")
	b := next(t, l, begin, "b1")
	next(t, l, begin, "")
	l.Done(&a, Report{Took: time.Second}, fine, begin)
	next(t, l, begin.Add(9*time.Second), "")
	next(t, l, begin.Add(10*time.Second), "a2")
	l.Done(&b, Report{}, fine, begin)
	if l.Len() != 0 || l.Busy() != 1 {
		t.Errorf("%d wait and %d are busy: equal addresses are asked once", l.Len(), l.Busy())
	}
}

func TestPaces(t *testing.T) {
	for name, test := range map[string]struct {
		report Report
		e      *Evidence
		own    time.Duration
		want   time.Duration
		known  bool // to the administrator as one of the owner
	}{
		"usual":                  {Report{}, fine, 0, Gap, false},
		"slow":                   {Report{Took: 3 * time.Second}, fine, 0, 30 * time.Second, false},
		"very slow":              {Report{Took: time.Minute}, fine, 0, maxGap, false},
		"crawl delay":            {Report{CrawlDelay: 20 * time.Second}, fine, 0, 20 * time.Second, false},
		"a delay that is long":   {Report{CrawlDelay: time.Hour}, fine, 0, time.Minute, false},
		"Retry-After":            {Report{}, &Evidence{Cause: AskedToWait, Wait: time.Hour}, 0, time.Hour, false},
		"a very long one":        {Report{}, &Evidence{Cause: AskedToWait, Wait: 100 * day}, 0, day, false},
		"an own host":            {Report{Took: time.Second}, fine, time.Second / 5, time.Second / 5, true},
		"an own host, delayed":   {Report{CrawlDelay: 20 * time.Second}, fine, time.Second / 5, 20 * time.Second, true},
		"an own host that waits": {Report{}, &Evidence{Cause: AskedToWait, Wait: time.Hour}, time.Second, time.Hour, true},
		"perhaps an own host":    {Report{}, fine, time.Second / 5, time.Second, false},
		"perhaps, and slow":      {Report{Took: 3 * time.Second}, fine, time.Second / 5, 30 * time.Second, false},
		"perhaps, and slower":    {Report{}, fine, time.Minute, time.Minute, false},
	} {
		l := NewLine()
		l.Pace = func(string) (time.Duration, bool) { return test.own, test.known }
		add(t, l, task("a1", "a.example"))
		one := next(t, l, begin, "a1")
		l.Done(&one, test.report, test.e, begin)
		again, ok := l.Add(Task{URL: "a2", Host: "a.example", Rank: Urgent}, begin)
		if ok {
			_, again, ok = l.Next(begin)
		}
		if ok || again.Sub(begin) != test.want {
			t.Errorf("%s: the next one is after %s, want %s", name, again.Sub(begin), test.want)
		}
	}
}

// Two domains at one address are one host.
func TestSameAddress(t *testing.T) {
	l := NewLine()
	add(t, l, task("a1", "a.example"), task("b1", "b.example"))
	for _, want := range []string{"a1", "b1"} {
		one := next(t, l, begin, want)
		l.Done(&one, Report{Address: "192.0.2.1"}, fine, begin)
	}
	add(t, l, task("a2", "a.example"), task("b2", "b.example"))
	now := begin.Add(time.Minute)
	a := next(t, l, now, "a2")
	next(t, l, now, "")
	l.Done(&a, Report{Address: "192.0.2.1"}, fine, now)
	next(t, l, now.Add(Gap), "b2")
}

func TestRanks(t *testing.T) {
	l := NewLine()
	add(t, l, task("a1", "a.example"), task("a2", "a.example"), Task{URL: "failed", Host: "a.example", Rank: Retried}, Task{URL: "asked", Host: "a.example", Rank: Urgent})
	now := begin
	for _, want := range []string{"asked", "failed", "a1", "a2"} {
		one := next(t, l, now, want)
		l.Done(&one, Report{}, fine, now)
		now = now.Add(Gap)
	}
}

func TestManyDomains(t *testing.T) {
	l := NewLine()
	for i := range AtOnce + 1 {
		host := string(rune('a'+i)) + ".example"
		add(t, l, task(host, host))
	}
	var first Task
	for range AtOnce {
		first, _, _ = l.Next(begin)
	}
	next(t, l, begin, "")
	l.Done(&first, Report{}, fine, begin)
	next(t, l, begin, string(rune('a'+AtOnce))+".example")
}

// A host that does not answer is probed once an hour, however many names it has.
func TestBreaker(t *testing.T) {
	l := NewLine()
	down := &Evidence{Weight: Bad, Cause: TimedOut}
	now := begin
	for i := range breakAfter {
		add(t, l, task(string(rune('a'+i)), "a.example"))
		one, _, ok := l.Next(now)
		if !ok {
			t.Fatal("nothing is next")
		}
		l.Done(&one, Report{}, down, now)
		now = now.Add(Gap)
	}
	later, ok := l.Add(task("x", "a.example"), now)
	if ok || later.Sub(now) > probeEvery || later.Sub(now) < probeEvery-time.Minute {
		t.Fatalf("%t, %s: the host is not only probed", ok, later.Sub(now))
	}
	if _, ok := l.Add(task("x", "a.example"), later); !ok {
		t.Error("the probe is refused")
	}
	if another, ok := l.Add(task("y", "a.example"), later); ok || another.Sub(later) != day {
		t.Errorf("%t, %s: a second probe", ok, another)
	}
	if _, ok := l.Add(Task{URL: "z", Host: "a.example", Rank: Urgent}, now); !ok {
		t.Error("a user waits, and is refused")
	}
	one := next(t, l, later, "z")
	l.Done(&one, Report{}, fine, later)
	if _, ok := l.Add(task("y", "a.example"), later); !ok || l.Host("a.example").IsOpen() {
		t.Error("the host answers and is still only probed")
	}
}

func TestShare(t *testing.T) {
	if s := Share(1000, Gap); s != 1000 {
		t.Errorf("1,000 names: %d", s)
	}
	if s := Share(1_000_000, Gap); s < 200 || s > 300 {
		t.Errorf("a million names: %d", s)
	}
	n := 0
	for i := range 10_000 {
		if IsSampled(uint64(i), 250) {
			n++
		}
	}
	if n < 2300 || n > 2700 {
		t.Errorf("%d of 10,000 are in a sample of a quarter", n)
	}
}

func TestDomain(t *testing.T) {
	for host, want := range map[string]string{"www.a.example": "a.example", "A.B.co.uk": "b.co.uk", "192.0.2.1": "192.0.2.1", "localhost": "localhost", "x.y.museu.gov.br.": "museu.gov.br", "2001:db8::1": "2001:db8::1"} {
		if got := Domain(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// What waits for a host that stops to answer, or for one that wants to be left alone, makes room for others.
func TestMakesRoom(t *testing.T) {
	for name, test := range map[string]struct {
		e     *Evidence
		times int
		until time.Duration // the first one is due after this
	}{
		"does not answer": {&Evidence{Weight: Bad, Cause: TimedOut}, breakAfter, probeEvery},
		"asks to wait":    {&Evidence{Cause: AskedToWait, Wait: 3 * time.Hour}, 1, 3 * time.Hour},
	} {
		l := NewLine()
		for i := range 20 {
			add(t, l, task(string(rune('a'+i)), "a.example"))
		}
		add(t, l, Task{URL: "asked", Host: "a.example", Keys: []string{"asked"}, Rank: Urgent}, task("b", "b.example"))
		now := begin
		var out []Postponed
		for range test.times {
			l.lanes["a.example"].next = now
			one, _, _ := l.Next(now)
			if one.Host != "a.example" {
				l.Cancel(&one)
				one, _, _ = l.Next(now)
			}
			if out = l.Done(&one, Report{}, test.e, now); l.size != l.count() {
				t.Fatalf("%s: %d tasks are counted, and there are %d", name, l.size, l.count())
			}
			now = now.Add(time.Minute)
		}
		now = now.Add(-time.Minute)
		if l.Len() > 2 || len(out) < 10 {
			t.Fatalf("%s: %d tasks are left, %d went away", name, l.Len(), len(out))
		}
		seen := make(map[time.Time]bool)
		for i, o := range out {
			if seen[o.Until] || !o.Until.After(now) || i == 0 && o.Until.Sub(now) != test.until {
				t.Errorf("%s: task %d is due after %s", name, i, o.Until.Sub(now))
			}
			seen[o.Until] = true
		}
	}
}

func (l *Line) count() (n int) {
	for _, q := range l.lanes {
		n += len(q.tasks)
	}
	return n
}

// A domain with many names comes back in pieces, and leaves room for others. A user need not wait for it.
func TestManyNames(t *testing.T) {
	l := NewLine()
	seen := make(map[time.Time]bool)
	refused := 0
	for i := range 1000 {
		later, ok := l.Add(task(strconv.Itoa(i), "a.example"), begin)
		if ok {
			continue
		}
		if refused++; seen[later] || later.Sub(begin) > 1000*Gap {
			t.Fatalf("%d: %s", i, later.Sub(begin))
		}
		seen[later] = true
	}
	if refused < 800 {
		t.Errorf("%d were refused", refused)
	}
	add(t, l, Task{URL: "asked", Host: "a.example", Rank: Urgent})
	l.Raise("a.example", "7")
	l.Raise("a.example", "none")
	for i, want := range []string{"asked", "7", "0"} {
		now := begin.Add(time.Duration(i) * Gap)
		one := next(t, l, now, want)
		l.Done(&one, Report{}, fine, now)
	}
}

func TestForgetsHosts(t *testing.T) {
	l := NewLine()
	for _, name := range []string{"good.example", "bad.example"} {
		add(t, l, task(name, name))
	}
	for range 2 {
		one, _, _ := l.Next(begin)
		e := fine
		if one.Host == "bad.example" {
			e = &Evidence{Weight: Bad, Cause: Refused}
		}
		l.Done(&one, Report{}, e, begin)
	}
	l.Next(begin.Add(10 * day))
	if l.hosts["good.example"] != nil || l.hosts["bad.example"] == nil {
		t.Errorf("kept: %v", l.hosts)
	}
}

// A domain that wants to be left alone for long does not keep what users wait for in memory.
func TestUrgentWaitsElsewhere(t *testing.T) {
	l := NewLine()
	task := func(n string) Task {
		return Task{URL: "https://a.example/" + n, Host: "a.example", Keys: []string{n}, Rank: Urgent}
	}
	for _, n := range []string{"1", "2"} {
		if _, ok := l.Add(task(n), begin); !ok {
			t.Fatal("the line is full")
		}
	}
	first, _, ok := l.Next(begin)
	if !ok {
		t.Fatal("nothing is next")
	}
	out := l.Done(&first, Report{}, &Evidence{Cause: AskedToWait, Status: 429, Wait: day}, begin)
	if len(out) != 1 || !out[0].Until.Equal(begin.Add(day)) || l.Len() != 0 {
		t.Errorf("%+v leave the line, and %d stay", out, l.Len())
	}
	if later, ok := l.Add(task("3"), begin); ok || !later.Equal(begin.Add(day)) {
		t.Errorf("added: %v, %s", ok, later)
	}
}
