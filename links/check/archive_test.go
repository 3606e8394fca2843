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
		fails     bool
	}{
		{"/web", "https://a.example/1", links.Copy{URL: at + "/web/20261101120000/https://a.example/1", At: want}, false},
		{"/memento", "https://a.example/1", links.Copy{URL: at + "/copies/7", At: want}, false},
		{"/web", "https://a.example/none", links.Copy{}, false},
		{"/web", "https://a.example/busy", links.Copy{}, true},
		{"/file", "https://a.example/1", links.Copy{}, true},
	} {
		got, err := a.Archive(at+test.gate)(t.Context(), test.url, near)
		if got != test.copy || (err != nil) != test.fails {
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
	days(2)
	rec, err := g.r.Get(g.admin, broken)
	if err != nil || rec.By != registrar.CopyUser || len(rec.Targets) != 2 || rec.Targets[0].URL != copied || rec.Targets[1].URL != "https://a.example/1" || rec.Targets[1].Order != rec.Targets[0].Order+1 {
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
