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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/rules"
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
	for question, want := range asked {
		path, accept, _ := strings.Cut(question, " ") // and what the client accepts
		request := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: at, Opaque: path}, Host: "purl.org", Header: make(http.Header)}
		if accept != "" {
			request.Header.Set("Accept", accept)
		}
		res, err := client.Do(request)
		if err != nil {
			t.Fatal(path, err)
		}
		_ = res.Body.Close()
		got := fmt.Sprintf("%d %s", res.StatusCode, res.Header.Get("Location"))
		if strings.ReplaceAll(got, "%24", "$") != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
}

// ruledRegistry has rules of each kind, what a web server must answer by them to a client that accepts something, and what is told.
func ruledRegistry(t *testing.T) (from *listed, asked map[string]string, told []string) {
	t.Helper()
	to := func(url string, status int) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Status: status, Order: 100, Preference: 10}
	}
	typed := func(url, media string, order uint16) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Type: media, Order: order, Preference: 10}
	}
	from = &listed{spaces: []*stele.Namespace{
		{Scheme: "ark", Prefix: "ark:12345/x5", Status: 303, Rules: []stele.Rule{
			{Pattern: "HP_{number:digit,7}", Targets: []stele.Target{to("https://example.org/hp?n={number}#$1", 0)}},
			{Pattern: "{name:word}.{form=ttl|owl}", Targets: []stele.Target{to("https://example.org/$a/{form}/{name}", 301)}},
			{Pattern: "gone/{rest0:any,0-}", Targets: []stele.Target{to("", 410)}},
			{Pattern: "any/{all:any}", Targets: []stele.Target{to("https://example.org/all/{all}", 0)}},
			{Pattern: "q/{all:any}", Targets: []stele.Target{to("https://example.org/?q={all}&x=y", 307)}},
			{Pattern: "V{number:digit}", Fold: true, Targets: []stele.Target{to("https://example.org/v/{rest}?id={id}", 0)}},
			{Pattern: "up{word:upper}", Targets: []stele.Target{to("https://example.org/{word:lower}", 0)}},
			{Pattern: "t{number:digit}", Targets: []stele.Target{typed("https://example.org/{number}.html", "text/html", 10), typed("https://example.org/{number}.ttl", "text/turtle", 20)}},
			{Pattern: "o{number:digit}", Targets: []stele.Target{to("https://example.org/{number}", 0), typed("https://example.org/{number}.rdf", "application/rdf+xml", 110)}},
		}},
		{Scheme: "ark", Prefix: "ark:12345/x5any/below/"},
		{Scheme: "hdl", Prefix: "10.5072/", Rules: []stele.Rule{
			{Pattern: "N{number:digit}", Targets: []stele.Target{to("https://example.org/n/{number}", 0)}},
			{Pattern: "W{word:alnum}", Targets: []stele.Target{to("https://example.org/w/{word}", 0)}},
		}},
		{Scheme: "purl", Prefix: "https://purl.org/x/", Rules: []stele.Rule{{Pattern: "{name:segment}", Targets: []stele.Target{to("https://example.org/x/{name}", 0)}}}},
	}}
	add := func(name string, state stele.State, targets ...stele.Target) {
		id, err := web(t).Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		from.records = append(from.records, &stele.Record{ID: id, State: state, Targets: targets})
	}
	add("ark:12345/x5HP_0000001", stele.Active, to("https://example.org/registered", 302))
	add("ark:12345/x5HP_0000002", stele.Withdrawn)
	add("ark:12345/x5HP_0000003", stele.Active) // leads nowhere: no rule answers in its place
	add("ark:12345/x5HP_0000004", stele.Reserved, to("https://example.org/reserved", 0))
	partial := to("https://example.org/partial/", 308)
	partial.Partial = true
	add("ark:12345/x5any", stele.Active, partial)
	add("ark:12345/x5", stele.Active, partial)
	const html, turtle, xml = " text/html", " text/turtle", " application/rdf+xml"
	asked = map[string]string{
		"/ark:12345/x5HP_0000005": "303 https://example.org/hp?n=0000005#$1", "/ark:/12345/x5HP_0000005": "303 https://example.org/hp?n=0000005#$1",
		"/ark:12345/x5HP_0000001": "302 https://example.org/registered", "/ark:12345/x5HP_0000002": "410 ", "/ark:12345/x5HP_0000003": "404 ",
		"/ark:12345/x5HP_0000004": "303 https://example.org/hp?n=0000004#$1", "/ark:12345/x5HP_1": "308 https://example.org/partial/HP_1", "/ark:12345/x5hp_0000005": "308 https://example.org/partial/hp_0000005",
		"/ark:12345/x5a-b_c.owl": "301 https://example.org/$a/owl/a-b_c", "/ark:12345/x5a.owl?a=b": "301 https://example.org/$a/owl/a?a=b", "/ark:12345/x5a.owls": "308 https://example.org/partial/a.owls",
		"/ark:12345/x5gone/": "410 ", "/ark:12345/x5gone/a/b": "410 ",
		"/ark:12345/x5any/a/b.c": "303 https://example.org/all/a/b.c", "/ark:12345/x5any": "308 https://example.org/partial/",
		"/ark:12345/x5any/below/a": "308 https://example.org/partial//below/a", "/ark:12345/x5any/%0d%0aSet-Cookie:%20a=b": "404 ",
		"/ark:12345/x5q/a": "307 https://example.org/?q=a&x=y", "/ark:12345/x5q/a?b=c&d": "307 https://example.org/?q=a&x=y&b=c&d", "/ark:12345/x5q/a&b=c": "308 https://example.org/partial/q/a&b=c",
		"/ark:12345/x5v12": "303 https://example.org/v/v12?id=ark:12345/x5v12", "/ark:12345/x5V12": "303 https://example.org/v/V12?id=ark:12345/x5V12", "/ark:12345/X5V12": "404 ",
		"/ark:12345/x5t1": "303 https://example.org/1.html", "/ark:12345/x5t1 */*": "303 https://example.org/1.html", "/ark:12345/x5t1" + turtle: "303 https://example.org/1.ttl", "/ark:12345/x5t1" + html: "303 https://example.org/1.html",
		"/ark:12345/x5t1 text/html;q=0.5, text/turtle": "303 https://example.org/1.ttl", "/ark:12345/x5t1 text/html,text/turtle": "303 https://example.org/1.html", "/ark:12345/x5t1" + xml: "406 ",
		"/ark:12345/x5t1 image/png, TEXT/Turtle;charset=utf-8;q=0.3": "303 https://example.org/1.ttl", "/ark:12345/x5t1 text/*": "303 https://example.org/1.html", "/ark:12345/x5t1 text/turtle;q=0, */*;q=0.1": "303 https://example.org/1.html",
		"/ark:12345/x5o1": "303 https://example.org/1", "/ark:12345/x5o1" + html: "303 https://example.org/1", "/ark:12345/x5o1" + xml: "303 https://example.org/1.rdf", "/ark:12345/x5o1 text/html, application/rdf+xml;q=0.9": "303 https://example.org/1.rdf",
		"/10.5072/N15": "302 https://example.org/n/15", "/10.5072/n15": "302 https://example.org/n/15", "/doi:10.5072/N15": "302 https://example.org/n/15", "/10.5072/Wx": "404 ",
		"/x/a.b": "302 https://example.org/x/a.b", "/x/a/b": "404 ", "/x/a%20b": "404 ",
	}
	narrowed := func(number int, pattern, captures string) string {
		return fmt.Sprintf("its rule %d, %s, answers in the file for fewer names: for none whose %s would have to be percent-encoded", number, pattern, captures)
	}
	return from, asked, []string{
		"ark:12345/x5: " + narrowed(3, "gone/{rest0:any,0-}", "rest0"), "ark:12345/x5: " + narrowed(4, "any/{all:any}", "all"), "ark:12345/x5: " + narrowed(5, "q/{all:any}", "all"),
		`ark:12345/x5: its rule 7, up{word:upper}, is left out: a web server can't put "word" into the URL as the rule does: with its letters in one case, or percent-encoded`,
		`10.5072/: its rule 2, W{word:alnum}, is left out: a web server can't put "word" into the URL as the rule does: with its letters in one case, or percent-encoded`,
		"https://purl.org/x/: " + narrowed(1, "{name:segment}", "name"),
	}
}

