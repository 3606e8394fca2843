package auth

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// The namespaces of the tables: a root, an authority, and two levels below it.
func testAncestors() (root, naan, shoulder, part *stele.Namespace) {
	root = &stele.Namespace{Scheme: "ark", Owner: "ruth", Grants: []stele.Grant{{To: "user:rose", Role: stele.RoleOwner}, {To: "group:all", Role: stele.RoleReader}}}
	naan = &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "olga", Grants: []stele.Grant{
		{To: "user:ed", Role: stele.RoleEditor}, {To: "group:staff", Role: stele.RoleReader}, {To: "group:chiefs", Role: stele.RoleOwner},
	}}
	shoulder = &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "bob", Grants: []stele.Grant{
		{To: "user:ed", Role: stele.RoleReader}, {To: "user:rita", Role: stele.RoleReader}, {To: "group:staff", Role: stele.RoleEditor},
	}}
	part = &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5/a"}
	return root, naan, shoulder, part
}

func TestRoleIn(t *testing.T) {
	root, naan, shoulder, part := testAncestors()
	const none, reader, editor, owner = stele.NoRole, stele.RoleReader, stele.RoleEditor, stele.RoleOwner
	in := func(groups ...string) Principal { return Principal{Name: "zoe", Groups: groups} }
	for _, tt := range []struct {
		name                       string
		p                          Principal
		root, naan, shoulder, part stele.Role
	}{
		{"the public", Principal{}, none, none, none, none},
		{"nobody with all rights", Principal{Admin: true}, none, none, none, none},
		{"an administrator", Local(), owner, owner, owner, owner},
		{"somebody", in(), none, none, none, none},
		{"who a root names as its owner", Principal{Name: "ruth"}, none, none, none, none},
		{"who has a role in a root", Principal{Name: "rose"}, none, none, none, none},
		{"a group that has a role in a root", in("all"), none, none, none, none},
		{"the owner", Principal{Name: "olga"}, none, owner, owner, owner},
		{"the owner of what is below", Principal{Name: "bob"}, none, none, owner, owner},
		{"less below is no less", Principal{Name: "ed"}, none, editor, editor, editor},
		{"a reader of what is below", Principal{Name: "rita"}, none, none, reader, reader},
		{"a group", in("staff"), none, reader, editor, editor},
		{"a group of owners", in("chiefs"), none, owner, owner, owner},
		{"two groups", in("staff", "chiefs"), none, owner, owner, owner},
		{"a user with a group's name", Principal{Name: "staff"}, none, none, none, none},
		{"a group with a user's name", in("ed"), none, none, none, none},
		{"a group with the owner's name", in("olga"), none, none, none, none},
	} {
		for where, at := range map[string]struct {
			ancestors []*stele.Namespace
			want      stele.Role
		}{
			"root":     {[]*stele.Namespace{root}, tt.root},
			"naan":     {[]*stele.Namespace{naan, root}, tt.naan},
			"shoulder": {[]*stele.Namespace{shoulder, naan, root}, tt.shoulder},
			"part":     {[]*stele.Namespace{part, shoulder, naan, root}, tt.part},
		} {
			if got := RoleIn(tt.p, at.ancestors...); got != at.want {
				t.Errorf("%s, in the %s: role %q, want %q", tt.name, where, got, at.want)
			}
			for action, may := range map[string]bool{
				"list":   MayList(tt.p, at.ancestors...) != (at.want != none),
				"write":  MayWrite(tt.p, at.ancestors...) != (at.want == editor || at.want == owner),
				"manage": MayManage(tt.p, at.ancestors...) != (at.want == owner),
			} {
				if may {
					t.Errorf("%s, in the %s: whether they may %s is not what their role says", tt.name, where, action)
				}
			}
		}
	}
	if !MayManage(Local()) || MayList(in("chiefs")) {
		t.Error("where there is no namespace, an administrator alone may")
	}
}

