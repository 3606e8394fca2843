package registrar

import (
	"bytes"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/publish/zonekey"
)

// A token that was revoked, and then made room for another, is not brought back by a
// backup that has it.
func TestRestoreRevivesNoToken(t *testing.T) {
	f, backup := newFixture(t), newFixture(t)
	must(f.AddUser(f.admin, auth.User{Name: "ci"}))(t)
	later := f.clock().Add(300 * 24 * time.Hour)
	credential, token, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ci", Label: "leaked", Expires: later})
	if err != nil {
		t.Fatal(err)
	}
	if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
		t.Fatal(err)
	}
	if who, err := auth.NewDirectory(backup.store, f.clock).Authenticate(f.admin, credential); err != nil {
		t.Fatalf("the backup does not have the token: %v, %v", who, err)
	}
	must(f.RevokeToken(f.admin, token.ID))(t)
	f.crowd("ci")
	if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
		t.Fatal(err)
	}
	if who, err := auth.NewDirectory(backup.store, f.clock).Authenticate(f.admin, credential); err == nil {
		t.Errorf("the token is good for %v again", who)
	}
}

// Keys of zones, of transfers and of the log are those of the registry that is replaced: the domain
// above, the secondaries and the readers of the log know these.
func TestRestoreKeepsKeys(t *testing.T) {
	f, backup := newFixture(t), newFixture(t)
	put := func(f *fixture, name, value string) {
		t.Helper()
		if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: name, After: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{zonekey.CellPrefix + "example. 1", zonekey.TSIGCellPrefix + "k.example.", logKeysCell} {
		put(backup, name, "before")
		put(f, name, "after")
		if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
			t.Fatal(err)
		}
		if got := must(backup.store.Cell(f.admin, name))(t); !bytes.Equal(got, []byte("after")) {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// TestRestoreHandleKeys: after a restore the servers have the key of the site that clients know now, and secrets of handles can be read,
// though the key that encrypts them was replaced after the backup.
func TestRestoreHandleKeys(t *testing.T) {
	old, next := testKey(t), testKey(t)
	f := newFixture(t, func(o *Options) { o.Secrets = ringOf(old) })
	f.space("20.500.1/")
	name := f.id("20.500.1/USER")
	rec, err := f.Register(f.admin, &stele.Record{ID: name, Values: []stele.HandleValue{{Index: 300, Type: "HS_SECKEY", Data: []byte("sesame"), Permissions: stele.AdminRead}}})
	if err != nil {
		t.Fatal(err)
	}
	site := func(key string) {
		t.Helper()
		if _, err := f.SetHandleSite(f.admin, func(s *HandleSite) error { s.Octets, s.Key = []byte("site of "+key), []byte(key); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	site("first")
	backup := newFixture(t, func(o *Options) { o.Secrets = ringOf(next) })
	for cell, err := range f.store.Cells(f.admin, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := backup.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, After: cell.Value}}}); err != nil {
			t.Fatal(err)
		}
	}
	site("second")
	f.o.Secrets = ringOf(old, next)
	if _, err := f.RotateSecrets(f.admin, next.ID(), false, testCodec); err != nil {
		t.Fatal(err)
	}
	if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
		t.Fatal(err)
	}
	if got, err := backup.HandleSite(f.admin); err != nil || string(got.Key) != "second" || string(got.Octets) != "site of second" {
		t.Errorf("the key of the site is %q (%v)", got.Key, err)
	}
	if got, err := backup.HandleSecret(t.Context(), &rec.Values[0]); err != nil || string(got) != "sesame" {
		t.Errorf("the secret is %q (%v)", got, err)
	}
}
