package dnsd

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestDeltaDoesNotBlock registers names each time that the store is read for a
// delta: neither waits for the other, and the delta is complete.
func TestDeltaDoesNotBlock(t *testing.T) {
	const zone = "z.example."
	both := new(replicated)
	p := newPress(t, both.over)
	p.publish("urn:example", zone, ":", 2)
	p.secondaries("urn:example", everybody)
	p.signed(zonesign.Transfer, zone)
	serial, copied := p.serialOf(zone), p.zoneLines(zone)
	links := p.zone(zone).NSEC3()
	catchUp := func() {
		t.Helper()
		list, err := p.zone(zone).IXFR(p.ctx, serial)
		both.on(nil)
		if err != nil {
			t.Fatal(err)
		}
		serial = apply(t, copied, list, serial)
	}
	for round := range 5 {
		p.register(fmt.Sprintf("urn:example:first:%d", round), "N2L https://example.org/")
		n, busy := 0, false
		both.on(func(string) {
			if busy || !p.zones.AppliedIsFree() {
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
			p.register(fmt.Sprintf("urn:example:p%d:n%d", round, n), "N2L https://example.org/")
			both.Lock()
			busy = false
		})
		catchUp()
		if n < 3 {
			t.Errorf("round %d: nothing changed while the links were compared", round)
		}
	}
	catchUp()
	if diff := cmp.Diff(p.zoneLines(zone), copied); diff != "" || p.serialOf(zone) != serial {
		t.Errorf("(-zone +copy):\n%s", diff)
	}
	if n := links.Watches(); n > 0 {
		t.Errorf("%d watches of the chain go on", n)
	}
}
