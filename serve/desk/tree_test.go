package desk

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// w3idTree is a folder of w3id.org: a record, a rule, and a redirect that can't be said here.
var w3idTree = []string{
	"rivers/.htaccess", "# Contact: Ana Lima\nRewriteEngine on\nRewriteRule ^$ https://example.org/rivers [R=303,L]\n" +
		"RewriteRule ^gauge/([0-9]+)$ https://example.org/gauges?id=$1 [R=303,L]\nRewriteRule ^map$ https://example.org/%{QUERY_STRING} [R=303,L]\n",
	"rivers/README.md", "Rivers of Pará\n",
	"lakes/.htaccess", "RewriteEngine on\nRewriteRule ^all$ https://example.org/lakes [R=302,L]\n",
	"lakes/notes.txt", "not read\n",
	"lakes/.git/config", "not read either\n",
}

// oboTree is a configuration of the OBO Foundry with two tests, of which one fails.
var oboTree = []string{
	"config/water.yml", "idspace: WATER\nbase_url: /obo/water\nproducts:\n- water.owl: https://files.example.org/water.owl\nterm_browser: custom\nentries:\n- prefix: /about/\n" +
		"  replacement: https://water.example.org/about?id=\n  tests:\n  - from: /about/15\n    to: https://water.example.org/about?id=15\n  - from: /about/16\n    to: https://water.example.org/other\n",
	"config/README.md", "read by people\n",
}

// below puts files into a folder.
func below(folder string, files []string) []string {
	list := make([]string, len(files))
	for i := range files {
		if list[i] = files[i]; i%2 == 0 {
			list[i] = folder + files[i]
		}
	}
	return list
}

// zipped returns files as a zip archive; a name that ends with @ is a symbolic link.
func zipped(t *testing.T, files []string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &zip.FileHeader{Name: strings.TrimSuffix(files[i], "@"), Method: zip.Deflate}
		if h.SetMode(0o644); strings.HasSuffix(files[i], "@") {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		if files[i+1] == "" {
			h.Method = zip.Store // a compressor for each of many files would take longer than all else
		}
		out := must(w.CreateHeader(h))(t)
		must(out.Write([]byte(files[i+1])))(t)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// tarred returns files as a tar archive that is compressed with gzip.
func tarred(t *testing.T, files []string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}
		if name, link := strings.CutSuffix(files[i], "@"); link {
			h = &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: files[i+1]}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			must(w.Write([]byte(files[i+1])))(t)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// newTreeSite returns a site on which olga owns w3id.org and the OBO Foundry's names.
func newTreeSite(t *testing.T) *site {
	s := newSite(t)
	s.runJobs()
	for _, prefix := range []string{"https://w3id.org/", "https://purl.obolibrary.org/obo/"} {
		must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "purl", Prefix: prefix, Owner: "olga"}))(t)
	}
	return s
}

func (s *site) rules(prefix string) []stele.Rule {
	s.t.Helper()
	return must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "purl", Prefix: prefix}))(s.t).Rules
}

