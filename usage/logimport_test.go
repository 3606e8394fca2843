package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

// TestLogLine reads lines as servers write them.
func TestLogLine(t *testing.T) {
	at := noon.Unix()
	for _, c := range []struct {
		line     string
		combined bool
		want     logLine
		ok       bool
	}{
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1 HTTP/1.1" 302 0 "https://example.org/" "curl/8"`, true, logLine{at, "192.0.2.1", "", "GET", "/ark:12345/x1", 302, "https://example.org/", "curl/8"}, true},
		{`192.0.2.1 - - [17/Nov/2026:09:00:00 -0300] "GET /a HTTP/1.1" 302 - "-" "-"`, true, logLine{at, "192.0.2.1", "", "GET", "/a", 302, "", ""}, true},
		{`2001:db8::1 - ann lee [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "a \"b\" \\ \x22c\x5C" "10.0.0.1" 0.003`, true, logLine{at, "2001:db8::1", "ann lee", "GET", "/a", 200, "", `a "b" \ "c\`}, true},
		{`host.example - - [17/Nov/2026:12:00:00 +0000] "GET /a b HTTP/1.0" 404 3`, false, logLine{at, "host.example", "", "GET", "/a b", 404, "", ""}, true},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "-" 408 -`, false, logLine{at, "192.0.2.1", "", "", "", 408, "", ""}, true},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 0`, true, logLine{}, false},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "cut off`, true, logLine{}, false},
		{`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 99 0`, false, logLine{}, false},
		{`192.0.2.1 - - [31/Feb/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 0`, false, logLine{}, false},
		{`192.0.2.1 - - [17/Nov/1926:12:00:00 +0000] "GET /a HTTP/1.1" 302 0`, false, logLine{}, false},
		{``, false, logLine{}, false},
	} {
		l, ok := parseLogLine(c.line, c.combined)
		if l != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %t", c.line, l, ok)
		}
	}
}

