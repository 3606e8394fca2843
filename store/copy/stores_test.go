package copy

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// newCopier makes a copier of small steps.
func newCopier(from, to stele.Store) *Copier {
	return &Copier{From: from, To: to, FromPlace: Place{Name: "from"}, ToPlace: Place{Name: "to", Absolute: "/there/to"}, Now: time.Now, AtOnce: 7}
}

// copyStores are the stores between which tests copy.
func copyStores(t *testing.T) map[string]func(t *testing.T) stele.Store {
	server := sync.OnceValue(func() *postgrestest.Server { return postgrestest.Start(t, postgrestest.Options{NoSync: true}) })
	open := func(t *testing.T, s stele.Store, err error) stele.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	inFolder := func(t *testing.T) stele.Store {
		s, err := pebble.Open(t.Context(), filepath.Join(t.TempDir(), "store"), pebble.Options{Now: time.Now})
		return open(t, s, err)
	}
	inDatabase := func(t *testing.T) stele.Store {
		url, o := server().Database(t), postgres.Options{Now: time.Now}
		if err := postgres.Migrate(t.Context(), url, o, func(string) {}); err != nil {
			t.Fatal(err)
		}
		s, err := postgres.Open(t.Context(), url, o)
		return open(t, s, err)
	}
	return map[string]func(t *testing.T) stele.Store{
		"memory":     func(*testing.T) stele.Store { return mem.New(time.Now) },
		"folder":     inFolder,
		"PostgreSQL": inDatabase,
	}
}
