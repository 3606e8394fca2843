package dnsd

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
	"github.com/stele-id/stele/secret"
)

// signed has zones of the registry signed, with keys of their own.
func (p *press) signed(mode zonesign.Mode, zones ...string) {
	p.t.Helper()
	p.zones.now = time.Now // validators of others have their own clock
	p.zones.signing = func(ns *stele.Namespace) zonesign.Mode {
		for _, z := range zones {
			if ns.Publication.Zone == z {
				return mode
			}
		}
		return zonesign.Unsigned
	}
	for _, z := range zones {
		p.keys(z, func(r *zonekey.Ring) error { return r.Begin(zonekey.ECDSA, false, time.Now(), rand.Reader) })
	}
}

// keys changes the keys of a zone.
func (p *press) keys(zone string, change func(*zonekey.Ring) error) {
	p.t.Helper()
	one, err := p.zones.zoneNamed(p.ctx, zone)
	if err != nil {
		p.t.Fatal(err)
	}
	err = p.registrar.SetZoneKeys(p.ctx, one.ns.Key(), func(cells []stele.Cell) ([]stele.CellChange, error) {
		r, err := zonekey.ReadRing(zone, cells)
		if err != nil {
			return nil, err
		}
		if err := change(r); err != nil {
			return nil, err
		}
		return r.Changes(func(place string, v *secret.Value) error { return p.registrar.SealSecret(p.ctx, place, v) })
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// ring returns the keys of a zone.
func (p *press) ring(zone string) *zonekey.Ring {
	p.t.Helper()
	r, err := p.zones.readKeys(p.ctx, zone)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// exportSigned writes a signed zone to a file, and returns its path and content.
func (p *press) exportSigned(zone string) (string, string) {
	p.t.Helper()
	var b bytes.Buffer
	if err := p.zones.ExportSigned(p.ctx, &b, zone, nil); err != nil {
		p.t.Fatal(err)
	}
	path := filepath.Join(p.t.TempDir(), "zone")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		p.t.Fatal(err)
	}
	return path, b.String()
}

// verifyZone has the checkers of BIND, Knot and ldns look at a signed zone. how says how
// its keys are used.
func verifyZone(t *testing.T, zone, path string, how ...string) {
	t.Helper()
	if len(how) == 0 {
		how = []string{"-z"} // one key signs all
	}
	for _, args := range [][]string{
		append(append([]string{"dnssec-verify"}, how...), "-o", zone, path),
		{"ldns-verify-zone", path},
		{"named-checkzone", "-i", "local", zone, path},
		{"kzonecheck", "-o", zone, path},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// TestExportSigned has a signed zone verified by others, with names of many kinds, and
// again after changes.
func TestExportSigned(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	p.publish("urn:inner", "inner.paradisec.example.", ":", 1)
	for i := range 60 {
		p.register(fmt.Sprintf("urn:paradisec:c%d:%d:n%d.x", i%3, i%7, i), "N2L https://example.org/"+strings.Repeat("x", i*20))
	}
	const zone = "paradisec.example."
	p.signed(zonesign.Transfer, zone)
	path, text := p.exportSigned(zone)
	verifyZone(t, zone, path)
	if _, again := p.exportSigned(zone); again != text {
		t.Error("the same registry gives another file")
	}
	p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Records = ownRecords(zone) })
	path, text = p.exportSigned(zone)
	verifyZone(t, zone, path)
	if !strings.Contains(text, "\nalias.c1 60 IN CNAME www.paradisec.example.\n") {
		t.Errorf("no alias in\n%s", text)
	}
	r := p.register("urn:paradisec:new:1:a", "N2L https://example.org/new")
	path, _ = p.exportSigned(zone)
	verifyZone(t, zone, path)
	if _, err := p.registrar.Update(p.ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil }); err != nil {
		t.Fatal(err)
	}
	path, hidden := p.exportSigned(zone)
	verifyZone(t, zone, path)
	if strings.Contains(hidden, "a.1.new") {
		t.Error("what is not public is in the zone")
	}
	if links := p.chainOf(zone); links != strings.Count(hidden, " NSEC3 1 ") {
		t.Errorf("%d links", links)
	}

	// An inner zone that is signed has its digest in the outer one.
	p.signed(zonesign.Transfer, zone, "inner.paradisec.example.")
	path, text = p.exportSigned(zone)
	verifyZone(t, zone, path)
	if !strings.Contains(text, "\ninner 3600 IN DS ") {
		t.Errorf("no DS record in\n%s", text)
	}
}

// TestExportSplit exports zones with two kinds of keys, with the other algorithm, and in
// the middle of a roll.
func TestExportSplit(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	const zone = "paradisec.example."
	p.signed(zonesign.Transfer)
	p.zones.signing = func(*stele.Namespace) zonesign.Mode { return zonesign.Transfer }
	p.keys(zone, func(r *zonekey.Ring) error { return r.Begin(zonekey.Ed25519, true, time.Now(), rand.Reader) })
	for _, role := range []zonekey.Role{zonekey.ZSK, zonekey.KSK} {
		path, _ := p.exportSigned(zone)
		verifyZone(t, zone, path, "-x")
		p.keys(zone, func(r *zonekey.Ring) error {
			_, err := r.Roll(role, time.Now(), rand.Reader)
			return err
		})
		for range 2 {
			path, _ = p.exportSigned(zone)
			verifyZone(t, zone, path, "-x")
			p.keys(zone, func(r *zonekey.Ring) error {
				_, err := r.Next(role, zonekey.Times{}, time.Now(), true, true)
				return err
			})
		}
	}
	if keys := p.ring(zone).Current(); len(keys) != 2 {
		t.Errorf("%d keys", len(keys))
	}
}

// chainOf returns how many links the chain of a zone has; those that a chain has which
// is read anew are the same.
func (p *press) chainOf(zone string) int {
	p.t.Helper()
	one, err := p.zones.zoneNamed(p.ctx, zone)
	if err != nil {
		p.t.Fatal(err)
	}
	kept := one.chain
	anew := nsec3.New()
	err = one.eachOwner(p.ctx, nil, func(s *OwnerRecords) error {
		if !s.Glue {
			anew.Set(s.Name, one.Name, nsec3.Types(zonesign.TypesAt(s.Records)))
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	var a, b []nsec3.Link
	_ = kept.Each(func(q *nsec3.Link) error { a = append(a, *q); return nil })
	_ = anew.Each(func(q *nsec3.Link) error { b = append(b, *q); return nil })
	if fmt.Sprint(a) != fmt.Sprint(b) {
		p.t.Errorf("the chain has %d links, and read anew %d", len(a), len(b))
	}
	return len(a)
}

// TestNoKeys checks that a zone without keys is served without signatures, and that Check
// reports it.
func TestNoKeys(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	p.zones.signing = func(*stele.Namespace) zonesign.Mode { return zonesign.Online }
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20}, published{p.zones})
	defer s.Shutdown(p.ctx)
	w := s.newWorker(p.ctx, s.newTally())
	m := question("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
	m.SetEdns0(1232, true)
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := new(dns.Msg)
	if err := r.Unpack(w.respond(nil, msg, someone, time.Now())); err != nil || len(r.Answer) == 0 || strings.Contains(r.String(), "RRSIG") {
		t.Errorf("%v, %v", r, err)
	}
	var told []string
	err = p.zones.Check(p.ctx, "paradisec.example", func(q Problem) {
		if q.Serious {
			told = append(told, q.Text)
		}
	}, nil)
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "no keys that sign") {
		t.Errorf("%q, %v", told, err)
	}
}

// TestNothingOldIsSigned asks without pause, in both modes, while names come into being and
// go: after a commit every client sees it, and what is said is signed and true.
func TestNothingOldIsSigned(t *testing.T) {
	for _, mode := range []zonesign.Mode{zonesign.Online, zonesign.Transfer} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			p := newPress(t)
			p.paradisec()
			p.signed(mode, "paradisec.example.")
			s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Signatures: 1 << 30}, published{p.zones})
			defer s.Shutdown(p.ctx)
			const n = 30
			name := func(i int) string { return fmt.Sprintf("n%d.001.yy.paradisec.example.", i) }
			ask := func(w *worker, i int) *dns.Msg {
				m := question(name(i), dns.TypeNAPTR)
				m.SetEdns0(1232, true)
				msg, err := m.Pack()
				if err != nil {
					t.Error(err)
				}
				r := new(dns.Msg)
				if err := r.Unpack(w.respond(nil, msg, someone, time.Now())); err != nil {
					t.Error(err)
				}
				return r
			}
			ring := p.ring("paradisec.example.")
			var all sync.WaitGroup
			stop := make(chan struct{})
			for range 2 {
				w := s.newWorker(p.ctx, s.newTally())
				all.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
							checkSignatures(t, ring, ask(w, i%n), time.Now())
						}
					}
				})
			}
			w := s.newWorker(p.ctx, s.newTally())
			for i := range n {
				r := p.register(fmt.Sprintf("urn:paradisec:yy:001:n%d", i), "N2L https://example.org/new")
				if m := ask(w, i); len(m.Answer) == 0 {
					t.Errorf("%s after its commit: %v", name(i), m)
				}
				if i%3 > 0 {
					continue
				}
				if _, err := p.registrar.Update(p.ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil }); err != nil {
					t.Fatal(err)
				}
				if m := ask(w, i); len(m.Answer) != 0 {
					t.Errorf("%s after it was hidden: %v", name(i), m)
				}
			}
			close(stop)
			all.Wait()
			if mode == zonesign.Transfer {
				p.chainOf("paradisec.example.")
			}
		})
	}
}

// TestNSEC3ChainOfMany reads a chain that takes a while, beside answers and commits.
func TestNSEC3ChainOfMany(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	for i := range indexAtOnce + 500 {
		p.register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "N2L https://example.org/")
	}
	p.signed(zonesign.Transfer, "paradisec.example.")
	one, err := p.zones.zoneNamed(p.ctx, "paradisec.example.")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		r := p.register(fmt.Sprintf("urn:paradisec:new:i:n%d", i), "N2L https://example.org/")
		if i%2 == 0 {
			if _, err := p.registrar.Update(p.ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := one.chain.await(p.ctx); err != nil {
		t.Fatal(err)
	}
	// Those of the zone, its levels, and all names.
	if n := p.chainOf("paradisec.example."); n < indexAtOnce+550 {
		t.Errorf("%d links", n)
	}
	// A change of settings that leaves the names alone keeps it.
	p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Title = "Another" })
	again, err := p.zones.zoneNamed(p.ctx, "paradisec.example.")
	if err != nil || again == one || again.chain != one.chain {
		t.Errorf("the chain was made anew: %v", err)
	}
}
