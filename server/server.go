// Package server is one running server: its listeners, TLS, systemd, logs, metrics and
// memory limit, the handlers that answer from an open registry, and the work that goes on
// beside them. It ends without losing a request, and puts a backup in the place of its
// registry while clients wait.
//
// It never reads flags and prints nothing for people: the program that calls [Run] does.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/bulk/deposit"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/hdld"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/transparency"
	"github.com/stele-id/stele/transparency/witness"
	"github.com/stele-id/stele/usage"
)

// Options are how a server is run.
type Options struct {
	Config  *config.Config // the settings
	Schemes *stele.Schemes
	Version string // of the program

	// Place is where the registry is, and Open how it is opened. Run sets its log, its
	// options of the resolver, and the rules for secondaries.
	Place registry.Place
	Open  registry.OpenOptions

	Stderr  io.Writer        // for the log where the settings name no file
	Hangups <-chan os.Signal // on each the log is opened anew, and newer certificates are read

	// MakeSecretKey says that a registry without a secret key gets one.
	MakeSecretKey bool

	// AnyPort are the names of settings whose address may be replaced by a free port of this
	// machine if another program uses it.
	AnyPort []string

	// OwnAddress says that the address of the HTTP listener is a host of the resolver's own.
	OwnAddress bool

	Examples []httpd.Example // that the home page shows

	// Prepare, if it is not nil, is called with the open registry before the server answers
	// from it. At has the address of the HTTP listener only.
	Prepare func(ctx context.Context, r *registry.Registry, at Addresses) error

	// FirstAccess is called with the URL of a link that signs the first administrator in to the
	// desk once, if this server made that user. It must be shown to the operator, and not be
	// logged.
	FirstAccess func(user, link string)

	// Frozen says that the registry is a frozen archive: nothing writes to it, and no user can sign in; nil: it is not.
	Frozen *Frozen

	// Demo is the user whom a visitor of the desk on this machine may sign in as with one click;
	// "": none.
	Demo string

	// Ready is called when the server answers.
	Ready func(at Addresses) error

	// While, if it is not nil, is called after Ready, and the server ends when it returns.
	While func(ctx context.Context) error
}

// Addresses are where a server answers.
type Addresses struct {
	HTTP, HTTPS, Metrics string   // URLs; "" if it does not listen there
	DNS, DNSTLS, Handle  []string // addresses with ports
}

// server is a running server.
type server struct {
	*config.Config
	o       Options
	now     func() time.Time
	schemes *stele.Schemes
	log     *slog.Logger
	logFile *logFile
	tracing // of requests

	notify, transfer outbound.Rule // where secondaries may be
	linkRule         outbound.Rule // where targets may be that are checked
	harvestRule      outbound.Rule
	witnessRule      outbound.Rule // where witnesses may be
	witnesses        []witness.Target
	heirRule         outbound.Rule // where heirs of namespaces may be
	deposits         []deposit.Entry
	linkRules        *LinkRules

	http         listener      // for the public
	https        listener      // for the public, with TLS
	certificates certificates  // that are shown there; nil without https
	dns          *dnsd.Server  // of published zones; nil without the setting dns
	hdl          *handleServer // of the Handle protocol; nil without the setting hdl
	metrics      listener      // for operators
	failed       chan error
	ending       atomic.Bool

	running    context.Context // until the server is to end
	numbers    *metrics
	pause      pause                      // before the public's requests
	costs      *limit.Rate                // of clients of the resolver
	held       *limit.Held                // answers that clients have not read
	turns      *limit.Turns               // to make large answers
	issuers    []*issuer.Issuer           // through which users sign in
	transport  *mail.Transport            // of mail; nil: no mail is sent
	agents     *usage.Agents              // what user agents are; nil: use is not counted
	countries  *usage.Countries           // of readers; nil: countries are not counted
	generation atomic.Pointer[generation] // that answers now
	auditFile  atomic.Pointer[audit.File] // to which the audit trail is appended; nil: none
	life       sync.Mutex                 // held while a generation follows another, or the server ends
}

// Run serves until ctx ends. Then it answers the requests that it has, until they are
// answered or hurry ends.
func Run(ctx, hurry context.Context, o Options) error {
	c := o.Config
	if o.Frozen != nil {
		c = frozenSettings(c)
	}
	file, err := openLog(c.LogFile, o.Stderr)
	if err != nil {
		return err
	}
	defer file.close()
	s := &server{Config: c, o: o, now: o.Open.Now, schemes: o.Schemes, logFile: file, log: newLog(file, &c.Values), tracing: tracing{ids: newIDs()}}
	defer waitToCollect(c.Cache, s.release)()
	return s.traced(ctx, hurry)
}

