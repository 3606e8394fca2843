package check

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// A host that asks to wait says nothing of where a target has moved: the address that an earlier answer named is still proposed,
// and not that of the page that asks to wait.
func TestWaitKeepsMoved(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const url, moved = "https://a.example/1", "https://a.example/new"
	g.register("ark:12345/x5a", url)
	g.moved[url] = moved
	g.on(nil)
	g.work(c)
	final := func() string {
		t.Helper()
		list := ""
		for f, err := range c.Findings(g.as("olga"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "") {
			if err != nil {
				t.Fatal(err)
			}
			list += f.State + " " + f.Final
		}
		return list
	}
	if got := final(); got != "moved "+moved {
		t.Fatalf("found %q", got)
	}
	g.moved[url], g.status[url] = "https://a.example/busy", 429
	asked := g.asked[url]
	for range 40 {
		g.pass(24 * time.Hour)
		g.work(c)
	}
	if g.asked[url] == asked {
		t.Fatal("it was not asked again")
	}
	if got := final(); got != "moved "+moved {
		t.Errorf("found %q", got)
	}
}

// What is set for a namespace leaves what is set above it as it is.
func TestSettingsBelow(t *testing.T) {
	g := newRegistry(t)
	g.on(func(l *registrar.LinkChecks) { l.FallBack = true })
	below := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5b"}
	if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: below.Scheme, Prefix: below.Prefix, Owner: "olga"}); err != nil {
		t.Fatal(err)
	}
	l, err := g.r.SetLinkChecks(g.as("olga"), below, func(l *registrar.LinkChecks) { l.Quota = 10 })
	if err != nil || !l.On || !l.FallBack || l.Quota != 10 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err = g.r.SetLinkChecks(g.as("olga"), below, func(l *registrar.LinkChecks) { l.On = false }); err != nil || l.On || l.Quota != 10 {
		t.Errorf("%+v, %v", l, err)
	}
}
