package dnsd

import (
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
)

// asking is a question with options of EDNS.
func asking(name string, qtype uint16, options ...dns.EDNS0) *dns.Msg {
	m := question(name, qtype)
	m.SetEdns0(1232, false)
	m.IsEdns0().Option = options
	return m
}

// option returns an option of an answer, or nil.
func option(m *dns.Msg, code uint16) dns.EDNS0 {
	if m == nil || m.IsEdns0() == nil {
		return nil
	}
	for _, o := range m.IsEdns0().Option {
		if o.Option() == code {
			return o
		}
	}
	return nil
}

func TestIdentity(t *testing.T) {
	const name = "ns1.example.org"
	d := newOfflineServer(t, Options{Identity: name})
	for _, from := range []peer{someone, caller} {
		for _, about := range []string{"a.001.ab1.paradisec.example.", "none.paradisec.example.", "example."} {
			got, _ := option(d.ask(asking(about, dns.TypeNAPTR, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}), from), dns.EDNS0NSID).(*dns.EDNS0_NSID)
			if got == nil || got.Nsid != hex.EncodeToString([]byte(name)) {
				t.Errorf("%s: NSID %v", about, got)
			}
			if got := option(d.ask(asking(about, dns.TypeNAPTR), from), dns.EDNS0NSID); got != nil {
				t.Errorf("%s: who did not ask is told %v", about, got)
			}
		}
		for about, want := range map[string]string{
			"id.server.": "NOERROR aa answer:TXT", "ID.Server.": "NOERROR aa answer:TXT", "hostname.bind.": "NOERROR aa answer:TXT",
			"version.bind.": "REFUSED", "version.server.": "REFUSED", "server.": "REFUSED",
		} {
			m := question(about, dns.TypeTXT)
			m.Question[0].Qclass = dns.ClassCHAOS
			r := d.ask(m, from)
			if got := brief(r); got != want {
				t.Errorf("%s: %s, want %s", about, got, want)
			}
			if len(r.Answer) == 1 && (r.Answer[0].(*dns.TXT).Txt[0] != name || r.Answer[0].Header().Class != dns.ClassCHAOS) {
				t.Errorf("%s: %v", about, r.Answer[0])
			}
		}
	}
	if got := brief(d.ask(question("id.server.", dns.TypeTXT), someone)); got != "REFUSED" {
		t.Errorf("in the class of the Internet: %s", got)
	}
	for text, good := range map[string]bool{name: true, "": true, strings.Repeat("x", maxIdentity): true, strings.Repeat("x", maxIdentity+1): false, "a\nb": false, "ñ": false} {
		if err := CheckIdentity(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestExpire(t *testing.T) {
	d := newOfflineServer(t, Options{})
	for _, from := range []peer{someone, caller} {
		for about, want := range map[string]bool{"paradisec.example.": true, "none.paradisec.example.": false, "example.": false} {
			got, _ := option(d.ask(asking(about, dns.TypeSOA, &dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE, Empty: true}), from), dns.EDNS0EXPIRE).(*dns.EDNS0_EXPIRE)
			if (got != nil) != want || got != nil && got.Expire != publish.SOAExpire {
				t.Errorf("%s: EXPIRE %v, want one: %t", about, got, want)
			}
		}
		if got := option(d.ask(asking("paradisec.example.", dns.TypeTXT, &dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE, Empty: true}), from), dns.EDNS0EXPIRE); got != nil {
			t.Errorf("of a TXT record: %v", got)
		}
	}
}

