package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

// Every verb stands in a group of the help text, and has an example.
func TestVerbsAreGrouped(t *testing.T) {
	p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), now: time.Now}
	root := p.rootCommand()
	for _, c := range root.Commands() {
		if c.GroupID == "" || !root.ContainsGroup(c.GroupID) {
			t.Errorf("the verb %s is in no group; add it to verbGroups", c.Name())
		}
	}
	for _, g := range root.Groups() {
		if !strings.Contains(root.UsageString(), g.Title) {
			t.Errorf("the help text does not show the group %q", g.Title)
		}
	}
	for word, meant := range usage.Meant() {
		if c, _, err := root.Find([]string{word}); err == nil && c != root {
			t.Errorf("%s is a verb, and no suggestion is made for it", word)
		}
		for _, text := range meant {
			c, rest, err := root.Find(strings.Fields(text))
			if err != nil || c == root || len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				t.Errorf("for %s the verb %q is suggested, which is not there", word, text)
			}
		}
	}
}

// execute runs the program in a world of its own, and returns what it prints.
func execute(t *testing.T, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &complaints, now: time.Now, machineConfig: file, config: all.Config{Now: time.Now}}
	code = p.run(t.Context(), args)
	return code, out.String(), complaints.String()
}

// On a machine with a server, an administrator who leaves out --data means the server's
// registry, and does not get a second one.
func TestSecondRegistry(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	t.Setenv("STELE_DATA", "")
	t.Setenv("STELE_STORE", "")
	t.Setenv("STELE_SERVER", "")
	file := filepath.Join(here, "stele.toml")
	if err := os.WriteFile(file, []byte("data = \"/var/lib/stele/registry\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	add := []string{"ns", "add", "urn:x1"}
	code, _, complaints := execute(t, file, add...)
	if code != exitFailed || !strings.Contains(complaints, "a second one is not made: the registry of this machine is /var/lib/stele/registry") ||
		!strings.Contains(complaints, "add --data /var/lib/stele/registry, or --server") {
		t.Errorf("%d %s", code, complaints)
	}
	if _, err := os.Stat(config.DefaultData); err == nil {
		t.Error("a second registry was made")
	}
	if code, _, complaints := execute(t, file, append(add, "--data", config.DefaultData)...); code != exitOK || !strings.Contains(complaints, "made a new registry in "+filepath.Join(here, config.DefaultData)) {
		t.Errorf("named by a flag: %d %s", code, complaints)
	}
	if code, _, complaints := execute(t, file, "ns", "add", "urn:x2"); code != exitOK || complaints != "" {
		t.Errorf("one that is there: %d %s", code, complaints)
	}
}

// The error says if the user wrote http for https, or the other way round.
func TestOtherProtocol(t *testing.T) {
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	t.Setenv("STELE_TOKEN", "")
	for _, tt := range []struct{ server, want string }{
		{"https" + strings.TrimPrefix(plain.URL, "http"), "answers by http there, and not by https; write " + plain.URL},
		{"http" + strings.TrimPrefix(secure.URL, "https"), "answers by https there, and not by http; write " + secure.URL},
	} {
		code, _, complaints := execute(t, "", "ls", "--server", tt.server)
		if code != exitFailed || !strings.Contains(complaints, tt.want) || strings.Contains(complaints, "TLS handshake") {
			t.Errorf("%s: %d %s", tt.server, code, complaints)
		}
	}
}

// The error of a folder that a server has open names the server.
func TestInUse(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	store, err := pebble.Open(t.Context(), data, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	code, _, complaints := execute(t, "", "ls", "--data", data)
	if code != exitTryAgain || !strings.Contains(complaints, fmt.Sprintf("in use by process %d since ", os.Getpid())) || !strings.Contains(complaints, "or name its server with --server") {
		t.Errorf("%d %s", code, complaints)
	}
	store.Serving("http://localhost:8080")
	code, _, complaints = execute(t, "", "ls", "--data", data)
	if code != exitTryAgain || !strings.Contains(complaints, "add --server http://localhost:8080 to let it do the work") {
		t.Errorf("%d %s", code, complaints)
	}
}
