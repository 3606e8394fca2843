package dnsd

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// clients are the open connections, by client. When all places are taken, a newcomer gets
// the place of another connection, so that a few clients can't keep all others out (RFC
// 7766, section 6.2.3): of the client with most connections, and there of the one that has
// asked nothing for the longest time.
type clients struct {
	o   TCPLimits
	now func() time.Time

	mu     sync.Mutex
	houses map[netip.Prefix]*house
	ranks  []map[*house]struct{} // by number of connections
	most   int                   // the highest rank that has a house, or higher
	count  atomic.Int64
	done   atomic.Bool // no more are admitted, and those there are end

	replaced atomic.Uint64 // connections that made room
}

// house is the connections of one client.
type house struct {
	who    netip.Prefix
	places map[*place]struct{}
}

// place is a connection that was admitted.
type place struct {
	conn  net.Conn
	from  netip.Addr
	house *house
	since time.Time
	asked atomic.Int64 // when it asked last, in nanoseconds
	busy  atomic.Bool  // an answer is being made or sent
}

func newClients(o TCPLimits, now func() time.Time) *clients {
	return &clients{o: o, now: now, houses: make(map[netip.Prefix]*house), ranks: make([]map[*house]struct{}, o.Connections+1)}
}

// household is the addresses that count as one client.
func household(a netip.Addr) netip.Prefix {
	n := 32
	if a.Is6() {
		n = 64
	}
	p, err := a.WithZone("").Prefix(n)
	if err != nil {
		return netip.Prefix{} // an invalid address; these count together
	}
	return p
}

// admit takes a connection in; nil if there are too many, and none that can make room.
func (c *clients) admit(conn net.Conn, from netip.Addr) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := household(from)
	h := c.houses[who]
	if h == nil {
		h = &house{who: who, places: make(map[*place]struct{})}
	}
	if c.done.Load() || len(h.places) >= c.o.PerClient || int(c.count.Load()) >= c.o.Connections && !c.makeRoom(h) {
		return nil
	}
	p := &place{conn: conn, from: from, house: h, since: c.now()}
	p.asked.Store(p.since.UnixNano())
	c.houses[who] = h
	c.rank(h, func() { h.places[p] = struct{}{} })
	return p
}

// rank changes the connections of a client, and its rank with them.
func (c *clients) rank(h *house, change func()) {
	before := len(h.places)
	delete(c.ranks[before], h)
	change()
	n := len(h.places)
	c.count.Add(int64(n - before))
	if n == 0 {
		delete(c.houses, h.who)
		return
	}
	if c.ranks[n] == nil {
		c.ranks[n] = make(map[*house]struct{})
	}
	c.ranks[n][h] = struct{}{}
	c.most = max(c.most, n)
}

// maxLooked is how many connections are looked at to find one that makes room: a flood of
// new connections must not cost more than that. Maps yield them in a random order.
const maxLooked = 128

// makeRoom closes a connection for one of a client, and reports whether there was one. A
// connection that is at work is closed only if its client has more of them than the
// newcomer would have, or if it lasts for long already.
func (c *clients) makeRoom(guest *house) bool {
	for c.most > 0 && len(c.ranks[c.most]) == 0 {
		c.most--
	}
	from := c.ranks[c.most]
	if n := len(guest.places); n > 0 && n >= c.most {
		from = map[*house]struct{}{guest: {}}
	}
	now := c.now()
	var found *place
	looked := 0
	for h := range from {
		for p := range h.places {
			free := !p.busy.Load() || len(h.places) > len(guest.places)+1 || now.Sub(p.since) > c.o.Message
			if free && (found == nil || p.before(found)) {
				found = p
			}
			if looked++; looked == maxLooked {
				break
			}
		}
		if looked == maxLooked {
			break
		}
	}
	if found == nil {
		return false
	}
	found.conn.Close()
	c.remove(found)
	c.replaced.Add(1)
	return true
}

// before reports whether a connection makes room rather than another one: what waits for a
// question before what is at work, and then what has asked nothing for longer.
func (p *place) before(q *place) bool {
	if a, b := p.busy.Load(), q.busy.Load(); a != b {
		return b
	}
	return p.asked.Load() < q.asked.Load()
}

// asks notes that a question came, and that it is answered now.
func (p *place) asks(now time.Time) {
	p.asked.Store(now.UnixNano())
	p.busy.Store(true)
}

// rests notes that the connection waits for the next question.
func (p *place) rests() { p.busy.Store(false) }

// leave forgets a connection.
func (c *clients) leave(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(p)
}

func (c *clients) remove(p *place) {
	if _, ok := p.house.places[p]; ok { // otherwise it has made room
		c.rank(p.house, func() { delete(p.house.places, p) })
	}
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
	c.each(func(conn net.Conn) { conn.SetReadDeadline(time.Unix(1, 0)) })
}

// cut breaks all connections off.
func (c *clients) cut() { c.each(func(conn net.Conn) { conn.Close() }) }

func (c *clients) each(do func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.houses {
		for p := range h.places {
			do(p.conn)
		}
	}
}
