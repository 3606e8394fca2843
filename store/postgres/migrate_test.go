package postgres

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestMigrate: it may be done twice, from many places at once, and keeps what is there.
func TestMigrate(t *testing.T) {
	url := server.Database(t)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 2 {
				if err := Migrate(t.Context(), url, Options{Now: time.Now}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := opened(t, url, Options{})
	r := record1(t, "a")
	if err := s.Apply(t.Context(), commitOf(r)); err != nil {
		t.Fatal(err)
	}
	var told []string
	if err := Migrate(t.Context(), url, Options{Now: time.Now}, func(step string) { told = append(told, step) }); err != nil {
		t.Fatal(err)
	}
	if len(told) < len(steps) {
		t.Errorf("the steps that were told are %q", told)
	}
	if _, err := s.Record(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	// Another schema of the database is another registry.
	other := url + "&search_path=other"
	if _, err := Open(t.Context(), other, Options{Now: time.Now}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a schema without tables: %v", err)
	}
	if err := Migrate(t.Context(), other, Options{Now: time.Now}, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := opened(t, other, Options{}).LastChange(t.Context()); n != 0 || err != nil {
		t.Errorf("the registry in another schema has %d changes, %v", n, err)
	}
}

// portable is what SQL must not have: what CockroachDB or YugabyteDB lack, or what would
// make the order of names depend on a language.
var portable = map[string]*regexp.Regexp{
	"advisory locks":               regexp.MustCompile(`(?i)advisory`),
	"LISTEN and NOTIFY":            regexp.MustCompile(`(?i)\b(LISTEN|NOTIFY|UNLISTEN)\b`),
	"triggers, rules, functions":   regexp.MustCompile(`(?i)\bCREATE (OR REPLACE )?(TRIGGER|RULE|FUNCTION|PROCEDURE|EXTENSION|DOMAIN)\b`),
	"sequences in keys":            regexp.MustCompile(`(?i)\b(SEQUENCE|NEXTVAL|(BIG|SMALL)?SERIAL|IDENTITY)\b`),
	"TRUNCATE":                     regexp.MustCompile(`(?i)\bTRUNCATE\b`),
	"LOCK TABLE":                   regexp.MustCompile(`(?i)\bLOCK TABLE\b`),
	"system columns and functions": regexp.MustCompile(`(?i)\b(ctid|xmin|xmax|txid_\w+|pg_\w+\()`),
	"large objects, cursors":       regexp.MustCompile(`(?i)\b(lo_\w+\(|DECLARE .* CURSOR)`),
	"exclusion and inheritance":    regexp.MustCompile(`(?i)\b(EXCLUDE USING|INHERITS|PARTITION BY)\b`),
	"SKIP LOCKED and NOWAIT":       regexp.MustCompile(`(?i)\b(SKIP LOCKED|NOWAIT)\b`),
	"collated types":               regexp.MustCompile(`(?i)\b(text|varchar|char|citext|COLLATE)\b`),
	"binary COPY out":              regexp.MustCompile(`(?i)\bCOPY\b.*\bTO\b`),
	"MERGE":                        regexp.MustCompile(`(?i)\bMERGE INTO\b`),
	"VACUUM and ANALYZE":           regexp.MustCompile(`(?i)\b(VACUUM|ANALYZE|CLUSTER|REINDEX)\b`),
}

// statement finds SQL in Go source: what stands between backquotes.
var statement = regexp.MustCompile("(?s)`[^`]*`")

// TestSQL: the package's SQL is of the kind that other databases have too.
func TestSQL(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// All SQL stands between backquotes, so that this test sees it.
		if m := regexp.MustCompile(`"(SELECT|INSERT|UPDATE|DELETE|CREATE|COPY|BEGIN|COMMIT) `).Find(text); m != nil {
			t.Errorf("%s has SQL between other quotes: %s", name, m)
		}
		for _, sql := range statement.FindAllString(string(text), -1) {
			if name == "erase.go" && strings.HasPrefix(sql, "`VACUUM (FULL) `") {
				continue // a database without it refuses it, and Purge says so
			}
			found++
			for what, bad := range portable {
				if m := bad.FindString(sql); m != "" {
					t.Errorf("%s has %s, %q, in: %s", name, what, m, sql)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d statements were found", found)
	}
	for _, bad := range []string{
		"SELECT pg_advisory_lock(1)", "NOTIFY x", "CREATE TABLE t (id bigserial)", "CREATE TABLE t (name text)",
		"CREATE OR REPLACE FUNCTION f()", "COPY t TO STDOUT", "SELECT nextval('s')", "TRUNCATE t", "SELECT 1 FOR UPDATE SKIP LOCKED",
	} {
		hit := false
		for _, rule := range portable {
			hit = hit || rule.MatchString(bad)
		}
		if !hit {
			t.Errorf("nothing is said against %q", bad)
		}
	}
}
