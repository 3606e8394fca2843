package httpd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ServerOptions are the limits of a server. Where one is 0 the default holds, which its
// comment names.
type ServerOptions struct {
	HeaderTimeout time.Duration // for a request's head to arrive, from its first byte or the connection's beginning; 5 s
	ReadTimeout   time.Duration // for a whole request; 10 s
	WriteTimeout  time.Duration // for an answer to be taken; 30 s
	IdleTimeout   time.Duration // between two requests; 60 s
	HeaderBytes   int           // of a request's head, about; 16 KiB
	Connections   int           // at once; 10,000
	PerClient     int           // at once from one address (of IPv6, one network of 64 bits); without limit, since that address may be a proxy's
	Streams       int           // requests at once on one connection of HTTP/2; 100

	// FastRedirects answers plain requests for names over HTTP/1.1 without TLS by a path of the server's own, which is faster than
	// net/http ([fastPath]). The handler must be a [Handler], with others before it perhaps that write nothing or small answers. Now is the
	// clock then; it must be the system's, since deadlines of connections are made of it.
	FastRedirects bool
	Now           func() time.Time

	Proxies *Proxies // to which PerClient does not apply; none if nil

	Log *slog.Logger // of what an operator should look into; nothing is logged if nil
}

// Server is an [http.Server] that keeps its limits. Beyond the bound on connections
// it makes room: it closes one that waits for a request, of those that have waited
// long, and refuses the new one only if all are being answered.
type Server struct {
	*http.Server
	connections *connections
	fast        *fastPath // nil: net/http serves all
	prepare     sync.Once
}

// NewServer makes a server for a handler.
func NewServer(h http.Handler, o ServerOptions) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := newConnections(cmp.Or(o.Connections, 10_000), o.PerClient)
	c.exempt = o.Proxies.Trust
	c.mostStreams = int64(max(c.most, cmp.Or(o.Streams, 100)))
	s := &Server{connections: c, Server: &http.Server{
		Handler:           c.awaiting(h),
		ReadHeaderTimeout: cmp.Or(o.HeaderTimeout, 5*time.Second),
		ReadTimeout:       cmp.Or(o.ReadTimeout, 10*time.Second),
		WriteTimeout:      cmp.Or(o.WriteTimeout, 30*time.Second),
		IdleTimeout:       cmp.Or(o.IdleTimeout, time.Minute),
		MaxHeaderBytes:    max(cmp.Or(o.HeaderBytes, 16<<10)-slop, 1),
		ConnState:         c.changed,
		ConnContext:       c.context,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: cmp.Or(o.Streams, 100)},
		ErrorLog:          log.New(serverLog{o.Log}, "", 0),
	}}
	if o.FastRedirects && o.Now != nil {
		s.fast = &fastPath{s: s, now: o.Now, open: make(map[*fastConn]struct{})}
	}
	return s
}

// slop is what net/http adds to the limit of a head.
const slop = 4 << 10

// Serve answers the connections of a listener until [Server.Shutdown]. It
// always returns an error.
func (s *Server) Serve(l net.Listener) error {
	s.prepare.Do(s.watchHeads)
	bounded := s.connections.listen(l)
	if s.fast != nil {
		bounded = s.fast.listen(bounded)
	}
	return s.Server.Serve(bounded)
}

// Shutdown is [http.Server.Shutdown].
func (s *Server) Shutdown(ctx context.Context) error {
	if s.fast == nil {
		return s.Server.Shutdown(ctx)
	}
	s.fast.end(false)
	err := s.fast.wait(ctx) // net/http takes what is declined meanwhile
	return errors.Join(err, s.Server.Shutdown(ctx))
}

// Close is [http.Server.Close].
func (s *Server) Close() error {
	if s.fast != nil {
		s.fast.end(true)
	}
	return s.Server.Close()
}

// ServeTLS is Serve with TLS and HTTP/2. TLSConfig has the certificates. One server may serve
// both; TLSConfig is set before the first call then.
func (s *Server) ServeTLS(l net.Listener) error {
	s.prepare.Do(s.watchHeads)
	return s.Server.ServeTLS(s.connections.listen(l), "", "")
}

// Fresh returns how many connections have sent no whole request yet. [http.Server.Shutdown]
// closes those of them that are older than five seconds, whatever they are about to send;
// the caller of Shutdown waits for them first.
func (s *Server) Fresh() int { return int(s.connections.fresh.Load()) }

func (s *Server) watchHeads() { watchHeads(s.Server) }

// serverLog passes on what net/http says of the server itself. It leaves out messages about
// single connections, which have the addresses of visitors.
type serverLog struct{ log *slog.Logger }

var _ io.Writer = serverLog{}

func (l serverLog) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("http: Accept error")) {
		l.log.Warn("connections can't be accepted at present", "error", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}
