package api

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/webtest"
)

func TestPage(t *testing.T) {
	s := newSite(t)
	all := make(map[string]bool) // what has an ID, on any page
	shown := make(map[string]bool)
	paths := []string{Root, Root + "?group=" + web.Documents}
	var titles []string
	for _, g := range s.handler.view("https://id.example.org").Groups {
		titles = append(titles, g.Title)
		paths = append(paths, Root+"?group="+g.Slug())
		for _, op := range g.Operations {
			if op.URL != Root+"?group="+g.Slug()+"#op-"+op.Name {
				t.Errorf("%s is described at %s", op.Name, op.URL)
			}
		}
	}
	for _, path := range paths {
		for _, tongue := range []string{"en", "pt-BR"} {
			a := s.ask("", "GET", path, "", "Accept", "text/html", "Accept-Language", tongue).want(t, 200)
			if a.get("Content-Security-Policy") != web.Policy || a.get("Content-Language") != tongue || !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Cookie") || len(a.body) > 400_000 {
				t.Errorf("%s: %d bytes, %v", path, len(a.body), a.Header)
			}
			for _, text := range webtest.English(a.body, titles...) { // the operations are described in English
				t.Errorf("%s in Portuguese has %s", path, text)
			}
			for id := range checkPage(t, path, a.body) {
				all[id] = true
			}
			for i := range s.handler.table {
				if strings.Contains(a.body, "https://id.example.org"+Root) && strings.Contains(a.body, `<span class="badge">`+s.handler.table[i].name+"</span>") {
					shown[s.handler.table[i].name] = true
				}
			}
		}
	}
	for i := range s.handler.table {
		if name := s.handler.table[i].name; !all["op-"+name] || !shown[name] {
			t.Errorf("%s is not described on a page", name)
		}
	}
	for _, name := range s.handler.described().Schemas() {
		if !all["schema-"+name] {
			t.Errorf("the schema %s is not on a page", name)
		}
	}
	for words, want := range map[string]string{"MINT": "op-mint", "records/{id} delete": "op-deleteRecord", "no-such-word": "No operation has these words."} {
		if a := s.ask("", "GET", Root+"?q="+url.QueryEscape(words), "", "Accept", "text/html").want(t, 200); !strings.Contains(a.body, want) {
			t.Errorf("a search for %q does not find %s:\n%s", words, want, a.body)
		}
	}
	s.ask("", "GET", Root+"?group=nothing", "", "Accept", "text/html").want(t, 400)
	if a := s.ask("", "GET", Root+"/", "", "Accept", "application/json").want(t, 200); a.get("Content-Type") != apijson.JSON || !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Accept") {
		t.Errorf("got %v", a.Header)
	}
	tag := s.ask("", "GET", Root+"/openapi.json", "").want(t, 200).get("ETag")
	s.ask("", "GET", Root+"/openapi.json", "", "If-None-Match", tag).want(t, 304)
}

// checkPage returns the IDs of a page that has no scripts, and no link to an ID that is not there.
func checkPage(t *testing.T, path, body string) map[string]bool {
	t.Helper()
	ids, refs := make(map[string]bool), make(map[string]bool)
	d := xml.NewDecoder(strings.NewReader(body))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == "script" {
			t.Errorf("%s: there is a script", path)
		}
		for _, attr := range e.Attr {
			switch name := attr.Name.Local; {
			case name == "id" && ids[attr.Value]:
				t.Errorf("%s: two elements are called %s", path, attr.Value)
			case name == "id":
				ids[attr.Value] = true
			case name == "href" && strings.HasPrefix(attr.Value, "#"):
				refs[attr.Value[1:]] = true
			}
		}
	}
	for ref := range refs {
		if !ids[ref] {
			t.Errorf("%s: %s is not there", path, ref)
		}
	}
	return ids
}

// TestPageHost holds that examples for a shell never use a Host that is not the server's.
func TestPageHost(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Base = ""
		o.OwnHost = func(r *http.Request) bool { return r.Host == "id.example.net:8080" || r.Host == "[2001:db8::1]" }
	})
	for host, want := range map[string]string{
		"id.example.net:8080": "&#39;http://id.example.net:8080/api/v1/me&#39;",
		"evil.example":        "&#39;https://id.example.org/api/v1/me&#39;",
		"[2001:db8::1]":       "&#39;http://[2001:db8::1]/api/v1/me&#39;",
		"x';rm -rf ~;'":       "&#39;https://id.example.org/api/v1/me&#39;",
		"":                    "&#39;https://id.example.org/api/v1/me&#39;",
	} {
		r := s.request("GET", Root+"?group=users-and-tokens")
		r.Host = host
		if a := s.send(r).want(t, 200); !strings.Contains(a.body, want) || strings.Contains(a.body, "rm -rf") || strings.Contains(a.body, "evil") {
			t.Errorf("%q: no %s on the page", host, want)
		}
	}
}
