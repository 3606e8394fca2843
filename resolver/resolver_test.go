package resolver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

// registry is a resolver with its store, for tests.
type registry struct {
	*Resolver
	t     testing.TB
	store stele.Store
}

func newSchemes(t testing.TB) *stele.Schemes {
	t.Helper()
	schemes, err := all.New(all.Config{Now: clock, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return schemes
}

func newRegistry(t testing.TB, o Options) *registry {
	t.Helper()
	store := mem.New(clock)
	t.Cleanup(func() { store.Close() })
	return &registry{New(store, newSchemes(t), o), t, store}
}

func (r *registry) id(text string) stele.ID {
	r.t.Helper()
	id, err := r.schemes.Parse(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// put commits a record, as the registrar does: with invalidation, and a version
// that is one more than the last.
func (r *registry) put(record stele.Record) *stele.Record {
	r.t.Helper()
	record.Version++
	if record.State == "" {
		record.State = stele.Active
	}
	if err := r.store.Apply(r.t.Context(), &stele.Commit{Records: []*stele.Record{&record}}); err != nil {
		r.t.Fatal(err)
	}
	r.Invalidate(&record)
	return &record
}

// to registers a name with targets.
func (r *registry) to(name string, targets ...stele.Target) {
	r.t.Helper()
	r.put(stele.Record{ID: r.id(name), Targets: targets})
}

func (r *registry) namespace(ns stele.Namespace) {
	r.t.Helper()
	ns.Version++
	if err := r.store.Apply(r.t.Context(), &stele.Commit{Namespaces: []*stele.Namespace{&ns}}); err != nil {
		r.t.Fatal(err)
	}
	r.InvalidateNamespaces()
}

func (r *registry) resolve(q Request) Resolution {
	r.t.Helper()
	res, err := r.Resolve(r.t.Context(), q)
	if err != nil {
		r.t.Fatalf("%s: %v", q.ID, err)
	}
	return res
}

// location resolves a name, with a query after a question mark if it has one, and tells
// the answer in short.
func (r *registry) location(text string, who ...string) string {
	r.t.Helper()
	name, query, _ := strings.Cut(text, "?")
	res, err := r.Resolve(r.t.Context(), Request{ID: r.id(name), Query: query, Who: reader(who...)})
	switch {
	case err != nil:
		return stele.KindOf(err).String()
	case res.URL == "":
		return res.Kind.String()
	}
	return res.URL
}

func page(url string) stele.Target { return stele.Target{Service: stele.N2L, URL: url} }

func partial(url string) stele.Target {
	return stele.Target{Service: stele.N2L, URL: url, Partial: true}
}

// withAndWithout runs a test on registries that keep records in memory and on
// those that do not. All requests are to be made twice: the answers must be the
// same.
func withAndWithout(t *testing.T, test func(t *testing.T, r *registry)) {
	t.Run("cached", func(t *testing.T) { test(t, newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20})) })
	t.Run("uncached", func(t *testing.T) { test(t, newRegistry(t, Options{})) })
}

func TestMatch(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.put(stele.Record{ID: r.id("ark:12345/x1"), Aliases: []stele.ID{r.id("20.500.12345/one")}, Targets: []stele.Target{page("https://example.org/1")}})
		r.to("ark:12345/x2", partial("https://example.org/two"))
		r.to("ark:12345/x2/a", page("https://example.org/a"))
		r.to("ark:12345/x2/b", partial("https://example.org/b?page="))
		r.to("ark:12345/x3")
		r.put(stele.Record{ID: r.id("ark:12345/x4"), State: stele.Reserved, Targets: []stele.Target{partial("https://example.org/4")}})
		r.put(stele.Record{ID: r.id("ark:12345/x5"), State: stele.Withdrawn, Targets: []stele.Target{partial("https://example.org/5")}})
		r.put(stele.Record{ID: r.id("ark:12345/x6"), State: stele.Withdrawn, Targets: []stele.Target{page("https://example.org/6")}})
		r.put(stele.Record{ID: r.id("ark:12345/x7"), Readers: []string{"user:ada", "group:staff"}, Targets: []stele.Target{partial("https://example.org/7")}})
		r.put(stele.Record{ID: r.id("ark:12345/x2/c"), Readers: []string{"user:ada"}, Targets: []stele.Target{partial("https://example.org/c")}})
		r.put(stele.Record{ID: r.id("ark:12345/x8"), State: stele.Withdrawn, Readers: []string{"user:ada"}})
		r.to("https://purl.org/net/", partial("https://example.org/net/"))
		r.to("urn:example:a", partial("ftp://user@example.org:2121"))
		r.to("urn:example:a:part", page("https://example.org/part"))
		r.to("urn:example:c", page("https://example.org/c"))
		r.put(stele.Record{ID: r.id("urn:example:gone"), State: stele.Withdrawn, Targets: []stele.Target{page("https://example.org/6")}})
		r.to("20.500.12345/two", partial("https://example.org/two"))

		for _, tt := range []struct {
			name string
			who  []string
			want string
		}{
			{"ark:12345/x1", nil, "https://example.org/1"},
			{"ark:/12345/x-1", nil, "https://example.org/1"},
			{"hdl:20.500.12345/ONE", nil, "https://example.org/1"},
			{"ark:12345/x1/p", nil, "https://example.org/1/p"}, // ARK's suffix passthrough
			{"ark:12345/x1.p?r", nil, "https://example.org/1.p?r"},
			{"ark:12345/x1p", nil, "not found"}, // another name, and no part of x1
			{"ark:12345/x1?q", nil, "https://example.org/1?q"},
			{"urn:example:c", nil, "https://example.org/c"},
			{"urn:example:c?q", nil, "https://example.org/c"}, // not partial
			{"urn:example:c:d", nil, "not found"},
			{"ark:12345/x2", nil, "https://example.org/two"},
			{"ark:12345/x2?q=1", nil, "https://example.org/two?q=1"},
			{"ark:12345/x2/p", nil, "https://example.org/two/p"},
			{"ark:12345/x2/p.q?r", nil, "https://example.org/two/p.q?r"},
			{"ark:12345/x2.p", nil, "https://example.org/two.p"},
			{"ark:12345/x2p", nil, "https://example.org/twop"},       // a partial target gets all that follows
			{"ark:12345/x2/bp", nil, "https://example.org/b?page=p"}, // and the longest prefix counts
			{"ark:12345/x2/a", nil, "https://example.org/a"},
			{"ark:12345/x2/a/b", nil, "https://example.org/a/b"},                 // the longest
			{"urn:example:a:part:b", nil, "ftp://user@example.org:2121/:part:b"}, // the longest that is partial
			{"ark:12345/x2/b/7?r=1", nil, "https://example.org/b?page=/7&r=1"},
			{"ark:12345/x2/c", []string{"user:ada"}, "https://example.org/c"},
			{"ark:12345/x2/c", nil, "https://example.org/two/c"}, // as if it was not there
			{"ark:12345/x2/c/d", nil, "https://example.org/two/c/d"},
			{"ark:12345/x3", nil, "description"},
			{"ark:12345/x4", []string{"user:ada"}, "not found"},
			{"ark:12345/x4/p", nil, "not found"},
			{"ark:12345/x5", nil, "tombstone"},
			{"ark:12345/x5/p", nil, "tombstone"},
			{"ark:12345/x6", nil, "tombstone"},
			{"ark:12345/x6/p", nil, "tombstone"},
			{"urn:example:gone:p", nil, "not found"},
			{"ark:12345/x7", nil, "not found"},
			{"ark:12345/x7", []string{"user:bob", "group:guests"}, "not found"},
			{"ark:12345/x7", []string{"user:bob", "group:staff"}, "https://example.org/7"},
			{"ark:12345/x7/p", nil, "not found"},
			{"ark:12345/x7/p", []string{"user:ada"}, "https://example.org/7/p"},
			{"ark:12345/x8", nil, "not found"},
			{"ark:12345/x8", []string{"user:ada"}, "tombstone"},
			{"ark:12345/x9", nil, "not found"},
			{"https://purl.org/net/a/b", nil, "https://example.org/net/a/b"},
			{"https://purl.org/net/a/b?c=d&e", nil, "https://example.org/net/a/b?c=d&e"},
			{"https://purl.org/net", nil, "not found"},
			{"urn:example:a:b", nil, "ftp://user@example.org:2121/:b"},
			{"urn:example:a:b%20c", nil, "ftp://user@example.org:2121/:b%20c"},
			{"20.500.12345/two/b%20c", nil, "https://example.org/two/B%2520C"}, // a handle's text is not encoded
			{"20.500.12345/two/../c", nil, "invalid"},
		} {
			for range 2 {
				if got := r.location(tt.name, tt.who...); got != tt.want {
					t.Errorf("%s for %q: %s, want %s", tt.name, tt.who, got, tt.want)
				}
			}
		}
	})
}

