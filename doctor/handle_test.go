package doctor

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/serve/hdld"
	"github.com/stele-id/stele/store/mem"
)

// TestHandle: doctor asks the servers that the record of a prefix names: one that answers, one that answers for another site, and
// one that does not answer.
func TestHandle(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	store := mem.New(time.Now)
	names := resolver.New(store, schemes, resolver.Options{Now: time.Now})
	r := registrar.New(store, schemes, registrar.Options{Now: time.Now, OnCommit: names.Invalidate, OnNamespaces: names.InvalidateNamespaces,
		Secrets: secret.NewRing(secret.Text{Keep: key.Text(), Name: "the test's key"})})
	admin := auth.With(t.Context(), auth.Local())
	if _, err := r.AddNamespace(admin, &stele.Namespace{Scheme: "hdl", Prefix: "20.500.1/"}); err != nil {
		t.Fatal(err)
	}
	service := handles.New(handles.Options{Registrar: r, Resolver: names, Schemes: schemes, Now: time.Now})
	var site atomic.Pointer[hdld.Site]
	site.Store(&hdld.Site{Primary: true})
	server := hdld.New(hdld.Options{Handles: service, Now: time.Now, Rand: rand.Reader, Site: site.Load})
	if err := server.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	end := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}
	defer end()
	_, public, err := handles.NewAdminKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made, err := service.SetUp(admin, handles.Setup{Prefix: "20.500.1", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Port: server.Addrs()[0].Port(),
		Random: rand.Reader, AdminKey: public})
	if err != nil {
		t.Fatal(err)
	}
	look := func() []Finding {
		t.Helper()
		x, found := newTestSubject(nil)
		x.at = "handle"
		x.registry = &findings{namespaces: []*stele.Namespace{{Scheme: "hdl", Prefix: "20.500.1/"}, {Scheme: "ark", Prefix: "ark:12345/"}}}
		if err := x.registry.readHandleSites(admin, schemes, r); err != nil {
			t.Fatal(err)
		}
		examineHandle(t.Context(), x)
		return found()
	}
	if found := look(); len(found) != 2 || !has(found, "handle", Warning, "another site") {
		t.Errorf("before the server knows its site: %v", found)
	}
	site.Store(&hdld.Site{Primary: true, Octets: made.Site.Append(nil), Serial: 1})
	if found := look(); len(found) != 2 || !has(found, "handle", OK, "over tcp") || !has(found, "handle", OK, "over udp") {
		t.Errorf("with a server: %v", found)
	}
	end()
	if found := look(); len(found) != 2 || !has(found, "handle", Problem, "does not answer") {
		t.Errorf("without a server: %v", found)
	}
}
