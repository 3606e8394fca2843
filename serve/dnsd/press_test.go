package dnsd

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/publish/zonesign"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
)

// press is a registry that is published, as a program would have it.
type press struct {
	t         testing.TB
	ctx       context.Context
	schemes   *stele.Schemes
	store     stele.Store
	registrar *registrar.Registrar
	zones     *Zones
	secrets   *secret.Ring

	mu      sync.Mutex
	told    [][]string // what the zones told of changes
	clock   func() time.Time
	signing func(*stele.Namespace) zonesign.Mode
}

// testSecretKey encrypts secrets in tests.
const testSecretKey = "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// newSecrets returns a ring with that key.
func newSecrets(t testing.TB) *secret.Ring {
	t.Helper()
	return secret.NewRing(secret.Text{Keep: testSecretKey, Name: "the test"})
}

// newPress makes a registry in memory and its zones. A change of the options of the zones
// sees the store that they would read.
func newPress(t testing.TB, changes ...func(*ZonesOptions)) *press {
	t.Helper()
	schemes, err := all.New(all.Config{PURLHosts: []string{"purl.org", "purl.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return pressTime }
	p := &press{t: t, ctx: auth.With(t.Context(), auth.Local()), schemes: schemes, store: mem.New(now), clock: now, signing: zonesign.ModeOf}
	p.secrets = newSecrets(t)
	o := ZonesOptions{Store: p.store, Schemes: schemes, Now: p.now, Secrets: p.secrets, Signing: p.signingOf}
	for _, change := range changes {
		change(&o)
	}
	p.zones = NewZones(o)
	t.Cleanup(p.zones.Close)
	p.zones.OnChange(func(names []string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, names)
	})
	p.registrar = registrar.New(p.store, schemes, registrar.Options{
		Now: now, Secrets: p.secrets, OnCommit: p.zones.Invalidate, OnNamespaces: p.zones.InvalidateNamespaces,
	})
	return p
}

// now is the clock of the zones.
func (p *press) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock()
}

// setClock sets the clock of the zones. The registrar's clock stands still.
func (p *press) setClock(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = now
}

// signingOf returns how the zone of a namespace is signed.
func (p *press) signingOf(ns *stele.Namespace) zonesign.Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signing(ns)
}

// setSigning sets how zones are signed. Zones that are read already keep their mode until
// a namespace changes.
func (p *press) setSigning(mode func(*stele.Namespace) zonesign.Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signing = mode
}

// takeTold returns the names that the zones have told of since it was called last: a list
// for each change, nil for one of all names.
func (p *press) takeTold() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := p.told
	p.told = nil
	return told
}

