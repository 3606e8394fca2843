package httpd

import (
	"net"
	"os"
	"sync"
	"time"
)

// unhurried is a connection whose deadlines cost little. For each request net/http sets about
// eight, hardly one of which is ever reached, and to set one moves a timer of the runtime. So
// unhurried sets a deadline of the socket only if it is earlier than the one that the socket
// has, and not before a call reads or writes. If the socket times out too early, unhurried
// sets the right time then, and tries again.
type unhurried struct {
	net.Conn
	reading, writing deadline
	turn             turn
}

func newUnhurried(c net.Conn) *unhurried {
	return &unhurried{Conn: c, reading: deadline{set: c.SetReadDeadline}, writing: deadline{set: c.SetWriteDeadline}}
}

// Read implements [net.Conn].
func (c *unhurried) Read(b []byte) (n int, err error) {
	for {
		if err := c.reading.begin(); err != nil {
			return 0, err
		}
		n, err = c.Conn.Read(b)
		if again := c.reading.end(n == 0 && err != nil && isTimeout(err)); !again {
			return n, err
		}
	}
}

// Write implements [net.Conn].
func (c *unhurried) Write(b []byte) (n int, err error) {
	for {
		if err := c.writing.begin(); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:])
		n += m
		if again := c.writing.end(err != nil && isTimeout(err)); !again {
			return n, err
		}
	}
}

// SetDeadline implements [net.Conn].
func (c *unhurried) SetDeadline(t time.Time) error {
	if err := c.reading.want(t); err != nil {
		return err
	}
	return c.writing.want(t)
}

// SetReadDeadline implements [net.Conn].
func (c *unhurried) SetReadDeadline(t time.Time) error { return c.reading.want(t) }

// SetWriteDeadline implements [net.Conn].
func (c *unhurried) SetWriteDeadline(t time.Time) error { return c.writing.want(t) }

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

// deadline is the deadline of one direction. While the socket is used, its deadline is not
// later than the wanted one.
type deadline struct {
	set func(time.Time) error // the socket's

	mu     sync.Mutex
	wanted time.Time // zero: no deadline
	told   time.Time // the deadline that the socket has; zero: no deadline
	users  int       // how many calls use the socket
}

// longPast is a time that no clock shows any more. A caller that sets such a deadline wants a
// call under way to end; net/http does, after each request.
var longPast = time.Unix(1_000_000_000, 0)

func isPast(t time.Time) bool { return !t.IsZero() && t.Before(longPast) }

// isBefore compares deadlines.
func isBefore(t, u time.Time) bool { return !t.IsZero() && (u.IsZero() || t.Before(u)) }

// want sets the deadline.
func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if d.users > 0 && isBefore(t, d.told) {
		return d.tell()
	}
	return nil
}

// tell sets the deadline of the socket.
func (d *deadline) tell() error {
	d.told = d.wanted
	return d.set(d.wanted)
}

// begin is called before each use of the socket. It fails if no time is left for it.
func (d *deadline) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isPast(d.wanted) {
		return os.ErrDeadlineExceeded
	}
	if isBefore(d.wanted, d.told) || isPast(d.told) {
		if err := d.tell(); err != nil {
			return err
		}
	}
	d.users++
	return nil
}

// end is called after each use of the socket. It reports whether the call ended too early and
// should be made again.
func (d *deadline) end(timeout bool) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
	if !timeout || !isBefore(d.told, d.wanted) {
		return false
	}
	return d.tell() == nil
}
