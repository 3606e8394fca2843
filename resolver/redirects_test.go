package resolver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func at(url string) stele.Target { return stele.Target{Service: stele.N2L, URL: url} }

// PURL's chain type (spec/schemes.md, PURL): a name whose target is another name
// here is followed inside.
func TestChain(t *testing.T) {
	r := newRegistry(t, Options{Hosts: []string{"purl.org", "Id.Example.org:8080"}, DefaultTTL: 60})
	r.to("https://purl.org/net/one", at("https://purl.org/net/two"))
	r.to("https://purl.org/net/two", at("HTTPS://PURL.ORG/net/three"))
	r.to("https://purl.org/net/three", stele.Target{Service: stele.N2L, URL: "https://example.org/3", TTL: 5, Status: http.StatusFound})
	r.to("https://purl.org/net/permanent", stele.Target{Service: stele.N2L, URL: "https://purl.org/net/three", Status: http.StatusMovedPermanently})
	r.to("https://purl.org/net/both", stele.Target{Service: stele.N2L, URL: "https://purl.org/net/moved", Status: http.StatusPermanentRedirect})
	r.to("https://purl.org/net/moved", stele.Target{Service: stele.N2L, URL: "https://example.org/m", Status: http.StatusMovedPermanently})
	r.to("https://purl.org/net/tree", stele.Target{Service: stele.N2L, URL: "https://purl.org/net/wood", Partial: true})
	r.to("https://purl.org/net/wood", stele.Target{Service: stele.N2L, URL: "https://example.org/w", Partial: true})
	r.to("https://purl.org/net/handle", at("http://id.example.org:8080/10.1000/a%20b"))
	r.to("10.1000/a b", at("https://example.org/handle"))
	r.to("https://purl.org/net/dangling", at("https://purl.org/net/nothing"))
	r.to("https://purl.org/net/page", at("http://id.example.org:8080/.info/ark:12345/x1"))
	r.to("https://purl.org/net/otherport", at("http://id.example.org/10.1000/a%20b"))
	r.put(stele.Record{ID: r.id("https://purl.org/net/bare")})
	r.to("https://purl.org/net/tobare", at("https://purl.org/net/bare"))
	r.to("https://purl.org/net/gone410", stele.Target{Service: stele.N2L, URL: "https://example.org/x", Status: http.StatusGone})
	r.to("https://purl.org/net/togone", at("https://purl.org/net/gone410"))

	for _, tt := range []struct {
		name, query, url string
		status           int
		ttl              uint32
	}{
		{name: "one", url: "https://example.org/3", status: 302, ttl: 5},
		{name: "permanent", url: "https://example.org/3", status: 302, ttl: 5},
		{name: "both", url: "https://example.org/m", status: 308, ttl: 60},
		{name: "tree/a/b", query: "x=1", url: "https://example.org/w/a/b?x=1", status: 302, ttl: 60},
		{name: "handle", url: "https://example.org/handle", status: 302, ttl: 60},
		{name: "dangling", url: "https://purl.org/net/nothing", status: 302, ttl: 60},
		{name: "page", url: "http://id.example.org:8080/.info/ark:12345/x1", status: 302, ttl: 60},
		{name: "otherport", url: "http://id.example.org/10.1000/a%20b", status: 302, ttl: 60},
		{name: "tobare", url: "https://purl.org/net/bare", status: 302, ttl: 60},
	} {
		id := r.id("https://purl.org/net/" + tt.name)
		res := r.resolve(Request{ID: id, Query: tt.query, Trace: true})
		if res.Kind != Redirect || res.URL != tt.url || res.Status != tt.status || res.TTL != tt.ttl || res.ID != id {
			t.Errorf("%s: %s, %q, status %d, for %d s, of %s\n%v", tt.name, res.Kind, res.URL, res.Status, res.TTL, res.ID, res.Trace)
		}
	}
	if res := r.resolve(Request{ID: r.id("https://purl.org/net/togone")}); res.Kind != Gone || res.Status != http.StatusGone {
		t.Errorf("a chain to what is gone is %s", &res)
	}
	if res := r.resolve(Request{ID: r.id("https://purl.org/net/one")}); res.Record.ID != r.id("https://purl.org/net/one") {
		t.Errorf("the record is %s, and not that of the name", res.Record.ID)
	}
}

func TestChainToTombstone(t *testing.T) {
	r := newRegistry(t, Options{Hosts: []string{"purl.org"}})
	r.to("https://purl.org/net/a", at("https://purl.org/net/b"))
	r.put(stele.Record{ID: r.id("https://purl.org/net/b"), State: stele.Withdrawn, Tombstone: &stele.Tombstone{Reason: "a mistake"}})
	res := r.resolve(Request{ID: r.id("https://purl.org/net/a")})
	if res.Kind != Tombstone || res.Tombstone.Reason != "a mistake" {
		t.Errorf("%s: %+v", &res, res.Tombstone)
	}
}

// An answer is private if any record on the way to it is.
func TestChainPrivate(t *testing.T) {
	r := newRegistry(t, Options{Hosts: []string{"purl.org"}})
	r.to("https://purl.org/net/a", at("https://purl.org/net/b"))
	r.put(stele.Record{ID: r.id("https://purl.org/net/b"), Readers: []string{"user:ana"}, Targets: []stele.Target{at("https://purl.org/net/c")}})
	r.to("https://purl.org/net/c", at("https://example.org/c"))
	for name, want := range map[string]struct {
		url     string
		private bool
	}{
		"a": {"https://example.org/c", true},
		"b": {"https://example.org/c", true},
		"c": {"https://example.org/c", false},
	} {
		res := r.resolve(Request{ID: r.id("https://purl.org/net/" + name), Who: reader("user:ana")})
		if res.URL != want.url || res.Private != want.private {
			t.Errorf("%s: %s, private: %v", name, res.URL, res.Private)
		}
	}
	if res := r.resolve(Request{ID: r.id("https://purl.org/net/a")}); res.URL != "https://purl.org/net/b" || res.Private {
		t.Errorf("the public is led to %s, private: %v", res.URL, res.Private)
	}
}

func TestChainLoops(t *testing.T) {
	r := newRegistry(t, Options{Hosts: []string{"purl.org"}})
	r.to("https://purl.org/net/self", at("http://purl.org/net/self"))
	r.to("https://purl.org/net/a", at("https://purl.org/net/b"))
	r.to("https://purl.org/net/b", at("https://purl.org/net/c"))
	r.to("https://purl.org/net/c", at("https://purl.org/net/b"))
	r.to("https://purl.org/net/grows", stele.Target{Service: stele.N2L, URL: "https://purl.org/net/grows/more", Partial: true})
	for i := range maxRedirects + 1 {
		r.to(fmt.Sprintf("https://purl.org/long/%d", i), at(fmt.Sprintf("https://purl.org/long/%d", i+1)))
	}
	r.to(fmt.Sprintf("https://purl.org/long/%d", maxRedirects+1), at("https://example.org/"))
	for _, name := range []string{"net/self", "net/a", "net/b", "net/grows", "net/grows/x", "long/0"} {
		id := r.id("https://purl.org/" + name)
		_, err := r.Resolve(t.Context(), Request{ID: id, Trace: true})
		if !errors.Is(err, ErrLoop) || stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if res := r.resolve(Request{ID: r.id("https://purl.org/long/3")}); res.URL != "https://example.org/" {
		t.Errorf("a chain of %d names leads to %s", maxRedirects-1, res.URL)
	}
}
