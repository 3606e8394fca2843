package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele/document/apijson"
)

const records = Root + "/records/"

func TestPutAndGet(t *testing.T) {
	s := newSite(t)
	a := s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/new","metadata":{"what":"New"}}`, "If-None-Match", "*").want(t, 201)
	if got := a.get("ETag"); got != `"v1"` {
		t.Errorf("ETag %s", got)
	}
	if got := a.get("Location"); got != records+"ark:12345%2Fnew" && got != records+"ark:12345/new" {
		t.Errorf("Location %s", got)
	}
	s.ask(theEditor, "GET", a.get("Location"), "").want(t, 200)
	s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/new"}`, "If-None-Match", "*").want(t, 412)
	s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/new"}`).want(t, 428)
	s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/newer"}`, "If-Match", `"v7"`).want(t, 412)
	s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/newer"}`, "If-Match", `W/"v1"`).want(t, 412)
	a = s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/newer"}`, "If-Match", `"v0", "v1"`).want(t, 200)
	if got := a.get("ETag"); got != `"v2"` {
		t.Errorf("ETag %s", got)
	}
	s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/newest"}`, "If-Match", `*`).want(t, 200)
	s.ask(theEditor, "PUT", records+"ark:12345/newer", `{"url":"https://example.org/newest"}`, "If-Match", `*`).want(t, 412)
	s.ask(theEditor, "PUT", records+"ark:12345/newer", `{"url":"https://example.org/newest"}`).want(t, 201)

	a = s.ask("", "GET", records+"ark:12345/new", "").want(t, 200)
	var rec struct {
		ID       string
		Version  int
		By       string
		Targets  []struct{ URL string }
		Metadata map[string]string
	}
	a.read(t, &rec)
	if rec.ID != "ark:12345/new" || rec.Version != 3 || rec.By != "" || len(rec.Targets) != 1 || rec.Targets[0].URL != "https://example.org/newest" || rec.Metadata != nil {
		t.Errorf("got %+v", rec)
	}
	s.ask(theReader, "GET", records+"ark:12345/new", "").want(t, 200).read(t, &rec)
	if rec.By != theEditor {
		t.Errorf("a reader of the namespace sees that %q made it", rec.By)
	}
	s.ask("", "GET", records+"ark:12345/new", "", "If-None-Match", `"v3"`).want(t, 304)
	s.ask("", "GET", records+"ark:12345/new", "", "If-None-Match", `"x", W/"v3"`).want(t, 304)
	s.ask("", "GET", records+"ark:12345/new", "", "If-None-Match", `"v2"`).want(t, 200)
	s.ask("", "GET", records+"ark:12345/new", "", "If-Match", `"v2"`).want(t, 412)
	s.ask("", "GET", records+"ark:12345/new", "", "If-Match", `v2`).want(t, 400)
	if a := s.ask("", "HEAD", records+"ark:12345/new", "").want(t, 200); a.body != "" || a.get("ETag") != `"v3"` || a.get("Content-Length") == "" {
		t.Errorf("HEAD: %q %v", a.body, a.Header)
	}
	s.ask("", "GET", records+"ark:12345/new?version=1", "").want(t, 200).read(t, &rec)
	if rec.Version != 1 || rec.Metadata["what"] != "New" {
		t.Errorf("version 1 is %+v", rec)
	}
	s.ask("", "GET", records+"ark:12345/new?version=9", "").want(t, 404)
	s.ask("", "GET", records+"ark:12345/new?at=2001-01-01T00:00:00Z", "").want(t, 404)
	s.ask("", "GET", records+"ark:12345/new?at="+s.now().Add(time.Hour).UTC().Format(time.RFC3339), "").want(t, 200)
	s.ask("", "GET", records+"ark:12345/new?version=1&at=2001-01-01T00:00:00Z", "").want(t, 400)
}

