package server

import (
	"runtime"
	"testing"
	"time"
)

// TestRestIsDue checks when memory is returned.
func TestRestIsDue(t *testing.T) {
	before := rest{allocated: 100 << 20}
	for _, tt := range []struct {
		now  rest
		want bool
	}{
		{rest{allocated: 101 << 20, unused: 64 << 20}, true},
		{rest{allocated: 101 << 20, unused: 16 << 20}, false},  // too little
		{rest{allocated: 200 << 20, unused: 150 << 20}, false}, // too busy
		{rest{allocated: 101 << 20, unused: 64 << 20, live: 256 << 20}, true},
		{rest{allocated: 101 << 20, unused: 63 << 20, live: 256 << 20}, false}, // too little for the work
		{rest{allocated: 101 << 20, unused: 900 << 20, live: 4 << 30}, false},
		{rest{allocated: 101 << 20, unused: 1 << 30, live: 4 << 30}, true},
	} {
		if got := tt.now.isQuiet(before) && tt.now.isDue(); got != tt.want {
			t.Errorf("%+v after %+v: %t", tt.now, before, got)
		}
	}
}

// releaseNothing is for servers that keep nothing.
func releaseNothing() int64 { return 0 }

// TestReturnAtRest has garbage returned without a collection by Go itself.
func TestReturnAtRest(t *testing.T) {
	defer waitToCollect(0, releaseNothing)() // Go collects nothing of what follows
	runtime.GC()                             // for what is live
	left := make([]byte, 2*restUnused)
	for i := range left {
		left[i] = 1
	}
	runtime.KeepAlive(left)
	if got := readRest(); got.unused < restUnused || got.live == 0 {
		t.Fatalf("%+v before", got)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { returnAtRest(time.Millisecond, releaseNothing, done); close(ended) }()
	for readRest().unused >= restUnused {
		time.Sleep(time.Millisecond) // the test ends by its time limit if nothing is returned
	}
	close(done)
	<-ended
}

// TestReleaseAtRest has others release what they keep when the server is at rest.
func TestReleaseAtRest(t *testing.T) {
	asked, done, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	release := func() int64 {
		select {
		case asked <- struct{}{}:
		case <-done:
		}
		return 1
	}
	go func() { returnAtRest(time.Millisecond, release, done); close(ended) }()
	<-asked // the test ends by its time limit if nothing is released
	<-asked // and again at the next time
	close(done)
	<-ended
}
