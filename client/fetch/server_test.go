package fetch

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/servertest"
)

// newFetcher makes a Fetcher that does not wait long.
func newFetcher(t testing.TB, o Options) *Fetcher {
	t.Helper()
	if o.Pause == 0 {
		o.Pause = time.Millisecond
	}
	if o.Idle == 0 {
		o.Idle = 20 * time.Second
	}
	f := New(o)
	t.Cleanup(f.Close)
	return f
}

// newPart opens the part of a file in a new folder.
func newPart(t testing.TB) *Part {
	t.Helper()
	return openPart(t, filepath.Join(t.TempDir(), "whole"))
}

func openPart(t testing.TB, path string) *Part {
	t.Helper()
	p, err := OpenPart(path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.file.Close() })
	return p
}

// content returns what is in a part so far.
func content(t testing.TB, p *Part) string {
	t.Helper()
	b, err := os.ReadFile(p.path + partSuffix)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// some returns n pseudo-random bytes, always the same.
func some(n int) []byte {
	b := make([]byte, n)
	chance := rand.NewChaCha8([32]byte{1})
	_, _ = chance.Read(b)
	return b
}

func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func writeFile(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// startNginx runs nginx for a folder.
func startNginx(t *testing.T, folder, more string) (host string) {
	t.Helper()
	host = "127.0.0.1:" + servertest.FreePort(t)
	servertest.Nginx(t, host, t.TempDir(), "server { default_type application/octet-stream; listen "+host+"; root "+folder+"; "+more+" }")
	return host
}

// breaking lets connections through that end after some bytes from the server, the first
// of them after so many, the next after the next number; then they hold.
func breaking(limits ...int64) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil || len(limits) == 0 {
			return conn, err
		}
		limit := limits[0]
		limits = limits[1:]
		return &brittle{conn, limit}, nil
	}
}

// brittle is a connection that ends after some bytes.
type brittle struct {
	net.Conn
	left int64
}

func (b *brittle) Read(p []byte) (int, error) {
	if b.left <= 0 {
		_ = b.Conn.Close()
		return 0, io.EOF
	}
	n, err := b.Conn.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
