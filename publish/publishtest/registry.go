// Package publishtest is a registry that is published, with a real registrar over a store in
// memory, for tests of package publish and of servers that answer from its zones.
package publishtest

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
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonesign"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
)

// Registry is a registry that is published, as a program would have it. Its methods end the
// test T if something goes wrong.
type Registry struct {
	T         testing.TB
	Ctx       context.Context // with a principal that may do everything
	Schemes   *stele.Schemes
	Store     stele.Store
	Registrar *registrar.Registrar
	Zones     *publish.Zones
	Secrets   *secret.Ring

	mu      sync.Mutex
	told    [][]string // what the zones told of changes
	clock   func() time.Time
	signing func(*stele.Namespace) zonesign.Mode
}

// testSecretKey encrypts secrets in tests.
const testSecretKey = "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// New makes a registry in memory and its zones. A change of the options of the zones
// sees the store that they would read.
func New(t testing.TB, changes ...func(*publish.ZonesOptions)) *Registry {
	t.Helper()
	schemes, err := all.New(all.Config{PURLHosts: []string{"purl.org", "purl.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Registry{T: t, Ctx: auth.With(t.Context(), auth.Local()), Schemes: schemes, Store: mem.New(Time), clock: Time, signing: zonesign.ModeOf}
	p.Secrets = secret.NewRing(secret.Text{Keep: testSecretKey, Name: "the test"})
	o := publish.ZonesOptions{Store: p.Store, Schemes: schemes, Now: p.Now, Secrets: p.Secrets, Signing: p.SigningOf}
	for _, change := range changes {
		change(&o)
	}
	p.Zones = publish.NewZones(o)
	t.Cleanup(p.Zones.Close)
	p.Zones.OnChange(func(names []string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, names)
	})
	p.Registrar = registrar.New(p.Store, schemes, registrar.Options{
		Now: Time, Secrets: p.Secrets, OnCommit: p.Zones.Invalidate, OnNamespaces: p.Zones.InvalidateNamespaces,
	})
	return p
}

// Now is the clock of the zones.
func (p *Registry) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock()
}

// SetClock sets the clock of the zones. The registrar's clock stands still.
func (p *Registry) SetClock(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = now
}

// SigningOf returns how the zone of a namespace is signed.
func (p *Registry) SigningOf(ns *stele.Namespace) zonesign.Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signing(ns)
}

// SetSigning sets how zones are signed. Zones that are read already keep their mode until
// a namespace changes.
func (p *Registry) SetSigning(mode func(*stele.Namespace) zonesign.Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signing = mode
}

// TakeTold returns the names that the zones have told of since it was called last: a list
// for each change, nil for one of all names.
func (p *Registry) TakeTold() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := p.told
	p.told = nil
	return told
}

// ID reads an identifier.
func (p *Registry) ID(text string) stele.ID {
	p.T.Helper()
	id, err := p.Schemes.Parse(text)
	if err != nil {
		p.T.Fatal(err)
	}
	return id
}

// Namespace adds a namespace, or changes it.
func (p *Registry) Namespace(text string, change func(*stele.Namespace)) {
	p.T.Helper()
	key, err := p.Registrar.ParsePrefix(text)
	if err != nil {
		p.T.Fatal(err)
	}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	if _, err := p.Registrar.Namespace(p.Ctx, key); err == nil {
		_, err = p.Registrar.SetNamespace(p.Ctx, key, 0, func(ns *stele.Namespace) error { change(ns); return nil })
		if err != nil {
			p.T.Fatal(err)
		}
		return
	}
	change(ns)
	if _, err := p.Registrar.AddNamespace(p.Ctx, ns); err != nil {
		p.T.Fatal(err)
	}
}

