package registrar

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stele-id/stele"
)

const (
	testHeir    = "heir.example.org/.log"
	testAddress = "https://heir.example.org/"
)

// sealed hands a namespace over as far as to its seal.
func (f *fixture) sealed(key stele.NamespaceKey) {
	f.t.Helper()
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(f.t)
	must(f.SealNamespace(f.admin, key))(f.t)
}

// A hand-over goes from state to state, and skips none. Namespaces below go with it.
func TestHandOverStates(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/", owner("ana"), minter(noid(".reedeedk")))
	below := f.space("ark:12345/x5")
	other := f.space("ark:99999/")
	state := func(k stele.NamespaceKey) stele.HandOverState {
		return must(f.Namespace(f.admin, k))(t).HandOver.State
	}
	_, err := f.SealNamespace(f.admin, key)
	want(t, err, stele.Conflict, "offered to no registry")
	_, err = f.ForwardNamespace(f.admin, key)
	want(t, err, stele.Conflict, "not sealed")
	_, err = f.OfferNamespace(as("ana"), key, testHeir, testAddress)
	want(t, err, stele.Forbidden)
	_, err = f.OfferNamespace(f.admin, key, "two words", testAddress)
	want(t, err, stele.Invalid, "name of a registry")
	_, err = f.OfferNamespace(f.admin, stele.NamespaceKey{Scheme: "ark"}, testHeir, testAddress)
	want(t, err, stele.Invalid, "root")

	list := must(f.OfferNamespace(f.admin, key, "first.example.org/.log", testAddress))(t)
	if len(list) != 2 || state(key) != stele.Offered || state(below) != stele.Offered || state(other) != stele.NotHandedOver {
		t.Fatalf("%d namespaces are offered; the states are %q, %q and %q", len(list), state(key), state(below), state(other))
	}
	must(f.CancelHandOver(f.admin, key, false))(t)
	if state(key) != stele.NotHandedOver {
		t.Errorf("after the offer was cancelled the state is %q", state(key))
	}
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	f.registered("ark:12345/x5a") // all goes on
	added := f.space("ark:12345/x6")
	must(f.SealNamespace(f.admin, key))(t)
	if state(below) != stele.Sealed || state(added) != stele.Sealed {
		t.Errorf("below, the states are %q and %q", state(below), state(added))
	}
	_, err = f.CancelHandOver(f.admin, key, false)
	want(t, err, stele.Conflict, "--i-know")
	_, err = f.OfferNamespace(f.admin, key, "third.example.org/.log", testAddress)
	want(t, err, stele.Conflict, "sealed for "+testHeir)
	since := must(f.Namespace(f.admin, key))(t).HandOver.Since
	must(f.SealNamespace(f.admin, key))(t)
	if now := must(f.Namespace(f.admin, key))(t); !now.HandOver.Since.Equal(since) {
		t.Error("a second seal is another one")
	}
	must(f.ForwardNamespace(f.admin, key))(t)
	if state(below) != stele.Forwarded {
		t.Errorf("below, the state is %q", state(below))
	}
	shown := must(f.HandOvers(t.Context(), key))(t)
	if len(shown) != 3 || shown[0].HandOver.Heir != testHeir || shown[0].HandOver.By != "" || shown[0].Owner != "" {
		t.Errorf("the public sees %+v", shown)
	}
	must(f.CancelHandOver(f.admin, key, true))(t)
	f.registered("ark:12345/x5b")
}

// Every way to write in a namespace that was sealed is refused, with the heir's name; reading goes on.
func TestSealed(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/", owner("ana"), minter(noid(".reedeedk")))
	f.space("ark:99999/", owner("ana"))
	old := f.registered("ark:12345/a")
	far := f.registered("ark:99999/a")
	f.sealed(key)
	for what, write := range map[string]func() error{
		"register": func() error {
			_, err := f.Register(f.admin, f.record("ark:12345/b", "https://example.org/b"))
			return err
		},
		"update": func() error {
			_, err := f.Update(f.admin, old.ID, 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{stele.What: "x"}; return nil })
			return err
		},
		"withdraw": func() error { _, err := f.Withdraw(f.admin, old.ID, 0, "gone", stele.ID{}); return err },
		"alias":    func() error { _, err := f.AddAlias(f.admin, far.ID, 0, f.id("ark:12345/c")); return err },
		"mint":     func() error { _, err := f.Mint(f.admin, key, 1); return err },
		"import": func() error {
			errs, err := f.Ingest(f.admin, []*stele.Record{f.record("ark:12345/d", "https://example.org/d")}, ImportOptions{})
			return errors.Join(append(errs, err)...)
		},
		"namespace below": func() error {
			_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x7"})
			return err
		},
		"minter": func() error {
			_, err := f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter = stele.Minter{}; return nil })
			return err
		},
	} {
		if err := write(); err == nil || stele.KindOf(err) != stele.Conflict {
			t.Errorf("%s: %v", what, err)
		} else {
			want(t, err, stele.Conflict, testHeir)
		}
	}
	if got := must(f.Get(f.admin, old.ID))(t); got.Version != 1 {
		t.Errorf("version %d", got.Version)
	}
	// What is needed as long as the registry runs: titles, rights, and legal orders.
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
		ns.Title, ns.HandOver = "old names", stele.HandOver{}
		return nil
	}))(t)
	if ns := must(f.Namespace(f.admin, key))(t); ns.HandOver.State != stele.Sealed || ns.Title != "old names" {
		t.Errorf("an ordinary change of the namespace makes it %+v", ns)
	}
	must(f.Redact(f.admin, old.ID, 0, "by order"))(t)
	must(f.Update(f.admin, far.ID, 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{stele.What: "y"}; return nil }))(t)
}

// Another server over the same store does not know of the seal yet: what it judged before is not written, and what
// concerns other namespaces is.
func TestSealedByAnother(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/", minter(noid(".reedeedk")))
	f.space("ark:99999/")
	late := New(f.store, testSchemes(t), f.options)
	if _, err := late.Register(f.admin, f.record("ark:12345/a", "https://example.org/a")); err != nil {
		t.Fatal(err)
	}
	f.sealed(key)
	_, err := late.Register(f.admin, f.record("ark:12345/b", "https://example.org/b"))
	want(t, err, stele.Conflict, testHeir)
	late = New(f.store, testSchemes(t), f.options)
	late.view(f.admin)
	f.sealed(f.space("ark:88888/"))
	if _, err := late.Register(f.admin, f.record("ark:99999/b", "https://example.org/b")); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
}

// While records are registered and names minted by several servers, a namespace is sealed: nothing follows it in the feed.
func TestSealUnderLoad(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/", minter(noid(".reeeedk")))
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	var wg sync.WaitGroup
	for w := range 4 {
		r := New(f.store, testSchemes(t), f.options)
		wg.Go(func() {
			for i := range 50 {
				if w == 0 && i == 25 {
					if _, err := r.SealNamespace(f.admin, key); err != nil {
						t.Error(err)
					}
				}
				_, err := r.Register(f.admin, f.record(fmt.Sprintf("ark:12345/w%di%d", w, i), "https://example.org/"))
				if err != nil && stele.KindOf(err) != stele.Conflict {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	sealedAt := uint64(0)
	for c, err := range f.store.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !c.ID.IsValid() && c.Version == 3:
			sealedAt = c.Seq
		case sealedAt > 0:
			t.Errorf("change %d, of %s, follows the seal, %d", c.Seq, c.ID, sealedAt)
		}
	}
	if sealedAt == 0 {
		t.Error("the namespace was not sealed")
	}
}
