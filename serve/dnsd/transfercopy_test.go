package dnsd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestTransferFromACopy loses the store while a zone is sent: a transfer that may have
// something older than its serial says is never ended as if it were whole.
func TestTransferFromACopy(t *testing.T) {
	const zone = "z.example."
	both := new(publishtest.Replicated)
	fill := func(over func(*publish.ZonesOptions), names ...string) *publishtest.Registry {
		p := publishtest.New(t, over)
		p.Publish("urn:example", zone, ":", 2) // where case counts
		p.SetSecondaries("urn:example", publishtest.Local())
		for _, name := range names {
			p.Register("urn:example:q:"+name, "N2L https://example.org/old")
		}
		return p
	}
	alone := func(*publish.ZonesOptions) {}
	p, behind, empty := fill(both.Over, "a", "b", "B", "c"), fill(alone, "a", "b", "B", "c").Store, fill(alone).Store
	s := serve(p, Options{})
	first, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := publishtest.Ends(t, first)
	if _, err := p.Registrar.Update(p.Ctx, p.ID("urn:example:q:b"), 0, func(r *stele.Record) error {
		r.Targets = []stele.Target{publishtest.Target("N2L https://example.org/new")}
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
			both.On(func(call string) {
				switch {
				case call == test.lost && !gone:
					gone = true
					both.Lose(test.copied)
				case call == test.back:
					both.Away = false
				}
			})
			list, _, err := take(s, zone, test.serial, nil)
			both.On(nil)
			if err == nil || !gone {
				t.Errorf("the store was lost: %v; the secondary has\n%v", gone, list)
			}
			list, _, err = take(s, zone, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(publishtest.Lines(t, now), publishtest.Lines(t, list)); diff != "" || publishtest.Ends(t, list) != publishtest.Ends(t, now) {
				t.Errorf("when it asks again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeltaOfACopy asks for a delta while only a copy can be read: the chain may
// know more, so it is of no use, and the zone is sent whole.
func TestDeltaOfACopy(t *testing.T) {
	const zone = "z.example."
	both := new(publishtest.Replicated)
	p := publishtest.New(t, both.Over)
	p.Publish("urn:paradisec", zone, ":", 1)
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	p.SignZones(zonesign.Transfer, zone)
	s := serve(p, Options{})
	whole, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Register("urn:paradisec:a", "N2L https://example.org/")
	for _, away := range []bool{false, true} {
		if away {
			both.Lock()
			both.Lose(p.Store)
			both.Unlock()
		}
		list, _, err := take(s, zone, publishtest.Ends(t, whole), nil)
		if err != nil {
			t.Fatal(err)
		}
		if sent := list[1].Header().Rrtype != dns.TypeSOA; sent != away {
			t.Errorf("away %v: sent whole %v", away, sent)
		}
	}
}
