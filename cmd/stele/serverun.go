package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/web"
)

// server is a running server.
type server struct {
	*program
	*config.Config
	serveOptions
	schemes *stele.Schemes
	log     *slog.Logger
	logFile *logFile
	hangups chan os.Signal

	credential string // of the first administrator, if this run made one

	http         door         // for the public
	https        door         // for the public, with TLS; closed if nobody asked for it
	certificates certificates // that are shown there; nil if nobody asked for it
	dns          *dnsd.Server // of published zones; nil if nobody asked for it
	metrics      door         // for who looks after the server; closed if nobody asked for it
	site         door         // of the demo
	failed       chan error
	ending       atomic.Bool

	running   context.Context // until the server is to end
	numbers   *metrics
	gate      gate                       // before the public's requests
	costs     *limit.Rate                // of clients of the resolver
	held      *limit.Held                // answers that clients have not read
	turns     *limit.Turns               // to make large answers
	shift     atomic.Pointer[shift]      // who answers them now
	auditFile atomic.Pointer[audit.File] // to which the audit trail is appended; nil: none
	life      sync.Mutex                 // held while one shift takes over from another, or the server ends
}

// door is a listener, and the server behind it.
type door struct {
	listener net.Listener
	server   *http.Server
	front    *httpd.Server // the same, for the public; nil for others
	shared   bool          // another process has the socket too, and keeps it
	tls      bool          // it speaks TLS
}

// start makes the handlers, begins to answer and says where.
func (s *server) start(running context.Context, r *registry.Registry) error {
	if err := s.startDNS(r); err != nil {
		return err
	}
	s.running = running
	s.costs = limit.NewRate(s.CostRate, s.CostBurst)
	s.held = limit.NewHeld(s.MaxInFlight, s.MaxInFlightOne)
	s.turns = limit.NewTurns(answersAtOnce, answersWaiting, s.HeaderTimeout)
	s.numbers = newMetrics(s.ready)
	s.numbers.addHeld(s.held)
	if s.dns != nil {
		s.numbers.addDNS(func() *dnsd.Server { return s.shift.Load().dns })
	}
	if s.certificates != nil {
		s.numbers.addCertificates(s.certificates)
	}
	if err := s.beginShift(r); err != nil {
		return err
	}
	s.failed = make(chan error, 5)
	if err := s.openPublic(s.gate.before(s.answering), s.numbers); err != nil {
		return err
	}
	if s.metrics.listener != nil {
		server := s.newServer(s.numbers.handler(s.identifyForMetrics()), nil)
		server.WriteTimeout = 0 // a profile takes as long as it is asked to
		s.open(&s.metrics, server, server.Serve)
	}
	if s.demo {
		server := s.newServer(demoSite{resolver: s.http.url(), begun: s.now()}, nil)
		s.open(&s.site, server, server.Serve)
	}
	if s.certificates != nil {
		if err := s.certificates.manage(running); err != nil {
			return err
		}
	}
	s.openAccess(running, r)
	return s.announce()
}

// How many large answers are made at the same time, and how many wait for that. One takes
// a few tens of megabytes at most while it is made.
const answersAtOnce, answersWaiting = 8, 500

// identifyForMetrics returns what finds out who asks for metrics; nil if everybody may
// who reaches the address.
func (s *server) identifyForMetrics() func(*http.Request) (auth.Principal, error) {
	if !s.MetricsToken {
		return nil
	}
	return func(r *http.Request) (auth.Principal, error) { return identifyRequest(s.shift.Load().registry, r) }
}