func TestMatched(t *testing.T) {
	r := newRegistry(t, Options{})
	r.put(stele.Record{ID: r.id("ark:12345/x1"), Aliases: []stele.ID{r.id("20.500.12345/one")}, Targets: []stele.Target{partial("https://example.org/1")}})
	res := r.resolve(Request{ID: r.id("20.500.12345/one/two")})
	if res.ID != r.id("20.500.12345/one/two") || res.Matched != "20.500.12345/ONE" || res.Record.ID != r.id("ark:12345/x1") || res.URL != "https://example.org/1/TWO" {
		t.Errorf("%+v", res)
	}
}

// A hidden name gives the same answer as one that is not registered, letter by letter
// except the name.
func TestHidden(t *testing.T) {
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20})
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Checked: true})
	r.put(stele.Record{ID: r.id("ark:12345/x3"), State: stele.Reserved, Targets: []stele.Target{page("https://example.org/1")}})
	r.put(stele.Record{ID: r.id("ark:12345/x2"), Readers: []string{"user:ada"}, Targets: []stele.Target{partial("https://example.org/1")}})
	ask := func(name string) (Resolution, string) {
		res, err := r.Resolve(t.Context(), Request{ID: r.id(name), Who: reader("user:bob"), Trace: true})
		if err == nil {
			t.Fatalf("%s is found", name)
		}
		for i := range res.Trace {
			res.Trace[i].Result = stele.ReceivedMessage(res.Trace[i].Result.Code, strings.ReplaceAll(res.Trace[i].Result.Error(), name, "NAME"), nil)
		}
		return res, strings.ReplaceAll(err.Error(), name, "NAME")
	}
	wantRes, wantErr := ask("ark:12345/x7")
	for _, name := range []string{"ark:12345/x3", "ark:12345/x2"} {
		for range 2 {
			res, err := ask(name)
			if diff := cmp.Diff(wantRes, res, cmp.AllowUnexported(stele.ID{}, stele.Message{})); diff != "" || err != wantErr {
				t.Errorf("%s can be told from an unknown name: %s %s", name, diff, err)
			}
		}
	}
}

