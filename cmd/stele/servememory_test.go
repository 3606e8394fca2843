package main

import "testing"

func TestCollectAt(t *testing.T) {
	for _, tt := range []struct {
		cache int64
		want  int
	}{
		{0, 300},
		{16_000_000, 242},
		{64 << 20, 150},
		{512 << 20, 100},
		{1 << 50, 100},
	} {
		if got := collectAt(tt.cache + weight); got != tt.want {
			t.Errorf("with %d bytes of records: %d, and not %d", tt.cache, got, tt.want)
		}
	}
}
