package dnsd

import (
	"crypto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestKeysAreTransferred checks that a new key, its end and a signature reach secondaries
// as deltas, in zones of all kinds, and that the copy equals the zone.
func TestKeysAreTransferred(t *testing.T) {
	const zone = "z.example."
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online, zonesign.Transfer} {
		p := publishtest.New(t)
		p.Publish("urn:paradisec", zone, ":", 2)
		p.SetSecondaries("urn:paradisec", publishtest.Local())
		if mode != zonesign.Unsigned {
			p.SignZones(mode, zone)
		}
		p.Register("urn:paradisec:a:b", "N2L https://example.org/")
		s := serve(p, Options{})
		whole, _, err := take(s, zone, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial, copied := publishtest.Ends(t, whole), publishtest.Lines(t, whole)
		var key crypto.Signer
		for _, test := range []struct {
			what   string
			change func()
			shows  string
		}{
			{"a key", func() { key, _ = p.AddKey("urn:paradisec", stele.KeyED25519) }, "v=N2S1"},
			{"a signature", func() { p.Sign("urn:paradisec:a:b", key) }, "N2S:ED25519"},
			{"its end", func() {
				p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Keys[0].Expires = publishtest.Time().Add(time.Hour) })
			}, "na=2026-03-01T13:00:00Z"},
			{"its revocation", func() {
				p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Keys[0].Revoked = publishtest.Time() })
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
			serial = publishtest.Apply(t, copied, list, serial)
			now, _, err := take(s, zone, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(publishtest.Lines(t, now), copied); diff != "" || publishtest.Ends(t, now) != serial {
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
