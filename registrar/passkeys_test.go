package registrar

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// inside returns a context in which a user acts by a session that was just proved.
func (f *fixture) inside(user string) context.Context {
	return auth.With(f.t.Context(), auth.Principal{Name: user, Session: "000000000000", Proved: f.clock()})
}

// challenge returns the mark of a challenge that was answered.
func (f *fixture) challenge(purpose string) auth.Answered {
	f.t.Helper()
	key := must(f.ChallengeKey(f.admin))(f.t)
	c := must(key.Challenge(rand.Reader, purpose, f.clock()))(f.t)
	return must(key.Check(c, purpose, f.clock()))(f.t)
}

// passkey adds a passkey of a user.
func (f *fixture) passkey(user, credential string) auth.Passkey {
	f.t.Helper()
	return must(f.AddPasskey(f.inside(user), auth.Passkey{User: user, Name: "Telephone", Site: "id.example.org", Credential: []byte(credential), PublicKey: []byte("key")}, f.challenge("x")))(f.t)
}

func TestPasskeys(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	f.user("root", func(u *auth.User) { u.Admin = true })
	p := f.passkey("ann", "c1")
	f.passkey("ann", "c2")
	directory := auth.NewDirectory(f.store, f.clock)
	got, held, err := directory.Passkey(f.admin, []byte("c1"))
	if err != nil || got.User != "ann" || got.Name != "Telephone" || got.ID != p.ID {
		t.Fatalf("got %+v, %v", got, err)
	}
	_, _, err = directory.Passkey(f.admin, []byte("unknown"))
	want(t, err, stele.Unauthenticated)

	// A challenge is answered once, a passkey is added once, by its user, with a fresh proof.
	once := f.challenge("x")
	next := auth.Passkey{User: "ann", Name: "Key", Site: "id.example.org", Credential: []byte("c3"), PublicKey: []byte("key")}
	_, err = f.AddPasskey(f.inside("bob"), next, once)
	want(t, err, stele.Forbidden)
	_, err = f.AddPasskey(as("ann"), next, once)
	want(t, err, stele.Forbidden)
	old := f.inside("ann")
	f.jump(auth.FreshProof)
	if _, err = f.AddPasskey(old, next, once); !auth.IsOldProof(err) {
		t.Errorf("got %v", err)
	}
	if err := f.RemovePasskey(old, p.ID); !auth.IsOldProof(err) {
		t.Errorf("got %v", err)
	}
	must(f.AddPasskey(f.inside("ann"), next, once))(t)
	next.Credential = []byte("c4")
	_, err = f.AddPasskey(f.inside("ann"), next, once)
	want(t, err, stele.Conflict)
	next.Credential = []byte("c3")
	_, err = f.AddPasskey(f.inside("ann"), next, f.challenge("x"))
	want(t, err, stele.Conflict, "already")
	next.Credential, next.Name = []byte("c5"), ""
	_, err = f.AddPasskey(f.inside("ann"), next, f.challenge("x"))
	want(t, err, stele.Invalid, "name")

	// Signing in notes the use, once for each challenge, and warns of a counter that goes back.
	a := f.challenge("get")
	credential, s, err := f.EnterByPasskey(f.admin, got, held, 7, a, "Browser/1.0", "")
	if err != nil || s.How != auth.ProvedByPasskey || s.User != "ann" {
		t.Fatalf("got %+v, %v", s, err)
	}
	_, _, err = f.EnterByPasskey(as("ann"), got, held, 7, f.challenge("get"), "", "")
	want(t, err, stele.Forbidden)
	got, held, _ = directory.Passkey(f.admin, []byte("c1"))
	if got.Counter != 7 || !got.Copied.IsZero() || got.Used.IsZero() {
		t.Errorf("got %+v", got)
	}
	_, _, err = f.EnterByPasskey(f.admin, got, held, 8, a, "", "")
	want(t, err, stele.Conflict)
	if _, _, err := f.EnterByPasskey(f.admin, got, held, 7, f.challenge("get"), "", s.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := directory.Session(f.admin, credential); err == nil {
		t.Error("the session that was replaced lives on")
	}
	if got, held, _ = directory.Passkey(f.admin, []byte("c1")); got.Copied.IsZero() || got.Counter != 7 {
		t.Errorf("got %+v", got)
	}
	if !slices.ContainsFunc(f.trail(0), func(e *stele.AuditEntry) bool {
		return e.Object == "passkey:"+p.ID && strings.Contains(e.Details, "copied") && e.By == "ann"
	}) {
		t.Error("the audit trail does not say that a passkey may have been copied")
	}

	// Marks of answered challenges do not pile up.
	f.jump(auth.ChallengeLife)
	if _, _, err := f.EnterByPasskey(f.admin, got, held, 9, f.challenge("get"), "", ""); err != nil {
		t.Fatal(err)
	}
	if list := must(each(f.store.Cells(f.admin, auth.ChallengeCells, "")))(t); len(list) != 2 { // the key, and one mark
		t.Errorf("%d cells are left", len(list))
	}

	if sites := must(f.PasskeySites(f.admin))(t); strings.Join(sites, " ") != "id.example.org" {
		t.Errorf("got %q", sites)
	}
	want(t, f.RenamePasskey(f.inside("bob"), p.ID, "Mine"), stele.NotFound)
	want(t, f.RemovePasskey(f.inside("bob"), p.ID), stele.NotFound)
	want(t, f.RenamePasskey(f.inside("ann"), p.ID, strings.Repeat("x", 101)), stele.Invalid)
	if err := f.RenamePasskey(f.inside("ann"), p.ID, "Old telephone"); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := directory.Passkey(f.admin, []byte("c1")); got.Name != "Old telephone" {
		t.Errorf("got %+v", got)
	}
	if err := f.RemovePasskey(f.inside("ann"), p.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = directory.Passkey(f.admin, []byte("c1"))
	want(t, err, stele.Unauthenticated)
	if list := must(each(f.Passkeys(as("ann"), "ann")))(t); len(list) != 2 {
		t.Errorf("got %+v", list)
	}
	if list := f.problems(); len(list) > 0 {
		t.Error(list)
	}
}

// TestDisabledForGood: what a disabled user had to sign in with does not come back when the user is
// enabled again, and a passkey does not work meanwhile.
func TestDisabledForGood(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	f.passkey("ann", "c1")
	session, _ := f.enter("ann")
	others, _ := f.enter("bob")
	link, _, err := f.CreateLink(f.admin, "ann", 0)
	if err != nil {
		t.Fatal(err)
	}
	disable := func(yes bool) {
		t.Helper()
		must(f.SetUser(f.admin, "ann", func(u *auth.User) error { u.Disabled = yes; return nil }))(t)
	}
	disable(true)
	directory := auth.NewDirectory(f.store, f.clock)
	_, _, err = directory.Passkey(f.admin, []byte("c1"))
	want(t, err, stele.Unauthenticated)
	disable(false)
	directory.Forget()
	_, _, err = directory.Session(f.admin, session)
	want(t, err, stele.Unauthenticated)
	_, _, err = directory.Link(f.admin, link)
	want(t, err, stele.Unauthenticated)
	if _, _, err := directory.Session(f.admin, others); err != nil {
		t.Errorf("the session of another user ended: %v", err)
	}
	if _, _, err := directory.Passkey(f.admin, []byte("c1")); err != nil {
		t.Error(err)
	}
}

// TestRestoredPasskeys: a passkey that was removed after the backup stays removed. Without the registry
// that the backup replaces, none is kept unless the operator says so.
func TestRestoredPasskeys(t *testing.T) {
	fill := func() *fixture {
		f := newFixture(t)
		f.user("ann")
		f.passkey("ann", "removed since")
		return f
	}
	for name, tt := range map[string]struct {
		present, accept bool
		want            string
	}{"present": {present: true, want: "kept"}, "none": {}, "accepted": {accept: true, want: "removed since"}} {
		backup, legacy := fill(), Legacy{AcceptTokens: tt.accept}
		if tt.present {
			present := newFixture(t)
			present.user("ann")
			present.passkey("ann", "kept")
			legacy = must(ReadLegacy(t.Context(), present.store, backup.store))(t)
		}
		if err := backup.Inherit(backup.admin, legacy); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range must(each(backup.Passkeys(as("ann"), "ann")))(t) {
			got = append(got, string(p.Credential))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q", name, got)
		}
		if list := must(each(backup.store.Cells(backup.admin, auth.ChallengeCells, "")))(t); len(list) > 0 {
			t.Errorf("%s: challenges outlive a restore: %v", name, list)
		}
	}
}

// TestVerifyVisits: sessions, links and passkeys that are damaged or have no user are reported.
func TestVerifyVisits(t *testing.T) {
	f := newFixture(t)
	f.user("ann", func(u *auth.User) { u.Admin = true })
	s := auth.Session{ID: "000000000000", User: "gone", Created: time.Now()}
	cell := must(s.Cell())(t)
	if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, After: cell.Value}, {Name: auth.LinkCells + "000000000000", After: []byte("{")}, {Name: auth.PasskeyCells + "x", After: []byte("{}")}}}); err != nil {
		t.Fatal(err)
	}
	list := strings.Join(f.problems(), "\n")
	if strings.Count(list, "can't be read") != 2 || strings.Count(list, `"gone", who is not there`) != 1 {
		t.Error(list)
	}
}
