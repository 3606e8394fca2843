package access

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBoth runs a test on a registry in memory that this process has open, and on one behind
// the real API. The context is that of the administrator root.
func onBoth(t *testing.T, test func(ctx context.Context, t *testing.T, l *Registry)) {
	for _, kind := range []string{"Local", "Remote"} {
		t.Run(kind, func(t *testing.T) {
			schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
			if err != nil {
				t.Fatal(err)
			}
			r := registry.New(mem.New(time.Now), schemes, registry.Options{Now: time.Now, Random: func(int) int { return 0 }})
			t.Cleanup(func() { r.Close() })
			ctx := auth.With(t.Context(), auth.Principal{Name: "root", Admin: true})
			for _, u := range []auth.User{{Name: "root", Admin: true}, {Name: "ann", Groups: []string{"staff"}}} {
				if _, err := r.Registrar.AddUser(ctx, u); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.OpenSearch(ctx, "", nil); err != nil {
				t.Fatal(err)
			}
			if kind == "Local" {
				test(ctx, t, NewLocal(r, time.Now, "here"))
				return
			}
			token, _, err := r.Registrar.CreateToken(ctx, auth.TokenRequest{User: "root", Never: true})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(api.New(api.Options{
				Registrar: r.Registrar, Store: r.Store, Resolver: r.Resolver, Schemes: schemes, Directory: r.Directory, Now: time.Now, Search: r.Search, Usage: &usage.Book{Registrar: r.Registrar, Schemes: schemes},
			}))
			t.Cleanup(server.Close)
			far, err := remote.New(server.URL, token, remote.Options{Schemes: schemes})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(far.Close)
			test(ctx, t, NewRemote(far, time.Now))
		})
	}
}

// register registers names that lead to the URL.
func register(ctx context.Context, t *testing.T, l *Registry, url string, names ...string) {
	t.Helper()
	for _, name := range names {
		id, err := l.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		rec := &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}}
		if _, err := l.Register(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
}

// names returns the identifiers of a list, with spaces between them.
func names(t *testing.T, list iter.Seq2[*stele.Record, error], err error) string {
	t.Helper()
	var ids []string
	for rec, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, rec.ID.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

func TestParsePrefix(t *testing.T) {
	onBoth(t, func(_ context.Context, t *testing.T, l *Registry) {
		for text, want := range map[string]string{"102.100.272": "102.100.272/", "102.100.272/": "102.100.272/", "ark:12345/x5": "ark:12345/x5", "no prefix": ""} {
			key, err := l.ParsePrefix(text)
			if (err == nil) != (want != "") || key.Prefix != want {
				t.Errorf("%q: %q, %v; want %q", text, key.Prefix, err, want)
			}
		}
	})
}

func TestList(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		register(ctx, t, l, "https://a.example/1", "ark:12345/x1", "ark:12345/x2", "urn:example:1")
		register(ctx, t, l, "https://b.example/2", "ark:12345/y1")
		for _, tt := range []struct {
			prefix, pointing string
			q                remote.Listing
			want             string
		}{
			{"", "", remote.Listing{}, "urn:example:1 ark:12345/x1 ark:12345/x2 ark:12345/y1"},
			{"", "", remote.Listing{Limit: 2}, "urn:example:1 ark:12345/x1"},
			{"ark", "", remote.Listing{}, "ark:12345/x1 ark:12345/x2 ark:12345/y1"},
			{"ark:12345/x", "", remote.Listing{}, "ark:12345/x1 ark:12345/x2"},
			{"ark:12345/x2", "", remote.Listing{}, "ark:12345/x2"},
			{"ark", "", remote.Listing{After: "ark:/12345/x1"}, "ark:12345/x2 ark:12345/y1"}, // another spelling of it
			{"ark", "", remote.Listing{State: stele.Withdrawn}, ""},
			{"", "https://a.example/1", remote.Listing{}, "ark:12345/x1 ark:12345/x2 urn:example:1"},
			{"ark:12345/x", "A.example", remote.Listing{}, "ark:12345/x1 ark:12345/x2"},
			{"", "a.example", remote.Listing{After: "ark:/12345/x1", Limit: 1}, "ark:12345/x2"},
		} {
			list, err := l.ListBelow(ctx, tt.prefix, tt.q)
			if tt.pointing != "" {
				list, err = l.ListPointing(ctx, tt.prefix, tt.pointing, tt.q)
			}
			if got := names(t, list, err); got != tt.want {
				t.Errorf("%q, pointing at %q, %+v:\n%s, want\n%s", tt.prefix, tt.pointing, tt.q, got, tt.want)
			}
		}
		if _, err := l.ListBelow(ctx, "not a name", remote.Listing{}); err == nil {
			t.Error("a text that is neither a prefix nor a name is listed")
		}
		if _, err := l.ListPointing(ctx, "", "a.example", remote.Listing{After: "not a name"}); err == nil {
			t.Error("the list begins after a text that is not a name")
		}
	})
}

