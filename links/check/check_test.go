package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	leases "github.com/stele-id/stele/internal/lease"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// registry is one with the namespace ark:12345/x5, whose owner is olga, and a web whose answers the test decides.
type registry struct {
	t     *testing.T
	r     *registrar.Registrar
	store stele.Store
	names *stele.Schemes
	admin context.Context

	mu     sync.Mutex
	now    time.Time
	status map[string]int // by URL; 0: refused
	asked  map[string]int
	moved  map[string]string // by URL: where it redirects to
	during func(url string)  // is called while a target is asked; may be nil
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	g := &registry{t: t, now: time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC), admin: auth.With(t.Context(), auth.Local()), status: make(map[string]int), asked: make(map[string]int), moved: make(map[string]string)}
	schemes, err := all.New(all.Config{Now: g.clock})
	if err != nil {
		t.Fatal(err)
	}
	g.names, g.store = schemes, mem.New(g.clock)
	g.r = registrar.New(g.store, schemes, registrar.Options{Now: g.clock})
	for _, name := range []string{"olga", "ed", "ruth", "sam"} {
		if _, err := g.r.AddUser(g.admin, auth.User{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "olga", Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}, {To: "user:ruth", Role: stele.RoleReader}}}); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *registry) clock() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

func (g *registry) pass(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = g.now.Add(d)
}

func (g *registry) as(name string) context.Context {
	return auth.With(g.t.Context(), auth.Principal{Name: name})
}

