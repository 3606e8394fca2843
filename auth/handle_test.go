package auth

import (
	"testing"

	"github.com/stele-id/stele"
)

// TestHandle: a handle identity that stands alone has rights in nothing; as an administrator of one record
// it may change and see that one, unless changes are reviewed; as the credential of a user it has their roles.
func TestHandle(t *testing.T) {
	id := func(text string) stele.ID {
		id, err := stele.NewID("hdl", text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	space := &stele.Namespace{Scheme: "hdl", Prefix: "20.500.1/", Owner: "ann", Grants: []stele.Grant{{To: "user:bob", Role: stele.RoleEditor}}}
	reviewed := &stele.Namespace{Scheme: "hdl", Prefix: "20.500.1/", Reviewed: true}
	one, two := id("20.500.1/A"), id("20.500.1/B")
	p := Handle(300, "0.NA/20.500.1")
	if p.Name != "300:0.NA/20.500.1" || !IsHandle(p.Name) {
		t.Errorf("it is named %q", p.Name)
	}
	for _, name := range []string{"", "ann", "local", "x:y", ":y", "300:", "-1:y", "4294967296:y"} {
		if IsHandle(name) {
			t.Errorf("%q counts as a handle identity", name)
		}
	}
	if MayChange(p, one, space) || RoleIn(p, space) != stele.NoRole {
		t.Error("an identity that stands alone has rights")
	}
	a := p.Administering(one)
	switch {
	case !MayChange(a, one, space):
		t.Error("an administrator may not change the record")
	case MayChange(a, two, space), MayWrite(a, space), MayList(a, space), MayManage(a, space):
		t.Error("an administrator of one record has rights in others")
	case MayChange(a, one, reviewed):
		t.Error("an administrator may change what an owner must approve")
	case !MayRead(a, &stele.Record{ID: one, State: stele.Reserved}, space):
		t.Error("an administrator may not see the record")
	case MayRead(a, &stele.Record{ID: two, State: stele.Reserved}, space):
		t.Error("an administrator may see another record")
	}
	bob := p.Acting(Principal{Name: "bob"})
	if RoleIn(bob, space) != stele.RoleEditor || bob.Name != p.Name {
		t.Errorf("as bob's credential it is %q with the role %q", bob.Name, RoleIn(bob, space))
	}
	if ann := p.Acting(Principal{Name: "ann"}); !MayManage(ann, space) {
		t.Error("as ann's credential it does not own the namespace")
	}
	if RoleIn(Principal{Name: "eve"}, &stele.Namespace{Scheme: "hdl", Prefix: "x/"}) != stele.NoRole {
		t.Error("a namespace without an owner belongs to everybody")
	}
}
