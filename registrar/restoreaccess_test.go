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
	for range auth.MaxTokens {
		if _, _, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ci", Label: "run", Expires: later}); err != nil {
			t.Fatal(err)
		}
	}
	if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
		t.Fatal(err)
	}
	if who, err := auth.NewDirectory(backup.store, f.clock).Authenticate(f.admin, credential); err == nil {
		t.Errorf("the token is good for %v again", who)
	}
}

// Keys of zones and of transfers are those of the registry that is replaced: the domain
// above and the secondaries know these.
func TestRestoreKeepsKeys(t *testing.T) {
	f, backup := newFixture(t), newFixture(t)
	put := func(f *fixture, name, value string) {
		t.Helper()
		if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: name, After: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{zonekey.CellPrefix + "example. 1", zonekey.TSIGCellPrefix + "k.example."} {
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
