package registrar

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// grant gives roles in a namespace: "user:ann" "editor", and so on.
func grant(pairs ...string) func(*stele.Namespace) {
	return func(ns *stele.Namespace) {
		for i := 0; i+1 < len(pairs); i += 2 {
			ns.Grants = append(ns.Grants, stele.Grant{To: pairs[i], Role: stele.Role(pairs[i+1])})
		}
	}
}

// names returns the identifiers of records, in short, or the kind of an error.
func names(seq iter.Seq2[*stele.Record, error]) string {
	var list []string
	for rec, err := range seq {
		if err != nil {
			list = append(list, "("+stele.KindOf(err).String()+")")
			continue
		}
		list = append(list, strings.TrimPrefix(rec.ID.String(), "ark:"))
	}
	return strings.Join(list, " ")
}

// listed is a registry with records of all kinds in several namespaces.
func listed(t *testing.T) *fixture {
	f := newFixture(t)
	f.space("ark:12345", grant("user:ann", "reader"))
	f.space("ark:12345/x5", owner("olga"), grant("group:staff", "reader"))
	f.space("ark:123456", grant("user:bob", "owner")) // begins with another one's bytes
	f.space("urn:example", grant("user:ann", "reader"))
	for _, id := range []string{"ark:12345/a", "ark:12345/x51", "ark:12345/x52", "ark:123456/a", "ark:99999/a", "urn:example:1", "urn:example:2"} {
		f.registered(id)
	}
	hidden := f.record("ark:12345/x53", "https://example.org/1")
	hidden.Readers = []string{"user:carl"}
	must(f.Register(f.admin, hidden))(t)
	kept := f.record("ark:12345/x54", "https://example.org/1")
	kept.State = stele.Reserved
	must(f.Register(f.admin, kept))(t)
	must(f.Withdraw(f.admin, f.id("ark:12345/x52"), 0, "x", stele.ID{}))(t)
	return f
}

func TestScan(t *testing.T) {
	f := listed(t)
	const (
		forbidden = "(forbidden)"
		x5        = "12345/x51 12345/x52 12345/x53 12345/x54"
	)
	for _, tt := range []struct {
		who    context.Context
		prefix string
		after  string
		want   string
	}{
		{f.admin, "ark:", "", "12345/a " + x5 + " 123456/a 99999/a"},
		{f.admin, "ark:12345", "", "12345/a " + x5 + " 123456/a"}, // bytes decide
		{context.Background(), "ark:12345", "", "(unauthenticated)"},
		{context.Background(), "ark:", "", "(unauthenticated)"},
		{as("ann"), "ark:12345", "", "12345/a " + x5},
		{as("ann"), "ark:12345", "ark:12345/x52", "12345/x53 12345/x54"},
		{as("ann"), "ark:12345/x5", "", x5},
		{as("ann"), "ark:12345/x", "", x5}, // no namespace, but in one
		{as("ann"), "ark:12345/x51", "", "12345/x51"},
		{as("ann"), "ark:", "", forbidden},
		{as("ann"), "ark:123456", "", forbidden},
		{as("ann"), "ark:99999", "", forbidden},
		{as("ann"), "urn:example", "", "urn:example:1 urn:example:2"},
		{as("bob"), "ark:12345", "", forbidden},
		{as("bob"), "ark:123456", "", "123456/a"},
		{as("olga"), "ark:12345/x5", "", x5},
		{as("olga"), "ark:12345", "", forbidden},
		{as("zoe", "staff"), "ark:12345/x5", "", x5},
		{as("zoe", "staff"), "ark:12345/x", "", forbidden},
		{as("carl"), "ark:12345/x53", "", forbidden}, // a reader of the record may not list the namespace
		{as("staff"), "ark:12345/x5", "", forbidden},
	} {
		key := f.key("ark:")
		if tt.prefix != "ark:" {
			if k, err := f.ParsePrefix(tt.prefix); err == nil {
				key = k
			} else {
				key = stele.NamespaceKey{Scheme: "ark", Prefix: tt.prefix}
			}
		}
		if got := names(f.Scan(tt.who, key, tt.after)); got != tt.want {
			t.Errorf("%s, %s after %q: got %s, want %s", auth.From(tt.who).Name, tt.prefix, tt.after, got, tt.want)
		}
	}
	for rec, err := range f.Scan(f.admin, f.key("ark:12345"), "") {
		if err != nil || rec.ID != f.id("ark:12345/a") {
			t.Errorf("got %v, %v", rec, err)
		}
		break
	}
}

