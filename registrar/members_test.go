package registrar

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// people makes namespaces ark:12345, which ann owns, and ark:12345/x5 below it, which olga owns, with
// an editor ed, and readers in the group staff, of which ruth is a member.
func people(t *testing.T) (*fixture, stele.NamespaceKey) {
	f := newFixture(t)
	for _, name := range []string{"olga", "ed", "ann", "sam"} {
		f.user(name)
	}
	must(f.AddUser(f.admin, auth.User{Name: "ruth", Groups: []string{"staff"}}))(t)
	must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Grants: []stele.Grant{{To: "user:ann", Role: stele.RoleOwner}}}))(t)
	must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "olga",
		Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}, {To: "group:staff", Role: stele.RoleReader}}}))(t)
	return f, f.key("ark:12345/x5")
}

func TestMembers(t *testing.T) {
	f, key := people(t)
	for name, count := range map[string]int{"olga": 4, "ed": 3, "ann": 4} { // ann's role is above, and holds here
		list, err := f.Members(as(name), key)
		if err != nil || len(list) != count {
			t.Errorf("%s sees %+v, %v", name, list, err)
		}
	}
	if list, err := f.Members(as("ruth", "staff"), key); err != nil || len(list) != 3 || !list[0].Named || list[2].To != "group:staff" {
		t.Errorf("got %+v, %v", list, err)
	}
	_, err := f.Members(as("sam"), key)
	want(t, err, stele.NotFound)

	role, by, _, err := f.RoleOfUser(as("olga"), key, "ruth")
	if err != nil || role != stele.RoleReader || len(by) != 1 || by[0].To != "group:staff" {
		t.Errorf("got %v %+v %v", role, by, err)
	}
	role, by, _, err = f.RoleOfUser(as("olga"), key, "ann")
	if err != nil || role != stele.RoleOwner || len(by) != 1 || by[0].From != f.key("ark:12345") {
		t.Errorf("got %v %+v %v", role, by, err)
	}
	_, _, _, err = f.RoleOfUser(as("ed"), key, "ruth")
	want(t, err, stele.Forbidden)
	_, _, _, err = f.RoleOfUser(as("sam"), key, "ruth")
	want(t, err, stele.NotFound)
}

func TestGrant(t *testing.T) {
	f, key := people(t)
	if _, err := f.Grant(as("olga"), key, "user:sam", stele.RoleReader); err != nil {
		t.Error(err)
	}
	if ns, err := f.Grant(as("olga"), key, "user:sam", stele.RoleEditor); err != nil || len(ns.Grants) != 3 || ns.Grants[2].Role != stele.RoleEditor {
		t.Errorf("got %+v, %v", ns, err)
	}
	for to, kind := range map[string]stele.Kind{"user:nothing": stele.NotFound, "sam": stele.Invalid, "user:No": stele.Invalid, "robot:sam": stele.Invalid, "user:olga": stele.Conflict} {
		_, err := f.Grant(as("olga"), key, to, stele.RoleReader)
		want(t, err, kind)
	}
	_, err := f.Grant(as("olga"), key, "user:sam", "boss")
	want(t, err, stele.Invalid)
	// A caller who is not an owner learns nothing of users.
	_, there := f.Grant(as("ed"), key, "user:sam", stele.RoleReader)
	_, none := f.Grant(as("ed"), key, "user:nothing", stele.RoleReader)
	want(t, there, stele.Forbidden)
	if there.Error() != none.Error() {
		t.Errorf("%v, %v", there, none)
	}
	_, err = f.Ungrant(as("ed"), key, "user:sam")
	want(t, err, stele.Forbidden)
	if _, err = f.Ungrant(as("olga"), key, "user:sam"); err != nil {
		t.Error(err)
	}
	_, err = f.Ungrant(as("olga"), key, "user:sam")
	want(t, err, stele.NotFound)
	_, err = f.Ungrant(as("olga"), key, "user:olga")
	want(t, err, stele.Conflict, "hand it over")
}