// What zones are made from is the same here and at a server: any text is a prefix.
func TestSource(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		register(ctx, t, l, "https://a.example", "urn:example:a1", "urn:example:a2", "urn:example:a22", "urn:example:b1")
		for _, tt := range []struct{ prefix, after, want string }{
			{"urn:example", "", "urn:example:a1 urn:example:a2 urn:example:a22 urn:example:b1"},
			{"urn:example:a2", "", "urn:example:a2 urn:example:a22"},
			{"urn:exam", "", "urn:example:a1 urn:example:a2 urn:example:a22 urn:example:b1"},
			{"urn:example:a", "urn:example:a1", "urn:example:a2 urn:example:a22"},
			{"urn:example:c", "", ""},
		} {
			if got := names(t, l.Source().Scan(ctx, "urn", tt.prefix, tt.after), nil); got != tt.want {
				t.Errorf("%q after %q: %s, want %s", tt.prefix, tt.after, got, tt.want)
			}
		}
		for ns, err := range l.Source().Namespaces(ctx) {
			if err != nil || ns.Version == 0 {
				t.Errorf("%s in version %d, %v: no user made it", ns.Key(), ns.Version, err)
			}
		}
	})
}

// Only the server reads keys and the feed of changes.
func TestRemoteSource(t *testing.T) {
	var s remoteStore
	for _, err := range s.Changes(t.Context(), 0) {
		if !errors.Is(err, stele.Invalid) {
			t.Error(err)
		}
	}
	for _, err := range s.Cells(t.Context(), "", "") {
		if !errors.Is(err, stele.Invalid) {
			t.Error(err)
		}
	}
}

func TestFindAndTaken(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		register(ctx, t, l, "https://a.example", "ark:12345/x1")
		id, _ := l.Parse("ark:12345/x1")
		other, _ := l.Parse("urn:example:1")
		then := time.Now()
		if _, err := l.Update(ctx, id, 0, func(rec *stele.Record) error { rec.Aliases = append(rec.Aliases, other); return nil }); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name    string
			at      time.Time
			version uint64
			want    uint64
		}{{"ark:/12345/x1", time.Time{}, 0, 2}, {"urn:example:1", time.Time{}, 1, 1}, {"ark:12345/x1", then, 0, 1}} {
			if rec, err := l.Find(ctx, tt.name, tt.at, tt.version); err != nil || rec.Version != tt.want {
				t.Errorf("%+v: %v, %v", tt, rec, err)
			}
		}
		if _, err := l.Find(ctx, "ark:12345/x2", time.Time{}, 0); !errors.Is(err, stele.NotFound) {
			t.Error(err)
		}
		for _, tt := range []struct {
			rec  stele.Record
			want string
		}{
			{stele.Record{ID: id}, "it is registered already; see 'stele show ark:12345/x1'"},
			{stele.Record{ID: other}, "urn:example:1 is a name of ark:12345/x1 already"},
		} {
			if err := l.Taken(ctx, &tt.rec, stele.Conflict); !errors.Is(err, stele.Conflict) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		}
		if err := l.Taken(ctx, &stele.Record{ID: id}, stele.Forbidden); err != error(stele.Forbidden) {
			t.Errorf("another error is changed: %v", err)
		}
	})
}

func TestExport(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		register(ctx, t, l, "https://a.example", "ark:12345/x1", "ark:12345/x2")
		id, _ := l.Parse("ark:12345/x1")
		if _, err := l.Withdraw(ctx, id, 0, "gone", stele.ID{}); err != nil {
			t.Fatal(err)
		}
		for history, want := range map[bool]string{false: "x1 x2 ", true: "x1/1 x1/2 x2/1 "} {
			got := ""
			for rec, err := range l.Export(ctx, stele.NamespaceKey{Scheme: "ark"}, history) {
				if err != nil {
					t.Fatal(err)
				}
				got += strings.TrimPrefix(rec.ID.String(), "ark:12345/")
				if history { // a current version may come without its number, which an export leaves out
					got += fmt.Sprintf("/%d", rec.Version)
				}
				got += " "
			}
			if got != want {
				t.Errorf("with history %t: %s, want %s", history, got, want)
			}
		}
	})
}

