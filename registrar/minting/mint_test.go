package minting_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
)

// TestRegisteredNamesAreSkipped: a name that a user registered by hand, as identifier
// or alias, is not minted.
func TestRegisteredNamesAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		dated := f.space("sid.inpe.br/mtc-m18", minter(ibi("1s")))
		fine := f.space("example.org/a", minter(rep("a.example.org", "1ms")))
		counted := f.space("ark:12345/x5", minter(noid(".sdd")))
		f.space("102.100.272/")
		time.Sleep(30 * time.Second)
		f.first(dated)
		f.first(fine)

		// The next three labels, by each of their forms.
		f.registered("sid.inpe.br/mtc-m18/2000/01.01.00.00.31")
		alias := f.record("102.100.272/1", "https://example.org/1")
		alias.Aliases = []stele.ID{f.id("8JMKD3MGP8W/BMCNU2"), f.id("example.org/a/2000/01.01.00.00.30.001")}
		x := must(f.schemes.Explain("sid.inpe.br/mtc-m18/2000/01.01.00.00.32"))(t)
		for _, p := range x.Parts {
			if _, ibip, ok := strings.Cut(p.Note, "an IBIp ends in "); ok {
				alias.Aliases[0] = f.id("8JMKD3MGP8W/" + ibip)
			}
		}
		must(f.Register(f.admin, alias))(t)
		for _, n := range []string{"00", "01", "03"} {
			f.registered("ark:12345/x5" + n)
		}

		if got := f.first(dated); got != "sid.inpe.br/mtc-m18/2000/01.01.00.00.33" {
			t.Errorf("got %s", got)
		}
		f.start()
		if got := f.first(fine); got == "example.org/a/2000/01.01.00.00.30.001" {
			t.Errorf("got %s", got)
		}
		for _, want := range []string{"ark:12345/x502", "ark:12345/x504"} {
			if got := f.first(counted); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		// The same when the name is registered at once.
		f.registered("sid.inpe.br/mtc-m18/2000/01.01.00.00.34")
		f.registered("ark:12345/x505")
		rec := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), dated))(t)
		if rec.ID.String() != "sid.inpe.br/mtc-m18/2000/01.01.00.00.35" {
			t.Errorf("got %s", rec.ID)
		}
		rec = must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), counted))(t)
		if rec.ID.String() != "ark:12345/x506" {
			t.Errorf("got %s", rec.ID)
		}
	})
}

func TestMintAndRegister(t *testing.T) {
	f := newFixture(t)
	key := f.space("sid.inpe.br/mtc-m18", owner("ann"), minter(ibi("1s")))
	f.space("ark:12345", owner("ann"))
	before := must(f.store.LastChange(f.admin))(t)
	in := f.record("", "https://example.org/1")
	in.Aliases = []stele.ID{f.id("ark:12345/a")}
	rec := must(f.MintAndRegister(as("ann"), in, key))(t)
	if len(rec.Aliases) != 2 || rec.Aliases[1] != in.Aliases[0] || !strings.HasPrefix(rec.Aliases[0].String(), "8JMKD3MGP8W/") || rec.Version != 1 || rec.By != "ann" {
		t.Errorf("got %+v", rec)
	}
	for _, name := range rec.Names() {
		if got := must(f.Get(f.admin, name))(t); got.ID != rec.ID {
			t.Errorf("%s leads to %s", name, got.ID)
		}
	}
	if after := must(f.store.LastChange(f.admin))(t); after != before+1 {
		t.Errorf("%d changes", after-before)
	}
	if in.ID.IsValid() || len(in.Aliases) != 1 {
		t.Errorf("the caller's record became %+v", in)
	}
	// If an alias of the caller's is taken, the minter does not try another name.
	_, err := f.MintAndRegister(as("ann"), in, key)
	want(t, err, stele.Conflict, "ark:12345/a")
	uuids := f.space("urn:uuid", minter(stele.Minter{Kind: stele.MinterUUID}))
	_, err = f.MintAndRegister(f.admin, in, uuids)
	want(t, err, stele.Conflict, "ark:12345/a")

	_, err = f.MintAndRegister(as("bob"), f.record("", "https://example.org/1"), key)
	want(t, err, stele.Forbidden)
	_, err = f.MintAndRegister(as("ann"), f.record("ark:12345/b", "https://example.org/1"), key)
	want(t, err, stele.Invalid, "leave the identifier out")
	_, err = f.MintAndRegister(as("ann"), f.record("", "https://example.org/1"))
	want(t, err, stele.Invalid, "no namespace")
}

// TestNoNameIsUsedUp: what can't be registered costs no name.
func TestNoNameIsUsedUp(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", minter(noid(".sddddd")), func(ns *stele.Namespace) { ns.Hosts = []string{"example.org"} })
	if got := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key))(t); got.ID.String() != "ark:12345/x500000" {
		t.Errorf("got %s", got.ID)
	}
	for _, url := range []string{"https://example.com/", "mailto:x", ""} {
		_, err := f.MintAndRegister(f.admin, f.record("", url), key)
		want(t, err, stele.Invalid, "targets[0].url")
	}
	if got := f.first(key); got != "ark:12345/x500001" {
		t.Errorf("got %s", got)
	}
}

