package ezid_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd/ezid"
)

// TestOperations goes through the life of identifiers, with the answers that EZID describes.
func TestOperations(t *testing.T) {
	s := newSite(t)
	made := s.ask("ed", "POST", "/shoulder/ark:/99999/fk4", "_target: https://example.org/1\nerc.who: Proust,\n  Marcel\nerc.what: Remembrance\n").want(t, 201, "success: ark:/99999/fk4*")
	id := strings.TrimPrefix(made.body, "success: ")
	if strings.HasSuffix(made.body, "\n") || made.Header.Get("Content-Length") != fmt.Sprint(len(made.body)) {
		t.Errorf("%q", made.body)
	}
	rec := s.record(id)
	if rec.Metadata["who"] != "Proust, Marcel" || rec.Metadata["what"] != "Remembrance" || rec.Targets[0].URL != "https://example.org/1" || rec.By != "ed" || rec.State != stele.Active {
		t.Errorf("%+v", rec)
	}
	seen := s.view("", id)
	want := map[string]string{"success": id, "_target": "https://example.org/1", "_profile": "erc", "_status": "public", "_export": "yes", "erc.who": "Proust, Marcel", "erc.what": "Remembrance",
		"_created": fmt.Sprint(rec.Created.Unix()), "_updated": fmt.Sprint(rec.Modified.Unix())}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	want["_owner"], want["_ownergroup"] = "ann", "archive"
	if d := cmp.Diff(want, s.view("rita", id)); d != "" {
		t.Error(d)
	}

	// What a client has read it can send back. Elements are changed one by one; an empty one is taken away.
	s.ask("ed", "POST", "/id/"+id, "_target: https://example.org/1\n_owner: ann\n_status: public\n_export: yes\n_profile: erc\nerc.who: Proust, Marcel\nerc.what: Remembrance").want(t, 200, "success: "+id)
	if s.record(id).Version != 1 {
		t.Error("a version was made of nothing new")
	}
	s.ask("ed", "POST", "/id/"+id, "_target:\nerc.what:\nerc.when: 1922\n_export: no").want(t, 200, "success: "+id)
	if d := cmp.Diff(map[string]string{"who": "Proust, Marcel", "when": "1922", "ezid._profile": "erc", "ezid._export": "no"}, map[string]string(s.record(id).Metadata)); d != "" {
		t.Error(d)
	}
	own := s.server.URL + "/.ezid/id/" + id
	if got := s.view("", id); got["_target"] != own || got["_export"] != "no" || got["erc.what"] != "" {
		t.Errorf("%v", got)
	}
	s.ask("ed", "POST", "/id/"+id, "_target: "+own).want(t, 200, "success: *")
	if len(s.record(id).Targets) != 0 {
		t.Error("the address here became a target")
	}

	// An identifier of the client's choice, in any spelling; a DOI is a handle here.
	s.ask("ed", "PUT", "/id/ark:99999/fk4-test", "_target: https://example.org/2").want(t, 201, "success: ark:/99999/fk4test")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4test", "").want(t, 400, "error: bad request - identifier already exists")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4test?update_if_exists=yes", "erc.who: X").want(t, 200, "success: ark:/99999/fk4test")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4new?update_if_exists=yes", "").want(t, 201, "success: ark:/99999/fk4new")
	s.ask("ed", "PUT", "/id/doi:10.5072/fk2test", "datacite.title: T\ndatacite.publicationyear: 2024").want(t, 201, "success: doi:10.5072/FK2TEST")
	if got := s.view("", "doi:10.5072/FK2test"); got["_profile"] != "datacite" || got["datacite.title"] != "T" || s.record("10.5072/FK2TEST").Metadata["when"] != "2024" {
		t.Errorf("%v", got)
	}
	s.ask("ed", "POST", "/shoulder/doi:10.5072/FK2", "").want(t, 201, "success: doi:10.5072/FK2*")
	s.ask("", "GET", "/id/ark%3A%2F99999%2Ffk4test", "").want(t, 200, "success: ark:/99999/fk4test\n*")
	s.ask("", "HEAD", "/id/ark:/99999/fk4test", "").want(t, 200, "")

	// The identifier that is minted stands in its target.
	id = strings.TrimPrefix(s.ask("ed", "POST", "/shoulder/ark:/99999/fk4", "_target: https://example.org/${identifier}?id=${identifier}").want(t, 201, "success: *").body, "success: ")
	if got := s.record(id).Targets[0].URL; got != "https://example.org/"+id+"?id="+id {
		t.Errorf("%s", got)
	}

	// The longest identifier that a name begins with.
	s.ask("", "GET", "/id/ark:/99999/fk4test/more/x.y?prefix_match=yes", "").want(t, 200, "success: ark:/99999/fk4test in_lieu_of ark:/99999/fk4test/more/x.y\n*")
	s.ask("", "GET", "/id/ark:/99999/fk4test?prefix_match=yes", "").want(t, 200, "success: ark:/99999/fk4test\n*")
	s.ask("", "GET", "/id/ark:/99999/fk4test/more", "").want(t, 400, "error: bad request - no such identifier")
	s.ask("", "GET", "/id/ark:/88888/x?prefix_match=yes", "").want(t, 400, "error: bad request - no such identifier")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4test/more", "_status: reserved\nerc.who: X").want(t, 201, "success: *")
	s.ask("", "GET", "/id/ark:/99999/fk4test/more/x?prefix_match=yes", "").want(t, 200, "success: ark:/99999/fk4test in_lieu_of *")
	s.ask("rita", "GET", "/id/ark:/99999/fk4test/more/x?prefix_match=yes", "").want(t, 200, "success: ark:/99999/fk4test/more in_lieu_of *")

	s.ask("", "GET", "/status", "").want(t, 200, "success: EZID is up")
	s.ask("", "GET", "/status?subsystems=*", "").want(t, 200, "success: EZID is up\nregistry: up\n")
	s.ask("", "GET", "/heartbeat", "").want(t, 200, "success: EZID is up")
	if text := s.log.String(); text != "" {
		t.Error(text)
	}
}