func TestTombstone(t *testing.T) {
	r := newRegistry(t, Options{DefaultTTL: 60})
	stone := stele.Tombstone{Reason: "retracted", At: noon, Replacement: r.id("ark:12345/x2")}
	r.put(stele.Record{ID: r.id("ark:12345/x1"), State: stele.Withdrawn, Tombstone: &stone})
	for _, s := range []stele.Service{"", stele.N2C, stele.N2S} {
		res := r.resolve(Request{ID: r.id("ark:12345/x1"), Service: s})
		if res.Kind != Tombstone || res.Tombstone != stone || res.Status != 410 || res.TTL != 60 || res.URL != "" || res.Record == nil {
			t.Errorf("%q: %+v", s, res)
		}
	}
}

func TestServices(t *testing.T) {
	r := newRegistry(t, Options{})
	r.to("ark:12345/x1", page("https://example.org/1"),
		stele.Target{Service: stele.N2C, URL: "https://example.org/1.xml"}, stele.Target{Service: stele.N2S, URL: "https://example.org/1.sig"})
	r.to("ark:12345/x2", page("https://example.org/2"))
	r.to("ark:12345/x3", stele.Target{Service: stele.N2C, URL: "https://example.org/3/", Partial: true}, page("https://example.org/3"))
	r.put(stele.Record{ID: r.id("ark:12345/x4"), State: stele.Withdrawn, Targets: []stele.Target{{Service: stele.N2C, URL: "https://example.org/4", Partial: true}}})
	for _, tt := range []struct {
		name    string
		service stele.Service
		want    string
	}{
		{"ark:12345/x1", "", "https://example.org/1"},
		{"ark:12345/x1", stele.N2L, "https://example.org/1"},
		{"ark:12345/x1", stele.N2C, "https://example.org/1.xml"},
		{"ark:12345/x1", stele.N2S, "https://example.org/1.sig"},
		{"ark:12345/x1", stele.N2P, "description"},
		{"ark:12345/x2", stele.N2C, "description"},
		{"ark:12345/x2", stele.N2S, "not found"},
		{"ark:12345/x2", "X2", "invalid"},
		{"ark:12345/x2", "N2R", "invalid"},
		{"ark:12345/x2", "N2X", "not found"},
		{"ark:12345/x3/a", stele.N2C, "https://example.org/3//a"},
		{"ark:12345/x3/a", stele.N2L, "not found"},
		{"ark:12345/x4/a", stele.N2L, "tombstone"}, // whatever it passed on, it is gone
	} {
		got := ""
		switch res, err := r.Resolve(t.Context(), Request{ID: r.id(tt.name), Service: tt.service}); {
		case err != nil:
			got = stele.KindOf(err).String()
		case res.URL != "":
			got = res.URL
		default:
			got = res.Kind.String()
		}
		if got != tt.want {
			t.Errorf("%s of %s: %s, want %s", tt.service, tt.name, got, tt.want)
		}
	}
	if _, err := r.Resolve(t.Context(), Request{}); !errors.Is(err, stele.Invalid) {
		t.Errorf("no identifier: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	r := newRegistry(t, Options{DefaultTTL: 100})
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", TTL: 200, Status: 303})
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5"})
	r.namespace(stele.Namespace{Scheme: "ark", TTL: 300, Status: 307})
	both := stele.Target{Service: stele.N2L, URL: "https://example.org/", TTL: 5, Status: 301}
	for _, tt := range []struct {
		name   string
		target stele.Target
		kind   Kind
		status int
		ttl    uint32
		ns     string
	}{
		{"ark:12345/a", page("https://example.org/"), Redirect, 303, 200, "ark:12345"},
		{"ark:12345/b", both, Redirect, 301, 5, "ark:12345"},
		{"ark:12345/x5c", page("https://example.org/"), Redirect, 302, 100, "ark:12345/x5"},
		{"ark:12345/x5d/e", both, Redirect, 301, 5, "ark:12345/x5"},
		{"ark:12346/a", page("https://example.org/"), Redirect, 307, 300, "ark:"},
		{"urn:example:a", page("https://example.org/"), Redirect, 302, 100, ""},
		{"urn:example:b", stele.Target{Service: stele.N2L, Status: 404, TTL: 7}, Gone, 404, 7, ""},
		{"urn:example:c", stele.Target{Service: stele.N2L, URL: "https://example.org/", Status: 410}, Gone, 410, 100, ""},
		{"ark:12345/f", stele.Target{Service: stele.N2C, URL: "https://example.org/"}, Description, 200, 200, "ark:12345"},
	} {
		r.to(tt.name, tt.target)
		res := r.resolve(Request{ID: r.id(tt.name)})
		ns := ""
		if res.Namespace != nil {
			ns = res.Namespace.Key().String()
		}
		if res.Kind != tt.kind || res.Status != tt.status || res.TTL != tt.ttl || ns != tt.ns {
			t.Errorf("%s: %s %d %d in %q, want %+v", tt.name, res.Kind, res.Status, res.TTL, ns, tt)
		}
		if len(res.Targets) > 0 && (res.Targets[0].Status != res.Status || res.Targets[0].TTL != res.TTL) {
			t.Errorf("%s: the target has another status or TTL: %+v", tt.name, res.Targets)
		}
	}
	// A target that is gone for now passes nothing on.
	r.to("urn:example:d", stele.Target{Service: stele.N2L, Status: 404, Partial: true})
	if res := r.resolve(Request{ID: r.id("urn:example:d:e"), Query: "f"}); res.Kind != Gone || res.Status != 404 {
		t.Errorf("%+v", res)
	}
}

func TestDelegation(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.namespace(stele.Namespace{Scheme: "hdl", Delegate: "https://hdl.handle.net/{id}", TTL: 9, Status: 307})
		r.namespace(stele.Namespace{Scheme: "hdl", Prefix: "20.500.12345/"})
		r.namespace(stele.Namespace{Scheme: "urn", Prefix: "urn:example", Delegate: "https://example.org/uri-res/N2L?{id}"})
		r.namespace(stele.Namespace{Scheme: "urn", Prefix: "urn:example:a", Delegate: "https://a.example.org/x{rest}#y"})
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Delegate: "https://{id}.example.org/"})
		r.to("urn:example:a:1", page("https://example.org/1"))
		r.to("urn:example:a:2", partial("https://example.org/2"))
		r.put(stele.Record{ID: r.id("urn:example:a:3"), State: stele.Reserved})
		r.put(stele.Record{ID: r.id("urn:example:a:4"), State: stele.Withdrawn})
		for _, tt := range []struct{ name, want string }{
			{"10.1000/182", "https://hdl.handle.net/10.1000/182"},
			{"10.1000/182?noredirect", "https://hdl.handle.net/10.1000/182?noredirect"},
			{"10.1000/a<b>", "https://hdl.handle.net/10.1000/A%3CB%3E"},
			{"10.1000/a%20b", "https://hdl.handle.net/10.1000/A%2520B"}, // a handle's text is not encoded
			{"20.500.12345/1", "not found"},
			{"urn:example:b&c=d", "https://example.org/uri-res/N2L?urn:example:b%26c%3Dd"},
			{"urn:example:b%20c", "https://example.org/uri-res/N2L?urn:example:b%20c"}, // a URN's is
			{"urn:example:a", "https://a.example.org/x#y"},
			{"urn:example:a:b?q=r", "https://a.example.org/x:b?q=r#y"},
			{"urn:example:a:1", "https://example.org/1"},
			{"urn:example:a:2:b", "https://example.org/2:b"},
			{"urn:example:a:3", "https://a.example.org/x:3#y"},
			{"urn:example:a:4", "tombstone"},
			{"ark:12345/x", "invalid"},
			{"ark:12346/x", "not found"},
		} {
			for range 2 {
				if got := r.location(tt.name); got != tt.want {
					t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
				}
			}
		}
		res := r.resolve(Request{ID: r.id("10.1000/182")})
		if res.Kind != Delegation || res.Status != 307 || res.TTL != 9 || res.Record != nil || res.Matched != "" || res.Namespace == nil {
			t.Errorf("%+v", res)
		}
	})
}