// ruled returns the file for a web server, of a registry with rules.
func ruled(t *testing.T, from *listed, to foreign.Target, want []string) string {
	t.Helper()
	for _, ns := range from.spaces {
		rules.Check(web(t), ns, func(path string, err error) { t.Errorf("%s: %s: %v", ns.Prefix, path, err) })
	}
	var b bytes.Buffer
	var told []string
	done, err := foreign.ExportWeb(t.Context(), from, []stele.NamespaceKey{{}}, web(t), &b, to, func(name string, what error) { told = append(told, name+": "+what.Error()) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (foreign.Exported{Records: 4, Others: 1, Hidden: 1, Rules: 10}); done != want {
		t.Errorf("%+v was written, want %+v", done, want)
	}
	if to == foreign.Htaccess {
		want = slices.Insert(slices.Clone(want), 0, "ark:12345/x5: its rule 1, HP_{number:digit,7}, does not pass on queries in the file: its URL has a fragment")
	}
	if !slices.Equal(told, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	return b.String()
}

// TestWebRules: rules that a web server can't follow are told and left out, in the namespaces that are exported.
func TestWebRules(t *testing.T) {
	word := func(pattern, url string) stele.Rule {
		return stele.Rule{Pattern: pattern, Targets: []stele.Target{{Service: stele.N2L, URL: url}}}
	}
	spaces := []*stele.Namespace{
		{Scheme: "ark", Prefix: "ark:12345/x5", Rules: []stele.Rule{
			word("a%20{n:digit}", "https://example.org/{n}"), word("c{n:digit}", "https://example.org/{n}"),
			word("{a:digit,1}{b:digit,1}{c:digit,1}{d:digit,1}{e:digit,1}{f:digit,1}{g:digit,1}{h:digit,1}{i:digit,1}", "https://example.org/{rest}"),
			{Pattern: "l{n:digit}", Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/{n}", Language: "en"}, {Service: stele.N2L, URL: "https://example.org/pt/{n}", Language: "pt"}}},
		}},
		{Scheme: "ark", Prefix: "ark:12345/x6", Rules: make([]stele.Rule, 2)},
		{Scheme: "ark", Prefix: "ark:54321", Rules: make([]stele.Rule, 1)},
	}
	for i := range 200 { // the rules of a namespace do not answer for those below
		spaces = append(spaces, &stele.Namespace{Scheme: "ark", Prefix: fmt.Sprintf("ark:12345/x5c%03d/below", i)})
	}
	want := []string{
		"ark:12345/x5: its rule 1, a%20{n:digit}, is left out: its pattern has a percent sign, and web servers look up names that are decoded",
		"ark:12345/x5: its rule 2, c{n:digit}, is left out: it would be a line of more than 4000 bytes",
		"ark:12345/x5: its rule 3, {a:digit,1}{b:digit,1}{c:digit,1}{d:digit,1}{e:digit,1}{f:digit,1}{g:digit,1}{h:digit,1}{i:digit,1}, is left out: it has more captures than a web server can refer to",
		"ark:12345/x5: its rule 4, l{n:digit}, does not choose by language in the file",
		"ark:12345/x6: its 2 rules are left out: at byte 0: is missing; write what follows the namespace's prefix, such as HP_{number:digit,7}",
	}
	for _, to := range []foreign.Target{foreign.Htaccess, foreign.NginxMap} {
		var told []string
		done, err := foreign.ExportWeb(t.Context(), &listed{spaces: spaces}, []stele.NamespaceKey{{Scheme: "ark", Prefix: "ark:12345"}}, web(t), new(bytes.Buffer), to,
			func(name string, what error) { told = append(told, name+": "+what.Error()) }, nil)
		if err != nil || done.Rules != 1 || !slices.Equal(told, want) {
			t.Errorf("%s: %v, %+v,\n%s", to, err, done, strings.Join(told, "\n"))
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

// startNginx starts nginx with a file, as the head of the file says, and returns its address.
func startNginx(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	var use strings.Builder
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
	return at
}

// TestNginxMap: nginx redirects by the file as the registry does.
func TestNginxMap(t *testing.T) {
	from, asked := webRegistry(t)
	wantAnswers(t, startNginx(t, written(t, from, foreign.NginxMap)), asked)
}

// TestNginxRules: the same with rules.
func TestNginxRules(t *testing.T) {
	from, asked, told := ruledRegistry(t)
	asked["/ark:12345/x5HP_0000005?a=b"] = "303 https://example.org/hp?n=0000005&a=b#$1"
	wantAnswers(t, startNginx(t, ruled(t, from, foreign.NginxMap, told)), asked)
}

// TestHtaccess: Apache httpd redirects by the file as the registry does.
func TestHtaccess(t *testing.T) {
	from, asked := webRegistry(t)
	wantAnswers(t, startApache(t, written(t, from, foreign.Htaccess)), asked)
}

// TestHtaccessRules: the same with rules.
func TestHtaccessRules(t *testing.T) {
	from, asked, told := ruledRegistry(t)
	asked["/ark:12345/x5HP_0000005?a=b"] = "303 https://example.org/hp?n=0000005#$1"
	wantAnswers(t, startApache(t, ruled(t, from, foreign.Htaccess, told)), asked)
}

// startApache starts Apache httpd with a file, and returns its address.
func startApache(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	root := filepath.Join(folder, "www")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := folder; dir != filepath.Clean(os.TempDir()) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755) // the server gives up its rights
	}
	if err := os.WriteFile(filepath.Join(root, ".htaccess"), []byte(text), 0o644); err != nil {
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
	return at
}