// run serves until ctx ends.
func (s *server) run(ctx, hurry context.Context) (err error) {
	if err := s.allowSecondaries(); err != nil {
		return err
	}
	if err := s.openOutside(); err != nil {
		return err
	}
	if err := s.openLinks(); err != nil {
		return err
	}
	if err := s.openEscrow(); err != nil {
		return err
	}
	if err := s.openWitnesses(); err != nil {
		return err
	}
	if err := s.openAgents(); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	defer s.closeListeners()
	r, err := s.openRegistry(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return refuse("serve", stele.Unavailable, "server.interrupted-before-open", "interrupted before the registry was open")
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, s.closeLast(r)) }()
	s.removeLeft()
	s.warnWide()
	if lacking != "" {
		s.log.Warn(lacking, "system", runtime.GOOS)
	}
	if s.o.Frozen == nil {
		s.warnSealed(ctx, r)
		s.readySecrets(ctx, r)
	}
	if s.o.Prepare != nil {
		if err := s.o.Prepare(auth.With(ctx, auth.Local()), r, Addresses{HTTP: s.http.url()}); err != nil {
			return err
		}
	}
	if s.certificates, err = s.openCertificates(); err != nil {
		return err
	}
	if s.certificates != nil {
		defer s.certificates.close()
	}
	if err := s.start(ctx, r); err != nil {
		if s.dns != nil {
			_ = s.dns.Shutdown(ctx) // no client waits for an answer yet
		}
		if s.hdl != nil {
			_ = s.endHandle(ctx)
		}
		return err
	}
	err = s.wait(ctx)
	return errors.Join(err, s.end(hurry))
}

// openOutside prepares to sign users in through issuers, and to send mail.
func (s *server) openOutside() error {
	if s.o.Frozen != nil {
		return nil
	}
	if err := s.openIssuers(); err != nil {
		return err
	}
	return s.openMail()
}

// openRegistry opens the registry.
func (s *server) openRegistry(ctx context.Context) (*registry.Registry, error) {
	o := s.o.Open
	o.Log, o.Resolver, o.Notify, o.Transfer = s.log, s.resolverOptions(), &s.notify, &s.transfer
	o.OnHost = func(host string) { s.log.Info("a PURL host is kept in the registry from now on", "host", host) }
	return registry.Open(ctx, s.o.Place, s.schemes, o)
}

// resolverOptions returns the options of the resolver.
func (s *server) resolverOptions() resolver.Options {
	o := resolver.Options{
		CacheBytes:    uint64(s.Cache),
		RedirectBytes: uint64(s.RedirectCache),
		DefaultTTL:    uint32(s.TTL / time.Second),
		DefaultStatus: s.Status,
	}
	if origins, err := resolver.NewOrigins(s.Origins, s.OriginURL); err == nil { // the settings were judged when they were read
		o.Origins = origins
	}
	if s.Host != "" {
		o.Hosts = append(o.Hosts, s.Host)
	}
	if base, err := url.Parse(s.Base); err == nil && base.Host != "" {
		o.Hosts = append(o.Hosts, base.Host)
	}
	if s.o.OwnAddress {
		if here, err := url.Parse(s.http.url()); err == nil {
			o.Hosts = append(o.Hosts, here.Host)
		}
	}
	return o
}

// ready reports whether the server can do all that it should. A server that shares its
// registry with others is ready as long as it can read: if it can't write at present, the
// others can't either.
func (s *server) ready(ctx context.Context) error {
	if s.ending.Load() {
		return &stele.Error{Op: "serve", Kind: stele.Unavailable, Err: stele.Messagef("server.ending", "the server is about to end; ask another one")}
	}
	r := s.generation.Load().registry
	if r.Follower != nil {
		return r.Follower.Ready()
	}
	err := r.Store.Ready(ctx)
	if errors.Is(err, stele.ErrSealed) {
		return nil // a sealed registry is read only on purpose
	}
	return err
}

// warnSealed says that nothing will be written.
func (s *server) warnSealed(ctx context.Context, r *registry.Registry) {
	if reason, err := r.Store.Sealed(ctx); err == nil && reason != "" {
		s.log.Warn("the registry is sealed: names are resolved, and nothing is written", "registry", s.o.Place.String(), "reason", reason)
	}
}

