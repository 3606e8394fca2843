package main

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	storecopy "github.com/stele-id/stele/store/copy"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// TestUnfinishedRestore is a restore that ended between the loading of the backup and
// the update of the minters: a process that opened that registry could give names again
// that were given after the backup.
func TestUnfinishedRestore(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	saved, o := filepath.Join(t.TempDir(), "saved"), postgres.Options{Now: time.Now}
	if err := newDatabaseStore(t, server.Database(t)).Backup(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	url := server.Database(t)
	if err := postgres.Migrate(t.Context(), url, o, func(string) {}); err != nil {
		t.Fatal(err)
	}
	mark, err := (&storecopy.Mark{From: saved, Backup: true}).Cell()
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Restore(t.Context(), url, saved, o, mark); err != nil {
		t.Fatal(err)
	}
	p := &program{stderr: io.Discard, now: time.Now, store: url}
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.openRegistry(t.Context(), schemes, slog.New(slog.DiscardHandler), resolver.Options{})
	if err == nil {
		err = r.Close()
		t.Fatalf("a registry whose restore was not finished was opened, and closed: %v", err)
	}
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "was not finished") || strings.Contains(err.Error(), "password") {
		t.Errorf("opening it: %v", err)
	}
}