func TestOtherNames(t *testing.T) {
	s := newSite(t)
	for _, target := range []string{
		"ark:12345/x1", "ark:/12345/x1", "ark%3A12345%2Fx1", "ark:12345/x%31", "urn:example:x1", "URN:EXAMPLE:x1", "https://n2t.net/ark:12345/x1", "https:%2F%2Fn2t.net/ark:12345/x1",
	} {
		var rec struct{ ID string }
		s.ask("", "GET", records+target, "").want(t, 200).read(t, &rec)
		if rec.ID != "ark:12345/x1" {
			t.Errorf("%s leads to %s", target, rec.ID)
		}
	}
	// The identifier in a body must be that in the path.
	s.ask(theEditor, "PUT", records+"ark:12345/a", `{"id":"ark:12345/b","url":"https://example.org/"}`).want(t, 400)
	s.ask(theEditor, "PUT", records+"ark:12345/a", `{"id":"ark:/12345/a","url":"https://example.org/"}`).want(t, 201)
	s.ask(theEditor, "PUT", records+"ark:12345/x1", `{"id":"ark:12345/b","url":"https://example.org/"}`, "If-Match", "*").want(t, 400)
	// A record may be replaced by way of its alias, which stays.
	s.ask(theEditor, "PUT", records+"urn:example:x1", `{"url":"https://example.org/","aliases":["urn:example:x1"]}`, "If-Match", `"v1"`).want(t, 200)
	p := s.ask(theEditor, "PUT", records+"urn:example:x1", `{"url":"https://example.org/"}`, "If-Match", `*`).want(t, 400).problem(t)
	if len(p.Problems) != 1 || p.Problems[0].Path != "aliases" {
		t.Errorf("got %+v", p)
	}
}

func TestPatch(t *testing.T) {
	s := newSite(t)
	var rec struct {
		Version  int
		Targets  []struct{ URL string }
		Metadata map[string]string
	}
	at := records + "ark:12345/x1"
	s.ask(theEditor, "PATCH", at, `{"metadata":{"who":"Ann","what":null}}`).want(t, 200).read(t, &rec)
	if diff := cmp.Diff(map[string]string{"who": "Ann"}, rec.Metadata); diff != "" || rec.Version != 2 || len(rec.Targets) != 1 {
		t.Errorf("got %+v", rec)
	}
	s.ask(theEditor, "PATCH", at, `{"metadata":{"who":"Bob"}}`, "If-Match", `"v1"`).want(t, 412)
	s.ask(theEditor, "PATCH", at, `{"metadata":{"who":"Bob"}}`, "If-Match", `"v2"`).want(t, 200)
	s.ask(theEditor, "PATCH", at, `{"metadata":{"who":"Bob"}}`).want(t, 200).read(t, &rec)
	if rec.Version != 3 {
		t.Errorf("a patch that changes nothing made version %d", rec.Version)
	}
	for _, bad := range []string{
		`{"id":"ark:12345/other"}`, `{"nonsense":1}`, `{"targets":null,"state":"withdrawn"}`, `{"metadata":{"who":1}}`, `{"metadata":5}`, `[]`, `null`, `"x"`, `1`, `{"aliases":null}`,
		`{"targets":[null]}`, `{"metadata":{"who":"a","who":"b"}}`, `{"metadata":{"who":"\ud800"}}`, `{"url":"https://example.org/"}`,
	} {
		s.ask(theEditor, "PATCH", at, bad).want(t, 400)
	}
	// No user changes the fields that the system keeps.
	s.ask(theEditor, "PATCH", at, `{"version":99,"by":"root","created":"2001-01-01T00:00:00Z","metadata":{"who":"Eve"}}`).want(t, 200).read(t, &rec)
	if rec.Version != 4 {
		t.Errorf("got version %d", rec.Version)
	}
	s.ask(theEditor, "PATCH", records+"ark:12345/gone", `{"metadata":{"who":"Eve"}}`).want(t, 410)
	s.ask(theEditor, "PATCH", records+"ark:12345/none", `{"metadata":{"who":"Eve"}}`).want(t, 404)
	s.ask(theEditor, "PATCH", at, `{"metadata":{"who":"Eve"}}`, "Content-Type", apijson.JSON).want(t, 415)
}

