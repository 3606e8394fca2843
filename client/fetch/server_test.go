package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
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

// startServer runs a server of the system until the test ends, and returns when it
// answers at an address.
func startServer(t *testing.T, at, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		path = "/usr/sbin/" + program // which is not in every user's path
	}
	cmd := exec.Command(path, args...)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children, which end with it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = said.Close()
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(said.Name())
			t.Fatalf("%s ended: %v\n%s", program, err, text)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", program, err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
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

// startFTP runs vsftpd for a folder. It runs as the user of the test, without chroot: all
// users of this machine can read its files.
func startFTP(t *testing.T, folder string) (host string) {
	t.Helper()
	port := freePort(t)
	config := filepath.Join(t.TempDir(), "vsftpd.conf")
	writeFile(t, config, fmt.Appendf(nil, `listen=YES
listen_address=127.0.0.1
listen_port=%d
background=NO
anonymous_enable=YES
local_enable=NO
run_as_launching_user=YES
anon_root=%s
secure_chroot_dir=%s
seccomp_sandbox=NO
xferlog_enable=NO
`, port, folder, t.TempDir()))
	host = "127.0.0.1:" + strconv.Itoa(port)
	startServer(t, host, "vsftpd", config)
	return host
}

// startNginx runs nginx for a folder.
func startNginx(t *testing.T, folder, more string) (host string) {
	t.Helper()
	port := freePort(t)
	run := t.TempDir()
	host = "127.0.0.1:" + strconv.Itoa(port)
	config := filepath.Join(run, "nginx.conf")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // only the test's user can read its folders
	}
	writeFile(t, config, fmt.Appendf(nil, `daemon off;
%s
pid %[2]s/pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	server { listen %[3]s; root %[4]s; %[5]s }
}
`, user, run, host, folder, more))
	startServer(t, host, "nginx", "-p", run, "-c", config)
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
