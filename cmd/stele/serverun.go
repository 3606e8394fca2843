package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/web"
)

// server is a running server.
type server struct {
	*program
	*configuration
	serveOptions
	schemes *stele.Schemes
	log     *slog.Logger

	http    door         // for the public
	dns     *dnsd.Server // of published zones; nil if nobody asked for it
	metrics door         // for who looks after the server; closed if nobody asked for it
	site    door         // of the demo
	failed  chan error
	ending  atomic.Bool
}

// door is a listener, and the server behind it.
type door struct {
	listener net.Listener
	server   *http.Server
	shared   bool // another process has the socket too, and keeps it
}

// start makes the handlers, begins to answer and says where.
func (s *server) start(r *registry) error {
	pages, err := web.New()
	if err != nil {
		return err
	}
	ready := func(ctx context.Context) error { return s.ready(ctx, r.store) }
	o := httpd.Options{
		Resolver: r.resolver, Registry: r.registrar, Schemes: s.schemes, Pages: pages, Now: s.now, Log: s.log,
		Base: s.Base, Host: s.Host, Global: s.Global, Ready: ready, Random: rand.IntN,
	}
	if s.Reverse {
		o.Pointing = r.store.Pointing
	}
	if s.demo {
		o.Examples = demoExamples()
	}
	if err := s.startDNS(r); err != nil {
		return err
	}
	numbers := newMetrics(ready)
	if s.dns != nil {
		numbers.addDNS(s.dns)
	}
	if s.metrics.listener != nil {
		o.Observe = numbers.observe
	}
	if err := o.Validate(); err != nil {
		return err
	}
	s.failed = make(chan error, 3)
	s.open(&s.http, s.front(httpd.New(o)), func(server *http.Server) { server.ConnState = numbers.counted(server.ConnState) })
	if s.metrics.listener != nil {
		// A profile takes as long as it is asked to.
		s.open(&s.metrics, numbers.handler(), func(server *http.Server) { server.WriteTimeout = 0 })
	}
	if s.demo {
		s.open(&s.site, demoSite{resolver: s.http.url(), begun: s.now()}, func(*http.Server) {})
	}
	return s.announce()
}

// front puts in front of the handler what happens to all requests.
func (s *server) front(next http.Handler) http.Handler {
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

// open begins to answer at a door, with a server that differs from the others as
// differ makes it.
func (s *server) open(d *door, handler http.Handler, differ func(*http.Server)) {
	server := httpd.NewServer(handler, httpd.ServerOptions{
		HeaderTimeout: s.HeaderTimeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout,
		HeaderBytes: int(s.MaxHeader), Connections: s.MaxConnections, PerClient: s.MaxPerClient, Log: s.log,
	})
	differ(server.Server)
	d.server = server.Server
	go func() {
		if err := server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
}

// announce says where the server answers: on standard output a line for each
// address, or one object.
func (s *server) announce() error {
	addresses := map[string]string{"http": s.http.url()}
	if s.metrics.listener != nil {
		addresses["metrics"] = s.metrics.url()
	}
	if s.dns != nil {
		addresses["dns"] = s.dns.Addr().String()
	}
	s.log.Info("ready", "version", version, "data", s.data, "http", addresses["http"], "dns", addresses["dns"], "metrics", addresses["metrics"])
	if err := notify("READY=1"); err != nil {
		s.log.Warn("systemd can't be told that the server is ready", "error", err)
	}
	if s.json {
		return s.printObject(addresses)
	}
	lines := "serving " + addresses["http"] + "\n"
	if addresses["dns"] != "" {
		lines += "dns " + addresses["dns"] + "\n"
	}
	if addresses["metrics"] != "" {
		lines += "metrics " + addresses["metrics"] + "/metrics\n"
	}
	_, err := fmt.Fprint(s.stdout, lines)
	return err
}

// wait returns when running ends, or when a door can't be kept open.
func (s *server) wait(running context.Context) error {
	if s.demo && s.once {
		return s.tryDemo(running)
	}
	if s.demo && !s.json {
		printDemo(s.stdout, s.demoPlace(), s.data)
	}
	select {
	case <-running.Done():
		return nil
	case err := <-s.failed:
		return refuse("serve", stele.Unavailable, "the server can't go on: %v", err)
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
	if err := notify("STOPPING=1"); err != nil {
		s.log.Warn("systemd can't be told that the server ends", "error", err)
	}
	pause(patient, s.Drain)
	if !s.http.shared { // the next process needs it as it is
		if err := refuseNew(s.http.listener); err != nil {
			s.log.Debug("connections that are in the making may be lost", "error", err)
		}
	}
	pause(patient, lastCall)
	ctx, cancel := context.WithTimeout(patient, s.Grace)
	defer cancel()
	err := s.http.server.Shutdown(ctx)
	if err != nil {
		_ = s.http.server.Close() // the error is known
		err = refuse("serve", stele.Unavailable, "ended before all requests were answered; see grace in 'stele config list'")
	}
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
	for _, d := range []*door{&s.http, &s.metrics, &s.site} {
		if d.listener != nil {
			_ = d.listener.Close() // again, perhaps
		}
	}
}
