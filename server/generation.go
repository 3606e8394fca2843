package server

import (
	"math/rand/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/docs"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/serve/desk"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/serve/httpd/ezid"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/documents"
	"github.com/stele-id/stele/web/language"

	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/mail/digest"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/usage"
)

// generation is all that works on one open registry: the handlers and the background work.
// When a restore replaces the registry, another generation begins.
type generation struct {
	registry *registry.Registry
	jobs     *job.Board
	mail     *mail.Queue    // nil: no mail is sent
	digests  *digest.Sender // nil: none is sent
	links    *check.Checker
	usage    *usage.Counter // nil: use is not counted

	countedAll countedAll
	uploads    *usage.Uploads // nil: use is not counted
	handler    http.Handler   // answers the public
	dns        *dnsd.Server   // nil without the setting dns
	hdl        *handleServer  // nil without the setting hdl
	survey     *surveyor
	ending     chan struct{} // closed before the generation ends: streams end then

	stop func() // ends what looks after the registry
	work sync.WaitGroup
}

// beginGeneration makes a registry the one that the server answers from, and begins to
// look after it.
func (s *server) beginGeneration(r *registry.Registry) error {
	ctx, stop := context.WithCancel(auth.With(s.running, auth.Local()))
	f := &generation{registry: r, dns: s.dns, hdl: s.hdl, ending: make(chan struct{}), stop: stop}
	f.jobs = job.NewBoard(job.Options{Registrar: r.Registrar, Schemes: s.schemes, Now: s.now})
	f.mail = s.openQueue(f)
	f.usage = s.openUsage(f)
	f.links = s.newChecker(r)
	if s.o.Frozen == nil { // who searches is known
		s.openSearch(ctx, r)
	}
	var err error
	if f.digests, err = s.openDigests(f); err == nil {
		f.handler, err = s.answers(ctx, f)
	}
	if err != nil {
		stop()
		f.work.Wait()
		return err
	}
	f.work.Go(func() { s.learnRedirects(ctx, r) })
	f.survey = newSurveyor(s, f)
	if s.metrics.Listener != nil {
		f.work.Go(func() { f.survey.run(ctx) })
	}
	if s.o.Frozen == nil {
		if err := s.lookAfter(ctx, f); err != nil {
			stop()
			f.work.Wait()
			return err
		}
	}
	s.generation.Store(f)
	s.noteAddress(r)
	return nil
}

// lookAfter begins the background work that writes to the registry, or sends something.
func (s *server) lookAfter(ctx context.Context, f *generation) error {
	r := f.registry
	f.work.Go(func() { s.keepUsesOften(ctx, r) })
	f.work.Go(func() { s.forgetRequests(ctx, r.Registrar) })
	f.work.Go(func() { s.workOnJobs(ctx, f) })
	f.work.Go(func() { s.sendMail(ctx, f) })
	if f.digests != nil {
		f.work.Go(func() { f.digests.Run(ctx) })
	}
	if s.LinkRules != "" {
		f.work.Go(func() { s.linkRules.Watch(ctx, linkRulesEvery, s.log) })
	}
	if f.usage != nil {
		f.work.Go(func() { f.usage.Run(ctx) })
		if s.countries != nil {
			f.work.Go(func() { s.countries.Watch(ctx, countriesEvery, s.log) })
		}
		s.readCountedAll(ctx, f)
		f.work.Go(func() { s.followCountedAll(ctx, f) })
	} else {
		f.work.Go(func() { usage.Tidy(ctx, r.Registrar, s.now, s.log) })
	}
	if f.uploads != nil {
		f.work.Go(func() { s.forgetUploads(ctx, f) })
	}
	if s.Log {
		f.work.Go(func() { s.keepLog(ctx, f) })
	}
	f.work.Go(func() { f.links.Run(ctx) })
	f.work.Go(func() { s.harvestOften(ctx, r) })
	f.work.Go(func() { s.depositOften(ctx, r) })
	f.work.Go(func() { s.watchGivers(ctx, r) })
	f.work.Go(func() { s.keepSigned(ctx, r) })
	f.work.Go(func() { s.keepAudit(ctx, r) })
	if err := s.exportAudit(ctx, f); err != nil {
		return err
	}
	if r.Search != nil {
		f.work.Go(func() { r.Search.Index.Run(ctx) })
	}
	if r.Follower != nil {
		f.work.Go(func() { s.learnHostsOften(ctx, r) })
		f.work.Go(func() { r.Follower.Run(ctx, s.Follow) })
	}
	if f.dns != nil {
		f.work.Go(func() { f.dns.NotifySecondaries(ctx) })
		f.work.Go(func() { f.dns.Tap(ctx) })
	}
	return nil
}