// start makes the handlers, begins to answer and says where.
func (s *server) start(running context.Context, r *registry.Registry) error {
	if err := s.startDNS(r); err != nil {
		return err
	}
	if err := s.startHandle(r); err != nil {
		return err
	}
	s.running = running
	s.costs = limit.NewRate(s.CostRate, s.CostBurst)
	s.held = limit.NewHeld(s.MaxInFlight, s.MaxInFlightOne)
	s.turns = limit.NewTurns(answersAtOnce, answersWaiting, s.HeaderTimeout)
	s.numbers = newMetrics(s.o.Version, s.ready)
	s.numbers.addHeld(s.held)
	s.numbers.addTracing(s.tracing)
	s.numbers.addSearch(s.searchStatus)
	s.numbers.addRegistry(s.picture, s.dns != nil)
	if s.Log {
		s.numbers.addLog(func() *transparency.Log { return s.generation.Load().registry.Log }, s.now)
	}
	if len(s.deposits) > 0 {
		s.numbers.addDeposits(func() *registry.Registry { return s.generation.Load().registry })
	}
	if s.Usage {
		s.numbers.addUsage(s.usageStats)
	}
	if s.dns != nil {
		s.numbers.addDNS(func() *dnsd.Server { return s.generation.Load().dns })
	}
	if s.hdl != nil {
		s.numbers.addHandle(func() hdld.Stats { return s.generation.Load().hdl.Stats() })
	}
	if s.certificates != nil {
		s.numbers.addCertificates(s.certificates)
	}
	if err := s.beginGeneration(r); err != nil {
		return err
	}
	s.failed = make(chan error, 5)
	if err := s.openPublic(s.pause.before(s.answering), s.numbers); err != nil {
		return err
	}
	if s.metrics.Listener != nil {
		server := s.newServer(s.named(s.numbers.handler(s.identifyForMetrics())), nil)
		server.WriteTimeout = 0 // a profile takes as long as it is asked to
		s.open(&s.metrics, server, server.Serve)
	}
	if s.certificates != nil {
		if err := s.certificates.manage(running); err != nil {
			return err
		}
	}
	if s.o.Frozen == nil {
		s.openAccess(running, r)
	}
	return s.announce()
}

// How many large answers are made at the same time, and how many requests wait for that. An
// answer takes a few tens of megabytes at most while it is made.
const answersAtOnce, answersWaiting = 8, 500

// identifyForMetrics returns what authenticates a client that asks for metrics; nil if
// every client that reaches the address may have them.
func (s *server) identifyForMetrics() func(*http.Request) (auth.Principal, error) {
	if !s.MetricsToken {
		return nil
	}
	return func(r *http.Request) (auth.Principal, error) { return identifyRequest(s.generation.Load().registry, r) }
}

// openPublic begins to answer the public. One server has both listeners, so that its
// limits hold for both together.
func (s *server) openPublic(handler http.Handler, numbers *metrics) error {
	proxies, err := httpd.NewProxies(s.TrustedProxies, httpd.ProxyHeader(s.ProxyHeader), s.log)
	if err != nil {
		return err
	}
	server := s.newServer(proxies.Before(s.front(handler)), proxies)
	server.ConnState = numbers.counted(server.ConnState)
	if s.https.Listener != nil {
		server.TLSConfig = s.certificates.config()
		if s.HandleCerts {
			server.TLSConfig.ClientAuth = tls.RequestClientCert // whether it proves anything is judged later
		}
		s.open(&s.https, server, server.ServeTLS)
	}
	s.open(&s.http, server, server.Serve)
	return nil
}

// front puts in front of the handler what happens to all requests.
func (s *server) front(next http.Handler) http.Handler {
	secure := httpd.Security{Redirect: s.RedirectHTTPS, Base: s.Base, OwnName: s.isOwnName, Remember: s.HSTS}
	if s.https.Listener != nil {
		secure.Port = s.https.port()
	}
	next = secure.Before(next)
	if s.certificates != nil {
		next = s.certificates.before(next)
	}
	if s.LogRequests || s.LogAddresses {
		next = &requestLog{next: next, log: s.log, now: s.now, ids: s.ids.Request, addresses: s.LogAddresses}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server tells a client that keeps a connection open to open another one,
		// elsewhere, before it closes this one.
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnName reports whether a name is one of this server's own: that of the setting host,
// or one that it has certificates for.
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
		FastRedirects: s.FastRedirects && proxies != nil, Now: s.now,
	})
}

