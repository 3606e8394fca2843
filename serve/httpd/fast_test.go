package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const fastHost = " HTTP/1.1\r\nHost: id.example.org\r\n"

// pair is two servers of one handler: the first has the fast path.
type pair struct {
	addrs [2]string
	fast  atomic.Int64 // requests that the handler answered on the fast path
}

func newPair(t testing.TB, h http.Handler) *pair {
	p := &pair{}
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that has sent all looks to net/http as if it had gone; what it gets must not depend on when that is noticed.
		r = r.WithContext(context.WithoutCancel(r.Context()))
		h.ServeHTTP(w, r)
		if _, ok := r.Context().Value(fastKey{}).(*fastMark); ok && !Declined(r) {
			p.fast.Add(1)
		}
	})
	p.addrs[0] = serve(t, seen, ServerOptions{FastRedirects: true, Now: time.Now})
	p.addrs[1] = serve(t, seen, ServerOptions{})
	return p
}

var dates = regexp.MustCompile(`\r\nDate: [^\r]*\r\n`)

// compare sends octets to both, and wants the same octets back. Dates and ports may differ.
func (p *pair) compare(t testing.TB, octets string) string {
	t.Helper()
	var got [2]string
	for i, addr := range p.addrs {
		c := dial(t, addr, "")
		// A server that has had enough may close before all is sent.
		_, _ = io.WriteString(c, strings.ReplaceAll(octets, "ADDRESS", addr))
		_ = c.(*net.TCPConn).CloseWrite()
		all, _ := io.ReadAll(c) // it may be reset
		_ = c.Close()
		got[i] = dates.ReplaceAllString(strings.ReplaceAll(string(all), addr, "ADDRESS"), "\r\nDate: X\r\n")
	}
	if got[0] != got[1] {
		t.Errorf("%q is answered with\n%q\nand by net/http with\n%q", octets, got[0], got[1])
	}
	return got[0]
}

