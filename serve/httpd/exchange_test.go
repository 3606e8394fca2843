package httpd

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// newExchanging returns both ends of a connection through the loopback device, ours unhurried.
func newExchanging(t *testing.T) (*unhurried, *net.TCPConn) {
	t.Helper()
	_, counted, theirs := newTallied(t)
	return newUnhurried(counted.Conn), theirs.(*net.TCPConn)
}

// finish is a deadline that is not reached.
func finish() time.Time { return time.Now().Add(time.Minute) }

// TestExchange: an answer is written, and what comes after it is read, whether the socket is used by calls of the system or not. Sent is called once, between both.
func TestExchange(t *testing.T) {
	for _, direct := range []bool{true, false} {
		c, theirs := newExchanging(t)
		if !direct {
			c, _, _ = newTallied(t) // it is not a socket
			theirs = nil
		}
		if got := c.mayExchange(); got != (direct && canExchange) {
			t.Errorf("it may exchange: %t", got)
		}
		if theirs == nil {
			continue
		}
		for range 3 {
			sent := make(chan bool, 2)
			go func() {
				b := make([]byte, 16)
				n, err := theirs.Read(b)
				if err == nil {
					_, err = theirs.Write(append([]byte("more after "), b[:n]...))
				}
				if err != nil {
					t.Error(err)
				}
			}()
			in := make([]byte, 64)
			n, err := c.exchange([]byte("answer"), in, time.Now(), finish(), finish(), func() bool { sent <- true; return true })
			if err != nil || string(in[:n]) != "more after answer" || len(sent) != 1 {
				t.Errorf("%q, %v, sent %d times", in[:n], err, len(sent))
			}
		}
	}
}

// TestExchangeApart: the same by a write and a read, as on systems or sockets that can't do otherwise.
func TestExchangeApart(t *testing.T) {
	c, _, theirs := newTallied(t)
	go func() {
		b := make([]byte, 6)
		if _, err := io.ReadFull(theirs, b); err != nil || string(b) != "answer" {
			t.Errorf("%q, %v", b, err)
		}
		_, _ = theirs.Write([]byte("more"))
	}()
	in, sent := make([]byte, 64), 0
	n, err := c.exchange([]byte("answer"), in, time.Now(), finish(), finish(), func() bool { sent++; return true })
	if err != nil || string(in[:n]) != "more" || sent != 1 {
		t.Errorf("%q, %v, sent %d times", in[:n], err, sent)
	}
}

// TestExchangeEnds: nothing is read if the server ends; an end of the connection and a deadline are noticed, also if the end came before the answer was written.
func TestExchangeEnds(t *testing.T) {
	c, theirs := newExchanging(t)
	in := make([]byte, 64)
	if n, err := c.exchange([]byte("a"), in, time.Now(), finish(), finish(), func() bool { return false }); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	soon := time.Now().Add(recheck / 2)
	if n, err := c.exchange([]byte("b"), in, time.Now(), finish(), soon, func() bool { return true }); n != 0 || !isLate(err) {
		t.Errorf("%d, %v", n, err)
	}
	if err := theirs.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * recheck) // the runtime has heard of the end meanwhile, most likely
	if n, err := c.exchange([]byte("c"), in, time.Now(), finish(), finish(), func() bool { return true }); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	if got, err := io.ReadAll(io.LimitReader(theirs, 3)); string(got) != "abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.exchange([]byte("d"), in, time.Now(), finish(), finish(), func() bool { return true }); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestExchangeLongAnswer: a socket that takes a part of an answer gets the rest when it takes more.
func TestExchangeLongAnswer(t *testing.T) {
	c, theirs := newExchanging(t)
	answer := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	go func() {
		got := make([]byte, len(answer))
		if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, answer) {
			t.Errorf("another answer arrives, %v", err)
		}
		_, _ = theirs.Write([]byte("more"))
	}()
	in, sent := make([]byte, 64), 0
	n, err := c.exchange(answer, in, time.Now(), finish(), finish(), func() bool { sent++; return true })
	if err != nil || string(in[:n]) != "more" || sent != 1 {
		t.Errorf("%q, %v, sent %d times", in[:n], err, sent)
	}
}

// TestFastImpatient: a client that sends its next request while the one before is being answered gets both answers.
func TestFastImpatient(t *testing.T) {
	held, hold := make(chan bool), make(chan bool)
	addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			held <- true
			<-hold
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}), ServerOptions{FastRedirects: true, Now: time.Now})
	c := dial(t, addr, "")
	ask := func(requests string) {
		if _, err := io.WriteString(c, requests); err != nil {
			t.Fatal(err)
		}
	}
	ask("GET /a" + fastHost + "\r\n")
	<-held
	ask("GET /b" + fastHost + "\r\n")
	// The runtime is to hear of the second request before the first one is answered: it asks the system when it has nothing else to do.
	for range 100 {
		runtime.Gosched()
		time.Sleep(recheck / 50)
	}
	hold <- true
	r := bufio.NewReader(c)
	for _, want := range []string{"/a", "/b"} {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); string(body) != want || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
}

// TestFastLong: requests that fill what is read at once are all answered.
func TestFastLong(t *testing.T) {
	addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "!") }), ServerOptions{FastRedirects: true, Now: time.Now})
	head := "GET /" + strings.Repeat("a", 1000) + fastHost + "\r\n"
	one := head[:len(head)-4] + "\r\nUser-Agent: " + strings.Repeat("b", maxFast/2-len(head)-len("User-Agent: ")-2) + "\r\n\r\n"
	if maxFast%len(one) != 0 {
		t.Fatalf("requests have %d octets, and %d are read at once", len(one), maxFast)
	}
	const n = 64
	c := dial(t, addr, "")
	if _, err := io.WriteString(c, strings.Repeat(one, n)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for i := range n {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
	}
}
