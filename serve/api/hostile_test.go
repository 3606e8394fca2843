package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele/document/apijson"
)

// TestHostileBodies sends bodies that no record is. Each is refused as a fault of the
// client, with a reason.
func TestHostileBodies(t *testing.T) {
	s := newSite(t)
	const good = `{"url":"https://example.org/1"}`
	for _, tt := range []struct {
		name, body string
		status     int
		head       []string
	}{
		{"nothing", "", 400, nil},
		{"space", "   ", 400, nil},
		{"no JSON", "url=https://example.org/", 400, nil},
		{"a list", `[` + good + `]`, 400, nil},
		{"null", `null`, 400, nil},
		{"cut off", good[:10], 400, nil},
		{"something behind it", good + good, 400, nil},
		{"NUL", `{"url":"https://example.org/` + "\x00" + `"}`, 400, nil},
		{"NUL as an escape", `{"url":"https://example.org/\u0000"}`, 400, nil},
		{"no UTF-8", "{\"metadata\":{\"who\":\"\xff\"}}", 400, nil},
		{"a mark of byte order", "\ufeff" + good, 400, nil},
		{"a field twice", `{"url":"https://example.org/1","url":"https://example.org/2"}`, 400, nil},
		{"an unknown field", `{"url":"https://example.org/1","colour":"red"}`, 400, nil},
		{"wrong types", `{"url":1,"metadata":[],"targets":{},"readers":"ann","version":"1"}`, 400, nil},
		{"deep", `{"colour":` + strings.Repeat("[", 100_000), 400, nil},
		{"deep and whole", `{"colour":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", 400, nil},
		{"huge", `{"metadata":{"what":"` + strings.Repeat("x", maxBody) + `"}}`, 413, nil},
		{"large in a field", `{"metadata":{"what":"` + strings.Repeat("x", maxBody-1000) + `"}}`, 400, nil},
		{"many targets", `{"targets":[` + strings.Repeat(`{"url":"https://example.org/"},`, 2000) + `{}]}`, 400, nil},
		{"a script", `{"url":"javascript:alert(1)"}`, 400, nil},
		{"another type", good, 415, []string{"Content-Type", "text/plain"}},
		{"a form", good, 415, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"no type", good, 415, []string{"Content-Type", ""}},
		{"two types", good, 415, []string{"Content-Type", apijson.JSON, "Content-Type", apijson.JSON}},
		{"another charset", good, 415, []string{"Content-Type", apijson.JSON + "; charset=utf-16"}},
		{"compressed", good, 415, []string{"Content-Encoding", "gzip"}},
		{"UTF-8", good, 201, []string{"Content-Type", "Application/JSON; Charset=UTF-8"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.ask(theEditor, "PUT", records+"ark:12345/h1", tt.body, tt.head...).want(t, tt.status)
			if tt.status < 400 {
				return
			}
			if p := a.problem(t); p.Detail == "" || len(a.body) > 100_000 {
				t.Errorf("%d bytes: %.200s", len(a.body), a.body)
			}
		})
	}
}

// TestEndlessBodies holds that a body which never ends, or never comes, costs a bounded
// number of bytes and a bounded time.
func TestEndlessBodies(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Patience = 200 * time.Millisecond })
	address := strings.TrimPrefix(s.serve(), "http://")
	// What is too large is refused for its size, however slow this machine is.
	slowSite := newSite(t, func(o *Options) { o.Patience = time.Minute })
	slowAddress := strings.TrimPrefix(slowSite.serve(), "http://")
	head := func(method, target, more string) string {
		return method + " " + Root + target + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n" + more + "\r\n"
	}
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10))
	for _, tt := range []struct {
		name, head, body string
		endless          bool
		status           int
	}{
		{"chunks without end", head("PUT", "/records/ark:12345/e1", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"), chunk, true, 413},
		{"a length that is too large", head("PUT", "/records/ark:12345/e1", "Content-Type: application/json\r\nContent-Length: 99999999999\r\n"), chunk, true, 413},
		{"a body that never comes", head("PUT", "/records/ark:12345/e1", "Content-Type: application/json\r\nContent-Length: 100\r\n"), "", false, 408},
		{"chunks that stop", head("PUT", "/records/ark:12345/e1", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"), "5\r\n{\"url\r\n", false, 408},
		{"a patch that never comes", head("PATCH", "/records/ark:12345/x1", "Content-Type: application/merge-patch+json\r\nContent-Length: 9\r\n"), "{", false, 408},
		{"no right to send one", head("POST", "/users", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"), chunk, true, 403},
		{"a body where none is taken", head("GET", "/records/ark:12345/x1", "Transfer-Encoding: chunked\r\n"), chunk, true, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			site, at := s, address
			if tt.endless {
				site, at = slowSite, slowAddress
			}
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, strings.Replace(tt.head, "TOKEN", site.tokens[theEditor], 1)+tt.body); err != nil {
				t.Fatal(err)
			}
			sent := make(chan int, 1)
			go func() {
				n := 0
				for tt.endless && n < 1<<30 {
					m, err := io.WriteString(conn, tt.body)
					if n += m; err != nil {
						break
					}
				}
				sent <- n
			}()
			// The server ends the connection by itself.
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			// A client that still sends when the connection is closed may lose the answer.
			if lost := tt.endless && err != nil; !lost && (err != nil || answer.StatusCode != tt.status) {
				t.Errorf("got %v %v, want %d", answer, err, tt.status)
			}
			if n := <-sent; n > 64<<20 {
				t.Errorf("the server took %d bytes", n)
			}
		})
	}
}

// TestRefusedLate: a client that does not send its body in time gets an answer that says so,
// even if the server comes to it long after all time that the request was granted.
func TestRefusedLate(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Patience = time.Nanosecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.serve(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PUT "+Root+"/records/ark:12345/e1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.tokens[theEditor]+
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestTimeout {
		t.Errorf("got %s, want 408", answer.Status)
	}
}

// TestWriters has 1,000 writers change one record at once, each on the condition that
// it has the version which they saw. Exactly one wins each version.
func TestWriters(t *testing.T) {
	const writers = 1000
	s := newSite(t)
	server := httptest.NewServer(s.handler)
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).MaxConnsPerHost = 64
	var mu sync.Mutex
	won := make(map[string]int)
	put := func(body, tag string) (status int, got string, err error) {
		r, err := http.NewRequest("PUT", server.URL+records+"ark:12345/x2", strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		r.Header = http.Header{"Content-Type": {apijson.JSON}, "If-Match": {tag}, "Authorization": {"Bearer " + s.tokens[theEditor]}}
		a, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer a.Body.Close()
		_, err = io.Copy(io.Discard, a.Body)
		return a.StatusCode, a.Header.Get("ETag"), err
	}
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			// They race for the first few versions.
			tag := s.handler.tagOf(uint64(1 + i%5))
			for range 3 {
				status, got, err := put(`{"url":"https://example.org/2","metadata":{"who":"`+strconv.Itoa(i)+`"}}`, tag)
				if err != nil {
					t.Error(err)
					return
				}
				if status == http.StatusOK {
					mu.Lock()
					won[got]++
					mu.Unlock()
				} else if status != http.StatusPreconditionFailed {
					t.Errorf("got %d", status)
				}
			}
		})
	}
	group.Wait()
	for version, n := range won {
		if n != 1 {
			t.Errorf("%d writers made %s", n, version)
		}
	}
	var rec struct{ Version int }
	s.ask("", "GET", records+"ark:12345/x2", "").want(t, 200).read(t, &rec)
	if len(won) == 0 || rec.Version != len(won)+1 {
		t.Errorf("%d writers won, and the record has version %d", len(won), rec.Version)
	}
	// History has each of them.
	versions := 0
	for _, err := range s.registry.History(s.admin, s.id("ark:12345/x2")) {
		if err != nil {
			t.Fatal(err)
		}
		versions++
	}
	if versions != rec.Version {
		t.Errorf("%d versions in the history of %d", versions, rec.Version)
	}
}
