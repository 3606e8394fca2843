package heir

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

var theKey = stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}

// place is a registry in memory with its server.
type place struct {
	*registry.Registry
	t      *testing.T
	admin  context.Context
	name   string
	server *httptest.Server
}

// newPlace starts a registry of this name, with the API and the resolver.
func newPlace(t *testing.T, name string) *place {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	store := mem.New(time.Now)
	t.Cleanup(func() { store.Close() })
	p := &place{t: t, name: name, admin: auth.With(context.Background(), auth.Local())}
	p.Registry = registry.New(store, schemes, registry.Options{Now: time.Now, Resolver: resolver.Options{Now: time.Now}, Log: slog.New(slog.DiscardHandler)})
	programs := api.New(api.Options{Registrar: p.Registrar, Store: store, Resolver: p.Resolver, Schemes: schemes, Directory: p.Directory, Pages: webtest.Pages(t), Now: time.Now})
	p.server = httptest.NewServer(httpd.New(httpd.Options{Resolver: p.Resolver, Registry: p.Registrar, Schemes: schemes, Pages: webtest.Pages(t), Now: time.Now, API: programs}))
	t.Cleanup(p.server.Close)
	if _, err := p.Registrar.SetLogKeys(p.admin, func(k *registrar.LogKeys) error { k.Origin = name; return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

// fill adds the namespace, one below it, and records.
func (p *place) fill() {
	p.t.Helper()
	for _, prefix := range []string{"ark:12345", "ark:12345/x5"} {
		if _, err := p.Registrar.AddNamespace(p.admin, &stele.Namespace{Scheme: "ark", Prefix: prefix}); err != nil {
			p.t.Fatal(err)
		}
	}
	for i := range 30 {
		p.register(fmt.Sprintf("ark:12345/x5b%02d", i))
	}
	p.register("ark:12345/a%2Fb")
}

func (p *place) id(text string) stele.ID {
	p.t.Helper()
	id, err := p.Schemes.Parse(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *place) register(name string) {
	p.t.Helper()
	rec := &stele.Record{ID: p.id(name), Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + name}}}
	if _, err := p.Registrar.Register(p.admin, rec); err != nil {
		p.t.Fatal(err)
	}
}

// change changes the namespaces in the store, as an adoption does.
func (p *place) change(change func(ns *stele.Namespace)) {
	p.t.Helper()
	for _, prefix := range []string{"ark:12345", "ark:12345/x5"} {
		ns, err := p.Registrar.Namespace(p.admin, stele.NamespaceKey{Scheme: "ark", Prefix: prefix})
		if err != nil {
			p.t.Fatal(err)
		}
		change(ns)
		ns.Version++
		if err := p.Store.Apply(p.admin, &stele.Commit{Namespaces: []*stele.Namespace{ns}}); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := p.Registrar.Reload(p.admin); err != nil {
		p.t.Fatal(err)
	}
	p.Resolver.InvalidateAll()
}

// adopts makes the namespaces look as if they were adopted now.
func (p *place) adopts(from string, change ...func(a *stele.Adoption)) {
	p.t.Helper()
	p.change(func(ns *stele.Namespace) {
		a := stele.Adoption{From: from, To: p.name, Bundle: strings.Repeat("0f", 32), Change: 40, Until: time.Now(), At: time.Now()}
		for _, c := range change {
			c(&a)
		}
		ns.Adoptions = append(ns.Adoptions, a)
	})
}

// checker asks heirs at loopback for a giver.
func (p *place) checker() *Checker {
	rule := outbound.Rule{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	return &Checker{Registrar: p.Registrar, Schemes: p.Schemes, HTTP: outbound.NewClient(rule, Patience, MaxAnswer), Agent: "Stele"}
}

// seals names an heir, and seals.
func (p *place) seals(heir, address string) {
	p.t.Helper()
	if _, err := p.Registrar.OfferNamespace(p.admin, theKey, heir, address); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.Registrar.SealNamespace(p.admin, theKey); err != nil {
		p.t.Fatal(err)
	}
}
