package dnsd

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestTapAway checks that a collector can't make a client wait: the server drops what the
// collector does not take.
func TestTapAway(t *testing.T) {
	d := newOfflineServer(t, Options{Tapped: filepath.Join(t.TempDir(), "nobody")})
	const more = 10
	for range tapQueue + more {
		if got := brief(d.ask(question("paradisec.example.", dns.TypeSOA), caller)); got != "NOERROR aa answer:SOA" {
			t.Fatal(got)
		}
	}
	if n := d.s.Stats().Untold; n != more {
		t.Errorf("%d questions were dropped, want %d", n, more)
	}
}

// TestTapNotCollecting checks that run returns an error if the program at the socket does
// not collect.
func TestTapNotCollecting(t *testing.T) {
	for about, answer := range map[string][]byte{
		"something else":  []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"another content": append(binary.BigEndian.AppendUint32(make([]byte, 4), 4), 0, 0, 0, tapStop),
		"too much":        binary.BigEndian.AppendUint32(make([]byte, 4), 1<<30),
		"nothing":         nil,
	} {
		path := filepath.Join(t.TempDir(), "tap")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(answer)
			_ = c.(*net.UnixConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}()
		if err := newTap(path).run(t.Context(), time.Now); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: %v", about, err)
		}
		l.Close()
	}
	if (&Server{}).Tap(context.Background()); newTap("") != nil {
		t.Error("there is a tap that leads nowhere")
	}
}
