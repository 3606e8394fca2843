package check

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// urn:example2 is not below urn:example: neither its checks nor what its readers see.
func TestNamespaces(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	first, second := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:example"}, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:example2"}
	for key, reader := range map[stele.NamespaceKey]string{first: "ruth", second: "sam"} {
		if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Owner: "olga", Grants: []stele.Grant{{To: "user:" + reader, Role: stele.RoleReader}}}); err != nil {
			t.Fatal(err)
		}
	}
	g.register("urn:example:x", "https://a.example/1")
	g.register("urn:example2:x", "https://b.example/1")
	g.status["https://a.example/1"], g.status["https://b.example/1"] = 404, 404
	set := func(key stele.NamespaceKey) {
		if _, err := g.r.SetLinkChecks(g.as("olga"), key, func(l *registrar.LinkChecks) { l.On = true }); err != nil {
			t.Fatal(err)
		}
	}
	set(first)
	g.work(c)
	if len(g.asked) != 1 || g.asked["https://a.example/1"] != 1 {
		t.Errorf("asked: %v", g.asked)
	}
	set(second)
	g.work(c)
	for user, want := range map[string]string{"ruth": "[urn:example:x]", "olga": "[urn:example:x]"} {
		var got []string
		for f, err := range c.Findings(g.as(user), first, "") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, f.ID)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s sees %v, want %s", user, got, want)
		}
	}
}

// Names that a minter makes elsewhere belong to its namespace, and are checked with it.
func TestNamesOfMinter(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	ns := &stele.Namespace{Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Owner: "olga", Minter: stele.Minter{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.34.243", IPPort: 800, Granularity: "1s"}}
	if _, err := g.r.AddNamespace(g.admin, ns); err != nil {
		t.Fatal(err)
	}
	id := g.register("8JMKD3MGP8W/34PGRBS", "https://a.example/1")
	if _, err := g.r.SetLinkChecks(g.as("olga"), ns.Key(), func(l *registrar.LinkChecks) { l.On = true }); err != nil {
		t.Fatal(err)
	}
	g.work(c)
	if found, err := c.Show(g.as("olga"), id); err != nil || found[0].State != "ok" {
		t.Errorf("%+v, %v", found, err)
	}
}

// What waits for its first check is counted of the names of the namespace that the user may see.
func TestWaitingOfOthers(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	first, second := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:example"}, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:example2"}
	for _, key := range []stele.NamespaceKey{first, second} {
		if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Owner: "olga", Grants: []stele.Grant{{To: "user:ruth", Role: stele.RoleReader}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := g.r.SetLinkChecks(g.as("olga"), key, func(l *registrar.LinkChecks) { l.On = true }); err != nil {
			t.Fatal(err)
		}
	}
	g.register("urn:example:x", "https://a.example/1")
	g.register("urn:example:y", "https://a.example/2")
	g.register("urn:example2:x", "https://b.example/1")
	l, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(c, l)
	for _, step := range []func(context.Context) error{w.begin, w.look, w.look, w.look} { // nothing is asked
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string]int{"olga": 2, "ruth": 2} {
		o, err := c.Overview(g.as(user), first, 0, 0)
		if err != nil || o.Waiting != want {
			t.Errorf("for %s %d targets wait, want %d; %v", user, o.Waiting, want, err)
		}
	}
	if o, err := c.Overview(g.as("ruth"), first, 0, 1); err != nil || o.Waiting != 1 || !o.WaitingMore {
		t.Errorf("one at most: %d targets wait, and more: %t, %v", o.Waiting, o.WaitingMore, err)
	}
	if o, err := c.Numbers(g.as("ruth"), first, 10); err != nil || o.Waiting != 0 {
		t.Errorf("numbers without what waits: %d targets wait, %v", o.Waiting, err)
	}
}

// A target that is put off was never asked all the same. It waits until it is, or until there is nothing to ask.
func TestWaitingLater(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	for i := range 9 {
		g.register(fmt.Sprintf("ark:12345/x5%d", i), fmt.Sprintf("https://h%d.example/", i))
	}
	wait := func(want int) {
		t.Helper()
		o, err := c.Overview(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, 0)
		if err != nil || o.Waiting != want || o.WaitingMore {
			t.Errorf("%d targets wait, want %d; %v", o.Waiting, want, err)
		}
	}
	g.on(func(l *registrar.LinkChecks) { l.Quota = 4 })
	g.work(c)
	wait(5)
	if _, err := g.r.Withdraw(g.admin, g.id("ark:12345/x58"), 0, "a test", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	g.work(c)
	wait(4)
	g.pass(day)
	g.work(c)
	wait(0)
	g.pass(day) // what was withdrawn is forgotten when it is due
	g.work(c)
	for cell, err := range g.store.Cells(t.Context(), waitCells, "") {
		t.Errorf("%q is left, %v", cell.Name, err)
	}
}

// The limit is one of the namespaces that are told, not of those that are looked at.
func TestCheckedNamespaces(t *testing.T) {
	g := newRegistry(t)
	add := func(prefix string) {
		if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: "olga"}); err != nil {
			t.Fatal(err)
		}
	}
	g.on(nil)
	for i := range 9 {
		add(fmt.Sprint("ark:12345/x5", i))
	}
	for _, prefix := range []string{"ark:12345/x6", "ark:12345/x7", "ark:12345/x7a"} {
		add(prefix)
		if _, err := g.r.SetLinkChecks(g.as("olga"), stele.NamespaceKey{Scheme: "ark", Prefix: prefix}, func(l *registrar.LinkChecks) { l.On = prefix != "ark:12345/x7" }); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]string{1: "[ark:12345/x5]", 3: "[ark:12345/x5 ark:12345/x6 ark:12345/x7a]", 50: "[ark:12345/x5 ark:12345/x6 ark:12345/x7a]"} {
		list, err := g.r.CheckedNamespaces(g.as("olga"), stele.RoleOwner, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ns := range list {
			got = append(got, ns.Prefix)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("at most %d: %v, want %s", limit, got, want)
		}
	}
}
