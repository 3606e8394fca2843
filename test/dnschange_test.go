package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	vocabulary "github.com/stele-id/stele"
)

// look asks for what stands at a name, over UDP, and returns its records and the
// zone's serial, which it asks for first.
func (s *nameServer) look(t *testing.T, name string) (rules []string, rcode int, serial uint32) {
	t.Helper()
	client := &dns.Client{Timeout: 10 * time.Second}
	ask := func(name string, kind uint16) *dns.Msg {
		answer, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, kind).SetEdns0(1232, false), s.addr)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for _, rr := range ask(archiveZone, dns.TypeSOA).Answer {
		if soa, ok := rr.(*dns.SOA); ok {
			serial = soa.Serial
		}
	}
	answer := ask(name, dns.TypeNAPTR)
	for _, rr := range answer.Answer {
		if rule, ok := rr.(*dns.NAPTR); ok {
			rules = append(rules, rule.Flags+" "+rule.Service+" "+rule.Regexp)
		}
	}
	return rules, answer.Rcode, serial
}

// What changes in the registry shows in the next answer, and the serial grows.
func TestDNSChanges(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.publish("urn:paradisec", vocabulary.Publication{Zone: archiveZone, Layout: vocabulary.LayoutNames, Separator: ":", Parts: 3,
		Servers: []vocabulary.NameServer{{Name: "ns1." + archiveZone, Addresses: []string{"127.0.0.1"}}}, Resolver: "id.example.org"}, nil)
	server := p.serve()
	id, err := p.schemes.Parse("urn:paradisec:AB1:001:A")
	if err != nil {
		t.Fatal(err)
	}
	const owner = "a.001.ab1." + archiveZone
	_, rcode, last := server.look(t, owner)
	if rcode != dns.RcodeNameError {
		t.Fatalf("before it is registered: %s", dns.RcodeToString[rcode])
	}
	// expect looks once: there is no second try.
	expect := func(about, part string, want int) {
		t.Helper()
		rules, rcode, serial := server.look(t, owner)
		if rcode != want || part != "" && !slices.ContainsFunc(rules, func(r string) bool { return strings.Contains(r, part) }) {
			t.Errorf("%s: %s, %q has no %q", about, dns.RcodeToString[rcode], rules, part)
		}
		if serial <= last {
			t.Errorf("%s: the serial is %d, after %d", about, serial, last)
		}
		last = serial
	}
	url := func(n int) string { return fmt.Sprintf("https://example.org/version/%d", n) }
	p.register(id.String(), vocabulary.Persistence{}, url(0))
	expect("registered", "!"+url(0)+"!", dns.RcodeSuccess)
	for n := 1; n <= 100; n++ {
		if _, err := p.registrar.Update(p.ctx, id, 0, func(r *vocabulary.Record) error {
			r.Targets[0].URL = url(n)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		expect(fmt.Sprint("version ", n), "!"+url(n)+"!", dns.RcodeSuccess)
	}
	if _, err := p.registrar.Withdraw(p.ctx, id, 0, "It is lost.", vocabulary.ID{}); err != nil {
		t.Fatal(err)
	}
	expect("withdrawn", "RES:http N2P ", dns.RcodeSuccess)
	if _, err := p.registrar.Reinstate(p.ctx, id, 0); err != nil {
		t.Fatal(err)
	}
	expect("back again", "!"+url(100)+"!", dns.RcodeSuccess)
	if _, err := p.registrar.Update(p.ctx, id, 0, func(r *vocabulary.Record) error {
		r.Readers = []string{"group:elders"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	expect("not for everybody", "", dns.RcodeNameError)

	// So does a change of how the namespace is published.
	key, err := p.registrar.ParsePrefix("urn:paradisec")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.registrar.SetNamespace(p.ctx, key, 0, func(ns *vocabulary.Namespace) error {
		ns.Publication = vocabulary.Publication{}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, rcode, _ := server.look(t, owner); rcode != dns.RcodeRefused {
		t.Errorf("no longer published: %s", dns.RcodeToString[rcode])
	}
}
