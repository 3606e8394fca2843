package publish_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// exportSigned writes a signed zone to a file, and returns its path and content.
func exportSigned(p *publishtest.Registry, zone string) (string, string) {
	p.T.Helper()
	var b bytes.Buffer
	if err := p.Zones.ExportSigned(p.Ctx, &b, zone, nil); err != nil {
		p.T.Fatal(err)
	}
	path := filepath.Join(p.T.TempDir(), "zone")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		p.T.Fatal(err)
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
	p := publishtest.New(t)
	p.Paradisec()
	p.Publish("urn:inner", "inner.paradisec.example.", ":", 1)
	for i := range 60 {
		p.Register(fmt.Sprintf("urn:paradisec:c%d:%d:n%d.x", i%3, i%7, i), "N2L https://example.org/"+strings.Repeat("x", i*20))
	}
	const zone = "paradisec.example."
	p.SignZones(zonesign.Transfer, zone)
	path, text := exportSigned(p, zone)
	verifyZone(t, zone, path)
	if _, again := exportSigned(p, zone); again != text {
		t.Error("the same registry gives another file")
	}
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Records = publishtest.OwnRecords(zone) })
	path, text = exportSigned(p, zone)
	verifyZone(t, zone, path)
	if !strings.Contains(text, "\nalias.c1 60 IN CNAME www.paradisec.example.\n") {
		t.Errorf("no alias in\n%s", text)
	}
	r := p.Register("urn:paradisec:new:1:a", "N2L https://example.org/new")
	path, _ = exportSigned(p, zone)
	verifyZone(t, zone, path)
	if _, err := p.Registrar.Update(p.Ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil }); err != nil {
		t.Fatal(err)
	}
	path, hidden := exportSigned(p, zone)
	verifyZone(t, zone, path)
	if strings.Contains(hidden, "a.1.new") {
		t.Error("what is not public is in the zone")
	}
	if links := p.CheckChain(zone); links != strings.Count(hidden, " NSEC3 1 ") {
		t.Errorf("%d links", links)
	}

	// An inner zone that is signed has its digest in the outer one.
	p.SignZones(zonesign.Transfer, zone, "inner.paradisec.example.")
	path, text = exportSigned(p, zone)
	verifyZone(t, zone, path)
	if !strings.Contains(text, "\ninner 3600 IN DS ") {
		t.Errorf("no DS record in\n%s", text)
	}
}

// TestExportSplit exports zones with two kinds of keys, with the other algorithm, and in
// the middle of a roll.
func TestExportSplit(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	const zone = "paradisec.example."
	p.SignZones(zonesign.Transfer)
	p.SetSigning(func(*stele.Namespace) zonesign.Mode { return zonesign.Transfer })
	p.ChangeKeys(zone, func(r *zonekey.Ring) error { return r.Begin(zonekey.Ed25519, true, time.Now(), rand.Reader) })
	for _, role := range []zonekey.Role{zonekey.ZSK, zonekey.KSK} {
		path, _ := exportSigned(p, zone)
		verifyZone(t, zone, path, "-x")
		p.ChangeKeys(zone, func(r *zonekey.Ring) error {
			_, err := r.Roll(role, time.Now(), rand.Reader)
			return err
		})
		for range 2 {
			path, _ = exportSigned(p, zone)
			verifyZone(t, zone, path, "-x")
			p.ChangeKeys(zone, func(r *zonekey.Ring) error {
				_, err := r.Next(role, zonekey.Times{}, time.Now(), true, true)
				return err
			})
		}
	}
	if keys := p.Ring(zone).Current(); len(keys) != 2 {
		t.Errorf("%d keys", len(keys))
	}
}

// TestNSEC3ChainOfMany reads a chain that takes a while, beside answers and commits.
func TestNSEC3ChainOfMany(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	for i := range publish.ReadAtOnce + 500 {
		p.Register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "N2L https://example.org/")
	}
	p.SignZones(zonesign.Transfer, "paradisec.example.")
	one := p.Zone("paradisec.example.")
	for i := range 100 {
		r := p.Register(fmt.Sprintf("urn:paradisec:new:i:n%d", i), "N2L https://example.org/")
		if i%2 == 0 {
			if _, err := p.Registrar.Update(p.Ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.AwaitNames(p.Zones, "paradisec.example.")
	// Those of the zone, its levels, and all names.
	if n := p.CheckChain("paradisec.example."); n < publish.ReadAtOnce+550 {
		t.Errorf("%d links", n)
	}
	// A change of settings that leaves the names alone keeps it.
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Title = "Another" })
	if again := p.Zone("paradisec.example."); again == one || again.NSEC3() != one.NSEC3() {
		t.Error("the chain was made anew")
	}
}
