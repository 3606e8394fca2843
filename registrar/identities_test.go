package registrar

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

func TestRegroup(t *testing.T) {
	for _, tt := range []struct{ groups, had, gives, all, mine []string }{
		{nil, nil, []string{"a", "b"}, []string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a", "b"}, []string{"a", "b"}, []string{"b"}, []string{"b"}, []string{"b"}},
		{[]string{"a", "x"}, []string{"a"}, nil, []string{"x"}, nil},
		{[]string{"x"}, nil, []string{"x"}, []string{"x"}, nil},                          // an administrator gave it
		{[]string{"x"}, []string{"a"}, []string{"a"}, []string{"a", "x"}, []string{"a"}}, // an administrator took it
	} {
		all, mine := regroup(tt.groups, tt.had, tt.gives)
		if !slices.Equal(all, tt.all) || !slices.Equal(mine, tt.mine) {
			t.Errorf("%+v: %v, %v", tt, all, mine)
		}
	}
}

// Only administrators and servers link accounts: a user who could name any account would be taken
// for its owner.
func TestIdentityRights(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"ann", "bob"} {
		must(f.AddUser(f.admin, auth.User{Name: name}))(t)
	}
	const link, sub = "https://login.example", "0000-0001"
	for _, who := range []auth.Principal{{}, {Name: "ann"}} {
		if _, err := f.LinkIdentity(auth.With(t.Context(), who), "ann", link, sub, ""); stele.KindOf(err) != stele.Forbidden && stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("%v links: %v", who, err)
		}
		if _, err := f.Arrive(auth.With(t.Context(), who), auth.Arrival{Issuer: link, Subject: sub, Make: true}); !errors.Is(err, stele.Forbidden) {
			t.Errorf("%v arrives: %v", who, err)
		}
	}
	id := must(f.LinkIdentity(f.admin, "ann", link, sub, "Ann"))(t)
	if _, err := f.LinkIdentity(f.admin, "bob", link, sub, ""); !errors.Is(err, stele.Conflict) {
		t.Errorf("bob has it too: %v", err)
	}
	if _, err := f.LinkIdentity(f.admin, "bob", link, "", ""); !errors.Is(err, stele.Invalid) {
		t.Errorf("no subject: %v", err)
	}
	bob := auth.With(t.Context(), auth.Principal{Name: "bob"})
	for _, err := range f.Identities(bob, "ann") {
		if !errors.Is(err, stele.Forbidden) {
			t.Errorf("bob sees it: %v", err)
		}
	}
	if err := f.EndIdentity(bob, "ann", id.ID()); !errors.Is(err, stele.Forbidden) {
		t.Errorf("bob ends it: %v", err)
	}
	if err := f.EndIdentity(bob, "bob", id.ID()); !errors.Is(err, stele.NotFound) {
		t.Errorf("bob ends it as his: %v", err)
	}
	for i := range auth.MaxIdentities - 1 {
		must(f.LinkIdentity(f.admin, "ann", link, sub+string(rune('a'+i)), ""))(t)
	}
	if _, err := f.LinkIdentity(f.admin, "ann", link, "one more", ""); !errors.Is(err, stele.Exhausted) {
		t.Errorf("too many: %v", err)
	}
}

// An account that was taken from its user is not brought back by a backup that has it, nor is any
// where nothing tells which were taken away.
func TestRestoreRevivesNoIdentity(t *testing.T) {
	f, backup := newFixture(t), newFixture(t)
	must(f.AddUser(f.admin, auth.User{Name: "ann"}))(t)
	const link = "https://login.example"
	id := must(f.LinkIdentity(f.admin, "ann", link, "1", ""))(t)
	must(f.LinkIdentity(f.admin, "ann", link, "2", ""))(t)
	if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
		t.Fatal(err)
	}
	must(backup.Arrive(f.admin, auth.Arrival{Issuer: link, Subject: "1"}))(t)
	if err := f.EndIdentity(f.admin, "ann", id.ID()); err != nil {
		t.Fatal(err)
	}
	if err := backup.RestoreAccess(f.admin, f.store.Cells(f.admin, "", "")); err != nil {
		t.Fatal(err)
	}
	if user, err := backup.Arrive(f.admin, auth.Arrival{Issuer: link, Subject: "1", Make: true}); !errors.Is(err, stele.Forbidden) {
		t.Errorf("the account signs %s in again: %v", user, err)
	}
	must(backup.Arrive(f.admin, auth.Arrival{Issuer: link, Subject: "2"}))(t)
	if err := backup.shutTokens(f.admin); err != nil {
		t.Fatal(err)
	}
	if user, err := backup.Arrive(f.admin, auth.Arrival{Issuer: link, Subject: "2", Make: true}); !errors.Is(err, stele.Forbidden) {
		t.Errorf("the account signs %s in: %v", user, err)
	}
}

// TestArriveTogether: people with the same name at a provider who arrive at once are different users.
func TestArriveTogether(t *testing.T) {
	f := newFixture(t)
	var wait sync.WaitGroup
	users := make([]string, 8)
	for i := range users {
		wait.Go(func() {
			users[i], _ = f.Arrive(f.admin, auth.Arrival{Issuer: "https://login.example", IssuerName: "campus", Subject: strconv.Itoa(i), Name: "ann", Make: true})
		})
	}
	wait.Wait()
	slices.Sort(users)
	if slices.Contains(users, "") || len(slices.Compact(users)) != 8 {
		t.Errorf("the users are %q", users)
	}
	// The name was free when it was looked at, and is another person's now.
	must(f.AddUser(f.admin, auth.User{Name: "zoe@campus"}))(t)
	if _, _, err := f.arrival(f.admin, "sign in", auth.Arrival{Issuer: "https://login.example", IssuerName: "campus", Subject: "z", Name: "zoe", Make: true}); err != nil {
		t.Error(err)
	}
}

// TestProxyComesBack: a user whom the proxy names enters although the account was ended.
func TestProxyComesBack(t *testing.T) {
	f := newFixture(t)
	must(f.AddUser(f.admin, auth.User{Name: "ann"}))(t)
	visit := auth.Arrival{Issuer: auth.ProxyIssuer, Subject: "ann", User: "ann", Groups: []string{"press"}}
	must(f.Arrive(f.admin, visit))(t)
	if err := f.shutIdentities(f.admin, "restore"); err != nil {
		t.Fatal(err)
	}
	if u := must(f.User(f.admin, "ann"))(t); len(u.Groups) != 0 {
		t.Errorf("the groups of the ended account are %q", u.Groups)
	}
	must(f.Arrive(f.admin, visit))(t)
	visit.Groups = nil
	must(f.Arrive(f.admin, visit))(t)
	if u := must(f.User(f.admin, "ann"))(t); len(u.Groups) != 0 {
		t.Errorf("the groups are %q after the proxy took them", u.Groups)
	}
}

// TestInvitationIsKept: a person who has the role already gets the user and the link all the same.
func TestInvitationIsKept(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", func(ns *stele.Namespace) { ns.Grants = []stele.Grant{{To: "user:bob", Role: stele.RoleEditor}} })
	made := must(f.Invite(f.admin, Invitation{User: auth.User{Name: "bob"}, Namespace: key, Role: stele.RoleEditor, Life: auth.LinkLife}))(t)
	must(f.User(f.admin, "bob"))(t)
	if value, err := f.store.Cell(t.Context(), auth.LinkCells+made.Link.ID); err != nil || value == nil {
		t.Errorf("the link is not kept: %v", err)
	}
}
