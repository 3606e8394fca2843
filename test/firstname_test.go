package test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFirstName does what a stranger does who has README.md alone: the commands of its section "Your
// first name", and then the addresses that it names. The name leads to the URL, and has a page.
func TestFirstName(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Your first name\n")
	section, _, _ = strings.Cut(section, "\n## ")
	p, err := parsePage("README.md", section)
	if err != nil || len(p.fences) != 1 || len(p.fences[0].body) != 2 || p.fences[0].body[1] != "bin/stele serve" {
		t.Fatalf("the section does not show two commands: %v\n%s", err, section)
	}
	to := regexp.MustCompile(` --to (\S+)`).FindStringSubmatch(p.fences[0].body[0])
	addresses := regexp.MustCompile(`http://`+shownDemo+`(/\S+[a-z0-9])`).FindAllStringSubmatch(section, -1)
	if to == nil || len(addresses) != 2 {
		t.Fatalf("it does not show a URL and two addresses:\n%s", section)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(stele(t), filepath.Join(dir, "bin/stele")); err != nil {
		t.Fatal(err)
	}
	sh := shell{dir: dir, env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}}
	results, err := sh.run(t.Context(), p.fences[0].body[0])
	if err != nil || results[0].code != 0 {
		t.Fatal(err, results)
	}
	cmd := exec.CommandContext(t.Context(), "bin/stele", "serve", "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, sh.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		_, rest, _ := strings.Cut(lines.Text(), "serving ")
		address, _, _ = strings.Cut(rest, " ")
	}
	get := func(path string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/html")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	if r := get(addresses[0][1]); r.StatusCode != http.StatusFound || r.Header.Get("Location") != to[1] {
		t.Errorf("%s answers %s, to %q", addresses[0][1], r.Status, r.Header.Get("Location"))
	}
	for _, path := range []string{addresses[1][1], "/.docs/", "/.docs/tour"} {
		if r := get(path); r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s answers %s", path, r.Status)
		}
	}
}
