package httpd

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// tallied is a connection that counts the deadlines that are set on it.
type tallied struct {
	net.Conn
	times atomic.Int64
}

func (c *tallied) SetReadDeadline(t time.Time) error {
	c.times.Add(1)
	return c.Conn.SetReadDeadline(t)
}

func (c *tallied) SetWriteDeadline(t time.Time) error {
	c.times.Add(1)
	return c.Conn.SetWriteDeadline(t)
}

// newTallied returns both ends of a connection through the loopback device, ours
// unhurried.
func newTallied(t *testing.T) (*unhurried, *tallied, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	counted := &tallied{Conn: ours}
	return newUnhurried(counted), counted, theirs
}

// isLate reports whether an error says that a deadline has passed, as net/http asks.
func isLate(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && isTimeout(err)
}

func TestDeadlineReached(t *testing.T) {
	c, _, _ := newTallied(t)
	b := make([]byte, 1)
	for _, wait := range []time.Duration{20 * time.Millisecond, -time.Second, 5 * time.Millisecond} {
		if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(b); n != 0 || !isLate(err) {
			t.Errorf("read %d bytes within %v: %v", n, wait, err)
		}
	}
	if err := c.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Write(b); n != 0 || !isLate(err) {
		t.Errorf("wrote %d bytes too late: %v", n, err)
	}
}

// beforeDeadline sets an early deadline, calls a function that must end before it, and returns the deadline. A machine that has more to do
// gets more time.
func beforeDeadline(t *testing.T, set func(time.Time) error, do func() error) time.Time {
	t.Helper()
	for wait := 20 * time.Millisecond; ; wait *= 4 {
		early := time.Now().Add(wait)
		if err := set(early); err != nil {
			t.Fatal(err)
		}
		err := do()
		if err == nil {
			return early
		}
		if !isLate(err) || wait > time.Minute {
			t.Fatal(err)
		}
	}
}

// A socket with an early deadline does not end a read that has more time, or as much as it
// takes.
func TestDeadlineMovedBack(t *testing.T) {
	for _, later := range []time.Time{{}, time.Now().Add(time.Hour)} {
		c, _, theirs := newTallied(t)
		b := make([]byte, 1)
		if _, err := theirs.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
		early := beforeDeadline(t, c.SetReadDeadline, func() error {
			_, err := c.Read(b)
			return err
		})
		if err := c.SetReadDeadline(later); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Until(early)+40*time.Millisecond, func() { _, _ = theirs.Write([]byte("b")) })
		if n, err := c.Read(b); n != 1 || b[0] != 'b' || err != nil {
			t.Errorf("read %d bytes: %v", n, err)
		}
	}
}

// A call under way ends when its deadline is moved to the past or to soon, and the
// connection can be used on.
func TestDeadlineMovedForward(t *testing.T) {
	for _, earlier := range []func() time.Time{
		func() time.Time { return time.Unix(1, 0) },
		func() time.Time { return time.Now().Add(10 * time.Millisecond) },
	} {
		c, _, theirs := newTallied(t)
		ended := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		time.Sleep(10 * time.Millisecond) // so that it waits already, mostly
		if err := c.SetReadDeadline(earlier()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !isLate(err) {
			t.Errorf("a read whose deadline was moved: %v", err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("afterwards: read %d bytes: %v", n, err)
		}
	}
}

// A write that is too long for the socket's buffers and for the first deadline goes on
// where it was.
func TestDeadlineLongWrite(t *testing.T) {
	c, _, theirs := newTallied(t)
	early := beforeDeadline(t, c.SetWriteDeadline, func() error {
		_, err := c.Write([]byte{0})
		return err
	})
	if err := c.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	long := make([]byte, 32<<20)
	for i := range long {
		long[i] = byte(i / 251)
	}
	done := make(chan error, 1)
	go func() {
		n, err := c.Write(long)
		if err == nil && n != len(long) {
			err = errors.New("not all was written")
		}
		c.Close()
		done <- err
	}()
	time.Sleep(time.Until(early) + 20*time.Millisecond)
	b, at := make([]byte, 64<<10), -1
	for {
		n, err := theirs.Read(b)
		for _, got := range b[:n] {
			if at >= 0 && got != long[at] {
				t.Fatalf("byte %d is wrong", at)
			}
			at++
		}
		if err != nil {
			break
		}
	}
	if err := <-done; err != nil || at != len(long) {
		t.Errorf("%d of %d bytes arrived: %v", at, len(long), err)
	}
}

// What net/http sets for a request does not reach the socket each time.
func TestDeadlineCheap(t *testing.T) {
	c, counted, theirs := newTallied(t)
	b := make([]byte, 1)
	for range 100 {
		for _, at := range []time.Time{time.Now().Add(time.Hour), {}, time.Now().Add(time.Minute), time.Now().Add(2 * time.Minute)} {
			_ = c.SetReadDeadline(at)
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		if _, err := theirs.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Unix(1, 0))
		if _, err := c.Read(b); !isLate(err) {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Time{})
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		_ = c.SetWriteDeadline(time.Time{})
	}
	if n := counted.times.Load(); n > 4 {
		t.Errorf("the socket was told %d deadlines for 100 requests", n)
	}
}
