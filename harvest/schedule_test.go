package harvest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
)

// lease is longer than a test takes: no lease is renewed by a clock that is not that of the test.
const lease = time.Hour

// runner returns a server that does the scheduled harvests of a registry.
func (r *registry) runner(server string) *harvest.Runner {
	return &harvest.Runner{Schedule: r.Registrar, To: r, Users: auth.NewDirectory(r.store, func() time.Time { return r.now }), Schemes: r.schemes, Client: func() *harvest.Client { return client(r, nil) },
		Now: func() time.Time { return r.now }, Log: slog.New(slog.DiscardHandler), Server: server, Lease: lease}
}

// schedule adds a harvest into x5 that is done each day.
func (r *registry) schedule(ctx context.Context, name, at string) error {
	return r.ChangeHarvest(ctx, name, func(*registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
		return &registrar.ScheduledHarvest{URL: at, Scheme: x5.Scheme, Prefix: x5.Prefix, Format: string(harvest.Dublin), Every: 24 * time.Hour, Limit: harvest.UsualLimit}, nil
	})
}

func (r *registry) mustSchedule(name, at string) {
	r.t.Helper()
	if err := r.schedule(r.ctx, name, at); err != nil {
		r.t.Fatal(err)
	}
}

// scheduled returns the only harvest of a registry.
func (r *registry) scheduled() registrar.ScheduledHarvest {
	r.t.Helper()
	list, err := r.Harvests(r.ctx)
	if err != nil || len(list) != 1 {
		r.t.Fatal(list, err)
	}
	return list[0]
}

func (r *registry) look(w *harvest.Runner) {
	r.t.Helper()
	if err := w.Look(r.ctx); err != nil {
		r.t.Fatal(err)
	}
}

// twoRegistries returns one with so many names, where it is harvested, and one that harvests it.
func twoRegistries(t *testing.T, names int, watch func(url.Values)) (from, to *registry, at string) {
	from, to = newRegistry(t), newRegistry(t)
	from.space(x5, true)
	to.space(x5, false)
	for i := range names {
		from.register(fmt.Sprintf("ark:12345/x5a%02d", i), fmt.Sprintf("https://data.example.org/%02d", i))
	}
	from.now = from.now.Add(time.Hour)
	to.now = from.now
	return from, to, from.provide(10, watch)
}

