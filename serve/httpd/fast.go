package httpd

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// fastPath answers plain requests for names over HTTP/1.1 without net/http, whose work for a request is several times that of a
// redirect. It reads only heads of one strictly defined form ([fastHead]) and hands every other connection, with the octets that it
// has read and not answered, to net/http for good. It calls the handler of the server, so that all that happens to a request
// happens here too; the handler declines what is not a redirect (see [Declined]), and such a request is handed over as well.
//
// It differs from net/http in one thing: the context of a request ends with its connection or when the server is closed, and does not end
// when the client goes away. A redirect waits for one read of the store at most.
type fastPath struct {
	s    *Server
	now  func() time.Time
	date atomic.Pointer[dateLine]

	mu        sync.Mutex
	open      map[*fastConn]struct{}
	listeners []*fastListener
	ending    atomic.Bool
	ended     chan struct{} // closed when the server ends and no connection is left; nil before it ends
}

// dateLine is the line of the header field Date in one second.
type dateLine struct {
	second int64
	line   []byte
}

// dateAt returns the line of the header field Date.
func (p *fastPath) dateAt(now time.Time) []byte {
	d, second := p.date.Load(), now.Unix()
	if d == nil || d.second != second {
		d = &dateLine{second, append(now.UTC().AppendFormat([]byte("Date: "), http.TimeFormat), "\r\n"...)}
		p.date.Store(d)
	}
	return d.line
}

// listen returns a listener of the connections that net/http is to serve.
func (p *fastPath) listen(l net.Listener) net.Listener {
	base := context.Background()
	if p.s.BaseContext != nil {
		base = p.s.BaseContext(l)
	}
	f := &fastListener{Listener: l, path: p, base: context.WithValue(base, http.ServerContextKey, p.s.Server), handed: make(chan accepted), closed: make(chan struct{})}
	p.mu.Lock()
	p.listeners = append(p.listeners, f)
	p.mu.Unlock()
	go f.run()
	return f
}

// fastListener accepts connections for the fast path, and returns those that it hands over.
type fastListener struct {
	net.Listener
	path   *fastPath
	base   context.Context
	handed chan accepted
	closed chan struct{}
	once   sync.Once
	stop   sync.Once
	fault  error
}

// refuse accepts no more connections. Those that are handed over are still taken.
func (l *fastListener) refuse() error {
	l.stop.Do(func() { l.fault = l.Listener.Close() })
	return l.fault
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// Accept implements [net.Listener].
func (l *fastListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.handed:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *fastListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.refuse()
}

// run accepts connections. It hands errors over too: net/http knows which pass, and how long to wait.
func (l *fastListener) run() {
	for {
		conn, err := l.Listener.Accept()
		n, ok := conn.(*connection)
		switch {
		case err == nil && ok:
			go l.path.serve(l, n)
			continue
		case l.path.ending.Load() && errors.Is(err, net.ErrClosed):
			return
		case !l.hand(accepted{conn, err}):
			return
		}
		if passing, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); err != nil && (!ok || !passing.Temporary()) {
			return
		}
	}
}

// hand gives net/http a connection or an error. It returns false if net/http takes none any more.
func (l *fastListener) hand(a accepted) bool {
	select {
	case l.handed <- a:
		return true
	case <-l.closed:
		return false
	}
}

// States of a connection of the fast path.
const (
	fastWaits int32 = iota
	fastAnswers
	fastCloses // the server ends, and closes it
)

// fastConn is a connection of the fast path. One goroutine serves it.
type fastConn struct {
	*connection
	path   *fastPath
	state  atomic.Int32
	began  time.Time
	cancel context.CancelFunc

	in         []byte
	start, end int         // what of in is read and not answered
	until      time.Time   // when the next head must be there; the zero time while none has begun
	answered   bool        // a request was answered
	again      bool        // more requests may come after the present answer
	filled     bool        // the last read filled in: more is there, perhaps
	rest       func() bool // rests, bound once

	head     fastHead
	answer   fastAnswer
	template http.Request // what all requests of the connection have in common
	request  http.Request // that is being answered; no handler keeps it
	url      url.URL      // of the request
	mark     fastMark
}

