package postgrestest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// count asks a server how many rows a table has.
func count(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestServer: a server keeps what it has through every end, and databases are apart.
func TestServer(t *testing.T) {
	s := Start(t, Options{Settings: []string{"shared_buffers=8MB"}})
	url := s.Database(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(t, config.Database, "CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)")
	if other := s.Database(t); other == url {
		t.Errorf("two databases are one: %q", url)
	}
	for name, end := range map[string]func(){
		"fast":      func() { s.Stop(t, Fast) },
		"immediate": func() { s.Stop(t, Immediate) },
		"killed":    func() { s.Kill(t) },
	} {
		end()
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Errorf("%s: the server goes on", name)
		}
		s.Restart(t)
		if n := count(t, url); n != 1 {
			t.Errorf("%s: %d rows are left", name, n)
		}
	}
	resume := s.Pause(t)
	resume()
	if n := count(t, Hosts(config.Database, s.Standby(t), s)); n != 1 {
		t.Errorf("a standby has %d rows", n)
	}
}
