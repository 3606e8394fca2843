package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// signsIn gives a user a passkey, or an account at an OpenID provider, and returns its ID.
func (s *site) signsIn(user string, passkey bool) string {
	s.t.Helper()
	p := auth.Passkey{ID: auth.PasskeyID([]byte(user)), User: user, Name: "Telephone", Site: "id.example.org", Credential: []byte(user), PublicKey: []byte("key"), Created: s.now()}
	cell, err := p.Cell()
	id := p.ID
	if !passkey {
		i := auth.Identity{Issuer: "https://login.example.org", Subject: "0-" + user, User: user, Label: user + "@example.org", Created: s.now()}
		cell, err = i.Cell()
		id = i.ID()
	}
	if err == nil {
		err = s.store.Apply(s.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, After: cell.Value}}})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestInvitations(t *testing.T) {
	s := newSite(t)
	var made apijson.MadeInvitation
	a := s.ask(theAdmin, "POST", Root+"/invitations", `{"name":"zoe","groups":["staff"],"namespace":"ark:12345","role":"editor"}`).want(t, http.StatusCreated)
	a.read(t, &made)
	if made.User.Name != "zoe" || !strings.HasPrefix(made.Link.Credential, "stele-link_") || made.Link.Expires.Before(s.now()) || a.get("Location") != Root+"/users/zoe" {
		t.Errorf("got %+v", made)
	}
	s.tokens["zoe"] = s.token("zoe", s.now().Add(auth.LinkLife))
	s.ask("zoe", "PATCH", records+"ark:12345/x1", `{"metadata":{"who":"Zoe"}}`, "Content-Type", apijson.MergePatch).want(t, http.StatusOK)

	// It is in the list, without its secret, until it is ended.
	var page apijson.LinkPage
	a = s.ask(theAdmin, "GET", Root+"/links", "").want(t, http.StatusOK)
	a.read(t, &page)
	if len(page.Items) != 1 || page.Items[0].ID != made.Link.ID || page.Items[0].User != "zoe" || strings.Contains(a.body, "hash") || strings.Contains(a.body, "stele-link") {
		t.Errorf("got %s", a.body)
	}
	for user, want := range map[string]int{"zoe": 1, theOwner: 0} {
		var page apijson.LinkPage
		s.ask(theAdmin, "GET", Root+"/links?user="+user, "").want(t, http.StatusOK).read(t, &page)
		if len(page.Items) != want {
			t.Errorf("%s has %d links", user, len(page.Items))
		}
	}
	s.ask(theAdmin, "DELETE", Root+"/links/"+made.Link.ID, "").want(t, http.StatusNoContent)
	s.ask(theAdmin, "DELETE", Root+"/links/"+strings.Repeat("x", 4000), "").want(t, http.StatusNoContent)
	if _, _, err := s.directory.Link(t.Context(), made.Link.Credential); err == nil {
		t.Error("the link works after its end")
	}

	s.ask(theAdmin, "POST", Root+"/invitations", `{"name":"zoe"}`).want(t, http.StatusConflict)
	s.ask(theAdmin, "POST", Root+"/invitations", `{"name":"yan","namespace":"ark:55555","role":"editor"}`).want(t, http.StatusNotFound)
	for _, body := range []string{`{"name":"Yan"}`, `{"name":"yan","role":"editor"}`, `{"name":"yan","namespace":"ark:12345","role":"boss"}`, `{"name":"yan","seconds":5}`, `{"name":"yan","namespace":"?","role":"editor"}`} {
		s.ask(theAdmin, "POST", Root+"/invitations", body).want(t, http.StatusBadRequest)
	}
	s.ask(theAdmin, "GET", Root+"/users/yan", "").want(t, http.StatusNotFound)
}

