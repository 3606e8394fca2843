package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// upgradeFolder has registries that earlier programs made, one folder for each version of what
// each store keeps: pebble-1, postgres-3. A folder has
//
//	registry.tar.gz    a store in a folder: all its files
//	registry.sql.gz    a database: the statements that make its tables and their rows
//	backup.tar.gz      a database: the backup that the program made of it
//	listing.jsonl.gz   what 'stele export --namespaces --history' of the program said
//	issued.txt         all names that its minters made
//	next.txt           the names that its templates would have made next
//
// Where the commit of that program is known, its name may follow: pebble-1-9cbde17.
// Folders are added when a version grows, and are never made anew: that program is gone.
const upgradeFolder = "testdata/upgrade"

// fixtureVariable names the program that makes a fixture; "stele" is the one under test:
//
//	STELE_FIXTURE_OF=stele go test ./cmd/stele -run 'TestUpgradeFixtures$'
const fixtureVariable = "STELE_FIXTURE_OF"

// commitVariable names the commit of that program. It is added to the names of the folders, so that registries of several programs
// of one version are kept beside each other.
const commitVariable = "STELE_FIXTURE_COMMIT"

// fixtureCommits are the commits whose registries are kept in addition, in both stores: pages promise that later programs open them.
var fixtureCommits = map[string]int{"9cbde17": 1} // and their versions

// fixtureMinter has the arguments that make names in one namespace. The next names of a template
// are known, those of the others depend on the time or on chance.
type fixtureMinter struct {
	args     []string
	template bool
}

// fixtureMinters make names in every scheme that has a minter.
var fixtureMinters = []fixtureMinter{
	{[]string{"ark", "--naan", "12345", "--shoulder", "x5", "--template", ".reedeedk"}, true},
	{[]string{"urn", "--prefix", "urn:x1", "--template", ".zdd"}, true},
	{[]string{"hdl", "--prefix", "10.5072", "--template", "fk.sdd"}, true},
	{[]string{"lsid", "--prefix", "urn:lsid:example.org:birds", "--template", ".reedeedk"}, true},
	{[]string{"pilin", "--prefix", "102.100.272"}, false},
	{[]string{"uuid", "--prefix", "urn:uuid"}, false},
	{[]string{"ibi", "--host", "mtc-m18.sid.inpe.br", "--ip", "150.163.34.243", "--granularity", "10us"}, false},
}

// fixtureSteps make the rest of a registry: every scheme and state, versions, aliases,
// signatures, a delegation, a signed zone, users and tokens. KEY and FILE stand for files.
var fixtureSteps = [][]string{
	{"user", "add", "root", "--admin"},
	{"user", "add", "ana", "--group", "staff"},
	{"user", "add", "bob", "--disabled"},
	{"ns", "add", "urn:paradisec", "--title", "Archive", "--owner", "ana", "--level", "permanent", "--statement", "Kept by the library."},
	{"ns", "add", "urn:nbn:de", "--delegate", "https://nbn-resolving.org/{id}"},
	{"ns", "set", "ark:12345/x5", "--quota", "10000", "--title", "Reports"},
	{"ns", "set", "ark:12345/x5", "--title", "Reports and letters"},
	{"ns", "grant", "ark:12345/x5", "user:ana", "editor"},
	{"key", "new", "urn:paradisec", "-o", "KEY", "--note", "of a test"},
	{"register", "urn:paradisec:AB1:001:A", "--to", "https://archive.example.org/AB1/001/A", "--type", "text/html"},
	{"register", "urn:paradisec:AB1:001:B", "--to", "https://archive.example.org/AB1/001/B"},
	{"sign", "urn:paradisec:AB1:001:A", "FILE", "--key", "KEY", "--type", "text/plain"},
	{"register", "10.5072/rivers", "--to", "https://example.org/rivers", "--title", "Rivers of Pará", "--who", "Lima, A.", "--alias", "urn:example:rivers", "--alias", "ark:12345/x5rivers"},
	{"update", "10.5072/rivers", "--title", "Rivers of Pará, second edition", "--meta", "edition=2"},
	{"update", "10.5072/rivers", "--to", "https://archive.example.org/rivers", "--type", "application/pdf", "--ttl", "300"},
	{"register", "https://purl.org/example/terms", "--to", "https://example.org/terms/", "--partial"},
	{"register", "urn:lsid:example.org:birds:4711", "--to", "https://example.org/birds/4711", "--service", "N2C", "--type", "application/rdf+xml"},
	{"register", "102.100.272/0HL62BBFQ", "--to", "https://example.org/pilin"},
	{"register", "iconet.com.br/banon/2001/02.10.22.55", "--to", "https://example.org/ibi"},
	{"register", "10.5072/old", "--to", "https://example.org/old"},
	{"withdraw", "10.5072/old", "--reason", "Merged into the atlas.", "--replacement", "10.5072/rivers"},
	{"register", "10.5072/back", "--to", "https://example.org/back"},
	{"withdraw", "10.5072/back", "--reason", "By mistake."},
	{"reinstate", "10.5072/back"},
	{"register", "urn:x1:draft", "--reserve", "--reader", "user:ana"},
	{"register", "10.5072/letters", "--to", "https://example.org/letters", "--title", "Letters"},
	{"update", "10.5072/letters", "--title", "Letters of 1911"},
	{"redact", "10.5072/letters", "--reason", "By order of a court."},
	{"import", "LINES"},
	{"zone", "add", "urn:paradisec", "--zone", "paradisec.example.", "--layout", "names", "--ns", "ns1.paradisec.example=192.0.2.1", "--mailbox", "a@example.org", "--resolver", "id.example.org"},
	{"update", "urn:paradisec:AB1:001:B", "--to", "https://archive.example.org/B"},
	{"token", "create", "ana", "--label", "laptop", "--expires", "never"},
}