// TestManyTree: a folder of w3id.org is sent as a browser sends a folder, as zip and as tar.gz, and read in the same way; its rules are
// written and undone with its records.
func TestManyTree(t *testing.T) {
	s := newTreeSite(t)
	b := s.as("olga")
	b.get("/.desk/many").has(200, "webkitdirectory", `<option value="w3id">`, `<option value="obo">`, "Make namespaces that are missing")
	fields := url.Values{"system": {"w3id"}, "spaces": {"yes"}}
	for name, files := range map[string][]string{
		"folder":  below("w3id/", w3idTree),
		"zip":     {"w3id.org.zip", zipped(t, w3idTree)},
		"GitHub":  {"w3id.org-master.zip", zipped(t, below("w3id.org-master/", w3idTree))},
		"tar":     {"w3id.org.tar.gz", tarred(t, below("./", w3idTree))},
		"auto":    below("w3id/", w3idTree),
		"unasked": {"w3id.org.tar.gz", tarred(t, w3idTree)},
	} {
		t.Run(name, func(t *testing.T) {
			with := fields
			if name == "auto" || name == "unasked" {
				with = url.Values{"system": {"auto"}, "spaces": {"yes"}}
			}
			path := b.sendFiles(with, files...).leads("/.desk/many/").location()
			b.get(path).has(200, "4 rows", "w3id (.htaccess)", "It has 3 files that are read", "https://w3id.org/rivers/", "https://w3id.org/lakes/all",
				"namespace with 1 rule", "gauge/{", "3 of 4 redirects were read (75.0 %)", "2 files of the folder are not of this system and were left out, such as", "notes.txt",
				"the URL has a variable of the server", "Write the 3 good rows", "--create-namespaces --dry-run FOLDER")
			b.get(path+"/rejects").has(200, "# line 5:", "rivers/.htaccess: RewriteRule ^map$")
			b.post(path, url.Values{"do": {"discard"}})
		})
	}

	// Without the folder's name the names are others; the user can say where they begin.
	path := b.sendFiles(fields, "my.zip", zipped(t, below("site/", w3idTree))).leads("/.desk/many/").location()
	b.get(path).has(200, "https://w3id.org/site/rivers/")
	b.post(path, url.Values{"do": {"columns"}, "system": {"w3id"}, "root": {"/site/lakes/"}}).leads(path)
	b.get(path).has(200, "https://w3id.org/all", "2 files are not in the folder site/lakes, and are left out, such as site/rivers/.htaccess")
	b.post(path, url.Values{"do": {"columns"}, "system": {"noid"}}).has(422, "a folder was sent")
	b.post(path, url.Values{"do": {"discard"}})

	// Without the namespaces the rules are refused.
	path = b.sendFiles(url.Values{"system": {"w3id"}}, below("w3id/", w3idTree)...).leads("/.desk/many/").location()
	b.get(path).has(200, "1 rules need the namespace https://w3id.org/rivers/", "Write the 2 good rows")
	b.post(path, url.Values{"do": {"columns"}, "system": {"w3id"}, "root": {"w3id"}, "spaces": {"yes"}}).leads(path)
	b.get(path).has(200, "Write the 3 good rows")

	started := b.write(path, "good").leads("/.desk/jobs/")
	b.awaitJob(started.location()).has(200, "4 of 4", "done", "3 of 4 redirects were read (75.0 %)", "3</b> <span>names made", "1</b> <span>refused", "the URL has a variable")
	b.get(started.location()+"/result.csv").has(200, ",https://w3id.org/rivers/,new")
	if rules := s.rules("https://w3id.org/rivers/"); len(rules) != 1 {
		t.Fatalf("%+v", rules)
	}
	b.get("/.desk/record?id="+url.QueryEscape("https://w3id.org/rivers/")).has(200, "https://example.org/rivers", "Rivers of Pará")

	// A changed rule needs an update, shows what it changes, and can be undone.
	changed := []string{"w3id/rivers/.htaccess", "RewriteEngine on\nRewriteRule ^gauge/([0-9]+)$ https://example.org/new/$1 [R=303,L]\n"}
	path = b.sendFiles(fields, changed...).leads("/.desk/many/").location()
	b.get(path).has(200, "only an update changes them")
	b.post(path, url.Values{"do": {"discard"}})
	path = b.sendFiles(url.Values{"system": {"w3id"}, "update": {"yes"}}, changed...).leads("/.desk/many/").location()
	b.get(path).has(200, "1 row", "<del><bdi>gauge/{", "<ins><bdi>gauge/{", "https://example.org/new/")
	second := b.write(path, "all").leads("/.desk/jobs/")
	b.awaitJob(second.location()).has(200, "1 of 1", "1</b> <span>name changed")
	if rules := s.rules("https://w3id.org/rivers/"); len(rules) != 1 || !strings.Contains(rules[0].Targets[0].URL, "/new/") {
		t.Fatalf("%+v", rules)
	}
	b.get(started.location()+"/undo").has(200, "The rules of 1 namespace are left")
	b.get(second.location()+"/undo").has(200, "1 namespace gets its former rules", "Undo 1 name")
	undone := b.post(second.location()+"/undo", nil).leads("/.desk/jobs/")
	b.awaitJob(undone.location()).has(200, "1 of 1", "done")
	if rules := s.rules("https://w3id.org/rivers/"); len(rules) != 1 || !strings.Contains(rules[0].Targets[0].URL, "gauges?id=") {
		t.Fatalf("%+v", rules)
	}
	b.get(undone.location()+"/undo").has(200, "1 namespace gets its former rules")
	undone = b.post(started.location()+"/undo", nil).leads("/.desk/jobs/")
	b.awaitJob(undone.location()).has(200, "3 of 3", "done")
	if rules := s.rules("https://w3id.org/rivers/"); len(rules) != 0 {
		t.Fatalf("%+v", rules)
	}
	b.get("/.desk/record?id="+url.QueryEscape("https://w3id.org/lakes/all")).has(200, "withdrawn")
}

