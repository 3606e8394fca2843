package registrar

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// enter signs a user in by a link, and returns the session's credential.
func (f *fixture) enter(user string) (string, auth.Session) {
	f.t.Helper()
	link, _, err := f.CreateLink(f.admin, user, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	l, held, err := auth.NewDirectory(f.store, f.clock).Link(f.admin, link)
	if err != nil {
		f.t.Fatal(err)
	}
	credential, s, err := f.UseLink(f.admin, l, held, "Browser/1.0")
	if err != nil {
		f.t.Fatal(err)
	}
	return credential, s
}

func TestSessions(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	credential, s := f.enter("ann")
	directory := auth.NewDirectory(f.store, f.clock)
	got, p, err := directory.Session(f.admin, credential)
	if err != nil || got.ID != s.ID || got.Hash != nil || s.Hash != nil || p.Name != "ann" || p.Admin || !got.IsFresh(f.clock()) {
		t.Fatalf("got %+v, %+v, %v", got, p, err)
	}
	for cell, err := range f.store.Cells(f.admin, "", "") {
		if err != nil || strings.Contains(string(cell.Value), credential[len(credential)-43:]) {
			t.Errorf("the secret is in %s: %s, %v", cell.Name, cell.Value, err)
		}
	}
	// A session is not a token, and a token is not a session.
	if _, err := directory.Authenticate(f.admin, credential); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("a session is taken for a token: %v", err)
	}
	token, _ := f.token("ann", time.Hour)
	for _, wrong := range []string{token, "", credential[:len(credential)-1], credential[:len(credential)-2] + "AA", "stele-link_" + strings.TrimPrefix(credential, "stele-session_")} {
		_, p, err := directory.Session(f.admin, wrong)
		want(t, err, stele.Unauthenticated, "sign in again")
		if p.IsKnown() {
			t.Errorf("%q is of %v", wrong, p)
		}
	}

	// Without use it ends; with use it lasts, and not for ever.
	f.jump(auth.SessionIdle - time.Hour)
	if err := f.NoteSession(f.admin, got); err != nil {
		t.Fatal(err)
	}
	f.jump(auth.SessionIdle - time.Hour)
	if got, _, err = directory.Session(f.admin, credential); err != nil || got.IsFresh(f.clock()) {
		t.Errorf("got %+v, %v", got, err)
	}
	f.jump(2 * time.Hour)
	_, _, err = directory.Session(f.admin, credential)
	want(t, err, stele.Unauthenticated, "sign in again")
	credential, s = f.enter("ann")
	for range int(auth.SessionLife/auth.SessionIdle)*2 - 1 {
		f.jump(auth.SessionIdle / 2)
		if err := f.NoteSession(f.admin, s); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := directory.Session(f.admin, credential); err != nil {
		t.Errorf("the session ended early: %v", err)
	}
	f.jump(auth.SessionIdle / 2)
	if _, _, err := directory.Session(f.admin, credential); err == nil {
		t.Error("the session lasts for ever")
	}
}

func TestSessionRights(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	credential, s := f.enter("ann")
	f.enter("ann")
	want(t, f.EndSession(as("bob"), s.ID), stele.Forbidden, "their own")
	_, err := each(f.Sessions(as("bob"), "ann"))
	want(t, err, stele.Forbidden, "their own")
	_, _, err = f.CreateLink(as("bob"), "ann", 0)
	want(t, err, stele.Forbidden)
	_, _, err = f.BeginSession(as("bob"), "ann", auth.ProvedByPasskey, f.clock(), "", "")
	want(t, err, stele.Forbidden)
	if list := must(each(f.Sessions(as("ann"), "ann")))(t); len(list) != 2 {
		t.Errorf("got %+v", list)
	}
	if n, err := f.EndSessions(as("ann"), "ann", s.ID); n != 1 || err != nil {
		t.Errorf("%d sessions ended: %v", n, err)
	}

	// A proof replaces the session, and its credential.
	next, renewed, err := f.BeginSession(f.admin, "ann", auth.ProvedByPasskey, f.clock(), "x", s.ID)
	if err != nil || renewed.ID == s.ID {
		t.Fatalf("got %+v, %v", renewed, err)
	}
	directory := auth.NewDirectory(f.store, f.clock)
	if _, _, err := directory.Session(f.admin, credential); err == nil {
		t.Error("the old credential is still valid")
	}
	// A user who is disabled has no session.
	must(f.SetUser(f.admin, "ann", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	_, _, err = directory.Session(f.admin, next)
	want(t, err, stele.Unauthenticated)
	_, _, err = f.CreateLink(f.admin, "ann", 0)
	want(t, err, stele.Conflict, "disabled")
}

// TestLinkOnce uses one link from several browsers at once: one of them gets a session.
func TestLinkOnce(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	for _, life := range []time.Duration{time.Minute, 8 * 24 * time.Hour, -1} {
		_, _, err := f.CreateLink(f.admin, "ann", life)
		want(t, err, stele.Invalid, "at least")
	}
	credential, l, err := f.CreateLink(f.admin, "ann", time.Hour)
	if err != nil || l.Hash != nil {
		t.Fatalf("got %+v, %v", l, err)
	}
	directory := auth.NewDirectory(f.store, f.clock)
	_, held, err := directory.Link(f.admin, credential)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var entered int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := f.UseLink(f.admin, l, held, ""); err == nil {
				mu.Lock()
				entered++
				mu.Unlock()
			} else if stele.KindOf(err) != stele.Conflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if entered != 1 {
		t.Errorf("the link signed in %d times", entered)
	}
	_, _, err = directory.Link(f.admin, credential)
	want(t, err, stele.Unauthenticated, "used already")
	credential, _, err = f.CreateLink(f.admin, "ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f.jump(time.Hour)
	_, _, err = directory.Link(f.admin, credential)
	want(t, err, stele.Unauthenticated, "expired")
}

// TestEndLink: an administrator sees the links that were not used, and ends one of them.
func TestEndLink(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	first, l, err := f.CreateLink(f.admin, "ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := f.CreateLink(f.admin, "ann", 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.CreateLink(f.admin, "bob", time.Hour); err != nil {
		t.Fatal(err)
	}
	links := func(user string) (n int) {
		t.Helper()
		for l, err := range f.Links(f.admin, user) {
			if err != nil || l.Hash != nil || l.User != user {
				t.Fatalf("got %+v, %v", l, err)
			}
			n++
		}
		return n
	}
	if links("ann") != 2 {
		t.Errorf("ann has %d links", links("ann"))
	}
	for _, caller := range []context.Context{as("ann"), as("bob"), t.Context()} {
		if err := f.EndLink(caller, l.ID); stele.KindOf(err) != stele.Forbidden && stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("ended by one who may not: %v", err)
		}
		for l, err := range f.Links(caller, "ann") {
			if err == nil {
				t.Errorf("one who may not sees %+v", l)
			}
		}
	}
	for range 2 { // a second time it has ended already
		if err := f.EndLink(f.admin, l.ID); err != nil {
			t.Fatal(err)
		}
	}
	directory := auth.NewDirectory(f.store, f.clock)
	_, _, err = directory.Link(f.admin, first)
	want(t, err, stele.Unauthenticated)
	if _, _, err := directory.Link(f.admin, second); err != nil {
		t.Error(err)
	}
	f.jump(time.Hour)
	if links("ann") != 1 || links("bob") != 0 {
		t.Errorf("after an hour ann has %d links, bob %d", links("ann"), links("bob"))
	}
	var ended int
	for e, err := range f.Audit(f.admin, AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Entry != nil && e.Entry.Operation == opEndLink && e.Entry.Object == "link:"+l.ID {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("the audit trail says %d times that the link was ended", ended)
	}
}

// TestRestoreEndsSessions: a session of a backup may have been ended since.
func TestRestoreEndsSessions(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	credential, _ := f.enter("ann")
	link, _, err := f.CreateLink(f.admin, "ann", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AfterRestore(f.admin); err != nil {
		t.Fatal(err)
	}
	directory := auth.NewDirectory(f.store, f.clock)
	if _, _, err := directory.Session(f.admin, credential); err == nil {
		t.Error("the session survived")
	}
	if _, _, err := directory.Link(f.admin, link); err == nil {
		t.Error("the link survived")
	}
}

// TestSessionsAudited: signing in and out is in the audit trail, by the user; being there is not.
func TestSessionsAudited(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	_, s := f.enter("ann")
	f.jump(time.Hour)
	if err := f.NoteSession(f.admin, s); err != nil {
		t.Fatal(err)
	}
	if err := f.EndSession(as("ann"), s.ID); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range f.store.Audit(f.admin, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Operation != "add user" {
			got = append(got, e.By+" "+e.Operation+" "+strings.Split(e.Object, ":")[0]+" "+e.Details)
		}
	}
	if joined := strings.Join(got, "\n"); joined != "local create link link of user:ann\nann sign in session by link\nann sign out session " {
		t.Errorf("got\n%s", joined)
	}
}

// TestTokenSessions: a session that a program begins with a token has the limits of that token, ends with it, and is not a
// visit to the desk.
func TestTokenSessions(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	directory := auth.NewDirectory(f.store, f.clock)
	f.options.OnAccess = directory.Forget
	f.start()
	token, made, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ann", Scopes: []auth.Scope{auth.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := directory.Authenticate(f.admin, token)
	if err != nil {
		t.Fatal(err)
	}
	credential, s, err := f.BeginTokenSession(f.admin, p, "program/1.0")
	if err != nil || s.Token != made.ID || s.How != auth.ProvedByToken {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, got, err := directory.TokenSession(f.admin, credential); err != nil || got.Name != "ann" || got.Token != made.ID || got.Has(auth.ScopeWrite) || !got.Has(auth.ScopeRead) {
		t.Errorf("%+v, %v", got, err)
	}
	_, _, err = directory.Session(f.admin, credential)
	want(t, err, stele.Unauthenticated, "sign in again")
	visit, _ := f.enter("ann")
	_, _, err = directory.TokenSession(f.admin, visit)
	want(t, err, stele.Unauthenticated, "sign in again")

	// Only a server begins one, and for a principal that has a token.
	_, _, err = f.BeginTokenSession(as("ann"), p, "")
	want(t, err, stele.Forbidden)
	_, _, err = f.BeginTokenSession(f.admin, auth.Principal{Name: "ann"}, "")
	want(t, err, stele.Unauthenticated)

	// The token has as many as it may have, and leaves room for visits.
	for range auth.MaxTokenSessions {
		f.jump(time.Second)
		if _, _, err := f.BeginTokenSession(f.admin, p, ""); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = directory.TokenSession(f.admin, credential)
	want(t, err, stele.Unauthenticated, "sign in again")
	count := 0
	for s, err := range f.Sessions(f.admin, "ann") {
		if err != nil {
			t.Fatal(err)
		}
		if s.Token != "" {
			count++
		}
	}
	if count != auth.MaxTokenSessions {
		t.Errorf("%d sessions of the token", count)
	}
	credential, _, err = f.BeginTokenSession(f.admin, p, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.RevokeToken(f.admin, made.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = directory.TokenSession(f.admin, credential)
	want(t, err, stele.Unauthenticated, "revoked")
}

// TestTokenSessionsAtOnce: programs that log in with one token at the same time all get a session, though they end the same old one.
func TestTokenSessionsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	directory := auth.NewDirectory(f.store, f.clock)
	f.options.OnAccess = directory.Forget
	f.start()
	token, _, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := directory.Authenticate(f.admin, token)
	if err != nil {
		t.Fatal(err)
	}
	_, old, err := f.BeginSession(f.admin, "ann", auth.ProvedByLink, f.clock(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for range auth.MaxTokenSessions {
		if _, _, err := f.BeginTokenSession(f.admin, p, ""); err != nil {
			t.Fatal(err)
		}
	}
	other := New(f.store, testSchemes(t), f.options)
	m := &meeting{Store: f.store}
	f.store = m
	f.start()
	m.before = func() {
		if _, _, err := other.BeginTokenSession(f.admin, p, ""); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := f.BeginTokenSession(f.admin, p, ""); err != nil {
		t.Errorf("a program that logs in at the same time as another one: %v", err)
	}
	// The same holds for users whose session takes the place of one that ends meanwhile.
	m.before = func() {
		if err := other.EndSession(f.admin, old.ID); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := f.BeginSession(f.admin, "ann", auth.ProvedByLink, f.clock(), "", old.ID); err != nil {
		t.Error(err)
	}
	must(f.SetUser(f.admin, "ann", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	_, _, err = f.BeginTokenSession(f.admin, p, "")
	want(t, err, stele.Conflict, "disabled")
}