// TestStates: which status follows which, and what becomes of what is deleted.
func TestStates(t *testing.T) {
	s := newSite(t)
	const id = "ark:/99999/fk4a"
	change := func(status int, body, want string) {
		t.Helper()
		s.ask("ed", "POST", "/id/"+id, body).want(t, status, want)
	}
	const wrong = "error: bad request - _status: invalid identifier status change*"
	s.ask("ed", "PUT", "/id/"+id, "_status: unavailable | x").want(t, 400, wrong)
	s.ask("ed", "PUT", "/id/"+id, "_status: reserved\n_target: https://example.org/1\nerc.who: A").want(t, 201, "success: "+id)
	s.ask("", "GET", "/id/"+id, "").want(t, 400, "error: bad request - no such identifier")
	s.ask("nemo", "GET", "/id/"+id, "").want(t, 400, "error: bad request - no such identifier")
	if got := s.view("rita", id); got["_status"] != "reserved" || got["erc.who"] != "A" {
		t.Errorf("%v", got)
	}
	change(400, "_status: unavailable", wrong)
	change(200, "_status: reserved\nerc.when: 1", "success: "+id)

	// Deleted: blank, and reserved for ever.
	s.ask("ed", "DELETE", "/id/"+id, "").want(t, 200, "success: "+id)
	for _, user := range []string{"", "ed", "root"} {
		s.ask(user, "GET", "/id/"+id, "").want(t, 400, "error: bad request - no such identifier")
	}
	change(400, "erc.who: B", "error: bad request - no such identifier")
	s.ask("ed", "DELETE", "/id/"+id, "").want(t, 400, "error: bad request - no such identifier")
	rec := s.record(id)
	if rec.State != stele.Reserved || len(rec.Metadata)+len(rec.Targets) != 0 || rec.Version != 3 {
		t.Errorf("%+v", rec)
	}
	if before, err := s.registrar.Version(s.admin, rec.ID, 2); err != nil || before.Metadata["who"] != "A" {
		t.Errorf("%v, %v", before, err)
	}
	// It can be made again, and is not deleted by taking away all elements.
	s.ask("ed", "PUT", "/id/"+id, "_status: reserved").want(t, 201, "success: "+id)
	if got := s.view("ed", id); got["_status"] != "reserved" {
		t.Errorf("%v", got)
	}
	s.ask("ed", "PUT", "/id/"+id, "").want(t, 400, "error: bad request - identifier already exists")

	change(200, "_status: public\n_target: https://example.org/2", "success: "+id)
	change(400, "_status: reserved", wrong)
	s.ask("ed", "DELETE", "/id/"+id, "").want(t, 400, "error: bad request - identifier status does not support deletion")
	change(200, "_status: unavailable | withdrawn by author\nerc.what: W", "success: "+id)
	if rec := s.record(id); rec.State != stele.Withdrawn || rec.Tombstone.Reason != "withdrawn by author" || rec.Metadata["what"] != "W" {
		t.Errorf("%+v", rec)
	}
	s.ask("ed", "DELETE", "/id/"+id, "").want(t, 400, "error: bad request - identifier status does not support deletion")
	change(400, "_status: reserved", wrong)
	change(200, "erc.when: 2\n_target: https://example.org/3", "success: "+id)
	if got := s.view("ed", id); got["_status"] != "unavailable | withdrawn by author" || got["erc.when"] != "2" || got["_target"] != "https://example.org/3" {
		t.Errorf("%v", got)
	}
	if got := s.view("", id); got["_status"] != "unavailable | withdrawn by author" || got["erc.when"] != "2" || strings.HasPrefix(got["_target"], "https://example.org") {
		t.Errorf("%v", got)
	}
	change(200, "_status: unavailable", "success: "+id)
	if got := s.view("", id)["_status"]; got != "unavailable" {
		t.Errorf("%s", got)
	}
	change(200, "_status: public\nerc.who: C", "success: "+id)
	if rec := s.record(id); rec.State != stele.Active || rec.Metadata["who"] != "C" || rec.Targets[0].URL != "https://example.org/3" {
		t.Errorf("%+v", rec)
	}
}