// answering returns the handler that answers now.
func (s *server) answering() http.Handler { return s.generation.Load().handler }

// endGeneration ends the background work of the registry, and writes when tokens were used.
func (s *server) endGeneration(ctx context.Context, f *generation) {
	f.stop()
	f.work.Wait()
	s.keepUses(ctx, f.registry)
}

// closeLast closes the registry that is open when the server ends: the first one, unless a
// restore has replaced it.
func (s *server) closeLast(first *registry.Registry) error {
	f := s.generation.Load()
	if f == nil {
		return first.Close()
	}
	s.endGeneration(auth.With(context.Background(), auth.Local()), f)
	return f.registry.Close()
}

// leaveDNS ends the name server and the server of the Handle protocol, so that their registry can be closed.
func (s *server) leaveDNS(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, swapPatience)
	defer cancel()
	var err error
	if s.dns != nil {
		err = s.endDNS(ctx)
	}
	if s.hdl != nil {
		err = errors.Join(err, s.endHandle(ctx))
	}
	return err
}

// takeUp begins a generation after another one, and a name server where the old one was.
func (s *server) takeUp(r *registry.Registry) error {
	var err error
	if s.dns != nil {
		err = s.startDNS(r)
	}
	if s.hdl != nil {
		err = errors.Join(err, s.startHandle(r))
	}
	return errors.Join(err, s.beginGeneration(r))
}

