package foreign_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/scheme/all"
)

// oboFiles are files of projects as the OBO Foundry has them.
var oboFiles = map[string]string{
	"obo.yml": `# All projects

idspace: OBO
base_url: /obo

term_browser: custom

tests:
# Upper case
- from: /WATER/about/WATER_15
  to: https://water.example.org/about?id=WATER_15

entries:

### Terms

- exact: /TREE_0000050
  replacement: https://terms.example.org/tree?iri=http://purl.obolibrary.org/obo/TREE_0000050&x=1

- regex: ^/obo/WATER_(\d+)$
  replacement: https://water.example.org/terms?id=WATER:$1
  status: see other
  tests:
  - from: /WATER_15377
    to: https://water.example.org/terms?id=WATER:15377

# Digits, or a code
- regex: ^/obo/GLASS_(\d+|G[0-9]{5}[A-Z]{2})$
  replacement: https://glass.example.org/#!http%253A%252F%252FGLASS_$1
  status: see other
  tests:
  - from: /GLASS_G00982CE
    to: https://glass.example.org/#!http%3A%2F%2FGLASS_G00982CE

- regex: ^/obo/RO_([A-Z]*\d+)$
  replacement: https://ro.example.org/terms?iri=RO_$1
  status: see other

- exact: /format/
  replacement: https://format.example.org/
`,
	"tree.yml": `# PURL configuration for http://purl.obolibrary.org/obo/tree

idspace: TREE
base_url: /obo/tree

base_redirect: https://tree.example.org/start # the wiki

products:
- tree.owl: https://files.example.org/tree.owl
# an older form
- tree.obo: https://files.example.org/tree.obo
- tree+roots.owl: https://files.example.org/roots.owl

term_browser: ontobee
example_terms:
- TREE_0000001

entries:
- exact: /classes.owl
  replacement: https://files.example.org/classes.owl
  status: permanent

- prefix: /leaves/
  replacement: https://files.example.org/leaves/

- exact: /leaves/special.owl
  replacement: https://files.example.org/never.owl

- prefix: /wiki
  replacement: https://wiki.example.org/tree
  status: see other

- prefix: /about/
  replacement: http://www.ontobee.org/browser/rdf.php?o=TREE&iri=http://purl.obolibrary.org/obo/
  tests:
  - from: /about/TREE_0000001
    to: http://www.ontobee.org/browser/rdf.php?o=TREE&iri=http://purl.obolibrary.org/obo/TREE_0000001

- regex: ^/obo/tree/releases/(\d+)\.(\d+)/(.*)$
  replacement: https://files.example.org/v$1.$2/$3
  tests:
  - from: /releases/1.20/a/b.owl
    to: https://files.example.org/v1.20/a/b.owl
`,
	"water.yml": `idspace: WATER
base_url: /obo/water

term_browser: custom

products:
- water.owl: https://files.example.org/water.owl

entries:
- exact: /tracker
  replacement: https://tracker.example.org/?q=a%3Ab
- prefix: /about/
  replacement: https://water.example.org/about?id=
`,
	"sand.yml": `idspace: SAND
base_url: /obo/sand
term_browser: ols
example_terms:
- SAND_7
entries:
- prefix: /
  replacement: https://sand.example.org/files/
`,
}

