package check

import (
	"context"
	"fmt"
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

// gate is an archive as others are: the TimeGate leads to the copy that is nearest to a time, and the copy is not asked.
const gate = `
map $http_accept_datetime $nearest { default 20200101000000; "~16 Nov 2026" 20261101120000; }
server {
	listen {at};
	merge_slashes off;
	location ~ ^/web/(https?://.*/none)$ { return 404; }
	location ~ ^/web/(https?://.*/busy)$ { return 503; }
	location ~ ^/web/(?<page>https?://.*)$ { return 302 /web/$nearest/$page; }
	location ~ ^/memento/(https?://.*)$ { add_header Memento-Datetime "Sun, 01 Nov 2026 12:00:00 GMT" always; return 302 /copies/7; }
	location ~ ^/hop/(?<page>https?://.*)$ { return 301 /web/$page; }
	location ~ ^/circle/.*?(?<page>https?://.*)$ { return 301 /circle/x$request_uri; }
	location ~ ^/login/ { return 302 /enter?next=20261101120000; }
	location ~ ^/refused/ { return 403; }
	location ~ ^/file/ { return 302 file:///etc/passwd; }
}
`

func startGate(t *testing.T) (at string, asker *ask.Asker) {
	t.Helper()
	at = "127.0.0.1:" + servertest.FreePort(t)
	servertest.Nginx(t, at, t.TempDir(), strings.ReplaceAll(gate, "{at}", at))
	rule, err := outbound.ParseRule([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := links.UsualRules()
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + at, ask.New(ask.Options{Rule: rule, Rules: rules, Agent: "Stele", Now: time.Now})
}

func TestTimeGate(t *testing.T) {
	at, a := startGate(t)
	near := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	want := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		gate, url string
		copy      links.Copy
		fails     stele.Kind // 0: it does not
	}{
		{"/web", "https://a.example/1", links.Copy{URL: at + "/web/20261101120000/https://a.example/1", At: want}, 0},
		{"/memento", "https://a.example/1", links.Copy{URL: at + "/copies/7", At: want}, 0},
		{"/hop", "https://a.example/1", links.Copy{URL: at + "/web/20261101120000/https://a.example/1", At: want}, 0},
		{"/web", "https://a.example/none", links.Copy{}, 0},
		{"/web", "https://a.example/busy", links.Copy{}, stele.Unavailable},
		{"/circle", "https://a.example/20200101000000/", links.Copy{}, stele.Invalid},
		{"/login", "https://a.example/1", links.Copy{}, stele.Invalid},
		{"/refused", "https://a.example/1", links.Copy{}, stele.Invalid},
		{"/file", "https://a.example/1", links.Copy{}, stele.Invalid},
	} {
		got, err := a.Archive(at+test.gate)(t.Context(), test.url, near)
		if got != test.copy || (err != nil) != (test.fails != 0) || err != nil && stele.KindOf(err) != test.fails {
			t.Errorf("%s/%s: %+v, %v", test.gate, test.url, got, err)
		}
	}
}

// An archived copy of what is broken is proposed, and used only where the owner wants that.
func TestArchivedCopy(t *testing.T) {
	at, a := startGate(t)
	g := newRegistry(t)
	c := g.checker(time.Hour)
	questions := 0
	c.o.Archive = func(ctx context.Context, url string, near time.Time) (links.Copy, error) {
		questions++
		return a.Archive(at+"/web")(ctx, url, near)
	}
	broken := g.register("ark:12345/x5a", "https://a.example/1")
	works := g.register("ark:12345/x5b", "https://b.example/1")
	none := g.register("ark:12345/x5c", "https://c.example/none")
	g.on(nil)
	g.work(c)
	g.status["https://a.example/1"], g.status["https://c.example/none"] = 404, 404
	for _, id := range []stele.ID{broken, none} {
		if err := c.Ask(g.as("ed"), id); err != nil {
			t.Fatal(err)
		}
	}
	days := func(n int) {
		for range n * 4 {
			g.work(c)
			g.pass(6 * time.Hour)
		}
	}
	days(7)
	if questions > 0 {
		t.Errorf("the archive was asked %d times, and nothing is broken", questions)
	}
	days(5)
	g.want(c, broken, "broken")
	copied := at + "/web/20261101120000/https://a.example/1"
	found, err := c.Show(g.as("ruth"), broken)
	if err != nil || found[0].Copy != copied || found[0].CopyAt.IsZero() || questions != 2 {
		t.Fatalf("%+v, %v after %d questions", found, err, questions)
	}
	if found, err := c.Show(g.as("ruth"), none); err != nil || found[0].Copy != "" || found[0].CopyAsked.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
	days(28)
	if questions < 6 || questions > 2*6 {
		t.Errorf("the archive was asked %d times in five weeks", questions)
	}
	versions := func(id stele.ID) (list []string) {
		for rec, err := range g.r.History(g.admin, id) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%d by %s: %s", rec.Version, rec.By, rec.Targets[0].URL))
		}
		return list
	}
	if list := versions(broken); len(list) != 1 {
		t.Fatalf("the owner does not want that: %q", list)
	}
	g.on(func(l *registrar.LinkChecks) { l.FallBack = true })
	days(9) // until it is asked again
	rec, err := g.r.Get(g.admin, broken)
	if err != nil || rec.By != registrar.CopyUser || len(rec.Targets) != 2 || rec.Targets[0].URL != copied || rec.Targets[1].URL != "https://a.example/1" || rec.Targets[1].Order != rec.Targets[0].Order+1 ||
		rec.Targets[0].Status != 302 || rec.Targets[0].TTL != 3600 || rec.Targets[1].Status != 0 || rec.Targets[1].TTL != 0 {
		t.Fatalf("%+v, %v", rec, err)
	}
	for _, id := range []stele.ID{works, none} {
		if list := versions(id); len(list) != 1 {
			t.Errorf("%s: %q", id, list)
		}
	}
	// Who reverts that does not want it.
	if _, err := g.r.Revert(g.as("ed"), broken, 0, 1); err != nil {
		t.Fatal(err)
	}
	days(50)
	g.want(c, broken, "broken")
	if list := versions(broken); len(list) != 3 {
		t.Errorf("%q", list)
	}
}

// All names of a host that is down have copies too.
func TestCopiesOfHost(t *testing.T) {
	at, a := startGate(t)
	g := newRegistry(t)
	c := g.checker(time.Hour)
	c.o.Archive = a.Archive(at + "/web")
	id := g.register("ark:12345/x5a", "https://away.example/1")
	g.status["https://away.example/1"] = 0
	g.on(nil)
	for range 12 * 8 {
		g.work(c)
		g.pass(3 * time.Hour)
	}
	if found, err := c.Show(g.as("ruth"), id); err != nil || found[0].State != "failing" || found[0].Copy == "" {
		t.Errorf("%+v, %v", found, err)
	}
}

// lost is a registry with a name whose target is broken and has a copy, and whose owner wants that it is used.
func lostTarget(t *testing.T, rec *stele.Record) (g *registry, c *Checker, days func(n int)) {
	t.Helper()
	g = newRegistry(t)
	c = g.checker(time.Hour)
	c.o.Archive = func(_ context.Context, url string, _ time.Time) (links.Copy, error) {
		return links.Copy{URL: "https://archive.example/web/20261101120000/" + url, At: g.clock()}, nil
	}
	rec.ID, rec.State = g.id("ark:12345/x5a"), stele.Active
	rec.Targets = []stele.Target{{Service: stele.N2L, URL: "https://a.example/1", Order: 100, Preference: 10}}
	if _, err := g.r.Register(g.admin, rec); err != nil {
		t.Fatal(err)
	}
	g.register("ark:12345/x5b", "https://a.example/2")
	g.status["https://a.example/1"] = 404
	g.on(func(l *registrar.LinkChecks) { l.FallBack = true })
	return g, c, func(n int) {
		for range n * 4 {
			g.work(c)
			g.pass(6 * time.Hour)
		}
	}
}

// isReplaced reports whether a copy took the place of the target.
func (g *registry) isReplaced() bool {
	g.t.Helper()
	rec, err := g.r.Get(g.admin, g.id("ark:12345/x5a"))
	if err != nil {
		g.t.Fatal(err)
	}
	return len(rec.Targets) > 1
}

// A server that was switched off does not know whether a target is still broken.
func TestNoCopyAfterPause(t *testing.T) {
	g, c, days := lostTarget(t, &stele.Record{})
	days(12)
	g.want(c, g.id("ark:12345/x5a"), "broken")
	delete(g.status, "https://a.example/1")
	g.pass(40 * day)
	days(9)
	g.want(c, g.id("ark:12345/x5a"), "ok")
	if g.isReplaced() {
		t.Error("a target that works was replaced by a copy")
	}
}

// What an owner has paused is left as it is.
func TestNoCopyOfPaused(t *testing.T) {
	g, c, days := lostTarget(t, &stele.Record{})
	days(36)
	asked := 0
	archive := c.o.Archive
	c.o.Archive = func(ctx context.Context, url string, near time.Time) (links.Copy, error) {
		asked++
		return archive(ctx, url, near)
	}
	g.on(func(l *registrar.LinkChecks) {
		l.Pauses = []registrar.HostPause{{Host: "a.example", Until: g.clock().Add(60 * day)}}
	})
	days(10)
	if g.isReplaced() || asked > 0 {
		t.Errorf("replaced: %v, questions: %d", g.isReplaced(), asked)
	}
	g.on(func(l *registrar.LinkChecks) { l.Pauses = nil })
	days(10)
	if !g.isReplaced() || asked == 0 {
		t.Errorf("replaced after the pause: %v, questions: %d", g.isReplaced(), asked)
	}
}

// A copy that can't be read does not take the place of anything, and one that an archive does not have any more is not proposed.
func TestCopyIsRead(t *testing.T) {
	g, c, days := lostTarget(t, &stele.Record{})
	g.status["https://archive.example/web/20261101120000/https://a.example/1"] = 503
	days(50)
	if g.isReplaced() {
		t.Error("the copy can't be read")
	}
	if found, err := c.Show(g.as("ruth"), g.id("ark:12345/x5a")); err != nil || found[0].Copy == "" {
		t.Errorf("%+v, %v", found, err)
	}
	c.o.Archive = func(context.Context, string, time.Time) (links.Copy, error) { return links.Copy{}, nil }
	days(9)
	if found, err := c.Show(g.as("ruth"), g.id("ark:12345/x5a")); err != nil || found[0].Copy != "" || !found[0].CopyAt.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
}

// An archive is not asked for what the public may not see, or where checks are off; and content that is promised not to change is not replaced.
func TestNoCopyOf(t *testing.T) {
	for name, test := range map[string]struct {
		rec       stele.Record
		off       bool
		questions bool
	}{
		"restricted": {rec: stele.Record{Readers: []string{"user:ruth"}}},
		"off":        {off: true},
		"unchanging": {rec: stele.Record{Persistence: stele.Persistence{Level: stele.Unchanging}}, questions: true},
	} {
		g, c, days := lostTarget(t, &test.rec)
		questions := 0
		archive := c.o.Archive
		c.o.Archive = func(ctx context.Context, url string, near time.Time) (links.Copy, error) {
			questions++
			return archive(ctx, url, near)
		}
		if test.off {
			archived := c.o.Archive
			c.o.Archive = nil
			days(12)
			c.o.Archive = archived
			g.on(func(l *registrar.LinkChecks) { l.On = false })
		}
		days(50)
		if g.isReplaced() || (questions > 0) != test.questions {
			t.Errorf("%s: replaced: %v, questions: %d", name, g.isReplaced(), questions)
		}
	}
}

// An address that an archive refuses, or to which it does not answer, does not keep others from being asked.
func TestRefusedCopies(t *testing.T) {
	g, c, days := lostTarget(t, &stele.Record{})
	other := g.register("ark:12345/x5c", "https://c.example/1")
	g.status["https://c.example/1"] = 404
	archive := c.o.Archive
	questions := 0
	refusal := stele.Errorf("ask archive", stele.ID{}, stele.Invalid, "test.refused", "no")
	c.o.Archive = func(ctx context.Context, url string, near time.Time) (links.Copy, error) {
		if url == "https://a.example/1" {
			questions++
			return links.Copy{}, refusal
		}
		return archive(ctx, url, near)
	}
	days(16)
	if found, err := c.Show(g.as("ruth"), other); err != nil || found[0].Copy == "" || questions > 2 {
		t.Errorf("%+v, %v; the archive was asked %d times in two weeks for what it refuses", found, err, questions)
	}
	l, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(c, l)
	w.copies = []key{keyOf(other, 0)}
	busy := stele.Errorf("ask archive", stele.ID{}, stele.Unavailable, "test.busy", "later")
	if err := w.takeCopy(t.Context(), &archived{key: keyOf(g.id("ark:12345/x5a"), 0), url: "https://a.example/1", err: busy}); err != nil || len(w.copies) != 1 || w.copyAt.Sub(g.clock()) != copyPause {
		t.Errorf("%v; %d questions wait until %s", err, len(w.copies), w.copyAt)
	}
}
