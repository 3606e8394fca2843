package links

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var begin = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

// follow adds an answer whenever it is due, and returns when the state was first reached.
func follow(t *testing.T, s *Status, until State, most int, answer func(n int, now time.Time) Evidence) (time.Duration, bool) {
	t.Helper()
	now := begin
	for n := range most {
		e := answer(n, now)
		s.Add(&e, Target{Key: 7}, now, now)
		if s.State == until {
			return now.Sub(begin), true
		}
		if !s.Next.After(now) {
			t.Fatalf("it is due at %s, which is not after %s", s.Next, now)
		}
		now = s.Next
	}
	return now.Sub(begin), false
}

func bad(c Cause) func(int, time.Time) Evidence {
	return func(int, time.Time) Evidence { return Evidence{Weight: Bad, Cause: c, Status: 404} }
}

func TestBroken(t *testing.T) {
	for _, test := range []struct {
		name     string
		until    State
		answer   func(int, time.Time) Evidence
		from, to time.Duration // 0: never
	}{
		{"404", Broken, bad(NotFound), 7 * day, 8 * day},
		{"no such host", Broken, bad(NoName), 3 * day, 4 * day},
		{"410", Gone, bad(SaysGone), time.Minute, day},
		{"410 once", Gone, func(n int, _ time.Time) Evidence {
			if n%2 == 0 {
				return Evidence{Weight: Bad, Cause: SaysGone}
			}
			return Evidence{Weight: Good, State: OK}
		}, 0, 0},
		{"a wall", Broken, func(int, time.Time) Evidence { return Evidence{State: Blocked, Cause: Wall} }, 0, 0},
		{"a wait", Broken, func(int, time.Time) Evidence { return Evidence{Cause: AskedToWait, Wait: hour} }, 0, 0},
		{"weak", Broken, func(int, time.Time) Evidence { return Evidence{Weight: Weak, State: Unsure} }, 0, 0},
		{"good now and then", Broken, func(n int, _ time.Time) Evidence {
			if n%6 == 5 {
				return Evidence{Weight: Good, State: OK}
			}
			return Evidence{Weight: Bad, Cause: NotFound}
		}, 0, 0},
		{"a night each day", Broken, func(_ int, now time.Time) Evidence {
			if now.Hour() < 11 {
				return Evidence{Weight: Bad, Cause: BadStatus}
			}
			return Evidence{Weight: Good, State: OK}
		}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s Status
			at, ok := follow(t, &s, test.until, 100, test.answer)
			if ok != (test.to > 0) || ok && (at < test.from || at > test.to) {
				t.Errorf("%s: %t after %s; the row is %+v", test.until, ok, at, s.Row)
			}
		})
	}
}

// office is a host that is up for some hours of the days from Monday to Friday, or from Sunday to Thursday, in UTC.
func office(opens, hours int, sunday bool) func(time.Time) bool {
	return func(now time.Time) bool {
		local := now.Add(-time.Duration(opens) * hour) // its day begins when it opens
		first, last := time.Monday, time.Friday
		if sunday {
			first, last = time.Sunday, time.Thursday
		}
		return local.Hour() < hours && local.Weekday() >= first && local.Weekday() <= last
	}
}

// A host that is up for ten hours of each working day is never called broken, whenever it is asked first and however late the
// checks after that come; and what is broken is, within 9 days.
func TestWorkingDays(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for start := range 7 * 24 {
		for opens := range 24 {
			for _, late := range []time.Duration{0, 30 * time.Minute, 2 * hour, 8 * hour} {
				up := office(opens, 10, start%2 == 0 || opens >= 20) // a Monday does not begin at 20 in UTC
				begin := begin.Add(time.Duration(start)*hour + time.Duration(random.IntN(60))*time.Minute)
				var s Status
				for now := begin; now.Sub(begin) < 60*day; now = s.Next.Add(time.Duration(random.Int64N(int64(late + 1)))) {
					e := Evidence{Weight: Bad, Cause: BadStatus, Status: 502}
					if up(now) {
						e = Evidence{Weight: Good, State: OK, Status: 200}
					}
					if s.Add(&e, Target{Key: random.Uint64()}, now, now); s.State == Broken {
						t.Fatalf("a host that opens at %d, asked first at %s, is called broken at %s: %+v", opens, begin, now, s.Row)
					}
				}
				if opens > 0 || late > 2*hour {
					continue
				}
				s = Status{}
				for now := begin; s.State != Broken; now = s.Next.Add(time.Duration(random.Int64N(int64(late + 1)))) {
					e := Evidence{Weight: Bad, Cause: NotFound, Status: 404}
					if s.Add(&e, Target{}, now, now); now.Sub(begin) > 9*day {
						t.Fatalf("what failed first at %s is %s at %s: %+v", begin, s.State, now, s.Row)
					}
				}
			}
		}
	}
}

