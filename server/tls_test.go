package server

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
)

// TLS 1.2 is spoken with every suite that encrypts and authenticates in one step, and
// with no other: a client that has only those with CBC is refused.
func TestTLSWithoutCBC(t *testing.T) {
	a, folder := certtest.New(t, time.Now), t.TempDir()
	cert, key := a.Issue(t, folder, time.Hour, 1, "id.example.org")
	f := &certificateFiles{cert: cert, key: key, now: time.Now, log: slog.New(slog.DiscardHandler)}
	if err := f.load(); err != nil {
		t.Fatal(err)
	}
	served := f.config()
	spoken := 0
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue
		}
		here, there := net.Pipe()
		server := tls.Server(here, served)
		client := tls.Client(there, &tls.Config{InsecureSkipVerify: true, ServerName: "id.example.org", MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		done := make(chan error, 1)
		go func() {
			done <- server.Handshake()
			here.Close()
		}()
		err := client.Handshake()
		there.Close()
		<-done
		if err == nil {
			spoken++
		}
		if err == nil && !strings.Contains(suite.Name, "GCM") && !strings.Contains(suite.Name, "CHACHA20") {
			t.Errorf("it speaks %s", suite.Name)
		}
	}
	if spoken != 3 { // those for the kind of key that the certificate has
		t.Errorf("it speaks %d suites of TLS 1.2", spoken)
	}
}

// TestCertificateFiles: files are looked at in handshakes, at most every ten seconds.
func TestCertificateFiles(t *testing.T) {
	a, folder := certtest.New(t, time.Now), t.TempDir()
	cert, key := a.Issue(t, folder, time.Hour, 1, "id.example.org")
	now := time.Unix(1_700_000_000, 0)
	var log bytes.Buffer
	f := &certificateFiles{cert: cert, key: key, now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := f.load(); err != nil {
		t.Fatal(err)
	}
	config := f.config()
	shown := func() int64 {
		c, err := config.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.Int64()
	}
	a.Issue(t, folder, time.Hour, 2, "id.example.org")
	for _, step := range []struct {
		wait time.Duration
		want int64
	}{{0, 1}, {checkEvery - 1, 1}, {1, 2}} {
		if now = now.Add(step.wait); shown() != step.want {
			t.Errorf("after %s more number %d is shown", step.wait, shown())
		}
	}
	// The key of another certificate is not used until its certificate is there too.
	other := t.TempDir()
	a.Issue(t, other, time.Hour, 3, "id.example.org")
	for i, file := range []string{"key.pem", "cert.pem"} {
		if err := os.Rename(filepath.Join(other, file), filepath.Join(folder, file)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if now = now.Add(checkEvery); shown() != int64(2+i) {
				t.Errorf("with the new %s number %d is shown", file, shown())
			}
		}
	}
	if n := strings.Count(log.String(), "is not good"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if now = now.Add(checkEvery); shown() != 3 {
		t.Errorf("without its key number %d is shown", shown())
	}
	if now = now.Add(-time.Hour); shown() != 3 { // a clock that steps back does no harm
		t.Errorf("number %d is shown", shown())
	}
}
