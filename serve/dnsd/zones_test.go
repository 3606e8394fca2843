package dnsd

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
)

var update = flag.Bool("update", false, "write the golden files")

// press is a registry that is published, as a program would have it.
type press struct {
	t         testing.TB
	ctx       context.Context
	schemes   *stele.Schemes
	store     stele.Store
	registrar *registrar.Registrar
	zones     *Zones
	secrets   *secret.Ring
	mu        sync.Mutex
	told      [][]string // by onChange; under mu
}

// testSecretKey encrypts secrets in tests.
const testSecretKey = "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// newSecrets returns a ring with that key.
func newSecrets(t testing.TB) *secret.Ring {
	t.Helper()
	return secret.NewRing(secret.Text{Keep: testSecretKey, Name: "the test"})
}

func newPress(t testing.TB) *press {
	t.Helper()
	schemes, err := all.New(all.Config{PURLHosts: []string{"purl.org", "purl.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	p := &press{t: t, ctx: auth.With(t.Context(), auth.Local()), schemes: schemes, store: mem.New(now)}
	p.secrets = newSecrets(t)
	p.zones = NewZones(ZonesOptions{Store: p.store, Schemes: schemes, Now: now, Secrets: p.secrets})
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

// golden holds a text against a file; -update writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestParadisec(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	golden(t, "paradisec.zone", p.export("Paradisec.example"))
	golden(t, "urnroot.zone", p.export("urn.example."))
	const name = "URN:Paradisec:AB1:001:a"
	site := "http://catalog.example.org/repository/AB1/001/A"
	for _, test := range []struct {
		service stele.Service
		accept  string
		want    string
	}{
		{stele.N2L, "", "RES:http " + site},
		{stele.N2L, "text/html", "RES:http " + site},
		{stele.N2L, "audio/wav", "RES:http " + site + ".wav"},
		{stele.N2L, "audio/mpeg", "RES:ftp ftp://ftp.example.org/AB1-001-A.mp3"},
		{stele.N2L, "audio/flac", "RES:http " + site + ".wav"},
		{stele.N2C, "", "RES:http " + site + ".json"},
		{stele.N2S, "", "RES:http " + site + ".sig"},
		{stele.N2P, "", "RES:http " + site + "/persistence"},
	} {
		var accept []string
		if test.accept != "" {
			accept = []string{test.accept}
		}
		for _, root := range []string{"urn.example.", "@paradisec.example."} {
			if got := p.walk(root, name, test.service, accept...); got != test.want {
				t.Errorf("%s in %q from %s: %s, want %s", test.service, test.accept, root, got, test.want)
			}
		}
	}
}
