package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/internal/signtest"
	"github.com/stele-id/stele/ddds"
)

// signedTree is the root, urn.example. with the rules of namespaces, paradisec.example.
// with an archive, and open.example., which is unsigned.
func signedTree(t testing.TB, o signtest.Options, resolver string) (tree signtest.Tree, anchors *dnssec.Anchors) {
	t.Helper()
	_, port, _ := strings.Cut(resolver, ":")
	paradisec := signtest.NewZone(t, "paradisec.example.", `
a.001.ab1 NAPTR 100 10 "RES:https" "N2L:text/html" "!^urn:paradisec:ab1:001:a$!https://data.example/a.html!i" .
gone.001.ab1 NAPTR 100 10 "RES:https" "N2P" "!.*!https://data.example/gone!" .
gone.001.ab1 TXT "withdrawn=2024-05-17T10:00:00Z"
_http._tcp SRV 0 0 `+port+` id.paradisec.example.
id A 127.0.0.1
`, o)
	urn := signtest.NewZone(t, "urn.example.", `
paradisec NAPTR 100 10 "" "" "!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$!\\3.\\2.\\1.paradisec.example.!i" .
paradisec NAPTR 200 10 "s" "thttp+N2L+N2C+N2R" "" _http._tcp.paradisec.example.
open NAPTR 100 10 "" "" "" n.open.example.
here CNAME paradisec
`, o)
	open := signtest.NewZone(t, "open.example.", "n NAPTR 100 10 \"RES:https\" \"N2L\" \"!.*!https://open.example/!\" .\n", signtest.Options{Unsigned: true})
	example := signtest.NewZone(t, "example.", "paradisec NS ns.other.test.\nurn NS ns.other.test.\nopen NS ns.other.test.\n"+paradisec.DS(dns.SHA256)+urn.DS(dns.SHA256), signtest.Options{})
	root := signtest.NewZone(t, ".", "example. NS ns.other.test.\n"+example.DS(dns.SHA256), signtest.Options{})
	for _, z := range []*signtest.Zone{root, example, urn, paradisec, open} {
		tree = append(tree, z.Sign())
	}
	anchors, err := dnssec.ParseAnchors(strings.NewReader(root.Anchor()))
	if err != nil {
		t.Fatal(err)
	}
	return tree, anchors
}

// serveTree starts a name server that answers for zones; change alters its answers.
func serveTree(t testing.TB, tree signtest.Tree, change func(q dns.Question, m *dns.Msg)) *nameServer {
	t.Helper()
	s := newNameServer(t, "")
	s.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool {
		m := tree.Answer(q)
		if opt := q.IsEdns0(); opt == nil || !opt.Do() || !q.CheckingDisabled {
			m.Rcode = dns.RcodeNotImplemented // a validator sets both bits
		}
		if change != nil {
			change(dns.Question{Name: dns.CanonicalName(q.Question[0].Name), Qtype: q.Question[0].Qtype}, m)
		}
		m.Question = q.Question
		if w.LocalAddr().Network() == "udp" {
			m.Truncate(1232)
		}
		_ = w.WriteMsg(m)
		return true
	})
	return s
}

func TestValidate(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://data.example/notes", http.StatusFound)
	}))
	defer web.Close()
	for _, denial := range []signtest.Denial{signtest.NSEC, signtest.NSEC3, signtest.Compact} {
		tree, anchors := signedTree(t, signtest.Options{Denial: denial}, strings.TrimPrefix(web.URL, "http://"))
		d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, serveTree(t, tree, nil))
		for _, tt := range []struct {
			name     string
			location string
			status   dnssec.Status
			why      string
			kind     stele.Kind
			is       error
		}{
			{"urn:paradisec:AB1:001:A", "https://data.example/a.html", dnssec.Secure, "", 0, nil},
			{"urn:open:x", "https://open.example/", dnssec.Insecure, "n.open.example. NAPTR: open.example. is not signed (example. proves that it has no DS record)", 0, nil},
			// The last step is made in clear.
			{"urn:paradisec:AB1:001:A:notes", "https://data.example/notes", dnssec.Insecure, "the last step was made over HTTP, in clear", 0, nil},
			// What is not there is proven.
			{"urn:paradisec:AB1:001:C", "", dnssec.Secure, "", stele.NotFound, ddds.ErrNoSuchName},
			{"urn:nowhere:x", "", dnssec.Secure, "", stele.NotFound, ddds.ErrNoSuchName},
			{"urn:paradisec:AB1:001:gone", "", dnssec.Secure, "", stele.Gone, nil},
		} {
			res, err := d.Resolve(t.Context(), Request{Name: tt.name, Trace: true})
			if (err != nil) != (tt.location == "") || err != nil && stele.KindOf(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%d %s: %v, want %v\n%s", denial, tt.name, err, tt.kind, res.Trace)
				continue
			}
			if res.Location != tt.location || err == nil && (res.DNSSEC != tt.status || !strings.HasSuffix(res.Insecure, tt.why)) || res.Trace.DNSSEC != tt.status {
				t.Errorf("%d %s: %+v\n%s", denial, tt.name, res, res.Trace)
			}
			enc, bad := json.Marshal(res.Trace)
			if bad != nil || !strings.Contains(string(enc), fmt.Sprintf("%q", tt.status)) {
				t.Errorf("%s, %v", enc, bad)
			}
		}
	}
}

