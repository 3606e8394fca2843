package foreign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/rules"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// w3idSite is a registry with what was imported, and what was told.
type w3idSite struct {
	t        *testing.T
	schemes  *stele.Schemes
	r        *registrar.Registrar
	resolver *resolver.Resolver
	admin    context.Context
	base     string
	rejects  bytes.Buffer
	report   foreign.Report
	counts   bulk.Counts
	found    func() // is called after an import has read a namespace
}

func newW3ID(t *testing.T) *w3idSite {
	t.Helper()
	s := &w3idSite{t: t, admin: auth.With(t.Context(), auth.Local()), base: "https://w3id.org/"}
	var err error
	if s.schemes, err = all.New(all.Config{Now: time.Now, PURLHosts: []string{"w3id.org", "purl.obolibrary.org"}}); err != nil {
		t.Fatal(err)
	}
	store := mem.New(time.Now)
	s.resolver = resolver.New(store, s.schemes, resolver.Options{Now: time.Now})
	s.r = registrar.New(store, s.schemes, registrar.Options{Now: time.Now, OnCommit: s.resolver.Invalidate, OnNamespaces: s.resolver.InvalidateNamespaces})
	for _, base := range []string{"https://w3id.org/", "https://purl.obolibrary.org/"} {
		if _, err := s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "purl", Prefix: base}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// packed returns files as an archive.
func packed(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	err := foreign.PackTree(&b, func(add func(string, []byte) error) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if err := add(name, []byte(files[name])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// load imports files.
func (s *w3idSite) load(system string, files map[string]string, o foreign.Options, fo bulk.FileOptions) {
	s.t.Helper()
	o.Schemes, o.System = s.schemes, system
	o.Find = func(key stele.NamespaceKey) *stele.Namespace {
		ns, err := s.r.Namespace(s.admin, key)
		if err != nil || ns.Version == 0 {
			return nil
		}
		if s.found != nil {
			s.found()
		}
		return ns
	}
	in := opened(s.t, packed(s.t, files))
	source, err := foreign.Open(in, o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.rejects.Reset()
	fo.MaxErrors, fo.ChunkRows, fo.Complaints = -1, 3, &s.rejects
	im, err := bulk.NewRowsImport(s.admin, s.r, source, in[0], source.Key(), fo)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := im.Run(s.admin, func() bulk.Progress { return ticks{} }); err != nil {
		s.t.Fatal(err)
	}
	s.counts, s.report = im.Mark.Counts, source.Report()
	if err := source.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// location returns where a name leads; "" if nowhere. fits is false if a record answers with a description, because it
// has nothing of the type.
func (s *w3idSite) location(name, accept string) (location string, fits bool) {
	s.t.Helper()
	id, err := s.schemes.Parse(name)
	if err != nil {
		s.t.Fatal(name, err)
	}
	liked, err := resolver.ParseAccept(accept)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.resolver.Resolve(s.admin, resolver.Request{ID: id, Accept: liked})
	switch {
	case stele.KindOf(err) == stele.NotFound:
		return "", true
	case err != nil:
		return "error: " + err.Error(), true
	case res.Kind != resolver.Redirect:
		return "", true
	}
	if len(res.Targets) > 0 && !rules.Fits(res.Fit, res.Targets[0].Type) {
		return "", res.Record == nil
	}
	return res.URL, true
}

// apache serves files as w3id.org does, and returns where it is.
func apache(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	root := filepath.Join(folder, "www")
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The server gives up its rights, so others must be able to enter the folders of the test. The system's folder for temporary
	// files belongs to all programs, and stays as it is.
	for dir := folder; dir != filepath.Clean(os.TempDir()) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := "127.0.0.1:" + servertest.FreePort(t)
	config := fmt.Sprintf("ServerName w3id.org\nListen %s\nServerRoot %[2]s\nPidFile %[2]s/pid\nErrorLog /dev/stderr\nMutex file:%[2]s default\n", at, folder)
	for _, m := range []string{"mpm_event", "authz_core", "rewrite", "alias", "headers", "mime", "dir"} {
		config += fmt.Sprintf("LoadModule %s_module /usr/lib/apache2/modules/mod_%[1]s.so\n", m)
	}
	config += fmt.Sprintf("TypesConfig /dev/null\nDocumentRoot %[1]s/www\n<Directory %[1]s/www>\nAllowOverride All\nOptions FollowSymLinks\nRequire all granted\n</Directory>\n", folder)
	if os.Getuid() == 0 {
		config += "User nobody\nGroup nogroup\n"
	}
	file := filepath.Join(folder, "httpd.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	servertest.Start(t, at, "apache2", "-f", file, "-X")
	return at
}

const firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

var w3idAccepts = []string{"*/*", "text/html", firefox, "text/turtle", "application/rdf+xml", "application/ld+json", "application/json"}

// ask returns the status and location that a web server gives.
func ask(t *testing.T, client *http.Client, at, path, accept string) (int, string) {
	t.Helper()
	agent := "curl/8"
	if strings.HasPrefix(accept, "text/html") {
		agent = "Mozilla/5.0"
	}
	res, err := client.Do(&http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: at, Opaque: path}, Host: "w3id.org", Header: http.Header{"Accept": {accept}, "User-Agent": {agent}}})
	if err != nil {
		t.Fatal(path, err)
	}
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
	_ = res.Body.Close()
	return res.StatusCode, res.Header.Get("Location")
}

// sameAsApache asks a web server and the registry for names. Where directives of a folder were refused, the registry may
// answer nothing, but never something else.
func (s *w3idSite) sameAsApache(at string, names map[string][]string, refused func(folder string) bool) (asked, answered int) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for folder, list := range names {
		for _, name := range list {
			for _, accept := range w3idAccepts {
				status, want := ask(s.t, client, at, "/"+folder+name, accept)
				if status == http.StatusInternalServerError {
					continue // the server does not read the file
				}
				if status < 300 || status >= 400 {
					want = ""
				}
				got, fits := s.location(s.base+folder+name, accept)
				if !fits {
					continue
				}
				asked++
				if got != "" {
					answered++
				}
				if got != want && !(got == "" && refused(folder)) {
					s.t.Errorf("%s%s as %s: %q here, %d %q by Apache httpd", folder, name, accept, got, status, want)
				}
			}
		}
	}
	return asked, answered
}

// w3idFiles have the shapes of files of w3id.org.
var w3idFiles = map[string]string{
	"onto/.htaccess": `# Ontology of examples
#
# Maintainer: Ana Lima, ana@example.org, GitHub: analima
Options +FollowSymLinks -MultiViews
AddType text/turtle .ttl
Header set Access-Control-Allow-Origin *
RewriteEngine on

RewriteCond %{HTTP_ACCEPT} !application/rdf\+xml.*(text/html|application/xhtml\+xml)
RewriteCond %{HTTP_ACCEPT} text/html [OR]
RewriteCond %{HTTP_ACCEPT} application/xhtml\+xml [OR]
RewriteCond %{HTTP_USER_AGENT} ^Mozilla/.*
RewriteRule ^$ https://example.org/onto/index.html [R=303,L]

RewriteCond %{HTTP_ACCEPT} text/turtle [OR]
RewriteCond %{HTTP_ACCEPT} text/\* [OR]
RewriteCond %{HTTP_ACCEPT} \*/turtle
RewriteRule ^$ https://example.org/onto/onto.ttl [R=303,L]

RewriteCond %{HTTP_ACCEPT} application/rdf\+xml
RewriteRule ^$ https://example.org/onto/onto.rdf [R=303,L]

RewriteRule ^$ https://example.org/onto/406.html [R=303,L]
RewriteRule ^releases/([0-9]+)\.([0-9]+)/?$ https://example.org/onto/$1/$2 [R=302,L]
RewriteRule ^(.*)\.ttl$ https://example.org/files/$1.ttl [R=302,L]
RewriteRule ^(.*)$ https://example.org/onto/$1 [R=302,L]
`,
	"onto/README.md": "# Onto\n\nContact: Ana Lima\n",
	"pages/.htaccess": `RewriteEngine On
RewriteRule ^$ https://example.org/pages/ [R=301,L]
RewriteRule ^(.*)$ https://example.org/pages/$1 [R=301,L]
`,
	"some/.htaccess": `RewriteEngine On
RewriteRule ^first$ https://example.org/1 [R,L]
RewriteRule ^second/?$ https://example.org/2#part [R=302,NE,L]
RewriteRule ^third$ https://example.org/3#part [R=302,L]
RewriteRule ^(a|b)/info$ https://example.org/$1?x=y [R=307,L]
RewriteRule ^gone$ - [R=410,L]
RewriteRule ^never$ https://example.org/x%20y [R=302,NE,L]
`,
	"none/.htaccess": `<IfModule mod_rewrite.c>
RewriteEngine On
RewriteCond %{HTTP_ACCEPT} text/turtle
RewriteRule ^data$ https://example.org/data.ttl [R=303,L]
RewriteCond %{HTTP_ACCEPT} ^.*json.*$ [NC]
RewriteRule ^data$ https://example.org/data.json [R=303,L]
RewriteRule ^data$ - [R=406,L]
</IfModule>
`,
	"terms/.htaccess": `RewriteEngine On
RewriteCond %{HTTP_ACCEPT} application/ld\+json
RewriteRule ^([A-Za-z]+)$ https://example.org/json/$1 [R=303,L]
RewriteCond %{HTTP_ACCEPT} text/turtle
RewriteRule ^(.+)$ https://example.org/ttl/$1 [R=303,L]
RewriteRule ^list$ https://example.org/list [R=303,L]
RewriteRule ^([A-Za-z]+)$ https://example.org/page/$1 \
   [R=303,L]
RewriteRule ^T_(\d{7})$ "https://example.org/term?id=$1" [R=303,L]
RewriteRule ^catalogue/(.+)/?$ https://example.org/catalogue/$1 [R=303,L]
RewriteRule ^seg/([^/]+) https://example.org/seg/$1 [R=303,L]
`,
	"alias/.htaccess": `Redirect 302 /alias/old https://example.org/new
RedirectMatch 301 ^/alias/x/([0-9]+)$ https://example.org/x/$1
Redirect permanent /alias/one https://example.org/one
`,
	"case/.htaccess": `RewriteEngine On
RewriteRule ^Foo/(Bar|Baz)$ https://example.org/$1 [NC,R=302,L]
RewriteRule ^docs$ https://example.org/docs [NC,R=302,L]
`,
	"inner/.htaccess": `RewriteEngine On
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule ^(.*)$ https://example.org/inner?name=$1 [R=302,L]
`,
	"inner/sub/.htaccess": `RewriteEngine On
RewriteRule ^thing$ https://example.org/sub/thing [R=302,L]
`,
}

var w3idNames = map[string][]string{
	"onto/":      {"", "a", "a/b.c", "x.ttl", "dir/x.ttl", ".ttl", "releases/1.2", "releases/1.2/", "releases/1.x", "releases/12.34", "releases/1.2.ttl"},
	"pages/":     {"", "a", "a/b", "a/b/"},
	"some/":      {"first", "First", "second", "second/", "third", "a/info", "b/info", "c/info", "gone", "never", "other", "first/"},
	"none/":      {"data", "date"},
	"terms/":     {"list", "Abc", "abc1", "T_0000001", "T_1", "catalogue/a", "catalogue/a/", "catalogue/a/b", "catalogue/", "seg/a", "seg/a/b", "seg/a/b/c", "seg/", "x.y"},
	"alias/":     {"old", "old/a", "older", "x/12", "x/a", "one", "one/two", "two"},
	"case/":      {"foo/bar", "FOO/BAZ", "Foo/Bar", "foo/x", "docs", "DOCS", "Docs", "doc"},
	"inner/":     {"", "a", "a/b"},
	"inner/sub/": {"thing", "other", ""},
}

// TestW3ID: after the import of files as w3id.org has them, names lead where Apache httpd sends clients that accept one type or another.
func TestW3ID(t *testing.T) {
	s := newW3ID(t)
	s.load("w3id", w3idFiles, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	t.Logf("%+v\n%s\n%s", s.counts, errors.Join(s.report.Notes...), &s.rejects)
	if s.rejects.Len() > 0 {
		t.Error("there are rejected directives")
	}
	asked, answered := s.sameAsApache(apache(t, w3idFiles), w3idNames, func(string) bool { return false })
	t.Logf("%d requests compared, %d of them redirects", asked, answered)
	if answered < asked/3 {
		t.Errorf("only %d of %d requests are redirects", answered, asked)
	}
	id, _ := s.schemes.Parse("https://w3id.org/onto/")
	rec, err := s.r.Get(s.admin, id)
	if err != nil || !strings.Contains(rec.Metadata["w3id.comments"], "Ana Lima, ana@example.org") || !strings.Contains(rec.Metadata["w3id.readme"], "Contact: Ana Lima") || !strings.Contains(rec.Metadata["w3id.directives"], "AddType text/turtle .ttl") {
		t.Errorf("%v, %v", rec, err)
	}
}

// TestW3IDInherited: what holds in a folder may stand in files above it: whether rules are read at all, and rules where the folder has none
// of its own or asks for them.
func TestW3IDInherited(t *testing.T) {
	files := map[string]string{
		"on/.htaccess":         "RewriteEngine on\nRewriteRule ^(x|plain/x)$ https://example.org/on/$1 [R,L]\n",
		"on/rules/.htaccess":   "RewriteRule ^x$ https://example.org/rules [R,L]\n",
		"on/rules/a/.htaccess": "RewriteRule ^x$ https://example.org/a [R,L]\n",
		"on/off/.htaccess":     "RewriteEngine off\nRewriteRule ^x$ https://example.org/off [R,L]\n",
		"on/off/a/.htaccess":   "RewriteRule ^x$ https://example.org/never [R,L]\n",
		"on/empty/.htaccess":   "RewriteEngine on\n",
		"on/plain/.htaccess":   "AddType text/turtle .ttl\n",
		"on/free/.htaccess":    "Redirect /on/free/y https://example.org/y\n",
		"off/.htaccess":        "RewriteRule ^x$ https://example.org/no [R,L]\n",
		"off/on/.htaccess":     "RewriteEngine on\nRewriteRule ^x$ https://example.org/yes [R,L]\n",
		"all/.htaccess":        "RewriteEngine on\nRewriteRule ^(.*)$ https://example.org/all/$1 [R,L]\n",
		"all/plain/.htaccess":  "Options -MultiViews\n",
		"all/alias/.htaccess":  "Redirect /all/alias/x https://example.org/alias\n",
		"all/own/.htaccess":    "RewriteRule ^x$ https://example.org/own [R,L]\n",
		"after/.htaccess":      "RewriteEngine on\nRewriteRule ^(x|y)$ https://example.org/above/$1 [R,L]\n",
		"after/a/.htaccess":    "RewriteOptions Inherit\nRewriteRule ^x$ https://example.org/a [R,L]\n",
		"after/a/b/.htaccess":  "RewriteRule ^z$ https://example.org/b [R,L]\n",
		"after/c/.htaccess":    "RewriteOptions InheritBefore\nRewriteRule ^(x|z)$ https://example.org/c [R,L]\n",
		"down/.htaccess":       "RewriteEngine on\nRewriteOptions InheritDown\nRewriteRule ^(x|y)$ https://example.org/above/$1 [R,L]\n",
		"down/a/.htaccess":     "RewriteRule ^x$ https://example.org/a [R,L]\n",
		"down/b/.htaccess":     "RewriteOptions IgnoreInherit\nRewriteRule ^x$ https://example.org/b [R,L]\n",
	}
	names := make(map[string][]string)
	for file := range files {
		names[strings.TrimSuffix(file, ".htaccess")] = []string{"x", "y", "z"}
	}
	s := newW3ID(t)
	s.load("w3id", files, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	if got := s.rejects.String(); strings.Count(got, "since it has no directive of mod_rewrite of its own") != 1 || !strings.Contains(got, "Redirect /all/alias/x") {
		t.Errorf("rejected are:\n%s", got)
	}
	asked, answered := s.sameAsApache(apache(t, files), names, func(string) bool { return false })
	if answered < asked/4 {
		t.Errorf("only %d of %d requests are redirects", answered, asked)
	}
}

// TestW3IDContinues: an import that was interrupted continues with the rows that follow.
func TestW3IDContinues(t *testing.T) {
	s := newW3ID(t)
	files := make(map[string]string)
	for i := range 3000 {
		files[fmt.Sprintf("f%d/.htaccess", i)] = "RewriteEngine on\nRewriteRule ^$ https://example.org/ [R=302,L]\n"
	}
	text := packed(t, files)
	open := func() *foreign.Source {
		source, err := foreign.Open(opened(t, text), foreign.Options{Schemes: s.schemes, System: "w3id"})
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	all, _, err := rowsOf(t, open())
	if err != nil || len(all) != len(files) {
		t.Fatal(len(all), err)
	}
	first, read := open(), 0
	for {
		b, err := first.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		read += len(b.Rows)
		again := open()
		if err := again.SkipTo(b.End, b.Next); err != nil {
			t.Fatal(err)
		}
		if rest, _, err := rowsOf(t, again); err != nil || !slices.Equal(lines(rest), lines(all[read:])) {
			t.Fatalf("after %d rows %d follow: %v", read, len(rest), err)
		}
	}
}

// TestW3IDUpdate: an update changes the rules of a namespace, and no setting that was changed since the import began.
func TestW3IDUpdate(t *testing.T) {
	s := newW3ID(t)
	rule := func(to string) map[string]string {
		return map[string]string{"onto/.htaccess": "RewriteEngine on\nRewriteRule ^T_(\\d+)$ https://example.org/" + to + "/$1 [R=303,L]\n"}
	}
	s.load("w3id", rule("first"), foreign.Options{Namespaces: true}, bulk.FileOptions{})
	key := stele.NamespaceKey{Scheme: "purl", Prefix: "https://w3id.org/onto/"}
	s.found = func() { // after the import has read the namespace
		if _, err := s.r.SetNamespace(s.admin, key, 0, func(ns *stele.Namespace) error { ns.Title += "x"; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s.load("w3id", rule("second"), foreign.Options{}, bulk.FileOptions{})
	if s.counts.Rejected != 1 || !strings.Contains(s.rejects.String(), "is there with other rules; only an update changes them") {
		t.Errorf("%+v %s", s.counts, &s.rejects)
	}
	s.load("w3id", rule("second"), foreign.Options{}, bulk.FileOptions{Update: true})
	if got, _ := s.location("https://w3id.org/onto/T_1", "*/*"); s.counts.Namespaces != 1 || got != "https://example.org/second/1" {
		t.Errorf("%+v %s %s", s.counts, got, &s.rejects)
	}
	s.load("w3id", rule("second"), foreign.Options{}, bulk.FileOptions{Update: true})
	if ns, err := s.r.Namespace(s.admin, key); err != nil || ns.Title != "xxx" || s.counts.Unchanged != 1 {
		t.Errorf("%q, %+v, %v", ns.Title, s.counts, err)
	}
}

// TestW3IDExampleHasRecord: a name with a record is not an example of a rule that is for it, too.
func TestW3IDExampleHasRecord(t *testing.T) {
	s := newW3ID(t)
	files := map[string]string{"a/.htaccess": "RewriteEngine on\nRewriteRule ^x$ https://example.org/1 [R=302,L]\nRewriteRule ^x$ https://example.org/2 [NC,R=302,L]\n"}
	s.load("w3id", files, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	for name, want := range map[string]string{"x": "https://example.org/1", "X": "https://example.org/2"} {
		if got, _ := s.location("https://w3id.org/a/"+name, "*/*"); got != want {
			t.Errorf("%s leads to %q; %s", name, got, &s.rejects)
		}
	}
}

// w3idShapes are directives as w3id.org has them, of which files are put together. %d is a number that makes them differ.
var w3idShapes = []string{
	"RewriteRule ^%n$ https://example.org/lit/%d [R=303,L]",
	"RewriteRule ^%n$ https://example.org/lit/%d [R=302,L]",
	"RewriteRule ^%n/?$ https://example.org/slash/%d [R=302,NE,L]",
	"RewriteRule ^%n\\.ttl$ https://example.org/%d.ttl [R=301,L]",
	"RewriteRule ^%n.ttl$ https://example.org/dot/%d.ttl [R=302,L]",
	"RewriteCond %{HTTP_ACCEPT} text/turtle\nRewriteRule ^%n$ https://example.org/%d.ttl [R=303,L]",
	"RewriteCond %{HTTP_ACCEPT} application/rdf\\+xml\nRewriteRule ^%n/?$ https://example.org/%d.rdf [R=303,L]",
	"RewriteCond %{HTTP_ACCEPT} text/html [OR]\nRewriteCond %{HTTP_ACCEPT} application/xhtml\\+xml [OR]\nRewriteCond %{HTTP_USER_AGENT} ^Mozilla/.*\nRewriteRule ^%n$ https://example.org/%d.html [R=303,L]",
	"RewriteCond %{HTTP_ACCEPT} !application/rdf\\+xml.*(text/html|application/xhtml\\+xml)\nRewriteCond %{HTTP_ACCEPT} text/html\nRewriteRule ^(.*)$ https://example.org/html%d/$1 [R=303,L]",
	"RewriteCond %{HTTP_ACCEPT} ^.*application/(ld\\+json|json).*\nRewriteRule ^%n/(.*)$ https://example.org/json%d/$1 [R=303,L]",
	"RewriteCond %{HTTP_ACCEPT} application/ld\\+json\nRewriteRule ^(.*)$ https://example.org/ld%d/$1.jsonld [R=303,L]",
	"RewriteCond %{HTTP_ACCEPT} text/turtle\nRewriteRule (.*) https://example.org/ttl%d/$1 [R=303,L]",
	"RewriteRule ^$ https://example.org/root/%d [R=302,L]",
	"RewriteCond %{HTTP_ACCEPT} text/turtle\nRewriteRule ^$ https://example.org/root/%d.ttl [R=303,L]",
	"RewriteRule ^(.*)$ https://example.org/all%d/$1 [R=302,L]",
	"RewriteRule ^(.+)$ https://example.org/some%d/$1 [R=302,L]",
	"RewriteRule ^ https://example.org/const/%d [R=302,L]",
	"RewriteRule ^.*$ https://example.org/every/%d [R=302,L]",
	"RewriteRule ^%n/(.*)$ https://example.org/sub%d/$1 [R=302,L]",
	"RewriteRule ^%n/(.+)/?$ https://example.org/plus%d/$1 [R=302,NE,L]",
	"RewriteRule ^%n(/(.*))?$ https://example.org/opt%d/$2 [R=302,L]",
	"RewriteRule ^%n/([^/]+)$ https://example.org/seg%d/$1 [R=302,L]",
	"RewriteRule ^%n/([^/]+)/([^/]+)$ https://example.org/seg%d?a=$1&b=$2 [R=302,L]",
	"RewriteRule ^%n/([0-9]+)$ https://example.org/num%d#$1 [R=302,NE,L]",
	"RewriteRule ^%n/([0-9]+)$ https://example.org/num%d#$1 [R=302,L]",
	"RewriteRule ^([0-9]+)\\.([0-9]+)\\.([0-9]+)/(.*)$ https://example.org/v%d/$1/$2/$3/$4 [R=302,L]",
	"RewriteRule ^v([0-9]+(?:\\.[0-9]+)?)/?$ https://example.org/ver%d/$1 [R=302,L]",
	"RewriteRule ^(.*)\\.(ttl|rdf|owl)$ https://example.org/files%d/$1.$2 [R=302,L]",
	"RewriteRule ^%n/(\\w+)$ https://example.org/word%d/$1 [R=302,L]",
	"RewriteRule ^([A-Za-z0-9_-]+)/?$ https://example.org/name%d/$1 [R=302,L]",
	"RewriteRule ^%n/([a-zA-Z0-9._-]+)$ https://example.org/cls%d/$1 [R=302,L]",
	"RewriteRule ^T_(\\d{7})$ https://example.org/term%d/$1 [R=303,L]",
	"RewriteRule ^%n$ https://example.org/nc/%d [NC,R=302,L]",
	"RewriteRule ^%n/(.*)$ https://example.org/nc%d/$1 [NC,R=302,L]",
	"RewriteRule ^%n$ - [R=410,L]", "RewriteRule ^%n/(.*)$ - [G]", "RewriteRule ^.*$ - [R=406,L]",
	"RewriteRule ^%n https://example.org/begins/%d [R=302,L]",
	"RewriteRule %n$ https://example.org/ends/%d [R=302,L]",
	"RewriteRule ^%n$ https://example.org/query/%d?x=1&y=%%20 [R=302,QSA,L]",
	"RedirectMatch 302 ^/FOLDER/%n/([0-9]+)$ https://example.org/match%d/$1",
	"Redirect 301 /FOLDER/%n https://example.org/redirect/%d",
	// What has no counterpart.
	"RewriteRule ^%n/(?!x)(.*)$ https://example.org/look%d/$1 [R=302,L]",
	"RewriteCond %{QUERY_STRING} ^a=b$\nRewriteRule ^%n$ https://example.org/q/%d [R=302,L]",
	"RewriteRule ^(.*)/(.*)$ https://example.org/two%d/$2/$1 [R=302,L]",
	"RewriteRule ^%n$ https://example.org/open/%d [R=302]",
	"RewriteRule ^%n$ https://%{HTTP_HOST}/x%d [R=302,L]",
	"RewriteRule ^%n/(.*)$ other/$1 [L]",
}

// w3idFile puts a file together.
func w3idFile(r *rand.Rand, folder string) string {
	words := []string{"a", "onto", "data", "v1", "x"}
	var b strings.Builder
	b.WriteString("RewriteEngine on\n")
	for range 1 + r.IntN(9) {
		shape := w3idShapes[r.IntN(len(w3idShapes))]
		shape = strings.ReplaceAll(shape, "%n", words[r.IntN(len(words))])
		shape = strings.ReplaceAll(shape, "FOLDER", folder)
		b.WriteString(strings.ReplaceAll(shape, "%d", fmt.Sprint(r.IntN(90)+10)) + "\n")
	}
	return b.String()
}

// w3idPool are names of which every shape matches some.
var w3idPool = []string{"", "a", "onto", "data", "v1", "x", "a/", "onto/", "A", "ONTO/x", "Onto", "a/b", "a/b/c", "a/12", "onto/12", "data/12", "x/1", "v1/x", "a/b_c", "onto/b-c", "data/b.c", "a.ttl", "axttl", "b.ttl", "a/b.owl",
	"1.2.3/x", "v2", "v2.5", "v2.5/", "T_0000123", "T_1", "other", "other/", "other/thing", "xa", "ab", "12"}

// TestW3IDRandom: files that are put together of what w3id.org has, in any order, lead where Apache httpd does, or are refused.
func TestW3IDRandom(t *testing.T) {
	files, names := make(map[string]string), make(map[string][]string)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		folder := fmt.Sprintf("f%d", i)
		files[folder+"/.htaccess"] = w3idFile(r, folder)
		names[folder+"/"] = w3idPool
	}
	s := newW3ID(t)
	s.load("w3id", files, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	refused := func(folder string) bool { return strings.Contains(s.rejects.String(), "\n"+folder+".htaccess: ") }
	asked, answered := s.sameAsApache(apache(t, files), names, refused)
	reasons := make(map[string]int)
	for line := range strings.Lines(s.rejects.String()) {
		if _, reason, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(line, "# line ") {
			reasons[strings.TrimSpace(reason)]++
		}
	}
	for reason, n := range reasons {
		t.Log(n, reason)
	}
	for _, note := range s.report.Notes {
		if !strings.Contains(note.Error(), "never answers") {
			t.Log(note)
		}
	}
	t.Logf("%d requests compared, %d of them redirects", asked, answered)
	if answered < asked/5 {
		t.Errorf("only %d of %d requests are redirects", answered, asked)
	}
}
