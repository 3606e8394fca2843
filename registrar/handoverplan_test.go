package registrar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
)

// A plan says what a seal would do, and refuses what the seal would refuse. It writes nothing.
func TestPlanSeal(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/", minter(noid(".reedeedk")))
	below := f.space("ark:12345/x5")
	f.space("ark:99999/")
	_, err := f.PlanSeal(f.admin, key, nil)
	want(t, err, stele.Conflict, "offered to no registry")
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	_, err = f.PlanSeal(as("ana"), key, nil)
	want(t, err, stele.Forbidden)
	f.registered("ark:12345/a")
	f.registered("ark:12345/x5b")
	hidden := f.record("ark:12345/c", "https://example.org/c")
	hidden.State = stele.Reserved
	must(f.Register(f.admin, hidden))(t)
	out := f.record("ark:12345/x5d", "https://example.org/d")
	out.Aliases = []stele.ID{f.id("urn:example:d"), f.id("ark:12345/e")}
	must(f.Register(f.admin, out))(t)
	in := f.record("ark:99999/f", "https://example.org/f")
	in.Aliases = []stele.ID{f.id("ark:12345/g"), f.id("ark:99999/h")}
	must(f.Register(f.admin, in))(t)
	must(f.Mint(f.admin, key, 1))(t)

	last := must(f.store.LastChange(t.Context()))(t)
	read := 0
	p := must(f.PlanSeal(f.admin, key, func(n int) { read = n }))(t)
	if len(p.Namespaces) != 2 || p.Namespaces[0].Key != key || p.Namespaces[1].Key != below || p.Namespaces[0].Records != 2 || p.Namespaces[1].Records != 2 || p.Records() != 4 {
		t.Errorf("the namespaces are %+v", p.Namespaces)
	}
	if top := p.Namespaces[0]; top.State != stele.Offered || top.Minter != stele.MinterNOID || top.Given == 0 || top.Total == 0 || p.Namespaces[1].Minter != "" {
		t.Errorf("the minters are %+v", p.Namespaces)
	}
	if p.Heir != testHeir || p.Address != testAddress || p.Reserved != 1 || p.Read != 5 || read != 5 {
		t.Errorf("the plan is %+v, after %d records", p, read)
	}
	if p.Outward.Count != 1 || p.Outward.Some[0] != (CrossingAlias{f.id("urn:example:d"), out.ID}) || p.Inward.Count != 1 || p.Inward.Some[0] != (CrossingAlias{f.id("ark:12345/g"), in.ID}) {
		t.Errorf("outward %+v, inward %+v", p.Outward, p.Inward)
	}
	if now := must(f.store.LastChange(t.Context()))(t); now != last || must(f.Namespace(f.admin, key))(t).IsSealed() {
		t.Errorf("the plan changed the registry: %d changes, and there were %d", now, last)
	}
	must(f.OfferNamespace(f.admin, below, "other.example.org/.log", testAddress))(t)
	_, err = f.PlanSeal(f.admin, key, nil)
	want(t, err, stele.Conflict, "other.example.org/.log")
}

// A sample has names from everywhere in the namespaces, and none that the public can't resolve.
func TestSampleNamespace(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/")
	f.space("ark:12345/x5")
	f.space("ark:123456/")
	if list := must(f.SampleNamespace(f.admin, key, 20))(t); len(list) != 0 {
		t.Fatalf("of nothing: %v", list)
	}
	for i := range 300 {
		f.registered(fmt.Sprintf("ark:12345/x5long-%03d", i))
	}
	for _, id := range []string{"ark:123456/a", "ark:12345/zz"} {
		f.registered(id)
	}
	for i, state := range []stele.State{stele.Reserved, stele.Active} {
		rec := f.record(fmt.Sprintf("ark:12345/hidden%d", i), "https://example.org/h")
		rec.State = state
		if state == stele.Active {
			rec.Readers = []string{"user:ana"}
		}
		must(f.Register(f.admin, rec))(t)
	}
	must(f.Withdraw(f.admin, f.registered("ark:12345/gone").ID, 0, "gone", stele.ID{}))(t)
	list := must(f.SampleNamespace(f.admin, key, 20))(t)
	var names []string
	hundreds := map[byte]int{}
	for _, rec := range list {
		name := rec.ID.String()
		names = append(names, name)
		if rest, ok := strings.CutPrefix(name, "ark:12345/x5long"); ok {
			hundreds[rest[0]]++
		} else if name != "ark:12345/zz" {
			t.Errorf("%s is in the sample", name)
		}
	}
	if len(names) != 20 || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != 20 || !slices.Contains(names, "ark:12345/zz") || len(hundreds) != 3 {
		t.Errorf("the sample is %v", names)
	}
	_, err := f.SampleNamespace(as("ana"), key, 20)
	want(t, err, stele.Forbidden)
}

// Administrators see all hand-overs and who made them; others those at a prefix, without principals.
func TestHandOversShown(t *testing.T) {
	f := newFixture(t)
	f.sealed(f.space("ark:12345/", owner("ana")))
	must(f.OfferNamespace(f.admin, f.space("urn:example"), testHeir, testAddress))(t)
	all := must(f.HandOvers(f.admin, stele.NamespaceKey{}))(t)
	if len(all) != 2 || all[0].HandOver.By == "" || all[0].Owner != "" {
		t.Errorf("an administrator sees %+v", all)
	}
	_, err := f.HandOvers(as("ana"), stele.NamespaceKey{})
	want(t, err, stele.Forbidden)
	_, err = f.HandOvers(t.Context(), stele.NamespaceKey{})
	want(t, err, stele.Unauthenticated)
	if list := must(f.HandOvers(as("ana"), f.key("ark:12345/")))(t); len(list) != 1 || list[0].HandOver.By != "" {
		t.Errorf("the owner sees %+v", list)
	}
}

