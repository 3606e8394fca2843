package main

import (
	"testing"
	"time"
)

// Work that a server leaves for later makes its rate smaller.
func TestSettledRate(t *testing.T) {
	a := answers{number: 10_000, rate: 1000} // in ten seconds
	for rest, want := range map[time.Duration]float64{0: 1000, 10 * time.Second: 500, 90 * time.Second: 100} {
		if got := settledRate(a, rest); got < want-0.001 || got > want+0.001 {
			t.Errorf("with %s more the rate is %f, want %f", rest, got, want)
		}
	}
}
