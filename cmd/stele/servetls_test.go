package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
)

// ask asks with a client and returns the answer with its body.
func ask(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// startTLS starts a server with a certificate of the CA for id.example.org and
// 127.0.0.1, and returns the folder of its files.
func startTLS(t *testing.T, a *certtest.Authority, args ...string) (*process, string) {
	t.Helper()
	folder := t.TempDir()
	cert, key := a.Issue(t, folder, 100*time.Hour, 11, "id.example.org")
	return startServe(t, append([]string{"--data", newRegistry(t), "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key}, args...)...), folder
}

func TestServeTLS(t *testing.T) {
	a := certtest.New(t, time.Now)
	p, folder := startTLS(t, a, "--redirect-https", "--hsts", "1h", "--metrics", "127.0.0.1:0")
	response, _ := ask(t, a.Client(t), p.https+"/ark:12345/x1/a%2Fb?c=d")
	if response.ProtoMajor != 2 || response.StatusCode != http.StatusFound || response.Header.Get("Location") != "https://example.org/x1/a%2Fb?c=d" || response.Header.Get("Strict-Transport-Security") != "max-age=3600" {
		t.Errorf("by https: %s %s, %v", response.Proto, response.Status, response.Header)
	}
	old := a.Client(t)
	old.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	old.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
	if response, _ := ask(t, old, p.https+"/ark:12345/x1"); response.ProtoMajor != 1 || response.StatusCode != http.StatusFound {
		t.Errorf("by https and HTTP/1.1: %s %s", response.Proto, response.Status)
	}
	response, _ = httpGet(t, p.http+"/ark:12345/x1?a")
	if want := p.https + "/ark:12345/x1?a"; response.StatusCode != http.StatusPermanentRedirect || response.Header.Get("Location") != want || response.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("by http: %s to %q, want %q", response.Status, response.Header.Get("Location"), want)
	}
	if response, _ := httpGet(t, p.http+"/readyz"); response.StatusCode != http.StatusOK {
		t.Errorf("/readyz by http: %s", response.Status)
	}
	for _, want := range []string{`stele_certificate_expiry_timestamp_seconds{name="id.example.org"} `, `stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="3xx"} 2`, "\nstele_http_connections 2\n"} {
		p.waitForMetric(t, want)
	}
	checkReload(t, a, p, folder)
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
}

// checkReload replaces the certificate by a broken one and by a good one.
func checkReload(t *testing.T, a *certtest.Authority, p *process, folder string) {
	t.Helper()
	address := strings.TrimPrefix(p.https, "https://")
	hup := func(times int) {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for strings.Count(p.stderr.String(), "msg=reloaded") < times {
			p.waitFor(t, "msg=reloaded")
			time.Sleep(time.Millisecond)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "cert.pem"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	hup(1)
	hup(2)
	if got := a.Serial(t, address); got != 11 {
		t.Errorf("with a broken certificate beside it, number %d is shown", got)
	}
	if n := strings.Count(p.stderr.String(), "the new certificate is not good"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, p.stderr)
	}
	a.Issue(t, folder, 100*time.Hour, 12, "id.example.org")
	hup(3)
	if got := a.Serial(t, address); got != 12 {
		t.Errorf("the new certificate is there, and number %d is shown:\n%s", got, p.stderr)
	}
}

// TestServeTLSRefusals: without a certificate there is no https.
func TestServeTLSRefusals(t *testing.T) {
	a, folder, data := certtest.New(t, time.Now), t.TempDir(), newRegistry(t)
	cert, key := a.Issue(t, folder, time.Hour, 1, "id.example.org")
	rubbish := filepath.Join(folder, "rubbish.pem")
	if err := os.WriteFile(rubbish, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--tls-cert", "none.pem", "--tls-key", key}, "none.pem can't be read: no such file"},
		{[]string{"--tls-cert", rubbish, "--tls-key", key}, "are not a certificate and its key"},
		{[]string{"--tls-cert", cert, "--tls-key", cert}, "are not a certificate and its key"},
		{[]string{"--acme-domain", "id.example.org", "--acme-root", "none.pem"}, "the roots of the CA can't be read"},
		{[]string{"--acme-domain", "id.example.org", "--acme-root", rubbish}, "has no certificate in PEM"},
		{nil, "there is no certificate for it"},
	} {
		out, err := steleCommand(t, append([]string{"serve", "--data", data, "--http", "127.0.0.1:0", "--https", "127.0.0.1:0"}, tt.args...)...).CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || !strings.Contains(string(out), tt.want) {
			t.Errorf("%q: %v\n%s", tt.args, err, out)
		}
	}
}

// TestServeTLSEndsUnderLoad sends SIGTERM in the midst of many requests over HTTP/2,
// of which some keep their connection and some do not. Each gets a complete answer,
// or is told that it was not processed and finds no server any more. (net/http's
// client asks again by itself only what the server says it has not begun; RFC 9113,
// section 8.7.)
func TestServeTLSEndsUnderLoad(t *testing.T) {
	a := certtest.New(t, time.Now)
	p, _ := startTLS(t, a, "--grace", "60s")
	const clients = 24
	var wg sync.WaitGroup
	answered, lost := make(chan struct{}, clients*100_000), make(chan error, clients)
	visit := func(client int) error {
		own := a.Client(t)
		for n := 0; ; n++ {
			if client%4 == 0 { // the next one needs a new connection
				own.CloseIdleConnections()
			}
			suffix := fmt.Sprintf("%d/%d", client, n)
			response, err := own.Get(p.https + "/ark:12345/x1/" + suffix)
			if errors.Is(err, syscall.ECONNREFUSED) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("client %d, request %d: %w", client, n, err)
			}
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if got := response.Header.Get("Location"); err != nil || response.ProtoMajor != 2 || response.StatusCode != http.StatusFound || got != "https://example.org/x1/"+suffix {
				return fmt.Errorf("%s %s to %q, %w", response.Proto, response.Status, got, err)
			}
			answered <- struct{}{}
		}
	}
	for client := range clients {
		wg.Go(func() {
			if err := visit(client); err != nil {
				lost <- err
			}
		})
	}
	for range 20 * clients {
		select {
		case <-answered:
		case err := <-lost:
			t.Fatal(err)
		}
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
	wg.Wait()
	close(lost)
	for err := range lost {
		t.Error(err)
	}
	t.Logf("%d more requests were answered", len(answered))
}
