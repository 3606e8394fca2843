package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

func TestUsers(t *testing.T) {
	s := newSite(t)
	a := s.ask(theAdmin, "POST", Root+"/users", `{"name":"dora","groups":["staff","editors"]}`).want(t, 201)
	if a.get("Location") != Root+"/users/dora" {
		t.Errorf("Location %s", a.get("Location"))
	}
	s.ask(theAdmin, "POST", Root+"/users", `{"name":"dora"}`).want(t, 409)
	for _, bad := range []string{`{}`, `{"name":""}`, `{"name":"Dora"}`, `{"name":"a/b"}`, `{"name":"a\nb"}`, `{"name":"x","groups":["y","y"]}`, `{"name":"x","by":"root"}`, `{"name":"` + strings.Repeat("x", 65) + `"}`} {
		s.ask(theAdmin, "POST", Root+"/users", bad).want(t, 400)
	}
	var u apijson.User
	s.ask(theAdmin, "PATCH", Root+"/users/dora", `{"groups":null,"admin":true}`).want(t, 200).read(t, &u)
	if len(u.Groups) != 0 || !u.Admin || u.By != theAdmin {
		t.Errorf("got %+v", u)
	}
	s.ask(theAdmin, "PATCH", Root+"/users/dora", `{"admin":null}`).want(t, 200)
	for _, bad := range []string{`{"name":"eve"}`, `{"admin":1}`, `{"groups":["A"]}`, `[]`, `{"groups":"staff"}`} {
		s.ask(theAdmin, "PATCH", Root+"/users/dora", bad).want(t, 400)
	}
	s.ask(theAdmin, "PATCH", Root+"/users/nobody-here", `{"admin":true}`).want(t, 404)
	s.ask(theAdmin, "GET", Root+"/users/A%2F..", "").want(t, 404)
	// The last administrator can't be disabled or demoted.
	s.ask(theAdmin, "PATCH", Root+"/users/root", `{"disabled":true}`).want(t, 409)
	s.ask(theAdmin, "PATCH", Root+"/users/root", `{"admin":false}`).want(t, 409)
	// Other users see only themselves.
	s.ask(theOwner, "GET", Root+"/users/ann", "").want(t, 200)
	none := s.ask(theOwner, "GET", Root+"/users/none", "").want(t, 404)
	there := s.ask(theOwner, "GET", Root+"/users/root", "").want(t, 404)
	if strings.ReplaceAll(there.body, "root", "none") != none.body {
		t.Errorf("a user that is there looks otherwise than one that is not: %s and %s", there.body, none.body)
	}
	var me apijson.Self
	s.ask(theEditor, "GET", Root+"/me", "").want(t, 200).read(t, &me)
	if me.Name != theEditor || len(me.Groups) != 1 || len(me.Roles) != 2 || me.Roles[0] != (apijson.Role{Namespace: "ark:12345", Role: "editor"}) {
		t.Errorf("got %+v", me)
	}
	// A user's rights are read anew for each request.
	s.ask(theAdmin, "PATCH", Root+"/users/ed", `{"groups":[]}`).want(t, 200)
	s.ask(theEditor, "PATCH", records+"ark:12345/x1", `{"metadata":{"who":"Ed"}}`).want(t, 403)
	s.ask(theAdmin, "PATCH", Root+"/users/ed", `{"disabled":true}`).want(t, 200)
	s.ask(theEditor, "GET", Root+"/me", "").want(t, 401)
}

