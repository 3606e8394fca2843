package registrar

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/secret"
)

// aPassword is one that no list has.
const aPassword = "mint tractor violet cello"

// withRing gives the registrar a key that encrypts secrets.
func withRing(o *Options) {
	o.Secrets = secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"})
}

// code returns what an authenticator app shows now.
func (f *fixture) code(key []byte) string { return password.Code(key, password.Step(f.clock())) }

// nextStep waits, by the clock of the test, until the app shows another code.
func (f *fixture) nextStep() { f.jump(password.Period) }

// password sets the password of a user, and returns the secret of the app.
func (f *fixture) password(user string) []byte {
	f.t.Helper()
	offer := must(f.OfferKey(f.inside(user)))(f.t)
	if err := f.SetPassword(f.inside(user), NewPassword{Password: aPassword, Again: aPassword, Offer: offer.Sealed, Code: f.code(offer.Key)}); err != nil {
		f.t.Fatal(err)
	}
	f.nextStep()
	return offer.Key
}

// sign signs in by a password and a code.
func (f *fixture) sign(user, text, code string) error {
	_, _, err := f.EnterByPassword(f.admin, PasswordProof{User: user, Password: text, Code: code}, "Browser/1.0", "")
	return err
}

func TestPasswords(t *testing.T) {
	f := newFixture(t, withRing)
	f.user("ann")
	f.user("bob")
	f.user("root", admin)
	if state, err := f.Password(f.inside("ann"), "ann"); state != nil || err != nil {
		t.Errorf("%+v, %v", state, err)
	}
	key := f.password("ann")
	if state, err := f.Password(f.admin, "ann"); state == nil || err != nil {
		t.Errorf("%+v, %v", state, err)
	}
	for cell, err := range f.store.Cells(f.admin, "", "") {
		if err != nil || strings.Contains(string(cell.Value), aPassword) || strings.Contains(string(cell.Value), password.KeyText(key)) || strings.Contains(string(cell.Value), string(key)) {
			t.Errorf("the password or the secret is in %s: %s, %v", cell.Name, cell.Value, err)
		}
	}

	// It signs in, as a fresh proof, with a new session; an old one ends.
	_, old := f.enter("ann")
	code := f.code(key)
	credential, s, err := f.EnterByPassword(f.admin, PasswordProof{User: "ann", Password: "mint\u00a0tractor violet cello", Code: code[:3] + " " + code[3:]}, "Browser/1.0", old.ID)
	if err != nil || s.How != auth.ProvedByPassword || s.ID == old.ID || !s.IsFresh(f.clock()) {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, p, err := auth.NewDirectory(f.store, f.clock).Session(f.admin, credential); err != nil || p.Name != "ann" {
		t.Errorf("%+v, %v", p, err)
	}
	for other, err := range f.Sessions(f.admin, "ann") {
		if err != nil || other.ID == old.ID {
			t.Errorf("the old session is there still: %v", err)
		}
	}

	// A code is accepted once; all refusals have one text.
	texts := make(map[string]bool)
	refused := func(user, text, code string) {
		t.Helper()
		err := f.sign(user, text, code)
		want(t, err, stele.Unauthenticated)
		if err != nil {
			texts[err.Error()] = true
		}
	}
	refused("ann", aPassword, code)
	f.nextStep()
	refused("ann", aPassword, code)
	refused("ann", aPassword, "000000")
	refused("ann", aPassword, "")
	refused("ann", "mint tractor violet Cello", f.code(key))
	refused("ann", "", f.code(key))
	refused("ann", strings.Repeat("x", password.MaxSize+1), f.code(key))
	refused("bob", aPassword, f.code(key))
	refused("zoe", aPassword, f.code(key))
	refused("Not a Name", aPassword, f.code(key))
	refused("", "", "")
	if err := f.set(f.admin, "bob", func(u *auth.User) { u.Disabled = true }); err != nil {
		t.Fatal(err)
	}
	refused("bob", aPassword, f.code(key))
	if len(texts) != 1 {
		t.Errorf("refusals differ: %v", texts)
	}
	if err := f.sign("ann", aPassword, f.code(key)); err != nil {
		t.Error(err)
	}
	// Only a server signs users in.
	if _, _, err := f.EnterByPassword(f.inside("root"), PasswordProof{User: "ann", Password: aPassword, Code: f.code(key)}, "", ""); stele.KindOf(err) != stele.Forbidden {
		t.Error(err)
	}
	if problems := f.problems(); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestSetPassword: a password is set by its user, with a fresh proof, with a code of the app, and if it is not common.
func TestSetPassword(t *testing.T) {
	f := newFixture(t, withRing)
	f.user("ann")
	f.user("bob")
	offer := must(f.OfferKey(f.inside("ann")))(t)
	good := NewPassword{Password: aPassword, Again: aPassword, Offer: offer.Sealed, Code: f.code(offer.Key), Context: []string{"Goeldi Museum"}}
	want(t, f.SetPassword(as("ann"), good), stele.Forbidden, "at the desk")
	want(t, f.SetPassword(f.admin, good), stele.Forbidden, "at the desk")
	want(t, f.SetPassword(t.Context(), good), stele.Unauthenticated)
	stale := auth.With(t.Context(), auth.Principal{Name: "ann", Session: "000000000000", Proved: f.clock().Add(-auth.FreshProof)})
	if err := f.SetPassword(stale, good); !auth.IsOldProof(err) {
		t.Error(err)
	}
	if _, err := f.OfferKey(stale); !auth.IsOldProof(err) {
		t.Error(err)
	}
	if err := f.RemovePassword(stale, "ann"); !auth.IsOldProof(err) {
		t.Error(err)
	}
	for name, change := range map[string]func(*NewPassword){
		"password: password.too-short":   func(n *NewPassword) { n.Password, n.Again = "short", "short" },
		"password: password.common":      func(n *NewPassword) { n.Password, n.Again = "goeldi museum ann 1", "goeldi museum ann 1" },
		"again: password.again-differs":  func(n *NewPassword) { n.Again = "violet cello mint tractor" },
		"code: password.code-wrong":      func(n *NewPassword) { n.Code = "12345" },
		"offer: password.offer-expired":  func(n *NewPassword) { n.Offer = "" },
		"offer: password.offer-expired ": func(n *NewPassword) { n.Offer = "bnVsbA" },
	} {
		n := good
		change(&n)
		err := f.SetPassword(f.inside("ann"), n)
		list, _ := stele.Reason(err).(stele.Problems)
		if len(list) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if code, _ := stele.CodeOf(list[0].Err); list[0].Path+": "+code != strings.TrimSpace(name) {
			t.Errorf("%s: %s: %s", name, list[0].Path, code)
		}
	}
	// The offer is for one user, and expires.
	want(t, f.SetPassword(f.inside("bob"), good), stele.Invalid, "open for too long")
	f.jump(offerLife)
	late := good
	late.Code = f.code(offer.Key)
	want(t, f.SetPassword(f.inside("ann"), late), stele.Invalid, "open for too long")

	key := f.password("ann")
	// It is changed with the same app; a code that was used does not do.
	n := NewPassword{Password: "violet cello mint tractor", Again: "violet cello mint tractor", Code: f.code(key)}
	if err := f.SetPassword(f.inside("ann"), n); err != nil {
		t.Fatal(err)
	}
	want(t, f.SetPassword(f.inside("ann"), n), stele.Invalid, "is not the code")
	f.nextStep()
	want(t, f.sign("ann", aPassword, f.code(key)), stele.Unauthenticated)
	if err := f.sign("ann", n.Password, f.code(key)); err != nil {
		t.Error(err)
	}
	var seen []string
	for _, e := range f.trail(0) {
		if strings.HasPrefix(e.Object, "password:") {
			seen = append(seen, e.By+" "+e.Operation+" "+e.Object)
		}
	}
	if !slices.Equal(seen, []string{"ann set password password:ann", "ann set password password:ann"}) {
		t.Errorf("the audit trail has %q", seen)
	}
	// Without a key no secret is stored.
	without := newFixture(t)
	without.user("ann")
	_, err := without.OfferKey(without.inside("ann"))
	want(t, err, stele.Conflict, "stele secret keygen")
}

// TestRemovePassword: users and administrators remove passwords, and the sessions that began with them end.
func TestRemovePassword(t *testing.T) {
	f := newFixture(t, withRing)
	f.user("ann")
	f.user("bob")
	f.user("root", admin)
	key := f.password("ann")
	sessions := func() (n int) {
		for _, err := range f.Sessions(f.admin, "ann") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if err := f.sign("ann", aPassword, f.code(key)); err != nil {
		t.Fatal(err)
	}
	f.enter("ann") // by a link: it stays
	want(t, f.RemovePassword(f.inside("bob"), "ann"), stele.Forbidden)
	want(t, f.RemovePassword(t.Context(), "ann"), stele.Unauthenticated)
	want(t, f.RemovePassword(f.admin, "bob"), stele.NotFound, "has no password")
	want(t, f.RemovePassword(f.admin, "zoe"), stele.NotFound, "no user")
	if err := f.RemovePassword(f.admin, "ann"); err != nil {
		t.Fatal(err)
	}
	if n := sessions(); n != 1 {
		t.Errorf("%d sessions are left", n)
	}
	f.nextStep()
	want(t, f.sign("ann", aPassword, f.code(key)), stele.Unauthenticated)
	if !slices.ContainsFunc(f.trail(0), func(e *stele.AuditEntry) bool {
		return e.Operation == "remove password" && e.Object == "password:ann" && e.Details == "removed"
	}) {
		t.Error("the audit trail does not have it")
	}
	f.password("ann")
	if err := f.RemovePassword(f.inside("ann"), "ann"); err != nil {
		t.Error(err)
	}

	// Disabling a user ends the password for good.
	key = f.password("ann")
	for _, disabled := range []bool{true, false} {
		if err := f.set(f.admin, "ann", func(u *auth.User) { u.Disabled = disabled }); err != nil {
			t.Fatal(err)
		}
		want(t, f.sign("ann", aPassword, f.code(key)), stele.Unauthenticated)
	}
}

// TestCodeRace: of two servers over one store that get one code at the same time, one takes it.
func TestCodeRace(t *testing.T) {
	f := newFixture(t, withRing)
	f.user("ann")
	key := f.password("ann")
	for range 5 {
		f.nextStep()
		code := f.code(key)
		var entered sync.Map
		var group sync.WaitGroup
		for i := range 4 {
			server := f.Registrar
			if i%2 == 1 {
				server = New(f.store, testSchemes(t), f.options)
			}
			group.Go(func() {
				_, _, err := server.EnterByPassword(f.admin, PasswordProof{User: "ann", Password: aPassword, Code: code}, "", "")
				if err == nil {
					entered.Store(i, true)
				} else if stele.KindOf(err) != stele.Unauthenticated {
					t.Error(err)
				}
			})
		}
		group.Wait()
		n := 0
		entered.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Fatalf("the code was taken %d times", n)
		}
	}
}

// TestRehash: a hash of another cost is made anew when its user signs in.
func TestRehash(t *testing.T) {
	f := newFixture(t, withRing)
	f.user("ann")
	f.hasher = password.NewHasher(1, password.Cost{Memory: 64, Passes: 1, Lanes: 1}, f.o.Rand)
	key := f.password("ann")
	hash := func() string {
		s := must(password.Read(stele.Cell{Name: password.Cells + "ann", Value: must(f.store.Cell(f.admin, password.Cells+"ann"))(t)}))(t)
		return s.Hash
	}
	if !strings.Contains(hash(), "$m=64,t=1,p=1$") {
		t.Fatal(hash())
	}
	f.start()
	want(t, f.sign("ann", "another password", f.code(key)), stele.Unauthenticated)
	if !strings.Contains(hash(), "$m=64,t=1,p=1$") {
		t.Error("a wrong password changed the hash")
	}
	for range 2 {
		if err := f.sign("ann", aPassword, f.code(key)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(hash(), "$m=19456,t=2,p=1$") {
			t.Error(hash())
		}
		f.nextStep()
	}
}

// TestRotatePasswords: the secrets of apps move to another key with those of zones.
func TestRotatePasswords(t *testing.T) {
	const second = "stele-secret-key-1:Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA"
	f := newFixture(t, withRing)
	f.user("ann")
	key := f.password("ann")
	f.options.Secrets = secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n" + second, Name: "the test"})
	f.start()
	none := func(stele.Cell, func(string, *secret.Value) (bool, error)) ([]byte, error) { return nil, nil }
	done, err := f.RotateSecrets(f.admin, "", false, none)
	if err != nil || done.Moved != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	f.options.Secrets = secret.NewRing(secret.Text{Keep: second, Name: "the test"})
	f.start()
	keys, err := f.SecretKeys(f.admin, none)
	if err != nil || len(keys) != 1 || keys[0].Secrets != 1 {
		t.Errorf("%+v, %v", keys, err)
	}
	if err := f.sign("ann", aPassword, f.code(key)); err != nil {
		t.Error(err)
	}
}

// TestRestoredPasswords: a password that was removed since the backup does not come back, one that was changed stays changed.
func TestRestoredPasswords(t *testing.T) {
	fill := func() *fixture {
		f := newFixture(t, withRing)
		f.user("root", admin)
		f.user("ann")
		f.user("bob")
		f.password("ann")
		f.password("bob")
		return f
	}
	users := func(f *fixture) (list []string) {
		for _, name := range []string{"ann", "bob"} {
			if must(f.Password(f.admin, name))(t) != nil {
				list = append(list, name)
			}
		}
		return list
	}
	for _, tt := range []struct {
		present, accept bool
		want            []string
	}{{present: true, want: []string{"bob"}}, {want: nil}, {accept: true, want: []string{"ann", "bob"}}} {
		backup, legacy := fill(), Legacy{AcceptTokens: tt.accept}
		present := fill()
		if tt.present {
			if err := present.RemovePassword(present.admin, "ann"); err != nil {
				t.Fatal(err)
			}
			legacy = must(ReadLegacy(context.Background(), present.store, backup.store))(t)
		}
		if err := backup.Inherit(backup.admin, legacy); err != nil {
			t.Fatal(err)
		}
		if got := users(backup); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q have passwords", tt, got)
		}
		if tt.present {
			before, after := must(present.store.Cell(t.Context(), password.Cells+"bob"))(t), must(backup.store.Cell(t.Context(), password.Cells+"bob"))(t)
			if string(before) != string(after) {
				t.Error("the password of the backup replaced the present one")
			}
		}
	}
}
