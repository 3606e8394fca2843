package client

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// TestHTTPSMisbehaviour: the client rejects such answers of a server for DNS over HTTPS, and
// the error says why.
func TestHTTPSMisbehaviour(t *testing.T) {
	ca := newAuthority(t)
	s := newPrivateServer(t, paradisecZone, ca.server(time.Hour, "127.0.0.1"))
	send := func(status int, kind string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			if status == http.StatusFound {
				w.Header().Set("Location", "/elsewhere")
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}
	other := packed(new(dns.Msg).SetReply(new(dns.Msg).SetQuestion("other.example.", dns.TypeNAPTR)), func(b []byte) { b[0], b[1] = 0, 0 })
	for _, tt := range []struct {
		about string
		web   http.HandlerFunc
		want  string
		asked int // how often
	}{
		{"not there", send(http.StatusNotFound, "text/plain", nil), "HTTP status 404", 1},
		{"a redirect", send(http.StatusFound, messageType, nil), "HTTP status 302", 1},
		{"fails", send(http.StatusBadGateway, "text/html", nil), "HTTP status 502", 2},
		{"too often", send(http.StatusTooManyRequests, "text/html", nil), "HTTP status 429", 2},
		{"a page", send(http.StatusOK, "text/html; charset=utf-8", []byte("<p>Please log in.")), "not a DNS message", 1},
		{"rubbish", send(http.StatusOK, messageType, []byte("rubbish")), errMalformed.Error(), 2},
		{"something else", send(http.StatusOK, messageType, other), errMalformed.Error(), 2},
		{"much", send(http.StatusOK, messageType, make([]byte, maxMessage+1)), "too long", 2},
	} {
		s.web = tt.web
		before := len(s.seen())
		d := newDNS(t, DNSOptions{Servers: parsed(t, s.https.URL), RootCAs: ca.pool, Tries: 2})
		res, err := d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
		d.Close()
		if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), tt.want) || len(s.seen())-before != tt.asked {
			t.Errorf("%s: %v after %d requests, want %q after %d\n%s", tt.about, err, len(s.seen())-before, tt.want, tt.asked, res.Trace)
		}
	}
}

// TestAge: the age of an answer in an HTTP cache reduces its TTL.
func TestAge(t *testing.T) {
	q := question{"paradisec.urn.example.", dns.TypeNAPTR}.message(manner{transport: netHTTPS, edns: true})
	server := newNameServer(t, paradisecZone)
	header := http.Header{"Content-Type": {messageType}, "Age": {"3000"}}
	m, err := readHTTPS(q, http.StatusOK, header, packed(server.answer(q), nil))
	if err != nil || m.Answer[0].Header().Ttl != 600 {
		t.Errorf("%v, %v", m, err)
	}
	header.Set("Age", "999999999")
	if m, err = readHTTPS(q, http.StatusOK, header, packed(server.answer(q), nil)); err != nil || m.Answer[0].Header().Ttl != 0 {
		t.Errorf("%v, %v", m, err)
	}
}

// FuzzHTTPS: whatever a server for DNS over HTTPS sends, an accepted message answers the
// question.
func FuzzHTTPS(f *testing.F) {
	q := question{"paradisec.urn.example.", dns.TypeNAPTR}.message(manner{transport: netHTTPS, edns: true})
	m := new(dns.Msg).SetReply(q)
	m.Answer = parseZone(f, paradisecZone)
	f.Add(200, messageType, "", packed(m, nil))
	f.Add(200, messageType+"; x=y", "30", packed(m, nil)[:40])
	f.Add(200, "text/html", "-1", []byte("<p>"))
	f.Add(404, "", "99999999999", []byte{})
	f.Fuzz(func(t *testing.T, status int, kind, age string, body []byte) {
		reply, err := readHTTPS(q, status, http.Header{"Content-Type": {kind}, "Age": {age}}, body)
		if (reply == nil) == (err == nil) {
			t.Fatalf("%v, %v", reply, err)
		}
		if err == nil && (status != http.StatusOK || !answers(q, reply) || reply.Id != 0) {
			t.Fatalf("%d: %v", status, reply)
		}
	})
}

// FuzzServer: a text is a name server, which reads the same when it is written, or an
// error that says what to write.
func FuzzServer(f *testing.F) {
	for _, text := range []string{
		"192.0.2.1", "[::1]:5353", "localhost", "tls://192.0.2.1", "tls://dns.example.org:8853#other.example.org", "tls://[::1]?pin=" + Pin{}.String(),
		"https://dns.example.org/dns-query", "https://[2001:db8::1]:8443/{?dns}", "tls://a?pin=sha256/x", "tls://a:99999", "http://dns.example.org", "https://user@host/",
		"tls://a b", "://", "tls://#", "https://a/?dns=", "tls://a?pin=" + Pin{0xfb, 0xff}.String() + "&pin=" + Pin{}.String() + "#b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseServer(text)
		if err != nil {
			if stele.KindOf(err) != stele.Invalid || strings.ContainsAny(err.Error(), "\n\x00\x1b") {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		again, err := ParseServer(s.String())
		if err != nil || again.String() != s.String() || again.transport() != s.transport() {
			t.Fatalf("%q is %q, which is %v, %v", text, s, again, err)
		}
		if strings.HasPrefix(strings.ToLower(text), "tls:") != (s.transport() == netTLS) || s.transport() == netTLS && s.name == "" && len(s.pins) == 0 {
			t.Fatalf("%q: %+v", text, s)
		}
	})
}

// FuzzPin: a text is a pin, which reads the same when it is written, or an error.
func FuzzPin(f *testing.F) {
	f.Add(Pin{}.String())
	f.Add("sha256/" + strings.Repeat("A", 42) + "B=")
	f.Add("sha1/AAAA")
	f.Add(strings.Repeat("ab", 32))
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePin(text); err == nil && p.String() != strings.NewReplacer("\r", "", "\n", "").Replace(text) {
			t.Fatalf("%q is %s", text, p)
		}
	})
}
