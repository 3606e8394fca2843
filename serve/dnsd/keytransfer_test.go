package dnsd

import (
	"crypto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestKeysAreTransferred checks that a new key, its end and a signature reach secondaries
// as deltas, in zones of all kinds, and that the copy equals the zone.
func TestKeysAreTransferred(t *testing.T) {
	const zone = "z.example."
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online, zonesign.Transfer} {
		p := newPress(t)
		p.publish("urn:paradisec", zone, ":", 2)
		p.secondaries("urn:paradisec", everybody)
		if mode != zonesign.Unsigned {
			p.signed(mode, zone)
		}
		p.register("urn:paradisec:a:b", "N2L https://example.org/")
		s := p.serve(Options{})
		whole, _, err := take(s, zone, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial, copied := ends(t, whole), lines(t, whole)
		var key crypto.Signer
		for _, test := range []struct {
			what   string
			change func()
			shows  string
		}{
			{"a key", func() { key, _ = p.signer("urn:paradisec", stele.KeyED25519) }, "v=N2S1"},
			{"a signature", func() { p.sign("urn:paradisec:a:b", key) }, "N2S:ED25519"},
			{"its end", func() {
				p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Keys[0].Expires = pressTime.Add(time.Hour) })
			}, "na=2026-03-01T13:00:00Z"},
			{"its revocation", func() {
				p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Keys[0].Revoked = pressTime })
			}, "r=2026-03-01T12:00:00Z"},
		} {
			test.change()
			list, _, err := take(s, zone, serial, nil)
			if err != nil {
				t.Fatalf("%v, %s: %v", mode, test.what, err)
			}
			if len(list) < 3 || list[1].Header().Rrtype != dns.TypeSOA {
				t.Fatalf("%v, %s: no difference, but %v", mode, test.what, list)
			}
			serial = apply(t, copied, list, serial)
			now, _, err := take(s, zone, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(t, now), copied); diff != "" || ends(t, now) != serial {
				t.Fatalf("%v, %s (-zone +copy):\n%s", mode, test.what, diff)
			}
			shown, covered := false, mode != zonesign.Transfer
			for line := range copied {
				shown = shown || strings.Contains(line, test.shows)
				covered = covered || strings.HasPrefix(line, "_n2s."+zone) && strings.Contains(line, "RRSIG\tTXT")
			}
			if !shown || !covered {
				t.Errorf("%v, %s: shown is %v, signed is %v", mode, test.what, shown, covered)
			}
		}
	}
}