func TestTrace(t *testing.T) {
	r := newRegistry(t, Options{DefaultTTL: 60})
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345"})
	r.to("ark:12345/x1", stele.Target{Service: stele.N2L, URL: "https://example.org/", Type: "text/html", Order: 1, Preference: 2, Partial: true})
	res := r.resolve(Request{ID: r.id("ark:12345/x1/a"), Given: "ark:/12345/x-1/a", Trace: true})
	type step struct{ Name, Result string }
	var got []step
	for _, s := range res.Trace {
		got = append(got, step{s.Name, s.Result.Error()})
	}
	want := []step{
		{"name", `ark:12345/x1/a, scheme ark, written "ark:/12345/x-1/a"`},
		{"record", "none has this name"},
		{"prefix", "ark:12345/x1, as ark:12345/x1, version 1, active"},
		{"namespace", "ark:12345"},
		{"choice", `1. https://example.org//a: type "text/html" asked for, q=1; no language stated; order 1, preference 2`},
		{"answer", "redirect to https://example.org//a, status 302, for 60 s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if res := r.resolve(Request{ID: r.id("ark:12345/x1")}); res.Trace != nil {
		t.Error("a trace that nobody asked for")
	}
	failed, err := r.Resolve(t.Context(), Request{ID: r.id("ark:12345/x2"), Trace: true})
	if err == nil || len(failed.Trace) != 5 || failed.Trace[4].Name != "answer" || failed.Kind != 0 {
		t.Errorf("%v: %+v", err, failed)
	}
}

// failing is a store that can't read.
type failing struct{ Store }

func (failing) Record(context.Context, stele.ID) (*stele.Record, error) {
	return nil, &stele.Error{Kind: stele.Unavailable}
}

func TestStoreFails(t *testing.T) {
	store := mem.New(clock)
	r := registry{New(failing{store}, newSchemes(t), Options{Now: clock, CacheBytes: 1 << 20}), t, store}
	for range 2 {
		if got := r.location("ark:12345/x1"); got != "unavailable" {
			t.Error(got)
		}
	}
	r.Resolver = New(store, r.schemes, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Resolve(ctx, Request{ID: r.id("ark:12345/x1")}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A name of many levels does not make the registry work, and what is registered far
// below the shortest of its beginnings is found all the same.
func TestDeepNames(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.to("ark:12345/x1", page("https://example.org/1"))
		deep := "ark:12345/x2" + strings.Repeat("/a", 133)
		r.to(deep, page("https://example.org/deep"))
		below := strings.Repeat("/b", 1900)
		for name, want := range map[string]string{
			"ark:12345/x1" + below: "https://example.org/1" + below,
			deep:                   "https://example.org/deep",
			deep + "/b":            "https://example.org/deep/b",
		} {
			if got := r.location(name); got != want {
				t.Errorf("%.40s...: %.60s, want %.60s", name, got, want)
			}
		}
	})
}
