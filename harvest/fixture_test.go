package harvest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/oai"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

// registry is a registry that names are harvested into, or from.
type registry struct {
	*registrar.Registrar
	t       testing.TB
	now     time.Time
	store   *mem.Store
	schemes *stele.Schemes
	ctx     context.Context
}

func newRegistry(t testing.TB) *registry {
	t.Helper()
	r := &registry{t: t, now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), ctx: auth.With(t.Context(), auth.Local())}
	clock := func() time.Time { return r.now }
	var err error
	if r.schemes, err = all.New(all.Config{Now: clock}); err != nil {
		t.Fatal(err)
	}
	r.store = mem.New(clock)
	t.Cleanup(func() { r.store.Close() })
	r.Registrar = registrar.New(r.store, r.schemes, registrar.Options{Now: clock})
	return r
}

// Count and Export are what an access.Registry has.
func (r *registry) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	return r.store.Count(ctx, key)
}

func (r *registry) Export(ctx context.Context, key stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return r.Scan(ctx, key, "")
}

func (r *registry) space(key stele.NamespaceKey, listed bool) {
	r.t.Helper()
	if _, err := r.AddNamespace(r.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Listed: listed}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *registry) id(name string) stele.ID {
	r.t.Helper()
	id, err := r.schemes.Parse(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *registry) register(name, url string) {
	r.t.Helper()
	if _, err := r.Register(r.ctx, &stele.Record{ID: r.id(name), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}},
		Metadata: stele.Metadata{"what": "Of " + name}}); err != nil {
		r.t.Fatal(err)
	}
}

// leads returns where a name leads, with a word for its state.
func (r *registry) leads(name string) string {
	rec, err := r.Get(r.ctx, r.id(name))
	if errors.Is(err, stele.NotFound) {
		return "nothing"
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var urls []string
	for _, t := range rec.Targets {
		urls = append(urls, fmt.Sprintf("%s %d", t.URL, t.Preference))
	}
	return strings.TrimSpace(string(rec.State) + " " + strings.Join(urls, ", "))
}

// provide serves a registry to harvesters, and counts requests.
func (r *registry) provide(page int, watch func(q url.Values)) (at string) {
	r.t.Helper()
	clock := func() time.Time { return r.now }
	h := httpd.New(httpd.Options{Resolver: resolver.New(r.store, r.schemes, resolver.Options{Now: clock}), Registry: r.Registrar, Schemes: r.schemes, Pages: webtest.Pages(r.t), Now: clock, Base: "https://id.example.org",
		OAI: oai.New(oai.Options{Registrar: r.Registrar, Store: r.store, Schemes: r.schemes, Now: clock, Name: "A repository", Mail: "ids@example.org", Page: page})})
	return serve(r.t, func(w http.ResponseWriter, q *http.Request) {
		if watch != nil {
			watch(q.URL.Query())
		}
		h.ServeHTTP(w, q)
	}) + oai.Root
}

func serve(t testing.TB, h http.HandlerFunc) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// client returns a client that does not wait, but notes for how long it would.
func client(r *registry, waited *time.Duration) *harvest.Client {
	return &harvest.Client{HTTP: &http.Client{}, Now: func() time.Time { return r.now }, Pause: time.Second, Agent: "test", Wait: func(ctx context.Context, d time.Duration) error {
		if r.now = r.now.Add(d); waited != nil {
			*waited += d
		}
		return ctx.Err()
	}}
}

// job harvests into a registry, and returns what was counted and rejected.
type job struct {
	*registry
	o        harvest.Options
	rejected []string
	outside  int
}

func newJob(r *registry, at string, into stele.NamespaceKey, f harvest.Format) *job {
	j := &job{registry: r}
	j.o = harvest.Options{To: r, Schemes: r.schemes, Client: client(r, nil), Source: harvest.Source{URL: at, Format: f}, Into: into, Limit: harvest.UsualLimit,
		Rejected: func(item *harvest.Item, err error) {
			code, _ := stele.CodeOf(err)
			j.rejected = append(j.rejected, item.Identifier+" "+string(code))
		},
		Outside: func(*harvest.Item) { j.outside++ }}
	return j
}

func (j *job) run(ctx context.Context) (harvest.Counts, error) {
	j.t.Helper()
	j.rejected, j.outside = nil, 0
	h, err := harvest.New(ctx, j.o)
	if err != nil {
		return harvest.Counts{}, err
	}
	err = h.Run(ctx)
	c, _ := h.Counts()
	return c, err
}

func (j *job) must() harvest.Counts {
	j.t.Helper()
	c, err := j.run(j.ctx)
	if err != nil {
		j.t.Fatal(err)
	}
	return c
}
