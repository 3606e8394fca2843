package ask

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port for a server that is about to start. It is below those that the system gives to others (32768 and above
// by default), so that none of them takes it before.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(22_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// port is one that this test has, and at which nothing answers until it listens.
type port struct {
	fd   int
	port string
}

func unused(t *testing.T) port {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
		t.Cleanup(func() { _ = syscall.Close(fd) })
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return port{fd, strconv.Itoa(at.(*syscall.SockaddrInet4).Port)}
}

func (p port) listen(t *testing.T) net.Listener {
	t.Helper()
	if err := syscall.Listen(p.fd, 128); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(p.fd)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startServer runs a server of the system until the test ends, and returns when it answers at an address. The
// program is copied: some systems (AppArmor) let the installed one read its own folders only.
func startServer(t *testing.T, at, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		path = "/usr/sbin/" + program // which is not in every user's path
	}
	folder := t.TempDir()
	text, err := os.ReadFile(path)
	if err == nil {
		path = filepath.Join(folder, program)
		err = os.WriteFile(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	said, err := os.Create(filepath.Join(folder, "said"))
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
	for deadline := time.Now().Add(20 * time.Second); ; {
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

// startNginx runs nginx with servers, in which {folder} is a folder of its own.
func startNginx(t *testing.T, at, folder, servers string) {
	t.Helper()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // only the test's user can read its folders
	}
	config := filepath.Join(folder, "nginx.conf")
	writeFile(t, config, strings.ReplaceAll(fmt.Sprintf(`daemon off;
%s
pid {folder}/pid;
error_log stderr;
worker_processes 1;
events {}
http {
	access_log off;
	default_type text/html;
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fastcgi;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
%s
}
`, user, servers), "{folder}", folder))
	startServer(t, at, "nginx", "-p", folder, "-c", config)
}

// startFTP runs vsftpd for a folder.
func startFTP(t *testing.T, folder string) (at string) {
	t.Helper()
	port := freePort(t)
	config := filepath.Join(t.TempDir(), "vsftpd.conf")
	writeFile(t, config, fmt.Sprintf(`listen=YES
listen_address=127.0.0.1
listen_port=%s
background=NO
anonymous_enable=YES
local_enable=NO
run_as_launching_user=YES
anon_root=%s
secure_chroot_dir=%s
seccomp_sandbox=NO
xferlog_enable=NO
`, port, folder, t.TempDir()))
	at = "127.0.0.1:" + port
	startServer(t, at, "vsftpd", config)
	return at
}

// startNSD runs a name server for the zone test, in which all names of hosts are this machine, and for the zone
// damaged.test, which it can't read.
func startNSD(t *testing.T, records string) (at string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "nsd") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	port := freePort(t)
	writeFile(t, filepath.Join(folder, "test.zone"), "$ORIGIN test.\n$TTL 1\n@ SOA ns admin 1 60 60 60 1\n@ NS ns\nns A 127.0.0.1\n"+records)
	config := filepath.Join(folder, "conf")
	writeFile(t, config, fmt.Sprintf(`server:
  ip-address: 127.0.0.1@%s
  do-ip6: no
  server-count: 1
  username: ""
  zonesdir: "%[2]s"
  database: ""
  pidfile: ""
  xfrdfile: "%[2]s/xfrd"
  xfrdir: "%[2]s"
  zonelistfile: "%[2]s/list"
  rrl-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: "test"
  zonefile: "test.zone"
zone:
  name: "damaged.test"
  zonefile: "missing.zone"
`, port, folder))
	at = net.JoinHostPort("127.0.0.1", port)
	startServer(t, at, "nsd", "-d", "-c", config)
	return at
}

// silent accepts connections and never answers, except to say that there is no robots.txt if that is wanted.
func silent(t *testing.T, robots bool) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil && robots && r.URL.Path == "/robots.txt" {
					_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				}
			}()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
