package registrar

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// fixture is a registrar over a store in memory, and a clock that can be set.
type fixture struct {
	*Registrar
	t       testing.TB
	store   stele.Store
	options Options
	admin   context.Context
	offset  atomic.Int64 // of the clock
}

func (f *fixture) clock() time.Time { return time.Now().Add(time.Duration(f.offset.Load())) }

// jump moves the clock.
func (f *fixture) jump(d time.Duration) { f.offset.Add(int64(d)) }

func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, admin: auth.With(context.Background(), auth.Local())}
	f.store = mem.New(f.clock)
	f.options = Options{Now: f.clock}
	for _, c := range change {
		c(&f.options)
	}
	f.start()
	return f
}

// start makes a registrar, as a process does that begins anew on the same store.
func (f *fixture) start() { f.Registrar = New(f.store, testSchemes(f.t), f.options) }

func testSchemes(t testing.TB) *stele.Schemes {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return schemes
}

// as returns a context with a caller of this name.
func as(name string, groups ...string) context.Context {
	return auth.With(context.Background(), auth.Principal{Name: name, Groups: groups})
}

func (f *fixture) id(text string) stele.ID {
	f.t.Helper()
	id, err := f.schemes.Parse(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// key returns the key of a namespace.
func (f *fixture) key(prefix string) stele.NamespaceKey {
	f.t.Helper()
	key, err := f.ParsePrefix(prefix)
	if err != nil {
		f.t.Fatal(err)
	}
	return key
}

// space adds a namespace.
func (f *fixture) space(prefix string, change ...func(*stele.Namespace)) stele.NamespaceKey {
	f.t.Helper()
	key := f.key(prefix)
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	for _, c := range change {
		c(ns)
	}
	if _, err := f.AddNamespace(f.admin, ns); err != nil {
		f.t.Fatal(err)
	}
	return key
}

func owner(name string) func(*stele.Namespace) {
	return func(ns *stele.Namespace) { ns.Owner = name }
}

func minter(m stele.Minter) func(*stele.Namespace) {
	return func(ns *stele.Namespace) { ns.Minter = m }
}

// ibi is the minter of the server mtc-m18.sid.inpe.br with labels of both forms.
func ibi(granularity string) stele.Minter {
	return stele.Minter{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.34.243", IPPort: 800, Granularity: granularity}
}

// rep is the minter of a server with repository names alone.
func rep(host, granularity string) stele.Minter {
	return stele.Minter{Kind: stele.MinterIBI, Host: host, Port: 80, Granularity: granularity}
}

func noid(template string) stele.Minter {
	return stele.Minter{Kind: stele.MinterNOID, Template: template}
}

// record returns a record with one target.
func (f *fixture) record(id, url string) *stele.Record {
	f.t.Helper()
	r := &stele.Record{Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}}}
	if id != "" {
		r.ID = f.id(id)
	}
	return r
}

// registered registers a record.
func (f *fixture) registered(id string) *stele.Record {
	f.t.Helper()
	r, err := f.Register(f.admin, f.record(id, "https://example.org/1"))
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// want fails unless err is of the kind, and holds the words.
func want(t testing.TB, err error, kind stele.Kind, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of kind %q", kind)
	}
	e, ok := errors.AsType[*stele.Error](err)
	if !ok || e.Kind != kind {
		t.Fatalf("%v: kind %q, want %q", err, stele.KindOf(err), kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// must fails on an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
