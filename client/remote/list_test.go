package remote

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestList lists as a store does: in order, from any text on, by state, by target, and
// page by page.
func TestList(t *testing.T) {
	o := newTestServer(t)
	s := &script{registry: o.registrar, t: t, ctx: o.root, schemes: o.schemes}
	var names []string
	for i := range 2500 {
		names = append(names, fmt.Sprintf("ark:12345/x%04d", i))
		rec := s.record(fmt.Sprintf(`{"id":%q,"url":"https://h%d.example.org/"}`, names[i], i%2))
		if _, err := s.Register(s.ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Withdraw(s.ctx, s.id(names[7]), 0, "Gone.", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	r := o.open(o.token)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	odd := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.IndexByte("02468", n[len(n)-1]) >= 0 })
	for _, tt := range []struct {
		l    Listing
		want []string
	}{
		{Listing{Key: key}, names},
		{Listing{Key: stele.NamespaceKey{Scheme: "ark"}}, names},
		{Listing{Key: key, Limit: 1001}, names[:1001]},
		{Listing{Key: key, Limit: 3, After: "ark:12345/x0999"}, names[1000:1003]},
		{Listing{Key: key, After: "ark:12345/x1"}, names[1000:]},
		{Listing{Key: key, After: "ark:12345/x0\xff"}, names[1000:]},
		{Listing{Key: key, After: "ark:12345/x0\xff", Limit: 2}, names[1000:1002]},
		{Listing{Key: key, State: stele.Withdrawn}, names[7:8]},
		{Listing{Key: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x2499"}}, names[2499:]},
		{Listing{Key: stele.NamespaceKey{Scheme: "urn"}}, nil},
		{Listing{At: stele.Location{Host: "h1.example.org"}}, odd},
		{Listing{At: stele.Location{URL: "https://h1.example.org/"}, After: odd[1200]}, odd[1201:]},
		{Listing{Key: key, At: stele.Location{Host: "h1.example.org"}, State: stele.Withdrawn}, names[7:8]},
	} {
		var got []string
		for rec, err := range r.List(t.Context(), tt.l) {
			if err != nil {
				t.Fatalf("%+v: %v", tt.l, err)
			}
			got = append(got, rec.ID.String())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %d names, want %d: %.200q", tt.l, len(got), len(tt.want), got)
		}
	}
	var exported []string
	for rec, err := range r.Export(t.Context(), key, false) {
		if err != nil {
			t.Fatal(err)
		}
		exported = append(exported, rec.ID.String())
	}
	if !slices.Equal(exported, names) {
		t.Errorf("%d names are exported", len(exported))
	}
	versions := 0
	for rec, err := range r.Export(t.Context(), stele.NamespaceKey{Scheme: "ark", Prefix: names[7]}, true) {
		if versions++; err != nil || rec.Version != uint64(versions) {
			t.Error(rec, err)
		}
	}
	if versions != 2 {
		t.Errorf("%d versions", versions)
	}
}

// TestNoRights: the error says which user lacks which right, as a registrar's does.
func TestNoRights(t *testing.T) {
	o := newTestServer(t)
	for name, tt := range map[string]struct {
		r    *Registry
		kind stele.Kind
		want string
	}{
		"ann":    {o.open(o.credential("ann")), stele.Forbidden, `"ann" may not `},
		"nobody": {o.open(""), stele.Unauthenticated, "say who you are"},
		"forged": {o.open("stele_000000000000_" + strings.Repeat("A", 43)), stele.Unauthenticated, "the token is not known"},
	} {
		s := &script{registry: tt.r, t: t, ctx: t.Context(), schemes: o.schemes}
		_, err := s.Register(s.ctx, s.record(`{"id":"urn:x1:a","url":"https://example.org/"}`))
		if stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, err := range tt.r.List(t.Context(), Listing{Key: stele.NamespaceKey{Scheme: "urn"}}) {
			if stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := tt.r.Backup(t.Context(), t.TempDir()+"/x"); err == nil {
			t.Errorf("%s has a backup", name)
		}
	}
}
