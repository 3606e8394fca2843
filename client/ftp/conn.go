package ftp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

var (
	errClosed  = stele.Messagef("ftp.connection-closed", "the server closed the connection")
	errSilence = stele.Messagef("ftp.timed-out", "nothing came for too long")
)

// Options are how the client talks to a server. The zero value is ready to use.
type Options struct {
	// Dial opens connections; a [net.Dialer] does if nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Idle time.Duration // for how long nothing may come; 30 s if 0
}

// Conn is a session with a server. It is used by one goroutine, and is closed when the
// context ends with which it was opened.
type Conn struct {
	o    Options
	ctx  context.Context
	conn net.Conn
	r    *bufio.Reader
	host string // of the server, as an address: where data comes from
}

// Open connects to a server and logs in as "anonymous", with no more of a password than
// servers ask for (RFC 1635).
func Open(ctx context.Context, host, port string, o Options) (*Conn, error) {
	o.Idle = cmp.Or(o.Idle, 30*time.Second)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	c := &Conn{o: o, ctx: ctx}
	conn, err := c.dial(net.JoinHostPort(host, port))
	if err != nil {
		return nil, c.unavailable(err)
	}
	c.conn, c.r = conn, bufio.NewReaderSize(conn, maxLine)
	c.host, _, err = net.SplitHostPort(conn.RemoteAddr().String())
	if err == nil {
		err = c.login()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// dial connects; what comes over the connection must not pause for too long.
func (c *Conn) dial(address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.o.Idle)
	defer cancel()
	conn, err := c.o.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newWatched(c.ctx, conn, c.o.Idle), nil
}

// Close ends the session. It does not wait for the server.
func (c *Conn) Close() { _ = c.conn.Close() }

// login waits for the greeting and logs in.
func (c *Conn) login() error {
	r, err := c.reply()
	for n := 0; err == nil && r.Code == 120 && n < maxDelays; n++ { // ready in a while (RFC 959, section 5.4)
		r, err = c.reply()
	}
	if err != nil {
		return err
	}
	if r.Code != 220 {
		return c.refused("greeting", r)
	}
	if r, err = c.send("USER anonymous"); err == nil && r.Code == 331 {
		r, err = c.send("PASS anonymous@")
	}
	if err != nil {
		return err
	}
	if r.Code != 230 && r.Code != 202 {
		return c.refused("login", r)
	}
	if r, err = c.send("TYPE I"); err != nil { // as it is: texts are not changed
		return err
	}
	if r.Code/100 != 2 {
		return c.refused("TYPE I", r)
	}
	return nil
}

// send sends a command and returns the reply. The words must have been checked.
func (c *Conn) send(command string) (Reply, error) {
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		return Reply{}, c.unavailable(err)
	}
	return c.reply()
}

// reply returns the next reply. One that the server is about to close is an error.
func (c *Conn) reply() (Reply, error) {
	r, err := readReply(c.r)
	if err != nil {
		return Reply{}, c.unavailable(err)
	}
	if r.Code == 421 {
		return Reply{}, c.refused("session", r)
	}
	return r, nil
}

// unavailable is the error of a server that could not be reached.
func (c *Conn) unavailable(err error) error {
	if c.ctx.Err() != nil {
		err = c.ctx.Err()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // the caller knows the server's address
	}
	return &stele.Error{Op: "ask by FTP", Kind: stele.Unavailable, Err: err}
}

// refused is the error that a reply says.
func (c *Conn) refused(what string, r Reply) error {
	return &stele.Error{Op: "ask by FTP", Kind: kindOf(r.Code), Err: &refusal{stele.Messagef("ftp.refused", "the server refuses {action}: {reply}", what, r), r}}
}

// refusal is a reply that says no.
type refusal struct {
	said  *stele.Message
	reply Reply
}

func (r *refusal) Error() string { return r.said.Error() }
func (r *refusal) Unwrap() error { return r.said }

// Refused returns the reply by which a server refused what was asked for; false if the error is another one.
func Refused(err error) (Reply, bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.reply, true
	}
	return Reply{}, false
}

// passive opens a connection for data.
func (c *Conn) passive() (net.Conn, error) {
	r, err := c.send("EPSV")
	if err != nil {
		return nil, err
	}
	if port, ok := parseExtended(r.Text); ok && r.Code == 229 {
		return c.dialData(port)
	}
	if r, err = c.send("PASV"); err != nil {
		return nil, err
	}
	if r.Code != 227 {
		return nil, c.refused("passive mode, and there is no other", r)
	}
	// The address is ignored: after network address translation it is wrong, and a malicious
	// server may name another host.
	at, ok := parsePassive(r.Text)
	if !ok {
		return nil, c.unavailable(errReply)
	}
	return c.dialData(at.Port())
}

// leastPort is the first port that data may come from. The ports below it belong to other
// services.
const leastPort = 1024

func (c *Conn) dialData(port uint16) (net.Conn, error) {
	if port < leastPort {
		return nil, &stele.Error{Op: "ask by FTP", Kind: stele.Conflict, Err: stele.Messagef("ftp.data-port-reserved", "the server names port {port} for its data, which belongs to another service", port)}
	}
	conn, err := c.dial(net.JoinHostPort(c.host, strconv.Itoa(int(port))))
	if err != nil {
		return nil, c.unavailable(stele.Messagef("ftp.data-connection-failed", "no connection for data: {cause}", err))
	}
	return conn, nil
}

// watched is a connection whose calls end when it is idle for too long, or with the context.
type watched struct {
	net.Conn
	idle  time.Duration
	timer *time.Timer
	stop  func() bool
}

func newWatched(ctx context.Context, conn net.Conn, idle time.Duration) *watched {
	end := func() { _ = conn.SetDeadline(time.Unix(1, 0)) }
	w := &watched{Conn: conn, idle: idle, timer: time.AfterFunc(idle, end), stop: context.AfterFunc(ctx, end)}
	w.timer.Stop() // until a call waits
	return w
}

// Read reads, and returns an error if nothing came in time.
func (w *watched) Read(b []byte) (int, error) {
	w.timer.Reset(w.idle)
	defer w.timer.Stop()
	n, err := w.Conn.Read(b)
	return n, silent(err)
}

// Write writes, and returns an error if the server does not read in time.
func (w *watched) Write(b []byte) (int, error) {
	w.timer.Reset(w.idle)
	defer w.timer.Stop()
	n, err := w.Conn.Write(b)
	return n, silent(err)
}

// Close closes.
func (w *watched) Close() error {
	w.timer.Stop()
	w.stop()
	return w.Conn.Close()
}

func silent(err error) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return errSilence
	}
	return err
}
