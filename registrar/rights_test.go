package registrar

import (
	"context"
	"fmt"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// rank orders callers by what they may do.
type rank int

const (
	public rank = iota
	stranger
	reader
	editor
	ownerHere
	ownerAbove
	administrator
)

// actions are all that can be done in a namespace, from which rank on, and the errors
// for lower ranks.
var actions = []struct {
	name  string
	from  rank
	below stele.Kind // to readers and editors
	blind stele.Kind // to strangers
	open  stele.Kind // to the public
	do    func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error
}{
	{"see a public record", public, 0, 0, 0, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Get(ctx, f.id(ns.Prefix+"/open"))
		return err
	}},
	{"see a restricted record", reader, 0, stele.NotFound, stele.NotFound, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Get(ctx, f.id(ns.Prefix+"/hidden"))
		return err
	}},
	{"see a reserved record", reader, 0, stele.NotFound, stele.NotFound, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Get(ctx, f.id(ns.Prefix+"/kept"))
		return err
	}},
	{"see the history of a restricted record", reader, 0, stele.NotFound, stele.NotFound, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := each(f.History(ctx, f.id(ns.Prefix+"/hidden")))
		return err
	}},
	{"list", reader, 0, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := each(f.Scan(ctx, ns, ""))
		return err
	}},
	{"see settings", reader, 0, stele.NotFound, stele.NotFound, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Namespace(ctx, ns)
		return err
	}},
	{"see how far the minter is", reader, 0, stele.NotFound, stele.NotFound, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.MinterStatus(ctx, ns)
		return err
	}},
	{"register", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Register(ctx, f.record(ns.Prefix+"/"+n, "https://example.org/1"))
		return err
	}},
	{"import", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		errs, err := f.Ingest(ctx, []*stele.Record{f.record(ns.Prefix+"/i"+n, "https://example.org/1")}, ImportOptions{})
		if err == nil {
			err = errs[0]
		}
		return err
	}},
	{"import what is there", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		errs, err := f.Ingest(ctx, []*stele.Record{f.record(ns.Prefix+"/hidden", "https://example.org/"+n)}, ImportOptions{Update: true})
		if err == nil {
			err = errs[0]
		}
		return err
	}},
	{"mint", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Mint(ctx, ns, 1)
		return err
	}},
	{"mint and register", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.MintAndRegister(ctx, f.record("", "https://example.org/1"), ns)
		return err
	}},
	{"change a public record", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Update(ctx, f.id(ns.Prefix+"/open"), 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{"n": n}; return nil })
		return err
	}},
	{"change a restricted record", editor, stele.Forbidden, stele.NotFound, stele.NotFound, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Update(ctx, f.id(ns.Prefix+"/hidden"), 0, func(r *stele.Record) error {
			r.Metadata, r.Readers = stele.Metadata{"n": n}, []string{"user:nobody"}
			return nil
		})
		return err
	}},
	{"withdraw", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Withdraw(ctx, f.id(ns.Prefix+"/gone"), 0, "reason "+n, stele.ID{})
		return err
	}},
	{"add an alias", editor, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.AddAlias(ctx, f.id(ns.Prefix+"/open"), 0, f.id(ns.Prefix+"/alias"+n))
		return err
	}},
	{"redact", administrator, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Redact(ctx, f.id(ns.Prefix+"/redacted"), 0, "order "+n)
		return err
	}},
	{"change settings", ownerHere, stele.Forbidden, stele.NotFound, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.SetNamespace(ctx, ns, 0, func(next *stele.Namespace) error { next.Title = n; return nil })
		return err
	}},
	{"give a role", ownerHere, stele.Forbidden, stele.NotFound, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.SetNamespace(ctx, ns, 0, func(next *stele.Namespace) error {
			next.Grants = append(next.Grants, stele.Grant{To: "user:new" + n, Role: stele.RoleOwner})
			return nil
		})
		return err
	}},
	{"make a namespace below", ownerHere, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.AddNamespace(ctx, &stele.Namespace{Scheme: ns.Scheme, Prefix: f.key(ns.Prefix + "/ns" + n).Prefix})
		return err
	}},
	{"set the quota", ownerAbove, stele.Forbidden, stele.NotFound, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.SetNamespace(ctx, ns, 0, func(next *stele.Namespace) error { next.Quota = 1000 + uint64(len(n)); return nil })
		return err
	}},
	{"set the owner", ownerAbove, stele.Forbidden, stele.NotFound, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.SetNamespace(ctx, ns, 0, func(next *stele.Namespace) error { next.Owner = "heir" + n; return nil })
		return err
	}},
	{"skip the counter", administrator, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		return f.SkipCounter(ctx, ns, 5000+uint64(len(n)))
	}},
	{"change the root", administrator, stele.NotFound, stele.NotFound, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.SetNamespace(ctx, f.key("ark:"), 0, func(next *stele.Namespace) error { next.Title = n; return nil })
		return err
	}},
	{"add a namespace to the root", administrator, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.AddNamespace(ctx, &stele.Namespace{Scheme: "ark", Prefix: fmt.Sprintf("ark:8%04d", 1000+len(n))})
		return err
	}},
	{"register outside of all namespaces", administrator, stele.Forbidden, stele.Forbidden, stele.Unauthenticated, func(f *fixture, ctx context.Context, ns stele.NamespaceKey, n string) error {
		_, err := f.Register(ctx, f.record("ark:99999/"+n, "https://example.org/1"))
		return err
	}},
}

