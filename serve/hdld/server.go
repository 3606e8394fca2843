// Package hdld serves the Handle protocol over UDP, TCP and through HTTP (RFC 3652, and what its
// reference implementation does): it decodes requests, calls package handles, and encodes the answers.
//
// A client that has proved nothing gets answers and nothing else: what it may make the server keep (fragments,
// challenges, sessions) is bounded in number, in size and in time, and what costs computing time (keys of
// sessions, derived secrets) is done for few clients at once.
package hdld

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/datagram"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/wire/hdl"
)

// Options are what a [Server] works with.
type Options struct {
	Handles *handles.Service
	Now     func() time.Time // must be the real time: connections end by it
	Rand    io.Reader
	Log     *slog.Logger // nothing is logged if nil

	// Tracer records requests whose answers are not kept; nil: it is off.
	Tracer *trace.Tracer

	// Site returns the site that this server belongs to, as clients see it, and the key whose public half it
	// has. Without a key nothing is certified and no session is set up. May be called at any time; it
	// must be fast.
	Site func() *Site

	Sockets    int    // UDP sockets of an address; 0: as many as there are processors to use
	CacheBytes int    // for answers that are kept; 0: 256 MiB, of which it takes what it uses; negative: none are kept
	Limits     Limits // zero fields stand for the numbers beside them

	// AdminUDP says that UDP is an interface for administration too. In HS_SITE it usually is one for
	// queries only, as the reference sets it up.
	AdminUDP bool

	// Frozen is the error by which what administrators ask for is refused, if the registry is a frozen archive ([stele.Frozen]); nil: it is
	// not.
	Frozen error

	// Addresses: the audit trail has the addresses of clients.
	Addresses bool
}

// Site is what the server knows of its site.
type Site struct {
	Octets  []byte // HS_SITE
	Serial  uint16
	Primary bool
	Key     *hdl.PrivateKey // nil: none

	// Former is the key that Key replaced: a client that names the site by FormerSerial knows that one.
	Former       *hdl.PrivateKey
	FormerSerial uint16
}

// keyFor returns the key for a client that knows the site by a number.
func (s *Site) keyFor(serial uint16) *hdl.PrivateKey {
	if s.Former != nil && serial == s.FormerSerial {
		return s.Former
	}
	return s.Key
}

// Limits bound what clients may use up.
type Limits struct {
	Connections int           // TCP connections at once; 1000
	PerClient   int           // of them from one address, or one /64 network; 50
	Request     time.Duration // in which a request must have come whole; 10 s
	Write       time.Duration // in which each message of an answer must be taken; 10 s
	Challenges  int           // that wait for an answer; 10,000
	Sessions    int           // 10,000
	Work        time.Duration // for one request; 30 s
}

func (l *Limits) fill() {
	l.Connections = cmp.Or(l.Connections, 1000)
	l.PerClient = cmp.Or(l.PerClient, 50)
	l.Request = cmp.Or(l.Request, 10*time.Second)
	l.Write = cmp.Or(l.Write, 10*time.Second)
	l.Challenges = cmp.Or(l.Challenges, 10_000)
	l.Sessions = cmp.Or(l.Sessions, 10_000)
	l.Work = cmp.Or(l.Work, 30*time.Second)
}

// Stats are counts since the server began.
type Stats struct {
	UDP, TCP, HTTP uint64 // messages that were answered
	Unreadable     uint64 // messages that are none
	Challenged     uint64
	Proved         uint64 // challenges that were answered rightly
	Refused        uint64 // wrongly
	Sessions       uint64 // that were set up
	Held           uint64 // answers over UDP that were replaced by a short one
	Dropped        uint64 // requests over UDP that came while too many others waited
	Turned         uint64 // connections that were closed at once
}

// Server answers requests. It is used by many goroutines at once.
type Server struct {
	o          Options
	kept       *kept
	buffers    sync.Pool // of *buffers
	challenges *challenges
	sessions   *sessions
	fragments  *hdl.Collector
	spare      *limit.Rate // of octets that an address gets beyond what it sent
	guesses    *limit.Rate // of proofs that an address may try

	// What takes computing time is done for few clients at once, each kind by itself: so no kind locks out another.
	proofs, agreements, signatures *limit.Turns
	clients                        clients
	former                         formerClients

	base context.Context
	end  context.CancelFunc

	mu        sync.Mutex
	packets   []*net.UDPConn
	listeners []net.Listener
	closed    bool
	running   sync.WaitGroup

	stats struct {
		udp, tcp, http, unreadable, challenged, proved, refused, sessions, held, dropped, turned atomic.Uint64
	}
}