// TestRights: what each role may do, and that nothing is told to those who may not know.
func TestRights(t *testing.T) {
	s := newSite(t)
	s.ask("ann", "PUT", "/id/ark:/99999/fk4x", "").want(t, 201, "success: *")
	s.ask("ann", "PUT", "/id/ark:/99999/fk4r", "_status: reserved\nerc.who: R").want(t, 201, "success: *")
	for user, status := range map[string]int{"": 401, "nemo": 403, "rita": 403, "ed": 201, "ann": 201, "root": 201} {
		text := map[int]string{401: "error: unauthorized", 403: "error: forbidden", 201: "success: *"}[status]
		res := s.ask(user, "PUT", "/id/ark:/99999/fk4by"+user, "_target: https://example.org/").want(t, status, text)
		if got := res.Header.Get("WWW-Authenticate"); (got == `Basic realm="EZID"`) != (status == 401) {
			t.Errorf("%s: %q", user, got)
		}
		s.ask(user, "POST", "/shoulder/ark:/99999/fk4", "").want(t, status, text)
		ok := status
		if ok == 201 {
			ok = 200
		}
		s.ask(user, "POST", "/id/ark:/99999/fk4x", "erc.who: "+user).want(t, ok, text)
		// What is reserved is not there for those who have no role.
		if status == 403 && user == "nemo" {
			s.ask(user, "DELETE", "/id/ark:/99999/fk4r", "").want(t, 400, "error: bad request - no such identifier")
		} else if status != 201 {
			s.ask(user, "DELETE", "/id/ark:/99999/fk4r", "").want(t, status, text)
		}
	}
	if s.record("ark:99999/fk4r").Metadata["who"] != "R" {
		t.Error("it was deleted")
	}
	// No user can take a name's owner for another one, and users that are not there look like others.
	for _, owner := range []string{"ed", "nobody-here"} {
		s.ask("ed", "POST", "/id/ark:/99999/fk4x", "_owner: "+owner).want(t, 400, "error: bad request - _owner: ownership change prohibited*")
	}
	s.ask("ed", "PUT", "/id/ark:/99999/fk4o", "_owner: ann").want(t, 201, "success: *")

	// A token does what its scopes and namespaces allow, also in a session.
	mints := s.token(auth.TokenRequest{User: "ed", Scopes: []auth.Scope{auth.ScopeMint}})
	reads := s.token(auth.TokenRequest{User: "ed", Scopes: []auth.Scope{auth.ScopeRead}})
	elsewhere := s.token(auth.TokenRequest{User: "ed", Namespaces: []string{"10.5072/"}})
	for _, c := range []struct {
		token         string
		mint, put, ro int
	}{{mints, 201, 403, 400}, {reads, 403, 403, 200}, {elsewhere, 403, 403, 400}} {
		s.tokens["ed"] = c.token
		cookie := strings.Split(s.ask("ed", "GET", "/login", "").want(t, 200, "success: session cookie returned").Header.Get("Set-Cookie"), ";")[0]
		for _, by := range [][]string{nil, {"Cookie", cookie}} {
			user := "ed"
			if by != nil {
				user = ""
			}
			for path, status := range map[string]int{"/shoulder/ark:/99999/fk4": c.mint} {
				if got := s.ask(user, "POST", path, "_target: https://example.org/${identifier}", by...); got.StatusCode != status {
					t.Errorf("%v: %d %s, want %d", by, got.StatusCode, got.body, status)
				}
			}
			if got := s.ask(user, "PUT", "/id/ark:/99999/fk4z", "", by...); got.StatusCode != c.put {
				t.Errorf("%v: %d %s, want %d", by, got.StatusCode, got.body, c.put)
			}
			if got := s.ask(user, "GET", "/id/ark:/99999/fk4r", "", by...); got.StatusCode != c.ro {
				t.Errorf("%v: %d %s, want %d", by, got.StatusCode, got.body, c.ro)
			}
		}
	}
}

