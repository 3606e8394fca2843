package main

import (
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// lazyPostgres returns a PostgreSQL that is started when it is asked for first, and ends
// with the test.
func lazyPostgres(t testing.TB) func() *postgrestest.Server {
	return sync.OnceValue(func() *postgrestest.Server {
		return postgrestest.Start(t, postgrestest.Options{NoSync: true})
	})
}

// newDatabaseStore makes an empty registry in an empty database.
func newDatabaseStore(t testing.TB, url string) stele.Store {
	t.Helper()
	if err := postgres.Migrate(t.Context(), url, postgres.Options{Now: time.Now}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), url, postgres.Options{Now: time.Now})
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

// databaseCommand makes the command of sessions
//
//	database VARIABLE...  puts the URLs of new, empty databases into variables
//
// All of them are in one PostgreSQL.
func databaseCommand(t testing.TB) func(ts *testscript.TestScript, neg bool, args []string) {
	server := lazyPostgres(t)
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 {
			ts.Fatalf("usage: database VARIABLE...")
		}
		for _, name := range args {
			ts.Setenv(name, server().Database(t))
		}
	}
}
