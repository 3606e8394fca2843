package dnsd

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func rawURL(msg []byte) string { return base64.RawURLEncoding.EncodeToString(msg) }

// askHTTPS asks in one of the two ways.
func askHTTPS(t *testing.T, web *httptest.Server, method string, msg []byte) (*http.Response, []byte) {
	t.Helper()
	target, body := web.URL+"/dns-query", io.Reader(bytes.NewReader(msg))
	if method == http.MethodGet {
		target, body = target+"?dns="+rawURL(msg), nil
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", messageType)
	}
	resp, err := web.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// TestHTTPS sends questions by GET and by POST, and checks how long answers may be kept.
func TestHTTPS(t *testing.T) {
	s, from := listen(t, "127.0.0.1:0", Options{})
	web := httptest.NewUnstartedServer(s.HTTPS())
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	from.change(t, "two.paradisec.example.", "two.paradisec.example. 120 TXT b")
	q := func(name string, qtype uint16) []byte {
		m := paddedQuestion(name, qtype, 0)
		m.Id = 0
		return framed(t, m)[2:]
	}
	for _, tt := range []struct {
		msg   []byte
		want  string
		cache string
	}{
		{q("a.001.ab1.paradisec.example.", dns.TypeNAPTR), "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR additional:OPT", "max-age=600"},
		{q("two.paradisec.example.", dns.TypeTXT), "NOERROR aa answer:TXT additional:OPT", "max-age=120"},
		{q("large.paradisec.example.", dns.TypeTXT), "NOERROR aa answer:TXT additional:OPT", "max-age=600"},
		{q("none.paradisec.example.", dns.TypeTXT), "NXDOMAIN aa authority:SOA additional:OPT", "max-age=300"},
		{q("example.", dns.TypeTXT), "REFUSED additional:OPT", "no-store"},
		{q("paradisec.example.", dns.TypeAXFR), "REFUSED additional:OPT", "no-store"},
		{framed(t, withCookie(question("paradisec.example.", dns.TypeSOA), "2464c4abcf10c957"))[2:], "NOERROR aa answer:SOA additional:OPT", "no-store"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			resp, body := askHTTPS(t, web, method, tt.msg)
			r := new(dns.Msg)
			if err := r.Unpack(body); err != nil || brief(r) != tt.want || resp.StatusCode != http.StatusOK || resp.Proto != "HTTP/2.0" {
				t.Errorf("%s: %s, %v, want %s", method, brief(r), err, tt.want)
			}
			if got := resp.Header.Get("Cache-Control"); got != tt.cache || resp.Header.Get("Content-Type") != messageType {
				t.Errorf("%s %s: %v, want %s", method, brief(r), resp.Header, tt.cache)
			}
			if slices.Contains(optionsOf(r), dns.EDNS0TCPKEEPALIVE) || slices.Contains(optionsOf(r), dns.EDNS0PADDING) && len(body)%padTo != 0 {
				t.Errorf("%d bytes, %v", len(body), optionsOf(r))
			}
		}
	}
	if st := s.Stats(); st.HTTPS != 14 || st.TCP != 0 {
		t.Errorf("%+v", st)
	}
}

// TestLeastTTL checks that an answer holds as long as all of its records, and a negative
// one as long as the SOA record says, in both its fields.
func TestLeastTTL(t *testing.T) {
	rr := func(text string) dns.RR {
		r, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, tt := range []struct {
		rcode      int
		answer, ns []dns.RR
		want       string
	}{
		{0, []dns.RR{rr("a. 600 TXT x"), rr("a. 20 TXT y"), rr("a. 300 TXT z")}, []dns.RR{rr("a. 5 NS b.")}, "max-age=20"},
		{0, []dns.RR{rr("a. 0 TXT x")}, nil, "max-age=0"},
		{0, nil, []dns.RR{rr("a. 600 SOA b. c. 1 2 3 4 60"), rr("a. 5 NSEC b. A")}, "max-age=60"},
		{dns.RcodeNameError, nil, []dns.RR{rr("a. 30 SOA b. c. 1 2 3 4 60")}, "max-age=30"},
		{dns.RcodeServerFailure, nil, []dns.RR{rr("a. 30 SOA b. c. 1 2 3 4 60")}, "no-store"},
		{0, nil, nil, "no-store"},
	} {
		m := new(dns.Msg).SetRcode(question("a.", dns.TypeTXT), tt.rcode)
		m.Answer, m.Ns = tt.answer, tt.ns
		if got := keptFor(framed(t, m)[2:], false); got != tt.want {
			t.Errorf("%v: %s, want %s", m, got, tt.want)
		}
	}
}

func TestHTTPSBadRequests(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{})
	h := s.HTTPS()
	good := string(framed(t, question("paradisec.example.", dns.TypeSOA))[2:])
	answer := string(framed(t, new(dns.Msg).SetReply(question("paradisec.example.", dns.TypeSOA)))[2:])
	for _, tt := range []struct {
		method, target, kind, body string
		clear                      bool
		want                       int
	}{
		{"GET", "/dns-query", "", "", false, 400},
		{"GET", "/dns-query?dns=", "", "", false, 400},
		{"GET", "/dns-query?dns=AAAA", "", "", false, 400},
		{"GET", "/dns-query?dns=AAA=", "", "", false, 400},
		{"GET", "/dns-query?dns=%zz", "", "", false, 400},
		{"GET", "/dns-query?name=paradisec.example.", "", "", false, 400},
		{"GET", "/dns-query?dns=" + strings.Repeat("AAAA", 30_000), "", "", false, 400},
		{"POST", "/dns-query", messageType, "", false, 400},
		{"POST", "/dns-query", messageType, "rubbish", false, 400},
		{"POST", "/dns-query", messageType, answer, false, 400},
		{"POST", "/dns-query", messageType, strings.Repeat("x", maxMessage+1), false, 413},
		{"POST", "/dns-query", "text/plain", good, false, 415},
		{"POST", "/dns-query", "", good, false, 415},
		{"PUT", "/dns-query", messageType, good, false, 405},
		{"POST", "/dns-query", messageType, good, true, 403},
		{"POST", "/dns-query", messageType + "; charset=x", good, false, 200},
	} {
		r := httptest.NewRequest(tt.method, "https://ns.example"+tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.kind)
		if r.TLS = (&tls.ConnectionState{}); tt.clear {
			r.TLS = nil
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want || w.Code != 200 && w.Header().Get("Cache-Control") != "no-store" || (w.Code == 405) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %.40s %s: %d %v, want %d", tt.method, tt.target, tt.kind, w.Code, w.Header(), tt.want)
		}
	}
	// When all places are taken, and when the server has ended.
	few := s.HTTPS().(*overHTTPS)
	few.slots = make(chan struct{}, 1)
	if !few.begin() || few.begin() {
		t.Error("one place takes two")
	}
	few.end()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "https://ns.example/", strings.NewReader(good))
	r.Header.Set("Content-Type", messageType)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("after the end: %d", w.Code)
	}
}

// FuzzHTTPS: whatever comes in a request, what goes out is an answer that may be kept
// for as long as it holds, or a status.
func FuzzHTTPS(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add("POST", "", messageType, s)
		f.Add("GET", fmt.Sprintf("dns=%s", rawURL(s)), "", []byte{})
	}
	f.Add("GET", "dns=%41&dns=", "x/y; =", []byte("x"))
	d := newOfflineServer(f, Options{})
	h := d.s.HTTPS()
	f.Fuzz(func(t *testing.T, method, query, kind string, body []byte) {
		if method != http.MethodGet {
			method = http.MethodPost
		}
		r := httptest.NewRequest(method, "https://ns.example/dns-query", strings.NewReader(string(body)))
		r.URL.RawQuery = query
		r.Header["Content-Type"] = []string{kind}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			if w.Code < 400 || w.Code >= 500 {
				t.Fatalf("%d", w.Code)
			}
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(w.Body.Bytes()); err != nil || !m.Response {
			t.Fatalf("%x: %v", w.Body.Bytes(), err)
		}
		if got := w.Header().Get("Cache-Control"); m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError && got != "no-store" {
			t.Fatalf("%v may be kept: %s", m, got)
		}
	})
}
