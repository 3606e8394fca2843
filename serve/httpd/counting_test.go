package httpd

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/usage"
)

// ledger is a Counter that remembers.
type ledger []string

func (l *ledger) Redirected(id stele.ID, from netip.Addr, agent, referrer string) {
	*l = append(*l, fmt.Sprint("redirect ", id, " ", from, " ", agent, " ", referrer))
}

func (l *ledger) RedirectedByRule(id stele.ID, from netip.Addr, agent, referrer string) {
	*l = append(*l, fmt.Sprint("rule ", id, " ", from, " ", agent, " ", referrer))
}

func (l *ledger) Described(id stele.ID, from netip.Addr, agent string) {
	*l = append(*l, fmt.Sprint("description ", id, " ", from, " ", agent))
}

func (l *ledger) Failed(id stele.ID, from netip.Addr, agent string) {
	*l = append(*l, fmt.Sprint("failure ", id, " ", from, " ", agent))
}

// TestCounting checks which answers count.
func TestCounting(t *testing.T) {
	var l ledger
	s := newSite(t, func(o *Options) {
		o.Counter = &l
		o.Identify = identifyAnn
	})
	s.space("ark:12345")
	s.ruled()
	s.add(`{"id":"ark:12345/x1","aliases":["ark:12345/old"],"url":"https://example.org/1"}`, `{"id":"ark:12345/gone","url":"https://example.org/2"}`)
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/gone"), 0, "wrong", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, target string
		head           []string
		want           string
	}{
		{"GET", "/ark:12345/x1", nil, "redirect ark:12345/x1 192.0.2.1 tester "},
		{"GET", "/ark:/12345/old", nil, "redirect ark:12345/x1 192.0.2.1 tester "},
		{"GET", "/ark:12345/x1", []string{"Referer", "https://www.example.net/page"}, "redirect ark:12345/x1 192.0.2.1 tester https://www.example.net/page"},
		{"GET", "/ark:12345/x1", []string{"Referer", "https://id.example.org/.info/ark:12345/x1"}, "redirect ark:12345/x1 192.0.2.1 tester "},
		{"GET", "/uri-res/N2L?ark:12345/x1", nil, "redirect ark:12345/x1 192.0.2.1 tester "},
		{"GET", "/ark:12345/x1", []string{"Referer", "https://id.example.org/.desk/record?id=ark:12345/x1"}, ""},
		{"GET", "/.info/ark:12345/x1", []string{"Referer", "https://id.example.org/.desk/record?id=ark:12345/x1"}, ""},
		{"GET", "/ark:12345/unknown", []string{"Referer", "https://id.example.org/.desk/"}, ""},
		{"GET", "/ark:12345/x1", []string{"Referer", "https://www.example.net/.desk/"}, "redirect ark:12345/x1 192.0.2.1 tester https://www.example.net/.desk/"},
		{"HEAD", "/ark:12345/x1", nil, ""},
		{"GET", "/ark:12345/x1", []string{"Authorization", "ann"}, ""},
		{"GET", "/.info/ark:12345/x1", nil, "description ark:12345/x1 192.0.2.1 tester"},
		{"GET", "/ark:12345/x1?info", nil, "description ark:12345/x1 192.0.2.1 tester"},
		{"GET", "/ark:12345/x1", []string{"Accept", "application/ld+json"}, "description ark:12345/x1 192.0.2.1 tester"},
		{"GET", "/ark:12345/x1", []string{"Accept", "application/ld+json", "If-None-Match", "*"}, ""},
		{"HEAD", "/.info/ark:12345/x1", nil, ""},
		{"GET", "/ark:12345/gone", nil, ""},
		{"GET", "/ark:12345/unknown", nil, "failure ark:12345/unknown 192.0.2.1 tester"},
		{"GET", "/ark:12345/r007", nil, "rule ark:12345/r007 192.0.2.1 tester "},
		{"GET", "/ark:12345/r007", []string{"Referer", "https://www.example.net/page"}, "rule ark:12345/r007 192.0.2.1 tester https://www.example.net/page"},
		{"GET", "/ark:12345/r007", []string{"Accept", "application/pdf"}, ""},
		{"GET", "/.info/ark:12345/r007", nil, ""},
		{"GET", "/healthz", nil, ""},
		{"GET", "/.well-known/stele", nil, ""},
		{"GET", "/", nil, ""},
	} {
		for _, h := range []*Handler{s.handler, s.learned} {
			l = nil
			r := httptest.NewRequest(c.method, c.target, nil)
			r.RemoteAddr = "192.0.2.1:4711"
			r.Header.Set("User-Agent", "tester")
			for i := 0; i < len(c.head); i += 2 {
				r.Header.Set(c.head[i], c.head[i+1])
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			var want ledger
			if c.want != "" {
				want = ledger{c.want}
			}
			if !slices.Equal(l, want) {
				t.Errorf("%s %s %q: %q was counted, want %q", c.method, c.target, c.head, l, want)
			}
		}
	}
}