func TestTokens(t *testing.T) {
	s := newSite(t)
	s.tokens[theAdmin] = s.made(s.admin, auth.TokenRequest{User: theAdmin, Never: true})
	var made apijson.MadeToken
	s.ask(theOwner, "POST", Root+"/tokens", `{"label":"nightly import"}`).want(t, 201).read(t, &made)
	if made.Token.User != theOwner || made.Token.Label != "nightly import" || !made.Token.Expires.After(s.now().Add(23*time.Hour)) || made.Token.Parent == "" {
		t.Errorf("got %+v", made)
	}
	s.tokens["new"] = made.Credential
	s.ask("new", "GET", Root+"/me", "").want(t, 200)
	for _, path := range []string{"/tokens", "/users", "/status", "/changes"} {
		if a := s.ask(theAdmin, "GET", Root+path, ""); strings.Contains(a.body, made.Credential[20:]) || strings.Contains(a.body, "hash") {
			t.Errorf("%s tells a secret: %s", path, a.body)
		}
	}
	s.ask(theStranger, "DELETE", Root+"/tokens/"+made.Token.ID, "").want(t, 404)
	s.ask("new", "GET", Root+"/me", "").want(t, 200)
	var gone apijson.Token
	s.ask(theOwner, "DELETE", Root+"/tokens/"+made.Token.ID, "").want(t, 200).read(t, &gone)
	if gone.Revoked.IsZero() || gone.ID != made.Token.ID {
		t.Errorf("got %+v", gone)
	}
	s.ask("new", "GET", Root+"/me", "").want(t, 401)
	s.ask(theOwner, "DELETE", Root+"/tokens/"+made.Token.ID, "").want(t, 200)
	s.ask(theAdmin, "DELETE", Root+"/tokens/nonsense", "").want(t, 404)

	soon := s.now().Add(time.Hour).UTC().Format(time.RFC3339)
	far := s.now().Add(1000 * 24 * time.Hour).UTC().Format(time.RFC3339)
	for _, tt := range []struct {
		who, body string
		status    int
	}{
		{theOwner, `{}`, 201},
		{theOwner, `{"expires":"` + soon + `"}`, 201},
		{theOwner, `{"expires":"` + far + `"}`, 403},
		{theOwner, `{"never":true}`, 403},
		{theOwner, `{"expires":"0001-01-01T00:00:00Z"}`, 400},
		{theAdmin, `{"expires":"0001-01-01T00:00:00Z"}`, 400}, // which is not never
		{theOwner, `{"user":"root"}`, 403},
		{theOwner, `{"user":"nobody-here"}`, 403},
		{theOwner, `{"expires":"2001-01-01T00:00:00Z"}`, 400},
		{theOwner, `{"expires":"tomorrow"}`, 400},
		{theOwner, `{"expires":5}`, 400},
		{theOwner, `{"expires":null}`, 400},
		{theOwner, `{"never":true,"expires":"` + soon + `"}`, 400},
		{theOwner, `{"label":"a\u0000b"}`, 400},
		{theOwner, `{"label":"` + strings.Repeat("x", 300) + `"}`, 400},
		{theAdmin, `{"user":"ann","never":true}`, 201},
		{theAdmin, `{"expires":"` + far + `"}`, 201},
		{theAdmin, `{"user":"nobody-here"}`, 404},
		{theAdmin, `{"scopes":["backup","metrics"]}`, 201},
		{theAdmin, `{"scopes":["everything"]}`, 400},
		{theAdmin, `{"scopes":["metrics"],"namespaces":["ark:12345"]}`, 400},
		{theOwner, `{"scopes":["write"],"namespaces":["ark:12345/x5"]}`, 201},
		{theOwner, `{"namespaces":["ark:99999"]}`, 404}, // not theirs, and so not there
		{theOwner, `{"namespaces":["ark:77777"]}`, 404},
		{theOwner, `{"namespaces":["\u0000"]}`, 400},
	} {
		s.ask(tt.who, "POST", Root+"/tokens", tt.body).want(t, tt.status)
	}
	s.ask(theOwner, "GET", Root+"/tokens?user=root", "").want(t, 403)
	own, everybody := len(s.all(theOwner, "/tokens?limit=1")), len(s.all(theAdmin, "/tokens"))
	if own != 6 || everybody <= own || len(s.all(theAdmin, "/tokens?user=ann")) != own {
		t.Errorf("%d of one's own, %d of all", own, everybody)
	}
}
