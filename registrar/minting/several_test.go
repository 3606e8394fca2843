package minting_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/store/storetest"
)

// TestSeveralMint: three processes take names of the same prefixes at once, from many
// callers each. No name leaves twice, all get what they ask for, and the dates of one
// process come in order.
func TestSeveralMint(t *testing.T) {
	for _, c := range []struct {
		prefix string
		minter stele.Minter
		calls  int
	}{
		{"sid.inpe.br/mtc-m18", ibi("1ms"), 100},
		{"sid.inpe.br/mtc-m18", ibi("1s"), 10},
		{"102.100.272/", stele.Minter{Kind: stele.MinterPILIN}, 100},
		{"ark:12345/x5", noid(".zeedk"), 100},
		{"ark:12345/x5", noid(".reeeed"), 100},
	} {
		t.Run(c.prefix+" "+c.minter.Granularity+c.minter.Template, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 7 })
				key := f.space(c.prefix, minter(c.minter))
				given := issuedNames{given: make(map[stele.ID]string)}
				var wg sync.WaitGroup
				for p := range 3 {
					r := f.another()
					order := make([]string, 0, c.calls)
					for caller := range 2 {
						wg.Go(func() {
							for i := range c.calls {
								names := f.mintSomehow(t, r, key, i)
								given.add(fmt.Sprint(p, caller), names...)
								if caller == 0 {
									order = append(order, names[0].String())
								}
							}
						})
					}
					if c.minter.Kind == stele.MinterIBI {
						defer func() {
							// A shortened date stands before the longer ones that begin with it.
							if !slices.IsSorted(order) {
								t.Errorf("process %d: %v", p, order)
							}
						}()
					}
				}
				wg.Wait()
				if len(given.twice) > 0 {
					t.Error(given.twice[0])
				}
			})
		})
	}
}

// mintSomehow makes a name in one of the ways there are.
func (f *fixture) mintSomehow(t *testing.T, r *registrar.Registrar, key stele.NamespaceKey, i int) []stele.ID {
	t.Helper()
	switch i % 3 {
	case 0:
		rec, err := r.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key)
		if err != nil {
			t.Error(err)
			return []stele.ID{{}}
		}
		return rec.Names()
	case 1:
		made, err := r.MintBatch(f.admin, idempotencyKey(fmt.Sprintf("%p-%d-%d", r, i, rand.Int64()), ""), []stele.NamespaceKey{key}, 1, f.record("", "https://example.org/1"))
		if err != nil {
			t.Error(err)
			return []stele.ID{{}}
		}
		return made.Records[0].Names()
	}
	labels, err := r.Mint(f.admin, key, 1)
	if err != nil {
		t.Error(err)
		return []stele.ID{{}}
	}
	return append([]stele.ID{labels[0].ID}, labels[0].Aliases...)
}

// TestOneKeyManyServers: requests with one key that come to several processes at once
// have one answer, with records and without.
func TestOneKeyManyServers(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", minter(noid(".zeedk")))
	servers := []*registrar.Registrar{f.another(), f.another(), f.another()}
	for round := range 50 {
		var record *stele.Record
		if round%2 == 0 {
			record = f.record("", "https://example.org/1")
		}
		var mu sync.Mutex
		answers := make(map[string]int)
		var wg sync.WaitGroup
		for range 2 {
			for _, r := range servers {
				wg.Go(func() {
					made, err := r.MintBatch(f.admin, idempotencyKey(fmt.Sprint("k", round), ""), []stele.NamespaceKey{key}, 3, record)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					answers[strings.Join(texts(made.Labels), " ")]++
				})
			}
		}
		wg.Wait()
		if len(answers) != 1 {
			t.Fatalf("one key has %d answers: %v", len(answers), answers)
		}
	}
	n := must(f.store.Count(f.admin, key))(t)
	if n != 25*3 {
		t.Errorf("%d records, want %d", n, 25*3)
	}
}

// TestKeyAfterFailure: a process that does not know whether its commit was made says so,
// and another one gives the answer.
func TestKeyAfterFailure(t *testing.T) {
	for _, made := range []bool{true, false} {
		f := newFixture(t)
		key := f.space("ark:12345/x5", minter(noid(".zeedk")))
		failing := registrar.New(&storetest.Faulty{Store: f.store, Fault: func(c *stele.Commit) (bool, error) {
			if len(c.Records) == 0 {
				return true, nil
			}
			return made, storetest.Unavailable("the connection is lost")
		}}, f.schemes, f.options)
		ask := func(r *registrar.Registrar) (minting.Batch, error) {
			return r.MintBatch(f.admin, idempotencyKey("k", ""), []stele.NamespaceKey{key}, 2, f.record("", "https://example.org/1"))
		}
		_, err := ask(failing)
		want(t, err, stele.Unavailable)
		got := must(ask(f.another()))(t)
		if got.Replayed != made {
			t.Errorf("made=%v: answered as one that came again: %v", made, got.Replayed)
		}
		if n := must(f.store.Count(f.admin, key))(t); n != 2 {
			t.Errorf("made=%v: %d records", made, n)
		}
	}
}

