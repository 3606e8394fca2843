package registrar

import (
	"testing"

	"github.com/stele-id/stele"
)

// TestPublic: the public lists the names of listed namespaces, and not those of namespaces below that are not. A restore lists
// nothing that an owner no longer lists.
func TestPublic(t *testing.T) {
	f := reviewed(t)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5p"}))(t)
	public := must(f.Public(t.Context()))(t)
	if list := public.Namespaces(); len(list) != 0 {
		t.Errorf("%d are listed by default", len(list))
	}
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Listed = true; return nil }))(t)
	public = must(f.Public(t.Context()))(t)
	if list := public.Namespaces(); len(list) != 1 || list[0].Key() != key {
		t.Errorf("%v", list)
	}
	in, below := must(stele.NewID("ark", "ark:12345/x5a"))(t), must(stele.NewID("ark", "ark:12345/x5pa"))(t)
	if public.Of(in) == nil || public.Of(below) != nil {
		t.Error("a namespace says for itself whether it is listed")
	}
	for state, want := range map[stele.State]bool{stele.Active: true, stele.Withdrawn: true, stele.Reserved: false} {
		if public.Shows(&stele.Record{ID: in, State: state, Version: 1}) != want {
			t.Errorf("%s: not %v", state, want)
		}
	}
	if public.Shows(&stele.Record{ID: in, State: stele.Active, Version: 1, Readers: []string{"user:ed"}}) || public.Shows(&stele.Record{ID: below, State: stele.Active, Version: 1}) {
		t.Error("it shows what it should not")
	}

	backup := reviewed(t)
	must(backup.SetNamespace(backup.admin, key, 0, func(ns *stele.Namespace) error { ns.Listed = true; return nil }))(t)
	now := must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Listed = false; return nil }))(t)
	if err := backup.restoreNamespaces(backup.admin, []*stele.Namespace{now}); err != nil {
		t.Fatal(err)
	}
	if list := must(backup.Public(t.Context()))(t).Namespaces(); len(list) != 0 {
		t.Errorf("a restore lists %v again", list)
	}
}