// serve answers the requests of a connection until it ends or is handed over.
func (p *fastPath) serve(l *fastListener, n *connection) {
	c := &fastConn{connection: n, path: p, in: make([]byte, maxFast), began: p.now()}
	c.until = c.began.Add(p.s.ReadHeaderTimeout)
	c.rest = c.rests
	ctx, cancel := context.WithCancel(l.base)
	c.cancel = cancel
	if !p.add(c) {
		cancel()
		_ = n.Close() // the server ends
		return
	}
	c.tell(http.StateNew)
	handing := false
	defer func() {
		if fault := recover(); fault != nil && fault != http.ErrAbortHandler { //nolint:errorlint // recover returns the value itself
			p.s.ErrorLog.Printf("http: panic serving: %v", fault)
			handing = false
		}
		cancel()
		p.remove(c)
		if handing {
			c.tell(http.StateHijacked)
			handing = c.handOver(l)
		} else {
			c.tell(http.StateClosed)
		}
		if !handing {
			_ = n.Close()
		}
	}()
	if p.s.ConnContext != nil {
		ctx = p.s.ConnContext(ctx, n)
	}
	ctx = context.WithValue(context.WithValue(ctx, http.LocalAddrContextKey, n.LocalAddr()), fastKey{}, &c.mark)
	c.template = *(&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, RemoteAddr: n.RemoteAddr().String()}).WithContext(ctx)
	for {
		switch size, v := c.await(); {
		case v == otherHead:
			handing = true
			return
		case v == unfinished || !c.state.CompareAndSwap(fastWaits, fastAnswers):
			return
		default:
			c.tell(http.StateActive)
			c.ask()
			if c.mark.declined {
				c.until, handing = time.Time{}, true
				n.hands()
				return
			}
			c.start += size
			if !c.send() {
				return
			}
		}
	}
}

// tell notes the state of a connection as net/http does.
func (c *fastConn) tell(state http.ConnState) {
	if hook := c.path.s.ConnState; hook != nil {
		hook(c.connection, state)
	}
}

// await reads until the head of a request is there. What it returns is unfinished if none comes.
func (c *fastConn) await() (size int, v verdict) {
	for {
		if c.start == c.end {
			c.start, c.end = 0, 0
		} else if size, v = c.head.read(c.in[c.start:c.end]); v != unfinished && !c.mayEnd() {
			return size, v
		} else if c.start > 0 {
			c.end = copy(c.in, c.in[c.start:c.end])
			c.start = 0
		}
		deadline := c.until
		switch {
		case !deadline.IsZero():
		case c.end > 0:
			deadline = c.path.now().Add(c.path.s.ReadHeaderTimeout)
			c.until = deadline
		default:
			deadline = c.path.now().Add(c.path.s.IdleTimeout)
		}
		if err := c.SetReadDeadline(deadline); err != nil {
			return 0, unfinished
		}
		n, err := c.Read(c.in[c.end:])
		c.end += n
		c.filled = c.end == len(c.in)
		switch {
		case n > 0:
		case errors.Is(err, io.EOF) && c.end > 0 && !c.mayEnd():
			return 0, otherHead // net/http says that half a head is not enough
		case err != nil:
			return 0, unfinished
		}
	}
}

// mayEnd reports whether net/http would close the connection without an answer if no more came: it does so if less than four octets
// follow a request that was answered.
func (c *fastConn) mayEnd() bool { return c.answered && c.end-c.start < 4 }

// ask has the handler answer the request that was read.
func (c *fastConn) ask() {
	r := &c.request
	*r, c.url = c.template, url.URL{Path: c.head.path}
	r.Method, r.RequestURI, r.URL, r.Host, r.Header = c.head.method, c.head.path, &c.url, c.head.host, c.head.header
	c.mark.declined = false
	c.answer.reset(r.Method)
	c.path.s.Handler.ServeHTTP(&c.answer, r)
}

