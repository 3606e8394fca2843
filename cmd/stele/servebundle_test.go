package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// makeBundle makes a registry and a bundle of it, and returns the file and the key of its log.
func makeBundle(t *testing.T) (file, key string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	file = filepath.Join(t.TempDir(), "all.tar")
	for _, args := range [][]string{
		{"ns", "add", "urn:example", "--title", "Rivers", "--listed"},
		{"ns", "add", "urn:lsid:example.org:ns"},
		{"ns", "add", "20.500.1/"},
		{"register", "urn:example:tapajos", "--to", "https://example.org/tapajos"},
		{"update", "urn:example:tapajos", "--to", "https://example.org/rio", "--title", "Rio Tapajós"},
		{"register", "urn:example:old", "--to", "https://example.org/old"},
		{"withdraw", "urn:example:old", "--reason", "it was wrong"},
		{"register", "urn:example:hidden", "--to", "https://example.org/hidden", "--reader", "user:anna"},
		{"register", "urn:lsid:example.org:ns:one", "--to", "https://example.org/one"},
		{"register", "20.500.1/one", "--to", "https://example.org/handle"},
		{"register", "ark:99999/x1", "--to", "https://example.org/x1"}, // of no namespace
		{"bundle", "-o", file, "--origin", testOrigin},
	} {
		runStele(t, append(args, "--data", data)...)
	}
	return file, strings.TrimSpace(runStele(t, "log", "key", "--data", data))
}

// frozenAnswer is an answer of an archive.
type frozenAnswer struct {
	status   int
	location string
	body     string
	frozen   string // header: of which time the checkpoint is
}

func askFrozen(t *testing.T, method, url, body string, head ...string) frozenAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return frozenAnswer{a.StatusCode, a.Header.Get("Location"), string(text), a.Header.Get("Stele-Frozen")}
}