func TestStates(t *testing.T) {
	s := newSite(t)
	const x1 = "ark:12345/x1"
	s.ask(theEditor, "POST", Root+"/reinstate/"+x1, "").want(t, 409)
	s.ask(theEditor, "POST", Root+"/withdraw/"+x1, `{"reason":""}`).want(t, 400)
	s.ask(theEditor, "POST", Root+"/withdraw/"+x1, `{"reason":"Wrong","replacement":"nonsense"}`).want(t, 400)
	s.ask(theEditor, "POST", Root+"/withdraw/"+x1, `{"reason":"Wrong"}`, "If-Match", `"v9"`).want(t, 412)
	s.ask(theEditor, "POST", Root+"/withdraw/"+x1, `{"reason":"Wrong","replacement":"ark:/12345/x2"}`, "If-Match", `"v1"`).want(t, 200)
	a := s.ask("", "GET", records+x1, "").want(t, 200)
	if !strings.Contains(a.body, `"replacement":"ark:12345/x2"`) || strings.Contains(a.body, "targets") {
		t.Errorf("the public sees %s", a.body)
	}
	s.ask(theEditor, "POST", Root+"/reinstate/"+x1, "", "If-Match", `"v1"`).want(t, 412)
	s.ask(theEditor, "POST", Root+"/reinstate/"+x1, "", "If-Match", `"v2"`).want(t, 200)
	s.ask(theEditor, "DELETE", records+x1, "").want(t, 400)
	s.ask(theEditor, "DELETE", records+x1+"?reason=Wrong+again", "").want(t, 200)
	s.ask(theEditor, "DELETE", records+"ark:12345/hidden?reason=Wrong", "").want(t, 409)
	s.ask(theEditor, "POST", Root+"/redact/"+x1, `{"reason":"Court"}`).want(t, 403)
	s.ask(theAdmin, "POST", Root+"/redact/"+x1, `{"reason":"Court"}`).want(t, 200)
	a = s.ask("", "GET", Root+"/history/"+x1, "").want(t, 200)
	if strings.Contains(a.body, "A thing") || strings.Contains(a.body, "example.org") {
		t.Errorf("what was redacted is still told: %s", a.body)
	}
	s.ask(theOwner, "POST", Root+"/reinstate/"+x1, "").want(t, 403)
}

// TestHidden holds that a record that a caller may not see looks just like one that is not
// there.
func TestHidden(t *testing.T) {
	s := newSite(t)
	for _, who := range []string{"", theOutsider, theStranger} {
		for _, path := range []string{"/records/", "/history/"} {
			none := s.ask(who, "GET", Root+path+"ark:12345/nothing", "").want(t, 404)
			for _, name := range []string{"hidden", "secret"} {
				a := s.ask(who, "GET", Root+path+"ark:12345/"+name, "").want(t, 404)
				if got := strings.ReplaceAll(a.body, "ark:12345/"+name, "ark:12345/nothing"); got != none.body {
					t.Errorf("%q sees of %s\n%s, and of what is not there\n%s", who, name, got, none.body)
				}
				a.Header.Del("Content-Length")
				none.Header.Del("Content-Length")
				if diff := cmp.Diff(none.Header, a.Header); diff != "" {
					t.Errorf("%q sees other headers: %s", who, diff)
				}
			}
		}
		if who == "" {
			continue
		}
		for _, name := range []string{"hidden", "secret", "nothing"} {
			s.ask(who, "PATCH", records+"ark:12345/"+name, `{"metadata":{"who":"Eve"}}`).want(t, 404)
			s.ask(who, "DELETE", records+"ark:12345/"+name+"?reason=x", "").want(t, 404)
			s.ask(who, "PUT", records+"ark:12345/"+name, `{"url":"https://example.org/"}`, "If-None-Match", "*").want(t, 403)
			s.ask(who, "PUT", records+"ark:12345/"+name, `{"url":"https://example.org/"}`).want(t, 403)
			s.ask(who, "PUT", records+"ark:12345/"+name, `{"url":"https://example.org/"}`, "If-Match", `"v1"`).want(t, 412)
		}
	}
	for _, who := range []string{theReader, theEditor, theOwner, theAdmin} {
		for _, name := range []string{"hidden", "secret"} {
			s.ask(who, "GET", records+"ark:12345/"+name, "").want(t, 200)
		}
	}
	s.tokens["carl"] = func() string {
		s.ask(theAdmin, "POST", Root+"/users", `{"name":"carl"}`).want(t, 201)
		return s.token("carl", s.now().Add(time.Hour))
	}()
	a := s.ask("carl", "GET", records+"ark:12345/secret", "").want(t, http.StatusOK)
	if strings.Contains(a.body, "readers") {
		t.Errorf("a reader of a record need not know the others: %s", a.body)
	}
	if got := a.get("Cache-Control"); got != "private, no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
}
