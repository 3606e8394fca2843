package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// curl runs curl as EZID's documentation shows it, and returns what it prints.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "curl", append([]string{"-sS"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// A user of EZID works with curl as there: with a name and a token, and with the cookie of a session, which outlives the server.
// The history names the user. A server that does not answer clients of EZID has nothing there.
func TestServeEZID(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	runStele(t, "ns", "add", "ark:99999/fk4", "--minter", "noid", "--template", ".reedeedk", "--data", data)
	runStele(t, "user", "add", "bia", "--data", data)
	runStele(t, "ns", "grant", "ark:99999/fk4", "user:bia", "editor", "--data", data)
	token, _, _ := strings.Cut(strings.TrimSpace(runStele(t, "token", "create", "bia", "--data", data)), "\n")
	metadata := filepath.Join(t.TempDir(), "metadata.txt")
	if err := os.WriteFile(metadata, []byte("_target: https://example.org/1\nerc.who: Proust,\n  Marcel\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	jar := filepath.Join(t.TempDir(), "cookies")

	p := startServe(t, "--data", data, "--http", "127.0.0.1:0")
	at, by := p.http+"/.ezid", "bia:"+token
	made := curl(t, "-u", by, "-X", "POST", "-H", "Content-Type: text/plain", "--data-binary", "@"+metadata, at+"/shoulder/ark:/99999/fk4")
	id, ok := strings.CutPrefix(made, "success: ")
	if !ok || !strings.HasPrefix(id, "ark:/99999/fk4") {
		t.Fatalf("%q", made)
	}
	if got := curl(t, at+"/id/"+id); !strings.Contains(got, "\nerc.who: Proust, Marcel\n") || !strings.Contains(got, "\n_target: https://example.org/1\n") {
		t.Errorf("%s", got)
	}
	if response, _ := httpGet(t, p.http+"/"+id); response.Header.Get("Location") != "https://example.org/1" {
		t.Errorf("%s leads to %s", id, response.Header.Get("Location"))
	}
	if got := curl(t, "-c", jar, "-u", by, at+"/login"); got != "success: session cookie returned" {
		t.Errorf("%q", got)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.stderr)
	}

	p = startServe(t, "--data", data, "--http", "127.0.0.1:0")
	at = p.http + "/.ezid"
	if got := curl(t, "-b", jar, "-X", "POST", "-H", "Content-Type: text/plain", "--data-binary", "_status: unavailable | by author", at+"/id/"+id); got != "success: "+id {
		t.Errorf("%q", got)
	}
	if response, _ := httpGet(t, p.http+"/"+id); response.StatusCode != http.StatusGone {
		t.Errorf("%s: %s", id, response.Status)
	}
	if got := curl(t, "-b", jar, at+"/logout"); got != "success: authentication credentials flushed" {
		t.Errorf("%q", got)
	}
	if got := curl(t, "-b", jar, "-X", "POST", at+"/shoulder/ark:/99999/fk4"); got != "error: unauthorized" {
		t.Errorf("%q", got)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.stderr)
	}
	if text := runStele(t, "history", id, "--data", data); strings.Count(text, "bia") != 2 {
		t.Errorf("%s", text)
	}

	p = startServe(t, "--data", data, "--http", "127.0.0.1:0", "--ezid=false")
	if response, _ := httpGet(t, p.http+"/.ezid/status"); response.StatusCode != http.StatusNotFound {
		t.Errorf("it answers with %s", response.Status)
	}
	p.end(t, syscall.SIGTERM)
}