func TestMayRead(t *testing.T) {
	root, naan, shoulder, _ := testAncestors()
	here, other := []*stele.Namespace{shoulder, naan, root}, []*stele.Namespace{root}
	open := &stele.Record{State: stele.Active}
	gone := &stele.Record{State: stele.Withdrawn}
	reserved := &stele.Record{State: stele.Reserved}
	named := &stele.Record{State: stele.Active, Readers: []string{"group:press", "user:carl", "user:", "carla"}}
	both := &stele.Record{State: stele.Reserved, Readers: []string{"user:carl"}}
	all := []*stele.Record{open, gone, reserved, named, both}
	for _, tt := range []struct {
		name      string
		p         Principal
		ancestors []*stele.Namespace
		sees      []*stele.Record
	}{
		{"the public", Principal{}, here, []*stele.Record{open, gone}},
		{"somebody", Principal{Name: "dora"}, here, []*stele.Record{open, gone}},
		{"a reader of the namespace", Principal{Name: "rita"}, here, all},
		{"a reader of another one", Principal{Name: "rita"}, other, []*stele.Record{open, gone}},
		{"an editor by a group", Principal{Name: "dora", Groups: []string{"staff"}}, here, all},
		{"the owner", Principal{Name: "olga"}, here, all},
		{"an administrator", Local(), other, all},
		{"nobody with all rights", Principal{Admin: true}, here, []*stele.Record{open, gone}},
		{"who is named", Principal{Name: "carl"}, other, []*stele.Record{open, gone, named}},
		{"whose group is named", Principal{Name: "dora", Groups: []string{"press"}}, other, []*stele.Record{open, gone, named}},
		{"a user with the group's name", Principal{Name: "press"}, here, []*stele.Record{open, gone}},
		{"a group with the user's name", Principal{Name: "dora", Groups: []string{"carl"}}, here, []*stele.Record{open, gone}},
		{"a reader that is neither user nor group", Principal{Name: "carla"}, here, []*stele.Record{open, gone}},
	} {
		for i, r := range all {
			if got, want := MayRead(tt.p, r, tt.ancestors...), slices.Contains(tt.sees, r); got != want {
				t.Errorf("%s, record %d: got %t", tt.name, i, got)
			}
		}
	}
}

// Whatever namespaces say, a user never has less rights below than above, a further grant
// takes none away, and the public and roots give none.
func TestRolesGrowDownwards(t *testing.T) {
	names := rapid.SampledFrom([]string{"ann", "bob", "carl"})
	groups := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ann", "staff", "press"}), 0, 3, rapid.ID[string])
	reader := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"user:", "group:"}).Draw(t, "kind") + rapid.SampledFrom([]string{"ann", "bob", "carl", "staff", "press"}).Draw(t, "name")
	})
	grant := rapid.Custom(func(t *rapid.T) stele.Grant {
		return stele.Grant{To: reader.Draw(t, "to"), Role: rapid.SampledFrom([]stele.Role{stele.RoleReader, stele.RoleEditor, stele.RoleOwner}).Draw(t, "role")}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := Principal{Name: names.Draw(t, "who"), Groups: groups.Draw(t, "groups"), Admin: rapid.Bool().Draw(t, "admin")}
		var ancestors []*stele.Namespace // the nearest first
		for depth := range rapid.IntRange(0, 6).Draw(t, "depth") {
			ns := &stele.Namespace{Scheme: "ark", Owner: rapid.OneOf(names, rapid.Just("")).Draw(t, "owner"), Grants: rapid.SliceOfN(grant, 0, 4).Draw(t, "grants")}
			if depth > 0 {
				ns.Prefix = "ark:12345"
			}
			above := RoleIn(p, ancestors...)
			ancestors = append([]*stele.Namespace{ns}, ancestors...)
			here := RoleIn(p, ancestors...)
			if !here.Includes(above) {
				t.Fatalf("%q above, %q below", above, here)
			}
			if RoleIn(Principal{}, ancestors...) != stele.NoRole {
				t.Fatal("the public has a role")
			}
			if ns.Prefix == "" && !p.Admin && here != stele.NoRole {
				t.Fatal("a root gives a role")
			}
			more := *ns
			more.Grants = append(slices.Clone(ns.Grants), grant.Draw(t, "one more"))
			if !RoleIn(p, append([]*stele.Namespace{&more}, ancestors[1:]...)...).Includes(here) {
				t.Fatal("a grant took rights away")
			}
			for _, state := range []stele.State{stele.Active, stele.Reserved, stele.Withdrawn} {
				r := &stele.Record{State: state, Readers: []string{"user:nobody"}}
				if MayRead(p, r, ancestors...) != MayList(p, ancestors...) {
					t.Fatalf("%s: who lists sees, and nobody else", state)
				}
			}
		}
	})
}
