package publish_test

import (
	"testing"
	"time"

	"github.com/stele-id/stele/publish/publishtest"
)

// TestZoneAddedDuringReading checks that a zone that is added when the reader is about to
// end is answered for when its names are read: in a small registry a client never learns
// that the server reads.
func TestZoneAddedDuringReading(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("https://purl.example.org/obo/", "outer.example.", "/", 1)
	p.Lookup("nothing.outer.example.")
	for !p.Zones.HoldReader() { // from here on the reader stands between its last record and its end
		time.Sleep(time.Millisecond)
	}
	p.Publish("https://purl.example.org/obo/HP_", "inner.example.", "/", 1)
	answer := make(chan error)
	go func() {
		z, err := p.Zones.Find(p.Ctx, "nothing.inner.example.")
		if err == nil {
			_, err = z.Lookup(p.Ctx, "nothing.inner.example.")
		}
		answer <- err
	}()
	for waits := false; !waits; {
		select {
		case err := <-answer:
			t.Fatalf("the server answered before it had read the names: %v", err)
		case <-time.After(time.Millisecond):
			waits = p.Zones.AwaitsReader()
		}
	}
	p.Zones.ReleaseReader()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
