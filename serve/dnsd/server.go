// Package dnsd is the authoritative name server of a registry. It answers for the zones of
// package publish on UDP and TCP, over TLS and HTTPS, transfers them to secondaries, and
// notifies secondaries of changes.
//
// [Server] reads questions by hand, answers most of them with what it has packed before, and
// has the DNS library pack the rest. It never changes the registry, never recurses, and
// limits what it sends over UDP to an address that may be forged. It decides nothing about
// the content of zones.
package dnsd

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/datagram"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/trace"
)

// Options configure a Server. Zones and Now must be set.
type Options struct {
	Zones *publish.Zones
	Now   func() time.Time // must be the real time: connections end by it
	Log   *slog.Logger     // of what the operator should look into; nothing is logged if nil

	// Tracer records answers for which the registry is asked; nil: it is off.
	Tracer *trace.Tracer

	Sockets       int           // UDP sockets; 0: as many as there are processors to use
	CacheBytes    int           // for packed answers; 0: 256 MiB, of which it takes what it uses
	LookupTimeout time.Duration // after which the registry is no longer waited for; 0: 2 s

	// Lookups is how many questions of a UDP socket may wait for the registry at once,
	// while others are answered. 0: they are answered in turn, which is best if the
	// registry is on this machine.
	Lookups int

	// Identity is the name by which this server can be told from others that answer for the
	// same zones, for clients that ask (NSID, RFC 5001; id.server, RFC 4892); see
	// [CheckIdentity]. It is not told if it is empty.
	Identity string

	// Proxies are the networks from which every datagram and every connection begins with the
	// address of the client (PROXY protocol, version 2). The server does not accept that from
	// other addresses.
	Proxies []netip.Prefix

	// Tapped is the socket of a collector that is told of questions and answers, as dnstap
	// has it; see [Server.Tap]. There is no collector if it is empty.
	Tapped string

	// CookieSecrets are the keys of server cookies (RFC 9018). The first makes them, all
	// are believed. Servers that share an address must have the same. Without any the
	// server makes its own and changes it daily.
	CookieSecrets []CookieSecret

	// Signatures is how many answers of signed zones may be signed in a second; 0: 2000. What
	// was signed before is not counted, so this bounds what clients can cause that ask for
	// names that are made up.
	Signatures int

	// Transfer and Notify say which addresses zones are sent to, and are told of
	// changes, whatever secondaries namespaces name; nil: all. An owner of a namespace
	// must not be able to have the server send packets into its own network.
	Transfer, Notify *outbound.Rule

	// NotifyFrom are the addresses from which secondaries are told of changes, one for
	// IPv4 and one for IPv6 at most. Where there is none it is the first of that kind at
	// which the server listens.
	NotifyFrom []netip.Addr

	// CountZones says that answers are counted by zone; see [Server.ZoneAnswers].
	CountZones bool

	Rate      RateLimit
	TCP       TCPLimits
	Transfers TransferLimits
}

// TCPLimits bound what connections may use up. Zero fields stand for the numbers
// beside them.
type TCPLimits struct {
	Connections int           // at once; 1000. Beyond that, one makes room for a new one: see clients
	PerClient   int           // of them from one address, or one /64 network; 100
	Idle        time.Duration // how long one may wait for its next question; 10 s
	Message     time.Duration // how long the rest of a message, or the taking of an answer, may take; 5 s
	Total       time.Duration // how long one may last; 10 min
}

func (o *Options) fillIn() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Sockets = orElse(o.Sockets, runtime.GOMAXPROCS(0))
	o.CacheBytes = orElse(o.CacheBytes, 256<<20)
	o.LookupTimeout = orElse(o.LookupTimeout, 2*time.Second)
	o.Signatures = orElse(o.Signatures, 2000)
	o.Transfers.fillIn()
	o.TCP.Connections = orElse(o.TCP.Connections, 1000)
	o.TCP.PerClient = orElse(o.TCP.PerClient, 100)
	o.TCP.Idle = orElse(o.TCP.Idle, 10*time.Second)
	o.TCP.Message = orElse(o.TCP.Message, 5*time.Second)
	o.TCP.Total = orElse(o.TCP.Total, 10*time.Minute)
}

// orElse returns n, or instead if n is not positive.
func orElse[T int | time.Duration](n, instead T) T {
	if n > 0 {
		return n
	}
	return instead
}

// Server is an authoritative name server, on UDP and TCP, over TLS and HTTPS.
type Server struct {
	o       Options
	source  source
	cache   *cache
	serials *serials
	budget  *budget
	jar     *jar
	limiter *limiter

	faults, failures, sockets, unproxied, untapped complaint

	tap *tap // nil: there is no collector

	tcp     *tally // of all connections in clear
	tls     *tally // of all that are not
	https   *tally // of all requests
	clients *clients

	slots     chan struct{} // has one for each transfer under way
	transfers transferTally
	notices   noticeTally

	mu      sync.Mutex
	tallies []*tally
	addrs   []netip.AddrPort

	tlsAddrs []netip.AddrPort
	stops    []func() // each makes a socket's goroutine end once it has answered what it has read
	closed   bool
	running  sync.WaitGroup
	ended    sync.Once
	quit     context.CancelFunc // ends look-ups
	base     context.Context
}