func TestAccountsAndPasskeys(t *testing.T) {
	s := newSite(t)
	account, passkey := s.signsIn(theEditor, false), s.signsIn(theEditor, true)
	s.signsIn(theOwner, true)
	for _, who := range []string{theEditor, theAdmin} {
		a := s.ask(who, "GET", Root+"/passkeys?user="+theEditor, "").want(t, http.StatusOK)
		var page apijson.PasskeyPage
		a.read(t, &page)
		if len(page.Items) != 1 || page.Items[0].ID != passkey || page.Items[0].Name != "Telephone" || strings.Contains(a.body, "ublic") {
			t.Errorf("as %s: %s", who, a.body)
		}
		var accounts apijson.AccountPage
		s.ask(who, "GET", Root+"/accounts?user="+theEditor, "").want(t, http.StatusOK).read(t, &accounts)
		if len(accounts.Items) != 1 || accounts.Items[0].ID != account || accounts.Items[0].Issuer != "https://login.example.org" {
			t.Errorf("as %s: %+v", who, accounts)
		}
	}
	// What is another user's is not told.
	s.ask(theOwner, "GET", Root+"/passkeys?user="+theEditor, "").want(t, http.StatusForbidden)
	s.ask(theOwner, "GET", Root+"/accounts?user="+theEditor, "").want(t, http.StatusForbidden)
	s.ask(theOwner, "DELETE", Root+"/passkeys/"+passkey, "").want(t, http.StatusNotFound)
	s.ask(theOwner, "PATCH", Root+"/passkeys/"+passkey, `{"name":"Mine"}`, "Content-Type", apijson.MergePatch).want(t, http.StatusNotFound)
	s.ask(theOwner, "DELETE", Root+"/accounts/"+account, "").want(t, http.StatusNotFound)
	s.ask(theOwner, "DELETE", Root+"/accounts/"+account+"?user="+theEditor, "").want(t, http.StatusForbidden)

	s.ask(theEditor, "PATCH", Root+"/passkeys/"+passkey, `{"name":"Tablet"}`, "Content-Type", apijson.MergePatch).want(t, http.StatusNoContent)
	s.ask(theEditor, "PATCH", Root+"/passkeys/"+passkey, `{"name":""}`, "Content-Type", apijson.MergePatch).want(t, http.StatusBadRequest)
	if a := s.ask(theEditor, "GET", Root+"/passkeys", ""); !strings.Contains(a.body, `"Tablet"`) {
		t.Errorf("got %s", a.body)
	}
	s.ask(theAdmin, "DELETE", Root+"/passkeys/"+passkey, "").want(t, http.StatusNoContent)
	s.ask(theAdmin, "DELETE", Root+"/passkeys/"+passkey, "").want(t, http.StatusNotFound)
	s.ask(theEditor, "DELETE", Root+"/accounts/"+account, "").want(t, http.StatusNoContent)
	s.ask(theEditor, "DELETE", Root+"/accounts/"+strings.Repeat("x", 4000), "").want(t, http.StatusNotFound)
	for _, path := range []string{"/accounts", "/passkeys"} {
		if a := s.ask(theEditor, "GET", Root+path, "").want(t, http.StatusOK); strings.Contains(a.body, `"id"`) {
			t.Errorf("got %s", a.body)
		}
	}
}

func TestTryNamespace(t *testing.T) {
	s := newSite(t)
	var got apijson.NamespaceSamples
	s.ask(theOwner, "POST", Root+"/try/ark:12345/q7", `{"minter":{"kind":"noid","template":".reeeedk"}}`).want(t, http.StatusOK).read(t, &got)
	if len(got.Samples) != namespaceSamples || !strings.HasPrefix(got.Samples[0], "ark:12345/q7") {
		t.Errorf("got %v", got)
	}
	s.ask(theAdmin, "GET", Root+"/namespaces/ark:12345/q7", "").want(t, http.StatusNotFound)
	s.ask(theOwner, "POST", Root+"/try/ark:12345/q7", `{}`).want(t, http.StatusOK).read(t, &got)
	if len(got.Samples) != 0 {
		t.Errorf("got %v", got)
	}
	s.ask(theOwner, "POST", Root+"/try/ark:12345/x5", `{}`).want(t, http.StatusConflict)
	s.ask(theOwner, "POST", Root+"/try/ark:99999/q7", `{}`).want(t, http.StatusForbidden)
	s.ask(theOwner, "POST", Root+"/try/ark:12345/q7", `{"minter":{"kind":"noid","template":"reed"}}`).want(t, http.StatusBadRequest)
}