// Bounds of what is computed for clients that are not known, and of what they get over UDP.
const (
	dearAtOnce  = 2
	dearWaiting = 200
	dearWait    = 5 * time.Second

	guessRate  = 20 // proofs in a second, of one network
	guessBurst = 200

	spareRate  = 16 << 10 // octets in a second, beyond three times those that the address sent
	spareBurst = 256 << 10
)

// New returns a server. It answers once it listens, and through [Server.ServeHTTP] at once.
func New(o Options) *Server {
	o.Limits.fill()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Sockets = cmp.Or(o.Sockets, runtime.GOMAXPROCS(0))
	o.CacheBytes = cmp.Or(o.CacheBytes, usualCache)
	s := &Server{o: o, kept: newKept(o.CacheBytes), challenges: newChallenges(o.Limits.Challenges), sessions: newSessions(o.Limits.Sessions),
		fragments: hdl.NewCollector(hdl.DefaultLimits()), spare: limit.NewRate(spareRate, spareBurst),
		guesses: limit.NewRate(guessRate, guessBurst), proofs: newTurns(), agreements: newTurns(), signatures: newTurns()}
	s.buffers.New = func() any { return &buffers{in: make([]byte, firstRead)} }
	s.clients.most, s.clients.each = o.Limits.Connections, o.Limits.PerClient
	s.base, s.end = context.WithCancel(context.Background())
	return s
}

func newTurns() *limit.Turns { return limit.NewTurns(dearAtOnce, dearWaiting, dearWait) }

// turn waits for a turn to compute something. Over UDP it does not wait: the goroutines that read datagrams have others to answer.
func (s *Server) turn(ctx context.Context, q *call, t *limit.Turns) (leave func(), err error) {
	if q.via == viaUDP {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
	}
	if leave, err = t.Enter(ctx); err != nil {
		return nil, &handles.Refusal{Code: hdl.ServerBusy, Err: err}
	}
	return leave, nil
}

// Listen begins to answer at an address, over UDP and TCP. With port 0 both have the same free port.
func (s *Server) Listen(ctx context.Context, address string) error {
	const attempts = 20
	lc := net.ListenConfig{KeepAlive: -1} // a connection ends soon in any case
	for try := 0; ; try++ {
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		p, err := datagram.Open(ctx, at.String(), s.o.Sockets)
		if err != nil {
			_ = l.Close()
			if _, port, _ := net.SplitHostPort(address); port == "0" && try < attempts {
				continue // the port is taken for UDP only
			}
			return err
		}
		return s.serve(l, p)
	}
}

func (s *Server) serve(l net.Listener, packets []*net.UDPConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		for _, p := range packets {
			_ = p.Close()
		}
		return net.ErrClosed
	}
	s.listeners, s.packets = append(s.listeners, l), append(s.packets, packets...)
	s.running.Go(func() { s.accept(l) })
	for _, p := range packets {
		s.running.Go(func() { s.receive(p) })
	}
	return nil
}

// Addrs returns where the server answers.
func (s *Server) Addrs() (list []netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		list = append(list, l.Addr().(*net.TCPAddr).AddrPort())
	}
	return list
}

// Shutdown ends the server: requests under way are answered until the context ends, and are then broken
// off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.listeners {
		_ = l.Close()
	}
	for _, p := range s.packets {
		_ = p.SetReadDeadline(s.o.Now()) // what was read is still answered
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.end()
		s.clients.closeAll()
		<-done
	}
	s.end()
	for _, p := range s.packets {
		_ = p.Close()
	}
	s.kept.close()
	return err
}

// stopped reports whether the server is ending.
func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	n := &s.stats
	return Stats{UDP: n.udp.Load(), TCP: n.tcp.Load(), HTTP: n.http.Load(), Unreadable: n.unreadable.Load(), Challenged: n.challenged.Load(),
		Proved: n.proved.Load(), Refused: n.refused.Load(), Sessions: n.sessions.Load(), Held: n.held.Load(), Dropped: n.dropped.Load(), Turned: n.turned.Load()}
}

// pause waits a moment before something that failed is tried again.
func (s *Server) pause() {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-s.base.Done():
	}
}

// isClosed reports whether a socket failed because it was closed.
func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
