package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// serveTLS starts a server with TLS on a free port. It returns its address, and a
// function that makes clients of HTTP/2 with connections of their own.
func serveTLS(t testing.TB, h http.Handler, o ServerOptions) (*Server, string, func() *http.Client) {
	t.Helper()
	lent := httptest.NewTLSServer(nil)
	t.Cleanup(lent.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(h, o)
	s.TLSConfig = &tls.Config{Certificates: lent.TLS.Certificates, MinVersion: tls.VersionTLS12}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	trust := lent.Client().Transport.(*http.Transport).TLSClientConfig
	return s, l.Addr().String(), func() *http.Client {
		transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
}

// fetch asks and reads the answer to its end.
func fetch(client *http.Client, method, url string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, err
	}
	return fetchRequest(client, r)
}

// fetchRequest sends a request, and reads the whole answer.
func fetchRequest(client *http.Client, r *http.Request) (*http.Response, error) {
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res, err
}

// Over HTTP/2 identifiers arrive as they were sent.
func TestHTTP2(t *testing.T) {
	s := newSpelled(t)
	s.add(`{"id":"20.500.12345/a//b/../c","url":"https://example.org/slashes"}`)
	_, addr, client := serveTLS(t, s.handler, ServerOptions{})
	for target, want := range map[string]string{
		"/ark:12345/x1":               "",
		"/20.500.12345/a/%2Fb/../%63": "https://example.org/slashes",
	} {
		res, err := fetch(client(), "GET", "https://"+addr+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.ProtoMajor != 2 || res.StatusCode != http.StatusFound || want != "" && res.Header.Get("Location") != want {
			t.Errorf("%s: %s %s to %q", target, res.Proto, res.Status, res.Header.Get("Location"))
		}
	}
	res, err := fetch(client(), "GET", "https://"+addr+"/"+strings.Repeat("x", 20<<10), nil)
	if err == nil && res.StatusCode != http.StatusRequestHeaderFieldsTooLarge && res.StatusCode != http.StatusRequestURITooLong {
		t.Errorf("a huge target: %s", res.Status)
	}
	old := client()
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	old.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS10
	if res, err := fetch(old, "GET", "https://"+addr+"/", nil); err == nil {
		t.Errorf("TLS 1.1 is answered with %s", res.Status)
	}
}

// A redirect over HTTP/2 has the header fields of one over HTTP/1.1, except those of a body, which it does not have.
func TestHTTP2Redirect(t *testing.T) {
	s := newSpelled(t)
	_, addr, client := serveTLS(t, s.handler, ServerOptions{})
	for _, method := range []string{"GET", "HEAD"} {
		for _, accept := range []string{"", "text/html,*/*;q=0.8"} {
			var got [2]http.Header
			for i, minor := range []bool{true, false} {
				c := client()
				c.Transport.(*http.Transport).ForceAttemptHTTP2 = minor
				r, err := http.NewRequest(method, "https://"+addr+"/ark:12345/x1", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Accept", accept)
				res, err := c.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusFound || (res.ProtoMajor == 2) != minor {
					t.Fatalf("%s %q: %s %s %v", method, accept, res.Proto, res.Status, err)
				}
				want := ""
				if method == "GET" && res.ProtoMajor == 1 {
					want = res.Header.Get("Location")
				}
				if string(body) != want || method == "GET" && res.ContentLength != int64(len(want)) {
					t.Errorf("%s %q over %s: %d octets, %q", method, accept, res.Proto, res.ContentLength, body)
				}
				got[i] = res.Header
			}
			if got[0]["Content-Type"] != nil || got[1]["Content-Type"] == nil {
				t.Errorf("%s: the types are %q and %q", method, got[0]["Content-Type"], got[1]["Content-Type"])
			}
			for _, name := range []string{"Content-Type", "Content-Length", "Date"} {
				got[0].Del(name)
				got[1].Del(name)
			}
			if !reflect.DeepEqual(got[0], got[1]) || got[0].Get("Location") == "" || got[0].Get("Link") == "" {
				t.Errorf("%s: %v, and over HTTP/1.1 %v", method, got[0], got[1])
			}
		}
	}
}

// The compiler must not leave out the frame of growStack: each goroutine that has called it has a stack of 16 KiB.
func TestGrowStack(t *testing.T) {
	const n, size = 512, 16 << 10
	var before, after runtime.MemStats
	runtime.GC() // frees the stacks of goroutines that have ended
	runtime.ReadMemStats(&before)
	var grown, ended sync.WaitGroup
	release := make(chan struct{})
	grown.Add(n)
	for range n {
		ended.Go(func() {
			growStack(false)
			grown.Done()
			<-release
		})
	}
	grown.Wait()
	runtime.ReadMemStats(&after)
	close(release)
	ended.Wait()
	if got := int64(after.StackInuse) - int64(before.StackInuse); got < n*size*3/4 {
		t.Errorf("%d goroutines have %d octets of stack each", n, got/n)
	}
}

// A connection of HTTP/2 on which something is answered is not closed to make room,
// though another of its requests waits for a body. One that only waits is.
func TestHTTP2Room(t *testing.T) {
	entered, release := make(chan string, 8), make(chan struct{})
	s, addr, client := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		switch r.URL.Path {
		case "/busy":
			<-release
		case "/waits":
			_, _ = io.ReadAll(r.Body)
		}
	}), ServerOptions{Connections: 1})
	waiting := func() bool {
		s.connections.mu.Lock()
		defer s.connections.mu.Unlock()
		return len(s.connections.open) == 1 && s.connections.open[0].since.Load() > 0
	}
	first := client()
	body, feed := io.Pipe()
	answers := make(chan error, 2)
	ask := func(method, path string, body io.Reader) {
		res, err := fetch(first, method, "https://"+addr+path, body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", path, res.Status)
		}
		answers <- err
	}
	go ask("POST", "/waits", body)
	if got := <-entered; got != "/waits" {
		t.Fatal(got)
	}
	eventually(t, waiting)
	go ask("GET", "/busy", nil)
	if got := <-entered; got != "/busy" {
		t.Fatal(got)
	}
	if waiting() {
		t.Error("the connection waits, though it is being answered")
	}
	if res, err := fetch(client(), "GET", "https://"+addr+"/other", nil); err == nil {
		t.Errorf("a second connection is answered: %s", res.Status)
	}
	close(release)
	if err := <-answers; err != nil {
		t.Error(err)
	}
	eventually(t, waiting) // for the body again
	feed.Close()
	if err := <-answers; err != nil {
		t.Error(err)
	}
	eventually(t, waiting)
	if _, err := fetch(client(), "GET", "https://"+addr+"/other", nil); err != nil {
		t.Errorf("beside a connection that waits: %v", err)
	}
}