// TestTraceOfProof: the trace has the questions for keys, and the status of each answer; a
// cached answer has the same status.
func TestTraceOfProof(t *testing.T) {
	tree, anchors := signedTree(t, signtest.Options{}, "h:1")
	s := serveTree(t, tree, nil)
	d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, s)
	res, err := d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(res.Trace.String(), s.addr.String(), "SERVER")
	for _, want := range []string{
		"1. paradisec.urn.example. NAPTR from SERVER (udp): NOERROR, 2 records for 300 s, secure\n",
		"2. . DNSKEY from SERVER (udp): NOERROR, 1 record for 300 s\n",
		"3. example. DS from SERVER (udp): NOERROR, 1 record for 300 s\n",
		"5. urn.example. DS from SERVER",
		"6. urn.example. DNSKEY from SERVER",
		"a.001.ab1.paradisec.example. NAPTR from SERVER (udp): NOERROR, 1 record for 300 s, secure\n",
		"=> https://data.example/a.html, N2L, text/html, for 300 s, SECURE\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	n := len(s.asked())
	res, err = d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
	if err != nil || res.DNSSEC != dnssec.Secure || len(s.asked()) != n || !strings.Contains(res.Trace.String(), "NAPTR, from memory: NOERROR, 1 record for 300 s, secure") {
		t.Errorf("%v, %v\n%s", res, err, res.Trace)
	}
}

// TestBogus: an answer that was changed is an error that names the link, at every step;
// another server may have a valid answer, but no other way is tried.
func TestBogus(t *testing.T) {
	tree, anchors := signedTree(t, signtest.Options{}, "h:1")
	strip := func(name string, kind uint16) func(dns.Question, *dns.Msg) {
		return func(q dns.Question, m *dns.Msg) {
			if q.Name == name && q.Qtype == kind {
				m.Answer, m.Ns = nil, nil
			}
		}
	}
	for _, tt := range []struct {
		about  string
		name   string
		change func(dns.Question, *dns.Msg)
		link   string
		reason dnssec.Reason
	}{
		{"a tampered rule", paradisec, func(q dns.Question, m *dns.Msg) {
			for _, r := range m.Answer {
				if rule, ok := r.(*dns.NAPTR); ok && q.Name == "a.001.ab1.paradisec.example." {
					rule.Regexp = "!.*!https://evil.example/!"
				}
			}
		}, "a.001.ab1.paradisec.example. NAPTR", dnssec.WrongSignature},
		{"a rule that is not there", paradisec, strip("a.001.ab1.paradisec.example.", dns.TypeNAPTR), "a.001.ab1.paradisec.example. NAPTR", dnssec.NoProof},
		{"no DS record", paradisec, strip("paradisec.example.", dns.TypeDS), "paradisec.example. DS", dnssec.NoProof},
		{"no key", paradisec, strip("urn.example.", dns.TypeDNSKEY), "urn.example. DNSKEY", dnssec.NoKey},
		{"a server that is not there", "urn:paradisec:a:b", strip("_http._tcp.paradisec.example.", dns.TypeSRV), "_http._tcp.paradisec.example. SRV", dnssec.NoProof},
		{"an address that is not there", "urn:paradisec:a:b", strip("id.paradisec.example.", dns.TypeA), "id.paradisec.example. A", dnssec.NoProof},
		{"a tombstone that is not there", "urn:paradisec:ab1:001:gone", strip("gone.001.ab1.paradisec.example.", dns.TypeTXT), "gone.001.ab1.paradisec.example. TXT", dnssec.NoProof},
	} {
		bad := serveTree(t, tree, tt.change)
		d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, bad)
		res, err := First(t.Context(), Request{Name: tt.name, Trace: true}, d, failing{t})
		b, ok := errors.AsType[*dnssec.Bogus](err)
		if !ok || !errors.Is(err, dnssec.ErrBogus) || stele.KindOf(err) != stele.Conflict || b.Name+" "+b.Type != tt.link || b.Reason != tt.reason || res.Location != "" {
			t.Errorf("%s: %v\n%s", tt.about, err, res.Trace)
			continue
		}
		enc, _ := json.Marshal(res.Trace)
		if !strings.Contains(string(enc), `"bogus":{"name":"`+b.Name) || !strings.Contains(err.Error(), "BOGUS: "+tt.link) {
			t.Errorf("%s: %v\n%s", tt.about, err, enc)
		}
		if tt.name != paradisec {
			continue
		}
		// The next server is asked, and believed.
		both := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, bad, serveTree(t, tree, nil))
		if res, err := both.Resolve(t.Context(), Request{Name: tt.name, Trace: true}); err != nil || res.DNSSEC != dnssec.Secure {
			t.Errorf("%s, and a good server: %v\n%s", tt.about, err, res.Trace)
		}
	}
}