// A registry is not its own heir: its redirects would lead to itself.
func TestHeirIsGiver(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/")
	must(f.SetLogKeys(f.admin, func(k *LogKeys) error { k.Origin = testHeir; return nil }))(t)
	_, err := f.OfferNamespace(f.admin, key, testHeir, testAddress)
	want(t, err, stele.Invalid, "this registry itself")
}

// The ways to write that TestSealed does not try are refused in a namespace that was sealed, too.
func TestSealedElsewise(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/", owner("ana"), minter(noid(".reedeedk")), func(ns *stele.Namespace) {
		ns.Grants = []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}}
	})
	old := f.registered("ark:12345/a")
	must(f.Update(f.admin, old.ID, 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{stele.What: "x"}; return nil }))(t)
	gone := f.registered("ark:12345/gone")
	must(f.Withdraw(f.admin, gone.ID, 0, "gone", stele.ID{}))(t)
	proposed := must(f.Propose(as("ed"), Proposal{Record: f.record("ark:12345/p", "https://example.org/p")}))(t)
	number := must(f.BeginImport(f.admin, "maps.csv"))(t)
	if errs, err := f.Ingest(f.admin, []*stele.Record{f.record("ark:12345/i", "https://example.org/i")}, ImportOptions{Import: number}); errors.Join(append(errs, err)...) != nil {
		t.Fatal(errs, err)
	}
	f.sealed(key)
	last := must(f.store.LastChange(t.Context()))(t)
	pool := []stele.NamespaceKey{key}
	for what, write := range map[string]func() error{
		"reinstate": func() error { _, err := f.Reinstate(f.admin, gone.ID, 0); return err },
		"revert":    func() error { _, err := f.Revert(f.admin, old.ID, 0, 1); return err },
		"disavow":   func() error { _, err := f.Disavow(f.admin, old.ID, 0, 1, 1, "hijacked"); return err },
		"approve":   func() error { _, err := f.Approve(as("ana"), proposed.ID); return err },
		"propose": func() error {
			_, err := f.Propose(as("ed"), Proposal{Record: f.record("ark:12345/q", "https://example.org/q")})
			return err
		},
		"mint from a pool": func() error { _, err := f.MintPool(f.admin, pool, 1); return err },
		"mint and register": func() error {
			_, err := f.MintAndRegister(f.admin, f.record("", "https://example.org/m"), key)
			return err
		},
		"mint a batch": func() error {
			_, err := f.MintBatch(f.admin, &minting.IdempotencyKey{Key: "k"}, pool, 2, f.record("", "https://example.org/m"))
			return err
		},
		"mint in a namespace below": func() error {
			_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Minter: noid(".reedeedk")})
			return err
		},
		"skip": func() error { return f.SkipCounter(f.admin, key, 1000) },
		"import with history": func() error {
			rec := f.record("ark:12345/h", "https://example.org/h")
			errs, err := f.Ingest(f.admin, []*stele.Record{rec}, ImportOptions{Keep: true})
			return errors.Join(append(errs, err)...)
		},
		"import an update": func() error {
			errs, err := f.Ingest(f.admin, []*stele.Record{f.record("ark:12345/a", "https://example.org/new")}, ImportOptions{Update: true})
			return errors.Join(append(errs, err)...)
		},
		"import a namespace": func() error {
			return f.IngestNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Quota: 7}, ImportOptions{Update: true})
		},
	} {
		if err := write(); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), testHeir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	result := must(f.RevertImport(f.admin, number, RevertOptions{}, func(s RevertStep) error {
		if s.Status != RevertLeft || !strings.Contains(s.Why, testHeir) {
			t.Errorf("revert of the import: %+v", s)
		}
		return nil
	}))(t)
	if result.Left != 1 {
		t.Errorf("revert of the import: %+v", result)
	}
	if now := must(f.store.LastChange(t.Context()))(t); now != last {
		t.Errorf("%d changes, and there were %d when it was sealed", now, last)
	}
}

// Everybody sees the heirs of a namespace, those of one above it included. Its owners name them, and others do not.
func TestHeirs(t *testing.T) {
	f := newFixture(t)
	key, below := f.space("ark:12345/", owner("ana")), f.space("ark:12345/x5")
	name := func(ctx context.Context, key stele.NamespaceKey, registry string) error {
		_, err := f.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
			ns.Heirs = append(ns.Heirs, stele.Heir{Registry: registry, Address: testAddress, Days: 180})
			return nil
		})
		return err
	}
	want(t, name(as("eve"), key, testHeir), stele.NotFound)
	if err := name(as("ana"), key, testHeir); err != nil {
		t.Fatal(err)
	}
	for _, at := range []stele.NamespaceKey{key, below} {
		if list := must(f.HandOvers(t.Context(), at))(t); len(list) != 1 || list[0].Key() != key || len(list[0].Heirs) != 1 || list[0].Owner != "" {
			t.Errorf("at %s the public sees %+v", at, list)
		}
	}
	if err := name(as("ana"), below, "second.example.org/.log"); err != nil {
		t.Fatal(err)
	}
	if list := must(f.HandOvers(t.Context(), below))(t); len(list) != 1 || list[0].Key() != below {
		t.Errorf("with heirs of its own it shows %+v", list)
	}
	if list := must(f.HandOvers(f.admin, stele.NamespaceKey{}))(t); len(list) != 2 {
		t.Errorf("an administrator sees %+v", list)
	}
	if ns := must(f.Namespace(f.admin, key))(t); len(ns.Heirs) != 1 {
		t.Errorf("the namespace has the heirs %+v", ns.Heirs)
	}
}
