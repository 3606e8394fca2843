package test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// lsidServer is the program, as an authority of LSIDs.
type lsidServer struct {
	t      *testing.T
	folder string
	web    string // URL
	dns    string // address
}

// stele runs the program on the folder.
func (s *lsidServer) stele(stdin string, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), stele(s.t), append(args, "--data", s.folder)...)
	cmd.Env, cmd.Stdin = environ(), strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("stele %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// start starts the program. The caller ends it with stop.
func (s *lsidServer) start() (stop func()) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), stele(s.t), "serve", "--json", "--data", s.folder, "--http", "127.0.0.1:0", "--dns", "127.0.0.1:0", "--lsid-allow", "127.0.0.1")
	cmd.Env = environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var at struct{ HTTP, DNS string }
	if err := json.NewDecoder(out).Decode(&at); err != nil || at.DNS == "" {
		s.t.Fatalf("the server says %+v, %v\n%s", at, err, said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.web, s.dns = at.HTTP, at.DNS
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// get asks the web without following redirects. Pairs of header fields may follow.
func (s *lsidServer) get(url string, head ...string) (resp *http.Response, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	if resp, err = http.DefaultTransport.RoundTrip(r); err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(text)
}

// An LSID is one record over all protocols: the web, THTTP, the DNS and that of LSIDs, whose clients go from the SRV
// record to the documents of the authority, and from these to metadata and data. Data are the same after a restart.
func TestLSIDProtocol(t *testing.T) {
	const name = "urn:lsid:example.org:birds:robin"
	var content atomic.Pointer[string]
	first, second := "a,b\n", "a,c\n"
	content.Store(&first)
	file := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		_, _ = io.WriteString(w, *content.Load())
	}))
	defer file.Close()
	s := &lsidServer{t: t, folder: filepath.Join(t.TempDir(), "data")}
	s.stele("", "ns", "add", "urn:lsid:example.org")
	s.stele(`{"id":"`+name+`","targets":[{"service":"N2L","url":"https://example.org/robin"},{"service":"N2D","url":"`+file.URL+`","type":"text/csv"}],"metadata":{"what":"A robin"}}`, "import", "-")
	s.stele("", "zone", "add", "urn:lsid:example.org", "--zone", "example.org", "--ns", "ns1.example.org=192.0.2.1", "--resolver", "id.example.org:8080")
	stop := s.start()

	if resp, _ := s.get(s.web + "/" + name); resp.Header.Get("Location") != "https://example.org/robin" {
		t.Errorf("the web answers %s, %v", resp.Status, resp.Header)
	}
	if resp, _ := s.get(s.web + "/uri-res/N2L?" + name); resp.Header.Get("Location") != "https://example.org/robin" {
		t.Errorf("THTTP answers %s, %v", resp.Status, resp.Header)
	}
	if _, body := s.get(s.web+"/"+name, "Accept", "application/ld+json"); !strings.Contains(body, `"A robin"`) {
		t.Errorf("as JSON-LD it is %s", body)
	}
	for _, q := range []struct {
		name string
		kind uint16
		want string
	}{{"_lsid._tcp.example.org.", dns.TypeSRV, "0 0 8080 id.example.org."}, {"robin.birds.example.org.", dns.TypeNAPTR, "https://example.org/robin"}} {
		m := new(dns.Msg).SetQuestion(q.name, q.kind)
		c := dns.Client{Net: "tcp", Timeout: 20 * time.Second}
		a, _, err := c.ExchangeContext(t.Context(), m, s.dns)
		if err != nil || len(a.Answer) == 0 || !strings.Contains(a.String(), q.want) {
			t.Errorf("the DNS answers %v, %v; want %s", a, err, q.want)
		}
	}
	address := func(text, binding string) string {
		t.Helper()
		m := regexp.MustCompile(binding + `"><http:address location="([^"]*)"/>`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in %s", binding, text)
		}
		return m[1]
	}
	_, authority := s.get(s.web + "/authority/")
	_, services := s.get(address(authority, "LSIDAuthorityHTTPBinding") + "/authority/?lsid=" + name)
	if resp, body := s.get(address(services, "LSIDMetadataHTTPBinding") + "?lsid=" + name); resp.Header.Get("Content-Type") != "application/rdf+xml" || !strings.Contains(body, `rdf:about="`+name+`"`) || !strings.Contains(body, ">A robin<") {
		t.Errorf("the metadata are %s", body)
	}
	if _, body := s.get(address(services, "LSIDDataHTTPBinding") + "?lsid=" + name); body != first {
		t.Errorf("the data are %q", body)
	}
	stop()
	content.Store(&second)
	s.start()
	if resp, body := s.get(s.web + "/authority/data?lsid=" + name); resp.StatusCode != http.StatusInternalServerError || resp.Header.Get("LSID-Error-Code") != "500" || !strings.Contains(body, "never change") {
		t.Errorf("other data are answered with %s, %s", resp.Status, body)
	}
	content.Store(&first)
	if _, body := s.get(s.web + "/authority/data?lsid=" + name + "&start=2"); body != "b\n" {
		t.Errorf("the data are %q", body)
	}
}
