package publish_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestDelta makes changes of many kinds: with what is told to be gone and to be
// new, the zone as it was becomes the zone as it is, record by record and link by link.
func TestDelta(t *testing.T) {
	for _, test := range []struct {
		prefix string
		mode   zonesign.Mode
	}{{"urn:paradisec", zonesign.Unsigned}, {"urn:paradisec", zonesign.Transfer}, {"urn:example", zonesign.Transfer}} {
		t.Run(fmt.Sprint(test.prefix, test.mode), func(t *testing.T) {
			p := publishtest.New(t)
			p.Publish(test.prefix, "z.example.", ":", 2)
			if test.mode != zonesign.Unsigned {
				p.SignZones(test.mode, "z.example.")
			}
			chance := rand.New(rand.NewPCG(1, 2))
			for round := range 40 {
				from, err := p.Store.LastChange(p.Ctx)
				if err != nil {
					t.Fatal(err)
				}
				before := p.Lines("z.example.")
				for range chance.IntN(4) {
					p.AnyChange(chance, test.prefix)
				}
				checkDifference(p, round, from, before)
			}
		})
	}
}

// TestDeltaOverErased: of a version that was erased it is not known what it put into
// the zone, so that a secondary which has that gets the whole zone.
func TestDeltaOverErased(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "z.example.", ":", 2)
	id := p.Register("urn:paradisec:a:b", "N2L http://example.org/1").ID
	from, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Registrar.Redact(p.Ctx, id, 0, "A court ordered it."); err != nil {
		t.Fatal(err)
	}
	now, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.Register("urn:paradisec:a:c", "N2L http://example.org/2")
	one, err := p.Zones.Snapshot(p.Ctx, "z.example.")
	if err != nil {
		t.Fatal(err)
	}
	if removed, added, ok, err := one.Delta(p.Ctx, from); ok || err != nil {
		t.Errorf("from before the redaction: %v, %v, %v", removed, added, err)
	}
	if removed, added, ok, err := one.Delta(p.Ctx, now); !ok || err != nil {
		t.Errorf("from after the redaction: %v, %v, %v", removed, added, err)
	}
}

func checkDifference(p *publishtest.Registry, round int, from uint64, lines map[string]bool) {
	p.T.Helper()
	one, err := p.Zones.Snapshot(p.Ctx, "z.example.")
	if err != nil {
		p.T.Fatal(err)
	}
	removed, added, ok, err := one.Delta(p.Ctx, from)
	if err != nil || !ok {
		p.T.Fatalf("round %d: %v", round, err)
	}
	for _, rr := range removed {
		if !lines[rr.String()] {
			p.T.Errorf("round %d: this was not there: %v", round, rr)
		}
		delete(lines, rr.String())
	}
	for _, rr := range added {
		if lines[rr.String()] {
			p.T.Errorf("round %d: this was there: %v", round, rr)
		}
		lines[rr.String()] = true
	}
	now := p.Lines("z.example.")
	for line := range now {
		if !lines[line] {
			p.T.Errorf("round %d: missing: %s", round, line)
		}
		delete(lines, line)
	}
	if len(lines) > 0 {
		var left []string
		for line := range lines {
			left = append(left, line)
		}
		slices.Sort(left)
		p.T.Errorf("round %d: left over:\n%s", round, strings.Join(left, "\n"))
	}
	if p.T.Failed() {
		p.T.FailNow()
	}
}

// TestNoDelta checks that there is no delta if everything has changed.
func TestNoDelta(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "z.example.", ":", 2)
	p.SignZones(zonesign.Transfer, "z.example.")
	from, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.ChangeKeys("z.example.", func(r *zonekey.Ring) error { r.Signed = r.Signed.Add(1e9); return nil })
	one, err := p.Zones.Snapshot(p.Ctx, "z.example.")
	if err != nil {
		t.Fatal(err)
	}
	if removed, added, ok, err := one.Delta(p.Ctx, from); ok || err != nil {
		t.Errorf("after other signatures: %v, %v, %v", removed, added, err)
	}
	if removed, added, ok, err := one.Delta(p.Ctx, from+100); err != nil || ok {
		t.Errorf("since a change that is not there yet: %v, %v, %v", removed, added, err)
	}
}