func TestMintRights(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", owner("ann"), minter(noid(".zd")))
	other := f.space("ark:99999/x5", minter(noid(".zd")))
	bare := f.space("ark:88888", owner("ann"))
	for _, tt := range []struct {
		who  context.Context
		pool []stele.NamespaceKey
		kind stele.Kind
	}{
		{context.Background(), []stele.NamespaceKey{key}, stele.Unauthenticated},
		{as("bob"), []stele.NamespaceKey{key}, stele.Forbidden},
		{as("ann"), []stele.NamespaceKey{key, other}, stele.Forbidden},
		{as("ann"), []stele.NamespaceKey{bare}, stele.Invalid},
		{as("ann"), []stele.NamespaceKey{f.key("ark:77777")}, stele.NotFound},
		{f.admin, []stele.NamespaceKey{f.key("ark:")}, stele.Invalid},
		{f.admin, nil, stele.Invalid},
	} {
		_, err := f.MintPool(tt.who, tt.pool, 1)
		want(t, err, tt.kind)
		_, err = f.MintAndRegister(tt.who, f.record("", "https://example.org/1"), tt.pool...)
		want(t, err, tt.kind)
	}
	if labels := must(f.Mint(as("ann"), key, 0))(t); len(labels) != 0 {
		t.Errorf("got %v", labels)
	}
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Delegate = "https://example.org/{id}"; return nil }))(t)
	_, err := f.Mint(as("ann"), key, 1)
	want(t, err, stele.Conflict, "another resolver")
}

// TestNamesFallOut: a namespace below takes the names of some dates, and the minter
// reports that.
func TestNamesFallOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("example.org/a", minter(rep("a.example.org", "1ms")))
		f.first(key)
		f.space("example.org/a/2000", owner("eve"))
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Conflict, "falls out")
		_, err = f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key)
		want(t, err, stele.Conflict, "falls out")
	})
}

// TestMintMany: callers and sizes of all kinds at once, in real time.
func TestMintMany(t *testing.T) {
	f := newFixture(t)
	pool := []stele.NamespaceKey{
		f.space("sid.inpe.br/mtc-m18", minter(ibi("1us"))),
		f.space("example.org/a", minter(rep("a.example.org", "100us"))),
		f.space("ark:12345/x5", minter(noid(".reedeedk"))),
	}
	given := issuedNames{given: make(map[stele.ID]string)}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for _, n := range []int{1, 2, 700, 3} {
				use := pool[i%3 : i%3+1]
				if i > 10 {
					use = pool
				}
				labels, err := f.MintPool(f.admin, use, n)
				if err != nil || len(labels) != n {
					t.Errorf("%d of %d labels: %v", len(labels), n, err)
				}
				for _, l := range labels {
					given.add(fmt.Sprint(i), names(l)...)
				}
			}
		})
	}
	wg.Wait()
	if len(given.twice) > 0 {
		t.Error(given.twice[0])
	}
}

// TestSettingsChangeUnderCallers: names made by old settings and by new ones, and
// none of both.
func TestSettingsChangeUnderCallers(t *testing.T) {
	f := newFixture(t)
	key := f.space("example.org/a", minter(rep("a.example.org", "1us")))
	given := issuedNames{given: make(map[stele.ID]string)}
	stop, progress := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case progress <- struct{}{}:
				default:
				}
				labels, err := f.Mint(f.admin, key, 50)
				if err != nil {
					t.Error(err)
				}
				for _, l := range labels {
					given.add(fmt.Sprint(i), names(l)...)
				}
			}
		})
	}
	for i := range 30 {
		if _, err := f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
			ns.Minter = rep("a.example.org", []string{"1us", "10us", "1ns"}[i%3])
			if i%2 == 0 {
				ns.Minter.IP, ns.Minter.IPPort = "150.163.34.243", uint16(800+i%4)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		<-progress
	}
	close(stop)
	wg.Wait()
	if len(given.twice) > 0 || len(given.given) == 0 {
		t.Errorf("%d names, twice: %v", len(given.given), given.twice)
	}
}

// Every shoulder of ARKs that is in use can mint, those without a digit too. A name begins
// with the shoulder, and belongs to it.
func TestMintBelowRealShoulders(t *testing.T) {
	f := newFixture(t)
	table, err := os.ReadFile("../../namespaces/testdata/shoulders.txt")
	if err != nil {
		t.Fatal(err)
	}
	var keys []stele.NamespaceKey
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, shoulder := range strings.Fields(line) {
			template := ".zeek"
			if strings.Contains(shoulder, ".") {
				// What is minted there is a qualifier, and the check character of an ARK
				// ends its name (section 2.4.1).
				_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:" + shoulder, Minter: noid(template)})
				want(t, err, stele.Invalid, "a check character can't stand here; use a template without k")
				template = ".zeee"
			}
			keys = append(keys, f.space("ark:"+shoulder, minter(noid(template))))
		}
	}
	if len(keys) < 290 {
		t.Fatalf("%d shoulders", len(keys))
	}
	for _, key := range keys {
		labels, err := f.Mint(f.admin, key, 2)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		for _, l := range labels {
			ns := must(f.FindNamespace(f.admin, l.ID))(t)
			if rest, ok := strings.CutPrefix(l.ID.String(), key.Prefix); !ok || ns.Key() != key || len(strings.TrimPrefix(rest, "/")) != 3 {
				t.Errorf("%s: %s, of %s", key, l.ID, ns.Key())
			}
		}
	}
}
