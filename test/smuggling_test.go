package test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/serve/httpd"
)

// behindProxy is a server of ours that says which request it answers.
type behindProxy struct {
	port int
	mu   sync.Mutex
	seen []string

	answering int
	answered  *sync.Cond // with mu
}

func newBehindProxy(t testing.TB, fast bool) *behindProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &behindProxy{port: l.Addr().(*net.TCPAddr).Port}
	b.answered = sync.NewCond(&b.mu)
	s := httpd.NewServer(b, httpd.ServerOptions{FastRedirects: fast, Now: time.Now})
	done := make(chan struct{})
	go func() {
		_ = s.Serve(l) // until it is closed
		close(done)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return b
}

func (b *behindProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.count(1)
	defer b.count(-1)
	body, _ := io.ReadAll(r.Body) // a broken one is told like a short one
	said := fmt.Sprintf("%s %s %d", r.Method, r.RequestURI, len(body))
	b.mu.Lock()
	b.seen = append(b.seen, said)
	b.mu.Unlock()
	w.Header().Set("X-Seen", said)
	if strings.HasPrefix(r.RequestURI, "/canary") {
		w.Header().Set("Connection", "close") // the next stream begins on the fast path again
	}
	w.Header().Set("Location", "https://example.org/")
	w.WriteHeader(http.StatusFound)
}

// count notes how many requests are being answered.
func (b *behindProxy) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answering += n
	b.answered.Broadcast()
}

// taken returns what was asked since the last call. It waits for requests whose body a proxy has broken off.
func (b *behindProxy) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.answering > 0 {
		b.answered.Wait()
	}
	seen := b.seen
	b.seen = nil
	return seen
}

// smuggled are streams in which a proxy and a server may see different requests.
var smuggled = []string{
	"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 35, 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: +35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length : 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length:\t35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent_Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 40\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: 40\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\n\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nX: y\n\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nX: y\rGET /smuggled HTTP/1.1\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nX: y\r\n GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Content-Length\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a\x0b/b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a%0d%0a%0d%0aGET%20/smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://b/a HTTP/1.1\r\nHost: a\r\n\r\n",
	"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
	"HEAD /a HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1\r\nX-Forwarded-For: 2\r\nForwarded: for=x\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nCookie: " + strings.Repeat("a", 3000) + "\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nCookie: " + strings.Repeat("b", 5000) + "\r\n\r\n",
}

// smuggler is a way to a server behind a proxy.
type smuggler struct {
	proxy string
	addr  string // of the proxy
	*behindProxy

	answers, seen []string // of the last stream
	next          []string // what the next client was answered
	fault         error
}

