package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve starts a server on a free port and returns its address.
func serve(t testing.TB, h http.Handler, o ServerOptions) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(h, o)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// dial opens a connection, from a given address of this machine if one is named.
func dial(t testing.TB, addr, from string) net.Conn {
	t.Helper()
	var d net.Dialer
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// exchange sends bytes and returns all that comes back until the server closes the
// connection.
func exchange(t testing.TB, addr, request string) string {
	t.Helper()
	c := dial(t, addr, "")
	// A server that has had enough may close before all is sent.
	_, _ = io.WriteString(c, request)
	all, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the connection stays open after %.80q; there came %.80q", request, all)
	}
	return string(all)
}

// status sends a request on a connection that stays open, and returns the status.
func status(c net.Conn, target string) (int, error) {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: id.example.org\r\n\r\n", target); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// eventually waits for what a server does once it has answered.
func eventually(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func TestSlowClient(t *testing.T) {
	s := newSpelled(t)
	addr := serve(t, s.handler, ServerOptions{HeaderTimeout: 100 * time.Millisecond})
	for _, begin := range []string{"", "GET", "GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\nX: "} {
		if got := exchange(t, addr, begin); strings.HasPrefix(got, "HTTP/1.1 2") || strings.HasPrefix(got, "HTTP/1.1 3") {
			t.Errorf("%q is answered with %q", begin, got)
		}
	}
	// A connection that was used is closed as well, once it is idle.
	addr = serve(t, s.handler, ServerOptions{IdleTimeout: 100 * time.Millisecond})
	if got := exchange(t, addr, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("answered with %q", got)
	}
}

func TestHugeHead(t *testing.T) {
	s := newSpelled(t)
	addr := serve(t, s.handler, ServerOptions{})
	for _, head := range []string{"X: " + strings.Repeat("x", 20<<10) + "\r\n", strings.Repeat("X: y\r\n", 5<<10)} {
		got := exchange(t, addr, "GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\n"+head+"\r\n")
		if got != "" && !strings.HasPrefix(got, "HTTP/1.1 431") { // the answer may be lost with the connection
			t.Errorf("%d bytes: %.80q", len(head), got)
		}
	}
	got := exchange(t, addr, "GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\nConnection: close\r\nX: "+strings.Repeat("x", 12<<10)+"\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 302") {
		t.Errorf("12 KiB: %.80q", got)
	}
	got = exchange(t, addr, "GET /"+strings.Repeat("x", maxTarget+1)+" HTTP/1.1\r\nHost: id.example.org\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 414") {
		t.Errorf("a long target: %.80q", got)
	}
}

// Shapes by which one server sees two requests where another sees one. After each
// the connection is closed, and what could be the second request is not answered.
func TestSmuggling(t *testing.T) {
	s := newSpelled(t)
	addr := serve(t, s.handler, ServerOptions{})
	const second = "GET /10.1000/182 HTTP/1.1\r\nHost: id.example.org\r\n\r\n"
	const begin = "GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\n"
	for name, request := range map[string]string{
		"length and encoding":   begin + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
		"encoding and length":   begin + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" + second,
		"two lengths":           begin + "Content-Length: 0\r\nContent-Length: 55\r\n\r\n" + second,
		"a length with a sign":  begin + "Content-Length: +55\r\n\r\n" + second,
		"a list of lengths":     begin + "Content-Length: 55, 55\r\n\r\n" + second,
		"a body":                begin + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(second)) + second,
		"an odd encoding":       begin + "Transfer-Encoding: xchunked\r\n\r\n" + second,
		"two encodings":         begin + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + second,
		"a space before colon":  begin + "Content-Length : 55\r\n\r\n" + second,
		"a bare CR":             begin + "X: a\rContent-Length: 55\r\n\r\n" + second,
		"a NUL":                 begin + "X: a\x00b\r\n\r\n" + second,
		"a folded line first":   "GET /ark:12345/x1 HTTP/1.1\r\n Host: id.example.org\r\n\r\n" + second,
		"two hosts":             begin + "Host: evil.example\r\n\r\n" + second,
		"no host":               "GET /ark:12345/x1 HTTP/1.1\r\n\r\n" + second,
		"a line without colon":  begin + "X\r\n\r\n" + second,
		"a tab in the method":   "GET\t/ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\n\r\n" + second,
		"another version":       "GET /ark:12345/x1 HTTP/9.9\r\nHost: id.example.org\r\n\r\n" + second,
		"a space in the target": "GET /ark:12345/x1 x HTTP/1.1\r\nHost: id.example.org\r\n\r\n" + second,
		"HTTP/2 in clear":       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the server takes its time before it closes a connection
			got := exchange(t, addr, request)
			if n := strings.Count(got, "HTTP/1.1 "); n > 1 || strings.Contains(got, "HTTP/1.1 30") || strings.Contains(got, "10-1000-182") {
				t.Errorf("answered with\n%s", got)
			}
		})
	}
	// What RFC 9112 lets a server read (sections 2.2 and 5.2) is read as it says: a
	// bare LF ends a line, and a folded line belongs to the value before it. Nothing
	// of a value becomes a request.
	for _, request := range []string{
		"GET /ark:12345/x1 HTTP/1.1\nHost: id.example.org\nConnection: close\n\n",
		begin + "Connection: close\r\nX: a\r\n " + "GET /10.1000/182 HTTP/1.1\r\n\r\n",
	} {
		if got := exchange(t, addr, request); strings.Count(got, "HTTP/1.1 ") != 1 || strings.Contains(got, "10-1000-182") {
			t.Errorf("%q is answered with\n%s", request, got)
		}
	}
}

