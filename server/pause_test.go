package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stele-id/stele/serve/httpd"
)

// TestPauseHandsOver: where a request enters, it does not wait on the fast path for the end of a pause, so that none waits there that
// came before the pause began. net/http gets it, and it waits there.
func TestPauseHandsOver(t *testing.T) {
	var p pause
	declined := make(chan bool, 2)
	s := httpd.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed := p.enter(r)
		declined <- httpd.Declined(r)
		if passed {
			p.leave()
			w.WriteHeader(http.StatusFound)
		}
	}), httpd.ServerOptions{FastRedirects: true, Now: time.Now})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = s.Serve(l) // until it is closed
		close(done)
	}()
	defer func() {
		_ = s.Close()
		<-done
	}()
	end, err := p.begin(context.Background(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /ark:12345/x1 HTTP/1.1\r\nHost: id.example.org\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case first := <-declined:
		if !first {
			t.Error("the request passes during a pause")
		}
	case <-time.After(time.Minute):
		t.Error("the request waits on the fast path")
	}
	end()
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != http.StatusFound {
		t.Errorf("after the pause: %v, %v", res, err)
	}
	if <-declined {
		t.Error("net/http declines a request")
	}
}
