package ezid_test

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TestRedacted: a change that says nothing about the thing does not take the mark of a legal order away.
func TestRedacted(t *testing.T) {
	s := newSite(t)
	const name = "ark:/99999/fk4red"
	s.ask("ed", "PUT", "/id/"+name, "erc.who: A\n_target: https://example.org/").want(t, 201, "success: *")
	if _, err := s.registrar.Redact(s.admin, s.record(name).ID, 0, "by order"); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "_status: unavailable | by order of a court", "erc.who:", "_profile: dc", "_export: no", "_target:"} {
		s.ask("root", "POST", "/id/"+name, body).want(t, 200, "success: *")
		if rec := s.record(name); !rec.Redacted || len(rec.Metadata) > 0 {
			t.Errorf("%q: %+v", body, rec)
		}
	}
	// A level of persistence, and who may see the record, say nothing about the thing either.
	s.ask("root", "POST", "/id/"+name, "_status: public").want(t, 200, "success: *")
	if _, err := s.registrar.Update(s.admin, s.record(name).ID, 0, func(next *stele.Record) error {
		next.Readers, next.Persistence.Level = []string{"user:ann"}, stele.Permanent
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"_export: no", "_profile: dc"} {
		s.ask("root", "POST", "/id/"+name, body).want(t, 200, "success: *")
		if rec := s.record(name); !rec.Redacted || len(rec.Metadata) > 0 || len(rec.Readers) != 1 {
			t.Errorf("with readers and a level, %q: %+v", body, rec)
		}
	}
	s.ask("root", "POST", "/id/"+name, "erc.who: B").want(t, 200, "success: *")
	if rec := s.record(name); rec.Redacted || rec.Metadata["who"] != "B" {
		t.Errorf("%+v", rec)
	}
}

// TestMintOnly: a token that may only mint can name the owner, as other clients do; a wrong owner and a client without rights look
// the same.
func TestMintOnly(t *testing.T) {
	s := newSite(t)
	s.tokens["ed"] = s.token(auth.TokenRequest{User: "ed", Scopes: []auth.Scope{auth.ScopeMint}})
	s.tokens["nemo"] = s.token(auth.TokenRequest{User: "nemo", Scopes: []auth.Scope{auth.ScopeMint}})
	s.ask("ed", "POST", "/shoulder/ark:/99999/fk4", "_owner: ann").want(t, 201, "success: *")
	s.ask("ed", "POST", "/shoulder/ark:/99999/fk4", "_owner: bob").want(t, 403, "error: forbidden")
	s.ask("nemo", "POST", "/shoulder/ark:/99999/fk4", "_owner: ann").want(t, 403, "error: forbidden")
	s.ask("nemo", "POST", "/shoulder/ark:/99999/fk4", "_owner: bob").want(t, 403, "error: forbidden")
}