// A host that does not answer is down; its names are not broken, unless others of the host answer.
func TestHostIsDown(t *testing.T) {
	var s Status
	var h Host
	now := begin
	for range 20 {
		e := Evidence{Weight: Bad, Cause: TimedOut}
		s.Add(&e, Target{}, h.Answered, now)
		h.Add(&e, now)
		now = s.Next
	}
	if s.State != Failing || h.Down.IsZero() || h.Down.Sub(begin) > 8*day {
		t.Errorf("%s, the host is down since %s", s.State, h.Down)
	}
	other := Evidence{Weight: Good, State: OK, Status: 200}
	h.Add(&other, now)
	if !h.Down.IsZero() || h.IsOpen() {
		t.Error("the host answers and is down")
	}
	e := Evidence{Weight: Bad, Cause: TimedOut}
	s.Add(&e, Target{}, h.Answered, now.Add(time.Minute))
	if s.State != Broken {
		t.Errorf("others of the host answer, and it is %s", s.State)
	}
}

func TestLooked(t *testing.T) {
	var s Status
	wall := Evidence{State: Blocked, Cause: Wall, Status: 403, Final: "https://a.example/"}
	s.Add(&wall, Target{}, begin, begin)
	s.LookedFine(wall.Cause, wall.Status, wall.Final, 0, begin)
	s.Add(&wall, Target{}, begin, begin.Add(day))
	if s.State != OK {
		t.Errorf("a person said that it works, and it is %s", s.State)
	}
	other := Evidence{State: Blocked, Cause: Forbidden, Status: 403, Final: "https://a.example/"}
	s.Add(&other, Target{}, begin, begin.Add(2*day))
	if s.State != Blocked {
		t.Errorf("another answer is %s", s.State)
	}
	s.LookedGone(0, begin)
	s.Add(&wall, Target{}, begin, begin.Add(day))
	if s.State != Gone {
		t.Errorf("a person said that it is gone, and it is %s", s.State)
	}
}