func TestUsers(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		for _, ns := range []stele.Namespace{
			{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"},
			{Scheme: "ark", Prefix: "ark:67890", Grants: []stele.Grant{{To: "group:staff", Role: stele.RoleReader}, {To: "user:ann", Role: stele.RoleEditor}, {To: "user:bob", Role: stele.RoleOwner}}},
		} {
			if _, err := l.AddNamespace(ctx, &ns); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, _, err := l.CreateToken(ctx, auth.TokenRequest{User: "ann", Expires: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		ann, err := l.User(ctx, "ann")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"owner in ark:12345", "reader, as a member of staff, in ark:67890", "editor in ark:67890"}
		d, err := l.DescribeUser(ctx, &ann, time.Now())
		if err != nil || !slices.Equal(d.Roles, want) || d.TokensInUse != 2 || d.TokensEnded != 0 {
			t.Errorf("%+v, %v", d, err)
		}
		if d, err := l.DescribeUser(ctx, &ann, time.Now().Add(2*time.Hour)); err != nil || d.TokensInUse != 0 || d.TokensEnded != 2 {
			t.Errorf("later: %+v, %v", d, err)
		}
		if user, err := l.TokenUser(ctx); err != nil || user != "" {
			t.Errorf("an administrator lists the tokens of %q, %v", user, err)
		}
		if user, err := l.TokenUser(ctx, "ann"); err != nil || user != "ann" {
			t.Errorf("%q, %v", user, err)
		}
		if _, err := l.TokenUser(ctx, "bob"); !errors.Is(err, stele.NotFound) {
			t.Error(err)
		}
		if ids, err := l.ShutTokens(ctx); err != nil || len(ids) > 0 {
			t.Errorf("shut: %q, %v", ids, err)
		}
	})
}

func TestKeys(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
		if _, err := l.AddNamespace(ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for range 2 {
			k := newSigningKey(t)
			if _, err := l.AddKey(ctx, key, k); err != nil {
				t.Fatal(err)
			}
			if _, err := l.AddKey(ctx, key, k); !errors.Is(err, stele.Conflict) {
				t.Errorf("the same key twice: %v", err)
			}
			ids = append(ids, k.ID)
		}
		revoke := func(k *stele.SigningKey) { k.Revoked = time.Now().UTC().Truncate(time.Second) }
		if ns, at, err := l.ChangeKey(ctx, key, ids[1], revoke); err != nil || ns.Keys[at].ID != ids[1] || ns.Keys[at].Revoked.IsZero() || !ns.Keys[1-at].Revoked.IsZero() {
			t.Errorf("%+v, %d, %v", ns, at, err)
		}
		for _, begin := range []string{"", "?"} {
			if _, _, err := l.ChangeKey(ctx, key, begin, revoke); !errors.Is(err, stele.NotFound) {
				t.Errorf("%q: %v", begin, err)
			}
		}
		if _, err := findKey(&stele.Namespace{Keys: []stele.SigningKey{{ID: "ab"}, {ID: "ac"}}}, "a"); !errors.Is(err, stele.Invalid) {
			t.Errorf("two keys begin so: %v", err)
		}
		if list, err := l.WithKeys(ctx); err != nil || len(list) != 1 || list[0].Key() != key {
			t.Errorf("%v, %v", list, err)
		}
		if _, err := l.WithKeys(ctx, "ark:99999"); !errors.Is(err, stele.NotFound) {
			t.Error(err)
		}
	})
}