// oboHtaccess is what the server of the OBO Foundry has for the files.
var oboHtaccess = func() map[string]string {
	tree := `RedirectMatch permanent "(?i)^/obo/tree/classes\.owl$" "https://files.example.org/classes.owl"
RedirectMatch temp "(?i)^/obo/tree/leaves/(.*)$" "https://files.example.org/leaves/$1"
RedirectMatch temp "(?i)^/obo/tree/leaves/special\.owl$" "https://files.example.org/never.owl"
RedirectMatch seeother "(?i)^/obo/tree/wiki(.*)$" "https://wiki.example.org/tree$1"
RedirectMatch temp "(?i)^/obo/tree/about/(.*)$" "http://www.ontobee.org/browser/rdf.php?o=TREE&iri=http://purl.obolibrary.org/obo/$1"
RedirectMatch temp "^/obo/tree/releases/(\d+)\.(\d+)/(.*)$" "https://files.example.org/v$1.$2/$3"
`
	water := `RedirectMatch temp "(?i)^/obo/water/tracker$" "https://tracker.example.org/?q=a:b"
RedirectMatch temp "(?i)^/obo/water/about/(.*)$" "https://water.example.org/about?id=$1"
`
	sand := `RedirectMatch temp "(?i)^/obo/sand/(.*)$" "https://sand.example.org/files/$1"
`
	root := `RedirectMatch temp "(?i)^/obo/TREE_0000050$" "https://terms.example.org/tree?iri=http://purl.obolibrary.org/obo/TREE_0000050&x=1"
RedirectMatch seeother "^/obo/WATER_(\d+)$" "https://water.example.org/terms?id=WATER:$1"
RedirectMatch seeother "^/obo/GLASS_(\d+|G[0-9]{5}[A-Z]{2})$" "https://glass.example.org/#!http%3A%2F%2FGLASS_$1"
RedirectMatch seeother "^/obo/RO_([A-Z]*\d+)$" "https://ro.example.org/terms?iri=RO_$1"
RedirectMatch temp "(?i)^/obo/format/$" "https://format.example.org/"
RedirectMatch temp "(?i)^/obo/tree$" "https://tree.example.org/start"
RedirectMatch temp "(?i)^/obo/tree.owl$" "https://files.example.org/tree.owl"
RedirectMatch temp "(?i)^/obo/tree.obo$" "https://files.example.org/tree.obo"
RedirectMatch temp "(?i)^/obo/tree\+roots.owl$" "https://files.example.org/roots.owl"
RedirectMatch temp "(?i)^/obo/water.owl$" "https://files.example.org/water.owl"
RedirectMatch seeother "^/obo/SAND_(\d+)$" "https://www.ebi.ac.uk/ols4/ontologies/sand/terms/http%3A%2F%2Fpurl.obolibrary.org%2Fobo%2FSAND_$1"
RedirectMatch seeother "^/obo/TREE_(\d+)$" "http://www.ontobee.org/browser/rdf.php?o=TREE&iri=http://purl.obolibrary.org/obo/TREE_$1"
`
	return map[string]string{
		"obo/.htaccess": root, "obo/tree/.htaccess": tree, "obo/TREE/.htaccess": tree, "obo/water/.htaccess": water, "obo/WATER/.htaccess": water,
		"obo/sand/.htaccess": sand, "obo/SAND/.htaccess": sand,
	}
}()

// newOBO returns a registry with the names of the OBO Foundry.
func newOBO(t *testing.T) *w3idSite {
	t.Helper()
	s := newW3ID(t)
	s.base = "https://purl.obolibrary.org/obo/"
	return s
}

