package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
)

// serveOptions are the flags of serve that are no settings.
type serveOptions struct {
	config string
	demo   bool
	once   bool
}

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer the web and the DNS: names lead to what they stand for",
		Long: `Serve opens the registry and answers over HTTP: whoever asks for a name, in any
spelling, is sent to what it stands for. It prints the addresses at which it answers
when it is ready to, and logs on standard error.

With --store the registry is in a PostgreSQL database, which 'stele store migrate' has
made ready, and several servers may answer from it.

With --https it speaks TLS and HTTP/2 too. The certificate comes from files, which are
read again when they change, or by ACME from a CA such as Let's Encrypt.

Settings come from flags, from the environment (--log-level is STELE_LOG_LEVEL) and
from the file that --config names; 'stele config list' has them all.

On SIGTERM, or Ctrl-C, it ends without losing a request: /readyz says 503, no new
connections are taken, and requests under way are answered. A second signal ends it
at once. On SIGHUP it opens its log file anew and looks for newer certificates.

With --demo it fills a temporary registry with names of all kinds, and prints what
to try. Nothing of that needs a network.`,
		Example: `  stele serve
  stele serve --store postgres://stele@db1,db2,db3/stele?target_session_attrs=read-write
  stele serve --data /var/lib/stele --http :80 --base https://id.example.org --metrics 127.0.0.1:9180
  stele serve --http :80 --https :443 --acme-domain id.example.org --redirect-https
  stele serve --config /etc/stele/stele.toml --log-format json
  stele serve --demo`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.once && !o.demo {
				return misuse(cmd, "--once goes with --demo")
			}
			return p.serve(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", os.Getenv(configVariable), "configuration `file` in TOML (environment: STELE_CONFIG)")
	flags.BoolVar(&o.demo, "demo", false, "serve a small registry of examples, and print what to try")
	flags.BoolVar(&o.once, "once", false, "with --demo: try everything, print commands and answers, and end")
	settingFlags(cmd, "data", "store", "purl-host", "checked", "secret-key-file")
	// These are completed as files.
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	return neverFiles(cmd)
}

// serve is the verb.
func (p *program) serve(cmd *cobra.Command, o serveOptions) error {
	c := config.Load(o.config, os.Environ(), givenSettings(cmd.Flags()))
	for _, q := range slices.Concat(c.Problems, c.Warnings) {
		fmt.Fprintln(p.stderr, q)
	}
	if err := configError(c); err != nil {
		return err
	}
	if o.demo {
		if c.Origin("store") == config.Flag {
			return misuse(cmd, "the demo has a folder of its own; leave --store out")
		}
		forDemo(c)
	}
	p.create, p.named = true, c.Origin("data") != config.Default || o.demo
	p.data, p.store, p.config.PURLHosts, p.config.CheckedShoulders = c.Data, c.Store, c.PURLHosts, c.Checked
	p.secretFile = c.SecretKeyFile
	p.settleSecrets()
	if c.Host != "" && !slices.Contains(p.config.PURLHosts, c.Host) {
		p.config.PURLHosts = append(slices.Clone(p.config.PURLHosts), c.Host)
	}
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	file, err := openLog(c.LogFile, p.stderr)
	if err != nil {
		return err
	}
	defer file.close()
	s := &server{program: p, Config: c, serveOptions: o, schemes: schemes, logFile: file, log: newLog(file, &c.Values)}
	defer waitToCollect(c.Cache)()
	s.hangups = make(chan os.Signal, 1)
	signal.Notify(s.hangups, syscall.SIGHUP)
	defer signal.Stop(s.hangups)
	running, patient, stop := endings(cmd.Context())
	defer stop()
	return s.run(running, patient)
}

// endings returns two contexts: the first signal to end, SIGTERM or Ctrl-C, ends
// one, and the second signal the other. A third one kills the process as usual.
func endings(parent context.Context) (running, patient context.Context, stop func()) {
	running, stopRunning := context.WithCancel(parent)
	patient, stopPatient := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, end := range []func(){stopRunning, stopPatient} {
			select {
			case <-signals:
				end()
			case <-done:
				return
			}
		}
		signal.Stop(signals)
	}()
	return running, patient, func() {
		signal.Stop(signals)
		close(done)
		stopRunning()
		stopPatient()
	}
}

// run serves until running ends.
func (s *server) run(running, patient context.Context) (err error) {
	if s.demo {
		// A folder that the environment names for every day is not meant.
		remove, err := s.demoFolder(s.Origin("data") == "flag")
		if err != nil {
			return err
		}
		defer remove()
		if err := s.demoSecrets(); err != nil {
			return err
		}
	}
	if err := s.allowSecondaries(); err != nil {
		return err
	}
	if err := s.listen(running); err != nil {
		return err
	}
	defer s.closeListeners()
	r, err := s.openRegistry(running, s.schemes, s.log, s.resolverOptions())
	switch {
	case err != nil && running.Err() != nil:
		return refuse("serve", stele.Unavailable, "interrupted before the registry was open")
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, s.closeLast(r)) }()
	s.removeLeft()
	s.warnWide()
	s.warnSealed(running, r)
	s.readySecrets(running, r, s.log)
	if s.demo {
		if err := seedDemo(auth.With(running, auth.Local()), r, "http://"+s.site.local(), s.http.local()); err != nil {
			return err
		}
	}
	if s.certificates, err = s.openCertificates(); err != nil {
		return err
	}
	if s.certificates != nil {
		defer s.certificates.close()
	}
	if err := s.start(running, r); err != nil {
		if s.dns != nil {
			_ = s.dns.Shutdown(running) // it answers nobody yet who would mind
		}
		return err
	}
	err = s.wait(running)
	return errors.Join(err, s.end(patient))
}