// fastSeeds are streams of octets, and how many requests of each the fast path answers.
var fastSeeds = []struct {
	octets string
	fast   int64
}{
	{"GET /ark:12345/x1" + fastHost + "\r\n", 1},
	{"HEAD /ark:12345/x1" + fastHost + "\r\n", 1},
	{"GET /ark:12345/x1 HTTP/1.1\r\nHost: ADDRESS\r\n\r\n", 1},
	{"GET /ark:12345/x1" + fastHost + "Connection: Keep-Alive\r\nUser-Agent: a\r\naccept: */*\r\nREFERER: \t https://example.org/ \r\nCookie: a=b\r\n\r\n", 1},
	{"GET /ark:12345/x1" + fastHost + "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: de\r\n\r\n", 1},
	{strings.Repeat("GET /ark:12345/x1"+fastHost+"\r\n", 40), 40},
	{"GET /10.1000/182" + fastHost + "\r\n", 1},
	{"GET /net/a//b" + fastHost + "\r\n", 1},
	{"GET /urn:paradisec:AB1:001:A" + fastHost + "\r\n", 1},
	{"GET /ark:12345/x1" + fastHost + "X-Forwarded-For: 192.0.2.1\r\n\r\n", 1},
	{"GET /20.500.12345/val" + fastHost + "\r\n", 1},
	// From here on the last request is net/http's.
	{"GET /ark:12345/x1" + fastHost + "\r\nPOST /ark:12345/x1" + fastHost + "Content-Length: 3\r\n\r\nabcGET /ark:12345/x1" + fastHost + "\r\n", 1},
	{"GET /ark:12345/x1" + fastHost + "\r\nGET /ark:12345/x1?info" + fastHost + "\r\nGET /ark:12345/x1" + fastHost + "\r\n", 1},
	{"GET /ark:12345/x1" + fastHost + "Content-Length: 3\r\n\r\nabc", 0},
	{"GET /ark:12345/x1" + fastHost + "Content-Length: 0\r\n\r\nGET /ark:12345/x1" + fastHost + "\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "transfer-encoding: identity\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /ark:12345/x1" + fastHost + "\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Expect: 100-continue\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Connection: close\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Connection: keep-alive, close\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Connection: keep-alive, Host\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Host: other.example\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept: */*\r\nAccept: text/html\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept : */*\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + " folded\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept: */*\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept: a\rb\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept: \x00\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept: \xff\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Authorization: Bearer x\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept: application/ld+json\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "Accept-Datetime: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n", 0},
	{"GET /ark:12345/x1" + fastHost + "If-None-Match: *\r\n\r\n", 0},
	{"GET /ark:12345/x1 HTTP/1.1\nHost: id.example.org\n\n", 0},
	{"GET /ark:12345/x1 HTTP/1.1\r\n\r\n", 0},
	{"GET /ark:12345/x1 HTTP/1.1\r\nHost:\r\n\r\n", 0},
	{"GET /ark:12345/x1 HTTP/1.1\r\nHost: a b\r\n\r\n", 0},
	{"GET /ark:12345/x1 HTTP/1.0\r\nHost: id.example.org\r\n\r\n", 0},
	{"GET /ark:12345/x1 HTTP/1.2\r\nHost: id.example.org\r\n\r\n", 0},
	{"GET  /ark:12345/x1" + fastHost + "\r\n", 0},
	{"GET /ark:12345/x1 " + fastHost + "\r\n", 0},
	{"GET /ark:12345/x%31" + fastHost + "\r\n", 0},
	{"GET /ark:12345/x(1)" + fastHost + "\r\n", 0},
	{"GET /ark:12345/../x1" + fastHost + "\r\n", 0},
	{"GET /ark:12345/x1#a" + fastHost + "\r\n", 0},
	{"GET http://id.example.org/ark:12345/x1" + fastHost + "\r\n", 0},
	{"GET /ark:12345/unknown" + fastHost + "\r\n", 0},
	{"GET /ark:12345/gone" + fastHost + "\r\n", 0},
	{"GET /ark:99999/x" + fastHost + "\r\n", 0},
	{"GET /" + fastHost + "\r\n", 0},
	{"GET /healthz" + fastHost + "\r\n", 0},
	{"GET /.info/ark:12345/x1" + fastHost + "\r\n", 0},
	{"GET /api/handles/20.500.12345/val" + fastHost + "\r\n", 0},
	{"OPTIONS * HTTP/1.1\r\nHost: id.example.org\r\n\r\n", 0},
	{"\r\nGET /ark:12345/x1" + fastHost + "\r\n", 0},
	{"get /ark:12345/x1" + fastHost + "\r\n", 0},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
	{"GET /ark:12345/x1 HTT", 0},
	{"GET /ark:12345/x1 HTTP/1.1\r\nBad Header\r\n", 0},
	{"GET /ark:12345/x1 HTTP/1.1\r\n: x\r\nHost", 0},
	{"G", 0},
	{"0", 0},
	{"GET /ark:12345/x1" + fastHost + "\r\n0", 1},
	{"GET /ark:12345/x1" + fastHost + "\r\nGET", 1},
	{"GET /ark:12345/x1" + fastHost + "\r\n012", 1},
	{"GET /ark:12345/x1" + fastHost + "\r\n0123", 1},
	{"GET /ark:12345/x1" + fastHost + "\r\nGET ", 1},
	{"", 0},
	{"GET /ark:12345/x1" + fastHost + "Cookie: " + strings.Repeat("a", maxFast) + "\r\n\r\n", 0},
	{"GET /" + strings.Repeat("a", 3000) + fastHost + "\r\n", 0},
	{"GET /" + strings.Repeat("a", 20000) + fastHost + "\r\n", 0},
}

// The fast path answers with the octets of net/http, or net/http answers.
func TestFastSame(t *testing.T) {
	s, _ := newFuzzed(t)
	p := newPair(t, s.handler)
	for _, tt := range fastSeeds {
		p.fast.Store(0)
		p.compare(t, tt.octets)
		if got := p.fast.Load(); got != tt.fast {
			t.Errorf("%.200q: %d requests are answered on the fast path, want %d", tt.octets, got, tt.fast)
		}
	}
}

// FuzzFast sends octets to a server with the fast path and to one without.
func FuzzFast(f *testing.F) {
	s, _ := newFuzzed(f)
	p := newPair(f, s.handler)
	for _, tt := range fastSeeds {
		f.Add(tt.octets)
	}
	f.Fuzz(func(t *testing.T, octets string) {
		p.compare(t, octets)
	})
}

// FuzzFastHead compares the heads that the fast path reads with what net/http makes of them.
func FuzzFastHead(f *testing.F) {
	for _, tt := range fastSeeds {
		f.Add([]byte(tt.octets))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		var h fastHead
		n, v := h.read(octets)
		if v != plainHead {
			return
		}
		if n > len(octets) || n > maxFast {
			t.Fatalf("%d octets are read of %d", n, len(octets))
		}
		rest := bufio.NewReader(strings.NewReader(string(octets)))
		want, err := http.ReadRequest(rest)
		if err != nil {
			t.Fatal(err)
		}
		left, _ := io.ReadAll(rest)
		if len(octets)-len(left) != n {
			t.Errorf("the head has %d octets, and for net/http %d", n, len(octets)-len(left))
		}
		if h.method != want.Method || h.path != want.RequestURI || h.path != want.URL.Path || want.URL.RawPath != "" || want.URL.RawQuery != "" || want.URL.Host != "" || h.host != want.Host {
			t.Errorf("%s %s of %s, and for net/http %s %s %v of %s", h.method, h.path, h.host, want.Method, want.RequestURI, want.URL, want.Host)
		}
		if want.Header.Del("Host"); !reflect.DeepEqual(h.header, want.Header) {
			t.Errorf("%v, and for net/http %v", h.header, want.Header)
		}
		if want.Close || want.ContentLength != 0 || len(want.TransferEncoding) > 0 || want.Proto != "HTTP/1.1" || want.Body != http.NoBody {
			t.Errorf("for net/http %+v", want)
		}
	})
}