// TestCredentials: user names and tokens, and what they are not.
func TestCredentials(t *testing.T) {
	s := newSite(t)
	right := s.tokens["ed"]
	for _, c := range []struct{ user, password string }{{"ed", ""}, {"ed", "secret"}, {"ed", right + "x"}, {"ann", right}, {"", right}, {"ED", right}, {"nobody", "x"}} {
		r, err := http.NewRequest("GET", s.server.URL+"/.ezid/login", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(c.user, c.password)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 401 || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d", c.user, res.StatusCode)
		}
	}
	for _, header := range []string{"Basic", "Basic !!!", "Basic " + right, "Digest x", "Bearer x"} {
		s.ask("", "GET", "/id/ark:/99999/x", "", "Authorization", header).want(t, 401, "error: unauthorized")
	}
	s.ask("", "GET", "/id/ark:/99999/x", "", "Authorization", "Bearer "+right).want(t, 400, "error: bad request - no such identifier")
	s.ask("", "GET", "/login", "").want(t, 401, "error: unauthorized")
	// A page of another site can't use what a browser has.
	s.ask("ed", "PUT", "/id/ark:/99999/fk4csrf", "", "Sec-Fetch-Site", "cross-site").want(t, 403, "error: forbidden")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4csrf", "", "Origin", "https://evil.example").want(t, 403, "error: forbidden")
	// Refusals are in the audit trail.
	found := false
	for item, err := range s.registrar.Audit(s.admin, registrar.AuditQuery{Via: "ezid"}) {
		if err != nil {
			t.Fatal(err)
		}
		found = found || item.Entry != nil && item.Entry.By == "ed" && item.Entry.Outcome == stele.AuditRefused && item.Entry.Operation == "create identifier"
	}
	if !found {
		t.Error("the audit trail does not have the refusal")
	}
}

// TestInClear: credentials are not taken from another machine in clear, nor asked for; what is public can be read.
func TestInClear(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	elsewhere := func(o *ezid.Options) { o.ClientAddr = func(*http.Request) netip.Addr { return from } }
	s := newSite(t, elsewhere)
	const refused = "error: forbidden - credentials are accepted over https only*"
	s.ask("ed", "GET", "/login", "").want(t, 403, refused)
	s.ask("", "GET", "/login", "").want(t, 403, refused)
	s.ask("", "PUT", "/id/ark:/99999/fk4x", "").want(t, 403, refused)
	s.ask("ed", "GET", "/id/ark:/99999/fk4x", "").want(t, 403, refused)
	s.ask("", "GET", "/id/ark:/99999/fk4x", "", "Cookie", "sessionid=x").want(t, 403, refused)
	s.ask("", "GET", "/id/ark:/99999/fk4x", "").want(t, 400, "error: bad request - no such identifier")
	// So may what a proxy on the same machine passes on, if the server does not know that it encrypts.
	s = newSite(t)
	s.ask("ed", "GET", "/login", "", "X-Forwarded-For", "192.0.2.1").want(t, 403, refused)
	s.ask("ed", "GET", "/login", "", "X-Forwarded-Proto", "https").want(t, 403, refused)
	// A proxy in front of the public address encrypts it.
	s = newSite(t, elsewhere, func(o *ezid.Options) { o.Base = "https://id.example.org" })
	head := s.ask("ed", "GET", "/login", "").want(t, 200, "success: *").Header.Get("Set-Cookie")
	if !strings.Contains(head, "Secure") {
		t.Errorf("%s", head)
	}
	s.ask("ed", "PUT", "/id/ark:/99999/fk4x", "").want(t, 201, "success: *")
	if got := s.view("", "ark:/99999/fk4x")["_target"]; got != "https://id.example.org/.ezid/id/ark:/99999/fk4x" {
		t.Errorf("%s", got)
	}
}

