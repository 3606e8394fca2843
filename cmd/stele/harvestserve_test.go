package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServeHarvests: a server does a harvest that is scheduled in its registry, at an address that the setting harvest-allow has, and
// not without the setting; what became of it is kept.
func TestServeHarvests(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	runStele(t, "ns", "add", "ark:12345/x5", "--listed", "--data", from)
	runStele(t, "register", "ark:12345/x5a1", "--to", "https://example.org/1", "--title", "One", "--data", from)
	source := startServe(t, "--data", from, "--http", "127.0.0.1:0")
	runStele(t, "ns", "add", "ark:12345/x5", "--data", to)

	runStele(t, "harvest", "add", "daily", source.http+"/.oai", "--into", "ark:12345/x5", "--data", to)
	p := startServe(t, "--data", to, "--http", "127.0.0.1:0")
	p.waitFor(t, "a scheduled harvest failed")
	if response, _ := httpGet(t, p.http+"/ark:12345/x5a1"); response.StatusCode != 404 {
		t.Errorf("it was harvested from an address that is not allowed: %s", response.Status)
	}
	p.end(t, syscall.SIGTERM)
	runStele(t, "harvest", "stop", "daily", "--data", to)
	runStele(t, "user", "add", "ann", "--data", to)
	runStele(t, "ns", "grant", "ark:12345/x5", "user:ann", "owner", "--data", to)
	file := filepath.Join(t.TempDir(), "token")
	token, err := steleCommand(t, "token", "create", "ann", "--scope", "admin", "--data", to).Output()
	if err == nil {
		err = os.WriteFile(file, token, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	// The owner of the namespace adds another one while the server runs.
	p = startServe(t, "--data", to, "--http", "127.0.0.1:0", "--harvest-allow", "127.0.0.0/8")
	far := []string{"--server", p.http, "--token-file", file}
	runStele(t, append([]string{"harvest", "add", "again", source.http + "/.oai", "--into", "ark:12345/x5"}, far...)...)
	p.waitFor(t, "a scheduled harvest is done")
	if response, _ := httpGet(t, p.http+"/ark:12345/x5a1"); response.Header.Get("Location") != "https://example.org/1" {
		t.Errorf("%s to %q", response.Status, response.Header.Get("Location"))
	}
	runStele(t, append([]string{"harvest", "add", "more", source.http + "/.oai", "--into", "ark:12345/x5", "--format", "oai_datacite"}, far...)...)
	if said := runStele(t, append([]string{"harvest", "run", "again"}, far...)...); !strings.Contains(said, "again is done soon") {
		t.Error(said)
	}
	runStele(t, append([]string{"harvest", "stop", "more"}, far...)...)
	if said := runStele(t, append([]string{"harvest", "ls"}, far...)...); !strings.Contains(said, "again  ") || strings.Contains(said, "more  ") {
		t.Error(said)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
	if said := runStele(t, "harvest", "ls", "--json", "--data", to); !strings.Contains(said, `"said":"1 new, `) {
		t.Error(said)
	}
}
