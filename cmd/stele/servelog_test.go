package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangUp sends SIGHUP, and waits until a file has something.
func (p *process) hangUp(t *testing.T, file, text string) string {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for {
		log, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(log), text) {
			return string(log)
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s has no %q: %s, %v", file, text, log, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestServeLogFile: a log that another program moves away is opened anew on SIGHUP,
// and goes on where it is if that is not possible.
func TestServeLogFile(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	folder := t.TempDir()
	name := filepath.Join(folder, "stele.log")
	if err := os.WriteFile(name, []byte("before\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--log-file", name, "--log-requests")
	httpGet(t, p.http+"/ark:12345/x1?first")
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	httpGet(t, p.http+"/ark:12345/x1?second") // still to the file that was moved
	p.hangUp(t, name, "msg=reloaded")
	info, err := os.Stat(name)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the new log is %v, %v", info.Mode(), err)
	}
	httpGet(t, p.http+"/ark:12345/x1?third")
	// Now there is no place for a new one.
	if err := os.Rename(name, name+".2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	p.hangUp(t, name+".2", "the old log goes on")
	httpGet(t, p.http+"/ark:12345/x1?fourth")
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d: %s", code, p.stderr)
	}
	for file, want := range map[string][]string{name + ".1": {"before\n", "msg=ready", "?first", "?second"}, name + ".2": {"msg=reloaded", "?third", "?fourth", "msg=ended"}} {
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(log), text) {
				t.Errorf("%s has no %q:\n%s", file, text, log)
			}
		}
	}
	if got := p.stderr.String(); strings.Contains(got, "msg=") {
		t.Errorf("on standard error there is %q", got)
	}
}

// TestLogSecrets: whatever a client asks, and whatever fails, the log has no token, and no
// request that was made with one.
func TestLogSecrets(t *testing.T) {
	const secret = "Vm9pY2kgdW4gc2VjcmV0IHF1ZSBwZXJzb25uZQabcde"
	const token = "stele_abcdefghjkmn_" + secret
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--log-requests", "--log-addresses", "--log-level", "debug")
	for _, r := range []struct{ method, target, authorization string }{
		{"GET", "/ark:12345/x1?q=hidden", "Bearer " + token},
		{"GET", "/api/v1/me", "Bearer " + token},
		{"GET", "/api/v1/me", "Bearer " + token + "\x80"},
		{"GET", "/api/v1/records?pointing=hidden", ""},
		{"PUT", "/api/v1/records/ark:12345/x1", "Basic " + token},
		{"GET", "/ark:12345/x1?access_token=" + token, ""},
		{"GET", "/" + token, ""},
		{"GET", "/ark:12345/x1?t=stele%5Fabcdefghjkmn%5F" + secret, ""},
		{"GET", "/ark:12345/x1?t=STELE_abcdefghjkmn_" + secret, ""},
		{"POST", "/api/v1/tokens", "Bearer"},
	} {
		request, err := http.NewRequest(r.method, p.http+r.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.authorization != "" {
			request.Header["Authorization"] = []string{r.authorization}
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	log := p.stderr.String()
	if n := strings.Count(log, "msg=request"); n != 10 {
		t.Errorf("%d requests are logged:\n%s", n, log)
	}
	if strings.Contains(log, secret) || strings.Contains(log, "hidden") || strings.Contains(strings.ToLower(log), "bearer") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

// TestServeProxies: with a trusted proxy in front, the client's own address counts.
func TestServeProxies(t *testing.T) {
	for _, trusted := range []string{"127.0.0.1", "192.0.2.1"} {
		p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--log-addresses", "--trusted-proxies", trusted, "--base", "https://id.example.org", "--redirect-https")
		request, err := http.NewRequest("GET", p.http+"/ark:12345/x1", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", "198.51.100.7, 203.0.113.5")
		request.Header.Set("X-Forwarded-Proto", "https")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		p.end(t, syscall.SIGTERM)
		status, address := http.StatusFound, "address=203.0.113.5"
		if trusted != "127.0.0.1" {
			status, address = http.StatusPermanentRedirect, "address=127.0.0.1"
		}
		if response.StatusCode != status || !strings.Contains(p.stderr.String(), address) {
			t.Errorf("with %s trusted: %s\n%s", trusted, response.Status, p.stderr)
		}
	}
}