// send sends the answer, and may read what comes next. It returns false if the connection can't be used any more.
func (c *fastConn) send() bool {
	now := c.path.now()
	octets, again := c.answer.finish(c.path.dateAt(now), c.path.ending.Load())
	c.again = again
	c.until, c.answered = time.Time{}, true
	if plain, ok := c.connection.Conn.(*unhurried); ok && again && c.start == c.end && !c.filled {
		c.start, c.end = 0, 0
		n, err := plain.exchange(octets, c.in, now, now.Add(c.path.s.WriteTimeout), now.Add(c.path.s.IdleTimeout), c.rest)
		c.end, c.filled = n, n == len(c.in)
		return err == nil && n > 0
	}
	if err := c.SetWriteDeadline(now.Add(c.path.s.WriteTimeout)); err != nil {
		return false
	}
	if _, err := c.Write(octets); err != nil {
		return false
	}
	return c.rests()
}

// rests notes that a request is answered. It returns false if no other is read.
func (c *fastConn) rests() bool {
	if !c.again {
		return false
	}
	c.tell(http.StateIdle)
	return c.state.CompareAndSwap(fastAnswers, fastWaits) && !c.path.ending.Load()
}

// handOver gives the connection to net/http, which reads first what was read and not answered. It returns false if the server ends.
func (c *fastConn) handOver(l *fastListener) bool {
	n := c.connection
	n.unread, n.until = c.in[c.start:c.end], c.until
	_ = n.SetWriteDeadline(time.Time{}) // it can't fail: nothing is being written
	return l.hand(accepted{conn: n})
}

// add notes a connection. It returns false if the server ends.
func (p *fastPath) add(c *fastConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

// remove forgets a connection that has ended, or that net/http serves.
func (p *fastPath) remove(c *fastConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	if p.ended != nil && len(p.open) == 0 {
		select {
		case <-p.ended:
		default:
			close(p.ended)
		}
	}
}

// end closes the connections that wait for a request, as [http.Server.Shutdown] does, or all at once. Those that are being answered close when they are. After the first call, no
// connection is served any more.
func (p *fastPath) end(now bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending.Store(true)
	if p.ended == nil {
		p.ended = make(chan struct{})
		if len(p.open) == 0 {
			close(p.ended)
		}
	}
	for _, l := range p.listeners {
		_ = l.refuse() // Close returns the error
	}
	for c := range p.open {
		if now {
			c.cancel()
		}
		if now || c.mayClose(p.now()) && c.state.CompareAndSwap(fastWaits, fastCloses) {
			_ = c.connection.Conn.Close() // its goroutine sees that, and ends
		}
	}
}

// newFor is how long [http.Server.Shutdown] waits for the first request of a connection.
const newFor = 5 * time.Second

// mayClose reports whether a connection may be closed if it waits for a request: the first one may be on its way.
func (c *fastConn) mayClose(now time.Time) bool {
	return !c.connection.fresh.Load() || now.Sub(c.began) > newFor
}

// wait waits until no connection is left. It closes those that have become old.
func (p *fastPath) wait(ctx context.Context) error {
	often := time.NewTicker(newFor / 50)
	defer often.Stop()
	for !p.isOver() { // also if the context has ended
		ended := p.ended
		if p.s.connections.handing.Load() > 0 {
			ended = nil // not yet
		}
		select {
		case <-ended:
		case <-ctx.Done():
			if p.isOver() {
				return nil
			}
			return ctx.Err()
		case <-often.C:
			p.end(false)
		}
	}
	return nil
}

// isOver reports whether no connection is left, after the first call of end.
func (p *fastPath) isOver() bool {
	select {
	case <-p.ended:
		return p.s.connections.handing.Load() == 0
	default:
		return false
	}
}

// fastKey is the key of a fastMark in the context of a request.
type fastKey struct{}

// fastMark says what became of a request of the fast path.
type fastMark struct{ declined bool }

// decline says that a request is not to be answered here, if it came by the fast path: net/http reads it, and the handler gets it again.
// It returns false if the request came by net/http, and must be answered. A handler declines before it has counted or logged anything.
func decline(r *http.Request) bool {
	mark, ok := r.Context().Value(fastKey{}).(*fastMark)
	if ok {
		mark.declined = true
	}
	return ok
}

// HandOver declines a request that would have to wait: net/http notices if its client goes away.
func HandOver(r *http.Request) bool { return decline(r) }

// Declined reports whether the handler declined a request, which it gets once more then. What counts or logs requests leaves it out.
func Declined(r *http.Request) bool {
	mark, ok := r.Context().Value(fastKey{}).(*fastMark)
	return ok && mark.declined
}