// TestRefusalReasons checks that refusals say why (RFC 8914), and other answers have no
// such reason.
func TestRefusalReasons(t *testing.T) {
	d := newOfflineServer(t, Options{})
	chaos := asking("version.bind.", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	for _, test := range []struct {
		about string
		m     *dns.Msg
		rcode int
		code  uint16
	}{
		{"elsewhere", asking("example.", dns.TypeSOA), dns.RcodeRefused, dns.ExtendedErrorCodeNotAuthoritative},
		{"a transfer", asking("paradisec.example.", dns.TypeAXFR), dns.RcodeRefused, dns.ExtendedErrorCodeProhibited},
		{"another class", chaos, dns.RcodeRefused, dns.ExtendedErrorCodeNotSupported},
		{"mailboxes", asking("paradisec.example.", dns.TypeMAILB), dns.RcodeNotImplemented, dns.ExtendedErrorCodeNotSupported},
		{"nothing wrong", asking("paradisec.example.", dns.TypeSOA), dns.RcodeSuccess, 0},
		{"a name that is not there", asking("none.paradisec.example.", dns.TypeSOA), dns.RcodeNameError, 0},
	} {
		for range 2 { // what one client is told does not stay for the next
			r := d.ask(test.m, someone)
			got, _ := option(r, dns.EDNS0EDE).(*dns.EDNS0_EDE)
			if r.Rcode != test.rcode || (got != nil) != (test.code != 0) || got != nil && got.InfoCode != test.code {
				t.Errorf("%s: %v", test.about, r)
			}
		}
	}
	if r := d.ask(question("example.", dns.TypeSOA), someone); r.IsEdns0() != nil {
		t.Errorf("without EDNS: %v", r)
	}
}

// TestSignedRefusal checks that a signed update or notice is refused in a signed message
// (RFC 8945, section 5.3): the client does not believe another one.
func TestSignedRefusal(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	k := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA256)
	s := serve(p, Options{})
	now, secret := time.Now(), base64.StdEncoding.EncodeToString(k.Secret)
	update := new(dns.Msg).SetUpdate("paradisec.example.")
	for _, text := range []string{"a.paradisec.example. 60 IN A 192.0.2.1", "b.paradisec.example. 60 IN TXT x"} {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		update.Insert([]dns.RR{rr})
		update.RemoveRRset([]dns.RR{rr})
	}
	for about, test := range map[string]struct {
		m     *dns.Msg
		rcode int
	}{
		"an update":      {update, dns.RcodeRefused},
		"a notice":       {new(dns.Msg).SetNotify("paradisec.example."), dns.RcodeNotImplemented},
		"a foreign zone": {new(dns.Msg).SetQuestion("example.", dns.TypeSOA), dns.RcodeRefused},
	} {
		test.m.SetTsig(k.Name, dns.HmacSHA256, 300, now.Unix())
		wire, mac, err := dns.TsigGenerate(test.m, secret, "", false)
		if err != nil {
			t.Fatal(err)
		}
		answer := s.newWorker(t.Context(), s.tcp).respond(make([]byte, 0, maxMessage), wire, someone, now)
		r := new(dns.Msg)
		if err := r.Unpack(answer); err != nil {
			t.Fatal(err)
		}
		if r.Rcode != test.rcode {
			t.Errorf("%s: %v", about, r)
		}
		if err := dns.TsigVerify(answer, secret, mac, false); err != nil {
			t.Errorf("%s: %v\n%v", about, err, r)
		}
		wire[len(wire)-20] ^= 1
		if err := r.Unpack(s.newWorker(t.Context(), s.tcp).respond(make([]byte, 0, maxMessage), wire, someone, now)); err != nil || r.Rcode != dns.RcodeNotAuth {
			t.Errorf("%s, with a wrong signature: %v, %v", about, err, r)
		}
	}
}

// TestNotifySource checks that notices are sent from the address that secondaries know as
// the primary's.
func TestNotifySource(t *testing.T) {
	addrs := func(texts ...string) (list []netip.Addr) {
		for _, text := range texts {
			list = append(list, netip.MustParseAddr(text))
		}
		return list
	}
	for _, test := range []struct {
		listen []string
		from   []netip.Addr
		v4, v6 string
	}{
		{nil, nil, "invalid IP", "invalid IP"},
		{[]string{"[::]:53"}, nil, "invalid IP", "invalid IP"},
		{[]string{"192.0.2.1:53"}, nil, "192.0.2.1", "invalid IP"},
		{[]string{"[::]:53", "[2001:db8::1]:53", "[::ffff:192.0.2.1]:53", "192.0.2.2:53"}, nil, "192.0.2.1", "2001:db8::1"},
		{[]string{"192.0.2.1:53", "[2001:db8::1]:53"}, addrs("192.0.2.9"), "192.0.2.9", "2001:db8::1"},
		{[]string{"0.0.0.0:53"}, addrs("2001:db8::9", "192.0.2.9"), "192.0.2.9", "2001:db8::9"},
	} {
		s := &Server{o: Options{NotifyFrom: test.from}}
		for _, text := range test.listen {
			s.addrs = append(s.addrs, netip.MustParseAddrPort(text))
		}
		n := &notifier{s: s}
		if v4, v6 := n.source(true).String(), n.source(false).String(); v4 != test.v4 || v6 != test.v6 {
			t.Errorf("%v, %v: %s and %s, want %s and %s", test.listen, test.from, v4, v6, test.v4, test.v6)
		}
	}
}
