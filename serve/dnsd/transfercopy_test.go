package dnsd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestTransferFromACopy loses the store while a zone is sent: a transfer that may have
// something older than its serial says is never ended as if it were whole.
func TestTransferFromACopy(t *testing.T) {
	const zone = "z.example."
	both := new(replicated)
	fill := func(over func(*ZonesOptions), names ...string) *press {
		p := newPress(t, over)
		p.publish("urn:example", zone, ":", 2) // where case counts
		p.secondaries("urn:example", everybody)
		for _, name := range names {
			p.register("urn:example:q:"+name, "N2L https://example.org/old")
		}
		return p
	}
	alone := func(*ZonesOptions) {}
	p, behind, empty := fill(both.over, "a", "b", "B", "c"), fill(alone, "a", "b", "B", "c").store, fill(alone).store
	s := p.serve(Options{})
	first, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := ends(t, first)
	if _, err := p.registrar.Update(p.ctx, p.id("urn:example:q:b"), 0, func(r *stele.Record) error {
		r.Targets = []stele.Target{target("N2L https://example.org/new")}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	now, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		lost   string // with which call
		back   string
		copied stele.Store
		mute   bool
		serial uint32 // that the secondary has
	}{
		"whole, as it begins":       {lost: "namespaces", copied: behind},
		"whole":                     {lost: "scan", copied: behind},
		"whole, nobody tells":       {lost: "scan", copied: behind, mute: true},
		"whole, an empty copy":      {lost: "scan", copied: empty, mute: true},
		"whole, for a moment":       {lost: "scan", back: "last", copied: behind},
		"difference, as it begins":  {lost: "namespaces", copied: behind, serial: begin},
		"difference":                {lost: "record", copied: behind, serial: begin},
		"difference, nobody tells":  {lost: "record", copied: behind, mute: true, serial: begin},
		"difference, an empty copy": {lost: "scan", copied: empty, mute: true, serial: begin},
		"difference, for a moment":  {lost: "record", back: "last", copied: behind, serial: begin},
	} {
		t.Run(name, func(t *testing.T) {
			both.Lock()
			both.Mute = test.mute
			both.Unlock()
			gone := false
			both.on(func(call string) {
				switch {
				case call == test.lost && !gone:
					gone = true
					both.lose(test.copied)
				case call == test.back:
					both.Away = false
				}
			})
			list, _, err := take(s, zone, test.serial, nil)
			both.on(nil)
			if err == nil || !gone {
				t.Errorf("the store was lost: %v; the secondary has\n%v", gone, list)
			}
			list, _, err = take(s, zone, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(t, now), lines(t, list)); diff != "" || ends(t, list) != ends(t, now) {
				t.Errorf("when it asks again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeltaOfACopy asks for a delta while only a copy can be read: the chain may
// know more, so it is of no use, and the zone is sent whole.
func TestDeltaOfACopy(t *testing.T) {
	const zone = "z.example."
	both := new(replicated)
	p := newPress(t, both.over)
	p.publish("urn:paradisec", zone, ":", 1)
	p.secondaries("urn:paradisec", everybody)
	p.signed(zonesign.Transfer, zone)
	s := p.serve(Options{})
	whole, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.register("urn:paradisec:a", "N2L https://example.org/")
	for _, away := range []bool{false, true} {
		if away {
			both.Lock()
			both.lose(p.store)
			both.Unlock()
		}
		list, _, err := take(s, zone, ends(t, whole), nil)
		if err != nil {
			t.Fatal(err)
		}
		if sent := list[1].Header().Rrtype != dns.TypeSOA; sent != away {
			t.Errorf("away %v: sent whole %v", away, sent)
		}
	}
}