func TestEnsureMinter(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		ns := func(m stele.Minter) *stele.Namespace {
			return &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Minter: m}
		}
		noid := stele.Minter{Kind: stele.MinterNOID, Template: ".sd"}
		key := ns(noid).Key()
		given := func(list ...string) func(string) bool {
			return func(name string) bool { return slices.Contains(list, name) }
		}
		if err := l.EnsureMinter(ctx, ns(noid), given("template"), true); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Namespace(ctx, key); !errors.Is(err, stele.NotFound) {
			t.Errorf("a dry run made the namespace: %v", err)
		}
		for range 2 {
			if err := l.EnsureMinter(ctx, ns(noid), given("template"), false); err != nil {
				t.Fatal(err)
			}
		}
		err := l.EnsureMinter(ctx, ns(stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}), given("template"), false)
		if !errors.Is(err, stele.Conflict) || !strings.Contains(err.Error(), "makes names by noid, template .sd, and --template says otherwise") {
			t.Error(err)
		}
		var made []minting.Label
		if err := l.MintBatches(ctx, []stele.NamespaceKey{key}, 3, func(labels []minting.Label) error {
			made = append(made, labels...)
			return nil
		}); err != nil || len(made) != 3 || made[0].ID == made[1].ID || made[1].ID == made[2].ID {
			t.Errorf("%v, %v", made, err)
		}
		if to, err := l.SkipTo(ctx, key, 2, true); err != nil || to < 5 {
			t.Errorf("the counter is at %d, %v", to, err)
		}
		if _, err := l.SkipTo(ctx, key, 1<<20, false); !errors.Is(err, stele.Exhausted) {
			t.Errorf("beyond the names of the template: %v", err)
		}
		if d, err := l.DescribeNamespace(ctx, ns(noid)); err != nil || d.Count != 0 || d.Minter.Given < 5 || d.Minter.Total != 10 || d.Parent == nil || d.Parent.Prefix != "" {
			t.Errorf("%+v, %v", d, err)
		}
		// What was made before an error is given to the caller.
		made = nil
		err = l.MintBatches(ctx, []stele.NamespaceKey{key}, 20, func(labels []minting.Label) error {
			made = append(made, labels...)
			return nil
		})
		if !errors.Is(err, stele.Exhausted) || len(made) == 0 || len(made) > 5 {
			t.Errorf("%d names, %v", len(made), err)
		}
	})
}

func TestMintRecords(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		ibi := &stele.Namespace{Scheme: "ibi", Minter: stele.Minter{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, Granularity: "1us"}}
		if err := l.PlaceIBI(ibi); err != nil {
			t.Fatal(err)
		}
		if err := l.EnsureMinter(ctx, ibi, func(string) bool { return false }, false); err != nil {
			t.Fatal(err)
		}
		pool, err := l.ParsePool([]string{" " + ibi.Prefix})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.EnsureMinter(ctx, &stele.Namespace{Scheme: "ibi", Prefix: ibi.Prefix, Minter: stele.Minter{Kind: stele.MinterIBI, Granularity: "10us"}},
			func(name string) bool { return name == "granularity" }, false); err != nil {
			t.Fatal(err)
		}
		if ns, err := l.Namespace(ctx, ibi.Key()); err != nil || ns.Minter.Granularity != "10us" || ns.Minter.Host == "" {
			t.Errorf("%+v, %v", ns, err)
		}
		seen := make(map[stele.ID]bool)
		for rec, err := range l.MintRecords(ctx, &stele.Record{State: stele.Reserved}, pool, 70) {
			if err != nil {
				t.Fatal(err)
			}
			seen[rec.ID] = true
		}
		if len(seen) != 70 {
			t.Errorf("%d names", len(seen))
		}
		// A caller that breaks off leaves no worker behind; goleak would see it.
		for range l.MintRecords(ctx, &stele.Record{State: stele.Reserved}, pool, 1000) {
			break
		}
	})
}

func TestAuditPage(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		register(ctx, t, l, "https://a.example", "ark:12345/x1")
		page, after, last, err := l.AuditPage(ctx, registrar.AuditQuery{By: "root"})
		if err != nil || len(page) == 0 || after == 0 || !last {
			t.Fatalf("%d entries up to %d, last %t, %v", len(page), after, last, err)
		}
		more, _, last, err := l.AuditPage(ctx, registrar.AuditQuery{By: "root", After: after})
		if err != nil || len(more) != 0 || !last {
			t.Errorf("%d more, last %t, %v", len(more), last, err)
		}
		n := 0
		for _, err := range l.AuditTrail(ctx, registrar.AuditQuery{By: "root"}, false) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if n != len(page) {
			t.Errorf("the trail has %d entries, want %d", n, len(page))
		}
		// Who follows gets an entry that comes later.
		follow, stop := context.WithCancel(ctx)
		defer stop()
		n = 0
		for d, err := range l.AuditTrail(follow, registrar.AuditQuery{By: "root"}, true) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == len(page) {
				register(ctx, t, l, "https://a.example", "ark:12345/x2")
			}
			if strings.Contains(d.Line(), "ark:12345/x2") {
				stop()
			}
		}
		if n <= len(page) {
			t.Errorf("%d entries were followed", n)
		}
	})
}