// Line ends that are encoded stay so, wherever they stand.
func TestInjection(t *testing.T) {
	s := newSpelled(t)
	s.add(`{"id":"ark:12345/part","targets":[{"service":"N2L","url":"https://example.org/part","partial":true}]}`)
	addr := serve(t, s.handler, ServerOptions{})
	const evil = "%0d%0aSet-Cookie:%20a=b%0d%0a%0d%0a<script>"
	for _, target := range []string{"/ark:12345/part/" + evil, "/ark:12345/part?" + evil, "/" + evil, "/.info/" + evil, "/.info?id=" + evil, "/.timemap/" + evil, "/.memento/20260101000000/" + evil,
		"/uri-res/N2L?" + evil, "/api/handles/" + evil, "/20.500.12345/" + evil, "/net/" + evil, "/ark:12345/x1?+t=" + evil, "/ark:12345/x1?+s=" + evil, "//evil.example/%2f..", "/ark:12345/part/\\evil"} {
		for _, accept := range []string{"*/*", firefox, "application/json"} {
			got := exchange(t, addr, "GET "+target+" HTTP/1.1\r\nHost: id.example.org\r\nConnection: close\r\nAccept: "+accept+"\r\n\r\n")
			head, body, _ := strings.Cut(got, "\r\n\r\n")
			if strings.Contains(head, "\nSet-Cookie") || strings.Contains(body, "<script>") && strings.Contains(head, "text/html") || !strings.HasPrefix(head, "HTTP/1.1 ") || strings.Count(got, "HTTP/1.1 ") > 1 {
				t.Errorf("%s is answered with\n%s", target, got)
			}
		}
	}
}

// Idle connections beyond the bound make room for those that send requests.
func TestIdleConnections(t *testing.T) {
	s := newSpelled(t)
	const most, idle = 200, 2000
	addr := serve(t, s.handler, ServerOptions{Connections: most})
	busy := dial(t, addr, "") // one that is used now and then
	for i := range idle {
		c := dial(t, addr, "")
		if i%2 == 0 {
			if _, err := io.WriteString(c, "GET /ark:12345/x1 HTTP/1.1\r\nHost: "); err != nil && i < most {
				t.Fatal(err)
			}
		}
	}
	_ = busy.Close()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			if got, err := status(c, "/ark:12345/x1"); got != http.StatusFound {
				t.Errorf("beside %d idle connections: %d, %v", idle, got, err)
			}
		})
	}
	wg.Wait()
}

