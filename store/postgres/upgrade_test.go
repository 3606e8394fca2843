package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele/store/storetest"
)

// TestUpgradeOld: tables of an earlier program get the states of zones, the times of
// versions and the marks of what is withheld by the migration.
func TestUpgradeOld(t *testing.T) {
	for name, more := range map[string][]string{
		"version 1": {`DROP TABLE audit`, `ALTER TABLE registry DROP COLUMN audit`, `ALTER TABLE registry DROP COLUMN auditat`, `UPDATE registry SET version = 1`},
		"version 2": {`UPDATE registry SET version = 2`},
	} {
		t.Run(name, func(t *testing.T) {
			url := server.Database(t)
			o := Options{Now: time.Now}
			if err := Migrate(t.Context(), url, o, nil); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), url, o)
			if err != nil {
				t.Fatal(err)
			}
			old := storetest.NewOld(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			for _, sql := range append([]string{
				`SET search_path = stele`, `DROP TABLE zones`, `DROP TABLE zone_runs`, `DROP TABLE withheld`, `DROP TABLE spacehistory`,
				`ALTER TABLE history DROP COLUMN at`, `ALTER TABLE registry DROP COLUMN spaces`, `ALTER TABLE registry DROP COLUMN written`,
				`ALTER TABLE registry DROP COLUMN generations`,
			}, more...) {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			if s, err := Open(t.Context(), url, o); err == nil {
				_ = s.Close() // the error is that it could be opened
				t.Fatal("tables that were not brought up to date were opened")
			}
			for range 2 { // the second time nothing is left to do
				if err := Migrate(t.Context(), url, o, nil); err != nil {
					t.Fatal(err)
				}
			}
			old.Check(t, opened(t, url, Options{}))
		})
	}
}