// New makes a server. It answers once it listens.
func New(o Options) *Server { return newServer(o, published{o.Zones}) }

func newServer(o Options, from source) *Server {
	o.fillIn()
	now := o.Now()
	s := &Server{
		o: o, source: from,
		cache:   newCache(o.CacheBytes),
		serials: newSerials(from),
		budget:  newBudget(o.Signatures, now),
		jar:     newJar(o.CookieSecrets, now),
		limiter: newLimiter(o.Rate, now),
		clients: newClients(o.TCP, o.Now),
		slots:   make(chan struct{}, o.Transfers.AtOnce),
	}
	s.faults.text = "a message made the server fail; please report it"
	s.failures.text = "the registry could not be asked for an answer; clients are told to try again"
	s.tap = newTap(o.Tapped)
	s.untapped.text = "the collector of dnstap can't be told of questions; it is tried again"
	s.unproxied.text = "a proxy does not tell whom it asks for; what it sends is not answered"
	s.sockets.text = "a socket of the name server fails; it is tried again"
	s.base, s.quit = context.WithCancel(context.Background())
	s.tcp, s.tls, s.https = s.newTally(), s.newTally(), s.newTally()
	from.OnChange(s.forget)
	return s
}

// forget drops what is packed of names, and of the names above them: they exist as
// long as there is something below them. Without names it drops everything.
func (s *Server) forget(names []string) {
	if names == nil {
		s.cache.dropAll()
		return
	}
	s.cache.chains.Add(1)
	var buf [maxName]byte
	for _, name := range names {
		wire, ok := packName(buf[:0], name)
		if !ok {
			s.cache.dropAll() // it is not a name, so it can't be told what it is about
			return
		}
		for ; len(wire) > 1; wire = wire[1+int(wire[0]):] {
			s.cache.drop(s.cache.hash(wire))
		}
	}
}

// Listen opens an address, such as ":53" or "[::1]:0", for UDP and for TCP, and
// answers there until ctx ends or Shutdown is called. It returns once the sockets are
// open. It may be called for several addresses.
func (s *Server) Listen(ctx context.Context, addr string) error {
	l, err := s.open(ctx, addr)
	if err != nil {
		return &stele.Error{Op: "serve DNS", Kind: stele.Unavailable, Err: err}
	}
	if !s.start(l) {
		l.close()
		return &stele.Error{Op: "serve DNS", Kind: stele.Unavailable, Err: stele.Messagef("dns.name-server-shut-down", "the name server was shut down")}
	}
	context.AfterFunc(ctx, s.stop)
	return nil
}

// listener is an address that is open.
type listener struct {
	tcp net.Listener
	udp []*net.UDPConn
}

func (l *listener) close() {
	if l.tcp != nil {
		l.tcp.Close()
	}
	for _, c := range l.udp {
		c.Close()
	}
}

// open opens the sockets of an address. TCP comes first, since its port is shared with
// no other process: UDP sockets would be.
func (s *Server) open(ctx context.Context, addr string) (*listener, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	tries := 1
	if port == "0" || port == "" {
		tries = 20 // until a port is free for both
	}
	for ; ; tries-- {
		l := new(listener)
		var lc net.ListenConfig
		if l.tcp, err = lc.Listen(ctx, "tcp", addr); err != nil {
			return nil, err
		}
		l.udp, err = datagram.Open(ctx, l.tcp.Addr().String(), s.o.Sockets)
		if err == nil {
			return l, nil
		}
		l.close()
		if tries <= 1 {
			return nil, err
		}
	}
}

// start begins to answer at a listener, unless the server was shut down.
func (s *Server) start(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if a, ok := l.tcp.Addr().(*net.TCPAddr); ok {
		s.addrs = append(s.addrs, a.AddrPort())
	}
	s.stops = append(s.stops, func() { l.tcp.Close() })
	s.running.Go(func() {
		s.accept(l.tcp, s.tcp, func(c net.Conn, at *place) { s.serveTCP(c, at, peer{addr: at.from, tcp: true}, s.tcp) })
	})
	for _, c := range l.udp {
		t := new(tally)
		s.tallies = append(s.tallies, t)
		s.stops = append(s.stops, func() { c.SetReadDeadline(time.Unix(1, 0)) })
		s.running.Go(func() {
			defer c.Close()
			s.serveUDP(c, s.newWorker(s.base, t))
		})
	}
	return true
}

// Addr is the first address that is open, with its port; the zero AddrPort if there is
// none.
func (s *Server) Addr() netip.AddrPort { return firstAddr(s.Addrs()) }

// Addrs are the addresses that are open, with their ports, in the order in which they
// were opened.
func (s *Server) Addrs() []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.addrs)
}

func firstAddr(list []netip.AddrPort) netip.AddrPort {
	if len(list) == 0 {
		return netip.AddrPort{}
	}
	return list[0]
}

// stop makes everything that runs end once it has answered what it has read.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, stop := range s.stops {
		stop()
	}
	s.clients.stop()
}

func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Shutdown stops reading, lets what was read be answered, and returns when all is
// done. When ctx ends first it breaks off what is left and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		s.ended.Do(func() {
			s.quit()
			s.cache.close()
		})
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.quit()
		s.clients.cut()
		return ctx.Err()
	}
}