// TestLeave: all may leave, except the last owner.
func TestLeave(t *testing.T) {
	f, key := people(t)
	if _, err := f.Leave(as("ed"), key); err != nil {
		t.Error(err)
	}
	_, err := f.Leave(as("ed"), key)
	want(t, err, stele.NotFound)
	_, err = f.Leave(as("ruth", "staff"), key) // who has the role by a group
	want(t, err, stele.NotFound)
	_, err = f.Leave(as("olga"), key)
	want(t, err, stele.Conflict, "hand it over")
	_, err = f.Leave(as("ann"), f.key("ark:12345"))
	want(t, err, stele.Conflict, "make another user an owner first")

	// Owners who are disabled, or are not there, do not count.
	for _, to := range []string{"user:nothing", "group:nothing", "user:sam"} {
		must(f.SetNamespace(f.admin, f.key("ark:12345"), 0, func(ns *stele.Namespace) error {
			ns.Grants = append(ns.Grants, stele.Grant{To: to, Role: stele.RoleOwner})
			return nil
		}))(t)
		if to == "user:sam" {
			must(f.SetUser(f.admin, "sam", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
		}
		_, err = f.Leave(as("ann"), f.key("ark:12345"))
		want(t, err, stele.Conflict)
	}
	must(f.SetUser(f.admin, "sam", func(u *auth.User) error { u.Disabled = false; return nil }))(t)
	if _, err := f.Leave(as("ann"), f.key("ark:12345")); err != nil {
		t.Error(err)
	}
	// To leave is all that a reader may change.
	f.user("rita")
	must(f.Grant(f.admin, key, "user:rita", stele.RoleReader))(t)
	_, err = f.SetNamespace(as("rita"), key, 0, func(ns *stele.Namespace) error { ns.Grants, ns.Title = nil, "Mine"; return nil })
	want(t, err, stele.Forbidden)
	_, err = f.SetNamespace(as("rita"), key, 0, func(ns *stele.Namespace) error { ns.Grants = nil; return nil })
	want(t, err, stele.Forbidden)
	if _, err := f.Leave(as("rita"), key); err != nil {
		t.Error(err)
	}
}

func TestHandOver(t *testing.T) {
	f, key := people(t)
	for _, who := range []string{"ed", "sam"} {
		if _, err := f.HandOver(as(who), key, "sam", false); err == nil {
			t.Errorf("%s hands the namespace over", who)
		}
	}
	_, err := f.HandOver(as("olga"), key, "nothing", true)
	want(t, err, stele.NotFound)
	ns, err := f.HandOver(as("olga"), key, "ed", true)
	if err != nil || ns.Owner != "ed" || len(ns.Grants) != 2 || ns.Grants[1] != (stele.Grant{To: "user:olga", Role: stele.RoleOwner}) {
		t.Fatalf("got %+v, %v", ns, err)
	}
	_, err = f.HandOver(as("olga"), key, "sam", false) // she is an owner, and not the one who is named
	want(t, err, stele.Forbidden)
	if _, err := f.Leave(as("olga"), key); err != nil {
		t.Error(err)
	}
	if ns, err = f.HandOver(as("ed"), key, "sam", false); err != nil || ns.Owner != "sam" {
		t.Errorf("got %+v, %v", ns, err)
	}
	_, err = f.Namespace(as("ed"), key)
	want(t, err, stele.NotFound)

	// An administrator takes over, and history and trail say so.
	must(f.SetUser(f.admin, "sam", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	_, err = f.HandOver(f.admin, key, "sam", false)
	want(t, err, stele.Conflict, "disabled")
	if ns, err = f.HandOver(f.admin, key, "olga", false); err != nil || ns.Owner != "olga" {
		t.Errorf("got %+v, %v", ns, err)
	}
	for item, err := range f.AuditBack(f.admin, AuditQuery{}, 0) {
		if err != nil || item.Entry.Operation != opTakeOver || item.Entry.Namespace != key {
			t.Errorf("the last entry is %+v, %v", item.Entry, err)
		}
		break
	}
}