// While all connections are being answered a new one is refused, and let in once
// there is room.
func TestBusyConnections(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 2)
	addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
	}), ServerOptions{Connections: 2})
	var answers []chan int
	for range 2 {
		c, got := dial(t, addr, ""), make(chan int, 1)
		answers = append(answers, got)
		go func() {
			n, _ := status(c, "/")
			got <- n
		}()
		<-entered
	}
	if n, err := status(dial(t, addr, ""), "/"); err == nil {
		t.Errorf("a third is answered with %d", n)
	}
	close(release)
	for _, got := range answers {
		if n := <-got; n != http.StatusOK {
			t.Errorf("answered with %d", n)
		}
	}
	eventually(t, func() bool {
		n, _ := status(dial(t, addr, ""), "/")
		return n == http.StatusOK
	})
}

// A client that announces a body and sends none keeps no other client out, whether the
// handler reads the body or not; and a request whose body has come is being answered.
func TestAwaitedBodies(t *testing.T) {
	const most = 4
	entered, release := make(chan struct{}, 2*most), make(chan struct{})
	defer close(release)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/read":
			entered <- struct{}{}
			_, _ = io.ReadAll(r.Body)
		case "/unread":
			entered <- struct{}{}
		case "/busy":
			_, _ = io.ReadAll(r.Body)
			entered <- struct{}{}
			<-release
		}
	})
	enter := func() {
		t.Helper()
		select {
		case <-entered:
		case <-time.After(time.Minute):
			t.Fatal("a connection is kept out")
		}
	}
	for _, path := range []string{"/read", "/unread"} {
		addr := serve(t, handler, ServerOptions{Connections: most})
		for range most {
			c := dial(t, addr, "")
			if _, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"); err != nil {
				t.Fatal(err)
			}
			enter()
		}
		if n, err := status(dial(t, addr, ""), "/"); n != http.StatusOK {
			t.Errorf("beside bodies that are %s: %d, %v", path, n, err)
		}
	}
	addr := serve(t, handler, ServerOptions{Connections: most})
	for range most {
		c := dial(t, addr, "")
		if _, err := io.WriteString(c, "POST /busy HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1"); err != nil {
			t.Fatal(err)
		}
		enter()
	}
	if n, err := status(dial(t, addr, ""), "/"); err == nil {
		t.Errorf("beside requests that are being answered: %d", n)
	}
}

// One client can't take all connections.
func TestPerClient(t *testing.T) {
	s := newSpelled(t)
	addr := serve(t, s.handler, ServerOptions{PerClient: 4})
	var held []net.Conn
	for range 4 {
		c := dial(t, addr, "127.0.0.1")
		if n, err := status(c, "/healthz"); n != http.StatusOK {
			t.Fatalf("%d, %v", n, err)
		}
		held = append(held, c)
	}
	if n, err := status(dial(t, addr, "127.0.0.1"), "/healthz"); err == nil {
		t.Errorf("a fifth is answered with %d", n)
	}
	if n, err := status(dial(t, addr, "127.0.0.2"), "/healthz"); n != http.StatusOK {
		t.Errorf("another client: %d, %v", n, err)
	}
	if n, err := status(held[0], "/healthz"); n != http.StatusOK {
		t.Errorf("one of the four: %d, %v", n, err)
	}
}

// A trusted proxy may have as many connections as it needs.
func TestPerProxy(t *testing.T) {
	s := newSpelled(t)
	proxies, err := NewProxies([]string{"127.0.0.2"}, EitherHeader, nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, s.handler, ServerOptions{PerClient: 1, Proxies: proxies})
	for i := range 3 {
		if n, err := status(dial(t, addr, "127.0.0.2"), "/healthz"); n != http.StatusOK {
			t.Errorf("connection %d of the proxy: %d, %v", i, n, err)
		}
	}
	for i := range 2 {
		if n, err := status(dial(t, addr, "127.0.0.1"), "/healthz"); (n == http.StatusOK) != (i == 0) {
			t.Errorf("connection %d of another: %d, %v", i, n, err)
		}
	}
}

// A server that ends answers the requests that it has.
func TestShutdown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
	}), ServerOptions{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	got := make(chan int, 1)
	c := dial(t, l.Addr().String(), "")
	go func() {
		n, _ := status(c, "/")
		got <- n
	}()
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	close(release)
	if n := <-got; n != http.StatusOK {
		t.Errorf("answered with %d", n)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
