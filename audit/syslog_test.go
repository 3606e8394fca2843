package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// A daemon that ends before it has read what was sent gets it again over the next
// connection.
func TestSyslogSendsAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := NewSyslog("tcp://"+l.Addr().String(), "host", "1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	closed, got := make(chan struct{}), make(chan uint64, 10)
	go func() {
		first, err := l.Accept()
		if err != nil {
			return
		}
		_ = first.Close() // it has read nothing
		close(closed)
		second, err := l.Accept()
		if err != nil {
			return
		}
		defer second.Close()
		readCounted(second, got)
	}()
	at := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	send := func(n uint64) error {
		return s.Send(context.Background(), []*stele.AuditEntry{{Number: n, At: at, Operation: "x", Outcome: stele.AuditDone}})
	}
	if err := send(1); err != nil {
		t.Fatal(err)
	}
	<-closed
	// The caller sends again what failed.
	for n := uint64(2); n <= 4; {
		if send(n) == nil {
			n++
		}
	}
	for want := uint64(1); want <= 4; want++ {
		if n := <-got; n != want {
			t.Fatalf("the daemon has read entry %d, want %d", n, want)
		}
	}
}

// readCounted reads messages with octet counting, RFC 6587, section 3.4.1.
func readCounted(conn net.Conn, got chan<- uint64) {
	for in := bufio.NewReader(conn); ; {
		count, err := in.ReadString(' ')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil {
			return
		}
		message := make([]byte, n)
		if _, err := io.ReadFull(in, message); err != nil {
			return
		}
		var d Document
		if json.Unmarshal(message[strings.IndexByte(string(message), '{'):], &d) == nil {
			got <- d.Number
		}
	}
}

// The head of a message has nothing that RFC 5424 forbids there, whatever a host is called.
func TestSyslogHead(t *testing.T) {
	s, err := NewSyslog("udp://127.0.0.1:514", "a host\nwith "+strings.Repeat("é", 300)+strings.Repeat("x", 300), "")
	if err != nil {
		t.Fatal(err)
	}
	e := &stele.AuditEntry{Number: 7, At: time.Date(2031, 1, 1, 2, 3, 4, 5000, time.UTC), Operation: "a\n<13>1 b", Outcome: stele.AuditRefused}
	got := string(s.Message(e))
	want := fmt.Sprintf("<108>1 2031-01-01T02:03:04.000005Z ahostwith%s stele - audit - {", strings.Repeat("x", 119))
	if !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
