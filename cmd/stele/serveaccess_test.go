package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stele-id/stele/internal/desktest"
)

var credentialText = regexp.MustCompile(`stele_[0-9a-z]{12}_[-_0-9A-Za-z]{43}`)

// askWith asks a server for a path with a token, and returns the status.
func askWith(t *testing.T, url, credential string) *http.Response {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

// The first server of a registry makes an administrator and shows a link, once and not in the
// log; it shows no token. The link signs in once. With a token that is made then, the
// administrator sees what is reserved.
func TestFirstAdministrator(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	log := filepath.Join(t.TempDir(), "log")
	runStele(t, "ns", "add", "ark:12345", "--data", folder)
	runStele(t, "register", "ark:12345/x", "--to", "https://example.org/x", "--reserve", "--data", folder)
	p := startServe(t, "--data", folder, "--http", "127.0.0.1:0", "--log-file", log, "--log-level", "debug", "--log-requests")
	credential := firstToken(t, p)
	printed := p.stderr.String()
	if credentialText.MatchString(printed) || !strings.Contains(printed, "stele token create admin --data "+folder) || !strings.Contains(printed, p.http+desktest.Link(printed)+"\n") {
		t.Fatalf("it prints %s", printed)
	}
	if _, err := desktest.Token(t.Context(), http.DefaultClient, p.http, printed); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("the link is used again: %v", err)
	}
	for token, want := range map[string]int{"": http.StatusNotFound, credential: http.StatusFound, credential[:len(credential)-4] + "AAAA": http.StatusUnauthorized} {
		r := askWith(t, p.http+"/ark:12345/x", token)
		if r.StatusCode != want || token != "" && r.Header.Get("Cache-Control") != "private, no-store" {
			t.Errorf("got %d %q, want %d", r.StatusCode, r.Header.Get("Cache-Control"), want)
		}
	}
	if code := p.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("it ends with %d", code)
	}
	link := desktest.Link(printed)
	logged, err := os.ReadFile(log)
	if err != nil || len(logged) == 0 || strings.Contains(string(logged), credential[19:35]) || strings.Contains(string(logged), link[len(link)-20:]) {
		t.Errorf("the log has the token or the link, or nothing: %v\n%s", err, logged)
	}
	if list := runStele(t, "token", "ls", "--data", folder); !regexp.MustCompile(`^[0-9a-z]{12}  admin  expires \S+  used 20\S+Z  for read,mint,write,admin,backup,metrics  first one\n$`).MatchString(list) {
		t.Errorf("the last use is not kept: %q", list)
	}

	// Never again; but another one can be made while the server is stopped.
	again := startServe(t, "--data", folder, "--http", "127.0.0.1:0")
	again.end(t, syscall.SIGTERM)
	if printed := again.stderr.String(); desktest.Link(printed) != "" || strings.Contains(printed, "administrator") {
		t.Errorf("it prints again: %s", printed)
	}
	other := credentialText.FindString(runStele(t, "token", "create", "admin", "--data", folder))
	third := startServe(t, "--data", folder, "--http", "127.0.0.1:0")
	for _, token := range []string{credential, other} {
		if r := askWith(t, third.http+"/ark:12345/x", token); r.StatusCode != http.StatusFound {
			t.Errorf("got %d", r.StatusCode)
		}
	}
	third.end(t, syscall.SIGTERM)
}

// A server that ended before it could show the link has locked no user out.
func TestFirstAdministratorInterrupted(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	runStele(t, "user", "add", "admin", "--admin", "--data", folder) // as far as it came
	p := startServe(t, "--data", folder, "--http", "127.0.0.1:0")
	if printed := p.stderr.String(); desktest.Link(printed) != "" {
		t.Errorf("it prints %s", printed)
	}
	p.end(t, syscall.SIGTERM)
	credential := credentialText.FindString(runStele(t, "token", "create", "admin", "--data", folder))
	again := startServe(t, "--data", folder, "--http", "127.0.0.1:0")
	if r := askWith(t, again.http+"/ark:12345/x", credential); r.StatusCode != http.StatusNotFound {
		t.Errorf("got %d", r.StatusCode)
	}
	again.end(t, syscall.SIGTERM)
}
