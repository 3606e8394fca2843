package ask

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
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
	return servertest.NSD(t, map[string]string{"test": "@ NS ns\nns A 127.0.0.1\n" + records, "damaged.test": ""})
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
