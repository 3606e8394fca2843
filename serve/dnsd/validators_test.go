package dnsd

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// authorityFor serves a root and a zone inside it, both signed, to validators of
// others. TTLs are short, so that they ask again.
func authorityFor(t *testing.T, outer, inner zonesign.Mode) (*publishtest.Registry, netip.AddrPort) {
	t.Helper()
	p := publishtest.New(t, func(o *publish.ZonesOptions) { o.DefaultTTL = 1 })
	p.Namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns1.urn.example.", Addresses: []string{"127.0.0.1"}}}}
	})
	p.Publish("urn:child", "child.urn.example.", ":", 2)
	p.Publish("urn:plain", "plain.urn.example.", ":", 2)
	p.Namespace("urn:child", func(ns *stele.Namespace) { ns.Publication.Records = publishtest.OwnRecords("child.urn.example.") })
	for i := range 20 {
		p.Register(fmt.Sprintf("urn:child:c%d:n%d", i%4, i), "N2L https://example.org/")
	}
	p.Register("urn:plain:c:n", "N2L https://example.org/")
	p.SignZones(inner, "urn.example.", "child.urn.example.")
	modes := map[string]zonesign.Mode{"urn.example.": outer, "child.urn.example.": inner}
	p.SetSigning(func(ns *stele.Namespace) zonesign.Mode { return modes[ns.Publication.Zone] })
	p.Zones.InvalidateNamespaces()
	s := New(Options{Zones: p.Zones, Now: time.Now, CacheBytes: 1 << 20})
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	if err := s.Listen(p.Ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return p, s.Addr()
}