// TestSessions: a session is as good as the token that began it, and no better.
func TestSessions(t *testing.T) {
	s := newSite(t)
	login := func() (string, string) {
		t.Helper()
		head := s.ask("ed", "GET", "/login", "").want(t, 200, "success: session cookie returned").Header.Get("Set-Cookie")
		return strings.Split(head, ";")[0], head
	}
	cookie, head := login()
	if !strings.HasPrefix(cookie, "sessionid=") || strings.Count(cookie, "=") != 1 || !strings.Contains(head, "Path=/.ezid") || !strings.Contains(head, "HttpOnly") || !strings.Contains(head, "SameSite=Strict") {
		t.Errorf("%s", head)
	}
	s.ask("", "PUT", "/id/ark:/99999/fk4s", "", "Cookie", cookie).want(t, 201, "success: *")
	if s.record("ark:99999/fk4s").By != "ed" {
		t.Error("another user made it")
	}
	s.ask("", "PUT", "/id/ark:/99999/fk4t", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site").want(t, 403, "error: forbidden")
	s.ask("", "GET", "/login", "", "Cookie", cookie).want(t, 401, "error: unauthorized")
	// A page of another site can neither begin a session nor end one with what a browser has.
	for _, from := range []string{"cross-site", "same-site"} {
		s.ask("ed", "GET", "/login", "", "Sec-Fetch-Site", from).want(t, 403, "error: forbidden")
		s.ask("", "GET", "/logout", "", "Cookie", cookie, "Sec-Fetch-Site", from).want(t, 403, "error: forbidden")
	}
	s.ask("ed", "GET", "/login", "", "Sec-Fetch-Site", "none").want(t, 200, "success: *")

	// Without use it ends; with use it lasts until the token is revoked.
	s.clock.Add(int64(auth.SessionIdle - time.Minute))
	s.ask("", "POST", "/id/ark:/99999/fk4s", "erc.who: A", "Cookie", cookie).want(t, 200, "success: *")
	s.clock.Add(int64(auth.SessionIdle - time.Minute))
	s.ask("", "POST", "/id/ark:/99999/fk4s", "erc.who: B", "Cookie", cookie).want(t, 200, "success: *")
	s.clock.Add(int64(auth.SessionIdle))
	s.ask("", "POST", "/id/ark:/99999/fk4s", "erc.who: C", "Cookie", cookie).want(t, 401, "error: unauthorized")
	s.ask("", "GET", "/id/ark:/99999/fk4s", "", "Cookie", cookie).want(t, 200, "success: *") // as the public

	cookie, _ = login()
	s.ask("", "GET", "/logout", "", "Cookie", cookie).want(t, 200, "success: authentication credentials flushed")
	s.ask("", "PUT", "/id/ark:/99999/fk4u", "", "Cookie", cookie).want(t, 401, "error: unauthorized")
	s.ask("", "GET", "/logout", "").want(t, 200, "success: authentication credentials flushed")
	// A client that sends its token as well has a session all the same.
	cookie, _ = login()
	s.ask("ed", "GET", "/logout", "", "Cookie", cookie).want(t, 200, "success: authentication credentials flushed")
	s.ask("", "PUT", "/id/ark:/99999/fk4u", "", "Cookie", cookie).want(t, 401, "error: unauthorized")
	s.ask("ed", "GET", "/logout", "", "Cookie", cookie).want(t, 200, "success: authentication credentials flushed")

	// Programs that never log out have as many sessions as a token may have: the oldest ends.
	first, _ := login()
	for range auth.MaxTokenSessions {
		s.clock.Add(int64(time.Second))
		cookie, _ = login()
	}
	s.ask("", "PUT", "/id/ark:/99999/fk4v", "", "Cookie", first).want(t, 401, "error: unauthorized")
	s.ask("", "PUT", "/id/ark:/99999/fk4v", "", "Cookie", cookie).want(t, 201, "success: *")
	for tok, err := range s.registrar.Tokens(s.admin, "ed") {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.registrar.RevokeToken(s.admin, tok.ID); err != nil {
			t.Fatal(err)
		}
	}
	s.ask("", "PUT", "/id/ark:/99999/fk4w", "", "Cookie", cookie).want(t, 401, "error: unauthorized")
	// A visit to the desk is not a session here, and the other way round.
	visit, _, err := s.registrar.BeginSession(s.admin, "ann", auth.ProvedByLink, s.now(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.ask("", "PUT", "/id/ark:/99999/fk4w", "", "Cookie", "sessionid="+visit).want(t, 401, "error: unauthorized")
	directory := auth.NewDirectory(s.store, s.now)
	if _, _, err := directory.Session(t.Context(), strings.TrimPrefix(cookie, "sessionid=")); err == nil {
		t.Error("the desk takes a session of a token")
	}
}

// TestErrors has each error that a client can cause, in EZID's words.
func TestErrors(t *testing.T) {
	s := newSite(t)
	s.ask("ed", "PUT", "/id/ark:/99999/fk4a", "").want(t, 201, "success: *")
	const bad = "error: bad request - "
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/id/nonsense", "", 400, bad + "invalid identifier*"},
		{"GET", "/id/ark:/9", "", 400, bad + "invalid identifier*"},
		{"GET", "/id/", "", 400, bad + "invalid identifier*"},
		{"GET", "/id", "", 400, bad + "invalid identifier*"},
		{"GET", "/id/ark:/99999/fk4none", "", 400, bad + "no such identifier"},
		{"POST", "/id/ark:/99999/fk4none", "", 400, bad + "no such identifier"},
		{"DELETE", "/id/ark:/99999/fk4none", "", 400, bad + "no such identifier"},
		{"PUT", "/id/ark:/99999/fk4a", "", 400, bad + "identifier already exists"},
		{"PUT", "/id/ark:/88888/x", "", 403, "error: forbidden"},
		{"POST", "/shoulder/ark:/99999/zz", "", 400, bad + "no such shoulder"},
		{"POST", "/shoulder/nonsense", "", 400, bad + "no such shoulder"},
		{"POST", "/shoulder/", "", 400, bad + "no such shoulder"},
		{"POST", "/shoulder/ark:", "", 400, bad + "no such shoulder"},
		{"POST", "/shoulder/ark:/99999", "", 400, bad + "shoulder does not support minting"},
		{"PATCH", "/id/ark:/99999/fk4a", "", 405, "error: method not allowed"},
		{"OPTIONS", "/id/ark:/99999/fk4a", "", 405, "error: method not allowed"},
		{"GET", "/shoulder/ark:/99999/fk4", "", 405, "error: method not allowed"},
		{"POST", "/login", "", 405, "error: method not allowed"},
		{"GET", "/nothing", "", 404, bad + "there is nothing at this path*"},
		{"GET", "", "", 404, bad + "there is nothing at this path*"},
		{"GET", "/login/x", "", 404, bad + "there is nothing at this path*"},
		{"GET", "/id/ark:/99999/fk4a?x=1", "", 400, bad + "unrecognized URL query parameter 'x'"},
		{"GET", "/id/ark:/99999/fk4a?prefix_match=perhaps", "", 400, bad + "invalid value for URL query parameter 'prefix_match'"},
		{"GET", "/id/ark:/99999/fk4a?prefix_match=yes&prefix_match=no", "", 400, bad + "invalid value for URL query parameter 'prefix_match'"},
		{"PUT", "/id/ark:/99999/fk4b?update_if_exists=yes&x=%zz", "", 400, bad + "unrecognized URL query parameter 'x'"},
		{"GET", "/status?subsystems=datacite", "", 400, bad + "no such subsystem"},
		{"GET", "/id/ark:/99999/fk4a", "x: y", 400, bad + "the request has a body*"},
		{"POST", "/id/ark:/99999/fk4a", "who", 400, bad + "ANVL parse error (line 1: no colon in line*"},
		{"POST", "/id/ark:/99999/fk4a", "a: b\na: c", 400, bad + "ANVL parse error (line 2: repeated label*"},
		{"POST", "/id/ark:/99999/fk4a", "a: %zz", 400, bad + "ANVL parse error (line 1: percent-decode error*"},
		{"POST", "/id/ark:/99999/fk4a", "a: \xe9t\xe9", 400, bad + "ANVL parse error (line 1: character decoding error*"},
		{"POST", "/id/ark:/99999/fk4a", "_created: 1\n_ownergroup: x", 400, bad + "_created: field is not settable; leave it out; _ownergroup: field is not settable*"},
		{"POST", "/id/ark:/99999/fk4a", "_status: deleted", 400, bad + "_status: invalid identifier status;*"},
		{"POST", "/id/ark:/99999/fk4a", "_export: maybe", 400, bad + "_export: value must be 'yes' or 'no'"},
		{"POST", "/id/ark:/99999/fk4a", "_target: javascript:alert(1)", 400, bad + "_target: *"},
		{"POST", "/id/ark:/99999/fk4a", "_target: nowhere", 400, bad + "_target: *"},
		{"POST", "/id/ark:/99999/fk4a", "erc.who: " + strings.Repeat("x", stele.MaxProse+1), 400, bad + "erc.who: has 10001 bytes*"},
		{"POST", "/id/ark:/99999/fk4a", "erc.who: a%00b", 400, bad + "erc.who: *"},
		{"POST", "/id/ark:/99999/fk4a", "_profile: dc\ndc.title: a%01b", 400, bad + "dc.title: *"},
		{"POST", "/id/ark:/99999/fk4a", "datacite: <resource>", 400, bad + "datacite: the document is not well-formed XML*"},
		{"POST", "/id/ark:/99999/fk4a", "_status: unavailable | " + strings.Repeat("x", stele.MaxProse+1), 400, bad + "_status: *"},
		{"POST", "/shoulder/ark:/99999/fk4", "_target: ${identifier}", 400, bad + "_target: *"},
		{"POST", "/shoulder/ark:/99999/fk4", "_target: nowhere", 400, bad + "_target: *"},
	} {
		res := s.ask("ed", c.method, c.path, c.body).want(t, c.status, c.want)
		if strings.ContainsAny(res.body, "\r\n") {
			t.Errorf("%s: more than a line: %q", c.path, res.body)
		}
	}
	if s.record("ark:99999/fk4a").Version != 1 {
		t.Error("something of this was done")
	}
	for _, c := range []struct{ kind, want string }{{"text/plain", ""}, {"text/plain; charset=utf-8", ""}, {"text/plain; charset=latin1", "no"}, {"application/json", "no"}, {"application/x-www-form-urlencoded", "no"}, {"x;", "no"}} {
		status, want := 200, "success: *"
		if c.want != "" {
			status, want = 400, bad+"If specified, Content-Type must be text/plain and encoding must be UTF-8"
		}
		s.ask("ed", "POST", "/id/ark:/99999/fk4a", "erc.who: A", "Content-Type", c.kind).want(t, status, want)
	}
	s.ask("ed", "POST", "/id/ark:/99999/fk4a", "erc.who: A", "Content-Encoding", "gzip").want(t, 415, bad+"the body is encoded*")
	if text := s.log.String(); text != "" {
		t.Error(text)
	}
}

// TestHostile: huge bodies, thousands of labels, and values that would be more lines in an answer.
func TestHostile(t *testing.T) {
	s := newSite(t)
	huge := "erc.who: " + strings.Repeat("x", 2<<20)
	if res, err := s.send("ed", "PUT", "/id/ark:/99999/fk4h", strings.NewReader(huge)); err == nil { // the server may close the connection first
		res.want(t, 413, "error: bad request - the body has more than 1048576 bytes*")
	}
	if res, err := s.send("ed", "PUT", "/id/ark:/99999/fk4h", strings.NewReader(huge), "Transfer-Encoding", "chunked"); err == nil {
		res.want(t, 413, "error: bad request - the body has more than 1048576 bytes*")
	}
	var b strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&b, "label%d: v\n", i)
	}
	s.ask("ed", "PUT", "/id/ark:/99999/fk4h", b.String()).want(t, 400, "error: bad request - ANVL parse error (line 10001: there are more than 10000 elements*")
	some := strings.Join(slices.Collect(strings.Lines(b.String()))[:stele.MaxFields+1], "")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4h", some).want(t, 400, "error: bad request - metadata: has 1002 items; 1000 are the most")
	some = strings.Join(slices.Collect(strings.Lines(b.String()))[:stele.MaxFields-1], "")
	s.ask("ed", "PUT", "/id/ark:/99999/fk4h", some).want(t, 201, "success: *")
	if got := s.view("", "ark:/99999/fk4h"); got["label998"] != "v" || len(got) < stele.MaxFields {
		t.Errorf("%d elements", len(got))
	}

	// A document that is too long for a record is not read: with long names in it that would take a core for a long time.
	document := "<resource><" + strings.Repeat("n", 400_000) + ">" + strings.Repeat("<a/>", 150_000)
	s.ask("ed", "PUT", "/id/ark:/99999/fk4d", "_profile: datacite\ndatacite: "+document).want(t, 400, "error: bad request - datacite: has 1000012 bytes; 10000 are the most*")

	body := "erc.who: A%0D%0A_target: https://evil.example/%0Asuccess: x\nerc.what: a%E2%80%A8_status: reserved\nx%0A_y%3A z: w\nerc.when: %0A%0A"
	s.ask("ed", "PUT", "/id/ark:/99999/fk4i", body).want(t, 201, "success: *")
	res := s.ask("", "GET", "/id/ark:/99999/fk4i", "").want(t, 200, "success: ark:/99999/fk4i\n*")
	got := res.elements(t)
	if got["erc.who"] != "A\n_target: https://evil.example/\nsuccess: x" || got["erc.what"] != "a\u2028_status: reserved" || got["x\n_y: z"] != "w" || got["_status"] != "public" || strings.ContainsAny(res.body, "\r\u2028") {
		t.Errorf("%q", res.body)
	}
	// Nor can an element that has the label of the first line, by which clients know how a request went.
	s.ask("ed", "PUT", "/id/ark:/99999/fk4j", "success: x\nerror: y").want(t, 400, "error: bad request - success: the label is that of the first line*")
	// The path, the query and a header can't either.
	s.ask("ed", "GET", "/id/x%0D%0Asuccess:%20y", "").want(t, 400, "error: bad request - invalid identifier*")
	s.ask("ed", "GET", "/id/ark:/99999/x?a%0D%0Ab=1", "").want(t, 400, "error: bad request - unrecognized URL query parameter*")
}

