package datagram_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/datagram"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

func open(t *testing.T, n int) []*net.UDPConn {
	t.Helper()
	first, err := datagram.Open(context.Background(), "127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	list := first
	if n > 1 {
		more, err := datagram.Open(context.Background(), first[0].LocalAddr().String(), n-1)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, more...)
	}
	t.Cleanup(func() {
		for _, c := range list {
			c.Close()
		}
	})
	return list
}

func dial(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, c net.Conn) string {
	t.Helper()
	b := make([]byte, 1024)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// TestBatch: messages are answered in their order, with as many answers as the server has, written to the room or elsewhere; one that is
// too long is none.
func TestBatch(t *testing.T) {
	server := open(t, 1)[0]
	client := dial(t, server.LocalAddr())
	for _, text := range []string{"one", "two", "a message that is too long", "three"} {
		if _, err := client.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := datagram.NewBatch(server, 2, 8, 16)
	if err != nil {
		t.Fatal(err)
	}
	var elsewhere []byte
	for seen := 0; seen < 4; {
		n, err := b.Receive()
		if err != nil || n == 0 {
			t.Fatalf("%d messages, %v", n, err)
		}
		seen += n
		for i := range n {
			message, from := b.Message(i)
			if message == nil {
				continue
			}
			if from.String() != client.LocalAddr().String() {
				t.Errorf("%q is from %v", message, from)
			}
			for _, end := range []string{"!", "?", "."} {
				if b.IsFull() {
					if err := b.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				if end == "!" {
					b.Answer(i, append(append(b.Room(), message...), end...))
				} else {
					elsewhere = append(append(elsewhere[:0], message...), end...) // as callers do that cut a message into parts
					b.Answer(i, elsewhere)
				}
			}
		}
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one!", "one?", "one.", "two!", "two?", "two.", "three!", "three?", "three."} {
		if got := read(t, client); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestBatchEnds: a read deadline ends the wait.
func TestBatchEnds(t *testing.T) {
	server := open(t, 2)[1]
	b, err := datagram.NewBatch(server, 4, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Receive(); n != 0 || err == nil {
		t.Errorf("%d messages, %v", n, err)
	}
}

// TestQueue: what is taken is answered, also after the end; more than may wait is not taken.
func TestQueue(t *testing.T) {
	var mu sync.Mutex
	var got []string
	begun, hold := make(chan struct{}, 8), make(chan struct{})
	q := datagram.NewQueue(1, 2, func() func(*datagram.Request) {
		return func(r *datagram.Request) {
			begun <- struct{}{}
			<-hold
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(r.Message)+" from "+r.From.String()+string(r.Origin))
		}
	})
	from := netip.MustParseAddrPort("192.0.2.1:53")
	message := []byte("a")
	if !q.Take(message, from, []byte("+")) {
		t.Fatal("the first is not taken")
	}
	<-begun // and the worker has it
	taken := 0
	for _, c := range []byte("bcd") {
		message[0] = c // the queue has copies
		if q.Take(message, from, nil) {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("%d wait", taken)
	}
	close(hold)
	q.Close()
	want := []string{"a from 192.0.2.1:53+", "b from 192.0.2.1:53", "c from 192.0.2.1:53"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
	none := datagram.NewQueue(0, 8, nil)
	if none.Take(message, from, nil) {
		t.Error("a queue without workers takes something")
	}
	none.Close()
}
