package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// TestSynchronous: a commit that waits for the synchronous standby is not acknowledged
// before the standby has it, also if an operator cancels the wait, which PostgreSQL
// reports as a commit.
func TestSynchronous(t *testing.T) {
	first := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	url := migrated(t, first)
	second := first.Standby(t)
	s := opened(t, url, Options{Wait: time.Minute})
	first.Exec(t, "postgres", `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	first.Restart(t) // from its beginning it waits for the standby
	second.Stop(t, postgrestest.Fast)
	conn, err := pgx.Connect(t.Context(), first.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// waiting is the process that waits for the standby with a statement like this.
	waiting := func(like string) (pid int) {
		t.Helper()
		waitFor(t, like+" to wait for the standby", func() bool {
			err := conn.QueryRow(t.Context(), `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
				WHERE wait_event = 'SyncRep' AND query LIKE $1`, like+"%").Scan(&pid)
			return err == nil && pid != 0
		})
		return pid
	}
	r := record1(t, "a")
	done := make(chan error, 1)
	go func() { done <- s.Apply(context.Background(), commitOf(r)) }()
	for _, like := range []string{"COMMIT", "INSERT INTO writers", "INSERT INTO writers"} {
		pid := waiting(like)
		select {
		case err := <-done:
			t.Fatalf("the commit is answered while %s waits for the standby: %v", like, err)
		default:
		}
		if _, err := conn.Exec(t.Context(), `SELECT pg_cancel_backend($1)`, pid); err != nil {
			t.Fatal(err)
		}
	}
	waiting("INSERT INTO writers")
	second.Restart(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
	behind := opened(t, second.URL(databaseOf(t, url)), Options{Brief: true})
	waitFor(t, "the standby to show it", func() bool {
		_, err := behind.Record(t.Context(), r.ID)
		return err == nil
	})
	if n, err := s.LastChange(t.Context()); n != 1 || err != nil {
		t.Errorf("there are %d changes, %v", n, err)
	}
	// A standby that does not come back is a reason to say that it is unknown.
	second.Stop(t, postgrestest.Fast)
	short := open(t, url, Options{Wait: 300 * time.Millisecond})
	if err := short.Apply(t.Context(), commitOf(record1(t, "b"))); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("a commit without the standby: %v", err)
	}
	first.Exec(t, "postgres", `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	if err := short.Close(); err != nil {
		t.Error(err)
	}
	wantSound(t, s)
}
