package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	}{{"x1", 5, 5}, {"x2", 200, 200}, {"x1", 150, 150}, {"x2", 210, 210}, {"x3", 120, 120}, {"x1", 150, 150}, {"x4", 2, 2}, {"x5", 1, 1}, {"x4", 30, 30}} {
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
	if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(file("x2", 50))); stele.KindOf(err) != stele.Conflict {
		t.Errorf("a file that was cut off within its first lines: %v", err)
	}
}

// TestLogOverlapping has two processes begin with the same short file at the same time, between which it grew: only one of them counts it.
func TestLogOverlapping(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(5 * time.Hour)
	file := func(lines int) string {
		var l logger
		for n := range lines {
			l.add(time.Duration(n)*time.Minute, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
		}
		return l.String()
	}
	counted := func() uint64 { return h.sum(recordCell(h.id("ark:12345/x1"), DateOf(noon).number()))[Regulars] }
	opened := 0
	_, err := h.importer(h.r).Import(t.Context(), "access.log", func() (io.ReadCloser, error) {
		if opened++; opened == 2 { // the first process has looked at the file, and counted nothing
			if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(file(8))); err != nil {
				t.Error(err)
			}
		}
		return io.NopCloser(strings.NewReader(file(5))), nil
	})
	if code, _ := stele.CodeOf(err); code != "usage.log-counted-elsewhere" || counted() != 8 {
		t.Errorf("%v, %d are counted", err, counted())
	}
	if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(file(9))); err != nil || counted() != 9 {
		t.Errorf("%v, %d are counted", err, counted())
	}
}

// TestLogNewLists finishes a file with other lists than those of its first part.
func TestLogNewLists(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(50 * time.Hour)
	var l logger
	for n := range 48 {
		l.add(time.Duration(n)*time.Hour, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	}
	for i, c := range []struct {
		lists string
		agree bool
		left  int
		code  string
	}{{"a", false, 1, "cut"}, {"b", false, 9, "usage.log-other-lists"}, {"b", true, 1, "cut"}, {"a", false, 9, "usage.log-other-lists"}, {"b", false, 9, ""}} {
		im := h.importer(&cutStore{Store: h.r, left: c.left})
		im.Lists, im.NewLists = c.lists, c.agree
		_, err := im.Import(t.Context(), "access.log", opener(l.String()))
		code, _ := stele.CodeOf(err)
		if errors.Is(err, errCut) {
			code = "cut"
		}
		if code != c.code {
			t.Errorf("%d: %v", i, err)
		}
	}
	if have := h.sum(recordCell(h.id("ark:12345/x1"), DateOf(noon).number())); have[Regulars] != 48 {
		t.Errorf("%v", have)
	}
}

// TestLogLinked registers names while a part of a file is half written: the figures of a namespace are those of its names, after each commit.
func TestLogLinked(t *testing.T) {
	const names = 2*cellsAtOnce + 500
	var l logger
	for n := range names {
		l.add(time.Duration(n)*time.Second, "192.0.2.1", fmt.Sprintf("GET /ark:12345/x%05d", n), 302, firefox)
	}
	for commits := 1; commits <= 3; commits++ {
		h := newHouse(t)
		h.now = noon.Add(5 * time.Hour)
		check := func(when string) {
			t.Helper()
			var sum uint64
			for n := range names {
				sum += h.sum(recordCell(h.id(fmt.Sprintf("ark:12345/x%05d", n)), DateOf(noon).number()))[Regulars]
			}
			h.now = noon
			if have := h.space()[Regulars]; have != sum || sum == 0 {
				t.Errorf("%d commits, %s: the names have %d, and the namespace %d", commits, when, sum, have)
			}
			h.now = noon.Add(5 * time.Hour)
		}
		im := h.importer(&cutStore{Store: h.r, left: commits})
		all := im.Find
		im.Find = func(ctx context.Context, id stele.ID) (stele.ID, bool, error) { // every other name is registered later
			record, _, err := all(ctx, id)
			text := id.String()
			return record, text[len(text)-1]%2 == 0, err
		}
		if _, err := im.Import(t.Context(), "access.log", opener(l.String())); err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		check("cut off")
		if _, err := h.importer(h.r).Import(t.Context(), "access.log", opener(l.String())); err != nil {
			t.Fatal(err)
		}
		check("finished")
	}
}

// slowStore lets another server change cells before each of the first commits.
type slowStore struct {
	Store
	h    *house
	left int
}

func (s *slowStore) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	if s.left > 0 {
		s.left--
		for _, c := range changes {
			if !strings.HasPrefix(c.Name, recordCells) {
				continue
			}
			next := addition{cell: c.Name, adder: &monthCell{first: dayDelta{1, delta{1}}}}
			list, _, err := newKeeper(s.h.r, slog.New(slog.DiscardHandler)).changes(ctx, []addition{next})
			if err != nil {
				return err
			}
			if err := s.h.r.KeepUsage(ctx, list...); err != nil {
				return err
			}
			break
		}
	}
	return s.Store.KeepUsage(ctx, changes...)
}

// TestLogLeftOut counts a figure that can't be added once, however often the commit is tried.
func TestLogLeftOut(t *testing.T) {
	h := newHouse(t)
	h.now = noon.Add(time.Hour)
	var l logger
	l.add(0, "192.0.2.1", "GET /ark:12345/x1", 302, firefox)
	l.add(time.Minute, "192.0.2.1", "GET /ark:12345/x2", 302, firefox)
	if err := h.r.KeepUsage(asServer(t.Context()), stele.CellChange{Name: recordCell(h.id("ark:12345/x2"), DateOf(noon).number()), After: []byte{0xff}}); err != nil {
		t.Fatal(err)
	}
	sum, err := h.importer(&slowStore{Store: h.r, h: h, left: 4}).Import(t.Context(), "access.log", opener(l.String()))
	if err != nil || sum.LeftOut != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if have := h.sum(recordCell(h.id("ark:12345/x1"), DateOf(noon).number())); have[Regulars] != 5 {
		t.Errorf("%v", have)
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
