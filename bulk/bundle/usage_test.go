package bundle

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

// figures returns what a registry has counted, as a caller of Job.Usage has it.
func figures(list ...Usage) func(context.Context, stele.NamespaceKey, string) iter.Seq2[Usage, error] {
	return func(_ context.Context, prefix stele.NamespaceKey, until string) iter.Seq2[Usage, error] {
		return func(yield func(Usage, error) bool) {
			for _, u := range list {
				if u.Scheme == prefix.Scheme && strings.HasPrefix(u.Name, prefix.Prefix) && u.Month <= until && !yield(u, nil) {
					return
				}
			}
		}
	}
}

func used(name, month string, n uint64) Usage {
	scheme := "hdl"
	if strings.HasPrefix(name, "ark:") {
		scheme = "ark"
	}
	return Usage{scheme, name, month, map[string]uint64{"regular": n, "regularUnique": 1}}
}

func TestUsage(t *testing.T) {
	h := newHouse(t)
	h.fill(30)
	all := []Usage{
		used("ark:12345/nothing", "2021-03", 7), // no record has the name
		used("ark:12345/x1", "2021-02", 3),
		used("ark:12345/x1", "2021-04", 5),
		used("ark:12345/x1", "2021-05", 9), // the month is not over
		used("ark:99999/x2", "2021-04", 1),
		used(h.id("20.500.1/secret").String(), "2021-04", 2),
	}
	job := func(prefixes ...string) *Job {
		j := h.job(prefixes...)
		j.Usage, j.Temp = figures(all...), TempFile
		j.Now = time.Date(2021, 5, 2, 10, 0, 0, 0, time.UTC)
		return j
	}
	read := func(data []byte) (list []Usage, report *Report) {
		t.Helper()
		o := h.options()
		o.Visit.Usage = func(u *Usage) error { list = append(list, *u); return nil }
		report, err := Read(h.ctx, bytes.NewReader(data), o)
		h.must(err)
		return list, report
	}
	data := h.bundle(job())
	list, report := read(data)
	if diff := cmp.Diff([]Usage{all[1], all[2], all[4], all[5]}, list); diff != "" || report.Counts.Usage != 4 || report.Head.UsageUntil != "2021-04" {
		t.Errorf("until %s: %s", report.Head.UsageUntil, diff)
	}
	if list, _ := read(h.bundle(job("ark:99999"))); len(list) != 1 {
		t.Errorf("a part has %v", list)
	}
	later := job()
	later.Now = time.Date(2021, 5, 31, 23, 0, 0, 0, time.UTC)
	if !bytes.Equal(h.bundle(later), data) {
		t.Error("the bundle has other bytes within the same month")
	}
	// A day passes until a month is complete.
	later.Now = time.Date(2021, 6, 1, 23, 0, 0, 0, time.UTC)
	if !bytes.Equal(h.bundle(later), data) {
		t.Error("the bundle has a month whose figures may still grow")
	}
	later.Now = later.Now.Add(2 * time.Hour)
	if list, report := read(h.bundle(later)); len(list) != 5 || report.Head.UsageUntil != "2021-05" {
		t.Errorf("in the next month it has %v", list)
	}
	for _, packed := range []bool{false, true} {
		a, b := job(), job()
		a.Gzip, b.Gzip, b.held = packed, packed, 100
		if !bytes.Equal(h.bundle(a), h.bundle(b)) {
			t.Error("figures in a file give other bytes than those in memory")
		}
	}
	// A record that is newer than the bundle is not in it, so that its figures are not either.
	old := filepath.Join(t.TempDir(), "b.tar")
	j := job()
	j.fileLines = 10
	ctx, cancel := context.WithCancel(h.ctx)
	count := 0
	j.Progress = func(n int) {
		if count += n; count == 30 {
			cancel()
		}
	}
	if _, _, err := j.WriteFile(ctx, old, false); err == nil {
		t.Fatal("it was not interrupted")
	}
	h.put("ark:12345/nothing")
	j = job()
	j.fileLines = 10
	j.Now = time.Date(2021, 9, 1, 10, 0, 0, 0, time.UTC)
	done, resumed, err := j.WriteFile(h.ctx, old, false)
	h.must(err)
	if !resumed || done.Counts.Usage != 4 || done.Head.UsageUntil != "2021-04" {
		t.Errorf("resumed %v, with %+v until %s", resumed, done.Counts, done.Head.UsageUntil)
	}
}

// Lines that a registry would not write are refused, also if a registry has signed them.
func TestUsageLines(t *testing.T) {
	r := &reader{ctx: t.Context(), o: Options{Schemes: newSchemes(t)}, report: &Report{Head: Head{Prefixes: []Prefix{{"ark", "ark:12345"}}, UsageUntil: "2021-04"}}}
	for _, test := range []struct {
		line, code string
	}{
		{`{"scheme":"ark","name":"ark:12345/x","month":"2021-04","counts":{"regular":1}}`, ""},
		{`{"scheme":"ark","name":"ark:12345/x","month":"2021-04","counts":{"regular":1}}`, "bundle.order-wrong"}, // again
		{`{"scheme":"ark","name":"ark:12345/y","month":"2021-05","counts":{"regular":1}}`, "bundle.usage-month"},
		{`{"scheme":"ark","name":"ark:12345/y","month":"2021-4","counts":{"regular":1}}`, "bundle.usage-month"},
		{`{"scheme":"ark","name":"ark:54321/y","month":"2021-04","counts":{"regular":1}}`, "bundle.usage-outside"},
		{`{"scheme":"none","name":"ark:12345/y","month":"2021-04","counts":{"regular":1}}`, "bundle.usage-outside"},
		{`{"scheme":"ark","name":"ark:12345/y","month":"2021-04","counts":{"address 192.0.2.1":1}}`, "bundle.usage-count"},
		{`{"scheme":"ark","name":"ark:12345/y","month":"2021-04","counts":{"regular":0}}`, "bundle.usage-count"},
		{`{"scheme":"ark","name":"ark:12345/y","month":"2021-04","counts":{}}`, "bundle.order-wrong"},
		{`{"scheme":"ark","name":"ark:12345/y", "month":"2021-04","counts":{"robots":1}}`, "bundle.other-form"},
	} {
		err := r.readUsage(strings.NewReader(test.line + "\n"))
		code := ""
		if err != nil {
			code, _ = stele.CodeOf(err.(*fault).err)
		}
		if code != test.code {
			t.Errorf("%s: %v", test.line, err)
		}
	}
	r.usage = Usage{}
	lines := ""
	for i := range 3 {
		lines += fmt.Sprintf(`{"scheme":"ark","name":"ark:12345/z","month":"2021-0%d","counts":{"robots":1}}`+"\n", i+1)
	}
	if err := r.readUsage(strings.NewReader(lines)); err != nil {
		t.Error(err)
	}
}