// fixtureLines is what the step import reads.
const fixtureLines = `{"id":"ark:12345/x5imported1","url":"https://example.org/imported/1"}
{"id":"10.5072/imported2","targets":[{"service":"N2L","url":"https://example.org/2","type":"text/html","language":"pt-BR","order":100,"preference":10},{"service":"N2L","url":"https://example.org/2.pdf","type":"application/pdf","order":100,"preference":20}],"metadata":{"who":"Lima","what":"Two","when":"2020"},"persistence":{"level":"permanent","until":"2040-01-01","statement":"Kept."}}
{"id":"urn:example:imported3","url":"https://example.org/3","aliases":["10.5072/imported3"]}
`

// schemaVersions are the versions that the program under test writes.
func schemaVersions() map[string]uint64 {
	return map[string]uint64{"pebble": (*pebble.Store)(nil).SchemaVersion(), "postgres": (*postgres.Store)(nil).SchemaVersion()}
}

// neverUsed is the version of both stores of which there is no registry: the source had it for two hours,
// long before the first release, and no program of that time was used.
const neverUsed = 2

// TestUpgradeFixtures: there is a registry of every version, from the first that was used to
// the present one, except neverUsed, and those of fixtureCommits. With STELE_FIXTURE_OF it makes those of a program.
func TestUpgradeFixtures(t *testing.T) {
	if program := os.Getenv(fixtureVariable); program != "" {
		makeFixtures(t, program)
	}
	whole := func(folder string) error {
		for _, name := range []string{"listing.jsonl.gz", "issued.txt", "next.txt"} {
			if _, err := os.Stat(filepath.Join(upgradeFolder, folder, name)); err != nil {
				return err
			}
		}
		return nil
	}
	for store, version := range schemaVersions() {
		for v := uint64(1); v <= version; v++ {
			if v == neverUsed {
				continue
			}
			if err := whole(fmt.Sprintf("%s-%d", store, v)); err != nil {
				t.Errorf("%v\n%s has version %d now, and a registry of that version must be kept: %s=stele go test ./cmd/stele -run 'TestUpgradeFixtures$' makes it", err, store, v, fixtureVariable)
			}
		}
		for commit, v := range fixtureCommits {
			if err := whole(fmt.Sprintf("%s-%d-%s", store, v, commit)); err != nil {
				t.Errorf("the registry of commit %s: %v", commit, err)
			}
		}
	}
}

// fixtureMaker makes a registry with a program.
type fixtureMaker struct {
	t       *testing.T
	program string
	place   []string // the flags that name the registry
	files   *strings.Replacer
	issued  []string
}