// resolverOptions returns what the resolver is told.
func (s *server) resolverOptions() resolver.Options {
	o := resolver.Options{
		CacheBytes:    uint64(s.Cache),
		LeadBytes:     uint64(s.RedirectCache),
		DefaultTTL:    uint32(s.TTL / time.Second),
		DefaultStatus: s.Status,
	}
	if s.Host != "" {
		o.Hosts = append(o.Hosts, s.Host)
	}
	if base, err := url.Parse(s.Base); err == nil && base.Host != "" {
		o.Hosts = append(o.Hosts, base.Host)
	}
	if s.demo {
		if here, err := url.Parse(s.http.url()); err == nil {
			o.Hosts = append(o.Hosts, here.Host)
		}
	}
	return o
}

// ready says whether the server can do all that it should. One that shares its registry
// with others is ready as long as it can read: if nobody can write at present, the others
// can't either.
func (s *server) ready(ctx context.Context) error {
	if s.ending.Load() {
		return &stele.Error{Op: "serve", Kind: stele.Unavailable, Err: errors.New("the server is about to end; ask another one")}
	}
	r := s.shift.Load().registry
	if r.Follower != nil {
		return r.Follower.Ready()
	}
	err := r.Store.Ready(ctx)
	if errors.Is(err, stele.ErrSealed) {
		return nil // it is meant to be read only, and to be read
	}
	return err
}

// warnSealed says that nothing will be written.
func (s *server) warnSealed(ctx context.Context, r *registry.Registry) {
	if reason, err := r.Store.Sealed(ctx); err == nil && reason != "" {
		s.log.Warn("the registry is sealed: names are resolved, and nothing is written", "registry", s.place().String(), "reason", reason)
	}
}

// listen opens the sockets, or takes those that systemd opened.
func (s *server) listen(ctx context.Context) error {
	given, err := handedOver()
	if err != nil {
		return err
	}
	if err := s.http.listen(ctx, given["http"], s.HTTP); err != nil {
		// The demo takes another port if nobody asked for this one.
		if !s.demo || s.Origin("http") != config.Default {
			return err
		}
		if err := s.http.listen(ctx, nil, demoAnyPort); err != nil {
			return err
		}
	}
	for _, other := range []struct {
		*door
		given   net.Listener
		address string
		wanted  bool
	}{
		{&s.https, given["https"], s.HTTPS, s.HTTPS != ""},
		{&s.metrics, given["metrics"], s.Metrics, s.Metrics != "" || given["metrics"] != nil},
	} {
		if !other.wanted {
			continue
		}
		if err := other.listen(ctx, other.given, other.address); err != nil {
			s.closeListeners()
			return err
		}
	}
	if s.demo {
		if err := s.listenSite(ctx); err != nil {
			s.closeListeners()
			return err
		}
	}
	s.https.tls = true
	return nil
}

// listenSite opens the socket of the demo's publisher: at the port that the documents show
// if the demo itself is at the one that they show, and if it is free.
func (s *server) listenSite(ctx context.Context) error {
	if s.http.listener.Addr().String() == demoAddress {
		if err := s.site.listen(ctx, nil, demoSiteAddress); err == nil {
			return nil
		}
	}
	return s.site.listen(ctx, nil, demoAnyPort)
}

// listen opens a socket, unless it is given.
func (d *door) listen(ctx context.Context, given net.Listener, address string) (err error) {
	if given != nil {
		d.listener, d.shared = given, true
		return nil
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // such a socket takes no filter; see refuseNew
	d.listener, err = config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return refuse("serve", stele.Unavailable, "another program listens on %s; end it, or choose another address", address)
	case errors.Is(err, syscall.EACCES):
		return refuse("serve", stele.Forbidden, "only an administrator may listen on %s; choose a port from 1024 on, or let systemd open the socket", address)
	case err != nil:
		return refuse("serve", stele.Unavailable, "listening on %s: %v", address, err)
	}
	return nil
}

// local returns host and port of the door by the name that every machine has for
// itself.
func (d *door) local() string {
	_, port, _ := net.SplitHostPort(d.listener.Addr().String()) // a listener's has one
	return net.JoinHostPort("localhost", port)
}

// url returns the address of the door for a client on this machine.
func (d *door) url() string {
	address, ok := d.listener.Addr().(*net.TCPAddr)
	if !ok {
		return d.listener.Addr().String()
	}
	host := "localhost"
	if !address.IP.IsUnspecified() {
		host = address.IP.String()
	}
	if d.tls {
		return "https://" + net.JoinHostPort(host, fmt.Sprint(address.Port))
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(address.Port))
}
