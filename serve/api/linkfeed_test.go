package api

import (
	"encoding/xml"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/language"
)

// TestLinkFeed: the feed is one of RFC 4287: each element once that must be there once, IDs that are URIs and differ, times, links.
func TestLinkFeed(t *testing.T) {
	languages, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.FixedZone("", -3*3600))
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	one := apijson.LinkFinding{ID: "ark:12345/x5a&b", Scheme: "ark", URL: "https://example.org/?a=1&b=<2>", State: "broken", Cause: "not-found", Status: 404, Since: at}
	moved := apijson.LinkFinding{ID: "ark:12345/x5m", Scheme: "ark", Target: 1, URL: "https://old.example.org/", Final: "https://new.example.org/", State: "moved", Cause: "redirected", Since: at.Add(time.Hour)}
	o := &apijson.LinkOverview{
		Hosts: []*apijson.LinkHost{{Host: "dead.example.org", Down: at.Add(-time.Hour), Cause: "no-name", Count: 3}, {Host: "sample.example.org", Names: 10, Share: 5}},
		First: map[string][]apijson.LinkFinding{"broken": {one}, "moved": {moved}, "blocked": {moved}},
	}
	read := func(l *language.Language) (string, feed) {
		body, last, err := linkFeed(l, "https://id.example.org", key, o)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), "<updated>"+last.UTC().Format(time.RFC3339)+"</updated>") {
			t.Errorf("the feed is of %s:\n%s", last, body)
		}
		var f feed
		if err := xml.Unmarshal(body, &f); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		return string(body), f
	}
	body, f := read(languages.Get("en"))
	if f.Updated != "2026-11-02T07:04:05Z" || len(f.Entries) != 3 || f.Author == "" || f.Title != "Where names of ark:12345/x5 lead" || f.ID != "https://id.example.org/api/v1/linkfeed?prefix=ark%3A12345%2Fx5" {
		t.Errorf("got %+v", f)
	}
	uuid, seen := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), make(map[string]bool)
	last := f.Updated
	for _, e := range f.Entries {
		if !uuid.MatchString(e.ID) || seen[e.ID] || e.Title == "" || e.Summary == "" || e.Updated > last {
			t.Errorf("got %+v", e)
		}
		seen[e.ID], last = true, e.Updated
		if u, err := url.Parse(e.Link.Href); err != nil || u.Host != "id.example.org" || e.Link.Rel != "alternate" {
			t.Errorf("got %+v", e.Link)
		}
		if _, err := time.Parse(time.RFC3339, e.Updated); err != nil {
			t.Error(err)
		}
	}
	if strings.Count(body, `rel="self"`) != 1 || strings.Count(body, "<author>") != 1 || !strings.Contains(body, `xml:lang="en"`) || !strings.Contains(body, "the site says that there is no such page (404) · https://example.org/?a=1&amp;b=&lt;2&gt;") ||
		!strings.Contains(body, "https://old.example.org/ → https://new.example.org/") || !strings.Contains(body, "dead.example.org does not answer") || !strings.Contains(body, "3 names lead there") {
		t.Errorf("got\n%s", body)
	}
	// A link opens the form with the proposal filled in.
	if !strings.Contains(body, `"https://id.example.org/.desk/record?id=ark%3A12345%2Fx5m&amp;take=1#target-1-url"`) || !strings.Contains(body, `"https://id.example.org/.desk/record?id=ark%3A12345%2Fx5a%26b#target-0-url"`) {
		t.Errorf("got\n%s", body)
	}
	o.First["broken"][0].Copy = "https://web.archive.org/web/2015/https://example.org/"
	if body, _ := read(languages.Get("en")); !strings.Contains(body, "x5a%26b&amp;copy=0#target-0-url") {
		t.Errorf("the archived copy is not proposed:\n%s", body)
	}
	_, again := read(languages.Get("pt-BR"))
	for i := range again.Entries {
		if again.Entries[i].ID != f.Entries[i].ID || again.Entries[i].Summary == f.Entries[i].Summary {
			t.Errorf("in Portuguese: %+v", again.Entries[i])
		}
	}
	o.First["broken"][0].Since = at.Add(2 * time.Hour) // it worked meanwhile
	if _, again := read(languages.Get("en")); again.Entries[0].ID == f.Entries[1].ID || again.Updated <= f.Updated {
		t.Error("what broke again is not new")
	}
	if _, none := func() (string, feed) { o.Hosts, o.First = nil, nil; return read(languages.Get("en")) }(); none.Updated == "" || len(none.Entries) != 0 {
		t.Errorf("an empty feed is %+v", none)
	}
}

// TestLinkFeedServed: the feed has a tag, and is not sent again to a client that has it.
func TestLinkFeedServed(t *testing.T) {
	s := newSite(t)
	a := s.ask("rita", "GET", Root+"/linkfeed?prefix=ark:12345", "", "Accept-Language", "pt-BR").want(t, 200)
	if a.get("Content-Type") != atomType || a.get("Content-Language") != "pt-BR" || a.get("Last-Modified") == "" || !strings.Contains(string(a.body), "Aonde levam os nomes") {
		t.Errorf("got %v\n%s", a.Header, a.body)
	}
	s.ask("rita", "GET", Root+"/linkfeed?prefix=ark:12345", "", "Accept-Language", "pt-BR", "If-None-Match", a.get("ETag")).want(t, 304)
	s.ask("rita", "GET", Root+"/linkfeed?prefix=ark:12345", "", "If-None-Match", a.get("ETag")).want(t, 200)
	s.ask("", "GET", Root+"/linkfeed?prefix=ark:12345", "").want(t, 401)
}
