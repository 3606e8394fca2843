package registrar

import (
	"context"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

func TestFindNamespaces(t *testing.T) {
	f := listed(t)
	find := func(ctx context.Context, q NamespaceQuery) string {
		t.Helper()
		var all []string
		if q.Limit == 0 {
			q.Limit = 100
		}
		for {
			list, more, err := f.FindNamespaces(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) > q.Limit {
				t.Errorf("%d namespaces, and %d were asked for", len(list), q.Limit)
			}
			for _, ns := range list {
				all = append(all, ns.Prefix+"="+string(ns.Role))
			}
			if !more {
				return strings.Join(all, " ")
			}
			q.After = list[len(list)-1].Key()
		}
	}
	as := func(name string, groups ...string) context.Context {
		return auth.With(t.Context(), auth.Principal{Name: name, Groups: groups})
	}
	for _, tt := range []struct {
		what string
		ctx  context.Context
		q    NamespaceQuery
		want string
	}{
		{"all", f.admin, NamespaceQuery{}, "ark:12345=owner ark:12345/x5=owner ark:123456=owner urn:example=owner"},
		{"page by page", f.admin, NamespaceQuery{Limit: 1}, "ark:12345=owner ark:12345/x5=owner ark:123456=owner urn:example=owner"},
		{"by a text", f.admin, NamespaceQuery{Text: "EXAM"}, "urn:example=owner"},
		{"after one that is not there", f.admin, NamespaceQuery{After: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x"}}, "ark:12345/x5=owner ark:123456=owner urn:example=owner"},
		{"matching", f.admin, NamespaceQuery{Match: func(ns *stele.Namespace) bool { return ns.Owner == "olga" }}, "ark:12345/x5=owner"},
		{"a reader", as("ann"), NamespaceQuery{}, "ark:12345=reader ark:12345/x5=reader urn:example=reader"},
		{"an owner", as("olga"), NamespaceQuery{Role: stele.RoleOwner}, "ark:12345/x5=owner"},
		{"a reader who asks as an editor", as("ann"), NamespaceQuery{Role: stele.RoleEditor}, ""},
		{"a stranger", as("zoe"), NamespaceQuery{}, ""},
		{"the public", t.Context(), NamespaceQuery{}, ""},
	} {
		if got := find(tt.ctx, tt.q); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
