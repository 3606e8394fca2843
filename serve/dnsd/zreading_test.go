package dnsd

import (
	"testing"
	"time"
)

// TestZoneAddedDuringReading checks that a zone that is added when the reader is about to
// end is answered for when its names are read: in a small registry a client never learns
// that the server reads.
func TestZoneAddedDuringReading(t *testing.T) {
	p := newPress(t)
	p.publish("https://purl.example.org/obo/", "outer.example.", "/", 1)
	p.lookup("nothing.outer.example.")
	for !p.zones.HoldReader() { // from here on the reader stands between its last record and its end
		time.Sleep(time.Millisecond)
	}
	p.publish("https://purl.example.org/obo/HP_", "inner.example.", "/", 1)
	answer := make(chan error)
	go func() {
		z, err := p.zones.Find(p.ctx, "nothing.inner.example.")
		if err == nil {
			_, err = z.Lookup(p.ctx, "nothing.inner.example.")
		}
		answer <- err
	}()
	for waits := false; !waits; {
		select {
		case err := <-answer:
			t.Fatalf("the server answered before it had read the names: %v", err)
		case <-time.After(time.Millisecond):
			waits = p.zones.AwaitsReader()
		}
	}
	p.zones.ReleaseReader()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
