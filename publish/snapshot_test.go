package publish_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestDeltaDoesNotBlock registers names each time that the store is read for a
// delta: neither waits for the other, and the delta is complete.
func TestDeltaDoesNotBlock(t *testing.T) {
	const zone = "z.example."
	both := new(publishtest.Replicated)
	p := publishtest.New(t, both.Over)
	p.Publish("urn:example", zone, ":", 2)
	p.SetSecondaries("urn:example", publishtest.Local())
	p.SignZones(zonesign.Transfer, zone)
	serial, copied := p.Serial(zone), p.Lines(zone)
	links := p.Zone(zone).NSEC3()
	catchUp := func() {
		t.Helper()
		list, err := p.Zone(zone).IXFR(p.Ctx, serial)
		both.On(nil)
		if err != nil {
			t.Fatal(err)
		}
		serial = publishtest.Apply(t, copied, list, serial)
	}
	for round := range 5 {
		p.Register(fmt.Sprintf("urn:example:first:%d", round), "N2L https://example.org/")
		n, busy := 0, false
		both.On(func(string) {
			if busy || !p.Zones.AppliedIsFree() {
				return // only writers need that lock, and they wait for the store anyway
			}
			// If the chain were held while the store is read, the record below could never
			// be registered.
			if links.Watches() == 0 && n == 2 || n == 6 {
				return
			}
			n++
			busy = true
			both.Unlock() // register reads, too
			p.Register(fmt.Sprintf("urn:example:p%d:n%d", round, n), "N2L https://example.org/")
			both.Lock()
			busy = false
		})
		catchUp()
		if n < 3 {
			t.Errorf("round %d: nothing changed while the links were compared", round)
		}
	}
	catchUp()
	if diff := cmp.Diff(p.Lines(zone), copied); diff != "" || p.Serial(zone) != serial {
		t.Errorf("(-zone +copy):\n%s", diff)
	}
	if n := links.Watches(); n > 0 {
		t.Errorf("%d watches of the chain go on", n)
	}
}
