package foreign_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// storedRows are rows of a Handle server's table, with what dumps must escape.
func storedRows() map[string][]stele.HandleValue {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	value := func(index uint32, kind string, data []byte) stele.HandleValue {
		return stele.HandleValue{Index: index, Type: kind, Data: data, TTL: 86400, Timestamp: 1_700_000_000, Permissions: stele.DefaultPermissions}
	}
	closed := value(4, "NOTE", []byte("a\tb\nc\\d'e\"f`g\r\x00h\x1ai;-- x\n\\.\n"))
	closed.Permissions = stele.AdminRead | stele.AdminWrite
	late := value(5, "EMAIL", []byte("a@example.org"))
	late.TTLAbsolute, late.TTL = true, 1_900_000_000
	return map[string][]stele.HandleValue{
		"20.500.99999/ABC-1":          {value(1, "URL", []byte("https://example.org/1")), value(2, "BLOB", every), value(3, "NAME", []byte("Água é vida")), closed, late},
		"20.500.99999/O'BRIEN \\ \"É": {value(1, "URL", []byte("https://example.org/2?a=1&b=%27"))},
	}
}

// insert writes the rows as statements, with octets as a database reads them.
func insert(octets func([]byte) string, text func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO nas VALUES (%s);\n", text("0.NA/20.500.99999"))
	bit := func(v *stele.HandleValue, p stele.Permission) string {
		return fmt.Sprint(v.Permissions&p != 0)
	}
	for name, values := range storedRows() {
		for i := range values {
			v := &values[i]
			kind := 0
			if v.TTLAbsolute {
				kind = 1
			}
			fmt.Fprintf(&b, "INSERT INTO handles VALUES (%s,%d,%s,%s,%d,%d,%d,NULL,%s,%s,%s,%s);\n", text(name), v.Index, octets([]byte(v.Type)), octets(v.Data), kind, v.TTL, v.Timestamp,
				bit(v, stele.AdminRead), bit(v, stele.AdminWrite), bit(v, stele.PublicRead), bit(v, stele.PublicWrite))
		}
	}
	return b.String()
}

// wantStored compares what is read from a dump with what the database has.
func wantStored(t *testing.T, dumps ...[]byte) {
	t.Helper()
	var files []any
	for _, dump := range dumps {
		files = append(files, dump)
	}
	records, namespaces := good(t, foreign.Options{Namespaces: true, TempDir: t.TempDir()}, files...)
	got := make(map[string][]stele.HandleValue)
	for _, rec := range records {
		name := strings.TrimPrefix(rec.ID.String(), "hdl:")
		if rec.Spelling != "" {
			name = strings.TrimPrefix(rec.Spelling, "hdl:")
		}
		got[name] = rec.Values
	}
	if diff := cmp.Diff(storedRows(), got); diff != "" {
		t.Errorf("the records differ: %s\n%s", diff, dumps)
	}
	if diff := cmp.Diff([]string{"20.500.99999/"}, namespaces); diff != "" {
		t.Errorf("the namespaces differ: %s", diff)
	}
}

// TestPostgreSQL: a dump that pg_dump writes is read, in each of its forms.
func TestPostgreSQL(t *testing.T) {
	s := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	octets := func(b []byte) string { return fmt.Sprintf(`'\x%x'::bytea`, b) }
	s.Exec(t, "postgres", "CREATE TABLE nas (na bytea NOT NULL, PRIMARY KEY (na))",
		`CREATE TABLE handles (handle bytea NOT NULL, idx int4 NOT NULL, type bytea, data bytea, ttl_type int2, ttl int4, timestamp int4, refs varchar(512),
		admin_read bool, admin_write bool, pub_read bool, pub_write bool, PRIMARY KEY (handle, idx))`,
		insert(octets, func(text string) string { return octets([]byte(text)) }))
	for _, form := range []string{"", "--inserts", "--column-inserts", "--rows-per-insert=2", "--data-only", "--clean"} {
		t.Run(form, func(t *testing.T) {
			args := []string{s.URL("postgres")}
			if form != "" {
				args = append(args, form)
			}
			wantStored(t, output(t, "", "pg_dump", args...))
		})
	}
	t.Run("CSV", func(t *testing.T) {
		tables := [][]byte{
			output(t, "", "psql", s.URL("postgres"), "-c", "COPY nas TO STDOUT CSV HEADER"), output(t, "", "psql", s.URL("postgres"), "-c", "COPY handles TO STDOUT CSV HEADER"),
		}
		wantStored(t, tables...)
	})
}

// TestMariaDB: a dump that mysqldump writes is read, in each of its forms.
func TestMariaDB(t *testing.T) {
	folder, err := os.MkdirTemp("", "mdb") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	data, socket := filepath.Join(folder, "data"), filepath.Join(folder, "s")
	user := strings.TrimSpace(string(output(t, "", "id", "-un")))
	output(t, "", "mariadb-install-db", "--no-defaults", "--datadir="+data, "--user="+user, "--auth-root-authentication-method=normal", "--skip-test-db")
	port := servertest.FreePort(t)
	servertest.Start(t, "127.0.0.1:"+port, "mariadbd", "--no-defaults", "--datadir="+data, "--user="+user, "--socket="+socket, "--bind-address=127.0.0.1", "--port="+port, "--innodb-flush-log-at-trx-commit=0")
	octets := func(b []byte) string { return fmt.Sprintf("X'%x'", b) }
	output(t, `CREATE DATABASE hs CHARACTER SET utf8mb4; USE hs;
CREATE TABLE nas (na varchar(255) NOT NULL, PRIMARY KEY (na));
CREATE TABLE handles (handle varchar(255) NOT NULL, idx int NOT NULL, type blob, data blob, ttl_type int2, ttl int, timestamp int, refs blob,
  admin_read bool, admin_write bool, pub_read bool, pub_write bool, PRIMARY KEY (handle, idx), KEY dataindex (data(255)));
`+insert(octets, func(text string) string { return "CONVERT(" + octets([]byte(text)) + " USING utf8mb4)" }), "mariadb", "--no-defaults", "--socket="+socket, "--user=root", "--default-character-set=utf8mb4")
	for _, form := range []string{"", "--hex-blob", "--complete-insert", "--skip-extended-insert", "--skip-opt", "--compatible=ansi", "--no-create-info"} {
		t.Run(form, func(t *testing.T) {
			args := []string{"--no-defaults", "--socket=" + socket, "--user=root", "--default-character-set=utf8mb4"}
			if form != "" {
				args = append(args, form)
			}
			wantStored(t, output(t, "", "mariadb-dump", append(args, "hs")...))
		})
	}
}

// output runs a program.
func output(t *testing.T, in, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, said.String())
	}
	return out.Bytes()
}