// A prefix that is written so that it looks like another one's gives no rights there.
func TestScanTricks(t *testing.T) {
	f := listed(t)
	for _, prefix := range []string{"ark:12345/../99999", "ark:12345/x5/../../99999", "ark:1234", "ark:12", "ark", "", "ARK:12345", "ark:/12345", "ark:12345\x00", "ark:12345%2f"} {
		got := names(f.Scan(as("olga"), stele.NamespaceKey{Scheme: "ark", Prefix: prefix}, ""))
		if got != "(forbidden)" {
			t.Errorf("%q: got %s", prefix, got)
		}
	}
	if got := names(f.Scan(as("olga"), stele.NamespaceKey{Scheme: "nothing", Prefix: "ark:12345/x5"}, "")); got != "(forbidden)" {
		t.Errorf("another scheme: got %s", got)
	}
}

// looks counts how many names a reverse look-up yields.
type looks struct {
	stele.Store
	yielded int
}

func (s *looks) Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
	return func(yield func(stele.ID, error) bool) {
		for id, err := range s.Store.Pointing(ctx, at, after) {
			s.yielded++
			if !yield(id, err) {
				return
			}
		}
	}
}

func TestPointing(t *testing.T) {
	f := listed(t)
	f.registered("ark:12345/x5") // a name that is a namespace's prefix
	const x5 = "12345/x5 12345/x51 12345/x52 12345/x53 12345/x54"
	host := stele.Location{Host: "example.org"}
	for _, tt := range []struct {
		who   context.Context
		after string
		want  string
	}{
		{f.admin, "", "12345/a " + x5 + " 123456/a 99999/a urn:example:1 urn:example:2"},
		{f.admin, "ark:12345/x54", "123456/a 99999/a urn:example:1 urn:example:2"},
		{context.Background(), "", "(unauthenticated)"},
		{as("zoe"), "", ""},
		{as("carl"), "", ""},
		{as("bob"), "", "123456/a"},
		{as("bob"), "ark:123456/a", ""},
		{as("ann"), "", "12345/a " + x5 + " urn:example:1 urn:example:2"},
		{as("ann"), "ark:12345/x5", "12345/x51 12345/x52 12345/x53 12345/x54 urn:example:1 urn:example:2"},
		{as("ann"), "urn:example:1", "urn:example:2"},
		{as("olga"), "", x5},
		{as("olga"), "ark:12345/a", x5},
		{as("olga"), "ark:12345/x5", "12345/x51 12345/x52 12345/x53 12345/x54"},
		{as("zoe", "staff"), "ark:12345/x53", "12345/x54"},
	} {
		var after stele.ID
		if tt.after != "" {
			after = f.id(tt.after)
		}
		for _, at := range []stele.Location{host, {URL: "https://example.org/1"}} {
			if got := names(f.Pointing(tt.who, at, after)); got != tt.want {
				t.Errorf("%s, after %q: got %s, want %s", auth.From(tt.who).Name, tt.after, got, tt.want)
			}
		}
		if got := names(f.Pointing(tt.who, stele.Location{Host: "example.com"}, after)); !strings.HasPrefix(got, "(") && got != "" {
			t.Errorf("%s: got %s, want nothing", auth.From(tt.who).Name, got)
		}
	}
	for rec, err := range f.Pointing(as("olga"), host, stele.ID{}) {
		if err != nil || rec.ID != f.id("ark:12345/x5") {
			t.Errorf("got %v, %v", rec, err)
		}
		break
	}
}