// id reads an identifier.
func (p *press) id(text string) stele.ID {
	p.t.Helper()
	id, err := p.schemes.Parse(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// namespace adds a namespace, or changes it.
func (p *press) namespace(text string, change func(*stele.Namespace)) {
	p.t.Helper()
	key, err := p.registrar.ParsePrefix(text)
	if err != nil {
		p.t.Fatal(err)
	}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	if _, err := p.registrar.Namespace(p.ctx, key); err == nil {
		_, err = p.registrar.SetNamespace(p.ctx, key, 0, func(ns *stele.Namespace) error { change(ns); return nil })
		if err != nil {
			p.t.Fatal(err)
		}
		return
	}
	change(ns)
	if _, err := p.registrar.AddNamespace(p.ctx, ns); err != nil {
		p.t.Fatal(err)
	}
}

// publish publishes a namespace in the names layout.
func (p *press) publish(prefix, zone, sep string, parts int) {
	p.t.Helper()
	p.namespace(prefix, func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{
			Zone: zone, Layout: stele.LayoutNames, Separator: sep, Parts: parts,
			Servers: []stele.NameServer{
				{Name: "ns1." + zone, Addresses: []string{"192.0.2.1", "2001:db8::1"}},
				{Name: "ns2.example.net.", Addresses: nil},
			},
			Mailbox: "host.master@example.org", Resolver: "id.example.org",
		}
	})
}

// register adds a record with targets, each of service, type and URL.
func (p *press) register(id string, targets ...string) *stele.Record {
	p.t.Helper()
	r := &stele.Record{ID: p.id(id)}
	for _, text := range targets {
		r.Targets = append(r.Targets, target(text))
	}
	r, err := p.registrar.Register(p.ctx, r)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// target reads "N2L text/html http://...", "N2L http://..." or a URL.
func target(text string) stele.Target {
	t := stele.Target{Service: stele.N2L, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
	words := strings.Fields(text)
	if len(words) > 1 {
		t.Service, words = stele.Service(words[0]), words[1:]
	}
	if len(words) > 1 {
		t.Type, words = words[0], words[1:]
	}
	t.URL = words[0]
	return t
}

// lookup returns what stands at a name.
func (p *press) lookup(name string) (Node, *Zone) {
	p.t.Helper()
	z, err := p.zones.Find(p.ctx, name)
	if err != nil {
		p.t.Fatal(err)
	}
	if z == nil {
		return Node{}, nil
	}
	n, err := z.Lookup(p.ctx, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return n, z
}

// NAPTR makes the press a database for package ddds.
func (p *press) NAPTR(ctx context.Context, name string) (ddds.RuleSet, error) {
	n, z := p.lookup(name)
	if z == nil || !n.Exists {
		return ddds.RuleSet{}, ddds.NoSuchName(name)
	}
	var set ddds.RuleSet
	for _, rr := range n.Records {
		rr, ok := rr.(*dns.NAPTR)
		if !ok {
			continue
		}
		r, err := ddds.ParseRule(fieldsOf(p.t, rr), ddds.Standard)
		if err != nil && rr.Flags != "h" {
			p.t.Errorf("%s: %v", rr, err)
		}
		set.Rules, set.TTL = append(set.Rules, r), rr.Hdr.Ttl
	}
	return set, nil
}

// fieldsOf reads a record as it comes from the wire.
func fieldsOf(t testing.TB, rr *dns.NAPTR) ddds.Fields {
	t.Helper()
	f := ddds.Fields{Order: rr.Order, Preference: rr.Preference, Replacement: rr.Replacement}
	for _, x := range []struct {
		to   *string
		from string
	}{{&f.Flags, rr.Flags}, {&f.Service, rr.Service}, {&f.Regexp, rr.Regexp}} {
		text, err := ddds.Unescape(x.from)
		if err != nil {
			t.Fatal(err)
		}
		*x.to = text
	}
	return f
}

// walk resolves a name from a root, in the published zones alone.
func (p *press) walk(root, name string, service stele.Service, accept ...string) string {
	p.t.Helper()
	first, err := ddds.URNKey(root)
	if err != nil {
		p.t.Fatal(err)
	}
	q := ddds.Request{Name: name, Service: service}
	for _, a := range accept {
		q.Accept = append(q.Accept, ddds.Preference{Range: a, Q: 1000})
	}
	res, err := (&ddds.Walker{Database: p, First: first}).Walk(p.ctx, q)
	if err != nil {
		return fmt.Sprint(stele.KindOf(err))
	}
	return string(res.Candidate.Flag) + " " + res.Candidate.Key
}

func (p *press) export(zone string) string {
	p.t.Helper()
	var b bytes.Buffer
	if err := p.zones.Export(p.ctx, &b, zone, nil); err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}

// paradisec is the worked example.
func (p *press) paradisec() {
	p.t.Helper()
	p.namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns1.example.net."}}}
	})
	p.publish("urn:paradisec", "paradisec.example.", ":", 3)
	site := "http://catalog.example.org/repository/AB1/001/A"
	r := &stele.Record{ID: p.id("urn:paradisec:AB1:001:A"), Persistence: stele.Persistence{Level: stele.Unchanging, Until: "2060-01-01", Statement: "Kept byte for byte."}}
	for i, text := range []string{
		"N2L text/html " + site, "N2L audio/wav " + site + ".wav", "N2L audio/mpeg ftp://ftp.example.org/AB1-001-A.mp3",
		"N2C application/ld+json " + site + ".json", "N2S application/pgp-signature " + site + ".sig", "N2P text/html " + site + "/persistence",
	} {
		t := target(text)
		t.Preference = uint16(10 + 10*i)
		r.Targets = append(r.Targets, t)
	}
	if _, err := p.registrar.Register(p.ctx, r); err != nil {
		p.t.Fatal(err)
	}
}

// pressTime is what the clock of a press shows.
var pressTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// signer adds a key to a namespace.
func (p *press) signer(prefix, algorithm string) (crypto.Signer, stele.SigningKey) {
	p.t.Helper()
	key, err := proof.Generate(algorithm, rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	k, err := proof.PublicKey(key, pressTime)
	if err != nil {
		p.t.Fatal(err)
	}
	p.namespace(prefix, func(ns *stele.Namespace) { ns.Keys = append(ns.Keys, k) })
	return key, k
}

// sign adds signatures of a record.
func (p *press) sign(name string, keys ...crypto.Signer) {
	p.t.Helper()
	_, err := p.registrar.Update(p.ctx, p.id(name), 0, func(r *stele.Record) error {
		for _, key := range keys {
			s, err := proof.Sign(key, r.ID, stele.Signature{SHA256: sha256.Sum256(nil), Date: pressTime})
			if err != nil {
				return err
			}
			r.Signatures = append(r.Signatures, s)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// ownRecords are records of an owner in a zone whose names have two parts.
func ownRecords(zone string) []stele.ZoneRecord {
	return []stele.ZoneRecord{
		{Name: zone, TTL: 60, Type: "MX", Data: "10 www." + zone},
		{Name: zone, TTL: 60, Type: "MX", Data: "20 mx.example.org."},
		{Name: zone, TTL: 60, Type: "CAA", Data: `0 issue "ca.example.net"`},
		{Name: zone, TTL: 60, Type: "TXT", Data: `"v=spf1 mx -all" "second \"string\""`},
		{Name: "www." + zone, TTL: 60, Type: "A", Data: "192.0.2.80"},
		{Name: "_dmarc.mail." + zone, TTL: 60, Type: "TXT", Data: `"v=DMARC1; p=none"`},
		{Name: "alias.c1." + zone, TTL: 60, Type: "CNAME", Data: "www." + zone},
		{Name: "second." + zone, TTL: 60, Type: "CNAME", Data: "alias.c1." + zone},
		{Name: "lost." + zone, TTL: 60, Type: "CNAME", Data: "nothing." + zone},
		{Name: "away." + zone, TTL: 60, Type: "CNAME", Data: "www.example.org."},
		{Name: "round." + zone, TTL: 60, Type: "CNAME", Data: "round." + zone},
	}
}

// serialOf returns the serial of a zone.
func (p *press) serialOf(zone string) uint32 {
	p.t.Helper()
	soa, _ := p.zone(zone).Apex()
	return soa.Serial
}

// zone returns a zone by its name.
func (p *press) zone(name string) *Zone {
	p.t.Helper()
	z, err := p.zones.Zone(p.ctx, name)
	if err != nil || z == nil {
		p.t.Fatalf("the zone %s: %v, %v", name, z, err)
	}
	return z
}

// awaitNames waits until zones have read all names of one of them.
func (p *press) awaitNames(zones *Zones, name string) {
	p.t.Helper()
	z, err := zones.Zone(p.ctx, name)
	if err != nil || z == nil {
		p.t.Fatalf("the zone %s: %v, %v", name, z, err)
	}
	if err := z.AwaitNames(p.ctx); err != nil {
		p.t.Fatal(err)
	}
}

// problems returns what a check of a zone tells, line by line.
func (p *press) problems(zone string) string {
	p.t.Helper()
	var b strings.Builder
	err := p.zones.Check(p.ctx, zone, func(one Problem) { b.WriteString(one.ID.String() + " " + one.Text + "\n") }, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}