// TestReadersDeleted: an identifier that is created again after it was deleted is for all readers.
func TestReadersDeleted(t *testing.T) {
	s := newSite(t)
	const name = "ark:/99999/fk4rd"
	s.ask("ed", "PUT", "/id/"+name, "_status: reserved\nerc.who: A").want(t, 201, "success: *")
	rec := s.record(name)
	if _, err := s.registrar.Update(s.admin, rec.ID, rec.Version, func(next *stele.Record) error {
		next.Readers = []string{"user:ed"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.ask("ed", "DELETE", "/id/"+name, "").want(t, 200, "success: *")
	s.ask("ed", "PUT", "/id/"+name, "erc.who: B").want(t, 201, "success: *")
	if got := s.view("", name)["erc.who"]; got != "B" {
		t.Errorf("the public sees %q", got)
	}
}

// TestBlankElsewhere: a blank record that another way in registered as reserved was not deleted here.
func TestBlankElsewhere(t *testing.T) {
	s := newSite(t)
	id, err := s.schemes.Parse("ark:99999/fk4blank")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.registrar.Register(s.admin, &stele.Record{ID: id, State: stele.Reserved}); err != nil {
		t.Fatal(err)
	}
	const name = "ark:/99999/fk4blank"
	if got := s.view("ed", name)["_status"]; got != "reserved" {
		t.Errorf("the status is %q", got)
	}
	s.ask("ed", "PUT", "/id/"+name, "erc.who: B").want(t, 400, "error: bad request - identifier already exists")
	s.ask("ed", "DELETE", "/id/"+name, "").want(t, 400, "error: bad request - identifier status does not support deletion")
	s.ask("ed", "POST", "/id/"+name, "erc.who: B").want(t, 200, "success: *")
	s.ask("ed", "DELETE", "/id/"+name, "").want(t, 200, "success: *")
	s.ask("ed", "GET", "/id/"+name, "").want(t, 400, "error: bad request - no such identifier")
}

// TestSealed: a sealed registry is one that can't be written to at present. That says nothing of an identifier, and clients do not see
// the reason, which is the operator's.
func TestSealed(t *testing.T) {
	s := newSite(t)
	const there, deleted = "ark:/99999/fk4there", "ark:/99999/fk4deleted"
	s.ask("ed", "PUT", "/id/"+there, "_status: reserved\nerc.who: A").want(t, 201, "success: *")
	s.ask("ed", "PUT", "/id/"+deleted, "_status: reserved\nerc.who: A").want(t, 201, "success: *")
	s.ask("ed", "DELETE", "/id/"+deleted, "").want(t, 200, "success: *")
	if err := s.store.Seal(t.Context(), "it moves to postgres://db.example.org/"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/id/ark:/99999/fk4never", ""},
		{"PUT", "/id/" + deleted, "erc.who: B"},
		{"PUT", "/id/" + there + "?update_if_exists=yes", "erc.who: B"},
		{"POST", "/id/" + there, "erc.who: B"},
		{"DELETE", "/id/" + there, ""},
		{"POST", "/shoulder/ark:/99999/fk4", ""},
		{"POST", "/shoulder/ark:/99999/fk4", "_target: https://example.org/${identifier}"},
	} {
		if got := s.ask("ed", c.method, c.path, c.body).want(t, 503, "error: service unavailable"); got.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: the client does not learn when to try again", c.method, c.path)
		}
	}
	s.ask("ed", "PUT", "/id/"+there, "").want(t, 400, "error: bad request - identifier already exists")
	if got := s.view("ed", there)["erc.who"]; got != "A" {
		t.Errorf("%q", got)
	}
	if text := s.log.String(); text != "" {
		t.Error(text)
	}
}

// TestHandedOver: in a namespace that was sealed for another registry nothing is made or changed, and reading goes on.
func TestHandedOver(t *testing.T) {
	s := newSite(t)
	const there = "ark:/99999/fk4there"
	s.ask("ed", "PUT", "/id/"+there, "_status: reserved\nerc.who: A").want(t, 201, "success: *")
	key, err := s.registrar.ParsePrefix("ark:99999")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.registrar.OfferNamespace(s.admin, key, "heir.example.org/.log", "https://heir.example.org/"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.registrar.SealNamespace(s.admin, key); err != nil {
		t.Fatal(err)
	}
	before, err := s.store.LastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/id/ark:/99999/fk4never", ""},
		{"PUT", "/id/" + there + "?update_if_exists=yes", "erc.who: B"},
		{"POST", "/id/" + there, "erc.who: B"},
		{"DELETE", "/id/" + there, ""},
		{"POST", "/shoulder/ark:/99999/fk4", ""},
		{"POST", "/shoulder/ark:/99999/fk4", "_target: https://example.org/${identifier}"},
	} {
		if got := s.ask("ed", c.method, c.path, c.body); got.StatusCode < 400 || got.StatusCode >= 500 {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.StatusCode, got.body)
		}
	}
	if after, err := s.store.LastChange(t.Context()); err != nil || after != before {
		t.Errorf("%d changes, %v; there were %d", after, err, before)
	}
	if got := s.view("ed", there)["erc.who"]; got != "A" {
		t.Errorf("%q", got)
	}
}