// What others have at a location is not walked through.
func TestPointingIsBounded(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345")
	f.space("ark:50000", owner("ann"))
	f.space("urn:example", owner("ann"))
	for i := range 300 {
		f.registered(fmt.Sprintf("ark:12345/a%d", i))
		f.registered(fmt.Sprintf("ark:99999/a%d", i))
	}
	f.registered("ark:50000/a")
	f.registered("urn:example:a")
	counted := &looks{Store: f.store}
	f.store = counted
	f.start()
	if got := names(f.Pointing(as("ann"), stele.Location{Host: "example.org"}, stele.ID{})); got != "50000/a urn:example:a" {
		t.Errorf("got %s", got)
	}
	if counted.yielded > 4 {
		t.Errorf("looked at %d names for two", counted.yielded)
	}
}

// A claimed prefix counts for the namespace that has it.
func TestPointingClaims(t *testing.T) {
	f := newFixture(t)
	key := f.space("sid.inpe.br/mtc-m18", owner("ann"), minter(ibi("1ms")))
	var made []string
	for range 3 {
		rec := must(f.MintAndRegister(as("ann"), f.record("", "https://example.org/1"), key))(t)
		made = append(made, rec.ID.String())
	}
	label := must(f.Mint(as("ann"), key, 1))(t)[0]
	byIP := f.record(label.Aliases[0].String(), "https://example.org/1")
	must(f.Register(as("ann"), byIP))(t)
	made = append(made, byIP.ID.String())
	got := strings.Fields(names(f.Pointing(as("ann"), stele.Location{Host: "example.org"}, stele.ID{})))
	slices.Sort(made)
	if !slices.Equal(got, made) {
		t.Errorf("got %s, want %s", got, made)
	}
}

// Whatever namespaces, roles and records there are: a list or a reverse look-up shows a
// caller exactly what is in namespaces that the caller may list, in order.
func TestListingProperty(t *testing.T) {
	prefixes := []string{"ark:12345", "ark:12345/x5", "ark:12345/x5y", "ark:123456", "urn:example", "urn:example2"}
	ids := []string{"ark:12345/a", "ark:12345/x5", "ark:12345/x5a", "ark:12345/x5y1", "ark:12345/x6", "ark:123456/x5a", "ark:77777/b", "urn:example2:1", "urn:example:1"}
	rapid.Check(t, func(draw *rapid.T) {
		f := newFixture(t)
		for _, prefix := range prefixes {
			if rapid.Bool().Draw(draw, prefix) {
				f.space(prefix, func(ns *stele.Namespace) {
					if rapid.Bool().Draw(draw, "granted") {
						grant("group:staff", "reader")(ns)
					}
				})
			}
		}
		for _, id := range ids {
			f.registered(id)
		}
		who := as("zoe", "staff")
		s := must(f.view(who))(f.t)
		var want []string
		for _, id := range ids {
			if auth.MayList(auth.From(who), s.ancestorsOf(f.id(id))...) {
				want = append(want, strings.TrimPrefix(id, "ark:"))
			}
		}
		if got := names(f.Pointing(who, stele.Location{Host: "example.org"}, stele.ID{})); got != strings.Join(want, " ") {
			draw.Fatalf("pointing: got %s, want %s", got, want)
		}
		for _, prefix := range prefixes {
			key := f.key(prefix)
			got := names(f.Scan(who, key, ""))
			if role := must(f.RoleIn(who, key))(f.t); role == stele.NoRole {
				if got != "(forbidden)" {
					draw.Fatalf("%s: got %s", prefix, got)
				}
				continue
			}
			var below []string
			for _, name := range want {
				if strings.HasPrefix(name, strings.TrimPrefix(prefix, "ark:")) {
					below = append(below, name)
				}
			}
			if got != strings.Join(below, " ") {
				draw.Fatalf("%s: got %s, want %s", prefix, got, below)
			}
		}
	})
}

func TestChanges(t *testing.T) {
	f := listed(t)
	count := func(ctx context.Context) (n int, err error) {
		for _, err := range f.Changes(ctx, 2) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	if n := must(count(f.admin))(t); n != 12 {
		t.Errorf("%d changes", n)
	}
	_, err := count(as("ann"))
	want(t, err, stele.Forbidden)
	_, err = count(context.Background())
	want(t, err, stele.Unauthenticated)
}
