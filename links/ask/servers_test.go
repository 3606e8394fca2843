package ask

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stele-id/stele/internal/servertest"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
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

// startNSD runs a name server for the zone test, in which all names of hosts are this machine, and for the zone
// damaged.test, which it can't read.
func startNSD(t *testing.T, records string) (at string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "nsd") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	port := servertest.FreePort(t)
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
	servertest.Start(t, at, "nsd", "-d", "-c", config)
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
