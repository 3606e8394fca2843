package httpd

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// connections counts the connections of a server and keeps them within bounds.
type connections struct {
	most, each int                   // in all, and from one client; no bound if 0
	exempt     func(netip.Addr) bool // addresses whose connections are not counted as one client's

	mu       sync.Mutex
	open     []*connection // in no order
	byClient map[netip.Prefix]int

	fresh   atomic.Int64 // connections that have sent no whole head yet
	handing atomic.Int64 // connections with a request that the fast path declined and net/http has not begun to answer

	streams     atomic.Int64 // requests of HTTP/2 that are being answered
	mostStreams int64        // no bound if 0

	clock atomic.Uint64 // counts what happens, so that ages can be compared
}

// connection is a connection that connections counts.
type connection struct {
	net.Conn
	all    *connections
	client netip.Prefix
	place  int           // in open
	since  atomic.Uint64 // when it began to wait for a request; 0 while one is answered
	fresh  atomic.Bool   // no whole head has come yet
	handed atomic.Bool   // counted in handing
	once   sync.Once

	unread []byte    // what the fast path has read and not answered
	until  time.Time // when the head must be there of which unread is the beginning; the zero time: not known

	mu       sync.Mutex
	requests int // of HTTP/2 that are being answered
	bodies   int // of these, those that wait for a body
}

func newConnections(most, each int) *connections {
	return &connections{most: most, each: each, byClient: make(map[netip.Prefix]int), exempt: func(netip.Addr) bool { return false }}
}

// listen bounds the connections of a listener.
func (c *connections) listen(l net.Listener) net.Listener { return &bounded{l, c} }

type bounded struct {
	net.Listener
	all *connections
}

// Accept returns the next connection for which there is room. It closes others at once.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := b.all.admit(raw); c != nil {
			return c, nil
		}
		_ = raw.Close() // the limit refuses it
	}
}

// admit adds a connection to those that are counted; nil if there is no room for it.
func (c *connections) admit(raw net.Conn) *connection {
	n := &connection{Conn: newUnhurried(raw), all: c, client: clientOf(raw.RemoteAddr())}
	n.since.Store(c.clock.Add(1))
	proxy := c.each > 0 && c.exempt(addrOf(raw.RemoteAddr()))
	c.mu.Lock()
	if c.each > 0 && !proxy && c.byClient[n.client] >= c.each {
		c.mu.Unlock()
		return nil
	}
	var old *connection
	if c.most > 0 && len(c.open) >= c.most {
		if old = c.idlest(); old == nil {
			c.mu.Unlock()
			return nil
		}
		c.remove(old)
	}
	n.place = len(c.open)
	c.open = append(c.open, n)
	c.byClient[n.client]++
	n.fresh.Store(true) // before another goroutine can close it to make room
	c.fresh.Add(1)
	c.mu.Unlock()
	if old != nil {
		_ = old.Close() // it waited for a request, and has waited long
	}
	return n
}

// idlest returns a connection that has waited long for a request: the one that has waited
// longest of a sample. nil if the whole sample is busy.
func (c *connections) idlest() (idlest *connection) {
	const some = 16
	var longest uint64
	step := max(1, len(c.open)/some)
	first := int(c.clock.Load()) % len(c.open)
	for i := range min(some, len(c.open)) {
		n := c.open[(first+i*step)%len(c.open)]
		if since := n.since.Load(); since > 0 && (idlest == nil || since < longest) {
			idlest, longest = n, since
		}
	}
	return idlest
}

// seasoned notes that a connection has sent a head, or never will.
func (n *connection) seasoned() {
	if n.fresh.CompareAndSwap(true, false) {
		n.all.fresh.Add(-1)
	}
}

// hands and taken count a connection in handing.
func (n *connection) hands() {
	n.handed.Store(true)
	n.all.handing.Add(1)
}

func (n *connection) taken() {
	if n.handed.CompareAndSwap(true, false) {
		n.all.handing.Add(-1)
	}
}

// remove takes a connection out of the books. It may be called twice.
func (c *connections) remove(n *connection) {
	if n.place < 0 {
		return
	}
	last := len(c.open) - 1
	c.open[n.place] = c.open[last]
	c.open[n.place].place = n.place
	c.open[last] = nil
	c.open = c.open[:last]
	n.place = -1
	if c.byClient[n.client]--; c.byClient[n.client] == 0 {
		delete(c.byClient, n.client)
	}
}

