package httpd

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// appendFrame appends a frame of HTTP/2.
func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// getRequest is the head of GET / of https://a in HPACK: three entries of the static
// table, and :authority with a literal.
var getRequest = []byte{0x82, 0x84, 0x87, 0x41, 1, 'a'}

const endStream = 1

// rawHTTP2 opens a connection of HTTP/2 and sends the preface and settings.
func rawHTTP2(t *testing.T, addr string) *tls.Conn {
	t.Helper()
	c, err := tryHTTP2(t, addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tryHTTP2 does the same with a server that may not have enough time for it.
func tryHTTP2(t *testing.T, addr string) (*tls.Conn, error) {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	if got := c.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Fatalf("the server speaks %q", got)
	}
	_, err = c.Write(appendFrame([]byte(preface), 4, 0, 0, nil))
	return c, err
}

// A head of a request of HTTP/2 that does not end, however it is sent, ends the
// connection after the header timeout, even if another request is being answered on it.
func TestEndlessHeads(t *testing.T) {
	for name, endless := range map[string]func() []byte{
		"empty CONTINUATION frames": func() []byte {
			return bytes.Repeat(appendFrame(nil, continuationFrame, 0, 3, nil), 100)
		},
		"a CONTINUATION frame that comes slowly": func() []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan string, 8), make(chan struct{})
			defer close(release)
			_, addr, _ := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				entered <- r.Method
				<-release
			}), ServerOptions{HeaderTimeout: 3 * time.Second, ReadTimeout: time.Hour, IdleTimeout: time.Hour, WriteTimeout: time.Hour})
			c := rawHTTP2(t, addr)
			if _, err := c.Write(appendFrame(nil, headersFrame, endHeaders|endStream, 1, getRequest)); err != nil {
				t.Fatal(err)
			}
			<-entered // this one is being answered, so the connection is not idle
			if _, err := c.Write(appendFrame(nil, headersFrame, endStream, 3, getRequest)); err != nil {
				t.Fatal(err)
			}
			if endless() == nil {
				if _, err := c.Write(appendFrame(nil, continuationFrame, 0, 3, getRequest)[:10]); err != nil {
					t.Fatal(err)
				}
			}
			// The client goes on until the server ends it.
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, c)
				ended <- err
			}()
			for patience := time.After(time.Minute); ; {
				select {
				case <-ended:
					return
				case <-patience:
					t.Fatal("the server reads on and on")
				case <-time.After(10 * time.Millisecond):
				}
				if more := endless(); more != nil {
					if _, err := c.Write(more); err != nil {
						return
					}
				}
			}
		})
	}
}

// Heads in many frames and in small pieces are read as ever, and a connection on which
// they all end stays open longer than one of them may take.
func TestHeadsInPieces(t *testing.T) {
	// A machine that has more to do gets more time.
	for timeout := 500 * time.Millisecond; ; timeout *= 5 {
		err := sendPieces(t, timeout)
		if err == nil {
			return
		}
		if timeout > 10*time.Second {
			t.Fatal(err)
		}
	}
}

// sendPieces sends heads in pieces for twice the time that one of them may take.
func sendPieces(t *testing.T, timeout time.Duration) error {
	t.Helper()
	entered := make(chan string, 64)
	_, addr, _ := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			t.Error("the handler does not know of TLS")
		}
		entered <- r.Host
	}), ServerOptions{HeaderTimeout: timeout})
	c, err := tryHTTP2(t, addr)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}()
	begin := time.Now()
	for stream := uint32(1); time.Since(begin) < 2*timeout; stream += 2 {
		b := appendFrame(nil, headersFrame, endStream, stream, getRequest[:2])
		b = appendFrame(b, continuationFrame, 0, stream, nil)
		b = appendFrame(b, continuationFrame, endHeaders, stream, getRequest[2:])
		for len(b) > 0 {
			n := min(7, len(b))
			if _, err := c.Write(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
		select {
		case got := <-entered:
			if got != "a" {
				t.Fatalf("the host is %q", got)
			}
		case err := <-ended:
			return fmt.Errorf("the server ends the connection: %v", err)
		}
		time.Sleep(10 * time.Millisecond) // the answer before it has ended
	}
	return nil
}

// Without TLS the server does not speak HTTP/2, so there are no frames either.
func TestNoHTTP2InClear(t *testing.T) {
	addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && r.Method != "PRI" {
			t.Error("a request of HTTP/2 in clear")
		}
		w.WriteHeader(http.StatusTeapot)
	}), ServerOptions{HeaderTimeout: 5 * time.Second})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := appendFrame([]byte(preface), 4, 0, 0, nil)
	if _, err := c.Write(appendFrame(b, headersFrame, 0, 1, getRequest)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("got %q, %v", answer, err)
	}
}

func FuzzHeads(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, headersFrame, 0, 1, getRequest), continuationFrame, endHeaders, 1, nil), uint8(3))
	f.Add(appendFrame(nil, 0, 0, 1, make([]byte, 300)), uint8(200))
	f.Fuzz(func(t *testing.T, frames []byte, size uint8) {
		whole, pieces := &heads{}, &heads{}
		whole.see(frames)
		for rest := frames; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			pieces.see(rest[:n])
			rest = rest[n:]
		}
		if whole.have != pieces.have || whole.left != pieces.left || whole.inside != pieces.inside {
			t.Errorf("read at once: %+v, in pieces: %+v", whole, pieces)
		}
	})
}
