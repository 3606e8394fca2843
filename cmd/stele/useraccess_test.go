package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
)

// A passkey and an account are made in a browser; here the cells are written as a server would.
func TestUserAccess(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, complaints := execute(t, "", append([]string{"--data", data}, args...)...)
		if code != want {
			t.Fatalf("%v: %d, want %d: %s", args, code, want, complaints)
		}
		return out
	}
	run(exitOK, "user", "add", "ann")
	passkey := auth.Passkey{ID: auth.PasskeyID([]byte("k")), User: "ann", Name: "Telephone", Site: "id.example.org", Credential: []byte("k"), PublicKey: []byte("p"), Created: time.Now().UTC()}
	account := auth.Identity{Issuer: "https://login.example.org", Subject: "7", User: "ann", Label: "ann@example.org", Created: time.Now().UTC()}
	write(t, data, &passkey, &account)

	if got, want := run(exitOK, "user", "passkey", "ls", "ann"), passkey.ID+"  Telephone  id.example.org  never used\n"; got != want {
		t.Errorf("got %q", got)
	}
	run(exitOK, "user", "passkey", "rename", "--", passkey.ID, "Old telephone")
	if got := run(exitOK, "user", "passkey", "ls", "ann", "--json"); !strings.Contains(got, `"name":"Old telephone"`) || strings.Contains(got, "ublic") {
		t.Errorf("got %q", got)
	}
	run(exitOK, "user", "passkey", "rm", "--", passkey.ID)
	run(exitNotFound, "user", "passkey", "rm", "--", passkey.ID)
	if got, want := run(exitOK, "user", "account", "ls", "ann"), account.ID()+"  https://login.example.org  ann@example.org  never used\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got := run(exitOK, "user", "account", "ls", "ann", "--json"); !strings.Contains(got, `"id":"`+account.ID()+`"`) {
		t.Errorf("got %q", got)
	}
	run(exitOK, "user", "account", "rm", "--", "ann", account.ID())
	run(exitNotFound, "user", "account", "rm", "--", "ann", account.ID())
	if got := run(exitOK, "user", "account", "ls", "ann") + run(exitOK, "user", "passkey", "ls", "ann"); got != "" {
		t.Errorf("got %q", got)
	}
}

// write keeps things in a registry.
func write(t *testing.T, folder string, things ...interface{ Cell() (stele.Cell, error) }) {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(t.Context(), registry.Place{Folder: folder}, schemes, registry.OpenOptions{Options: registry.Options{Now: time.Now, Random: func(int) int { return 0 }}, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, thing := range things {
		cell, err := thing.Cell()
		if err == nil {
			err = r.Store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, After: cell.Value}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
