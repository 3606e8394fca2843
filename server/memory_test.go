package server

import (
	"runtime/debug"
	"testing"
)

func TestCollectAt(t *testing.T) {
	for _, tt := range []struct {
		cache int64
		want  int
	}{
		{0, 300},
		{16_000_000, 242},
		{64 << 20, 150},
		{512 << 20, 50},
		{1 << 50, 50},
	} {
		if got := collectAt(tt.cache + weight); got != tt.want {
			t.Errorf("with %d bytes of records: %d, and not %d", tt.cache, got, tt.want)
		}
	}
}

// TestMemoryLimit has the collector obey a limit that lies above what a share that was
// set in time lets the heap grow to, and that is gone with the server.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	done := waitToCollect(0, releaseNothing)
	limit := debug.SetMemoryLimit(-1)
	if most := int64(weight + garbage); limit <= most || limit > 4*most {
		t.Errorf("the limit is %d; the heap may grow to %d", limit, most)
	}
	done()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("afterwards the limit is %d, and it was %d", got, before)
	}
	t.Setenv("GOMEMLIMIT", "2GiB")
	defer waitToCollect(0, releaseNothing)()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("a limit of the administrator's is replaced by %d", got)
	}
}
