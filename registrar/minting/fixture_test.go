package minting_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// fixture is a registrar over a store in memory, and a clock that can be set. Minters are
// tested with the registrar that commits for them.
type fixture struct {
	*registrar.Registrar
	t       testing.TB
	store   stele.Store
	schemes *stele.Schemes
	options registrar.Options
	admin   context.Context
	offset  atomic.Int64 // of the clock
}

func (f *fixture) clock() time.Time { return time.Now().Add(time.Duration(f.offset.Load())) }

// jump moves the clock.
func (f *fixture) jump(d time.Duration) { f.offset.Add(int64(d)) }

func newFixture(t testing.TB, change ...func(*registrar.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, admin: auth.With(context.Background(), auth.Local())}
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	f.schemes = schemes
	f.store = mem.New(f.clock)
	f.options = registrar.Options{Now: f.clock}
	for _, c := range change {
		c(&f.options)
	}
	f.start()
	return f
}

// start makes a registrar, as a process does that begins anew on the same store.
func (f *fixture) start() { f.Registrar = f.another() }

// another returns a registrar of another process on the same store.
func (f *fixture) another() *registrar.Registrar {
	return registrar.New(f.store, f.schemes, f.options)
}

// as returns a context in which a user acts.
func as(name string) context.Context {
	return auth.With(context.Background(), auth.Principal{Name: name})
}

func (f *fixture) id(text string) stele.ID {
	f.t.Helper()
	return must(f.schemes.Parse(text))(f.t)
}

// key returns the key of a namespace.
func (f *fixture) key(prefix string) stele.NamespaceKey {
	f.t.Helper()
	return must(f.ParsePrefix(prefix))(f.t)
}

// space adds a namespace.
func (f *fixture) space(prefix string, change ...func(*stele.Namespace)) stele.NamespaceKey {
	f.t.Helper()
	key := f.key(prefix)
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	for _, c := range change {
		c(ns)
	}
	must(f.AddNamespace(f.admin, ns))(f.t)
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
	return must(f.Register(f.admin, f.record(id, "https://example.org/1")))(f.t)
}

// problems returns what a check of the whole registry finds.
func (f *fixture) problems() (list []string) {
	f.t.Helper()
	if err := f.Verify(f.admin, func(p *stele.Message) { list = append(list, p.Error()) }); err != nil {
		f.t.Fatal(err)
	}
	return list
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

// texts returns the identifiers of labels.
func texts(labels []minting.Label) (list []string) {
	for _, l := range labels {
		list = append(list, l.ID.String())
	}
	return list
}

// names returns all names of a label.
func names(l minting.Label) []stele.ID { return append([]stele.ID{l.ID}, l.Aliases...) }
