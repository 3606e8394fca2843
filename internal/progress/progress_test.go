package progress

import (
	"bytes"
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
