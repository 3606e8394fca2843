package check

import (
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
	for user, want := range map[string]string{"ruth": "[urn:example:x]", "olga": "[urn:example2:x urn:example:x]"} {
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