// open begins to answer at a listener.
func (s *server) open(d *listener, server *httpd.Server, serve func(net.Listener) error) {
	d.server, d.front = server.Server, server
	go func() {
		if err := serve(d.Listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
}

// announce says that the server answers, and where.
func (s *server) announce() error {
	at := Addresses{HTTP: s.http.url(), HTTPS: s.https.url(), Metrics: s.metrics.url()}
	if s.dns != nil {
		at.DNS, at.DNSTLS = texts(s.dns.Addrs()), texts(s.dns.AddrsTLS())
	}
	if s.hdl != nil {
		at.Handle = texts(s.hdl.Addrs())
	}
	s.log.Info("ready", "version", s.o.Version, "data", s.o.Place.String(), "http", at.HTTP, "https", at.HTTPS, "dns", strings.Join(at.DNS, ","), "dns-tls", strings.Join(at.DNSTLS, ","), "hdl", strings.Join(at.Handle, ","), "metrics", at.Metrics)
	s.tell("READY=1")
	return s.o.Ready(at)
}

// noteAddress writes the server's address beside the lock of the folder, so that a
// command which finds the folder in use can name it.
func (s *server) noteAddress(r *registry.Registry) {
	if f, ok := r.Store.(*pebble.Store); ok {
		f.Serving(cmp.Or(s.Base, s.http.url()))
	}
}

// wait returns when ctx ends, or when a listener can't be kept open.
func (s *server) wait(ctx context.Context) error {
	if s.o.While != nil {
		return s.o.While(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.o.Hangups:
			s.reload(ctx)
		case err := <-s.failed:
			return refuse("serve", stele.Unavailable, "server.failed", "the server can't go on: {cause}", err)
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

// tell notifies systemd, if it asks, of the server's state.
func (s *server) tell(state string) {
	if err := notify(state); err != nil {
		s.log.Warn("systemd can't be told what the server does", "error", err)
	}
}

// lastCall is for how long the server accepts connections that have begun, and lets clients
// that keep one open ask once more and learn that it will be closed. A message takes about as
// long around the world.
const lastCall = 300 * time.Millisecond

// end ends the server without losing a request, unless hurry ends before.
func (s *server) end(hurry context.Context) error {
	s.ending.Store(true)
	s.log.Info("ending", "grace", s.Grace.String())
	s.tell("STOPPING=1")
	sleep(hurry, s.Drain)
	for _, d := range []*listener{&s.http, &s.https} {
		if d.Listener == nil || d.shared { // the next process uses the same socket
			continue
		}
		if err := refuseNew(d.Listener); err != nil {
			s.log.Debug("connections that are in the making may be lost", "error", err)
		}
	}
	sleep(hurry, lastCall)
	ctx, cancel := context.WithTimeout(hurry, s.Grace)
	defer cancel()
	s.awaitHeads(ctx)
	err := s.http.front.Shutdown(ctx)
	if err != nil {
		_ = s.http.front.Close() // the error is known
		err = refuse("serve", stele.Unavailable, "server.ended-before-answers", "ended before all requests were answered; see grace in 'stele config list'")
	}
	s.life.Lock()
	defer s.life.Unlock()
	if s.dns != nil {
		err = errors.Join(err, s.endDNS(ctx))
	}
	if s.hdl != nil {
		err = errors.Join(err, s.endHandle(ctx))
	}
	if s.metrics.server != nil {
		_ = s.metrics.server.Close() // an operator asks again
	}
	s.log.Info("ended")
	return err
}

// awaitHeads waits until every connection that has begun is accepted and has sent a whole
// request, or its header-timeout has passed. On a busy machine connections stand in the
// system's queue for long.
func (s *server) awaitHeads(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.HeaderTimeout)
	defer cancel()
	often := time.NewTicker(lastCall / 30)
	defer often.Stop()
	for ctx.Err() == nil {
		waiting := 0
		for _, d := range []*listener{&s.http, &s.https} {
			if d.Listener != nil && !d.shared {
				waiting += backlog(d.Listener)
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

// closeListeners closes the listeners that were opened and may not have been served.
func (s *server) closeListeners() {
	for _, d := range []*listener{&s.http, &s.https, &s.metrics} {
		if d.Listener != nil {
			_ = d.Close() // again, perhaps
		}
	}
}

// refuse makes an error of the server.
func refuse(op string, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
}
