package postgres

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/postgres/postgrestest"
	"github.com/stele-id/stele/store/storetest"
)

// server is the cluster of most tests, each of which has a database of its own.
var server *postgrestest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// Random sequences take their time here; other stores have more of them.
	err := flag.Set("rapid.checks", "25")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// What a killed process loses it loses with and without fsync.
	if server, err = postgrestest.New(postgrestest.Options{NoSync: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(server.Close(), closeDurable()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// migrated makes a database with tables.
func migrated(t testing.TB, s *postgrestest.Server) (url string) {
	t.Helper()
	url = s.Database(t)
	if err := Migrate(context.Background(), url, Options{Now: time.Now}, nil); err != nil {
		t.Fatal(err)
	}
	return url
}

func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	o.Now = time.Now
	s, err := Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// opened is open for tests that do not close the store themselves.
func opened(t testing.TB, url string, o Options) *Store {
	t.Helper()
	s := open(t, url, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// folders gives each folder a schema of one database. That of a backup is made from it.
type folders struct {
	database string
	urls     sync.Map
	made     atomic.Int64
}

func (f *folders) url(t testing.TB, folder string) string {
	t.Helper()
	if url, ok := f.urls.Load(folder); ok {
		return url.(string)
	}
	url := fmt.Sprintf("%s&search_path=folder%d", f.database, f.made.Add(1))
	if err := Migrate(context.Background(), url, Options{Now: time.Now}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, manifestFile)); err == nil {
		if err := Restore(context.Background(), url, folder, Options{Now: time.Now}); err != nil {
			t.Fatal(err)
		}
	}
	f.urls.Store(folder, url)
	return url
}

// TestStore: the store passes the suite.
func TestStore(t *testing.T) {
	f := folders{database: server.Database(t)}
	storetest.Run(t, storetest.Harness{
		Open:    func(t testing.TB, folder string) stele.Store { return open(t, f.url(t, folder), Options{}) },
		Durable: true,
	})
}
