package dnsd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"

	"github.com/stele-id/stele"
)

// zoneLines returns all records of a zone, signed if it is for others, as a set of
// lines, without the SOA record.
func (p *press) zoneLines(zone string) map[string]bool {
	p.t.Helper()
	one, err := p.zones.zoneNamed(p.ctx, zone)
	if err != nil {
		p.t.Fatal(err)
	}
	lines := make(map[string]bool)
	add := func(set []dns.RR) error {
		for _, rr := range set {
			if sig, ok := rr.(*dns.RRSIG); rr.Header().Rrtype == dns.TypeSOA || ok && sig.TypeCovered == dns.TypeSOA {
				continue
			}
			lines[rr.String()] = true
		}
		return nil
	}
	if one.signer != nil {
		err = one.signedSets(p.ctx, nil, add)
	} else {
		err = one.eachOwner(p.ctx, nil, func(s *OwnerRecords) error { return add(s.Records) })
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return lines
}

// TestDelta makes changes of many kinds: with what is told to be gone and to be
// new, the zone as it was becomes the zone as it is, record by record and link by link.
func TestDelta(t *testing.T) {
	for _, test := range []struct {
		prefix string
		mode   zonesign.Mode
	}{{"urn:paradisec", zonesign.Unsigned}, {"urn:paradisec", zonesign.Transfer}, {"urn:example", zonesign.Transfer}} {
		t.Run(fmt.Sprint(test.prefix, test.mode), func(t *testing.T) {
			p := newPress(t)
			p.publish(test.prefix, "z.example.", ":", 2)
			if test.mode != zonesign.Unsigned {
				p.signed(test.mode, "z.example.")
			}
			chance := rand.New(rand.NewPCG(1, 2))
			for round := range 40 {
				from, err := p.store.LastChange(p.ctx)
				if err != nil {
					t.Fatal(err)
				}
				before := p.zoneLines("z.example.")
				for range chance.IntN(4) {
					p.anyChange(chance, test.prefix)
				}
				p.checkDifference(round, from, before)
			}
		})
	}
}

// anyChange adds a record, or changes, hides or shows one.
func (p *press) anyChange(chance *rand.Rand, prefix string) {
	p.t.Helper()
	part := []string{"a", "B", "c", "x.y", "x.z"}
	text := fmt.Sprintf("%s:%s:%s", prefix, strings.ReplaceAll(part[chance.IntN(5)], ".", ""), part[chance.IntN(5)])
	if chance.IntN(2) == 0 {
		text = strings.ToUpper(text)
	}
	id := p.id(text)
	if _, err := p.registrar.Get(p.ctx, id); err != nil {
		r := &stele.Record{ID: id, Targets: []stele.Target{target("N2L http://example.org/" + fmt.Sprint(chance.IntN(9)))}}
		if alias := p.id(text + "alias"); chance.IntN(3) == 0 {
			r.Aliases = []stele.ID{alias}
		}
		if _, err := p.registrar.Register(p.ctx, r); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	_, err := p.registrar.Update(p.ctx, id, 0, func(r *stele.Record) error {
		switch chance.IntN(4) {
		case 0:
			r.Readers = []string{"user:ann"}
		case 1:
			r.Readers = nil
		case 2:
			r.Persistence.Level = stele.Permanent
		default:
			r.Targets = []stele.Target{target("N2L http://example.org/" + fmt.Sprint(chance.IntN(9)))}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestDeltaOverErased: of a version that was erased it is not known what it put into
// the zone, so that a secondary which has that gets the whole zone.
func TestDeltaOverErased(t *testing.T) {
	p := newPress(t)
	p.publish("urn:paradisec", "z.example.", ":", 2)
	id := p.register("urn:paradisec:a:b", "N2L http://example.org/1").ID
	from, err := p.store.LastChange(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.registrar.Redact(p.ctx, id, 0, "A court ordered it."); err != nil {
		t.Fatal(err)
	}
	now, err := p.store.LastChange(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.register("urn:paradisec:a:c", "N2L http://example.org/2")
	one, err := p.zones.Snapshot(p.ctx, "z.example.")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := one.delta(p.ctx, from); d != nil || err != nil {
		t.Errorf("from before the redaction: %v, %v", d, err)
	}
	if d, err := one.delta(p.ctx, now); d == nil || err != nil {
		t.Errorf("from after the redaction: %v, %v", d, err)
	}
}

func (p *press) checkDifference(round int, from uint64, lines map[string]bool) {
	p.t.Helper()
	one, err := p.zones.Snapshot(p.ctx, "z.example.")
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := one.delta(p.ctx, from)
	if err != nil || d == nil {
		p.t.Fatalf("round %d: %v, %v", round, d, err)
	}
	for _, set := range d.removed {
		for _, rr := range set.records {
			if !lines[rr.String()] {
				p.t.Errorf("round %d: this was not there: %v", round, rr)
			}
			delete(lines, rr.String())
		}
	}
	for _, set := range d.added {
		for _, rr := range set.records {
			if lines[rr.String()] {
				p.t.Errorf("round %d: this was there: %v", round, rr)
			}
			lines[rr.String()] = true
		}
	}
	now := p.zoneLines("z.example.")
	for line := range now {
		if !lines[line] {
			p.t.Errorf("round %d: missing: %s", round, line)
		}
		delete(lines, line)
	}
	if len(lines) > 0 {
		var left []string
		for line := range lines {
			left = append(left, line)
		}
		slices.Sort(left)
		p.t.Errorf("round %d: left over:\n%s", round, strings.Join(left, "\n"))
	}
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// TestNoDelta checks that there is no delta if everything has changed.
func TestNoDelta(t *testing.T) {
	p := newPress(t)
	p.publish("urn:paradisec", "z.example.", ":", 2)
	p.signed(zonesign.Transfer, "z.example.")
	from, err := p.store.LastChange(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.keys("z.example.", func(r *zonekey.Ring) error { r.Signed = r.Signed.Add(1e9); return nil })
	one, err := p.zones.Snapshot(p.ctx, "z.example.")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := one.delta(p.ctx, from); d != nil || err != nil {
		t.Errorf("after other signatures: %v, %v", d, err)
	}
	if d, err := one.delta(p.ctx, from+100); err != nil || d != nil {
		t.Errorf("since a change that is not there yet: %v, %v", d, err)
	}
}