func TestDrift(t *testing.T) {
	print := func(body string) Print {
		a := webPage(200, body)
		return rules(t).Judge(&a).Print
	}
	old, similar, other := print(prose("Maps", "maps")), print(prose("Maps of Pará", "maps")), print("<title>Casino</title>"+prose("", "games of chance where money is lost by visitors"))
	pdf := Print{Type: 99, Length: 10}
	digest := func(n byte) Print { return Print{Type: 5, Digest: [16]byte{n}} }
	typed := func(n byte, media string) Print {
		p := digest(n)
		p.Type = hashType(media)
		return p
	}
	for name, test := range map[string]struct {
		prints     []Print // a day apart each; a zero one is a week
		unchanging bool
		want       Drift
		signed     []Signed
		servers    time.Time
	}{
		"the same":            {[]Print{old, old}, false, NoDrift, nil, time.Time{}},
		"similar":             {[]Print{old, similar, {}, similar}, false, NoDrift, nil, time.Time{}},
		"once":                {[]Print{old, other}, false, Suspected, nil, time.Time{}},
		"and back":            {[]Print{old, other, {}, old}, false, NoDrift, nil, time.Time{}},
		"twice in a week":     {[]Print{old, other, other}, false, Suspected, nil, time.Time{}},
		"twice, a week apart": {[]Print{old, other, {}, other}, false, TextChanged, nil, time.Time{}},
		"another type":        {[]Print{pdf, old}, false, TypeChanged, nil, time.Time{}},
		"another digest":      {[]Print{digest(1), digest(2)}, false, NoDrift, nil, time.Time{}},
		"a promise":           {[]Print{digest(1), digest(1)}, true, NoDrift, nil, time.Time{}},
		"a broken promise":    {[]Print{digest(1), digest(2)}, true, PromiseBroken, nil, time.Time{}},
		"it stays broken":     {[]Print{digest(1), digest(2), digest(2)}, true, PromiseBroken, nil, time.Time{}},
		"it is kept again":    {[]Print{digest(1), digest(2), digest(1)}, true, NoDrift, nil, time.Time{}},
		"signed":              {[]Print{digest(2), digest(1)}, true, NoDrift, []Signed{{Digest: [16]byte{1}}, {Digest: [16]byte{2}}}, time.Time{}},
		"not what is signed":  {[]Print{digest(3)}, true, PromiseBroken, []Signed{{Digest: [16]byte{1}}, {Digest: [16]byte{2}}}, time.Time{}},
		"signed at last":      {[]Print{digest(3), digest(1)}, true, NoDrift, []Signed{{Digest: [16]byte{1}}, {Digest: [16]byte{2}}}, time.Time{}},
		"not unchanging":      {[]Print{digest(3)}, false, NoDrift, []Signed{{Digest: [16]byte{1}}}, time.Time{}},
		"a page about it":     {[]Print{typed(3, "text/html"), typed(4, "text/html")}, true, NoDrift, []Signed{{"application/pdf", [16]byte{1}}}, time.Time{}},
		"not the signed file": {[]Print{typed(3, "application/pdf")}, true, PromiseBroken, []Signed{{"application/pdf", [16]byte{1}}}, time.Time{}},
		"parked":              {[]Print{old, other}, false, HostOfOthers, nil, begin},
		"another provider":    {[]Print{old, similar}, false, NoDrift, nil, begin},
		"servers of long ago": {[]Print{old, other}, false, Suspected, nil, begin.Add(-100 * day)},
	} {
		t.Run(name, func(t *testing.T) {
			var s Status
			now := begin
			for _, p := range test.prints {
				if now = now.Add(day); p == (Print{}) {
					now = now.Add(7 * day)
					continue
				}
				e := Evidence{Weight: Good, State: OK, Status: 200, Print: p}
				s.Add(&e, Target{Unchanging: test.unchanging, Signed: test.signed, Servers: test.servers}, now, now)
			}
			if s.Drift != test.want {
				t.Errorf("%s, want %s", s.Drift, test.want)
			}
		})
	}
}

// Content that seems to be another one is looked at again a week later, and not in its turn of 30 days.
func TestSecondLook(t *testing.T) {
	page := func(title, about string) *Evidence {
		a := webPage(200, "<title>"+title+"</title>"+prose("", about))
		return &Evidence{Weight: Good, State: OK, Status: 200, Print: rules(t).Judge(&a).Print}
	}
	old, other := page("Maps", "maps of the land"), page("Casino", "games of chance where money is lost by visitors")
	looks := func(second *Evidence) (s Status) {
		now := begin
		for i, e := range []*Evidence{old, other, second} {
			s.Add(e, Target{}, now, now)
			if i == 1 && (s.Drift != Suspected || s.Next.Sub(now) > driftWait) {
				t.Errorf("it is %s, and the second look comes %s later", s.Drift, s.Next.Sub(now))
			}
			if now = s.Next; i == 1 {
				now = maxTime(now, begin.Add(30*day).Add(driftWait))
			}
			if i == 0 {
				now = begin.Add(20 * day)
			}
		}
		return s
	}
	if s := looks(other); s.Drift != TextChanged {
		t.Errorf("it differs at both looks, and is %s", s.Drift)
	}
	if s := looks(&Evidence{Weight: Good, State: OK, Status: 304}); s.Drift != NoDrift || !s.DriftSince.IsZero() {
		t.Errorf("what is kept is there again, and it is %s", s.Drift)
	}
	// A look that finds out nothing does not repeat at once.
	if s := looks(&Evidence{Weight: Good, State: OK, Status: 200}); s.Drift != Suspected || s.Next.Sub(s.Checked) < leastGap {
		t.Errorf("it is %s, and due after %s", s.Drift, s.Next.Sub(s.Checked))
	}
	// Within the week the turn does not put the second look off.
	var s Status
	for _, at := range []time.Duration{0, day, 3 * day} {
		e := other
		if at == 0 {
			e = old
		}
		s.Add(e, Target{}, begin, begin.Add(at))
	}
	if want := begin.Add(day + driftWait); s.Next.After(want) {
		t.Errorf("the second look is at %s, not at %s", s.Next, want)
	}
}