func makeFixtures(t *testing.T, program string) {
	dir := t.TempDir()
	for name, text := range map[string]string{"song.txt": "la la la\n", "lines.jsonl": fixtureLines} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for store := range schemaVersions() {
		m := &fixtureMaker{t: t, program: program}
		m.files = strings.NewReplacer("KEY", filepath.Join(dir, store+".key"), "FILE", filepath.Join(dir, "song.txt"), "LINES", filepath.Join(dir, "lines.jsonl"))
		registry := filepath.Join(dir, store)
		m.place = []string{"--data", registry}
		var database *postgrestest.Server
		var url string
		if store == "postgres" {
			database = postgrestest.Start(t, postgrestest.Options{NoSync: true})
			url = database.Database(t)
			m.place = []string{"--store", url}
			m.run("store", "migrate")
		}
		m.fill()
		to := filepath.Join(upgradeFolder, store+"-"+m.version())
		if commit := os.Getenv(commitVariable); commit != "" {
			to += "-" + commit
		}
		if _, err := os.Stat(to); err == nil {
			t.Logf("%s is kept as it is", to)
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		m.write(filepath.Join(to, "listing.jsonl.gz"), zipped(t, []byte(m.run("export", "--namespaces", "--history"))))
		if store == "postgres" {
			saved := filepath.Join(dir, "saved")
			m.run("backup", saved)
			m.write(filepath.Join(to, "backup.tar.gz"), packed(t, saved))
			m.write(filepath.Join(to, "registry.sql.gz"), zipped(t, dumped(t, url)))
		} else {
			m.write(filepath.Join(to, "registry.tar.gz"), packed(t, registry))
		}
		issued := strings.Join(m.issued, "\n") + "\n"
		m.issued = nil
		for _, minter := range fixtureMinters {
			if minter.template {
				m.mint(minter, 5)
			}
		}
		m.write(filepath.Join(to, "issued.txt"), []byte(issued))
		m.write(filepath.Join(to, "next.txt"), []byte(strings.Join(m.issued, "\n")+"\n"))
	}
}

// version asks the program for the version of the store.
func (m *fixtureMaker) version() string {
	var status struct{ Schema int }
	if err := json.Unmarshal([]byte(m.run("store", "status", "--json")), &status); err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprint(status.Schema)
}

func (m *fixtureMaker) fill() {
	for i, minter := range fixtureMinters {
		m.mint(minter, 4+i)
		if minter.template {
			minter.args = append(slices.Clone(minter.args), "--to", "https://example.org/minted", "--title", "Minted")
			m.mint(minter, 2)
		}
	}
	for _, step := range fixtureSteps {
		args := slices.Clone(step)
		for i := range args {
			args[i] = m.files.Replace(args[i])
		}
		m.run(args...)
	}
	var made struct{ Token struct{ ID string } }
	if err := json.Unmarshal([]byte(m.run("token", "create", "ana", "--json")), &made); err != nil {
		m.t.Fatal(err)
	}
	m.run("token", "revoke", made.Token.ID)
	m.run("verify")
}

func (m *fixtureMaker) mint(minter fixtureMinter, n int) {
	out := m.run(append(append([]string{"mint"}, minter.args...), "-n", fmt.Sprint(n))...)
	m.issued = append(m.issued, strings.Fields(out)...)
}

func (m *fixtureMaker) run(args ...string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), m.program, append(args, m.place...)...)
	cmd.Env = []string{"HOME=" + m.t.TempDir(), "PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s %q: %v\n%s%s", m.program, args, err, out, stderr.Bytes())
	}
	return string(out)
}

func (m *fixtureMaker) write(name string, data []byte) {
	m.t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// dumped returns the statements that make a database, without those that a PostgreSQL of
// another version would refuse.
func dumped(t *testing.T, url string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--schema=stele", "--dbname="+url).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return regexp.MustCompile(`(?m)^(--|\\|SET |SELECT pg_catalog).*\n|^\n`).ReplaceAll(out, nil)
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packed returns the files of a folder as a compressed archive.
func packed(t *testing.T, folder string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped(t, b.Bytes())
}

// unzipped returns what is in a compressed file.
func unzipped(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unpacked writes the files of an archive to a new folder, and returns its name.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "unpacked")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(bytes.NewReader(unzipped(t, archive)))
	for {
		head, err := in.Next()
		if err == io.EOF {
			return folder
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, filepath.FromSlash(head.Name))
		if head.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(name, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