func (g *registry) id(text string) stele.ID {
	g.t.Helper()
	id, err := g.names.Parse(text)
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

func (g *registry) register(text string, urls ...string) stele.ID {
	g.t.Helper()
	rec := &stele.Record{ID: g.id(text), State: stele.Active}
	for _, u := range urls {
		rec.Targets = append(rec.Targets, stele.Target{Service: stele.N2L, URL: u, Order: 100, Preference: 10})
	}
	if _, err := g.r.Register(g.admin, rec); err != nil {
		g.t.Fatal(err)
	}
	return rec.ID
}

// ask answers as the test says.
func (g *registry) ask(_ context.Context, url string, _ ask.Known) (*links.Answer, links.Report) {
	if g.during != nil {
		g.during(url)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[url]++
	status, ok := g.status[url]
	if !ok {
		status = 200
	}
	a := &links.Answer{URL: url, Final: url, Status: status, Header: links.Header{"content-type": {"text/html"}}, Body: []byte("<title>" + url + "</title>" + strings.Repeat("about "+url+" ", 20)), Length: 9}
	if to := g.moved[url]; to != "" {
		a.Final, a.Hops = to, []links.Hop{{URL: url, Status: 301}}
	}
	if status == 0 {
		a.Failure = links.FailRefused
	}
	return a, links.Report{Address: "192.0.2.1"}
}

func (g *registry) checker(lease time.Duration) *Checker {
	rules, err := links.UsualRules()
	if err != nil {
		g.t.Fatal(err)
	}
	return New(Options{Registrar: g.r, Store: g.store, Rules: rules, Ask: g.ask, Now: g.clock, Rand: rand.Reader, Lease: lease, Log: slog.New(slog.NewTextHandler(g.t.Output(), nil))})
}

// work lets a worker do all that is due now, without goroutines of its own.
func (g *registry) work(c *Checker) {
	g.t.Helper()
	ctx := g.t.Context()
	l, err := c.take(ctx)
	if err != nil || l == nil {
		g.t.Fatalf("no lease: %v", err)
	}
	defer l.leave(ctx)
	w := newWorker(c, l)
	if err := w.begin(ctx); err != nil {
		g.t.Fatal(err)
	}
	for idle := 0; idle < 3 || g.clock().Sub(w.place.Wheel) > 2*wheelStep; idle++ {
		if err := w.look(ctx); err != nil {
			g.t.Fatal(err)
		}
		for {
			task, again, ok := w.line.Next(g.clock())
			if !ok && again.IsZero() {
				break
			}
			if !ok {
				if again.Sub(g.clock()) > time.Minute {
					break
				}
				g.pass(again.Sub(g.clock()))
				if err := l.renew(ctx); err != nil {
					g.t.Fatal(err)
				}
				continue
			}
			idle = 0
			known, err := w.prepare(ctx, &task)
			if err != nil {
				w.line.Cancel(&task)
				if err := w.setAside(ctx, &task, err); err != nil {
					g.t.Fatal(err)
				}
				continue
			}
			if len(task.Keys) == 0 {
				w.line.Cancel(&task)
				continue
			}
			domain, err := w.askServers(ctx, task.Host)
			if err != nil {
				g.t.Fatal(err)
			}
			a := answered{task: task}
			a.answer, a.report = c.o.Ask(ctx, task.URL, known)
			if domain != "" {
				if a.servers, err = c.o.Servers(ctx, domain); err != nil {
					g.t.Fatal(err)
				}
			}
			if err := w.setAside(ctx, &task, w.take(ctx, a)); err != nil {
				g.t.Fatal(err)
			}
		}
		for {
			q, ok := w.nextCopy(ctx)
			if !ok {
				break
			}
			w.askCopy(ctx, &q)
			if err := w.takeCopy(ctx, &q); err != nil {
				g.t.Fatal(err)
			}
			g.pass(copyGap)
		}
	}
}

func (g *registry) on(change func(*registrar.LinkChecks)) {
	g.t.Helper()
	if _, err := g.r.SetLinkChecks(g.as("olga"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) {
		l.On = true
		if change != nil {
			change(l)
		}
	}); err != nil {
		g.t.Fatal(err)
	}
}

// sayLooked says what a user saw at the answer that is known now.
func (g *registry) sayLooked(c *Checker, user string, id stele.ID, number int, works bool) error {
	g.t.Helper()
	found, err := c.Show(g.as("ruth"), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return c.Look(g.as(user), id, number, works, found[min(number, len(found)-1)].Answer)
}

func (g *registry) states(c *Checker, id stele.ID) (list []string) {
	g.t.Helper()
	found, err := c.Show(g.as("ruth"), id)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range found {
		list = append(list, f.State)
	}
	return list
}

func (g *registry) want(c *Checker, id stele.ID, states ...string) {
	g.t.Helper()
	if got := g.states(c, id); strings.Join(got, " ") != strings.Join(states, " ") {
		g.t.Errorf("%s is %v, want %v", id, got, states)
	}
}

func (g *registry) findings(c *Checker, user string) (list []string) {
	g.t.Helper()
	for f, err := range c.Findings(g.as(user), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "") {
		if err != nil {
			g.t.Fatal(err)
		}
		list = append(list, f.ID+" "+f.State)
	}
	return list
}

// A year in a month: what works stays, what goes away is found, what comes back is forgotten.
func TestCheck(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	a := g.register("ark:12345/x5a", "https://a.example/1", "https://a.example/2")
	b := g.register("ark:12345/x5b", "https://b.example/1")
	g.work(c)
	g.want(c, a, "unchecked", "unchecked")
	if len(g.asked) > 0 {
		t.Fatalf("no owner wants it, and these were asked: %v", g.asked)
	}
	g.on(nil)
	g.work(c)
	g.want(c, a, "ok", "ok")
	g.want(c, b, "ok")
	for cell, err := range g.store.Cells(t.Context(), registrar.CheckCells, "") {
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(cell.Name, blockCells) && len(cell.Value) > 3*100:
			t.Errorf("%q takes %d bytes for three targets", cell.Name, len(cell.Value))
		case strings.HasPrefix(cell.Name, stateCells):
			t.Errorf("%q is a cell of an earlier version", cell.Name)
		case strings.HasPrefix(cell.Name, dueCells), strings.HasPrefix(cell.Name, foundCells):
			t.Errorf("%q: what works needs no other cell", cell.Name)
		}
	}
	g.work(c)
	if g.asked["https://a.example/1"] != 1 {
		t.Errorf("it was asked %d times", g.asked["https://a.example/1"])
	}
	g.status["https://a.example/2"] = 404
	for range 41 * 8 {
		g.pass(3 * time.Hour)
		g.work(c)
	}
	g.want(c, a, "ok", "broken")
	g.want(c, b, "ok")
	if n := g.asked["https://b.example/1"]; n < 2 || n > 3 {
		t.Errorf("it was asked %d times in 41 days", n)
	}
	if got := g.findings(c, "ruth"); fmt.Sprint(got) != "[ark:12345/x5a broken]" {
		t.Errorf("findings: %v", got)
	}
	for _, err := range c.Findings(g.as("sam"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "") {
		if stele.KindOf(err) != stele.Forbidden {
			t.Errorf("a user without a role: %v", err)
		}
	}

	// A change of the target resets.
	if _, err := g.r.Update(g.admin, a, 0, func(rec *stele.Record) error {
		rec.Targets[1].URL = "https://a.example/new"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	g.want(c, a, "ok", "unchecked")
	g.work(c)
	g.want(c, a, "ok", "ok")
	if got := g.findings(c, "ruth"); len(got) > 0 {
		t.Errorf("findings: %v", got)
	}

	// What was switched off is forgotten in its turn.
	if _, err := g.r.SetLinkChecks(g.as("olga"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) { l.On = false }); err != nil {
		t.Fatal(err)
	}
	for range 32 * 24 {
		g.pass(time.Hour)
		g.work(c)
	}
	g.want(c, a, "unchecked", "unchecked")
	for cell, err := range g.store.Cells(t.Context(), blockCells, "") {
		t.Errorf("%q is left, %v", cell.Name, err)
	}
}

// One notice for a host, whatever number of names it has.
func TestHost(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	for i := range 8 {
		url := fmt.Sprintf("https://away.example/%d", i)
		g.register(fmt.Sprintf("ark:12345/x5%d", i), url)
		g.status[url] = 0
	}
	g.on(nil)
	for range 9 * 24 {
		g.work(c)
		g.pass(time.Hour)
	}
	hosts, err := c.Hosts(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"})
	if err != nil || len(hosts) != 1 || hosts[0].Host != "away.example" || hosts[0].Down.IsZero() || hosts[0].Cause != "refused" {
		t.Fatalf("%+v, %v", hosts, err)
	}
	for _, f := range g.findings(c, "ruth") {
		if strings.HasSuffix(f, "broken") {
			t.Errorf("%s, and it is the host that is down", f)
		}
	}
	clear(g.status)
	for range 40 * 8 {
		g.work(c)
		g.pass(3 * time.Hour)
	}
	if hosts, err := c.Hosts(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}); err != nil || len(hosts) > 0 {
		t.Errorf("it is back, and %+v, %v", hosts, err)
	}
	if got := g.findings(c, "ruth"); len(got) > 0 {
		t.Errorf("findings: %v", got)
	}
}

func TestAskAndLook(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	g.status["https://a.example/1"] = 403
	if err := c.Ask(g.as("ruth"), id); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("a reader asks: %v", err)
	}
	if err := c.Ask(g.as("ed"), id); err != nil {
		t.Fatal(err)
	}
	g.work(c) // the namespace need not be switched on for that
	g.want(c, id, "blocked")
	if err := g.sayLooked(c, "ruth", id, 0, true); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("a reader looks: %v", err)
	}
	if err := g.sayLooked(c, "ed", id, 1, true); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a target that is not there: %v", err)
	}
	if err := g.sayLooked(c, "ed", id, 0, true); err != nil {
		t.Fatal(err)
	}
	g.want(c, id, "ok")
	if err := c.Ask(g.as("ed"), id); err != nil {
		t.Fatal(err)
	}
	g.work(c)
	g.want(c, id, "ok") // for that answer
	g.status["https://a.example/1"] = 401
	if err := c.Ask(g.as("ed"), id); err != nil {
		t.Fatal(err)
	}
	g.work(c)
	g.want(c, id, "blocked")
	if err := g.sayLooked(c, "ed", id, 0, false); err != nil {
		t.Fatal(err)
	}
	g.want(c, id, "gone")
}

func TestPauseAndQuota(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	for i := range 6 {
		g.register(fmt.Sprintf("ark:12345/x5%d", i), fmt.Sprintf("https://h%d.example/", i))
	}
	paused := g.register("ark:12345/x5p", "https://www.paused.example/")
	g.on(func(l *registrar.LinkChecks) {
		l.Quota = 4
		l.Pauses = []registrar.HostPause{{Host: "Paused.Example.", Until: g.clock().Add(3 * 24 * time.Hour)}}
	})
	own := registrar.LinkChecks{Own: []registrar.OwnHost{{Host: "Data.Example.", Gap: time.Second}}}
	if own.OwnGap("www.data.example.") != time.Second || own.OwnGap("mydata.example") != 0 {
		t.Error("the names of hosts are compared letter by letter")
	}
	g.work(c)
	if len(g.asked) != 4 {
		t.Errorf("%d were asked: %v", len(g.asked), g.asked)
	}
	for range 2 {
		g.pass(24 * time.Hour)
		g.work(c)
	}
	if len(g.asked) != 6 {
		t.Errorf("%d were asked: %v", len(g.asked), g.asked)
	}
	g.want(c, paused, "unchecked")
	g.pass(25 * time.Hour)
	g.work(c)
	g.want(c, paused, "ok")
	for _, bad := range []func(l *registrar.LinkChecks){
		func(l *registrar.LinkChecks) { l.Quota = -1 },
		func(l *registrar.LinkChecks) { l.Own = []registrar.OwnHost{{Host: "a b", Gap: time.Second}} },
		func(l *registrar.LinkChecks) { l.Own = []registrar.OwnHost{{Host: "a.example", Gap: time.Millisecond}} },
		func(l *registrar.LinkChecks) {
			l.Pauses = []registrar.HostPause{{Host: ".", Until: g.clock().Add(day)}}
		},
		func(l *registrar.LinkChecks) { l.Own = []registrar.OwnHost{{Host: "org", Gap: time.Second}} },
		func(l *registrar.LinkChecks) { l.Own = []registrar.OwnHost{{Host: "co.uk", Gap: time.Second}} },
	} {
		if _, err := g.r.SetLinkChecks(g.as("olga"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, bad); stele.KindOf(err) != stele.Invalid {
			t.Errorf("bad settings: %v", err)
		}
	}
	if _, err := g.r.SetLinkChecks(g.as("ed"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(*registrar.LinkChecks) {}); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("an editor sets: %v", err)
	}
}

// Servers may have leases of other lengths.
func TestLongestLease(t *testing.T) {
	g := newRegistry(t)
	if l, err := g.checker(leases.Longest).take(t.Context()); l == nil || err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if l, err := g.checker(time.Second).take(t.Context()); l != nil || err != nil {
			t.Fatalf("two servers have it: %v", err)
		}
		g.pass(-5 * time.Minute) // the clock of the second is that much behind
	}
}

// One server checks at a time, and another goes on when it has died.
func TestLease(t *testing.T) {
	g := newRegistry(t)
	first, second := g.checker(time.Minute), g.checker(time.Minute)
	l, err := first.take(t.Context())
	if err != nil || l == nil {
		t.Fatal(err)
	}
	if other, err := second.take(t.Context()); other != nil || err != nil {
		t.Fatalf("two servers have it: %v", err)
	}
	g.pass(2 * time.Minute) // the first has died
	other, err := second.take(t.Context())
	if other == nil || err != nil {
		t.Fatalf("no server goes on: %v", err)
	}
	// The first was only suspended, and must not write any more.
	err = first.keep(t.Context(), l, func(b *batch) error { return b.set(t.Context(), hostCells+"x", []byte("{}")) })
	if err == nil {
		t.Error("the first server writes after its lease has ended")
	}
	if err := l.renew(t.Context()); err == nil {
		t.Error("the first server renews what is another's")
	}
	other.leave(t.Context())
	if again, err := first.take(t.Context()); again == nil || err != nil {
		t.Errorf("what was given back can't be taken: %v", err)
	}
}

// Run does the same with goroutines.
func TestRun(t *testing.T) {
	g := newRegistry(t)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	c := g.checker(time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	defer running.Wait()
	defer stop()
	if err := c.Ask(g.as("olga"), id); err != nil {
		t.Fatal(err)
	}
	for {
		if found, err := c.Show(g.as("olga"), id); err != nil {
			t.Fatal(err)
		} else if found[0].State == "ok" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
