package progress

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1_800_000_000, 0)
	done := int64(0)
	clock := func() time.Time { return now }
	g := New(&out, false, clock, "import", "lines", 1000, func() int64 { return done })
	for range 12 {
		now = now.Add(time.Second)
		done += 50
		g.Add(2000)
	}
	g.End()
	g.End()
	want := "import: 25%, 10,000 lines, 2,000 a second, 15s left\nimport: 50%, 20,000 lines, 2,000 a second, 10s left\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	g = New(&out, false, clock, "export", "records", 0, nil)
	now = now.Add(6 * time.Second)
	g.Add(3)
	if want := "export: 3 records, 0 a second\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A file that turns out to have another size, or is fetched anew, gets another bar.
func TestTransfer(t *testing.T) {
	var totals []int64
	now := func() time.Time { return time.Unix(0, 0) }
	tr := &Transfer{New: func(total int64, done func() int64) *Bar {
		totals = append(totals, total)
		return New(io.Discard, false, now, "get", "bytes", total, done)
	}}
	for _, m := range [][2]int64{{10, 100}, {20, 100}, {30, 200}, {5, 200}, {6, -1}} {
		tr.Move(m[0], m[1])
	}
	tr.End()
	tr.End()
	if !slices.Equal(totals, []int64{100, 200, 200, 0}) {
		t.Errorf("bars of %v bytes", totals)
	}
	tr = nil
	tr.Move(1, 2)
	tr.End()
}