// FuzzLogLine checks that no line stops the program, and that what is read of a line is in it.
func FuzzLogLine(f *testing.F) {
	for _, line := range []string{
		`192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1 HTTP/1.1" 302 0 "https://example.org/" "Mozilla/5.0"`,
		`2001:db8::1 - ann [17/Nov/2026:12:00:00 +0000] "HEAD /\x22 HTTP/2.0" 200 - "-" "\"\\"`,
		`a b c [17/Nov/2026:12:00:00 +0000] "-" 400 0 "" ""`, `- - - [] "" 200 0 "\x`, "\x00", `"\`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		l, ok := parseLogLine(line, true)
		if !ok {
			if l != (logLine{}) {
				t.Fatalf("%+v", l)
			}
			return
		}
		if len(l.client)+len(l.user)+len(l.method)+len(l.target)+len(l.referrer)+len(l.agent) > len(line) || l.status < 100 || l.status > 999 || l.at < 0 {
			t.Fatalf("%+v of %q", l, line)
		}
		common, ok := parseLogLine(line, false)
		l.referrer, l.agent = "", ""
		if !ok || common != l {
			t.Fatalf("%+v, %+v", common, l)
		}
	})
}

// logger writes a log file.
type logger struct{ strings.Builder }

// add adds a line of a reader at a time after noon.
func (l *logger) add(after time.Duration, client, request string, status int, agent string) {
	fmt.Fprintf(l, "%s - - [%s] %q %d 0 %q %q\n", client, noon.Add(after).Format(logTime), request+" HTTP/1.1", status, "https://www.example.org/page", agent)
}

func (h *house) importer(store Store) *LogImporter {
	h.Helper()
	return &LogImporter{
		Store: store, Schemes: h.schemes, Agents: h.counter.o.Agents, Now: func() time.Time { return h.now }, Combined: true,
		Space: func(ctx context.Context, id stele.ID) (stele.NamespaceKey, error) {
			return h.counter.o.Space(ctx, id), nil
		},
		Find: func(ctx context.Context, id stele.ID) (stele.ID, bool, error) {
			return id, strings.HasPrefix(id.String(), "ark:12345/x"), nil
		},
	}
}

func opener(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// cells returns the figures that are kept, without the marks.
func (h *house) cells() map[string]string {
	h.Helper()
	found := make(map[string]string)
	for c, err := range h.r.UsageList(asServer(h.Context()), recordCells[:len(recordCells)-1], "") {
		if err != nil {
			h.Fatal(err)
		}
		if !strings.HasPrefix(c.Name, logCells) && !strings.HasPrefix(c.Name, markCells) {
			found[c.Name] = string(c.Value)
		}
	}
	return found
}

// TestLogRules counts lines by the rules that count answers.
func TestLogRules(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(time.Hour)
	var l logger
	const ann, bob = "192.0.2.1", "2001:db8::2"
	x1 := "GET /ark:12345/x1"
	l.add(0, ann, x1, 302, firefox)
	l.add(29*time.Second, ann, "GET /ark:/12345/x1?info", 302, firefox) // a double click
	l.add(70*time.Second, bob, x1, 301, curl)
	l.add(65*time.Second, ann, x1, 302, firefox) // late, another resolution of the session
	l.add(80*time.Second, "203.0.113.5", x1, 303, googlebot)
	l.add(90*time.Second, ann, "GET /.info/ark:12345/x1", 200, firefox)
	l.add(91*time.Second, ann, "GET /ark:12345/x1", 304, firefox)
	l.add(92*time.Second, ann, "HEAD /ark:12345/x1", 302, firefox)
	l.add(93*time.Second, ann, "GET /favicon.ico", 404, firefox)
	l.add(94*time.Second, ann, "GET /ark:12345/typo", 404, firefox)
	l.add(95*time.Second, bob, "GET /ark:12345/typo", 404, firefox)
	l.add(96*time.Second, bob, "GET /ark:12345/elsewhere", 302, firefox)
	l.WriteString("what is this?\n")
	l.WriteString("and this has no end")
	sum, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := &LogSummary{File: "access.log", Lines: 13, Counted: 4, Doubles: 1, Robots: 1, Failures: 2, Unknown: 1, NotNames: 1, NotCounted: 2, Unreadable: 1, First: []int{13}, Incomplete: true}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
	if c := h.sum(recordCell(h.id("ark:12345/x1"), DateOf(noon).number())); c != (Counts{Regulars: 2, RegularUnique: 1, Machines: 1, MachineUnique: 1, Descriptions: 1, Robots: 1}) {
		t.Errorf("%v", c)
	}
	if c := h.space(); c[Failures] != 2 || c[Visitors] != 2 {
		t.Errorf("%v", c)
	}
	if have := h.failedNames(); !slices.Equal(have, []string{"ark:12345/typo"}) {
		t.Errorf("%q", have)
	}
	for name, value := range h.cells() {
		if strings.Contains(name+value, ann) || strings.Contains(name+value, "Firefox") {
			t.Errorf("%q has %q", name, value)
		}
	}
}

// TestLogOnce gives a file again: whole, with more lines, cut off, and with another end.
func TestLogOnce(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(time.Hour)
	var l logger
	for n := range 100 {
		l.add(time.Duration(n)*time.Minute/4, fmt.Sprint("192.0.2.", n%3), "GET /ark:12345/x1", 302, firefox)
	}
	first := l.String()
	l.add(25*time.Minute+10*time.Second, "192.0.2.0", "GET /ark:12345/x1", 302, firefox) // 25 s after the last one of this reader
	l.add(40*time.Minute, "192.0.2.0", "GET /ark:12345/x1", 302, firefox)
	second := l.String()
	im := h.importer(h.r)
	for _, c := range []struct {
		text            string
		lines, resolved int
		kind            stele.Kind
	}{
		{first, 100, 100, 0},
		{first, 0, 100, 0},
		{second, 2, 101, 0},
		{second, 0, 101, 0},
		{first, 0, 101, stele.Conflict},
		{first + "192.0.2.7 another\n", 0, 101, stele.Conflict},
	} {
		sum, err := im.Import(t.Context(), "access.log", opener(c.text))
		switch {
		case c.kind != 0:
			if stele.KindOf(err) != c.kind {
				t.Errorf("%v", err)
			}
		case err != nil:
			t.Fatal(err)
		case sum.Lines != c.lines:
			t.Errorf("%+v", sum)
		}
		if have := h.sum(recordCell(h.id("ark:12345/x1"), DateOf(noon).number())); have[Regulars] != uint64(c.resolved) {
			t.Errorf("%v after %d bytes, want %d", have, len(c.text), c.resolved)
		}
	}
}

// TestLogDry writes nothing, and says the same.
func TestLogDry(t *testing.T) {
	h := newHouse(t)
	var l logger
	l.add(0, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	im := h.importer(h.r)
	im.DryRun = true
	for range 2 {
		if sum, err := im.Import(t.Context(), "access.log", opener(l.String())); err != nil || sum.Counted != 1 || len(h.cells()) != 0 {
			t.Errorf("%+v, %v, %q", sum, err, h.cells())
		}
	}
}

var errCut = errors.New("the connection broke")

// cutStore makes so many commits and then fails: before a commit, or after it was made.
type cutStore struct {
	Store
	left  int
	after bool
}

func (s *cutStore) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	if s.left--; s.left < 0 {
		return errCut
	}
	if err := s.Store.KeepUsage(ctx, changes...); err != nil || s.left > 0 || !s.after {
		return err
	}
	return errCut
}

// TestLogCut ends an import at every commit, and repeats it: the figures are those of a run that was not ended.
func TestLogCut(t *testing.T) {
	var l logger
	for n := range 4000 { // three days, and more names than a commit has cells
		l.add(time.Duration(n)*time.Minute, fmt.Sprint("192.0.2.", n%5), fmt.Sprint("GET /ark:12345/x", n%1300), 302, firefox)
		if n%7 == 0 {
			l.add(time.Duration(n)*time.Minute+20*time.Second, fmt.Sprint("192.0.2.", n%5), fmt.Sprint("GET /ark:12345/x", n%1300), 302, firefox)
		}
	}
	whole := newHouse(t)
	whole.now = noon.Add(100 * time.Hour)
	want, err := whole.importer(whole.r).Import(t.Context(), "access.log", opener(l.String()))
	if err != nil || want.Doubles != 572 || want.Counted != 4000 {
		t.Fatalf("%+v, %v", want, err)
	}
	for _, after := range []bool{false, true} {
		for commits := 1; ; commits++ {
			h := newHouse(t)
			h.now = whole.now
			runs, done := 0, false
			var sum *LogSummary
			for ; !done; runs++ { // each run makes so many commits
				sum, err = h.importer(&cutStore{Store: h.r, left: commits, after: after}).Import(t.Context(), "access.log", opener(l.String()))
				if done = err == nil; !done && !errors.Is(err, errCut) {
					t.Fatal(err)
				}
				if runs > 50 {
					t.Fatalf("%d commits in a run do not lead to the end", commits)
				}
			}
			if diff := cmp.Diff(whole.cells(), h.cells()); diff != "" {
				t.Fatalf("%d commits in each of %d runs: %s", commits, runs, diff)
			}
			if runs == 1 {
				if diff := cmp.Diff(want, sum); diff != "" || commits < 5 {
					t.Errorf("%d commits: %s", commits, diff)
				}
				break
			}
		}
	}
}

// TestLogOld counts lines of months whose days are added up: into the sums of the months.
func TestLogOld(t *testing.T) {
	h := newHouse(t)
	h.now = noon.AddDate(3, 0, 0)
	month := DateOf(noon).number()
	h.put(recordCell(h.id("ark:12345/x1"), month), appendMonth(nil, &Month{Days: []Day{{0, Counts{Regulars: 5}}}}))
	var l logger
	l.add(0, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	l.add(time.Hour, "192.0.2.1", "GET /ark:12345/x2", 302, firefox)
	l.add(2*time.Hour, "192.0.2.1", "GET /ark:12345/typo", 404, firefox)
	l.add(3*time.Hour, "192.0.2.1", "GET /ark:12345/typo", 404, firefox)
	if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String())); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"ark:12345/x1": 6, "ark:12345/x2": 1} {
		value, err := h.r.UsageCell(asServer(t.Context()), recordCell(h.id(name), month))
		if err != nil {
			t.Fatal(err)
		}
		if m, err := parseMonth(value); err != nil || len(m.Days) != 1 || m.Days[0].Day != 0 || m.Days[0].Counts[Regulars] != want {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if have := h.failedNames(); have != nil {
		t.Errorf("%q are kept, which were typed years ago", have)
	}
	if begin, err := h.r.UsageCell(asServer(t.Context()), beginCell); err != nil || string(begin) != noon.Format(time.RFC3339) {
		t.Errorf("counting began at %s, %v", begin, err)
	}
}
