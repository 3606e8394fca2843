package minting_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/storetest"
)

// issuedNames has every name that ever left.
type issuedNames struct {
	mu    sync.Mutex
	given map[stele.ID]string
	twice []string
}

func (l *issuedNames) add(who string, names ...stele.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if before, ok := l.given[name]; ok {
			l.twice = append(l.twice, fmt.Sprintf("%s: by %s, and before by %s", name, who, before))
		}
		l.given[name] = who
	}
}

// TestNothingIsGivenTwice lets processes die at random commits, with commits that
// fail before and after they are made, clocks that jump and settings that change,
// while many callers mint, and mint and register. No name leaves twice, and what
// was acknowledged is there.
func TestNothingIsGivenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 7 })
		keys := []stele.NamespaceKey{
			f.space("sid.inpe.br/mtc-m18", minter(ibi("1us"))),
			f.space("example.org/a", minter(rep("a.example.org", "1ms"))),
			f.space("example.org/b", minter(rep("b.example.org", "1s"))),
			f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN})),
			f.space("ark:12345/x5", minter(noid(".reeddk"))),
			f.space("urn:example", minter(noid(".zd"))),
			f.space("ark:12345/f5", minter(original(".redk", 1))),
			f.space("urn:uuid", minter(stele.Minter{Kind: stele.MinterUUID})),
		}
		var given, kept issuedNames
		given.given, kept.given = make(map[stele.ID]string), make(map[stele.ID]string)
		for round := range 150 {
			f.Registrar = registrar.New(&storetest.Faulty{Store: f.store, Fault: storetest.Dying(1 + rand.Int64N(60))}, f.schemes, f.options)
			var wg sync.WaitGroup
			for caller := range 2 * len(keys) {
				key := keys[caller%len(keys)]
				who := fmt.Sprintf("caller %d of round %d", caller, round)
				wg.Go(func() { f.mintUntilDead(t, key, who, caller < len(keys), &given, &kept) })
			}
			if round%10 == 5 {
				wg.Go(func() { f.changeSettings(keys) })
			}
			wg.Wait()
			if rand.N(3) == 0 {
				f.jump(time.Duration(rand.Int64N(int64(4*time.Second))) - 2*time.Second)
			}
			time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		}
		for i, line := range given.twice {
			if i < 10 {
				t.Error(line)
			}
		}
		for id := range kept.given {
			if _, err := f.store.Record(f.admin, id); err != nil {
				t.Errorf("%s was acknowledged: %v", id, err)
			}
		}
		if len(given.given) < 5000 || len(kept.given) < 500 {
			t.Errorf("%d names given, %d records: too few to say anything", len(given.given), len(kept.given))
		}
		if err := f.store.Verify(f.admin, func(p *stele.Message) { t.Error(p) }); err != nil {
			t.Error(err)
		}
	})
}

// mintUntilDead makes names until the process is dead, or enough.
func (f *fixture) mintUntilDead(t *testing.T, key stele.NamespaceKey, who string, register bool, given, kept *issuedNames) {
	r, failures := f.Registrar, 0
	for range 40 {
		if failures > 3 {
			return
		}
		if register {
			rec, err := r.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key)
			if err != nil {
				failures++
				continue
			}
			given.add(who, rec.Names()...)
			kept.add(who, rec.ID)
			continue
		}
		ctx, cancel := context.WithTimeout(f.admin, time.Duration(rand.Int64N(int64(3*time.Second))))
		labels, err := r.Mint(ctx, key, 1+rand.N(5))
		cancel()
		for _, l := range labels {
			given.add(who, names(l)...)
		}
		if err != nil {
			failures++
			if k := stele.KindOf(err); k != stele.Unavailable {
				t.Errorf("%s: %v", who, err)
			}
		}
	}
}

// changeSettings changes granularities and templates, as far as the store is well.
func (f *fixture) changeSettings(keys []stele.NamespaceKey) {
	for _, key := range keys {
		f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
			m := &ns.Minter
			switch {
			case m.Kind == stele.MinterIBI:
				m.Granularity = []string{"1us", "10us", "1ms", "100ms", "1s"}[rand.N(5)]
			case m.Kind == stele.MinterNOID && ns.Scheme == "urn":
				m.Template = []string{".zd", ".zdd", ".ze", ".rdddddd", ".sdddddd"}[rand.N(5)]
			case m.Kind == stele.MinterNOID && m.Order == stele.OrderNOID:
				m.Template = []string{".redk", ".rddk", ".reedk"}[rand.N(3)]
			}
			return nil
		})
	}
}

// TestTwoProcesses: two registrars on one store, as several servers on one
// database, take turns and give nothing twice.
func TestTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *registrar.Options) { o.BlockSize = 5 })
		keys := []stele.NamespaceKey{
			f.space("sid.inpe.br/mtc-m18", minter(ibi("1us"))),
			f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN})),
			f.space("ark:12345/x5", minter(noid(".zeedk"))),
			f.space("ark:12345/f5", minter(original(".reedk", 3))),
		}
		given := issuedNames{given: make(map[stele.ID]string)}
		var wg sync.WaitGroup
		for p := range 2 {
			r := registrar.New(f.store, f.schemes, f.options)
			for c := range 8 {
				wg.Go(func() {
					for range 20 {
						labels, err := r.Mint(f.admin, keys[c%4], 3)
						if err != nil {
							t.Error(err)
							return
						}
						for _, l := range labels {
							given.add(fmt.Sprint(p, c), names(l)...)
						}
						time.Sleep(time.Duration(rand.N(20)) * time.Millisecond)
					}
				})
			}
		}
		wg.Wait()
		if len(given.twice) > 0 {
			t.Error(given.twice[0])
		}
		if want := 2 * 2 * 20 * 3 * 5; len(given.given) != want {
			t.Errorf("%d names, want %d", len(given.given), want)
		}
	})
}

// TestSettingsChangeElsewhere: a process learns from the store that another one has
// removed an address, and continues without it.
func TestSettingsChangeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1s")))
		f.first(key)
		other := registrar.New(f.store, f.schemes, f.options)
		must(other.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
			ns.Minter = rep("mtc-m18.sid.inpe.br", "1s")
			return nil
		}))(t)
		labels := must(f.Mint(f.admin, key, 1))(t)
		if len(labels[0].Aliases) != 0 {
			t.Errorf("got %v", labels)
		}
		rec := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key))(t)
		if len(rec.Aliases) != 0 {
			t.Errorf("got %+v", rec)
		}
	})
}