// TestWriters: what clients change at the same time in different elements is all kept, and of many who create an identifier one
// succeeds.
func TestWriters(t *testing.T) {
	s := newSite(t)
	const writers, rounds = 8, 5
	var wg sync.WaitGroup
	created := make([]int, writers)
	for i := range writers {
		wg.Go(func() {
			res := s.ask("ed", "PUT", "/id/ark:/99999/fk4w", fmt.Sprintf("by%d: x", i))
			created[i] = res.StatusCode
		})
	}
	wg.Wait()
	slices.Sort(created)
	if created[0] != 201 || slices.ContainsFunc(created[1:], func(n int) bool { return n != 400 }) {
		t.Errorf("%v", created)
	}
	for i := range writers {
		wg.Go(func() {
			for k := range rounds {
				s.ask("ed", "POST", "/id/ark:/99999/fk4w", fmt.Sprintf("e%d: %d", i, k)).want(t, 200, "success: *")
			}
		})
		wg.Go(func() {
			s.ask("ed", "PUT", fmt.Sprintf("/id/ark:/99999/fk4u%d?update_if_exists=yes", i/2), fmt.Sprintf("e%d: x", i))
		})
	}
	wg.Wait()
	got := s.view("", "ark:/99999/fk4w")
	for i := range writers {
		if got[fmt.Sprintf("e%d", i)] != fmt.Sprint(rounds-1) {
			t.Errorf("%v", got)
		}
		if seen := s.view("", fmt.Sprintf("ark:/99999/fk4u%d", i/2)); seen[fmt.Sprintf("e%d", i)] != "x" {
			t.Errorf("%v", seen)
		}
	}
	if n := s.record("ark:99999/fk4w").Version; n != 1+writers*rounds {
		t.Errorf("version %d", n)
	}
	// Names that are minted at the same time differ.
	names := make([]string, writers)
	for i := range writers {
		wg.Go(func() { names[i] = s.ask("ed", "POST", "/shoulder/ark:/99999/fk4", "").body })
	}
	wg.Wait()
	slices.Sort(names)
	if len(slices.Compact(names)) != writers {
		t.Errorf("%v", names)
	}
}