// The requests that both make are alike for a handler, and so are their answers.
func TestFastHandler(t *testing.T) {
	type asked struct{ method, uri, proto, host, path, local string }
	requests := make(chan asked, 4)
	for name, answer := range map[string]func(w http.ResponseWriter){
		"nothing":   func(http.ResponseWriter) {},
		"a body":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") },
		"two parts": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "a"); _, _ = w.Write([]byte("b")) },
		"no content": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1")
			w.WriteHeader(http.StatusNoContent)
		},
		"unmodified": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "a/b")
			w.WriteHeader(http.StatusNotModified)
		},
		"closed":     func(w http.ResponseWriter) { w.Header().Set("Connection", "close"); w.WriteHeader(http.StatusFound) },
		"too little": func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); _, _ = io.WriteString(w, "abc") },
		"too much": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "ab")
			_, _ = io.WriteString(w, "c")
		},
		"late header": func(w http.ResponseWriter) { w.WriteHeader(http.StatusFound); w.Header().Set("X", "y") },
		"bad fields": func(w http.ResponseWriter) {
			w.Header()["A b"], w.Header()["X"], w.Header()["B"] = []string{"c"}, []string{" a\r\nb: c "}, []string{"1", "2"}
		},
		"twice": func(w http.ResponseWriter) { w.WriteHeader(http.StatusFound); w.WriteHeader(http.StatusOK) },
		"no type": func(w http.ResponseWriter) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>")
		},
		"usual": func(w http.ResponseWriter) {
			head := w.Header()
			head["Vary"], head["Location"], head["Link"] = []string{"a", "b"}, []string{" https://example.org/\t"}, []string{"a\nb"}
			head["Content-Type"], head["Cache-Control"], head["Access-Control-Allow-Origin"] = []string{"a/b"}, nil, []string{""}
			w.WriteHeader(http.StatusFound)
		},
		"usual and others": func(w http.ResponseWriter) {
			head := w.Header()
			head["Vary"], head["Strict-Transport-Security"], head["Location"], head["A"] = []string{"a"}, []string{"max-age=1"}, []string{"b"}, []string{"c"}
			head["Connection"] = []string{"close"}
			w.WriteHeader(http.StatusFound)
		},
		"own date":    func(w http.ResponseWriter) { w.Header()["Date"] = []string{"Thu, 01 Jan 2026 00:00:00 GMT"} },
		"an encoding": func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "x"); _, _ = io.WriteString(w, "abc") },
		"abort":       func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		p := newPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			if r.Context().Value(http.ServerContextKey) == nil || r.Body != http.NoBody || r.ContentLength != 0 || r.TLS != nil || !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") || local == nil {
				t.Errorf("the request is %+v", r)
			}
			requests <- asked{r.Method, r.RequestURI, r.Proto, r.Host, r.URL.String(), r.Header.Get("Accept")}
			answer(w)
		}))
		for _, method := range []string{"GET", "HEAD"} {
			p.compare(t, method+" /a:b;c=d/e"+fastHost+"Accept: x\r\n\r\n")
			if a, b := <-requests, <-requests; a != b {
				t.Errorf("%s: %v, and for net/http %v", name, a, b)
			}
		}
	}
}

