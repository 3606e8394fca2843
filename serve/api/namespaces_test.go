package api

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/serve/api/openapi"
)

func TestNamespaces(t *testing.T) {
	s := newSite(t)
	at := Root + "/namespaces/ark:12345/q7"
	s.ask(theOwner, "GET", at, "").want(t, 404)
	s.ask(theEditor, "PUT", at, `{"title":"Maps"}`).want(t, 403)
	s.ask(theOwner, "PUT", at, `{"title":"Maps"}`, "If-Match", `"v1"`).want(t, 412)
	a := s.ask(theOwner, "PUT", at, `{"title":"Maps"}`, "If-None-Match", "*").want(t, 201)
	if a.get("ETag") != `"v1"` || a.get("Location") != at {
		t.Errorf("got %v", a.Header)
	}
	s.ask(theOwner, "PUT", at, `{"title":"Maps"}`, "If-None-Match", "*").want(t, 412)
	s.ask(theOwner, "PUT", at, `{"title":"Maps"}`).want(t, 428)
	s.ask(theOwner, "PUT", at, `{"title":"Old maps","scheme":"ark","prefix":"ark:12345/q7"}`, "If-Match", `"v1"`).want(t, 200)
	s.ask(theOwner, "PUT", at, `{"title":"Old maps","prefix":"ark:12345/q8"}`, "If-Match", `*`).want(t, 400)
	s.ask(theOwner, "PATCH", at, `{"hosts":["example.org"]}`, "If-Match", `"v1"`).want(t, 412)
	a = s.ask(theOwner, "PATCH", at, `{"hosts":["example.org"],"grants":[{"to":"user:nemo","role":"reader"}]}`, "If-Match", `"v2"`).want(t, 200)
	if !strings.Contains(a.body, `"title":"Old maps"`) {
		t.Errorf("a patch lost the title: %s", a.body)
	}
	for _, bad := range []string{`{"prefix":"ark:12345/q8"}`, `{"prefix":null}`, `{"scheme":"urn"}`, `{"hosts":"example.org"}`, `{"colour":1}`, `{"grants":[{"to":"nemo","role":"reader"}]}`, `[]`, `{"ttl":1,"ttl":2}`} {
		s.ask(theOwner, "PATCH", at, bad).want(t, 400)
	}
	s.ask(theOutsider, "GET", at, "").want(t, 200)
	s.ask(theOutsider, "GET", at, "", "If-None-Match", `"v3"`).want(t, 304)
	s.ask(theOutsider, "GET", at, "", "If-Match", `"v3"`, "If-None-Match", `"v3"`).want(t, 304)
	s.ask(theOutsider, "GET", at, "", "If-Match", `"v2"`, "If-None-Match", `"v3"`).want(t, 412) // If-Match counts first
	s.ask(theOutsider, "PATCH", at, `{"title":"Mine"}`).want(t, 403)
	s.ask(theOutsider, "GET", Root+"/namespaces/ark:12345", "").want(t, 404)
	s.ask(theOutsider, "PATCH", Root+"/namespaces/ark:12345", `{"title":"Mine"}`).want(t, 404)
	s.ask(theOwner, "GET", Root+"/namespaces/ark:", "").want(t, 404)
	s.ask(theOwner, "PUT", Root+"/namespaces/ark:77777", `{"owner":"ann"}`).want(t, 403)
	s.ask(theOwner, "PATCH", Root+"/namespaces/ark:12345", `{"quota":5}`).want(t, 403)
	s.ask(theOwner, "GET", Root+"/namespaces/no%20prefix", "").want(t, 400)
	// A root has version 0 until a user changes it.
	s.ask(theAdmin, "GET", Root+"/namespaces/ark:", "", "If-Match", `"v0"`).want(t, 200)
	s.ask(theAdmin, "PATCH", Root+"/namespaces/ark:", `{"title":"ARKs"}`, "If-Match", `"v1"`).want(t, 412)
	s.ask(theAdmin, "PATCH", Root+"/namespaces/ark:", `{"title":"ARKs"}`, "If-Match", `"v0"`).want(t, 200)
	s.ask(theAdmin, "PUT", Root+"/namespaces/ark:", `{"title":"All ARKs"}`, "If-Match", `"v1"`).want(t, 200)
	s.ask(theAdmin, "PUT", Root+"/namespaces/ark%3A77777", `{"owner":"ann"}`).want(t, 201)
}