// TestServeBundle serves a bundle: all that it has is read, and nothing is written.
func TestServeBundle(t *testing.T) {
	file, key := makeBundle(t)
	folder := filepath.Join(t.TempDir(), "archives")
	serve := func(args ...string) *process {
		t.Helper()
		return startServe(t, append([]string{"--bundle", file, "--http", "127.0.0.1:0", "--hdl", "127.0.0.1:0", "--ezid"}, args...)...)
	}
	p := serve("--data", folder)
	if said := p.stderr.String(); !strings.Contains(said, "give the key of the registry's log with --key") || !strings.Contains(said, "a frozen archive of "+testOrigin+" as of ") || strings.Contains(said, "level=ERROR") || strings.Contains(said, "level=WARN") {
		t.Errorf("it said:\n%s", said)
	}
	readFrozen(t, p)
	writeFrozen(t, p)
	if said := p.stderr.String(); strings.Contains(said, "level=ERROR") || strings.Contains(said, "level=WARN") {
		t.Errorf("it said:\n%s", said)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	// The next start finds what this one has made, and checks the key that it gets.
	p = serve("--data", folder, "--key", key)
	if strings.Contains(p.stderr.String(), "with --key") {
		t.Errorf("it said:\n%s", p.stderr)
	}
	readFrozen(t, p)
	p.end(t, syscall.SIGTERM)

	// Without a folder nothing is left.
	cmd := steleCommand(t, "serve", "--json", "--bundle", file, "--http", "127.0.0.1:0")
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	p = startCommand(t, cmd)
	if a := askFrozen(t, "GET", p.http+"/urn:example:tapajos", ""); a.location != "https://example.org/rio" {
		t.Errorf("%+v", a)
	}
	p.end(t, syscall.SIGTERM)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// readFrozen reads what an archive has.
func readFrozen(t *testing.T, p *process) {
	t.Helper()
	for _, test := range []struct {
		path, accept string
		status       int
		location     string
		body         string
	}{
		{path: "/urn:example:tapajos", status: 302, location: "https://example.org/rio"},
		{path: "/urn:example:old", status: 410, body: "it was wrong"},
		{path: "/urn:example:hidden", status: 404},
		{path: "/api/v1/records/urn:example:hidden", status: 404},
		{path: "/urn:example:unknown", status: 404},
		{path: "/ark:/99999/x1", status: 302, location: "https://example.org/x1"},
		{path: "/.memento/29990101000000/urn:example:tapajos", status: 302},
		{path: "/.info/urn:example:tapajos?version=1", accept: "text/html", status: 200, body: "https://example.org/tapajos"},
		{path: "/.timemap/urn:example:tapajos", status: 200, body: "first"},
		{path: "/api/v1/records/urn:example:tapajos", status: 200, body: `"version":2`},
		{path: "/api/v1/records/urn:example:tapajos?version=1", status: 200, body: `"https://example.org/tapajos"`},
		{path: "/api/v1/history/urn:example:tapajos", status: 200, body: `"https://example.org/tapajos"`},
		{path: "/api/handles/20.500.1/one", status: 200, body: "https://example.org/handle"},
		{path: "/authority/?lsid=urn:lsid:example.org:ns:one", status: 200},
		{path: "/.ezid/id/ark:/99999/x1", status: 200, body: "success"},
		{path: "/.oai?verb=ListIdentifiers&metadataPrefix=oai_dc", status: 200, body: "urn:example:tapajos"},
		{path: "/.log/checkpoint", status: 200, body: testOrigin + "\n"},
		{path: "/.log/", accept: "text/html", status: 200, body: testOrigin},
		{path: "/.log/tile/entries/000", status: 404},
		{path: "/", accept: "text/html", status: 200, body: "This is a frozen archive of " + testOrigin + " as of "},
		{path: "/", accept: "text/html;q=1", status: 200, body: "Nothing here changes any more."},
		{path: "/readyz", status: 200},
	} {
		a := askFrozen(t, "GET", p.http+test.path, "", "Accept", test.accept)
		if a.status != test.status || test.location != "" && a.location != test.location || !strings.Contains(a.body, test.body) {
			t.Errorf("%s: %d to %q: %.600s", test.path, a.status, a.location, a.body)
		}
	}
	if a := askFrozen(t, "GET", p.http+"/.log/checkpoint", ""); a.status != 200 || a.frozen == "" {
		t.Errorf("the checkpoint is not marked, so that an heir takes it for a sign of life: %+v", a)
	}
	if a := askFrozen(t, "GET", p.http+"/", "", "Accept", "text/html"); strings.Contains(a.body, "/.desk/") {
		t.Error("the home page leads to a desk")
	}
	got, err := steleCommand(t, "resolve", "hdl:20.500.1/ONE", "--hdl", p.hdl).CombinedOutput()
	if err != nil || !bytes.Contains(got, []byte("https://example.org/handle")) {
		t.Errorf("the Handle protocol: %v: %s", err, got)
	}
}

// writeFrozen tries each way to write.
func writeFrozen(t *testing.T, p *process) {
	t.Helper()
	const words = "a frozen archive of " + testOrigin + " as of "
	soap := `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><a:assignLSID xmlns:a="http://www.omg.org/LSID/2003/Standard/WSDL"><authority>example.org</authority><namespace>ns</namespace></a:assignLSID></e:Body></e:Envelope>`
	for _, test := range []struct {
		method, path, body string
		head               []string
	}{
		{method: "PUT", path: "/api/v1/records/urn:example:new", body: `{"url":"https://example.org/"}`},
		{method: "PUT", path: "/api/v1/records/urn:example:new", body: `{"url":"https://example.org/"}`, head: []string{"Authorization", "Bearer stele_abc"}},
		{method: "PATCH", path: "/api/v1/records/urn:example:tapajos", body: `{}`},
		{method: "POST", path: "/api/v1/mint", body: `{"prefix":"urn:example"}`},
		{method: "POST", path: "/api/v1/import", body: "{}"},
		{method: "POST", path: "/api/v1/users", body: "{}"},
		{method: "GET", path: "/api/v1/proposals"},
		{method: "POST", path: "/api/v1/proposals", body: "{}"},
		{method: "GET", path: "/.desk/"},
		{method: "POST", path: "/.desk/signin", body: "name=admin"},
		{method: "PUT", path: "/.ezid/id/ark:/99999/x2", body: "_target: https://example.org/"},
		{method: "POST", path: "/.ezid/shoulder/ark:/99999/x", body: "_target: https://example.org/"},
		{method: "GET", path: "/.ezid/login"},
		{method: "PUT", path: "/api/handles/20.500.1/two", body: "{}"},
		{method: "DELETE", path: "/api/handles/20.500.1/one"},
		{method: "POST", path: "/api/sessions", body: "{}"},
		{method: "POST", path: "/authority/assigning", body: soap, head: []string{"Content-Type", "text/xml", "SOAPAction", ""}},
		{method: "GET", path: "/authority/notify?lsid=urn:lsid:example.org:ns:one&authorityName=other.example"},
	} {
		a := askFrozen(t, test.method, p.http+test.path, test.body, test.head...)
		if a.status < 400 || !strings.Contains(a.body, words) {
			t.Errorf("%s %s: %d: %.300s", test.method, test.path, a.status, a.body)
		}
	}
	for _, args := range [][]string{
		{"register", "urn:example:new", "--to", "https://example.org/"},
		{"withdraw", "urn:example:tapajos", "--reason", "x"},
	} {
		cmd := steleCommand(t, append(args, "--server", p.http)...)
		cmd.Env = append(cmd.Env, "STELE_TOKEN=stele_abc")
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte(words)) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

// TestServeBundleRefused: a bundle that is not whole, or not of the registry that the key is of, is not served.
func TestServeBundleRefused(t *testing.T) {
	file, _ := makeBundle(t)
	_, other := makeBundle(t)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("Rio Tapaj"))
	data[at] ^= 1
	bad := filepath.Join(t.TempDir(), "bad.tar")
	if err := os.WriteFile(bad, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args  []string
		words string
	}{
		{[]string{"--bundle", bad}, "of data/records-00001.jsonl"},
		{[]string{"--bundle", file, "--key", other}, "data/log/checkpoint"},
		{[]string{"--bundle", file, "--dns", "127.0.0.1:0"}, "leave --dns"},
		{[]string{"--bundle", file, "--demo"}, "keep one"},
		{[]string{"--bundle", file, "--store", "postgres://localhost/stele"}, "leave --store out"},
		{[]string{"--key", other}, "--key goes with --bundle"},
		{[]string{"--bundle", filepath.Join(t.TempDir(), "none.tar")}, "none.tar"},
	} {
		out, err := steleCommand(t, append([]string{"serve", "--http", "127.0.0.1:0"}, test.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.words) {
			t.Errorf("%q: %v: %s", test.args, err, out)
		}
	}
}