// TestTemplateChangesElsewhere: a process that does not know of another template yet
// uses the old one to the end of its block, and no further; the minter of the new one
// leaves these names out.
func TestTemplateChangesElsewhere(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 5 })
	key := f.space("urn:example", minter(noid(".zd")))
	late := f.another()
	given := issuedNames{given: make(map[stele.ID]string)}
	mintBy := func(who string, r *registrar.Registrar, n int) {
		t.Helper()
		for range n {
			given.add(who, must(r.Mint(f.admin, key, 1))(t)[0].ID)
		}
	}
	mintBy("late", late, 2)
	for round, template := range []string{".zdd", ".rdddd", ".zddd", ".sdddd", ".zd", ".zdd"} {
		must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
			ns.Minter.Template = template
			return nil
		}))(t)
		mintBy(fmt.Sprint("changed ", round), f.Registrar, 23)
		mintBy(fmt.Sprint("late ", round), late, 23)
	}
	for _, line := range given.twice {
		t.Error(line)
	}
}

// TestNamespaceBelowElsewhere: another process adds a namespace below one whose template
// makes the same names.
func TestNamespaceBelowElsewhere(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 5 })
	above := f.space("ark:12345", minter(noid("x.zd")))
	late := f.another()
	given := issuedNames{given: make(map[stele.ID]string)}
	give := func(who string, r *registrar.Registrar, key stele.NamespaceKey, n int) {
		t.Helper()
		for _, l := range must(r.Mint(f.admin, key, n))(t) {
			given.add(who, l.ID)
		}
	}
	give("above", late, above, 3)
	below := f.space("ark:12345/x5", minter(noid(".zd")))
	give("below", f.Registrar, below, 5)
	give("above", late, above, 70)
	give("below", f.Registrar, below, 40)
	give("above, elsewhere", f.another(), above, 40)
	for _, line := range given.twice {
		t.Error(line)
	}
	for id, who := range given.given {
		if who == "above, elsewhere" && f.mustFind(id).Key() != above {
			t.Errorf("%s is given by the minter of %s", id, above)
		}
	}
}

func (f *fixture) mustFind(id stele.ID) *stele.Namespace {
	f.t.Helper()
	return must(f.FindNamespace(f.admin, id))(f.t)
}

// TestNamespacesAreJudgedAnew: a change of namespaces is checked against the store's
// state, not against what one process remembers.
func TestNamespacesAreJudgedAnew(t *testing.T) {
	f := newFixture(t)
	key := f.space("urn:example", owner("ann"))
	late := f.another()
	must(late.Namespace(f.admin, key))(t)
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
		ns.Owner = "bob"
		return nil
	}))(t)
	_, err := late.AddNamespace(as("ann"), &stele.Namespace{Scheme: "urn", Prefix: "urn:example:a"})
	want(t, err, stele.Forbidden)
	must(late.AddNamespace(as("bob"), &stele.Namespace{Scheme: "urn", Prefix: "urn:example:a"}))(t)
}

// TestManyChangeNamespaces: all of many concurrent changes are made, whichever process
// makes them.
func TestManyChangeNamespaces(t *testing.T) {
	f := newFixture(t)
	key := f.space("urn:example")
	var wg sync.WaitGroup
	for p := range 3 {
		r := f.another()
		wg.Go(func() {
			for i := range 20 {
				if _, err := r.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
					ns.Quota++
					return nil
				}); err != nil {
					t.Error(err)
				}
				if _, err := r.AddNamespace(f.admin, &stele.Namespace{Scheme: "urn", Prefix: fmt.Sprintf("urn:example:p%d-%d", p, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := f.Reload(f.admin); err != nil {
		t.Fatal(err)
	}
	if ns := must(f.Namespace(f.admin, key))(t); ns.Quota != 60 {
		t.Errorf("%d changes, want 60", ns.Quota)
	}
}

// TestSealedStore: in a sealed store nothing is minted, and no caller retries for ever.
func TestSealedStore(t *testing.T) {
	f := newFixture(t)
	keys := []stele.NamespaceKey{
		f.space("sid.inpe.br/mtc-m18", minter(ibi("1ms"))),
		f.space("example.org/b", minter(rep("b.example.org", "1s"))),
		f.space("ark:12345/x5", minter(noid(".zeedk"))),
	}
	if err := f.store.Seal(f.admin, "it has moved"); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Conflict, "it has moved")
		_, err = f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key)
		want(t, err, stele.Conflict, "it has moved")
		_, err = f.MintBatch(f.admin, idempotencyKey("k", ""), []stele.NamespaceKey{key}, 2, nil)
		want(t, err, stele.Conflict, "it has moved")
		_, err = f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Owner = "ann"; return nil })
		want(t, err, stele.Conflict, "it has moved")
	}
}