// A request of the fast path costs only what the handler allocates, and its path.
func TestFastAllocations(t *testing.T) {
	s, _ := newFuzzed(t)
	c := &fastConn{path: &fastPath{s: &Server{Server: &http.Server{Handler: s.handler}}}}
	c.template = *(&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}).WithContext(context.WithValue(t.Context(), fastKey{}, &c.mark))
	octets, date := []byte("GET /ark:12345/x1"+fastHost+"\r\n"), []byte("Date: X\r\n")
	whole := testing.AllocsPerRun(100, func() {
		if _, v := c.head.read(octets); v != plainHead {
			t.Fatal(v)
		}
		c.ask()
		if out, again := c.answer.finish(date, false); !again || !strings.HasPrefix(string(out[:12]), "HTTP/1.1 302") {
			t.Fatalf("%q", out)
		}
	})
	handler := testing.AllocsPerRun(100, func() {
		clear(c.answer.head)
		s.handler.ServeHTTP(&quiet{head: c.answer.head}, &c.request)
	})
	if whole > handler+1 {
		t.Errorf("%v allocations, and %v are the handler's", whole, handler)
	}
}

// An observer sees each request once, wherever it is answered.
func TestFastObserved(t *testing.T) {
	var seen atomic.Int64
	s, _ := newFuzzed(t)
	o := s.handler.o
	o.Observe = func(Observation) { seen.Add(1) }
	addr := serve(t, New(o), ServerOptions{FastRedirects: true, Now: time.Now})
	c := dial(t, addr, "")
	for i, target := range []string{"/ark:12345/x1", "/ark:12345/x1", "/healthz", "/ark:12345/x1", "/ark:12345/unknown"} {
		if _, err := status(c, target); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); seen.Load() < int64(i+1) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
		if got := seen.Load(); got != int64(i+1) {
			t.Errorf("%d requests are seen after %d", got, i+1)
		}
	}
}

// Connections that say nothing, or half a head, are closed in time, on both paths.
func TestFastTimeouts(t *testing.T) {
	const soon = 50 * time.Millisecond
	for _, tt := range []struct {
		o      ServerOptions
		begins []string
	}{
		{ServerOptions{HeaderTimeout: soon}, []string{"", "G", "GET /a HTTP/1.1\r\nHost: a\r\n", "POST /a HTTP/1.1\r\n"}},
		// What is to be answered must be there before the time is over, however busy the machine is.
		{ServerOptions{HeaderTimeout: 5 * time.Second}, []string{"GET /a" + fastHost + "\r\nGET /b", "GET /a" + fastHost + "\r\nPOST /b"}},
		{ServerOptions{IdleTimeout: soon}, []string{"GET /a" + fastHost + "\r\n", "GET /a" + fastHost + "\r\nGET /b" + fastHost + "Connection: keep-alive\r\n\r\n", "OPTIONS /a" + fastHost + "\r\n"}},
	} {
		tt.o.FastRedirects, tt.o.Now = true, time.Now
		addr := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), tt.o)
		var work sync.WaitGroup
		for _, begin := range tt.begins {
			work.Go(func() {
				if got := exchange(t, addr, begin); strings.Count(got, "200 OK") != strings.Count(begin, "\r\n\r\n") {
					t.Errorf("%v, %v: %q is answered with %q", tt.o.HeaderTimeout, tt.o.IdleTimeout, begin, got)
				}
			})
		}
		work.Wait()
	}
}

// A head that can't become one of the fast path is answered at once, as net/http does, though the client waits for the answer with its side open.
func TestFastBareLF(t *testing.T) {
	s, _ := newFuzzed(t)
	p := newPair(t, s.handler)
	for _, octets := range []string{
		"GET /ark:12345/x1 HTTP/1.1\nHost: id.example.org\n\n",
		"GET /ark:12345/x1 HTTP/1.0\n\n",
		"GET /ark:12345/x1\r\n",
		"GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\n\n",
		"GET /ark:12345/x1 HTTP/1.1\r\nBad Header\r\n",
		"GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\nBad(Name): x\r\nA",
	} {
		var lines [2]string
		for i := range lines {
			c := dial(t, p.addrs[i], "")
			if _, err := io.WriteString(c, octets); err != nil {
				t.Fatal(err)
			}
			lines[i], _ = bufio.NewReader(c).ReadString('\n') // an error leaves it empty
			_ = c.Close()
		}
		if lines[0] != lines[1] || lines[0] == "" {
			t.Errorf("%q is answered with %q, and by net/http with %q", octets, lines[0], lines[1])
		}
	}
}