// failing is a way that must not be tried.
type failing struct{ t *testing.T }

func (f failing) Resolve(_ context.Context, _ Request) (Result, error) {
	f.t.Error("another way was tried")
	return Result{}, nil
}

// TestTrustAD: the AD bit of a server that is asked over TLS is believed.
func TestTrustAD(t *testing.T) {
	ca := newAuthority(t)
	s := newPrivateServer(t, paradisecZone, ca.server(time.Hour, "127.0.0.1"))
	d := newDNS(t, DNSOptions{Servers: parsed(t, "tls://"+s.tls), RootCAs: ca.pool, DNSSEC: TrustAD})
	defer d.Close()
	word := func(ad func(q *dns.Msg) bool, change func(m *dns.Msg)) {
		s.behave(func(w io.Writer, q *dns.Msg) bool {
			m := s.nameServer.answer(q)
			m.AuthenticatedData = ad(q)
			if opt := q.IsEdns0(); !q.AuthenticatedData || q.CheckingDisabled || opt.Do() {
				m.Rcode = dns.RcodeNotImplemented
			}
			if change != nil {
				change(m)
			}
			_, err := w.Write(frame(packed(m, nil)))
			return err == nil
		})
	}
	always := func(*dns.Msg) bool { return true }
	word(always, nil)
	if res, err := d.Resolve(t.Context(), Request{Name: paradisec}); err != nil || res.DNSSEC != dnssec.Secure {
		t.Errorf("%+v, %v", res, err)
	}
	word(func(q *dns.Msg) bool { return strings.HasSuffix(q.Question[0].Name, "urn.example.") }, nil)
	if res, err := d.Resolve(t.Context(), Request{Name: paradisec}); err != nil || res.DNSSEC != dnssec.Insecure || !strings.HasPrefix(res.Insecure, "a.001.ab1.paradisec.example. NAPTR: the name server does not say") {
		t.Errorf("%+v, %v", res, err)
	}
	fail := func(code uint16, text string) func(*dns.Msg) {
		return func(m *dns.Msg) {
			m.Rcode, m.Answer = dns.RcodeServerFailure, nil
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: code, ExtraText: text}}
		}
	}
	word(always, fail(dns.ExtendedErrorCodeSignatureExpired, "signature\x1b of 2005"))
	_, err := d.Resolve(t.Context(), Request{Name: paradisec})
	if !errors.Is(err, dnssec.ErrBogus) || !strings.Contains(err.Error(), `BOGUS: paradisec.urn.example. NAPTR: the name server says: Signature Expired: signature\x1b of 2005`) {
		t.Errorf("%v", err)
	}
	word(always, fail(dns.ExtendedErrorCodeNetworkError, ""))
	if _, err := d.Resolve(t.Context(), Request{Name: paradisec}); errors.Is(err, dnssec.ErrBogus) || stele.KindOf(err) != stele.Unavailable {
		t.Errorf("%v", err)
	}
}
