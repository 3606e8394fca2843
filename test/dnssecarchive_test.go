package test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/scheme/all"
)

// The archive's zones, which our server signs, below a root that BIND's tools have
// signed: the client validates every step itself, or trusts the AD bit of a resolver that it
// asks by TLS or HTTPS; unbound and delv find the same.
func TestDNSSECArchive(t *testing.T) {
	for _, mode := range []string{"online", "transfer"} {
		t.Run(mode, func(t *testing.T) {
			a := newArchive(t)
			a.stele("zone", "sign", archiveZone, "--mode", mode)
			a.stele("zone", "sign", archiveRoot, "--mode", mode, "--algorithm", "ed25519", "--split")
			example := archiveZone + " NS ns1.paradisec.example.\n" + a.stele("zone", "ds", archiveZone) +
				archiveRoot + " NS ns1.urn.example.\n" + a.stele("zone", "ds", archiveRoot) + "ns1.paradisec.example. A 127.0.0.1\nns1.urn.example. A 127.0.0.1\n"
			ours := a.serve()
			s := &signedTree{t: t, folder: t.TempDir(), routes: []route{{archiveZone, ours}, {archiveRoot, ours}}}
			ds := s.sign("example.", example, signing{flags: []string{"-3", "-", "-H", "0"}})
			s.sign(".", "example. NS ns.other.test.\nns.other.test. A 127.0.0.1\n"+ds, signing{})
			s.serve()
			provesArchive(t, provingClient(t, s, archiveRoot))
			validatorsAgree(t, s)
			p, at := newPair(t), privatePorts{freePort(t), freePort(t)}
			s.privateUnbound(p, at)
			for _, server := range at.servers() {
				provesArchive(t, trustingClient(t, p, server))
			}
		})
	}
}

// provesArchive finds everything, and finds it secure, except what is asked over HTTP
// in the end.
func provesArchive(t *testing.T, way *client.DNS) {
	t.Helper()
	defer way.Close()
	resolvesAll(t, "a signed tree", way)
	for _, w := range archiveWanted {
		q := client.Request{Name: w.name, Service: w.service, Trace: true}
		if w.accept != "" {
			q.Accept = []ddds.Preference{{Range: w.accept, Q: 1000}}
		}
		res, err := way.Resolve(t.Context(), q)
		want := dnssec.Secure
		if slices.ContainsFunc(res.Trace.Steps, func(step client.Step) bool { return step.HTTP != nil }) {
			want = dnssec.Insecure
		}
		if errors.Is(err, dnssec.ErrBogus) || res.Trace.DNSSEC != want || err == nil && res.DNSSEC != want {
			t.Errorf("%+v: %v, %v, want %v\n%s", w, err, res.Trace.DNSSEC, want, res.Trace)
		}
	}
}

// validatorsAgree asks unbound and delv for all that the archive has, and has not.
func validatorsAgree(t *testing.T, s *signedTree) {
	t.Helper()
	unbound := s.validatingUnbound()
	for _, q := range slices.Concat(archiveFound, archiveEmpty, archiveNone) {
		if got := unboundVerdict(t, unbound, q.name, dns.StringToType[q.kind]); got != "secure" {
			t.Errorf("%s %s: unbound finds it %s", q.name, q.kind, got)
		}
		if got := s.delv(q.name, q.kind); got != "secure" {
			t.Errorf("%s %s: delv finds it %s", q.name, q.kind, got)
		}
	}
}

// privateUnbound is a validating resolver that is asked by TLS and HTTPS.
func (s *signedTree) privateUnbound(p *pair, at privatePorts) {
	s.t.Helper()
	u := s.unbound()
	u.config = privately(u.config, p, at)
	u.start(s.t, zoneFile{zone: "."})
}

// trustingClient is a client that trusts a resolver's AD bit.
func trustingClient(t *testing.T, p *pair, at string) *client.DNS {
	t.Helper()
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := client.ParseServer(at)
	if err != nil {
		t.Fatal(err)
	}
	way, err := client.NewDNS(client.DNSOptions{
		Schemes: schemes, Servers: []client.NameServer{server}, RootCAs: p.pool, Roots: map[string]string{"urn": archiveRoot},
		DNSSEC: client.TrustAD, TryTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return way
}

// A client that trusts a resolver's AD bit gets the resolver's reason for a bogus answer.
func TestTrustADBogus(t *testing.T) {
	s := newSignedTree(t, nil)
	p, at := newPair(t), privatePorts{freePort(t), freePort(t)}
	s.privateUnbound(p, at)
	for _, tt := range []struct {
		name string
		code int
		want string
	}{
		{"n.good.example.", 0, "https://data.example/ok\n"},
		{"n.open.example.", 0, "stele: INSECURE: n.open.example. NAPTR: the name server does not say that it checked the answer"},
		{"n.expired.example.", 1, "BOGUS: n.expired.example. NAPTR: the name server says: "},
	} {
		out, code := resolveWith(t, wanted{name: "urn:x1:y", service: vocabulary.N2L}, "--root", "@"+tt.name, "--dnssec=trust-ad", "--ca", p.cert, "--dns", "tls://localhost:"+strconv.Itoa(at.tls))
		if code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit %d, %s", tt.name, code, out)
		}
	}
}