// answers makes the handler that answers the public from a registry.
func (s *server) answers(f *shift) (http.Handler, error) {
	pages, err := web.New()
	if err != nil {
		return nil, err
	}
	r := f.registry
	o := httpd.Options{
		Resolver: r.Resolver, Registry: r.Registrar, Schemes: s.schemes, Pages: pages, Now: s.now, Log: s.log,
		Base: s.Base, OwnName: s.isOwnName, Host: s.Host, Global: s.Global, Ready: s.ready, Random: rand.IntN,
		Identify: func(q *http.Request) (auth.Principal, error) { return identifyRequest(r, q) }, Await: r.Await, API: s.api(f, pages),
		Costs: s.costs, Held: s.held, Turns: s.turns,
	}
	if s.Reverse {
		o.Pointing = r.Store.Pointing
	}
	if s.demo {
		o.Examples = demoExamples()
	}
	if f.dns != nil {
		o.DNS = f.dns.HTTPS()
	}
	if s.metrics.listener != nil {
		o.Observe = s.numbers.observe
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return httpd.New(o), nil
}

// openPublic begins to answer the public. One server has both its doors, so that
// its limits are for both together.
func (s *server) openPublic(handler http.Handler, numbers *metrics) error {
	proxies, err := httpd.NewProxies(s.TrustedProxies, httpd.ProxyHeader(s.ProxyHeader), s.log)
	if err != nil {
		return err
	}
	server := s.newServer(proxies.Before(s.front(handler)), proxies)
	server.ConnState = numbers.counted(server.ConnState)
	if s.https.listener != nil {
		server.TLSConfig = s.certificates.config()
		s.open(&s.https, server, server.ServeTLS)
	}
	s.open(&s.http, server, server.Serve)
	return nil
}

// front puts in front of the handler what happens to all requests.
func (s *server) front(next http.Handler) http.Handler {
	secure := httpd.Security{Redirect: s.RedirectHTTPS, Base: s.Base, OwnName: s.isOwnName, Remember: s.HSTS}
	if s.https.listener != nil {
		secure.Port = s.https.port()
	}
	next = secure.Before(next)
	if s.certificates != nil {
		next = s.certificates.before(next)
	}
	if s.LogRequests || s.LogAddresses {
		next = &requestLog{next: next, log: s.log, now: s.now, addresses: s.LogAddresses}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Whoever keeps a connection open is told to open another one, elsewhere,
		// before this one is closed.
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnName reports whether a name is one of this server's: that of the setting host, or
// one that it has certificates for.
func (s *server) isOwnName(name string) bool {
	if strings.EqualFold(name, s.Host) {
		return s.Host != ""
	}
	if s.certificates == nil {
		return false
	}
	return slices.ContainsFunc(s.certificates.names(), func(own string) bool { return strings.EqualFold(own, name) })
}

// newServer makes a server with the limits of the configuration.
func (s *server) newServer(handler http.Handler, proxies *httpd.Proxies) *httpd.Server {
	return httpd.NewServer(handler, httpd.ServerOptions{
		HeaderTimeout: s.HeaderTimeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout,
		HeaderBytes: int(s.MaxHeader), Connections: s.MaxConnections, PerClient: s.MaxPerClient, Proxies: proxies, Log: s.log,
	})
}

// open begins to answer at a door.
func (s *server) open(d *door, server *httpd.Server, serve func(net.Listener) error) {
	d.server, d.front = server.Server, server
	go func() {
		if err := serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
}

// announce says where the server answers: on standard output a line for each
// address, or one object.
func (s *server) announce() error {
	addresses := map[string]string{"http": s.http.url()}
	if s.https.listener != nil {
		addresses["https"] = s.https.url()
	}
	if s.metrics.listener != nil {
		addresses["metrics"] = s.metrics.url()
	}
	var dns, dnsTLS []string
	if s.dns != nil {
		dns, dnsTLS = texts(s.dns.Addrs()), texts(s.dns.AddrsTLS())
		addresses["dns"] = strings.Join(dns, ",")
	}
	if len(dnsTLS) > 0 {
		addresses["dns-tls"] = strings.Join(dnsTLS, ",")
	}
	s.log.Info("ready", "version", version, "data", s.place().String(), "http", addresses["http"], "https", addresses["https"], "dns", addresses["dns"], "dns-tls", addresses["dns-tls"], "metrics", addresses["metrics"])
	s.tell("READY=1")
	if s.json {
		return s.printObject(addresses)
	}
	lines := "serving " + addresses["http"] + "\n"
	if addresses["https"] != "" {
		lines += "serving " + addresses["https"] + "\n"
	}
	for _, address := range dns {
		lines += "dns " + address + "\n"
	}
	for _, address := range dnsTLS {
		lines += "dns-tls " + address + "\n"
	}
	if addresses["metrics"] != "" {
		lines += "metrics " + addresses["metrics"] + "/metrics\n"
	}
	_, err := fmt.Fprint(s.stdout, lines)
	return err
}

// noteAddress writes beside the lock of the folder where the server answers, so that a
// verb which finds the folder in use can say so.
func (s *server) noteAddress(r *registry.Registry) {
	if f, ok := r.Store.(*pebble.Store); ok {
		f.Serving(cmp.Or(s.Base, s.http.url()))
	}
}

// wait returns when running ends, or when a door can't be kept open.
func (s *server) wait(running context.Context) error {
	if s.demo && s.once {
		return s.tryDemo(running)
	}
	if s.demo && !s.json {
		printDemo(s.stdout, s.demoPlace(), s.data)
	}
	for {
		select {
		case <-running.Done():
			return nil
		case <-s.hangups:
			s.reload(running)
		case err := <-s.failed:
			return refuse("serve", stele.Unavailable, "the server can't go on: %v", err)
		}
	}
}

// reload opens the log anew and looks for newer certificates.
func (s *server) reload(ctx context.Context) {
	s.tell(reloading())
	if err := s.logFile.reopen(); err != nil {
		s.log.Error("the old log goes on", "error", err.Error())
	}
	if file := s.auditFile.Load(); file != nil {
		if err := file.Reopen(); err != nil {
			s.log.Error("the old audit file goes on", "error", err.Error())
		}
	}
	if s.certificates != nil {
		s.certificates.reload(ctx)
	}
	s.log.Info("reloaded")
	s.tell("READY=1")
}

// tell tells systemd, if it asks, what the server does.
func (s *server) tell(state string) {
	if err := notify(state); err != nil {
		s.log.Warn("systemd can't be told what the server does", "error", err)
	}
}

// lastCall is for how long connections that have begun are accepted, and clients
// that keep one open can ask once more and be told that it will be closed. A message
// takes about as long around the world.
const lastCall = 300 * time.Millisecond

// end ends the server without losing a request, unless patience ends before.
func (s *server) end(patient context.Context) error {
	s.ending.Store(true)
	s.log.Info("ending", "grace", s.Grace.String())
	s.tell("STOPPING=1")
	pause(patient, s.Drain)
	for _, d := range []*door{&s.http, &s.https} {
		if d.listener == nil || d.shared { // the next process needs it as it is
			continue
		}
		if err := refuseNew(d.listener); err != nil {
			s.log.Debug("connections that are in the making may be lost", "error", err)
		}
	}
	pause(patient, lastCall)
	ctx, cancel := context.WithTimeout(patient, s.Grace)
	defer cancel()
	s.awaitHeads(ctx)
	err := s.http.server.Shutdown(ctx)
	if err != nil {
		_ = s.http.server.Close() // the error is known
		err = refuse("serve", stele.Unavailable, "ended before all requests were answered; see grace in 'stele config list'")
	}
	s.life.Lock()
	defer s.life.Unlock()
	if s.dns != nil {
		err = errors.Join(err, s.endDNS(ctx))
	}
	for _, d := range []*door{&s.metrics, &s.site} {
		if d.server != nil {
			_ = d.server.Close() // nobody waits for an answer there
		}
	}
	s.log.Info("ended")
	return err
}

// awaitHeads waits until every connection that has begun is accepted and has sent a whole
// request, or had the time for it: what comes later than its header-timeout is not waited
// for. On a busy machine connections stand in the system's queue for long.
func (s *server) awaitHeads(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.HeaderTimeout)
	defer cancel()
	often := time.NewTicker(lastCall / 30)
	defer often.Stop()
	for ctx.Err() == nil {
		waiting := 0
		for _, d := range []*door{&s.http, &s.https} {
			if d.listener != nil && !d.shared {
				waiting += backlog(d.listener)
			}
			if d.front != nil {
				waiting += d.front.Fresh()
			}
		}
		if waiting == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-often.C:
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// closeListeners closes what was opened and may not have been served.
func (s *server) closeListeners() {
	for _, d := range []*door{&s.http, &s.https, &s.metrics, &s.site} {
		if d.listener != nil {
			_ = d.listener.Close() // again, perhaps
		}
	}
}
