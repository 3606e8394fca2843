package registrar

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// restoredOver returns what becomes of a namespace of a backup if it is restored over the present registry.
func restoredOver(t *testing.T, backup, present *fixture, key stele.NamespaceKey) *stele.Namespace {
	t.Helper()
	now := must(present.Namespace(present.admin, key))(t)
	if err := backup.restoreNamespaces(backup.admin, []*stele.Namespace{now}); err != nil {
		t.Fatal(err)
	}
	return must(backup.Namespace(backup.admin, key))(t)
}

// A backup from before a seal that is restored over the giver does not give names again: whether it has the namespace or not.
func TestRestoreSealed(t *testing.T) {
	giver := newFixture(t)
	key := giver.space("ark:12345/", owner("ana"), minter(noid(".reedeedk")))
	giver.sealed(key)
	for name, prepare := range map[string]func(f *fixture){
		"before the seal":      func(f *fixture) { f.space("ark:12345/", owner("ana"), minter(noid(".reedeedk"))) },
		"before the namespace": func(f *fixture) { f.space("ark:99999/") },
		"offered to another": func(f *fixture) {
			k := f.space("ark:12345/", minter(noid(".reedeedk")))
			for _, heir := range []string{"a.example.org/.log", "b.example.org/.log", "c.example.org/.log"} {
				must(f.OfferNamespace(f.admin, k, heir, testAddress))(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			backup := newFixture(t)
			prepare(backup)
			ns := restoredOver(t, backup, giver, key)
			if ns.HandOver.State != stele.Sealed || ns.HandOver.Heir != testHeir {
				t.Errorf("the hand-over is %+v", ns.HandOver)
			}
			if labels, err := backup.Mint(backup.admin, key, 1); err == nil {
				t.Errorf("%v is minted", labels)
			}
			_, err := backup.Register(backup.admin, backup.record("ark:12345/b", "https://example.org/b"))
			want(t, err, stele.Conflict, testHeir)
			must(backup.ForwardNamespace(backup.admin, key))(t)
		})
	}
	// What was sealed when the backup was made, and is not any more, is not sealed.
	backup := newFixture(t)
	backup.sealed(backup.space("ark:12345/", owner("ana"), minter(noid(".reedeedk"))))
	must(giver.CancelHandOver(giver.admin, key, true))(t)
	if ns := restoredOver(t, backup, giver, key); ns.HandOver.State != stele.NotHandedOver {
		t.Errorf("the hand-over is %+v", ns.HandOver)
	}
}

// A backup that is restored over the heir gives no names of a namespace that was adopted since: names of the bundle are missing.
func TestRestoreAdopted(t *testing.T) {
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	adoption := func(bundle string, reading bool) stele.Adoption {
		return stele.Adoption{From: "giver.example.org/.log", To: testHeir, Bundle: strings.Repeat(bundle, 32), Change: 7, Until: then, At: then, Reading: reading}
	}
	made := func(list ...stele.Adoption) (*fixture, stele.NamespaceKey) {
		f := newFixture(t)
		key := f.space("ark:12345/", minter(noid(".reedeedk")))
		before := must(f.store.Namespace(t.Context(), key))(t)
		next := cloneNamespace(before)
		next.Adoptions = list
		f.stampNamespace(f.admin, before, next)
		if err := f.store.Apply(f.admin, &stele.Commit{Namespaces: []*stele.Namespace{next}}); err != nil {
			t.Fatal(err)
		}
		if err := f.Reload(f.admin); err != nil {
			t.Fatal(err)
		}
		return f, key
	}
	opened := []stele.Adoption{adoption("0a", false)}
	for name, tt := range map[string]struct {
		backup, present []stele.Adoption
		reading         bool
	}{
		"before the adoption":     {nil, opened, true},
		"while it was under way":  {[]stele.Adoption{adoption("0a", true)}, opened, true},
		"of another bundle":       {[]stele.Adoption{adoption("0b", true)}, []stele.Adoption{adoption("0b", true), adoption("0a", false)}, true},
		"after the adoption":      {opened, opened, false},
		"both are for reading":    {[]stele.Adoption{adoption("0b", true)}, []stele.Adoption{adoption("0b", true), adoption("0a", true)}, true},
		"neither was ever handed": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			backup, key := made(slices.Clone(tt.backup)...)
			present, _ := made(slices.Clone(tt.present)...)
			ns := restoredOver(t, backup, present, key)
			if ns.IsRead() != tt.reading || len(ns.Adoptions) != len(tt.present) {
				t.Errorf("the adoptions are %+v", ns.Adoptions)
			}
			if _, err := backup.Mint(backup.admin, key, 1); (err == nil) == tt.reading {
				t.Errorf("minting says %v", err)
			}
		})
	}
}