// TestReaderForgotten counts the use of a name by a reader with an address of its own, and then looks for that address in all of the
// memory that is in use. The client is another process.
func TestReaderForgotten(t *testing.T) {
	agents, err := usage.NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	countries, err := usage.OpenCountries(filepath.Join("testdata", "countries.mmdb")) // of 127.0.0.0/8, and of 203.0.113.0/24
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	land := func(from netip.Addr) usage.Country {
		found := countries.Country(from)
		if found.String() == "BR" {
			looked++
		}
		return found
	}
	var counter *usage.Counter
	s := newSite(t, func(o *Options) {
		counter = usage.New(usage.Options{Store: nil, Country: land, Agents: agents, Schemes: o.Schemes, Now: o.Now, Space: func(context.Context, stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} }})
		o.Counter = counter
	})
	s.space("ark:12345")
	s.to("ark:12345/x1", "https://example.org/1")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(s.handler, ServerOptions{Connections: 10, PerClient: 10})
	go server.Serve(listener)
	fetch := func(query string) {
		// The address is put together in the other process.
		cmd := exec.Command("sh", "-c", `curl -s -o "$2" -w '%{http_code}' --interface "127.$((70 + 7)).88.99" "$0/$1"`, "http://"+listener.Addr().String(), query, os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) != 3 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for range 20 {
		fetch("ark:12345/x1")
		fetch("ark:12345/unknown")
		fetch(".info/ark:12345/x1")
	}
	if stats := counter.Stats(); stats.Dropped != 0 || looked == 0 {
		t.Errorf("%+v, %d countries were found", stats, looked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	// The address is nowhere in this program: each octet of a pattern is one less.
	patterns := map[string]string{
		"text":       "016-66-77-88",
		"netip.Addr": "\x62\x57\x4c\x7e\xfe\xfe",
		"sixteen":    "\xfe\xfe\x7e\x4c\x57\x62",
	}
	// Goroutines of connections may still be about to end. What they have goes with them; what is kept stays.
	var found []string
	for range 50 {
		memory := heap(t)
		if !bytes.Contains(memory, []byte("ark:12345/x1")) {
			t.Fatal("the dump has not even the name")
		}
		found = found[:0]
		for name, pattern := range patterns {
			if hasLowered(memory, pattern) {
				found = append(found, name)
			}
		}
		clear(memory) // the next dump must not have it
		if len(found) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the address is still in memory, as %q", found)
}

// hasLowered reports whether memory has a text of which each octet is one more than that of the pattern.
func hasLowered(memory []byte, pattern string) bool {
	for i := range len(memory) - len(pattern) + 1 {
		n := 0
		for n < len(pattern) && memory[i+n]-1 == pattern[n] {
			n++
		}
		if n == len(pattern) {
			return true
		}
	}
	return false
}

// heap returns a dump of all memory that is in use.
func heap(t *testing.T) []byte {
	t.Helper()
	dump := filepath.Join(t.TempDir(), "heap")
	file, err := os.Create(dump)
	if err != nil {
		t.Fatal(err)
	}
	overwriteStacks(100)
	for range 3 {
		runtime.GC()
		debug.FreeOSMemory()
	}
	debug.WriteHeapDump(file.Fd())
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	memory, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	return memory
}

// overwriteStacks writes over what goroutines that ended have left on their stacks: others get them, and a dump has what is in their
// frames, though the program can read it no more.
func overwriteStacks(goroutines int) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range goroutines {
		all.Go(func() {
			<-begin // all of them at once, so that each has a stack of its own
			deep(200)
		})
	}
	close(begin)
	all.Wait()
}

//go:noinline
func deep(n int) (sum byte) {
	var page [256]byte
	for i := range page {
		page[i] = byte(n)
	}
	if n > 0 {
		sum = deep(n - 1)
	}
	return sum + page[n]
}

// identifyAnn takes every credential for that of a user.
func identifyAnn(*http.Request) (auth.Principal, error) { return auth.Principal{Name: "ann"}, nil }

// TestCountsAll: redirects of a namespace that counts all uses are not kept by caches, and those of others are.
func TestCountsAll(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.CountsAll = func(id stele.ID) bool { return strings.HasPrefix(id.String(), "ark:12345/") }
	})
	s.space("ark:12345")
	s.space("ark:54321")
	s.add(`{"id":"ark:12345/x1","targets":[{"url":"https://example.org/1","ttl":3600}]}`, `{"id":"ark:54321/x1","targets":[{"url":"https://example.org/2","ttl":3600}]}`)
	for prefix, name := range map[string]string{"ark:12345/r": "ark:12345/r007", "ark:54321/r": "ark:54321/r007"} {
		s.space(prefix, func(ns *stele.Namespace) {
			ns.Rules = []stele.Rule{{Pattern: "{n:digit,3}", Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/{n}", TTL: 3600, Order: 100, Preference: 10}},
				Examples: []stele.RuleExample{{Name: name, Want: "https://example.org/007"}}}}
		})
	}
	for target, want := range map[string]string{"/ark:12345/x1": "private, no-cache", "/ark:54321/x1": "max-age=3600", "/ark:12345/r008": "private, no-cache", "/ark:54321/r008": "max-age=3600"} {
		for _, h := range []*Handler{s.handler, s.learned} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
			if got := w.Header().Get("Cache-Control"); w.Code != http.StatusFound || got != want {
				t.Errorf("%s: %d, Cache-Control: %s, want %s", target, w.Code, got, want)
			}
		}
	}
}

// TestHasLowered: the search finds an address that is there.
func TestHasLowered(t *testing.T) {
	if !hasLowered([]byte("x127.77.88.99"), "016-66-77-88") || hasLowered([]byte("127.77.88.9"), "016-66-77-88") || hasLowered(nil, "0") {
		t.Error("the search does not find what is there, or finds what is not")
	}
}
