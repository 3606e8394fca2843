package api

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web"
)

func TestPage(t *testing.T) {
	s := newSite(t)
	a := s.ask("", "GET", Root, "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8").want(t, 200)
	if a.get("Content-Type") != htmlType || a.get("Content-Security-Policy") != web.Policy {
		t.Errorf("got %v", a.Header)
	}
	// It is well formed, and all that it refers to inside is there.
	ids, refs := make(map[string]bool), make(map[string]bool)
	for dec := xml.NewDecoder(strings.NewReader(a.body)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == "script" {
			t.Error("there is a script")
		}
		for _, attr := range e.Attr {
			switch name := attr.Name.Local; {
			case name == "id" && ids[attr.Value]:
				t.Errorf("two elements are called %s", attr.Value)
			case name == "id":
				ids[attr.Value] = true
			case name == "href" && strings.HasPrefix(attr.Value, "#"):
				refs[attr.Value[1:]] = true
			}
		}
	}
	for ref := range refs {
		if !ids[ref] {
			t.Errorf("%s is not there", ref)
		}
	}
	for i := range s.handler.table {
		op := &s.handler.table[i]
		if !ids["op-"+op.name] || !strings.Contains(a.body, "https://id.example.org"+Root) {
			t.Errorf("%s is not on the page", op.name)
		}
	}
	for _, name := range s.handler.described().Schemas() {
		if !ids["schema-"+name] {
			t.Errorf("the schema %s is not on the page", name)
		}
	}
	if a := s.ask("", "GET", Root+"/", "", "Accept", "application/json").want(t, 200); a.get("Content-Type") != apijson.JSON || !slices.Contains(a.Header.Values("Vary"), "Accept") {
		t.Errorf("got %v", a.Header)
	}
	tag := s.ask("", "GET", Root+"/openapi.json", "").want(t, 200).get("ETag")
	s.ask("", "GET", Root+"/openapi.json", "", "If-None-Match", tag).want(t, 304)
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
		r := s.request("GET", Root)
		r.Host = host
		if a := s.send(r).want(t, 200); !strings.Contains(a.body, want) || strings.Contains(a.body, "rm -rf") || strings.Contains(a.body, "evil") {
			t.Errorf("%q: no %s on the page", host, want)
		}
	}
}
