package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestLogRegistered registers names between a run that was killed and its repetition: what is written does not count again, and nothing after that is lost.
func TestLogRegistered(t *testing.T) {
	var l logger
	const days = 5
	for n := range days * 24 { // of the names of the first two days, none is registered at first
		l.add(time.Duration(n)*time.Hour, "192.0.2.1", fmt.Sprint("GET /ark:12345/x", n/48), 302, firefox)
	}
	for commits := 1; commits < 8; commits++ {
		h := newHouse(t)
		h.now = noon.Add(days * 24 * time.Hour)
		im := h.importer(&cutStore{Store: h.r, left: commits})
		all := im.Find
		im.Find = func(ctx context.Context, id stele.ID) (stele.ID, bool, error) {
			record, _, err := all(ctx, id)
			return record, id.String() != "ark:12345/x0", err
		}
		_, err := im.Import(t.Context(), "access.log", opener(l.String()))
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String())); err != nil {
			t.Fatal(err)
		}
		for n, want := range []uint64{0, 48, 24} {
			if have := h.sum(recordCell(h.id(fmt.Sprint("ark:12345/x", n)), DateOf(noon).number())); have[Regulars] != want {
				t.Errorf("%d commits: x%d has %d resolutions, want %d", commits, n, have[Regulars], want)
			}
		}
	}
}

// TestLogParts has more lines than a part in a day, of which the registry knew few names at first.
func TestLogParts(t *testing.T) {
	var l logger
	const lines = partLines + 2000
	for n := range lines {
		l.add(time.Duration(n)*time.Second/4, fmt.Sprint("192.0.2.", n%7), fmt.Sprint("GET /ark:12345/x", n%100), 302, firefox)
	}
	h := newHouse(t)
	h.now = noon.Add(24 * time.Hour)
	im := h.importer(&cutStore{Store: h.r, left: 1})
	if _, err := im.Import(t.Context(), "access.log", opener(l.String())); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	sum := func() (n uint64) {
		for name := range 100 {
			n += h.sum(recordCell(h.id(fmt.Sprint("ark:12345/x", name)), DateOf(noon).number()))[Regulars]
		}
		return n
	}
	before := sum()
	found, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String()))
	if err != nil || before == 0 || before >= uint64(found.Counted) || sum() != uint64(found.Counted) {
		t.Errorf("%d, then %d, of %+v, %v", before, sum(), found, err)
	}
}

// TestLogUnavailable ends an import when the registry can't tell a namespace.
func TestLogUnavailable(t *testing.T) {
	h := newHouse(t)
	var l logger
	l.add(0, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	im := h.importer(h.r)
	im.Space = func(context.Context, stele.ID) (stele.NamespaceKey, error) { return stele.NamespaceKey{}, errCut }
	if _, err := im.Import(t.Context(), "access.log", opener(l.String())); !errors.Is(err, errCut) || len(h.cells()) != 0 {
		t.Errorf("%v, %q", err, h.cells())
	}
}

// TestLogOptions gives wrong options first: they do not use the file up, and those that counted it are asked for again.
func TestLogOptions(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(2 * time.Hour)
	var l logger
	for n := range 10 {
		l.add(time.Duration(n)*time.Minute, "192.0.2.1", "GET /resolve/ark:12345/x1", 302, firefox)
	}
	give := func(base, lists string, store Store) error {
		im := h.importer(store)
		im.Base, im.Lists = base, lists
		_, err := im.Import(t.Context(), "access.log", opener(l.String()))
		return err
	}
	for _, c := range []struct {
		base, lists string
		commits     int
		code        string
		want        uint64
	}{
		{"/", "a", 9, "", 0},
		{"/resolve/", "a", 1, "cut", 10},
		{"/", "a", 9, "usage.log-other-options", 10},
		{"/resolve/", "b", 9, "usage.log-other-lists", 10},
		{"/resolve/", "a", 9, "", 10},
		{"/", "a", 9, "usage.log-other-options", 10},
		{"/resolve/", "b", 9, "", 10}, // the next months may have newer lists
	} {
		err := give(c.base, c.lists, &cutStore{Store: h.r, left: c.commits})
		code, _ := stele.CodeOf(err)
		if errors.Is(err, errCut) {
			code = "cut"
		}
		if have := h.sum(recordCell(h.id("ark:12345/x1"), DateOf(noon).number())); code != c.code || have[Regulars] != c.want {
			t.Errorf("%+v: %v, %v", c, err, have)
		}
	}
}

// TestLogChanged gives another file with the same name for the second reading.
func TestLogChanged(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(2 * time.Hour)
	var l logger
	for n := range 10 {
		l.add(time.Duration(n)*time.Minute, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	}
	text, opened := l.String(), 0
	_, err := h.importer(h.r).Import(t.Context(), "access.log", func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader(strings.ReplaceAll(text, "/x1", fmt.Sprint("/x", opened)))), nil
	})
	if code, _ := stele.CodeOf(err); code != "usage.log-changed" || len(h.cells()) != 0 {
		t.Errorf("%v, %q", err, h.cells())
	}
}

