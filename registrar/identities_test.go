package registrar

import (
	"errors"
	"slices"
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