// Role by action, for roles that were given to a user or to a group, in the namespace
// itself or one or two levels above it.
func TestRights(t *testing.T) {
	type actor struct {
		name string
		rank rank
		ctx  context.Context
	}
	actors := []actor{
		{"the public", public, context.Background()},
		{"a stranger", stranger, as("zoe", "guests")},
		{"the owner of another namespace", stranger, as("other")},
		{"an editor of what is below", stranger, as("below")},
		{"an administrator", administrator, asAdmin("root")},
		{"who is named as the owner", ownerHere, as("olga")},
		{"who is named as the owner above", ownerAbove, as("top")},
	}
	grants := [3][]string{} // by how far above
	for depth := range grants {
		for role, r := range map[stele.Role]rank{stele.RoleReader: reader, stele.RoleEditor: editor, stele.RoleOwner: ownerHere} {
			if role == stele.RoleOwner && depth > 0 {
				r = ownerAbove
			}
			name := fmt.Sprint(role, depth)
			grants[depth] = append(grants[depth], "user:"+name, string(role), "group:"+name, string(role))
			actors = append(actors,
				actor{fmt.Sprintf("%s, %d above", role, depth), r, as(name)},
				actor{fmt.Sprintf("a group, %s, %d above", role, depth), r, as("zoe", "guests", name)})
		}
	}
	f := newFixture(t)
	f.space("ark:12345", owner("top"), grant(grants[2]...))
	f.space("ark:12345/x5", grant(grants[1]...))
	key := f.space("ark:12345/x5/p", owner("olga"), minter(noid(".zd")), grant(grants[0]...))
	f.space("ark:12345/x5/p/below", grant("user:below", "editor"))
	f.space("ark:77777", owner("other"))
	for _, name := range []string{"open", "gone", "redacted"} {
		f.registered(key.Prefix + "/" + name)
	}
	hidden := f.record(key.Prefix+"/hidden", "https://example.org/1")
	hidden.Readers = []string{"user:nobody"}
	must(f.Register(f.admin, hidden))(t)
	kept := f.record(key.Prefix+"/kept", "https://example.org/1")
	kept.State = stele.Reserved
	must(f.Register(f.admin, kept))(t)

	done := ""
	for i, who := range actors {
		for _, action := range actions {
			done += "1" // each is another one
			err := action.do(f, who.ctx, key, fmt.Sprintf("%d", len(done)))
			if action.name == "set the owner" || action.name == "set the quota" || action.name == "give a role" {
				must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
					ns.Owner, ns.Quota, ns.Grants = "olga", 0, nil
					grant(grants[0]...)(ns)
					return nil
				}))(t)
			}
			if action.name == "import what is there" && err == nil {
				must(f.Update(f.admin, hidden.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:nobody"}; return nil }))(t)
			}
			if who.rank >= action.from {
				if err != nil {
					t.Errorf("%s may not %s: %v", who.name, action.name, err)
				}
				continue
			}
			kind := action.below
			switch who.rank {
			case public:
				kind = action.open
			case stranger:
				kind = action.blind
			}
			if who.name == "who is named as the owner" && action.name == "set the owner" {
				kind = stele.Conflict // it can be handed over, and this heir is not a user
			}
			if err == nil || stele.KindOf(err) != kind {
				t.Errorf("%s would %s: got %v, want %q", who.name, action.name, err, kind)
			}
		}
		// The same with a name that is not registered is refused in the same words.
		if who.rank < reader {
			_, there := f.Get(who.ctx, hidden.ID)
			_, none := f.Get(who.ctx, f.id(key.Prefix+"/nothing"))
			want(t, there, stele.NotFound)
			want(t, none, stele.NotFound)
			e, n := there.(*stele.Error), none.(*stele.Error)
			if e.Op != n.Op || e.Err.Error() != n.Err.Error() {
				t.Errorf("%d: %s can tell %v from %v", i, who.name, there, none)
			}
		}
	}
}

// A root gives no roles, so it takes none.
func TestRootTakesNoGrants(t *testing.T) {
	f := newFixture(t)
	_, err := f.SetNamespace(f.admin, f.key("ark:"), 0, func(ns *stele.Namespace) error {
		ns.Grants = []stele.Grant{{To: "user:ann", Role: stele.RoleReader}}
		return nil
	})
	want(t, err, stele.Invalid, "grants", "add a namespace")
}

// A caller that gets a namespace can't change what the registrar keeps of it.
func TestNamespaceIsACopy(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345", grant("user:ann", "reader"))
	ns := must(f.Namespace(as("ann"), key))(t)
	ns.Grants[0].Role = stele.RoleOwner
	if auth.MayManage(auth.From(as("ann")), must(f.Namespace(f.admin, key))(t)) {
		t.Error("a copy was none")
	}
}

// Namespaces are listed to callers with a role in them.
func TestNamespacesListed(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", grant("user:ann", "reader"))
	f.space("ark:12345/x5", grant("user:bob", "reader"))
	f.space("ark:77777")
	for who, want := range map[string]string{"ann": "[ark:12345 ark:12345/x5]", "bob": "[ark:12345/x5]", "zoe": "[]"} {
		keys := []stele.NamespaceKey{}
		for ns, err := range f.Namespaces(as(who)) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, ns.Key())
		}
		if got := fmt.Sprint(keys); got != want {
			t.Errorf("%s sees %s, want %s", who, got, want)
		}
	}
	_, err := f.ParentNamespace(as("bob"), f.key("ark:12345/x5"))
	want(t, err, stele.NotFound)
	must(f.ParentNamespace(as("ann"), f.key("ark:12345/x5")))(t)
	_, err = f.FindNamespace(as("bob"), f.id("ark:12345/a"))
	want(t, err, stele.NotFound)
	must(f.FindNamespace(as("bob"), f.id("ark:12345/x5a")))(t)
}
