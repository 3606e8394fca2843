package httpd

import (
	"io"
	"syscall"
	"time"
)

// turn is what a connection does between two requests: it writes an answer and waits for what comes after it. To read at once, as
// Read does, finds nothing: the client has not seen the answer yet. So a turn waits first, and a call of the system is spared for each
// request. Its functions are bound once.
type turn struct {
	raw        syscall.RawConn
	step       func(fd uintptr) bool
	sent       func() bool // is called when the answer is written; false: nothing more is to be read
	answer, in []byte
	written    int
	ended      bool // the answer was written, and sent was called
	n          int
	err        error
}

// recheck is after what time a connection reads without having been told that something is there. The system tells it of octets that
// come after it began to write the answer; those of a client that does not wait for answers may have come before.
const recheck = 50 * time.Millisecond

// exchange writes an answer, calls sent, and reads what comes next, until a deadline at most. It returns no error and nothing read if sent returns false.
// The time to write ends at another deadline.
func (c *unhurried) exchange(answer, in []byte, now, writeUntil, until time.Time, sent func() bool) (n int, err error) {
	x := &c.turn
	x.answer, x.in, x.sent, x.written, x.ended, x.n, x.err = answer, in, sent, 0, false, 0, nil
	if x.raw == nil && !c.mayExchange() {
		return c.apart(writeUntil, until)
	}
	if err := c.reading.want(now.Add(recheck)); err != nil {
		return 0, err
	}
	if err := c.reading.begin(); err != nil {
		return 0, err
	}
	err = x.raw.Read(x.step)
	early := err != nil && isTimeout(err)
	c.reading.end(early)
	switch {
	case err == nil && x.ended:
		return x.n, x.err
	case err == nil || early: // the socket took a part of the answer, or nothing was heard for a while
		return c.apart(writeUntil, until)
	}
	return 0, err
}

// apart does what is left of an exchange by a write and a read.
func (c *unhurried) apart(writeUntil, until time.Time) (int, error) {
	x := &c.turn
	if !x.ended {
		if err := c.SetWriteDeadline(writeUntil); err != nil {
			return 0, err
		}
		if _, err := c.Write(x.answer[x.written:]); err != nil {
			return 0, err
		}
		if x.ended = true; !x.sent() {
			return 0, nil
		}
	}
	if err := c.SetReadDeadline(until); err != nil {
		return 0, err
	}
	return c.Read(x.in)
}

// mayExchange reports whether the socket can be used by calls of the system, and prepares that.
func (c *unhurried) mayExchange() bool {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok || !canExchange {
		return false
	}
	var err error
	if c.turn.raw, err = raw.SyscallConn(); err != nil {
		return false
	}
	c.turn.step = c.turn.next
	return true
}

// next takes the next step of an exchange; false: it is taken when something can be read.
func (x *turn) next(fd uintptr) bool {
	if !x.ended {
		n, err := systemWrite(fd, x.answer)
		if err != nil || n < len(x.answer) {
			x.written = max(0, n)
			return true // a write that may wait does the rest, and returns the error
		}
		if x.ended = true; !x.sent() {
			return true
		}
		return false
	}
	n, err := systemRead(fd, x.in)
	switch {
	case err == errWait:
		return false
	case err == nil && n == 0:
		err = io.EOF
	}
	x.n, x.err = max(0, n), err
	return true
}
