package check

import (
	"context"
	"crypto/sha256"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
)

// What is blocked for half a year is on the list of what a person should look at, until one does.
func TestLookList(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	g.register("ark:12345/x5b", "https://b.example/1")
	g.status["https://a.example/1"], g.status["https://b.example/1"] = 403, 404
	g.on(nil)
	looks := func() (list []string) {
		for f, err := range c.Findings(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "") {
			if err != nil {
				t.Fatal(err)
			}
			if f.Look {
				list = append(list, f.ID)
			}
		}
		return list
	}
	for range 179 {
		g.work(c)
		g.pass(24 * time.Hour)
	}
	if list := looks(); len(list) > 0 {
		t.Errorf("after 179 days: %v", list)
	}
	g.pass(25 * time.Hour)
	if list := looks(); len(list) != 1 || list[0] != id.String() {
		t.Errorf("after 180 days: %v", list)
	}
	if err := g.sayLooked(c, "ed", id, 0, true); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		g.work(c)
		g.pass(24 * time.Hour)
	}
	if list := looks(); len(list) > 0 {
		t.Errorf("a person looked, and %v", list)
	}
}

// What a person says while a target waits is not lost when the target is postponed.
func TestLookWhilePostponed(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	g.status["https://a.example/1"] = 403
	g.on(nil)
	g.work(c)
	g.want(c, id, "blocked")
	l, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(c, l)
	g.on(func(s *registrar.LinkChecks) { s.Pauses = []registrar.HostPause{{Until: g.clock().Add(300 * day)}} })
	g.pass(100 * day)
	if err := l.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.spaces, err = g.r.CheckedSpaces(g.admin); err != nil {
		t.Fatal(err)
	}
	if err := w.add(t.Context(), keyOf(id, 0), "", false); err != nil || len(w.later) != 1 {
		t.Fatalf("%d are postponed, %v", len(w.later), err)
	}
	if err := g.sayLooked(c, "ed", id, 0, true); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.want(c, id, "ok")
}

