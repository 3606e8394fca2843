package server

import (
	"runtime"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registry"
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

// keeping is a store that keeps so many bytes in memory.
type keeping struct {
	stele.Store
	bytes int64
}

func (k *keeping) Release() int64 { return k.bytes }

// TestReleaseOfStore has the store of the present registry release memory, if it is one that can.
func TestReleaseOfStore(t *testing.T) {
	s := new(server)
	if got := s.release(); got != 0 {
		t.Errorf("a server without a registry released %d", got)
	}
	for _, tt := range []struct {
		store stele.Store
		want  int64
	}{{&keeping{bytes: 7}, 7}, {keeping{}.Store, 0}} {
		s.generation.Store(&generation{registry: &registry.Registry{Store: tt.store}})
		if got := s.release(); got != tt.want {
			t.Errorf("%T: %d bytes were released, want %d", tt.store, got, tt.want)
		}
	}
}
