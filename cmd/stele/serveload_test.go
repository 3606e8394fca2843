package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// crowd is many clients that ask a server without a pause, until it takes no more
// connections.
type crowd struct {
	address  string // host and port
	answered atomic.Int64
	lost     chan error // of requests that got no complete answer
}

// visit asks until the server takes no more connections. With keep it uses a
// connection for as long as the server does not say that it will close it. It is
// written on bare sockets: net/http's client asks again by itself when a connection
// is closed, and so would hide what is lost.
func (c *crowd) visit(client int, keep bool) {
	for n := 0; ; {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			// That is the end, as it should be: nothing was sent.
			if !errors.Is(err, syscall.ECONNREFUSED) {
				c.lost <- err
			}
			return
		}
		answers := bufio.NewReader(conn)
		for again := true; again; n++ {
			if again, err = c.ask(conn, answers, fmt.Sprintf("%d/%d", client, n), keep); err != nil {
				c.lost <- fmt.Errorf("client %d (keeps connections: %t), request %d: %w", client, keep, n, err)
				conn.Close()
				return
			}
			c.answered.Add(1)
		}
		conn.Close()
	}
}

// ask sends a request and reads the answer, which must be whole and right.
func (c *crowd) ask(conn net.Conn, answers *bufio.Reader, suffix string, keep bool) (again bool, err error) {
	head := "GET /ark:12345/x1/" + suffix + " HTTP/1.1\r\nHost: id.example.org\r\n"
	if !keep {
		head += "Connection: close\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return false, err
	}
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		return false, err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return false, err
	}
	if got := response.Header.Get("Location"); response.StatusCode != http.StatusFound || got != "https://example.org/x1/"+suffix {
		return false, fmt.Errorf("%s to %q", response.Status, got)
	}
	return !response.Close, nil
}

// TestServeEndsUnderLoad sends SIGTERM in the midst of many requests. Each that was
// sent gets a complete answer. A request whose second half comes after the signal
// gets one too.
func TestServeEndsUnderLoad(t *testing.T) {
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--header-timeout", "5m", "--grace", "10m", "--drain", "6s")
	// While it drains, a client that keeps a connection learns that it will be closed. On a busy
	// machine some of them come late with their next request, so there is time for that.
	const clients = 60
	c := &crowd{address: strings.TrimPrefix(p.http, "http://"), lost: make(chan error, 2*clients+1)}

	slow, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /ark:12345/x1/slow HTTP/1.1\r\nHost: id.exam"); err != nil {
		t.Fatal(err)
	}

	old := time.After(14 * time.Second) // net/http itself would close it after five

	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() { c.visit(client, true) })
		wg.Go(func() { c.visit(clients+client, false) })
	}
	for c.answered.Load() < 20*clients && len(c.lost) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the load does not begin")
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "msg=ending")
	<-old
	if _, err := io.WriteString(slow, "ple.org\r\n\r\n"); err != nil {
		t.Error(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || response.StatusCode != http.StatusFound {
		t.Errorf("the request that was half sent: %v, %v", response, err)
	}
	wg.Wait()
	if code := p.end(t); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
	close(c.lost)
	for err := range c.lost {
		t.Error(err)
	}
	t.Logf("%d requests were answered", c.answered.Load())
}