// TestHiddenNamespaces holds that a namespace in which a caller has no role looks just like
// one that is not there.
func TestHiddenNamespaces(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/namespaces/", "/minters/"} {
		none := s.ask(theOutsider, "GET", Root+path+"ark:55555", "").want(t, 404)
		got := s.ask(theOutsider, "GET", Root+path+"ark:12345", "").want(t, 404)
		if strings.ReplaceAll(got.body, "12345", "55555") != none.body {
			t.Errorf("%s tells\n%s of what is there, and\n%s of what is not", path, got.body, none.body)
		}
	}
}

func TestMinters(t *testing.T) {
	s := newSite(t)
	var m apijson.Minter
	s.ask(theReader, "GET", Root+"/minters/ark:12345", "").want(t, 200).read(t, &m)
	if m.Names != 5 || m.Kind != "" {
		t.Errorf("got %+v", m)
	}
	s.ask(theReader, "GET", Root+"/minters/ark:12345/x5", "").want(t, 200).read(t, &m)
	if m.Kind != "noid" || m.Given != 0 || m.Total == 0 || m.Namespace != "ark:12345/x5" {
		t.Errorf("got %+v", m)
	}
	at := Root + "/skip/ark:12345/x5"
	s.ask(theOwner, "POST", at, `{"to":100}`).want(t, 403)
	s.ask(theAdmin, "POST", at, `{"to":100}`).want(t, 200).read(t, &m)
	if m.Given != 100 {
		t.Errorf("got %+v", m)
	}
	s.ask(theAdmin, "POST", at, `{"ahead":11}`).want(t, 200).read(t, &m)
	if m.Given != 111 {
		t.Errorf("got %+v", m)
	}
	for _, tt := range []struct {
		body   string
		status int
	}{
		{`{"to":5}`, 409}, {`{}`, 400}, {`{"to":200,"ahead":1}`, 400}, {`{"to":-1}`, 400}, {`{"to":18446744073709551615}`, 429}, {`{"ahead":18446744073709551615}`, 429}, {`{"to":"5"}`, 400},
	} {
		s.ask(theAdmin, "POST", at, tt.body).want(t, tt.status)
	}
	s.ask(theAdmin, "POST", Root+"/skip/ark:12345", `{"to":5}`).want(t, 400)
	s.ask(theAdmin, "POST", Root+"/skip/ark:55555", `{"to":5}`).want(t, 404)
}

// TestNamespacePages holds that a list goes on where it was, even if the caller has lost the
// role in the last namespace that it showed.
func TestNamespacePages(t *testing.T) {
	s := newSite(t)
	for _, prefix := range []string{"ark:12345/x5", "ark:99999"} {
		s.ask(theAdmin, "PATCH", Root+"/namespaces/"+prefix, `{"grants":[{"to":"user:nemo","role":"reader"}]}`).want(t, 200)
	}
	var page struct {
		Items []openapi.Namespace
		Next  string
	}
	s.ask(theOutsider, "GET", Root+"/namespaces?limit=1", "").want(t, 200).read(t, &page)
	if len(page.Items) != 1 || page.Items[0].Prefix != "ark:12345/x5" {
		t.Fatalf("got %+v", page)
	}
	s.ask(theAdmin, "PATCH", Root+"/namespaces/ark:12345/x5", `{"grants":null}`).want(t, 200)
	s.ask(theOutsider, "GET", Root+"/namespaces?limit=1&cursor="+page.Next, "").want(t, 200).read(t, &page)
	if len(page.Items) != 1 || page.Items[0].Prefix != "ark:99999" {
		t.Errorf("got %+v", page)
	}
}