// Publish publishes a namespace in the names layout.
func (p *Registry) Publish(prefix, zone, sep string, parts int) {
	p.T.Helper()
	p.Namespace(prefix, func(ns *stele.Namespace) {
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

// Register adds a record with targets, each of service, type and URL.
func (p *Registry) Register(id string, targets ...string) *stele.Record {
	p.T.Helper()
	r := &stele.Record{ID: p.ID(id)}
	for _, text := range targets {
		r.Targets = append(r.Targets, Target(text))
	}
	return p.RegisterRecord(r)
}

// RegisterRecord adds a record.
func (p *Registry) RegisterRecord(r *stele.Record) *stele.Record {
	p.T.Helper()
	r, err := p.Registrar.Register(p.Ctx, r)
	if err != nil {
		p.T.Fatal(err)
	}
	return r
}

// Target reads "N2L text/html http://...", "N2L http://..." or a URL.
func Target(text string) stele.Target {
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

// Lookup returns what stands at a name.
func (p *Registry) Lookup(name string) (publish.Node, *publish.Zone) {
	p.T.Helper()
	z, err := p.Zones.Find(p.Ctx, name)
	if err != nil {
		p.T.Fatal(err)
	}
	if z == nil {
		return publish.Node{}, nil
	}
	n, err := z.Lookup(p.Ctx, name)
	if err != nil {
		p.T.Fatal(err)
	}
	return n, z
}

// NAPTR returns the rules at a name: a Registry is a database for package ddds.
func (p *Registry) NAPTR(ctx context.Context, name string) (ddds.RuleSet, error) {
	n, z := p.Lookup(name)
	if z == nil || !n.Exists {
		return ddds.RuleSet{}, ddds.NoSuchName(name)
	}
	var set ddds.RuleSet
	for _, rr := range n.Records {
		rr, ok := rr.(*dns.NAPTR)
		if !ok {
			continue
		}
		r, err := ddds.ParseRule(Fields(p.T, rr), ddds.Standard)
		if err != nil && rr.Flags != "h" {
			p.T.Errorf("%s: %v", rr, err)
		}
		set.Rules, set.TTL = append(set.Rules, r), rr.Hdr.Ttl
	}
	return set, nil
}

// Fields reads a record as it comes from the wire.
func Fields(t testing.TB, rr *dns.NAPTR) ddds.Fields {
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

// Walk resolves a name from a root, in the published zones alone.
func (p *Registry) Walk(root, name string, service stele.Service, accept ...string) string {
	p.T.Helper()
	first, err := ddds.URNKey(root)
	if err != nil {
		p.T.Fatal(err)
	}
	q := ddds.Request{Name: name, Service: service}
	for _, a := range accept {
		q.Accept = append(q.Accept, ddds.Preference{Range: a, Q: 1000})
	}
	res, err := (&ddds.Walker{Database: p, First: first}).Walk(p.Ctx, q)
	if err != nil {
		return fmt.Sprint(stele.KindOf(err))
	}
	return string(res.Candidate.Flag) + " " + res.Candidate.Key
}

func (p *Registry) Export(zone string) string {
	p.T.Helper()
	var b bytes.Buffer
	if err := p.Zones.Export(p.Ctx, &b, zone, nil); err != nil {
		p.T.Fatal(err)
	}
	return b.String()
}

// Paradisec is the worked example.
func (p *Registry) Paradisec() {
	p.T.Helper()
	p.Namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns1.example.net."}}}
	})
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	site := "http://catalog.example.org/repository/AB1/001/A"
	r := &stele.Record{ID: p.ID("urn:paradisec:AB1:001:A"), Persistence: stele.Persistence{Level: stele.Unchanging, Until: "2060-01-01", Statement: "Kept byte for byte."}}
	for i, text := range []string{
		"N2L text/html " + site, "N2L audio/wav " + site + ".wav", "N2L audio/mpeg ftp://ftp.example.org/AB1-001-A.mp3",
		"N2C application/ld+json " + site + ".json", "N2S application/pgp-signature " + site + ".sig", "N2P text/html " + site + "/persistence",
	} {
		t := Target(text)
		t.Preference = uint16(10 + 10*i)
		r.Targets = append(r.Targets, t)
	}
	if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
		p.T.Fatal(err)
	}
}

// Time is what the clock of a registry shows.
func Time() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// AddKey adds a key to a namespace.
func (p *Registry) AddKey(prefix, algorithm string) (crypto.Signer, stele.SigningKey) {
	p.T.Helper()
	key, err := proof.Generate(algorithm, rand.Reader)
	if err != nil {
		p.T.Fatal(err)
	}
	k, err := proof.PublicKey(key, Time())
	if err != nil {
		p.T.Fatal(err)
	}
	p.Namespace(prefix, func(ns *stele.Namespace) { ns.Keys = append(ns.Keys, k) })
	return key, k
}

// Sign adds signatures of a record.
func (p *Registry) Sign(name string, keys ...crypto.Signer) {
	p.T.Helper()
	_, err := p.Registrar.Update(p.Ctx, p.ID(name), 0, func(r *stele.Record) error {
		for _, key := range keys {
			s, err := proof.Sign(key, r.ID, stele.Signature{SHA256: sha256.Sum256(nil), Date: Time()})
			if err != nil {
				return err
			}
			r.Signatures = append(r.Signatures, s)
		}
		return nil
	})
	if err != nil {
		p.T.Fatal(err)
	}
}

// OwnRecords are records of an owner in a zone whose names have two parts.
func OwnRecords(zone string) []stele.ZoneRecord {
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

// Serial returns the serial of a zone.
func (p *Registry) Serial(zone string) uint32 {
	p.T.Helper()
	soa, _ := p.Zone(zone).Apex()
	return soa.Serial
}

// Zone returns a zone by its name.
func (p *Registry) Zone(name string) *publish.Zone {
	p.T.Helper()
	z, err := p.Zones.Zone(p.Ctx, name)
	if err != nil || z == nil {
		p.T.Fatalf("the zone %s: %v, %v", name, z, err)
	}
	return z
}

// AwaitNames waits until zones have read all names of one of them.
func (p *Registry) AwaitNames(zones *publish.Zones, name string) {
	p.T.Helper()
	z, err := zones.Zone(p.Ctx, name)
	if err != nil || z == nil {
		p.T.Fatalf("the zone %s: %v, %v", name, z, err)
	}
	if err := z.AwaitNames(p.Ctx); err != nil {
		p.T.Fatal(err)
	}
}

// Problems returns what a check of a zone tells, line by line.
func (p *Registry) Problems(zone string) string {
	p.T.Helper()
	var b strings.Builder
	err := p.Zones.Check(p.Ctx, zone, func(one publish.Problem) { b.WriteString(one.ID.String() + " " + one.Text + "\n") }, nil)
	if err != nil {
		p.T.Fatal(err)
	}
	return b.String()
}