// TestSchedule: a harvest that is due is done, registers names, and is done again after its time, also by a server that starts later;
// one that was stopped is never done.
func TestSchedule(t *testing.T) {
	var asked []url.Values
	from, to, at := twoRegistries(t, 25, func(q url.Values) { asked = append(asked, q) })
	to.mustSchedule("daily", at)
	if h := to.scheduled(); h.Name != "daily" || h.By != "local" || !h.Ended.IsZero() {
		t.Fatalf("%+v", h)
	}
	for name, want := range map[string]stele.Kind{"daily2": stele.Conflict, "Not a name": stele.Invalid} {
		if err := to.schedule(to.ctx, name, at); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	to.look(to.runner("one"))
	if got := to.leads("ark:12345/x5a07"); got != "active https://data.example.org/07 10" {
		t.Error(got)
	}
	h := to.scheduled()
	if !strings.HasPrefix(h.Said, "25 new, ") || h.Server != "" || h.Failures != 0 || !h.Next.Equal(h.Ended.Add(24*time.Hour)) {
		t.Fatalf("%+v", h)
	}

	// Another process opens the store: what is kept survives.
	to.Registrar = registrar.New(to.store, to.schemes, registrar.Options{Now: func() time.Time { return to.now }})
	if again := to.scheduled(); again != h {
		t.Errorf("%+v, not %+v", again, h)
	}
	second := to.runner("two")
	asked = nil
	to.look(second)
	if len(asked) != 0 {
		t.Errorf("it was not due: %v", asked)
	}
	to.now = to.now.Add(25 * time.Hour)
	from.now = to.now
	from.register("ark:12345/x5b", "https://data.example.org/b")
	to.look(second)
	if len(asked) == 0 || asked[len(asked)-1].Get("from") == "" || to.leads("ark:12345/x5b") == "nothing" {
		t.Errorf("%v %s", asked, to.leads("ark:12345/x5b"))
	}

	if err := to.ChangeHarvest(to.ctx, "daily", func(*registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	to.now = to.now.Add(48 * time.Hour)
	asked = nil
	to.look(second)
	if list, err := to.Harvests(to.ctx); len(asked) != 0 || len(list) != 0 || err != nil {
		t.Errorf("%v %v %v", asked, list, err)
	}
	if _, err := second.RunNow(to.ctx, "daily", false); !errors.Is(err, stele.NotFound) {
		t.Error(err)
	}
}

// dying is the schedule of a server that dies after it took a harvest: it keeps nothing any more.
type dying struct {
	harvest.Schedule
	dead bool
}

func (d *dying) ChangeHarvest(ctx context.Context, name string, change func(*registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error)) error {
	if d.dead {
		return stele.Unavailable
	}
	return d.Schedule.ChangeHarvest(ctx, name, change)
}

// TestTakeOver: a server dies within a harvest. Another one leaves the harvest alone until the lease ends, and goes on at the page where
// the first one was.
func TestTakeOver(t *testing.T) {
	var asked []url.Values
	watch := func(url.Values) {}
	_, to, at := twoRegistries(t, 25, func(q url.Values) {
		asked = append(asked, q)
		watch(q)
	})
	to.mustSchedule("daily", at)
	first, second := to.runner("one"), to.runner("two")
	schedule := &dying{Schedule: to.Registrar}
	first.Schedule = schedule
	ctx, die := context.WithCancel(to.ctx)
	watch = func(q url.Values) {
		if q.Get("resumptionToken") != "" {
			schedule.dead = true
			die()
		}
	}
	_ = first.Look(ctx)
	if h := to.scheduled(); h.Server != "one" || to.leads("ark:12345/x5a05") == "nothing" || to.leads("ark:12345/x5a15") != "nothing" {
		t.Fatalf("%+v", h)
	}
	watch, asked = func(url.Values) {}, nil
	to.look(second)
	if _, err := second.RunNow(to.ctx, "daily", false); len(asked) != 0 || !errors.Is(err, stele.Conflict) {
		t.Fatalf("the first server has the lease: %v %v", asked, err)
	}
	to.now = to.now.Add(lease)
	to.look(second)
	if len(asked) != 2 || asked[0].Get("resumptionToken") == "" || to.leads("ark:12345/x5a24") == "nothing" {
		t.Errorf("%v", asked)
	}
	if h := to.scheduled(); h.Server != "" || !strings.HasPrefix(h.Said, "25 new, ") {
		t.Errorf("%+v", h)
	}
}

// TestScheduleLimit: a harvest that would withdraw too much says so and waits, however much time passes, until a person says yes.
func TestScheduleLimit(t *testing.T) {
	requests := 0
	from, to, at := twoRegistries(t, 20, func(url.Values) { requests++ })
	to.mustSchedule("daily", at)
	w := to.runner("one")
	to.look(w)
	to.now = to.now.Add(25 * time.Hour)
	from.now = to.now
	for i := range 5 {
		if _, err := from.Withdraw(from.ctx, from.id(fmt.Sprintf("ark:12345/x5a%02d", i)), 0, "lost", stele.ID{}); err != nil {
			t.Fatal(err)
		}
	}
	to.look(w)
	h := to.scheduled()
	if h.Waits != registrar.HarvestWaitsDeleted || !strings.HasPrefix(h.Said, "5 of 20 names would be withdrawn") || !strings.HasPrefix(to.leads("ark:12345/x5a00"), "active") {
		t.Fatalf("%+v", h)
	}
	requests = 0
	to.now = to.now.Add(1000 * time.Hour)
	if to.look(w); requests != 0 {
		t.Fatalf("%d requests while it waits", requests)
	}
	if _, err := w.RunNow(to.ctx, "daily", false); requests == 0 || to.scheduled().Waits == "" || err == nil {
		t.Fatalf("%d %v", requests, err)
	}
	if said, err := w.RunNow(to.ctx, "daily", true); err != nil || !strings.Contains(said, "5 withdrawn") {
		t.Fatalf("%q %v", said, err)
	}
	if h := to.scheduled(); h.Waits != "" || !strings.HasPrefix(to.leads("ark:12345/x5a00"), "withdrawn") || !h.Next.After(to.now) {
		t.Errorf("%+v %s", h, to.leads("ark:12345/x5a00"))
	}
	to.now = to.now.Add(25 * time.Hour)
	if to.look(w); requests == 0 {
		t.Error("it does not go on")
	}
	// A person may ask that a server does it before it is due.
	requests = 0
	if to.look(w); requests != 0 {
		t.Errorf("%d requests before it is due", requests)
	}
	if err := to.Registrar.AskHarvest(to.ctx, "daily", false); err != nil {
		t.Fatal(err)
	}
	if to.look(w); requests == 0 || to.scheduled().Asked {
		t.Errorf("%d requests when it is asked for, %+v", requests, to.scheduled())
	}
	if err := to.Registrar.AskHarvest(to.ctx, "weekly", false); stele.KindOf(err) != stele.NotFound {
		t.Error(err)
	}
}

// TestScheduleFails: a harvest that fails is tried again later and later, and as it was after it succeeded. An address that is not public
// is not asked, unless it is allowed.
func TestScheduleFails(t *testing.T) {
	requests := 0
	_, to, at := twoRegistries(t, 1, func(url.Values) { requests++ })
	to.mustSchedule("daily", at)
	w := to.runner("one")
	fetch := func(allowed ...string) func() *harvest.Client {
		rule, err := outbound.ParseRule(allowed)
		if err != nil {
			t.Fatal(err)
		}
		return func() *harvest.Client {
			c := client(to, nil)
			c.HTTP = outbound.NewFetcher(&outbound.Dialer{Rule: rule, Timeout: time.Minute}, time.Minute)
			return c
		}
	}
	w.Client = fetch()
	for i, want := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute, 320 * time.Minute, 640 * time.Minute, 1280 * time.Minute, 24 * time.Hour, 24 * time.Hour} {
		to.look(w)
		h := to.scheduled()
		if h.Failures != i+1 || h.Next.Sub(h.Ended) != want || h.Said == "" || h.Waits != "" {
			t.Fatalf("%d: %+v", i, h)
		}
		to.look(w) // before it is due
		if h.Failures != to.scheduled().Failures {
			t.Fatal("it was tried too early")
		}
		to.now = h.Next
	}
	if requests != 0 {
		t.Errorf("%d requests to an address that is not public", requests)
	}
	w.Client = fetch("127.0.0.0/8", "::1")
	to.look(w)
	if h := to.scheduled(); h.Failures != 0 || h.Next.Sub(h.Ended) != 24*time.Hour || to.leads("ark:12345/x5a00") == "nothing" {
		t.Errorf("%+v", h)
	}
}

// TestScheduleRights: an owner of the namespace schedules harvests and sees those of their namespaces; the harvest has the rights that
// the owner has when it is done.
func TestScheduleRights(t *testing.T) {
	requests := 0
	from, to, at := twoRegistries(t, 1, func(url.Values) { requests++ })
	as := func(name string) context.Context { return auth.With(to.ctx, auth.Principal{Name: name}) }
	for name, role := range map[string]stele.Role{"ana": stele.RoleOwner, "eve": stele.RoleEditor} {
		if _, err := to.AddUser(to.ctx, auth.User{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Grant(to.ctx, x5, "user:"+name, role); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]stele.Kind{"eve": stele.Forbidden, "": stele.Unauthenticated} {
		if err := to.schedule(as(name), "daily", at); !errors.Is(err, want) {
			t.Fatalf("%q: %v", name, err)
		}
	}
	if err := to.schedule(as("ana"), "daily", at); err != nil {
		t.Fatal(err)
	}
	if list, err := to.Harvests(as("eve")); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
	if list, err := to.Harvests(as("ana")); len(list) != 1 || list[0].By != "ana" || err != nil {
		t.Errorf("%v %v", list, err)
	}
	end := func(*registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) { return nil, nil }
	if err := to.ChangeHarvest(as("eve"), "daily", end); !errors.Is(err, stele.Forbidden) {
		t.Error(err)
	}
	to.look(to.runner("one"))
	rec, err := to.Get(to.ctx, to.id("ark:12345/x5a00"))
	if err != nil || rec.By != "ana" {
		t.Fatalf("%+v %v", rec, err)
	}

	// Without the rights it stops, says why, and nothing is asked; with them, and after a person says so, it goes on.
	disable := func(is bool) func() error {
		return func() error {
			_, err := to.SetUser(to.ctx, "ana", func(u *auth.User) error { u.Disabled = is; return nil })
			return err
		}
	}
	grant := func(role stele.Role) func() error {
		return func() error { _, err := to.Grant(to.ctx, x5, "user:ana", role); return err }
	}
	for i, c := range []struct {
		take, give func() error
		said       string
	}{
		{disable(true), disable(false), "is disabled"},
		{grant(stele.RoleEditor), grant(stele.RoleOwner), "is not an owner of"},
	} {
		to.now = to.now.Add(25 * time.Hour)
		from.now = to.now
		from.register(fmt.Sprintf("ark:12345/x5c%d", i), "https://data.example.org/c")
		if err := c.take(); err != nil {
			t.Fatal(err)
		}
		requests = 0
		to.look(to.runner("one"))
		if h := to.scheduled(); h.Waits != registrar.HarvestWaitsRights || !strings.Contains(h.Said, c.said) || requests != 0 {
			t.Fatalf("%+v %d", h, requests)
		}
		if err := c.give(); err != nil {
			t.Fatal(err)
		}
		to.now = to.now.Add(25 * time.Hour)
		if to.look(to.runner("one")); requests != 0 {
			t.Error("it does not wait for a person")
		}
		if _, err := to.runner("one").RunNow(to.ctx, "daily", false); err != nil || to.scheduled().Waits != "" || to.leads(fmt.Sprintf("ark:12345/x5c%d", i)) == "nothing" {
			t.Errorf("%v %+v", err, to.scheduled())
		}
	}
}

// away is a registry in which no harvest can be changed after the first time.
type away struct {
	harvest.Schedule
	changes atomic.Int32
}

func (a *away) ChangeHarvest(ctx context.Context, name string, change func(before *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error)) error {
	if a.changes.Add(1) > 1 {
		return stele.Unavailable
	}
	return a.Schedule.ChangeHarvest(ctx, name, change)
}

// TestUnrenewed: a server that can't renew its lease ends its work when the lease ends, as another one may take it then.
func TestUnrenewed(t *testing.T) {
	_, to, at := twoRegistries(t, 25, func(q url.Values) {
		if q.Get("resumptionToken") != "" {
			time.Sleep(2 * time.Second)
		}
	})
	to.mustSchedule("daily", at)
	w := to.runner("one")
	schedule := &away{Schedule: w.Schedule}
	w.Schedule, w.Lease = schedule, time.Second
	to.look(w)
	if n := schedule.changes.Load(); n < 2 {
		t.Errorf("%d changes: nothing was renewed", n)
	}
	if h := to.scheduled(); h.Server != "one" || to.leads("ark:12345/x5a05") == "nothing" || to.leads("ark:12345/x5a15") != "nothing" {
		t.Errorf("%+v", h)
	}
}