// A server that ends answers the requests that it has over HTTP/2. It tells clients that keep
// a connection before it closes it, so that no request is lost on its way.
func TestHTTP2Shutdown(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	s, addr, client := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-release
		}
	}), ServerOptions{})
	busy, idle := client(), client()
	if _, err := fetch(idle, "GET", "https://"+addr+"/", nil); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := fetch(busy, "GET", "https://"+addr+"/slow", nil)
		answer <- err
	}()
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	// The idle client asks on until it has heard, and then can't connect any more. A connection
	// that the kernel took and the server never saw is reset when the listener is closed.
	for {
		var connected atomic.Bool
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GetConn: func(string) { connected.Store(false) },
			GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
		}), "GET", "https://"+addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fetchRequest(idle, r)
		if errors.Is(err, syscall.ECONNREFUSED) || !connected.Load() && errors.Is(err, syscall.ECONNRESET) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-answer; err != nil {
		t.Errorf("what was asked before: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// More requests at once than a connection may have wait for their turn.
func TestHTTP2Streams(t *testing.T) {
	var mu sync.Mutex
	at := map[string]int{} // by connection
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	_, addr, client := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		at[r.RemoteAddr]++
		switch n := at[r.RemoteAddr]; {
		case n == 3:
			open()
		case n > 3:
			t.Errorf("%d at once", n)
		}
		mu.Unlock()
		<-gate
		mu.Lock()
		at[r.RemoteAddr]--
		mu.Unlock()
	}), ServerOptions{Streams: 3})
	one := client()
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := fetch(one, "GET", "https://"+addr+"/", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// All requests of HTTP/2 together are at most as many as connections may be.
func TestHTTP2Requests(t *testing.T) {
	const most = 3
	entered, release := make(chan struct{}, 2*most), make(chan struct{})
	_, addr, client := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
	}), ServerOptions{Connections: most, Streams: most})
	first, second := client(), client()
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() {
			if res, err := fetch(first, "GET", "https://"+addr+"/", nil); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	for range most {
		<-entered
	}
	if res, err := fetch(second, "GET", "https://"+addr+"/", nil); err != nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the limit: %v, %v", res, err)
	}
	close(release)
	wg.Wait()
	if res, err := fetch(second, "GET", "https://"+addr+"/", nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("when they are answered: %v, %v", res, err)
	}
}
