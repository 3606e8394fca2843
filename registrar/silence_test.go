package registrar

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// Whether a giver has names below a new namespace is found out while other namespaces are written. Names that are registered meanwhile are found, too.
func TestShoulderUnlocked(t *testing.T) {
	f := newFixture(t)
	busy := &busyStore{Store: f.store}
	f.store = busy
	f.start()
	key := f.space("ark:12345/")
	f.space("urn:other")
	f.registered("ark:12345/x1")
	before := must(f.store.Namespace(f.admin, key))(t)
	next := cloneNamespace(before)
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	next.Adoptions = []stele.Adoption{{From: "giver.example.org/.log", To: testHeir, Bundle: strings.Repeat("0a", 32), Change: 7, Until: then, At: then, Silent: true}}
	f.stampNamespace(f.admin, before, next)
	if err := f.store.Apply(f.admin, &stele.Commit{Namespaces: []*stele.Namespace{next}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(f.admin); err != nil {
		t.Fatal(err)
	}
	add := func(prefix string) error {
		_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: prefix})
		return err
	}
	want(t, add("ark:12345/x"), stele.Conflict, "ark:12345/x1 begins with ark:12345/x")
	read := false
	busy.write = func() {
		ctx, cancel := context.WithTimeout(f.admin, 10*time.Second) // as a write that waits for the lock, which never comes
		defer cancel()
		_, err := f.SetNamespace(ctx, f.key("urn:other"), 0, func(ns *stele.Namespace) error { ns.Title = "Other"; return nil })
		if read = true; err != nil {
			t.Errorf("a namespace is not written meanwhile: %v", err)
		}
		if err := add("ark:12345/q"); err != nil {
			t.Error(err)
		}
		f.registered("ark:12345/q7one")
	}
	want(t, add("ark:12345/q7"), stele.Conflict, "ark:12345/q7one begins with ark:12345/q7")
	if !read {
		t.Error("no record was read")
	}
	if err := add("ark:12345/q8"); err != nil {
		t.Error(err)
	}
	want(t, f.rehearseNamespace(f.admin, "import", &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x"}), stele.Conflict, "begins with ark:12345/x")
}