// TestManyTreeOBO: the configuration of the OBO Foundry is sent as a folder or an archive; its tests are held against what it says.
func TestManyTreeOBO(t *testing.T) {
	s := newTreeSite(t)
	b := s.as("olga")
	for _, system := range []string{"auto", "obo"} {
		files := below("purl.obolibrary.org/", oboTree)
		if system == "auto" {
			files = []string{"purl.tar.gz", tarred(t, files)}
		}
		path := b.sendFiles(url.Values{"system": {system}, "spaces": {"yes"}}, files...).leads("/.desk/many/").location()
		b.get(path).has(200, "OBO", "https://purl.obolibrary.org/obo/water.owl", "namespace with 1 rule", "2 of 2 redirects were read (100.0 %)",
			"1 of 2 tests of the files pass", "water.yml, line 12: https://purl.obolibrary.org/obo/water/about/16 should lead to https://water.example.org/other")
		if system == "auto" {
			b.post(path, url.Values{"do": {"discard"}})
			continue
		}
		b.awaitJob(b.write(path, "all").leads("/.desk/jobs/").location()).has(200, "done", "1 of 2 tests of the files pass")
		if rules := s.rules("https://purl.obolibrary.org/obo/water/"); len(rules) != 1 {
			t.Errorf("%+v", rules)
		}
	}
}

// TestManyTreeRights: rules are written with the rights of the user.
func TestManyTreeRights(t *testing.T) {
	s := newTreeSite(t)
	b := s.as("sam")
	path := b.sendFiles(url.Values{"system": {"w3id"}, "spaces": {"yes"}}, below("w3id/", w3idTree)...).leads("/.desk/many/").location()
	b.get(path).has(200, "There is nothing to write")
	if list := s.rules("https://w3id.org/"); len(list) != 0 {
		t.Error(list)
	}
}

// TestManyTreeRefused: what can't be one folder is refused whole, and nothing of it is kept.
func TestManyTreeRefused(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	rule := "RewriteEngine on\nRewriteRule ^a$ https://example.org/ [R=303,L]\n"
	many := make([]string, 0, 2*20_001)
	for i := range 20_001 {
		many = append(many, fmt.Sprintf("%d.txt", i), "")
	}
	for _, tt := range []struct {
		name, want string
		files      []string
	}{
		{"a way out", "a/../../.htaccess has a path that is not accepted", []string{"a.zip", zipped(t, []string{"a/../../.htaccess", rule})}},
		{"absolute", "/etc/.htaccess has a path that is not accepted", []string{"a.tgz", tarred(t, []string{"/etc/.htaccess", rule})}},
		{"a way out of a folder", "a/../.htaccess has a path that is not accepted", []string{"a/../.htaccess", rule}},
		{"a backslash", `has a path that is not accepted`, []string{"a.zip", zipped(t, []string{`a\b/.htaccess`, rule})}},
		{"deep", "has a path that is not accepted", []string{"a.zip", zipped(t, []string{strings.Repeat("a/", 40) + ".htaccess", rule})}},
		{"twice", "a/.htaccess comes twice", []string{"a.zip", zipped(t, []string{"a/.htaccess", rule, "a/.htaccess", rule})}},
		{"only links", "none of the 0 files is one of w3id.org", []string{"a.tgz", tarred(t, []string{"a/.htaccess@", "/etc/passwd"})}},
		{"other files", "none of the 1 files is one of w3id.org", []string{"a/b.txt", "x"}},
		{"many files", "there are more than 20000 files", []string{"a.zip", zipped(t, many)}},
		{"a large file", "a/.htaccess is too large", []string{"a.zip", zipped(t, []string{"a/.htaccess", strings.Repeat("# 456789\n", 1<<19)})}},
		{"a bomb beside", "the files have more than 268435456 bytes, decompressed", []string{"a.tgz", bomb(t, 257<<20)}},
		{"cut off", "is not a whole tar archive", []string{"a.tgz", tarred(t, w3idTree)[:200]}},
		{"cut zip", "is not a whole zip archive", []string{"a.zip", zipped(t, w3idTree)[:200]}},
		{"no archive", "is compressed, and is not a tar archive", []string{"a.gz", gzipped(t, rule)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.sendFiles(url.Values{"system": {"w3id"}}, tt.files...).has(422, tt.want)
			if p := b.get("/.desk/many").has(200); strings.Contains(p.main(), `href="/.desk/many/`) {
				t.Error("an upload was kept")
			}
		})
	}

	// Links beside files are told.
	path := b.sendFiles(url.Values{"system": {"w3id"}}, "a.zip", zipped(t, []string{"a/.htaccess", rule, "b/.htaccess@", "../a"})).leads("/.desk/many/").location()
	b.get(path).has(200, "1 links in the folder are not followed")
}

// bomb is a compressed tar archive of one file of so many zeros, in whole MiB. A MiB of them is compressed once.
func bomb(t *testing.T, size int) string {
	t.Helper()
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	if err := w.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644, Size: int64(size)}); err != nil {
		t.Fatal(err)
	}
	const part = 1 << 20
	return gzipped(t, head.String()) + strings.Repeat(gzipped(t, strings.Repeat("\x00", part)), size/part) + gzipped(t, strings.Repeat("\x00", 1024))
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must(z.Write([]byte(text)))(t)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