// An owner can set damaged settings anew, and hosts that many owners have do not count.
func TestDamagedSettings(t *testing.T) {
	g := newRegistry(t)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	cell := registrar.CheckCells + "space ark\tark:12345/x5"
	put := func(text string) {
		before, err := g.store.Cell(t.Context(), cell)
		if err == nil {
			err = g.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: cell, Before: before, After: []byte(text)}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("{damaged")
	if _, err := g.r.LinkChecks(g.as("olga"), key); !registrar.AreChecksDamaged(err) {
		t.Errorf("damaged settings: %v", err)
	}
	if _, err := g.r.SetLinkChecks(g.as("ed"), key, func(*registrar.LinkChecks) {}); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("an editor: %v", err)
	}
	if l, err := g.r.SetLinkChecks(g.as("olga"), key, func(l *registrar.LinkChecks) { l.On = true }); err != nil || !l.On || l.Namespace != key.Prefix {
		t.Errorf("%+v, %v", l, err)
	}
	put(`{"namespace":"other","scheme":"urn","on":true,"own":[{"host":"org","gap":200000000},{"host":"co.uk","gap":200000000},{"host":"data.example.org","gap":1},{"host":"data.example.net","gap":200000000}]}`)
	list, err := g.r.CheckedSpaces(g.admin)
	if err != nil || len(list) != 1 || list[0].Key() != key || len(list[0].Own) != 1 || list[0].Own[0].Host != "data.example.net" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A domain with other name servers and another page belongs to others. NSD says which servers a domain has.
func TestParked(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	zone := func(servers string) *net.Resolver {
		at := servertest.NSD(t, map[string]string{"sold.example": servers, "moved.example": servers, "kept.example": "@ NS ns1.library.example.\n"})
		return outbound.NewResolver(at, 20*time.Second)
	}
	rules, err := links.UsualRules()
	if err != nil {
		t.Fatal(err)
	}
	ns := func(r *net.Resolver) func(ctx context.Context, domain string) ([]string, error) {
		return ask.New(ask.Options{Rules: rules, Resolver: r, Now: time.Now}).Servers
	}
	c.o.Servers = ns(zone("@ NS ns1.library.example.\n@ NS ns2.library.example.\n"))
	for _, name := range []string{"sold", "moved", "kept"} {
		g.register("ark:12345/x5"+name, "https://www."+name+".example/work")
	}
	other := "<title>This domain is for sale</title>" + strings.Repeat("casino bonus offers, buy it now, related searches for you ", 30)
	texts := make(map[string]string)
	c.o.Ask = func(ctx context.Context, url string, k ask.Known) (*links.Answer, links.Report) {
		a, r := g.ask(ctx, url, k)
		if text := texts[url]; text != "" {
			a.Body = []byte(text)
		}
		return a, r
	}
	g.on(nil)
	g.work(c)
	drift := func(name string) string {
		found, err := c.Show(g.as("ruth"), g.id("ark:12345/x5"+name))
		if err != nil {
			t.Fatal(err)
		}
		return found[0].Drift
	}
	c.o.Servers = ns(zone("@ NS ns1.parking.example.\n"))
	texts["https://www.sold.example/work"], texts["https://www.kept.example/work"] = other, other
	for range 32 {
		g.pass(24 * time.Hour)
		g.work(c)
	}
	// A second look, a week after the first, found the other text of "kept" again; but its host is that of its owner.
	for name, want := range map[string]string{"sold": "host-of-others", "moved": "", "kept": "text-changed"} {
		if got := drift(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A digest that is not the promised one is told at once.
func TestPromise(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	other := g.register("ark:12345/x5b", "https://b.example/1")
	if _, err := g.r.Update(g.admin, id, 0, func(rec *stele.Record) error {
		rec.Persistence.Level = stele.Unchanging
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	body := "<title>Works</title>first"
	c.o.Ask = func(ctx context.Context, url string, k ask.Known) (*links.Answer, links.Report) {
		if k.Whole != strings.Contains(url, "a.example") || k.Whole && k.Print != (links.Print{}) {
			t.Errorf("%s: %+v", url, k)
		}
		a, r := g.ask(ctx, url, k)
		a.Body, a.Digest = []byte(body), sha256.Sum256([]byte(body))
		return a, r
	}
	g.on(nil)
	g.work(c)
	body = "<title>Works</title>second"
	for _, id := range []stele.ID{id, other} {
		if err := c.Ask(g.as("ed"), id); err != nil {
			t.Fatal(err)
		}
	}
	g.pass(time.Minute)
	g.work(c)
	for id, want := range map[stele.ID]string{id: "promise-broken", other: ""} {
		if found, err := c.Show(g.as("ruth"), id); err != nil || found[0].Drift != want || found[0].IsBroken() != (want != "") {
			t.Errorf("%s: %+v, %v", id, found, err)
		}
	}
}

// A signature is about the thing, and about one of its forms if it names the type.
func TestSigned(t *testing.T) {
	rec := &stele.Record{Persistence: stele.Persistence{Level: stele.Unchanging}, Signatures: []stele.Signature{{SHA256: [32]byte{1}}, {SHA256: [32]byte{2}, Type: "text/html"}}}
	for _, test := range []struct {
		target stele.Target
		want   int
	}{{stele.Target{Service: stele.N2L}, 2}, {stele.Target{Service: stele.N2L, Type: "application/pdf"}, 1}, {stele.Target{Service: stele.N2C}, 0}} {
		if got := signed(rec, &test.target); len(got) != test.want {
			t.Errorf("%+v: %v", test.target, got)
		}
	}
	rec.Persistence.Level = stele.Stable
	if got := signed(rec, &stele.Target{Service: stele.N2L}); got != nil {
		t.Errorf("nothing is promised, and %v", got)
	}
}

// What a person says is about the address and the answer that they saw, and about no others.
func TestLookAtAnother(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	g.status["https://a.example/1"] = 403
	g.on(nil)
	g.work(c)
	answer := func() string {
		found, err := c.Show(g.as("ruth"), id)
		if err != nil {
			t.Fatal(err)
		}
		return found[0].Answer
	}
	seen := answer()
	again := func() {
		if err := c.Ask(g.as("ed"), id); err != nil {
			t.Fatal(err)
		}
		g.work(c)
	}
	again()
	if now := answer(); now != seen || seen == "" {
		t.Errorf("the same answer is %q, and was %q", now, seen)
	}
	g.status["https://a.example/1"] = 401
	again()
	if err := c.Look(g.as("ed"), id, 0, true, seen); stele.KindOf(err) != stele.Conflict {
		t.Errorf("another answer: %v", err)
	}
	g.setURL(id, "https://a.example/2")
	g.status["https://a.example/2"] = 401
	seen = answer()
	g.work(c)
	again()
	if err := c.Look(g.as("ed"), id, 0, true, seen); stele.KindOf(err) != stele.Conflict {
		t.Errorf("another address: %v", err)
	}
	if err := c.Look(g.as("ed"), id, 0, true, ""); stele.KindOf(err) != stele.Conflict {
		t.Errorf("no answer: %v", err)
	}
	g.want(c, id, "blocked")
	seen = answer()
	for range 2 { // a request that is sent again is not refused
		if err := c.Look(g.as("ed"), id, 0, false, seen); err != nil {
			t.Fatal(err)
		}
		g.want(c, id, "gone")
	}
	if err := c.Look(g.as("ed"), id, 0, true, seen); stele.KindOf(err) != stele.Conflict {
		t.Errorf("another user has looked since: %v", err)
	}
}