// send sends a stream, and then the request of another client, perhaps on the same connection behind the proxy.
func (s *smuggler) send(stream, canary string) {
	var err error
	s.answers, s.fault = throughProxy(s.addr, stream)
	s.seen = s.taken()
	s.next, err = throughProxy(s.addr, "GET "+canary+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	s.fault = errors.Join(s.fault, err)
	s.seen = append(s.seen, s.taken()...)
}

// FuzzSmuggling: behind nginx and HAProxy, a server with the fast path sees the requests that one without it sees, its clients get the
// same answers, and no client gets the answer to the request of another one.
func FuzzSmuggling(f *testing.F) {
	var pairs [][2]*smuggler // with the fast path and without it
	for proxy, start := range map[string]func(t testing.TB, fast, plain int) [2]string{"nginx": smuggleNginx, "haproxy": smuggleHAProxy} {
		fast, plain := newBehindProxy(f, true), newBehindProxy(f, false)
		addrs := start(f, fast.port, plain.port)
		pairs = append(pairs, [2]*smuggler{{proxy: proxy, addr: addrs[0], behindProxy: fast}, {proxy: proxy, addr: addrs[1], behindProxy: plain}})
	}
	for _, stream := range smuggled {
		f.Add(stream)
	}
	streams := 0
	f.Fuzz(func(t *testing.T, stream string) {
		streams++
		canary := fmt.Sprintf("/canary%d", streams)
		var work sync.WaitGroup // a stream that ends early takes seconds, and go test gives an input ten
		for _, pair := range pairs {
			for _, s := range pair {
				work.Go(func() {
					s.send(stream+fmt.Sprintf("GET /end%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", streams), canary)
				})
			}
		}
		work.Wait()
		for _, pair := range pairs {
			a, b := pair[0], pair[1]
			for _, s := range pair {
				if s.fault != nil || !slices.Equal(s.next, []string{"302 GET " + canary + " 0"}) {
					t.Errorf("%s: %q: the next client gets %q, %v", s.proxy, stream, s.next, s.fault)
				}
			}
			if !slices.Equal(a.answers, b.answers) {
				t.Errorf("%s: %q is answered with %q, and without the fast path with %q", a.proxy, stream, a.answers, b.answers)
			}
			if !slices.Equal(a.seen, b.seen) {
				t.Errorf("%s: %q: the server sees %q, and without the fast path %q", a.proxy, stream, a.seen, b.seen)
			}
		}
	})
}

// throughProxy sends octets and returns the statuses of all answers, and to what they are.
func throughProxy(addr, octets string) (answers []string, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	_, _ = io.WriteString(c, octets) // a proxy that has had enough closes
	for b, i := bufio.NewReader(c), 0; ; i++ {
		method := http.MethodGet
		if i == 0 && strings.HasPrefix(octets, "HEAD") {
			method = http.MethodHead
		}
		res, err := http.ReadResponse(b, &http.Request{Method: method})
		if err != nil {
			return answers, nil // it is closed
		}
		_, err = io.Copy(io.Discard, res.Body)
		answers = append(answers, strconv.Itoa(res.StatusCode)+" "+res.Header.Get("X-Seen"))
		if err != nil {
			return answers, nil
		}
	}
}

// smuggleNginx starts nginx before two servers. It keeps its connections to them.
func smuggleNginx(t testing.TB, fast, plain int) (addrs [2]string) {
	folder := t.TempDir()
	var servers strings.Builder
	for i, port := range []int{fast, plain} {
		addrs[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
		fmt.Fprintf(&servers, "upstream b%[1]d { server 127.0.0.1:%[2]d; keepalive 1; }\nserver { listen %[3]s; location / { proxy_pass http://b%[1]d; proxy_http_version 1.1; proxy_set_header Connection \"\"; } }\n", i, port, addrs[i])
	}
	file := filepath.Join(folder, "nginx.conf")
	writeFile(t, file, fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
access_log off;
keepalive_timeout 1s;
client_header_timeout 1s;
client_body_timeout 1s;
lingering_timeout 1s;
client_body_temp_path %[1]s/body;
proxy_temp_path %[1]s/proxy;
fastcgi_temp_path %[1]s/fastcgi;
uwsgi_temp_path %[1]s/uwsgi;
scgi_temp_path %[1]s/scgi;
%[2]s}
`, folder, &servers), 0o600)
	startProxy(t, addrs, exec.Command(serverProgram("nginx"), "-p", folder, "-c", file))
	return addrs
}

// smuggleHAProxy starts HAProxy before two servers. It uses connections to them for any client.
func smuggleHAProxy(t testing.TB, fast, plain int) (addrs [2]string) {
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	var proxies strings.Builder
	for i, port := range []int{fast, plain} {
		addrs[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
		fmt.Fprintf(&proxies, "listen p%d\n\tbind %s\n\tserver s 127.0.0.1:%d\n", i, addrs[i], port)
	}
	writeFile(t, file, `defaults
	mode http
	timeout client 1s
	timeout server 6s
	timeout connect 10s
	timeout http-request 1s
	timeout http-keep-alive 1s
	http-reuse always
	option accept-invalid-http-request
`+proxies.String(), 0o600)
	startProxy(t, addrs, exec.Command(serverProgram("haproxy"), "-db", "-f", file))
	return addrs
}

// startProxy runs a proxy until the test ends, and returns when it accepts connections.
func startProxy(t testing.TB, addrs [2]string, cmd *exec.Cmd) {
	t.Helper()
	// A process that fuzzes may be killed, and go test waits for all that have its files open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, _, err := runBeside(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				_ = c.Close()
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%v\n%s", err, said)
			}
		}
	}
}
