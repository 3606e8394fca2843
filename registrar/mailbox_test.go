package registrar

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/secret"
)

// mailed makes a link that is sent to an address, and returns its credential.
func (f *fixture) mailed(user, address string) string {
	f.t.Helper()
	credential, _, err := f.CreateMailedLink(f.admin, user, time.Hour, &MailedLink{Address: address, Language: "en", Letter: func(string, time.Time) ([]stele.CellChange, error) { return nil, nil }})
	if err != nil {
		f.t.Fatal(err)
	}
	return credential
}

// TestMailedLinks: a link that is mailed ends those before it, which may have gone to a wrong
// address. Using it confirms the address, and then links go nowhere else.
func TestMailedLinks(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	f.user("bob")
	directory := auth.NewDirectory(f.store, f.clock)
	wrong, bobs := f.mailed("ann", "anne@example.org"), f.mailed("bob", "bob@example.org")
	right := f.mailed("ann", "ann@example.org")
	if _, _, err := directory.Link(t.Context(), wrong); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("the link to the wrong address works: %v", err)
	}
	if _, _, err := directory.Link(t.Context(), bobs); err != nil {
		t.Errorf("the link of another user: %v", err)
	}
	l, held, err := directory.Link(t.Context(), right)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.LinkUsed(as("ann"), l, held); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("a user uses up a link: %v", err)
	}
	if _, _, err := f.UseLink(f.admin, l, held, ""); err != nil {
		t.Fatal(err)
	}
	if m := must(f.Mailbox(f.admin, "ann"))(t); m.Address != "ann@example.org" {
		t.Errorf("%+v", m)
	}
	_, _, err = f.CreateMailedLink(f.admin, "ann", time.Hour, &MailedLink{Address: "other@example.org"})
	wantKind(t, "a link to another address", err, stele.Conflict)
}

// TestLinkWithDamagedAddress: an address that can't be read keeps no user out.
func TestLinkWithDamagedAddress(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	credential := f.mailed("ann", "ann@example.org")
	name := auth.MailboxCells + "ann"
	if err := f.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: name, Before: must(f.store.Cell(t.Context(), name))(t), After: []byte("{")}}}); err != nil {
		t.Fatal(err)
	}
	l, held, err := auth.NewDirectory(f.store, f.clock).Link(t.Context(), credential)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.UseLink(f.admin, l, held, ""); err != nil {
		t.Error(err)
	}
}

// TestRestoredAddresses: an address that was removed since the backup does not come back.
func TestRestoredAddresses(t *testing.T) {
	fill := func() *fixture {
		f := newFixture(t)
		f.user("root", admin)
		f.user("ann")
		f.user("bob")
		f.mailed("ann", "ann@example.org")
		f.mailed("bob", "bob@example.org")
		return f
	}
	backup, present := fill(), fill()
	name := auth.MailboxCells + "ann"
	if err := present.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: name, Before: must(present.store.Cell(t.Context(), name))(t)}}}); err != nil {
		t.Fatal(err)
	}
	if err := backup.Inherit(backup.admin, must(ReadLegacy(context.Background(), present.store, backup.store))(t)); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]bool{"ann": false, "bob": true} {
		if m := must(backup.Mailbox(backup.admin, user))(t); (m.Asked != nil) != want {
			t.Errorf("%s: %+v", user, m)
		}
	}
}

// TestRotateLetters: letters that wait are encrypted under the new key, like other secrets.
func TestRotateLetters(t *testing.T) {
	const second = "stele-secret-key-1:Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA"
	f := newFixture(t, withRing)
	l := SealedLetter{Letter: secret.NewValue([]byte("a link"))}
	if err := f.SealSecret(f.admin, LetterCells+"1", &l.Letter); err != nil {
		t.Fatal(err)
	}
	text := must(json.Marshal(&l))(t)
	if err := f.KeepWork(f.admin, stele.CellChange{Name: LetterCells + "1", After: text}); err != nil {
		t.Fatal(err)
	}
	f.options.Secrets = secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n" + second, Name: "the test"})
	f.start()
	none := func(stele.Cell, func(string, *secret.Value) (bool, error)) ([]byte, error) { return nil, nil }
	if done, err := f.RotateSecrets(f.admin, "", false, none); err != nil || done.Moved != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	f.options.Secrets = secret.NewRing(secret.Text{Keep: second, Name: "the test"})
	f.start()
	var kept SealedLetter
	if err := json.Unmarshal(must(f.store.Cell(t.Context(), LetterCells+"1"))(t), &kept); err != nil {
		t.Fatal(err)
	}
	if err := f.OpenSecret(LetterCells+"1", &kept.Letter); err != nil || string(kept.Letter.Clear()) != "a link" {
		t.Errorf("%q, %v", kept.Letter.Clear(), err)
	}
}