// Read implements [net.Conn].
func (n *connection) Read(b []byte) (int, error) {
	if len(n.unread) == 0 {
		return n.Conn.Read(b)
	}
	size := copy(b, n.unread)
	if n.unread = n.unread[size:]; len(n.unread) == 0 {
		n.unread = nil // its memory is not needed any more
	}
	return size, nil
}

// SetReadDeadline implements [net.Conn]. The first deadline that net/http sets is that of a head, which may have begun before.
func (n *connection) SetReadDeadline(t time.Time) error {
	if !n.until.IsZero() {
		if n.until.Before(t) {
			t = n.until
		}
		n.until = time.Time{}
	}
	return n.Conn.SetReadDeadline(t)
}

// Close closes the connection and makes room for another.
func (n *connection) Close() error {
	n.once.Do(func() {
		n.all.mu.Lock()
		n.all.remove(n)
		n.all.mu.Unlock()
		n.seasoned()
	})
	n.taken() // it may have been counted after the first call
	return n.Conn.Close()
}

// changed notes whether a connection waits. A connection counts as waiting while its head
// arrives slowly: net/http calls it active once it has read one.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	n := own(conn)
	if n == nil {
		return // its listener has no bound
	}
	switch state {
	case http.StateActive:
		n.since.Store(0)
		n.seasoned()
	case http.StateIdle:
		n.since.Store(c.clock.Add(1))
	}
}

// own returns the connection that is counted here, nil if it is not one of these.
func own(conn net.Conn) *connection {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS around it
		conn = secure.NetConn()
	}
	n, _ := conn.(*connection)
	return n
}

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, own(conn))
}

// awaiting returns a handler that counts a connection as one that waits while a body is to
// come: a client that announces one and sends none would keep others out. net/http waits for
// it even after the answer, if the handler did not read it.
func (c *connections) awaiting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.handing.Load() > 0 {
			if n, ok := r.Context().Value(connectionKey{}).(*connection); ok && n != nil {
				n.taken()
			}
		}
		if r.ProtoMajor < 2 && r.ContentLength == 0 { // by far the most
			next.ServeHTTP(w, r)
			return
		}
		n, _ := r.Context().Value(connectionKey{}).(*connection)
		switch {
		case n == nil:
		case r.ProtoMajor >= 2:
			// A connection of HTTP/1 has one request at a time, and one of HTTP/2 a hundred.
			// All requests of HTTP/2 together are bounded like connections.
			defer c.streams.Add(-1)
			if c.streams.Add(1) > c.mostStreams && c.mostStreams > 0 {
				tooMany(w)
				return
			}
			awaits := r.ContentLength != 0
			n.begin(awaits)
			body := &streamBody{ReadCloser: r.Body, n: n, awaits: awaits}
			if awaits {
				r.Body = body
			}
			defer n.finishStream(body)
			growStack(awaits)
		default:
			n.since.Store(c.clock.Add(1))
			r.Body = awaited{r.Body, n}
		}
		next.ServeHTTP(w, r)
	})
}

// growStack gives the goroutine the stack that most answers need. Net/http starts a goroutine for each request of HTTP/2, with a small
// stack. The runtime doubles that on the way down to the resolver, and copies all frames each time. Here it grows once, while there are
// few frames. The argument keeps the compiler from leaving the frame out.
//
//go:noinline
func growStack(odd bool) byte {
	var room [stackRoom]byte
	at := 0
	if odd {
		at = 1
	}
	room[at] = 1
	return room[stackRoom-1-at]
}

// stackRoom makes a stack of 16 KiB, the largest that the runtime keeps in a list of free ones for each processor.
const stackRoom = 10 << 10

// tooMany answers that too many requests are being answered.
func tooMany(w http.ResponseWriter) {
	head := w.Header()
	head["Content-Type"], head["Retry-After"], head["Cache-Control"], head["X-Content-Type-Options"] = plainTextType, soon, notKept, noSniff
	w.WriteHeader(http.StatusServiceUnavailable)
	// If this fails the client is gone.
	_, _ = io.WriteString(w, "503 Service Unavailable\ndetail: too many requests are being answered; ask again in a few seconds\ncode: limit.requests\n")
}

// awaited is a body to come. Once it is there the request is being answered.
type awaited struct {
	io.ReadCloser
	n *connection
}

func (b awaited) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.n.since.Store(0)
	}
	return n, err
}

// clientOf returns the client of a connection: an address, or for IPv6 the network that one
// client has to itself. The zero one if it has no address.
func clientOf(addr net.Addr) netip.Prefix {
	ip := addrOf(addr)
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	client, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return client
}

// addrOf returns the address alone, the zero one if there is none.
func addrOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