// TestLimits: clients are limited as in the API.
func TestLimits(t *testing.T) {
	s := newSite(t, func(o *ezid.Options) {
		at := time.Now()
		o.Now, o.Rate, o.Burst = func() time.Time { return at }, 1, 5
	})
	limited := 0
	for range 10 {
		if res := s.ask("ed", "GET", "/id/ark:/99999/x", ""); res.StatusCode == 429 {
			res.want(t, 429, "error: concurrency limit exceeded")
			if res.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			limited++
		}
	}
	if limited != 5 {
		t.Errorf("%d of 10 were limited", limited)
	}
	s.tokens["ann"] = "wrong"
	refused := make(map[int]int)
	for range 10 {
		refused[s.ask("ann", "GET", "/login", "").StatusCode]++
		refused[s.ask("", "GET", "/id/ark:/99999/x", "", "Cookie", "sessionid=guess").StatusCode]++
	}
	if refused[401] > 5 || refused[429] < 10 {
		t.Errorf("%v", refused)
	}
}

// FuzzBody: whatever a client sends is answered with a line of EZID's, and does not make the server fail.
func FuzzBody(f *testing.F) {
	s := newSite(f)
	s.ask("ed", "PUT", "/id/ark:/99999/fk4fuzz", "").want(f, 201, "success: *")
	for _, seed := range []string{"", "erc.who: A\n_target: https://example.org/", "_status: reserved", "datacite: <resource/>", "_profile: x\nerc: who: a%0Awhat: b", "a: b\na: c", "\xff", "_owner: ann"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if s.t = t; len(body) > 4096 {
			return
		}
		res := s.ask("ed", "PUT", "/id/ark:/99999/fk4fuzz?update_if_exists=yes", body)
		if res.StatusCode == 200 {
			res.want(t, 200, "success: ark:/99999/fk4fuzz")
		} else {
			res.want(t, 400, "error: bad request - *")
		}
		s.view("ed", "ark:/99999/fk4fuzz?prefix_match=no")
		if strings.ContainsAny(res.body, "\r\n") || s.log.String() != "" {
			t.Fatalf("%q, %s", res.body, s.log.String())
		}
	})
}
