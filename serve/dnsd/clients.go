package dnsd

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// clients are the connections there are, and whose.
type clients struct {
	o TCPLimits

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	by    map[netip.Prefix]int
	count atomic.Int64
	done  atomic.Bool // no more are admitted, and those there are end
}

func newClients(o TCPLimits) *clients {
	return &clients{o: o, conns: make(map[net.Conn]struct{}), by: make(map[netip.Prefix]int)}
}

// household is the addresses that count as one client.
func household(a netip.Addr) netip.Prefix {
	n := 32
	if a.Is6() {
		n = 64
	}
	p, err := a.WithZone("").Prefix(n)
	if err != nil {
		return netip.Prefix{} // of nobody; they count together
	}
	return p
}

// admit takes a connection in, unless there are too many.
func (c *clients) admit(conn net.Conn, from netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := household(from)
	if c.done.Load() || len(c.conns) >= c.o.Connections || c.by[who] >= c.o.PerClient {
		return false
	}
	c.conns[conn] = struct{}{}
	c.by[who]++
	c.count.Store(int64(len(c.conns)))
	return true
}

// leave forgets a connection.
func (c *clients) leave(conn net.Conn, from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
	who := household(from)
	if c.by[who]--; c.by[who] <= 0 {
		delete(c.by, who)
	}
	c.count.Store(int64(len(c.conns)))
}

// idle is how long a connection may wait for its next question: less when places get
// rare.
func (c *clients) idle() time.Duration {
	if int(c.count.Load()) > c.o.Connections/4*3 {
		return min(c.o.Idle, time.Second)
	}
	return c.o.Idle
}

func (c *clients) stopping() bool { return c.done.Load() }

// stop makes connections end once they have answered what they have read.
func (c *clients) stop() {
	c.done.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// cut breaks all connections off.
func (c *clients) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
}