// cutOff is a store that does not answer at all while away is set.
type cutOff struct {
	stele.Store
	away atomic.Bool
}

func (c *cutOff) Apply(ctx context.Context, commit *stele.Commit) error {
	if c.away.Load() {
		return storetest.Unavailable("the network is away")
	}
	return c.Store.Apply(ctx, commit)
}

func (c *cutOff) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (*stele.Record, stele.Prefix, error) {
	if c.away.Load() {
		return nil, stele.Prefix{}, storetest.Unavailable("the network is away")
	}
	return c.Store.First(ctx, candidates)
}

func (c *cutOff) Cell(ctx context.Context, name string) ([]byte, error) {
	if c.away.Load() {
		return nil, storetest.Unavailable("the network is away")
	}
	return c.Store.Cell(ctx, name)
}

// TestCutOff: a process that can't reach its store gives out the numbers that it has
// reserved, of which none is registered, and nothing beyond; dates it makes none of, or
// those of the moment. Others never give the same.
func TestCutOff(t *testing.T) {
	for _, shared := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 10; o.Shared = shared })
			dated := f.space("sid.inpe.br/mtc-m18", minter(ibi("1ms")))
			counted := f.space("urn:example", minter(noid(".zd")))
			keys := []stele.NamespaceKey{dated, counted}
			store := &cutOff{Store: f.store}
			r := registrar.New(store, f.schemes, f.options)
			given := issuedNames{given: make(map[stele.ID]string)}
			give := func(who string, labels []minting.Label) {
				for _, l := range labels {
					given.add(who, names(l)...)
				}
			}
			for _, key := range keys {
				give("before", must(r.Mint(f.admin, key, 1))(t))
			}
			store.away.Store(true)
			count := 0
			for range 20 {
				labels, err := r.Mint(f.admin, counted, 1)
				give("cut off", labels)
				if count += len(labels); err != nil {
					want(t, err, stele.Unavailable)
				}
			}
			if wanted := map[bool]int{true: 9, false: 0}[shared]; count != wanted {
				t.Errorf("shared %v: %d numbers were given, want %d", shared, count, wanted)
			}
			ctx, cancel := context.WithTimeout(f.admin, time.Minute)
			defer cancel()
			labels, err := r.Mint(ctx, dated, 1000)
			want(t, err, stele.Unavailable)
			give("cut off", labels)
			for _, key := range keys {
				give("others", must(f.another().Mint(f.admin, key, 100))(t))
			}
			store.away.Store(false)
			for _, key := range keys {
				give("back again", must(r.Mint(f.admin, key, 100))(t))
			}
			for _, line := range given.twice {
				t.Error(line)
			}
		})
	}
}

// TestForeseen: a name that was registered before it was reserved is not given out, with
// the store and without it.
func TestForeseen(t *testing.T) {
	f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 10; o.Shared = true })
	key := f.space("urn:example", minter(noid(".zd")))
	f.registered("urn:example:3")
	store := &cutOff{Store: f.store}
	r := registrar.New(store, f.schemes, f.options)
	got := texts(must(r.Mint(f.admin, key, 4))(t))
	if strings.Join(got, " ") != "urn:example:0 urn:example:1 urn:example:2 urn:example:4" {
		t.Errorf("got %v", got)
	}
	store.away.Store(true)
	labels, err := r.Mint(f.admin, key, 1)
	want(t, err, stele.Unavailable)
	if len(labels) > 0 {
		t.Errorf("got %v", labels)
	}
}

// slow is a store that is well, and takes its time.
type slow struct {
	stele.Store
	takes time.Duration
}

func (s *slow) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (*stele.Record, stele.Prefix, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, stele.Prefix{}, ctx.Err()
	}
	return s.Store.First(ctx, candidates)
}

// TestSlowStore: a slow store is not unavailable: a name that a user registered by hand
// after it was reserved is not minted.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 10; o.Shared = true })
		key := f.space("urn:example", minter(noid(".zd")))
		store := &slow{Store: f.store}
		r := registrar.New(store, f.schemes, f.options)
		must(r.Mint(f.admin, key, 1))(t)
		f.registered("urn:example:3")
		store.takes = 3 * time.Second
		for _, name := range texts(must(r.Mint(f.admin, key, 5))(t)) {
			if name == "urn:example:3" {
				t.Errorf("a registered name was given")
			}
		}
	})
}
