package postgres

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
)

// TestRefusedOpen: the error says why a store can't be opened and what to do, and never
// has the password.
func TestRefusedOpen(t *testing.T) {
	good := migrated(t, server)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := l.Addr().String()
	l.Close()
	newer := migrated(t, server)
	exec(t, newer, `UPDATE registry SET version = version + 1`)
	older := migrated(t, server)
	exec(t, older, `UPDATE registry SET version = 1, written = 1`)
	oldest := migrated(t, server)
	exec(t, oldest, `ALTER TABLE registry DROP COLUMN written`)
	exec(t, oldest, `UPDATE registry SET version = 1`)
	partial := migrated(t, server)
	exec(t, partial, `DELETE FROM registry`)
	for name, c := range map[string]struct {
		url  string
		kind stele.Kind
		says string
	}{
		"wrong password":     {strings.Replace(good, "secret", "secret5", 1), stele.Invalid, "correct user and password"},
		"no such database":   {strings.Replace(good, "/test", "/nowhere", 1), stele.NotFound, "create it"},
		"no tables":          {server.Database(t), stele.NotFound, "stele store migrate"},
		"no row":             {partial, stele.NotFound, "stele store migrate"},
		"a later program":    {newer, stele.Invalid, "use a later program"},
		"an earlier program": {older, stele.Invalid, "stele store migrate"},
		"the first program":  {oldest, stele.Invalid, "stele store migrate"},
		"no server":          {strings.Replace(good, server.Addr(), closedPort, 1), stele.Unavailable, "start it"},
		"no URL":             {"mysql://localhost/x", stele.Invalid, "postgres://"},
		"a broken URL":       {"postgres://u:top%zzsecret@h/x", stele.Invalid, "can't be read"},
		"many schemas":       {good + "&search_path=a,b", stele.Invalid, "one schema"},
		"a schema to inject": {good + `&search_path=a"%3bDROP`, stele.Invalid, "one schema"},
	} {
		s, err := Open(t.Context(), c.url, Options{Now: time.Now, Brief: true, Wait: time.Second})
		if s != nil {
			t.Errorf("%s: it was opened", name)
			s.Close()
			continue
		}
		if stele.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%v), want %v and %q", name, err, stele.KindOf(err), c.kind, c.says)
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has the password, or several lines: %q", name, err)
		}
	}
	if err := Migrate(t.Context(), newer, Options{Now: time.Now}, nil); stele.KindOf(err) != stele.Invalid {
		t.Errorf("Migrate of what a later program made: %v", err)
	}
	if _, err := Open(t.Context(), good, Options{}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("Open without a clock: %v", err)
	}
}

// exec runs a statement in the database and schema that a URL names.
func exec(t testing.TB, url, sql string, args ...any) {
	t.Helper()
	c, err := parse(url, Options{Wait: DefaultWait})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(context.Background(), c.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestBusy: a caller that finds no free connection, or a row that another transaction
// keeps locked, waits no longer than Wait, and nothing is written.
func TestBusy(t *testing.T) {
	url := migrated(t, server)
	s := opened(t, url, Options{Wait: 400 * time.Millisecond, Connections: 2})
	var list []*stele.Record
	for i := range 3 * firstPage {
		list = append(list, record1(t, string(rune('a'+i%26))+strings.Repeat("x", i)))
	}
	if _, err := s.Ingest(t.Context(), list, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Scan(t.Context(), "ark", "", "") {
		if err != nil {
			t.Fatal(err)
		}
		// The one iterator that there may be is this one.
		for _, err := range s.Scan(t.Context(), "ark", "", "") {
			if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "connections") {
				t.Errorf("an iterator too many: %v", err)
			}
		}
		if _, err := s.Record(t.Context(), list[0].ID); err != nil {
			t.Errorf("a look-up beside an iterator: %v", err)
		}
		break
	}

	// A long transaction of another client locks the row that every writer needs.
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT * FROM stele.registry FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	r := record1(t, "late")
	if err := s.Apply(t.Context(), commitOf(r)); stele.KindOf(err) != stele.Unavailable || errors.Is(err, errUnknown) {
		t.Errorf("a commit while the row is held: %v", err)
	}
	if _, err := s.Record(t.Context(), r.ID); stele.KindOf(err) != stele.NotFound {
		t.Errorf("the record of a commit that was in vain: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), commitOf(r)); err != nil {
		t.Errorf("a commit when the row is free again: %v", err)
	}
	wantSound(t, s)
}

// TestNoTables: a store whose tables are gone says so, and does not wait.
func TestNoTables(t *testing.T) {
	url := migrated(t, server)
	s := opened(t, url, Options{})
	exec(t, url, `ALTER SCHEMA stele RENAME TO elsewhere`)
	for name, err := range map[string]error{
		"Apply": s.Apply(t.Context(), commitOf(record1(t, "a"))),
		"Ready": s.Ready(t.Context()),
		"Record": func() error {
			_, err := s.Record(t.Context(), newID(t, "ark", "a"))
			return err
		}(),
	} {
		if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "stele store migrate") {
			t.Errorf("%s without tables: %v", name, err)
		}
	}
	exec(t, url, `ALTER SCHEMA elsewhere RENAME TO stele`)
	if err := s.Apply(t.Context(), commitOf(record1(t, "a"))); err != nil {
		t.Error(err)
	}
}

// TestPoison: a commit that the database refuses does not keep its group from being
// committed.
func TestPoison(t *testing.T) {
	url := migrated(t, server)
	s := opened(t, url, Options{})
	exec(t, url, `ALTER TABLE cells ADD CHECK (value <> 'poison'::bytea)`)
	var list []*request
	for _, text := range []string{"a", "poison", "b"} {
		q, err := newRequest(&stele.Commit{
			Records: []*stele.Record{record1(t, text)},
			Cells:   []stele.CellChange{{Name: text, After: []byte(text)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, q)
	}
	g := newGroup(s, newWriter())
	g.requests = append(g.requests, list...)
	g.commit(t.Context())
	for i, want := range []bool{true, false, true} {
		if err := <-list[i].done; (err == nil) != want {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if n, err := s.LastChange(t.Context()); n != 2 || err != nil {
		t.Errorf("there are %d changes, %v", n, err)
	}
	wantSound(t, s)
}
