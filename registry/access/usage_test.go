package access

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/usage"
)

// TestUsage asks for the figures of more names than a page of a list has, here and behind the API: both answer the same.
func TestUsage(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r := registry.New(mem.New(time.Now), schemes, registry.Options{Now: time.Now})
	defer r.Close()
	root := auth.With(t.Context(), auth.Principal{Name: "root", Admin: true})
	if _, err := r.Registrar.AddUser(root, auth.User{Name: "root", Admin: true}); err != nil {
		t.Fatal(err)
	}
	token, _, err := r.Registrar.CreateToken(root, auth.TokenRequest{User: "root", Never: true})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := usage.NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	counter := usage.New(usage.Options{Store: r.Registrar, Agents: agents, Schemes: schemes, Now: time.Now, Space: func(context.Context, stele.ID) stele.NamespaceKey { return stele.NamespaceKey{} }})
	const names = 150
	for n := range names {
		counter.Redirected(stele.StoredID("ark", fmt.Sprintf("ark:12345/x%d", n)), netip.MustParseAddr("192.0.2.1"), "curl/8.14.1", "")
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	counter.Run(ended) // it writes what is there

	book := &usage.Book{Registrar: r.Registrar, Schemes: schemes}
	server := httptest.NewServer(api.New(api.Options{Registrar: r.Registrar, Store: r.Store, Resolver: r.Resolver, Schemes: schemes, Directory: r.Directory, Now: time.Now, Usage: book}))
	defer server.Close()
	far, err := remote.New(server.URL, token, remote.Options{Schemes: schemes})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	for where, l := range map[string]*Registry{"here": NewLocal(r, time.Now, "here"), "there": NewRemote(far, time.Now)} {
		for limit, want := range map[int]int{0: names, 120: 120, 100_000: names, 100_001: -1, -1: -1} {
			report, err := l.Usage(root, apijson.UsageQuery{Name: "ark:12345/", By: "name", Limit: limit})
			switch {
			case want < 0:
				if stele.KindOf(err) != stele.Invalid {
					t.Errorf("%s, limit %d: %v", where, limit, err)
				}
			case err != nil:
				t.Errorf("%s, limit %d: %v", where, limit, err)
			case len(report.Rows) != want || report.Total.Machine != names:
				t.Errorf("%s, limit %d: %d rows, %+v", where, limit, len(report.Rows), report.Total)
			}
		}
	}
}
