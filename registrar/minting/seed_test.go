package minting_test

import (
	"context"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// A new template that shuffles its names gets a random seed; one that is there keeps its
// own, also if that is 0.
func TestTemplatesGetRandomSeeds(t *testing.T) {
	f := newFixture(t)
	noid := func(template string, seed uint64) stele.Minter {
		return stele.Minter{Kind: stele.MinterNOID, Template: template, Seed: seed}
	}
	add := func(prefix string, m stele.Minter) stele.Minter {
		t.Helper()
		return must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: prefix, Minter: m}))(t).Minter
	}
	set := func(prefix string, m stele.Minter) stele.Minter {
		t.Helper()
		key := stele.NamespaceKey{Scheme: "ark", Prefix: prefix}
		return must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter = m; return nil }))(t).Minter
	}
	first, second := add("ark:12345/a1", noid(".reedk", 0)), add("ark:12345/a2", noid(".reedk", 0))
	if first.Seed == 0 || second.Seed == 0 || first.Seed == second.Seed || first.Seed > 1<<53-1 {
		t.Errorf("the seeds are %d and %d", first.Seed, second.Seed)
	}
	if m := add("ark:12345/a3", noid(".reedk", 7)); m.Seed != 7 {
		t.Errorf("a seed that was given became %d", m.Seed)
	}
	for _, template := range []string{".zdd", ".sdd"} { // whose order has no seed
		if m := add("ark:12345/"+template[1:2]+"1", noid(template, 0)); m.Seed != 0 {
			t.Errorf("%s has the seed %d", template, m.Seed)
		}
	}
	if m := set("ark:12345/a1", noid(".reedk", 0)); m != first {
		t.Errorf("the seed %d became %d", first.Seed, m.Seed)
	}
	if m := set("ark:12345/a1", noid(".reeedk", 0)); m.Seed == 0 || m.Seed == first.Seed {
		t.Errorf("another template has the seed %d", m.Seed)
	}
	if m := set("ark:12345/a1", noid(".reeedk", 9)); m.Seed != 9 {
		t.Errorf("a seed that was given became %d", m.Seed)
	}

	// From another registry, or from before templates had random seeds.
	old := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/c1", Minter: noid(".reedk", 0)}
	if err := f.IngestNamespace(f.admin, old, registrar.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	kept := must(f.Namespace(f.admin, old.Key()))(t)
	if kept.Minter.Seed != 0 {
		t.Errorf("a namespace that came from elsewhere has the seed %d", kept.Minter.Seed)
	}
	must(f.SetNamespace(f.admin, old.Key(), 0, func(ns *stele.Namespace) error { ns.Title = "Old"; return nil }))(t)
	if kept = must(f.Namespace(f.admin, old.Key()))(t); kept.Minter.Seed != 0 {
		t.Errorf("the stored seed 0 became %d", kept.Minter.Seed)
	}
}

// Without random bits no namespace is made with names that can be foretold.
func TestSeedNeedsRandomBits(t *testing.T) {
	f := newFixture(t)
	f.options.Rand = noBits{}
	f.start()
	_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".reedk"}})
	want(t, err, stele.Unavailable, "no random bits")
}

type noBits struct{}

func (noBits) Read([]byte) (int, error) { return 0, context.DeadlineExceeded }