// A request that the fast path declines while the server ends is answered by net/http.
func TestFastShutdownDeclined(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}, 2), make(chan struct{})
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
		if !decline(r) {
			_, _ = io.WriteString(w, "answered") // the client sees it if it fails
		}
	}), ServerOptions{FastRedirects: true, Now: time.Now})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c := dial(t, l.Addr().String(), "")
	if _, err := io.WriteString(c, "GET /slow"+fastHost+"\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	eventually(t, func() bool { return s.fast.ending.Load() })
	close(release)
	if all, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(all), "answered") {
		t.Errorf("%q, %v", all, err)
	}
	if err := errors.Join(<-ended, <-served); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// The context of a request ends when the server is closed.
func TestFastContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, left := make(chan struct{}), make(chan struct{})
	s := NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(left)
	}), ServerOptions{FastRedirects: true, Now: time.Now})
	go func() { _ = s.Serve(l) }()
	c := dial(t, l.Addr().String(), "")
	if _, err := io.WriteString(c, "GET /a"+fastHost+"\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-left
}

// A server that ends answers what it has begun on the fast path, and closes the rest.
func TestFastShutdown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-release
		}
	}), ServerOptions{FastRedirects: true, Now: time.Now})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	idle, half, busy := dial(t, l.Addr().String(), ""), dial(t, l.Addr().String(), ""), dial(t, l.Addr().String(), "")
	if n, err := status(idle, "/a"); n != http.StatusOK {
		t.Fatal(n, err)
	}
	if _, err := io.WriteString(busy, "GET /slow"+fastHost+"\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	if _, err := io.WriteString(half, "GET /a HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.Fresh() == 1 }) // the half one was accepted
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if all, err := io.ReadAll(idle); len(all) > 0 {
		t.Errorf("%q, %v", all, err)
	}
	select {
	case err := <-ended:
		t.Errorf("it ended before the answer: %v", err)
	default:
	}
	close(release)
	_ = half.Close() // else the server waits for it for some seconds
	if all, err := io.ReadAll(busy); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 OK\r\n") || !strings.Contains(string(all), "\r\nConnection: close\r\n") {
		t.Errorf("%q, %v", all, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	// Close does not wait.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A server that is closed drops requests that it has begun.
func TestFastClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}), ServerOptions{FastRedirects: true, Now: time.Now})
	go func() { _ = s.Serve(l) }()
	c := dial(t, l.Addr().String(), "")
	if _, err := io.WriteString(c, "GET /a"+fastHost+"\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if all, err := io.ReadAll(c); len(all) > 0 {
		t.Errorf("%q, %v", all, err)
	}
}

// Connections of the fast path are counted and bounded like others.
func TestFastBounds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open, idles atomic.Int64
	s := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ServerOptions{FastRedirects: true, Now: time.Now, Connections: 2})
	noted := s.ConnState
	s.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
		noted(c, state)
		if state == http.StateIdle {
			idles.Add(1)
		}
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	await := func(what string, get func() int64, want int64) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); get() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d, want %d", what, get(), want)
			}
		}
	}
	fresh := func() int64 { return int64(s.Fresh()) }
	first, second := dial(t, l.Addr().String(), ""), dial(t, l.Addr().String(), "")
	await("open", open.Load, 2)
	await("fresh", fresh, 2)
	if _, err := io.WriteString(first, "GET /a HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	for i, c := range []net.Conn{second, first} {
		target := "/a"
		if c == first {
			_, err = io.WriteString(first, "Host: a\r\n\r\n")
			if err == nil {
				_, err = http.ReadResponse(bufio.NewReader(first), nil)
			}
		} else {
			_, err = status(c, target)
		}
		if err != nil {
			t.Fatal(err)
		}
		await("idle", idles.Load, int64(i+1)) // the server has noted that it waits again
	}
	await("fresh", fresh, 0)
	if n, err := status(second, "/a"); n != http.StatusOK {
		t.Fatal(n, err)
	}
	await("idle", idles.Load, 3)
	third := dial(t, l.Addr().String(), "") // the first has waited longest
	if n, err := status(third, "/a"); n != http.StatusOK {
		t.Fatal(n, err)
	}
	if all, err := io.ReadAll(first); len(all) > 0 {
		t.Errorf("%q, %v", all, err)
	}
	await("open", open.Load, 2)
	// Those that are handed over are counted once.
	if n, err := status(third, "/a?b"); n != http.StatusOK {
		t.Fatal(n, err)
	}
	await("open", open.Load, 2)
	_, _ = second.Close(), third.Close()
	await("open", open.Load, 0)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-done
}
