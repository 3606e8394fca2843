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