// A tag is kept whole or not at all: a part of it would be the tag of another page. Without one the time of the last change is kept.
func TestTags(t *testing.T) {
	const changed = "Mon, 02 Jan 2023 15:04:05 GMT"
	for tag, want := range map[string]Print{
		`"5f3e4b2a1c-9d3"`:       {Tag: `"5f3e4b2a1c-9d3"`},
		`W/"5f3e4b2a1c-9"`:       {Tag: `W/"5f3e4b2a1c-9"`},
		`"2aa6-5d5c3b8a8f2c0-1"`: {Modified: time.Date(2023, 1, 2, 15, 4, 5, 0, time.UTC)},
		"":                       {Modified: time.Date(2023, 1, 2, 15, 4, 5, 0, time.UTC)},
	} {
		a := webPage(200, prose("Maps", "maps"))
		a.Header["etag"], a.Header["last-modified"] = []string{tag}, []string{changed}
		p := rules(t).Judge(&a).Print
		if p.Tag != want.Tag || !p.Modified.Equal(want.Modified) {
			t.Errorf("%s: %q, %s are kept", tag, p.Tag, p.Modified)
		}
	}
}

func TestSlotsAreSpread(t *testing.T) {
	var days [31]int
	for i := range 30_000 {
		at := Slot(uint64(i), begin)
		if at.Sub(begin) < leastGap || at.Sub(begin) > Turn+leastGap {
			t.Fatalf("the turn is after %s", at.Sub(begin))
		}
		days[int(at.Sub(begin.Add(leastGap))/day)]++
	}
	for d, n := range days[:30] {
		if n < 800 || n > 1200 {
			t.Errorf("%d on day %d", n, d)
		}
	}
}

func TestStatusForm(t *testing.T) {
	minute := begin.Add(3 * time.Minute)
	for name, s := range map[string]Status{
		"new": {URL: 5},
		"ok": {URL: 1 << 60, State: OK, Cause: Answered, Code: 200, Since: begin, Checked: minute, Good: minute, Next: begin.Add(Turn),
			Print: Print{Title: 4, Text: 1 << 63, Type: 7, Length: 123456, Digest: [16]byte{1, 2}}},
		"all": {URL: 1, State: Failing, Cause: NotFound, Code: 404, Since: begin, Checked: minute, Good: begin, Next: minute, Large: true, Looked: 77, Gone: 1,
			Row: Row{First: begin, Last: minute, Fails: 3, Days: 2, Hours: 1<<23 | 1<<9 | 1, Absent: 2}, Drift: TypeChanged, DriftSince: begin,
			Print: Print{Title: 4, Text: 5, Type: 6, Length: 7, Digest: [16]byte{9}, Modified: begin.Add(time.Second), Tag: `W/"abc"`}},
	} {
		b := s.Append(nil)
		got, err := ReadStatus(b)
		if err != nil || !cmp.Equal(got, s) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(s, got))
		}
		if name == "ok" && len(b) > 64 {
			t.Errorf("a target that works takes %d bytes", len(b))
		}
		for n := range b {
			if _, err := ReadStatus(b[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are read", name, n, len(b))
			}
		}
	}
}

func FuzzReadStatus(f *testing.F) {
	f.Add((&Status{URL: 5, State: OK, Code: 200, Checked: begin}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadStatus(b)
		if err != nil {
			return
		}
		again, err := ReadStatus(s.Append(nil))
		if err != nil || !cmp.Equal(again, s) {
			t.Errorf("%v\n%s", err, cmp.Diff(s, again))
		}
	})
}

// That a page works can be said twice: it is said about the same answer.
func TestLookedTwice(t *testing.T) {
	e := Evidence{Cause: Forbidden, State: Blocked, Status: 403, Final: "https://a.example/"}
	var s Status
	s.Add(&e, Target{}, time.Time{}, begin)
	for range 2 {
		s.LookedFine(s.Cause, int(s.Code), e.Final, 1, begin)
	}
	if s.Add(&e, Target{}, time.Time{}, begin.Add(day)); s.State != OK {
		t.Errorf("it is %s again", s.State)
	}
}