// TestLogReaders counts two files that differ in all that is known of the readers: nothing that is stored tells them apart.
func TestLogReaders(t *testing.T) {
	var stored [2]string
	for i := range stored {
		h := newHouse(t)
		h.now = noon.Add(time.Hour)
		var l logger
		l.add(0, []string{"192.0.2.1", "2001:db8::2"}[i], []string{"GET /ark:12345/x1?a", "GET /ark:12345/x1?bcd"}[i], 302, []string{firefox, safari}[i])
		text := strings.ReplaceAll(l.String(), "www.example.org/page", []string{"www.example.org/page", "www.example.org/another"}[i])
		if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(text)); err != nil {
			t.Fatal(err)
		}
		for c, err := range h.r.UsageList(asServer(t.Context()), logCells, "") {
			if err != nil {
				t.Fatal(err)
			}
			stored[i] += c.Name + " " + strings.Replace(string(c.Value), fmt.Sprintf(`"base":%d`, len(text)), "", 1)
		}
	}
	if stored[0] != stored[1] || stored[0] == "" {
		t.Errorf("%s\n%s", stored[0], stored[1])
	}
}

// TestLogSameLine counts files that begin with the same line, such as that of a health check, and differ after that.
func TestLogSameLine(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(5 * time.Hour)
	file := func(name string, lines int) string {
		var l logger
		l.add(0, "192.0.2.9", "GET /healthz", 200, curl)
		for n := range lines {
			l.add(time.Duration(n+1)*time.Minute, "192.0.2.1", "GET /ark:12345/"+name, 302, firefox)
		}
		return l.String()
	}
	for _, c := range []struct {
		name        string
		lines, want int
	}{{"x1", 5, 5}, {"x2", 200, 200}, {"x1", 150, 150}, {"x2", 210, 210}, {"x3", 120, 120}, {"x1", 150, 150}} {
		if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(file(c.name, c.lines))); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if have := h.sum(recordCell(h.id("ark:12345/"+c.name), DateOf(noon).number())); have[Regulars] != uint64(c.want) {
			t.Errorf("%+v: %v", c, have)
		}
	}
	if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(file("x2", 150))); stele.KindOf(err) != stele.Conflict {
		t.Errorf("a file that was cut off: %v", err)
	}
}

// TestLogFirst has lines whose time can't be right, and lines that do not count: they do not change since when there are figures.
func TestLogFirst(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(time.Hour)
	var l logger
	l.add(-noon.Sub(time.Unix(5, 0)), "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	l.add(-time.Hour, "192.0.2.1", "GET /robots.txt", 200, firefox)
	l.add(0, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	sum, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String()))
	begin, fault := h.r.UsageCell(asServer(t.Context()), beginCell)
	if err != nil || fault != nil || sum.Unreadable != 1 || string(begin) != noon.Format(time.RFC3339) {
		t.Errorf("%+v, %v, %s, %v", sum, err, begin, fault)
	}
}

// TestLogLong bounds the memory for lines that wait, and for targets.
func TestLogLong(t *testing.T) {
	var w logWindow
	for range 2000 {
		if err := w.add(logLine{at: 1}, maxLogLine, func(*logLine) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if w.size > windowBytes || len(w.lines)*maxLogLine != w.size {
		t.Errorf("%d lines with %d bytes wait", len(w.lines), w.size)
	}
	h := newHouse(t)
	r := h.importer(h.r).newRun(t.Context(), "", new(logFile))
	for _, length := range []int{100, maxCachedKey, maxTarget, maxLogLine} {
		if _, err := r.named("/ark:12345/x" + strings.Repeat("1", length)); err != nil {
			t.Error(err)
		}
	}
	if len(r.names) != 1 {
		t.Errorf("%d targets are remembered", len(r.names))
	}
}
