package remote

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/store/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func schemes(t testing.TB) *stele.Schemes {
	t.Helper()
	list, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// testServer is a registry in memory and the API over it. Its administrator is root, and
// ann is owner of ark:12345.
type testServer struct {
	t         testing.TB
	schemes   *stele.Schemes
	registrar *registrar.Registrar
	handler   http.Handler
	root      context.Context
	token     string // of root
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	o := &testServer{t: t, schemes: schemes(t), root: auth.With(t.Context(), auth.Principal{Name: "root", Admin: true})}
	store := mem.New(time.Now)
	t.Cleanup(func() { store.Close() })
	directory := auth.NewDirectory(store, time.Now)
	reads := resolver.New(store, o.schemes, resolver.Options{Now: time.Now, CacheBytes: 1 << 20})
	o.registrar = registrar.New(store, o.schemes, registrar.Options{
		Now: time.Now, OnCommit: reads.Invalidate, OnNamespaces: reads.InvalidateNamespaces, OnAccess: directory.Forget,
	})
	o.handler = api.New(api.Options{
		Registrar: o.registrar, Store: store, Resolver: reads, Schemes: o.schemes, Directory: directory, Now: time.Now,
	})
	for _, u := range []auth.User{{Name: "root", Admin: true}, {Name: "ann"}} {
		if _, err := o.registrar.AddUser(o.root, u); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.registrar.AddNamespace(o.root, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.token, _, err = o.registrar.CreateToken(o.root, auth.TokenRequest{User: "root", Label: "test", Never: true}); err != nil {
		t.Fatal(err)
	}
	return o
}

// credential makes a token.
func (o *testServer) credential(user string) string {
	o.t.Helper()
	text, _, err := o.registrar.CreateToken(o.root, auth.TokenRequest{User: user, Label: "test", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		o.t.Fatal(err)
	}
	return text
}

// open returns a client of the testServer that sends the token. Requests pass through the
// handlers given, if any.
func (o *testServer) open(token string, through ...func(http.Handler) http.Handler) *Registry {
	o.t.Helper()
	handler := o.handler
	for _, wrap := range through {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	o.t.Cleanup(server.Close)
	return openRegistry(o.t, o.schemes, server.URL, token)
}

func openRegistry(t testing.TB, schemes *stele.Schemes, url, token string) *Registry {
	t.Helper()
	r, err := New(url, token, Options{Schemes: schemes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// registry is what a registrar and a Registry have in common: all that people do with a
// registry.
type registry interface {
	Get(ctx context.Context, name stele.ID) (*stele.Record, error)
	At(ctx context.Context, name stele.ID, t time.Time) (*stele.Record, error)
	History(ctx context.Context, name stele.ID) iter.Seq2[*stele.Record, error]
	Register(ctx context.Context, record *stele.Record) (*stele.Record, error)
	Update(ctx context.Context, name stele.ID, ifVersion uint64, change func(*stele.Record) error) (*stele.Record, error)
	Withdraw(ctx context.Context, name stele.ID, ifVersion uint64, reason string, replacement stele.ID) (*stele.Record, error)
	Reinstate(ctx context.Context, name stele.ID, ifVersion uint64) (*stele.Record, error)
	Redact(ctx context.Context, name stele.ID, ifVersion uint64, reason string) (*stele.Record, error)
	Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error)
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
	ParentNamespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error)
	AddNamespace(ctx context.Context, ns *stele.Namespace) (*stele.Namespace, error)
	SetNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error)
	MinterStatus(ctx context.Context, key stele.NamespaceKey) (minting.Status, error)
	SkipCounter(ctx context.Context, key stele.NamespaceKey, to uint64) error
	Mint(ctx context.Context, key stele.NamespaceKey, n int) ([]minting.Label, error)
	MintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]minting.Label, error)
	MintAndRegister(ctx context.Context, record *stele.Record, pool ...stele.NamespaceKey) (*stele.Record, error)
	Bookmark(ctx context.Context, name string) ([]byte, error)
	Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error)
	IngestNamespace(ctx context.Context, ns *stele.Namespace, o registrar.ImportOptions) error
	AddUser(ctx context.Context, u auth.User) (auth.User, error)
	SetUser(ctx context.Context, name string, change func(*auth.User) error) (auth.User, error)
	User(ctx context.Context, name string) (auth.User, error)
	Users(ctx context.Context) iter.Seq2[auth.User, error]
	CreateToken(ctx context.Context, want auth.TokenRequest) (credential string, t auth.Token, err error)
	Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error]
	RevokeToken(ctx context.Context, id string) (auth.Token, error)
	Invite(ctx context.Context, in registrar.Invitation) (registrar.Invited, error)
	Links(ctx context.Context, user string) iter.Seq2[auth.Link, error]
	EndLink(ctx context.Context, id string) error
	Identities(ctx context.Context, user string) iter.Seq2[auth.Identity, error]
	EndIdentity(ctx context.Context, user, id string) error
	Passkeys(ctx context.Context, user string) iter.Seq2[auth.Passkey, error]
	RenamePasskey(ctx context.Context, id, name string) error
	RemovePasskey(ctx context.Context, id string) error
}

var _ = []registry{(*registrar.Registrar)(nil), (*Registry)(nil)}

// script is a session that runs twice, with a registrar and with a Registry. It
// writes down all results.
type script struct {
	registry
	t       testing.TB
	ctx     context.Context
	schemes *stele.Schemes
	seen    []string
}

func (s *script) id(text string) stele.ID {
	s.t.Helper()
	id, err := s.schemes.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *script) record(text string) *stele.Record {
	s.t.Helper()
	rec, err := document.DecodeStored(s.schemes, []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return rec
}

// see writes down what came back. Times differ from session to session.
func (s *script) see(what string, v any, err error) {
	line := what + ": "
	if err != nil {
		s.seen = append(s.seen, fmt.Sprintf("%s%v: %v", line, stele.KindOf(err), err))
		return
	}
	switch v := v.(type) {
	case *stele.Record:
		c := *v
		c.Created, c.Modified = time.Time{}, time.Time{}
		if c.Tombstone != nil {
			t := *c.Tombstone
			t.At, c.Tombstone = time.Time{}, &t
		}
		line += string(document.AppendRecord(nil, &c))
	case *stele.Namespace:
		c := *v
		c.Created, c.Modified = time.Time{}, time.Time{}
		line += string(document.AppendNamespace(nil, &c))
	case auth.User:
		v.Created, v.Modified = time.Time{}, time.Time{}
		line += fmt.Sprintf("%+v", v)
	case auth.Token:
		v.ID, v.Created, v.Revoked, v.LastUse, v.Expires = "", time.Time{}, time.Time{}, time.Time{}, time.Time{}
		line += fmt.Sprintf("%+v", v)
	default:
		line += fmt.Sprintf("%+v", v)
	}
	s.seen = append(s.seen, line)
}

// seeAll writes down what an iterator yields.
func seeAll[T any](s *script, what string, list iter.Seq2[T, error]) {
	for v, err := range list {
		s.see(what, v, err)
	}
}

// TestIsARegistrar runs sessions with a registrar and with a Registry over
// another one, and compares values, kinds of errors and their texts.
func TestIsARegistrar(t *testing.T) {
	for name, play := range map[string]func(s *script){
		"records": playRecords, "states": playStates, "wrong": playWrong, "namespaces": playNamespaces,
		"mint": playMint, "import": playImport, "users": playUsers, "access": playAccess,
	} {
		t.Run(name, func(t *testing.T) {
			near, far := newTestServer(t), newTestServer(t)
			here := &script{registry: near.registrar, t: t, ctx: near.root, schemes: near.schemes}
			there := &script{registry: far.open(far.token), t: t, ctx: t.Context(), schemes: far.schemes}
			for _, o := range []*testServer{near, far} {
				if _, err := o.registrar.LinkIdentity(o.root, "ann", "https://login.example.org", "7", "ann@example.org"); err != nil {
					t.Fatal(err)
				}
			}
			play(here)
			play(there)
			if diff := cmp.Diff(here.seen, there.seen); diff != "" {
				t.Errorf("a registrar (-) and a Registry (+) differ:\n%s", diff)
			}
			if len(here.seen) < 5 {
				t.Errorf("only %d things were seen", len(here.seen))
			}
		})
	}
}