// unbound runs a validating resolver that trusts the keys of the outer zone.
func unbound(t *testing.T, p *publishtest.Registry, at netip.AddrPort) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "ub")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	port := freePort(t)
	anchor := p.Ring("urn.example.").DS(3600)[0]
	conf := fmt.Sprintf(`server:
  interface: 127.0.0.1
  port: %d
  do-ip6: no
  num-threads: 1
  username: ""
  chroot: ""
  directory: "%s"
  use-syslog: no
  module-config: "validator iterator"
  do-not-query-localhost: no
  use-caps-for-id: yes
  harden-algo-downgrade: yes
  val-log-level: 2
  cache-max-negative-ttl: 1
  trust-anchor: "%s %s"
remote-control:
  control-enable: no
stub-zone:
  name: "urn.example."
  stub-addr: 127.0.0.1@%d
`, port, folder, anchor.Owner, anchor.Record, at.Port())
	if err := os.WriteFile(filepath.Join(folder, "conf"), []byte(conf), 0o666); err != nil {
		t.Fatal(err)
	}
	// Some systems (AppArmor) forbid the program that is installed to read files here.
	program, err := os.ReadFile("/usr/sbin/unbound")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "unbound"), program, 0o700)
	}
	if err != nil {
		t.Fatalf("%v; 'make needs' installs it", err)
	}
	cmd := exec.Command(filepath.Join(folder, "unbound"), "-d", "-p", "-c", filepath.Join(folder, "conf"))
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for range 1200 {
		if r, err := validated(address, "urn.example.", dns.TypeSOA); err == nil && r.Rcode == dns.RcodeSuccess {
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("unbound does not answer")
	return ""
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// validated asks a resolver, with AD set: so it tells whether it has validated.
func validated(address, name string, qtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.AuthenticatedData = true
	client := &dns.Client{Timeout: 5 * time.Second}
	r, _, err := client.Exchange(m, address)
	return r, err
}

// probe is a question to validators and what they should say.
type probe struct {
	name  string
	qtype uint16
	count int // of answers
	delv  string
}

func probes() []probe {
	return []probe{
		{"n1.c1.child.urn.example.", dns.TypeNAPTR, 2, "fully validated"},
		{"n1.c1.child.urn.example.", dns.TypeURI, 1, "fully validated"},
		{"child.urn.example.", dns.TypeSOA, 1, "fully validated"},
		{"child.urn.example.", dns.TypeDNSKEY, -1, "fully validated"},
		{"child.urn.example.", dns.TypeDS, -1, "fully validated"},
		{"child.urn.example.", dns.TypeCDS, -1, "fully validated"},
		{"ns1.child.urn.example.", dns.TypeA, 1, "fully validated"},
		{"n1.c1.child.urn.example.", dns.TypeA, 0, "negative response, fully validated"},
		{"c1.child.urn.example.", dns.TypeA, 0, "negative response, fully validated"},
		{"none.c1.child.urn.example.", dns.TypeA, 0, "negative response, fully validated"},
		{"x.y.z.child.urn.example.", dns.TypeA, 0, "negative response, fully validated"},
		{"urn.example.", dns.TypeNS, 1, "fully validated"},
		{"child.urn.example.", dns.TypeMX, 2, "fully validated"},
		{"child.urn.example.", dns.TypeCAA, 1, "fully validated"},
		{"_dmarc.mail.child.urn.example.", dns.TypeTXT, 1, "fully validated"},
		{"www.child.urn.example.", dns.TypeA, 1, "fully validated"},
		{"www.child.urn.example.", dns.TypeMX, 0, "negative response, fully validated"},
		{"mail.child.urn.example.", dns.TypeA, 0, "negative response, fully validated"}, // there is something below it
		{"x.mail.child.urn.example.", dns.TypeA, 0, "negative response, fully validated"},
		{"alias.c1.child.urn.example.", dns.TypeCNAME, 1, "fully validated"},
		{"alias.c1.child.urn.example.", dns.TypeA, 2, "fully validated"},
		{"alias.c1.child.urn.example.", dns.TypeMX, 1, "fully validated"}, // and nothing where it leads
		{"second.child.urn.example.", dns.TypeA, 3, "fully validated"},
		{"lost.child.urn.example.", dns.TypeA, 1, "fully validated"},
		{"plain.urn.example.", dns.TypeDS, 0, "negative response, fully validated"},
	}
}

// TestValidators has unbound and delv validate both kinds of zones, from the keys of
// the zone above.
func TestValidators(t *testing.T) {
	for _, modes := range [][2]zonesign.Mode{{zonesign.Online, zonesign.Transfer}, {zonesign.Transfer, zonesign.Online}} {
		t.Run(fmt.Sprint(modes), func(t *testing.T) {
			p, at := authorityFor(t, modes[0], modes[1])
			resolver := unbound(t, p, at)
			anchors := filepath.Join(t.TempDir(), "anchors")
			ds := strings.Fields(p.Ring("urn.example.").DS(3600)[0].Record)
			if err := os.WriteFile(anchors, fmt.Appendf(nil, "trust-anchors { \"urn.example.\" static-ds %s %s %s \"%s\"; };\n", ds[3], ds[4], ds[5], ds[6]), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, q := range probes() {
				r, err := validated(resolver, q.name, q.qtype)
				if err != nil || !r.AuthenticatedData || r.Rcode == dns.RcodeServerFailure || q.count >= 0 && len(r.Answer) != q.count {
					t.Errorf("unbound: %v %v", r, err)
				}
				out, err := exec.Command("delv", "-a", anchors, "+root=urn.example.", "@127.0.0.1", "-p", fmt.Sprint(at.Port()), q.name, dns.TypeToString[q.qtype]).CombinedOutput()
				if err != nil || !strings.Contains(string(out), "; "+q.delv) {
					t.Errorf("delv %s %s: %v\n%s", q.name, dns.TypeToString[q.qtype], err, out)
				}
			}
			// What is not signed is found to be so.
			r, err := validated(resolver, "n.c.plain.urn.example.", dns.TypeNAPTR)
			if err != nil || r.AuthenticatedData || len(r.Answer) == 0 {
				t.Errorf("a zone that is not signed: %v %v", r, err)
			}
		})
	}
}

// TestRollWhileQueriesRun rolls the key of a zone while unbound asks for names that it
// does not have in its cache, and for some that it has: all is validated always.
func TestRollWhileQueriesRun(t *testing.T) {
	for _, mode := range []zonesign.Mode{zonesign.Online, zonesign.Transfer} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			p, at := authorityFor(t, zonesign.Online, mode)
			resolver := unbound(t, p, at)
			var all sync.WaitGroup
			stop, begun := make(chan struct{}), make(chan struct{})
			asked := 0
			all.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					q := probes()[i%len(probes())]
					if strings.HasPrefix(q.name, "none.") {
						q.name = fmt.Sprintf("none%d.c1.child.urn.example.", i)
					}
					r, err := validated(resolver, q.name, q.qtype)
					if err != nil || !r.AuthenticatedData || r.Rcode == dns.RcodeServerFailure {
						t.Errorf("%v %v", r, err)
					}
					if asked++; asked == len(probes()) {
						close(begun) // all of the zone is in caches now
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
			times := zonekey.Times{Keys: time.Second, Zone: time.Second, Parent: time.Second, Spread: 500 * time.Millisecond}
			const zone = "child.urn.example."
			<-begun
			p.ChangeKeys(zone, func(r *zonekey.Ring) error {
				_, err := r.Roll(zonekey.CSK, time.Now(), rand.Reader)
				return err
			})
			for range 2 {
				step, err := p.Ring(zone).Step(zonekey.CSK, times)
				if err != nil || step == nil {
					t.Fatal(step, err)
				}
				time.Sleep(time.Until(step.From) + time.Second) // times are in whole seconds
				p.ChangeKeys(zone, func(r *zonekey.Ring) error {
					_, err := r.Next(zonekey.CSK, times, time.Now(), true, false)
					return err
				})
			}
			time.Sleep(2 * time.Second)
			close(stop)
			all.Wait()
			if keys := p.Ring(zone).Current(); len(keys) != 1 || asked < 20 {
				t.Errorf("%d keys are left; %d questions", len(keys), asked)
			}
		})
	}
}
