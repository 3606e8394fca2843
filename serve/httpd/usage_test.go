package httpd

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/usage"
)

// TestPublicUse shows how often names are used to all, where the owner wants it: a line on the page about a name, and pages of figures.
func TestPublicUse(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Identify = identifyAnn
		o.Figures = &usage.Book{Registrar: o.Registry.(*registrar.Registrar), Schemes: o.Schemes}
	})
	s.space("ark:12345", func(ns *stele.Namespace) { ns.Title = "Archive of Rivers" })
	s.space("ark:54321")
	s.add(`{"id":"ark:12345/x1","url":"https://example.org/1","metadata":{"what":"An atlas"}}`,
		`{"id":"ark:12345/secret","url":"https://example.org/3","readers":["user:bob"]}`, `{"id":"ark:54321/x1","url":"https://example.org/4"}`)
	const line, table = `<h2 id="use">Use</h2>`, `<table class="figures">`
	page := func(target string, head ...string) string {
		t.Helper()
		a := s.get(target, append([]string{"Accept", "text/html"}, head...)...)
		return a.body
	}
	if text := page("/.info/ark:12345/x1"); strings.Contains(text, line) {
		t.Error("figures are public before the owner says so")
	}
	s.fails("/.usage/ark:12345", http.StatusNotFound)
	if _, err := s.registry.SetUsageSettings(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, func(u *registrar.UsageSettings) { u.Public = true }); err != nil {
		t.Fatal(err)
	}
	if text := page("/.usage/ark:12345"); !strings.Contains(text, "Nothing was counted yet.") {
		t.Errorf("before counting begins: %s", text)
	}
	s.use(func(c *usage.Counter) {
		for n := range 1234 {
			c.Redirected(s.id("ark:12345/x1"), netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}), "Mozilla/5.0 Firefox/140.0", "https://www.example.net/")
		}
		c.Redirected(s.id("ark:12345/secret"), netip.MustParseAddr("192.0.2.1"), "Mozilla/5.0 Firefox/140.0", "")
	})
	if text := page("/.usage/ark:12345/x1"); strings.Contains(text, "1,234") {
		t.Error("figures of a month are public before it is over: who asks again and again sees each reader")
	}
	s.pass(32 * 24 * time.Hour)
	text := page("/.info/ark:12345/x1")
	if !strings.Contains(text, line) || !strings.Contains(text, "1,234 resolutions in 12 months") || !strings.Contains(text, `href="https://id.example.org/.usage/ark:12345/x1?of=record"`) || !strings.Contains(text, "<svg") {
		t.Errorf("the page about the name: %s", text)
	}
	if strings.Contains(text, "table below") || !strings.Contains(text, "as bars.") {
		t.Errorf("the page about the name speaks of a table that it does not have: %s", text)
	}
	if text := page("/.info/ark:12345/x1", "Authorization", "Bearer ann"); !strings.Contains(text, line) {
		t.Error("a user does not see what all see")
	}
	if text := page("/.info/ark:54321/x1"); strings.Contains(text, line) {
		t.Error("a namespace whose figures are not public has some")
	}
	for target, want := range map[string][]string{
		"/.usage/ark:12345/x1":                            {"An atlas", table, "<strong>1,234</strong>", "https://id.example.org/.info/ark:12345/x1", "https://id.example.org/.usage/ark:12345\""},
		"/.usage/ark:/12345/x1?of=record":                 {"An atlas", "<strong>1,234</strong>"},
		"/.usage/ark:12345":                               {"Archive of Rivers", table, "<strong>1,235</strong>", "visitors", "below it whose figures are public too"},
		"/.usage/ark%3A12345?of=namespace":                {"Archive of Rivers", "<strong>1,235</strong>"},
		"/.usage/ark:12345/x1?from=2020-01&until=2020-12": {"<strong>0</strong>"},
	} {
		text := page(target)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q: %s", target, part, text)
			}
		}
		for _, part := range []string{"example.net", "secret", "Led nowhere", "<script", "style="} {
			if strings.Contains(text, part) {
				t.Errorf("%s has %q", target, part)
			}
		}
	}
	if text := page("/.usage/ark:12345/x1", "Accept-Language", "pt-BR"); !strings.Contains(text, "1.234") || !strings.Contains(text, `lang="pt-BR"`) {
		t.Errorf("in Portuguese: %s", text)
	}
	if got := s.get("/.usage/ark:12345/x1", "Accept", "text/html").get("Cache-Control"); got != "max-age=60" {
		t.Errorf("caches keep it: %q", got)
	}
	for _, target := range []string{"/.usage/ark:12345/secret", "/.usage/ark:12345/none", "/.usage/ark:54321", "/.usage/ark:54321/x1", "/.usage/", "/.usage", "/.usage/ark:", "/.usage/%ff", "/.usage/ark:12345/x1?of=namespace", "/.usage/ark:12345?of=record", "/.usage/" + strings.Repeat("x", 5000)} {
		s.fails(target, http.StatusNotFound)
	}
	for _, target := range []string{"/.usage/ark:12345?from=soon", "/.usage/ark:12345/x1?from=soon", "/.usage/ark:12345?from=2026-12&until=2026-01"} {
		s.fails(target, http.StatusBadRequest)
	}
}

// use has readers use names, and writes the figures.
func (s *site) use(read func(c *usage.Counter)) {
	s.t.Helper()
	agents, err := usage.NewAgents(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := usage.New(usage.Options{Store: s.registry, Agents: agents, Schemes: s.schemes, Now: s.now, Space: func(ctx context.Context, id stele.ID) (key stele.NamespaceKey) {
		if ns, err := s.registry.FindNamespace(s.admin, id); err == nil {
			key = ns.Key()
		}
		return key
	}})
	read(c)
	ended, end := context.WithCancel(s.admin)
	end()
	c.Run(ended) // it writes what it has, and ends
}

// brokenFigures can't be read.
type brokenFigures struct{}

func (brokenFigures) Report(context.Context, apijson.UsageQuery) (*apijson.Usage, error) {
	return nil, stele.Errorf("report", stele.ID{}, stele.Internal, "usage.settings-damaged", "they are damaged")
}

// TestBrokenFigures: figures that can't be read keep nobody from the page about a name.
func TestBrokenFigures(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Figures = brokenFigures{} })
	s.space("ark:12345")
	s.add(`{"id":"ark:12345/x1","url":"https://example.org/1"}`)
	if a := s.get("/.info/ark:12345/x1", "Accept", "text/html"); a.StatusCode != http.StatusOK || strings.Contains(a.body, "damaged") {
		t.Errorf("the page is %d: %s", a.StatusCode, a.body)
	}
}