// answers makes the handler that answers the public from a registry.
func (s *server) answers(ctx context.Context, f *generation) (http.Handler, error) {
	pages, languages, err := s.pages()
	if err != nil {
		return nil, err
	}
	r := f.registry
	o := httpd.Options{
		Resolver: r.Resolver, Registry: r.Registrar, Schemes: s.schemes, Pages: pages, Now: s.now, Log: s.log,
		Base: s.Base, OwnName: s.isOwnName, Host: s.Host, Global: s.Global, Ready: s.ready, Random: rand.IntN,
		Identify: func(q *http.Request) (auth.Principal, error) { return identifyRequest(r, q) }, Await: r.Await, API: s.api(f, pages), Proofs: r.Proves,
		Costs: s.costs, Held: s.held, Turns: s.turns, Tunnel: s.tunnel, Frozen: s.frozen(), RequestID: s.ids.Request, Tracer: s.tracer,
	}
	var public *httpd.Handler // it has the desk, and the desk describes records as it does
	subject := func(q *http.Request, rec *stele.Record, ns *stele.Namespace) describe.Subject {
		return public.Subject(q, rec, ns)
	}
	if s.o.Frozen == nil {
		if o.Desk, err = s.desk(f, pages, languages, subject); err != nil {
			return nil, err
		}
		if o.Handles, err = s.handleREST(ctx, f); err != nil {
			return nil, err
		}
	}
	if s.EZID {
		o.EZID = s.ezid(r)
	}
	if s.OAI {
		o.OAI = s.harvestable(r)
	}
	switch {
	case s.o.Frozen != nil:
		o.Transparency = s.givenLog()
	case s.Log:
		o.Transparency = s.shownLog(r)
	}
	if o.LSID, err = s.lifeScience(r); err != nil {
		return nil, err
	}
	if s.Reverse {
		o.Pointing = r.Store.Pointing
	}
	if o.Docs, err = documents.New(docs.Files()); err != nil {
		return nil, err
	}
	o.Examples = s.o.Examples
	o.Figures = &usage.Book{Registrar: r.Registrar, Schemes: s.schemes, Log: s.log}
	if f.usage != nil {
		o.Counter = f.usage
		o.CountsAll = func(id stele.ID) bool { return f.countedAll.has(id, f.spaceOf) }
	}
	if f.dns != nil {
		o.DNS = f.dns.HTTPS()
	}
	if s.metrics.Listener != nil {
		o.Observe = s.numbers.observe
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	public = httpd.New(o)
	return public, nil
}

// api makes the handler of the interface for programs.
func (s *server) api(f *generation, pages *web.Pages) http.Handler {
	r := f.registry
	o := api.Options{
		Registrar: r.Registrar, Store: r.Store, Resolver: r.Resolver, Schemes: s.schemes, Directory: r.Directory, Pages: pages,
		Now: s.now, Log: s.log, Base: s.Base, OwnHost: func(r *http.Request) bool { return httpd.IsOwnHost(r, s.isOwnName) }, ClientAddr: httpd.ClientAddr, Rate: s.APIRate, Burst: s.APIBurst, Held: s.held, Turns: s.turns,
		Patience: s.WriteTimeout, Reading: s.ReadTimeout, Version: r.Version, Await: r.Await, Generations: r.KnownGenerations, Upkeep: s.upkeep(f), Addresses: s.LogAddresses, Search: r.Search,
		Usage: &usage.Book{Registrar: r.Registrar, Schemes: s.schemes, Log: s.log}, UsageLogs: s.usageLogs(f),
		Links: f.links, CheckHarvest: checkHarvest, Heirs: s.heirs(r), Givers: s.givers(r), Frozen: s.frozen(),
	}
	if s.o.Frozen == nil {
		o.Transparency = r
	}
	return api.New(o)
}

// ezid makes the handler for clients of EZID. They have the limits of the API.
func (s *server) ezid(r *registry.Registry) *ezid.Handler {
	return ezid.New(ezid.Options{
		Frozen:    s.frozen(),
		Registrar: r.Registrar, Store: r.Store, Schemes: s.schemes, Directory: r.Directory, Now: s.now, Log: s.log,
		Base: s.Base, OwnHost: func(r *http.Request) bool { return httpd.IsOwnHost(r, s.isOwnName) }, ClientAddr: httpd.ClientAddr,
		Rate: s.APIRate, Burst: s.APIBurst, Held: s.held, Version: r.Version, Ready: s.ready, Addresses: s.LogAddresses, Patience: s.WriteTimeout,
	})
}

// uploadTime is how long a browser may take to send a file of many names.
const uploadTime = 5 * time.Minute

// desk makes the handler of the curators' pages.
func (s *server) desk(f *generation, public *web.Pages, languages *language.Catalog, subject func(*http.Request, *stele.Record, *stele.Namespace) describe.Subject) (http.Handler, error) {
	pages, err := deskpage.New(public, languages)
	if err != nil {
		return nil, err
	}
	r := f.registry
	o := desk.Options{
		Registrar: r.Registrar, Directory: r.Directory, Store: r.Store, Schemes: s.schemes, Pages: pages, Languages: languages, Now: s.now, Log: s.log, Jobs: f.jobs, UploadTime: uploadTime,
		Base: s.Base, OwnHost: func(r *http.Request) bool { return httpd.IsOwnHost(r, s.isOwnName) }, ClientAddr: httpd.ClientAddr, KeepAddresses: s.LogAddresses,
		Demo: s.o.Demo, Site: s.SiteName, Subject: subject, Patience: s.WriteTimeout, Issuers: s.issuers, Passwords: s.Passwords, Generations: r.KnownGenerations,
	}
	if f.mail != nil {
		writer, err := mail.NewWriter(s.SiteName, s.Base)
		if err != nil {
			return nil, err
		}
		_, digests := s.Digests()
		o.Mail = &desk.Mail{Queue: f.mail, Writer: writer, Digests: digests}
	}
	if s.ProxyUser != "" {
		o.Proxy = &desk.Proxy{UserHeader: s.ProxyUser, GroupsHeader: s.ProxyGroups, Make: s.ProxyMakeUsers, From: httpd.IsFromProxy}
	}
	if r.Search != nil {
		o.Find = r.Search.Find
	}
	o.Zones = deskZones{NewKeys(r, s.now), s}
	o.Usage = &usage.Book{Registrar: r.Registrar, Schemes: s.schemes}
	o.Links, o.Proofs, o.Bundle = f.links, r.Proves, s.bundles(r)
	o.Keeping = desk.Keeping{Log: r.LogStatus}
	return desk.New(o), nil
}