// open opens files, to ask what they say.
func openOBO(t *testing.T, s *w3idSite, files map[string]string, o foreign.Options) *foreign.Source {
	t.Helper()
	o.Schemes, o.System = s.schemes, "obo"
	source, err := foreign.Open(opened(t, packed(t, files)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// TestOBO: after the import of files of projects, names lead where Apache httpd sends them by the directives that the
// OBO Foundry's tool makes of the files, and their own tests pass, both before the import and after it.
func TestOBO(t *testing.T) {
	s := newOBO(t)
	s.load("obo", oboFiles, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	t.Logf("%+v\n%s\n%s", s.counts, errors.Join(s.report.Notes...), &s.rejects)
	if s.rejects.Len() > 0 {
		t.Error("there are rejected entries")
	}
	at := apache(t, oboHtaccess)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for _, name := range []string{
		"tree", "tree.owl", "tree.obo", "tree+roots.owl", "water.owl", "format/", "format/x", "none",
		"tree/classes.owl", "TREE/classes.owl", "tree/leaves/a", "tree/Leaves/a/b", "TREE/leaves/", "tree/leaves/special.owl", "tree/wiki", "tree/WIKI/x", "tree/wikis", "tree/",
		"tree/about/TREE_1", "tree/releases/1.20/a/b.owl", "TREE/releases/1.20/a", "tree/releases/1/a", "tree/RELEASES/1.2/a",
		"water/tracker", "WATER/tracker", "water/about/x%20y", "WATER/ABOUT/WATER_15", "sand/", "sand/a/b", "SAND/x",
		"TREE_1", "TREE_0000050", "TREE_x", "tree_1", "TREE_", "WATER_15377", "WATER_x", "GLASS_12", "GLASS_G00982CE", "GLASS_G00982C", "RO_1", "RO_HOM0001", "RO_x1", "SAND_7", "SAND_7a",
	} {
		status, want := ask(t, client, at, "/obo/"+name, "*/*")
		if status < 300 || status >= 400 {
			status, want = 0, ""
		}
		check := foreign.Check{Name: s.base + name, Want: want, Status: status}
		got, _ := s.location(check.Name, "")
		if want == "" && got == "" {
			continue
		}
		if err := check.Failed(foreign.Answer{URL: got}); err != nil {
			t.Errorf("Apache httpd: %d %s\nhere: %v", status, want, err)
		}
	}

	source := openOBO(t, s, oboFiles, foreign.Options{Namespaces: true})
	checks, err := source.Checks()
	if err != nil || len(checks) != 7 {
		t.Fatal(len(checks), err)
	}
	for _, c := range checks {
		if err := c.Failed(source.Foresee(c.Name)); err != nil {
			t.Error("foreseen:", err)
		}
		if got, _ := s.location(c.Name, ""); c.Failed(foreign.Answer{URL: got}) != nil {
			t.Error(c.Failed(foreign.Answer{URL: got}))
		}
	}
	for name, want := range map[string]string{"tree": "https://tree.example.org/start", "sand/a": "https://sand.example.org/files/a", "none": ""} {
		if got := source.Foresee(s.base + name); got.URL != want {
			t.Errorf("%s: %v is foreseen, want %s", name, got, want)
		}
	}

	id, _ := s.schemes.Parse(s.base + "tree")
	rec, err := s.r.Get(s.admin, id)
	if err != nil || rec.Targets[0].Status != 302 || rec.Metadata["obo.idspace"] != "TREE" || !strings.Contains(rec.Metadata["obo.comment"], "PURL configuration for") || !strings.Contains(rec.Metadata["obo.comment"], "the wiki") {
		t.Errorf("%v, %v", rec, err)
	}
	id, _ = s.schemes.Parse(s.base + "tree/classes.owl")
	if rec, err := s.r.Get(s.admin, id); err != nil || rec.Targets[0].Status != 301 {
		t.Errorf("%v, %v", rec, err)
	}
	id, _ = s.schemes.Parse(s.base + "sand/")
	if rec, err := s.r.Get(s.admin, id); err != nil || !rec.Targets[0].Partial {
		t.Errorf("%v, %v", rec, err)
	}
	ns, err := s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "purl", Prefix: s.base + "TREE_"})
	if err != nil || len(ns.Rules) != 1 || ns.Rules[0].Targets[0].Status != 303 {
		t.Errorf("%v, %v", ns, err)
	}
}

// TestOBOPrefix: names may begin with something else, and a single file is enough.
func TestOBOPrefix(t *testing.T) {
	s := newOBO(t)
	source := openOBO(t, s, map[string]string{"water.yaml": oboFiles["water.yml"]}, foreign.Options{Namespaces: true, Prefix: "https://w3id.org/o"})
	if _, err := source.Checks(); err != nil {
		t.Fatal(err)
	}
	if got := source.Foresee("https://w3id.org/o/water/tracker"); got.URL != "https://tracker.example.org/?q=a:b" {
		t.Error(got)
	}
}

// TestOBORefusals: what can't be read or said is refused with its line, and the rest is imported.
func TestOBORefusals(t *testing.T) {
	const head = "idspace: X\nbase_url: /obo/x\n"
	for _, tt := range []struct{ text, want string }{
		{"idspace: X\n", "line 1: the file has no base_url"},
		{"base_url: /obo/x\n", "line 1: the file has no idspace"},
		{"idspace: a b\nbase_url: /obo/x\n", "line 1: an idspace has letters"},
		{"idspace: X\nbase_url: /other/x\n", "line 2: a base_url is a path that begins with /obo/"},
		{"idspace: X\nbase_url: /obo/../x\n", "line 2: a base_url is a path"},
		{"idspace: [X]\nbase_url: /obo/x\n", "line 1: idspace is not text"},
		{head + "idspace: Y\n", "line 3: idspace stands here for the second time"},
		{head + "entries:\n- exact: \"/a\n", "the file is not YAML"},
		{head + "\tx: y\n", "the file is not YAML"},
		{head + "---\na: b\n", "more than one document"},
		{head + "entries: all\n", "line 3: entries is not a list"},
		{head + "entries:\n- a\n", "line 4: an entry is not a mapping"},
		{head + "entries:\n- exact: /a\n", "line 4: the entry has no replacement"},
		{head + "entries:\n- replacement: https://example.org/\n", "line 4: an entry has one of exact, prefix and regex"},
		{head + "entries:\n- exact: /a\n  prefix: /b\n  replacement: https://example.org/\n", "line 4: an entry is exact, a prefix or a regex"},
		{head + "entries:\n- exact: a\n  replacement: https://example.org/\n", "line 4: the path of an entry begins with a slash"},
		{head + "entries:\n- exact: /a\n  replacement: https://example.org/\n  status: often\n", "line 4: the status often is not known"},
		{head + "entries:\n- regex: ^/obo/x/(?!a)(.*)$\n  replacement: https://example.org/$1\n", "line 4: the expression ^/obo/x/(?!a)(.*)$ is not read here"},
		{head + "entries:\n- regex: ^/obo/x/(.*)-(.*)$\n  replacement: https://example.org/$2/$1\n", "line 4: "},
		{head + "entries:\n- regex: /x/(.*)$\n  replacement: https://example.org/$1\n", "line 4: the expression does not begin with the path of the folder"},
		{head + "entries:\n- exact: /a\n  replacement: /b\n", "line 4: it leads to a path of the same server"},
		{head + "term_browser: mine\n", "line 3: the browser of terms mine is not known"},
		{head + "products:\n- x.owl: https://example.org/a\n  x.obo: https://example.org/b\n", "line 4: a product is one name with one URL"},
		{head + "tests:\n- from: /a\n", "line 4: a test has a path (from) and a URL (to)"},
		{head + "base: &a [1]\nentries: *a\n", "line 4: entries is not a list"},
		{"idspace: OBO\nbase_url: /obo\nbase_redirect: https://example.org/\n", "line 3: a redirect of the beginning of all names"},
	} {
		s := newOBO(t)
		s.load("obo", map[string]string{"a.yml": tt.text, "water.yml": oboFiles["water.yml"]}, foreign.Options{Namespaces: true}, bulk.FileOptions{})
		if !strings.Contains(s.rejects.String(), tt.want) {
			t.Errorf("%q: %s\nwant %s", tt.text, &s.rejects, tt.want)
		}
		if got, _ := s.location(s.base+"water/about/a", ""); got != "https://water.example.org/about?id=a" {
			t.Errorf("%q: %s", tt.text, got)
		}
	}
	s := newOBO(t)
	s.load("obo", map[string]string{"water.yml": oboFiles["water.yml"] + "colour: blue\n", "travis.yml": "language: go\n"}, foreign.Options{}, bulk.FileOptions{})
	if want := "1 rules need the namespace https://purl.obolibrary.org/obo/water/"; !strings.Contains(s.rejects.String(), want) {
		t.Errorf("%s\nwant %s", &s.rejects, want)
	}
	told := errors.Join(s.report.Notes...).Error()
	for _, want := range []string{"water.yml, line 14: colour is not known", "travis.yml has neither idspace nor base_url"} {
		if !strings.Contains(told, want) {
			t.Errorf("%s\nwant %s", told, want)
		}
	}
}

// TestOBOChecks: tests that fail are told, and so is a billion of laughs.
func TestOBOChecks(t *testing.T) {
	s := newOBO(t)
	text := strings.Replace(oboFiles["sand.yml"], "entries:\n", "tests:\n- from: /a\n  to: https://sand.example.org/other/a\n- from: /b\n  to: https://sand.example.org/files/b\nentries:\n- prefix: /p\n  status: permanent\n  replacement: https://p.example.org/\n  tests:\n  - from: /q\n    to: https://sand.example.org/files/q\n", 1)
	source := openOBO(t, s, map[string]string{"sand.yml": text}, foreign.Options{Namespaces: true})
	checks, err := source.Checks()
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, c := range checks {
		if err := c.Failed(source.Foresee(c.Name)); err != nil {
			failed = append(failed, err.Error())
		}
	}
	want := `sand.yml, line 7: https://purl.obolibrary.org/obo/sand/a should lead to https://sand.example.org/other/a, and leads to https://sand.example.org/files/a
sand.yml, line 16: https://purl.obolibrary.org/obo/sand/q should lead to https://sand.example.org/files/q with the status 301, and has 302`
	if got := strings.Join(failed, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	var laughs strings.Builder
	laughs.WriteString("idspace: X\nbase_url: /obo/x\na0: &a0 [ha]\n")
	for i := range 60 {
		fmt.Fprintf(&laughs, "a%d: &a%[1]d [*a%d, *a%[2]d, *a%[2]d]\n", i+1, i)
	}
	laughs.WriteString("entries: *a60\n")
	s.load("obo", map[string]string{"x.yml": laughs.String()}, foreign.Options{}, bulk.FileOptions{})
	if !strings.Contains(s.rejects.String(), "line 64: entries is not a list") {
		t.Error(&s.rejects)
	}
}

// TestOBOPatterns: a file with many more prefixes than a namespace has rules takes no time to refuse.
func TestOBOPatterns(t *testing.T) {
	var b strings.Builder
	b.WriteString("idspace: X\nbase_url: /obo/x\nentries:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "- prefix: /p%d/\n  replacement: https://example.org/%[1]d/\n", i)
	}
	s := newOBO(t)
	s.load("obo", map[string]string{"x.yml": b.String()}, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	if want := "/obo/x/ has more than 200 prefixes and regular expressions before it"; !strings.Contains(s.rejects.String(), want) || s.counts.Rejected < 2800 {
		t.Error(s.counts, want)
	}
}

// TestOBOResumes: an import that goes on from any place brings the same rows.
func TestOBOResumes(t *testing.T) {
	s := newOBO(t)
	read := func(end int64) (rows []string) {
		source := openOBO(t, s, oboFiles, foreign.Options{Namespaces: true})
		if err := source.SkipTo(end, 1); err != nil {
			t.Fatal(err)
		}
		for {
			b, err := source.Next()
			if errors.Is(err, io.EOF) {
				return rows
			} else if err != nil {
				t.Fatal(err)
			}
			source.Parse(b)
			for _, row := range b.Rows {
				rows = append(rows, fmt.Sprint(row.Line, string(row.Text), row.Err))
			}
		}
	}
	rows := read(0)
	if len(rows) < 20 {
		t.Fatal(rows)
	}
	for i := 1; i < len(rows); i++ {
		if got := read(int64(i)); strings.Join(got, "\n") != strings.Join(rows[i:], "\n") {
			t.Fatalf("from %d: %q, want %q", i, got, rows[i:])
		}
	}
}

// FuzzOBO: any bytes are read, or refused with a line.
func FuzzOBO(f *testing.F) {
	for _, text := range oboFiles {
		f.Add([]byte(text))
	}
	known, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.obolibrary.org"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		source, err := foreign.Open(opened(t, packed(t, map[string]string{"a.yml": string(text)})), foreign.Options{System: "obo", Schemes: known, Namespaces: true})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		checks, err := source.Checks()
		if err != nil {
			return
		}
		for _, c := range checks {
			_ = c.Failed(source.Foresee(c.Name))
		}
		for {
			b, err := source.Next()
			if err != nil {
				break
			}
			source.Parse(b)
			for _, row := range b.Rows {
				if row.Line < 1 || row.Err == nil && row.Record == nil && row.Namespace == nil {
					t.Fatalf("%q: %+v", text, row)
				}
			}
		}
	})
}
