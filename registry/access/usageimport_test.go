package access

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/usage"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// TestCountsFor counts the same requests in a server and from its log: the figures are the same, also of names with a suffix, of partial targets and of other spellings.
func TestCountsFor(t *testing.T) {
	begin := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	now := begin
	clock := func() time.Time { return now }
	schemes, err := all.New(all.Config{Now: clock, PURLHosts: []string{"id.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	languages, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := web.New(languages, web.Face{})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := usage.NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	root := auth.With(t.Context(), auth.Local())
	open := func() *registry.Registry {
		t.Helper()
		r := registry.New(mem.New(clock), schemes, registry.Options{Now: clock})
		t.Cleanup(func() { r.Close() })
		for _, prefix := range []string{"ark:12345", "https://id.example.org/docs"} {
			key, err := r.Registrar.ParsePrefix(prefix)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Registrar.AddNamespace(root, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
				t.Fatal(err)
			}
		}
		for name, partial := range map[string]bool{"ark:12345/x1": false, "ark:12345/x2": true, "https://id.example.org/docs/all/": true} {
			id, err := schemes.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Registrar.Register(root, &stele.Record{ID: id, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Partial: partial}}}); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	live, read := open(), open()
	counter := usage.New(usage.Options{Store: live.Registrar, Agents: agents, Schemes: schemes, Now: clock, Space: func(ctx context.Context, id stele.ID) (key stele.NamespaceKey) {
		if ns, err := live.Resolver.Namespace(ctx, id); err == nil && ns != nil {
			key = ns.Key()
		}
		return key
	}})
	server := httpd.New(httpd.Options{Resolver: live.Resolver, Registry: live.Registrar, Schemes: schemes, Pages: pages, Now: clock, Base: "https://id.example.org", Host: "id.example.org", Counter: counter})
	var log strings.Builder
	for _, target := range []string{
		"/ark:12345/x1", "/ark:/12345/x-1", "/ark:12345/x1/part", "/ark:12345/x1.v2?q=1", "/ark:12345/x2/a/b", "/ark:12345/x2b", "/ark:12345/nothing",
		"/docs/all/", "/docs/all/one", "/docs/all/one/two?x=y", "/docs/none", "/.info/ark:12345/x1", "/ark:12345/x1%2Fpart",
	} {
		r := httptest.NewRequest("GET", "https://id.example.org"+target, nil)
		r.RemoteAddr = "192.0.2.1:999"
		r.Header.Set("User-Agent", "curl/8.14.1")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Fprintf(&log, "192.0.2.1 - - [%s] \"GET %s HTTP/1.1\" %d 0 \"-\" \"curl/8.14.1\"\n", begin.Format("02/Jan/2006:15:04:05 -0700"), target, w.Code)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	counter.Run(ended) // it writes what is there
	im := usage.LogImporter{Agents: agents, Now: clock, Combined: true, Base: "/", Host: "id.example.org"}
	CountsFor(read, &im)
	sum, err := im.Import(t.Context(), "access.log", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(log.String())), nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"name", "month"} {
		for _, prefix := range []string{"ark:12345", "https://id.example.org/docs"} {
			var reports [2]*apijson.Usage
			for i, r := range []*registry.Registry{live, read} {
				if reports[i], err = NewLocal(r, clock, "here").Usage(root, apijson.UsageQuery{Name: prefix, By: by}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(reports[0], reports[1]); diff != "" || len(reports[0].Rows) == 0 {
				t.Errorf("%s by %s: %s\n%s%+v", prefix, by, diff, log.String(), sum)
			}
		}
	}
}
