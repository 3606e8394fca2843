package foreign_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/scheme/all"
)

// listed is a registry that is a list.
type listed struct {
	records []*stele.Record
	spaces  []*stele.Namespace
}

func (l *listed) Export(_ context.Context, _ stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for _, rec := range l.records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (l *listed) Namespaces(context.Context) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		for _, ns := range l.spaces {
			if !yield(ns, nil) {
				return
			}
		}
	}
}

func web(t *testing.T) *stele.Schemes {
	t.Helper()
	s, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// webRegistry has a record of each kind, and answers that a web server must give with its file.
func webRegistry(t *testing.T) (from *listed, asked map[string]string) {
	t.Helper()
	from = &listed{spaces: []*stele.Namespace{{Scheme: "ark"}, {Scheme: "ark", Prefix: "ark:12345/x5", Status: 303}}}
	add := func(name string, state stele.State, targets ...stele.Target) *stele.Record {
		id, err := web(t).Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range targets {
			targets[i].Service = stele.N2L
		}
		rec := &stele.Record{ID: id, State: state, Targets: targets}
		from.records = append(from.records, rec)
		return rec
	}
	add("ark:12345/x1", stele.Active, stele.Target{URL: "https://example.org/1?a=%20b&c=$d#e%25f", Status: 301})
	add("ark:12345/x51", stele.Active, stele.Target{URL: "https://example.org/second", Order: 20}, stele.Target{URL: "https://example.org/51", Order: 10})
	add("ark:12345/Ab", stele.Active, stele.Target{URL: "https://example.org/Ab"})
	add("ark:12345/aB", stele.Active, stele.Target{URL: "https://example.org/aB"})
	add("ark:12345/b.c*d", stele.Active, stele.Target{URL: "https://example.org/b"})
	add("ark:12345/p", stele.Active, stele.Target{URL: "https://example.org/p/", Partial: true})
	add("ark:12345/p/q", stele.Active, stele.Target{URL: "https://example.org", Partial: true})
	add("ark:12345/gone", stele.Withdrawn, stele.Target{URL: "https://example.org/gone"})
	add("ark:12345/hidden", stele.Active, stele.Target{URL: "https://example.org/hidden"}).Readers = []string{"group:x"}
	add("ark:12345/reserved", stele.Reserved, stele.Target{URL: "https://example.org/reserved"})
	add("ark:12345/nothing", stele.Active)
	alias, err := web(t).Parse("ark:12345/alias")
	if err != nil {
		t.Fatal(err)
	}
	add("hdl:10.5072/Rivers", stele.Active, stele.Target{URL: "https://example.org/rivers", Status: 308}).Aliases = []stele.ID{alias}
	add("urn:isbn:9780306406157", stele.Active, stele.Target{URL: "ftp://example.org/isbn"})
	add("urn:example:a%20b", stele.Active, stele.Target{URL: "https://example.org/blank"})
	add("hdl:10.5072/a%20b", stele.Active, stele.Target{URL: "https://example.org/percent"})
	add("https://purl.org/dc/%C3%A9", stele.Active, stele.Target{URL: "https://example.org/dc"})
	add("http://purl.org/net/x", stele.Active, stele.Target{URL: "https://example.org/old", Status: 410})
	return from, map[string]string{
		"/ark:12345/x1": "301 https://example.org/1?a=%20b&c=$d#e%25f", "/ark:/12345/x1": "301 https://example.org/1?a=%20b&c=$d#e%25f", "/ark:12345/x1?x=y": "301 https://example.org/1?a=%20b&c=$d#e%25f",
		"/ark:12345/x51": "303 https://example.org/51", "/ark%3A12345/x51": "303 https://example.org/51",
		"/ark:12345/Ab": "302 https://example.org/Ab", "/ark:12345/aB": "302 https://example.org/aB",
		"/ark:12345/b.c*d": "302 https://example.org/b", "/ark:12345/bxc*d": "404 ", "/ark:12345/x1x": "404 ",
		"/ark:12345/p": "302 https://example.org/p/", "/ark:12345/p/a/b": "302 https://example.org/p//a/b", "/ark:12345/px": "302 https://example.org/p/x",
		"/ark:12345/p/q": "302 https://example.org", "/ark:12345/p/q.evil.example": "302 https://example.org/.evil.example",
		"/ark:12345/p/%0d%0aSet-Cookie:%20a=b": "404 ", "/ark:12345/p/%22": "404 ",
		"/ark:12345/gone": "410 ", "/ark:12345/hidden": "404 ", "/ark:12345/reserved": "404 ", "/ark:12345/nothing": "404 ",
		"/10.5072/RIVERS": "308 https://example.org/rivers", "/10.5072/rivers": "308 https://example.org/rivers", "/doi:10.5072/Rivers": "308 https://example.org/rivers",
		"/ark:12345/alias": "308 https://example.org/rivers", "/urn:isbn:9780306406157": "302 ftp://example.org/isbn",
		"/urn:example:a%20b": "302 https://example.org/blank", "/10.5072/a%2520b": "302 https://example.org/percent", "/10.5072/a%20b": "404 ",
		"/dc/%C3%A9": "302 https://example.org/dc", "/net/x": "410 ",
	}
}

// written returns the file for a web server.
func written(t *testing.T, from *listed, to foreign.Target) string {
	t.Helper()
	var b bytes.Buffer
	done, err := foreign.ExportWeb(t.Context(), from, []stele.NamespaceKey{{}}, web(t), &b, to, func(name string, what error) { t.Errorf("%s: %v", name, what) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (foreign.Exported{Records: 14, Others: 1, Hidden: 2, Choices: 1}); done != want {
		t.Errorf("%+v was written, want %+v", done, want)
	}
	return b.String()
}

// wantAnswers asks a web server.
func wantAnswers(t *testing.T, at string, asked map[string]string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range asked {
		res, err := client.Do(&http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: at, Opaque: path}, Host: "purl.org"})
		if err != nil {
			t.Fatal(path, err)
		}
		_ = res.Body.Close()
		got := fmt.Sprintf("%d %s", res.StatusCode, res.Header.Get("Location"))
		if strings.ReplaceAll(got, "%24", "$") != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestWebRules: the rules of a namespace are told and left out, once for each namespace that is exported.
func TestWebRules(t *testing.T) {
	spaces := []*stele.Namespace{{Scheme: "ark"}, {Scheme: "ark", Prefix: "ark:12345/x5", Rules: make([]stele.Rule, 2)}, {Scheme: "ark", Prefix: "ark:54321", Rules: make([]stele.Rule, 1)}}
	for _, to := range []foreign.Target{foreign.Htaccess, foreign.NginxMap} {
		var told []string
		_, err := foreign.ExportWeb(t.Context(), &listed{spaces: spaces}, []stele.NamespaceKey{{Scheme: "ark", Prefix: "ark:12345"}}, web(t), new(bytes.Buffer), to,
			func(name string, what error) { told = append(told, name+": "+what.Error()) }, nil)
		if err != nil || len(told) != 1 || told[0] != "ark:12345/x5: its 2 rules are left out: such a file has registered names only" {
			t.Errorf("%s: %v, %q", to, err, told)
		}
	}
}

// TestWebChanged: a path that web servers change is told and left out, and a registry that changes meanwhile ends the export.
func TestWebChanged(t *testing.T) {
	id, err := web(t).Parse("https://purl.org/a%2Fb")
	if err != nil {
		t.Fatal(err)
	}
	rec := &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}}
	var told []string
	var b bytes.Buffer
	done, err := foreign.ExportWeb(t.Context(), &listed{records: []*stele.Record{rec}}, []stele.NamespaceKey{{}}, web(t), &b, foreign.Htaccess, func(name string, what error) { told = append(told, what.Error()) }, nil)
	if err != nil || done.Records != 0 || len(told) != 1 || !strings.Contains(told[0], "web servers change such a path") {
		t.Errorf("%+v, %v, %q", done, err, told)
	}
	from, _ := webRegistry(t)
	progress := func(int) {
		if len(from.records) == 17 {
			from.records = append(from.records, from.records[0])
		}
	}
	if _, err := foreign.ExportWeb(t.Context(), from, []stele.NamespaceKey{{}}, web(t), &b, foreign.NginxMap, func(string, error) {}, progress); stele.KindOf(err) != stele.Conflict {
		t.Errorf("a registry that changes: %v", err)
	}
}

// TestNginxMap: nginx redirects by the file as the registry does.
func TestNginxMap(t *testing.T) {
	from, asked := webRegistry(t)
	folder := t.TempDir()
	text := written(t, from, foreign.NginxMap)
	var use strings.Builder // what the file's head says
	for line := range strings.Lines(text) {
		if line, ok := strings.CutPrefix(line, "#     "); ok {
			use.WriteString(line)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "stele.map"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + servertest.FreePort(t)
	servertest.Nginx(t, at, folder, "include {folder}/stele.map;\nserver { listen "+at+"; root {folder}/www;\n"+use.String()+"}")
	wantAnswers(t, at, asked)
}

// TestHtaccess: Apache httpd redirects by the file as the registry does.
func TestHtaccess(t *testing.T) {
	from, asked := webRegistry(t)
	folder := t.TempDir()
	root := filepath.Join(folder, "www")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := folder; dir != filepath.Clean(os.TempDir()) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755) // the server gives up its rights
	}
	if err := os.WriteFile(filepath.Join(root, ".htaccess"), []byte(written(t, from, foreign.Htaccess)), 0o644); err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + servertest.FreePort(t)
	config := fmt.Sprintf(`ServerName purl.org
Listen %s
ServerRoot %[2]s
PidFile %[2]s/pid
ErrorLog /dev/stderr
Mutex file:%[2]s default
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule rewrite_module /usr/lib/apache2/modules/mod_rewrite.so
DocumentRoot %[2]s/www
<Directory %[2]s/www>
AllowOverride FileInfo
Require all granted
</Directory>
`, at, folder)
	if os.Getuid() == 0 {
		config += "User nobody\nGroup nogroup\n"
	}
	file := filepath.Join(folder, "httpd.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	servertest.Start(t, at, "apache2", "-f", file, "-X")
	wantAnswers(t, at, asked)
}
