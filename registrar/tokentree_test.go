package registrar

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// by returns a context in which the holder of a credential acts; it fails if that is
// not valid.
func (f *fixture) by(credential string) context.Context {
	f.t.Helper()
	p, err := auth.NewDirectory(f.store, f.clock).Authenticate(f.admin, credential)
	if err != nil {
		f.t.Fatal(err)
	}
	return auth.With(context.Background(), p)
}

// refused returns why a credential is not valid.
func (f *fixture) refused(credential string) string {
	f.t.Helper()
	p, err := auth.NewDirectory(f.store, f.clock).Authenticate(f.admin, credential)
	if stele.KindOf(err) != stele.Unauthenticated {
		f.t.Errorf("the token is good for %+v, %v", p, err)
		return ""
	}
	return err.Error()
}

// made makes a token.
func (f *fixture) made(ctx context.Context, want auth.TokenRequest) (string, auth.Token) {
	f.t.Helper()
	credential, t, err := f.CreateToken(ctx, want)
	if err != nil {
		f.t.Fatal(err)
	}
	return credential, t
}

// A token never outlives the one that made it, whichever user it is for.
func TestTokenDoesNotOutliveItsParent(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("ann")
	for _, who := range []string{"root", "ann"} {
		short, parent := f.made(f.admin, auth.TokenRequest{User: who, Expires: f.clock().Add(5 * time.Second)})
		ctx := f.by(short)
		latest := parent.Expires.Format(time.RFC3339)
		for _, request := range []auth.TokenRequest{
			{User: who, Expires: f.clock().Add(364 * 24 * time.Hour)},
			{User: who, Expires: f.clock().Add(6 * time.Second)},
		} {
			_, _, err := f.CreateToken(ctx, request)
			want(t, err, stele.Forbidden, "outlive", parent.ID, latest)
		}
		if who == "root" {
			_, _, err := f.CreateToken(ctx, auth.TokenRequest{User: who, Never: true})
			want(t, err, stele.Forbidden, "outlive", latest)
		}
		child, made := f.made(ctx, auth.TokenRequest{User: who})
		if !made.Expires.Equal(parent.Expires) || made.Parent != parent.ID {
			t.Errorf("got %+v, and the parent is %+v", made, parent)
		}
		f.made(ctx, auth.TokenRequest{User: who, Expires: f.clock().Add(4 * time.Second)})
		f.by(child)
		f.jump(5 * time.Second)
		if said := f.refused(child); !strings.Contains(said, "expired") {
			t.Errorf("it says %s", said)
		}
		_, _, err := f.CreateToken(ctx, auth.TokenRequest{User: who})
		want(t, err, stele.Unauthenticated, "not valid any more")
	}
	// Without a token above it, it is a child of the user, and may last.
	if _, made := f.made(f.admin, auth.TokenRequest{User: "root", Never: true}); made.Parent != "" {
		t.Errorf("got %+v", made)
	}
	if _, made := f.made(f.admin, auth.TokenRequest{User: "root"}); !made.Expires.Equal(made.Created.Add(auth.TokenLife)) {
		t.Errorf("got %+v", made)
	}
}

// Revoking a token ends all below it at once, and the list tells why; those beside it
// stay good.
func TestRevokingEndsTheSubtree(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("ann")
	top, topToken := f.made(f.admin, auth.TokenRequest{User: "root", Never: true})
	child, childToken := f.made(f.by(top), auth.TokenRequest{User: "root"})
	anns, annsToken := f.made(f.by(child), auth.TokenRequest{User: "ann"})
	grandchild, _ := f.made(f.by(anns), auth.TokenRequest{User: "ann"})
	beside, _ := f.made(f.by(top), auth.TokenRequest{User: "ann", Never: true})

	must(f.RevokeToken(f.by(top), childToken.ID))(t)
	for _, credential := range []string{anns, grandchild} {
		if said := f.refused(credential); !strings.Contains(said, childToken.ID) || !strings.Contains(said, "revoked") {
			t.Errorf("it says %s", said)
		}
	}
	f.by(top)
	f.by(beside)
	states := make(map[string]string)
	for _, x := range must(each(f.Tokens(f.admin, "")))(t) {
		states[x.ID] = x.EndedWith
		if x.Ended(f.clock()) != (x.EndedWith != "" || !x.Revoked.IsZero()) {
			t.Errorf("got %+v", x)
		}
	}
	if states[annsToken.ID] != childToken.ID || states[childToken.ID] != "" || states[topToken.ID] != "" {
		t.Errorf("got %v", states)
	}
	// That is stored nowhere but in the one that was revoked.
	cell := must(f.store.Cell(f.admin, auth.TokenCells+annsToken.ID))(t)
	if strings.Contains(string(cell), "endedWith") || !strings.Contains(string(cell), `"parent":"`+childToken.ID) {
		t.Errorf("got %s", cell)
	}
}

// Revoked at the moment, a token makes no other one: the commit of the one comes just
// before that of the other.
func TestTokenMeetsRevoking(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	credential, parent := f.token("ann", time.Hour)
	ctx := f.by(credential)
	other := New(f.store, testSchemes(t), f.options)
	f.store = &meeting{Store: f.store, before: func() { must(other.RevokeToken(f.admin, parent.ID))(t) }}
	f.start()
	_, _, err := f.CreateToken(ctx, auth.TokenRequest{User: "ann"})
	want(t, err, stele.Unauthenticated, "not valid any more")
	if list := must(each(f.Tokens(f.admin, "")))(t); len(list) != 1 {
		t.Errorf("got %+v", list)
	}
}

// The tokens of a disabled user are invalid, and so are those that the user made for
// others, and those for others that a former administrator made.
func TestTokensOfFormerAdministrators(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("carl", admin)
	f.user("ann")
	carls, _ := f.made(f.admin, auth.TokenRequest{User: "carl", Never: true})
	anns, _ := f.made(f.by(carls), auth.TokenRequest{User: "ann"})
	f.by(anns)
	if err := f.set(f.admin, "carl", func(u *auth.User) { u.Admin = false }); err != nil {
		t.Fatal(err)
	}
	if said := f.refused(anns); !strings.Contains(said, `"carl", who is not an administrator any more`) {
		t.Errorf("it says %s", said)
	}
	f.by(carls)
	if err := f.set(f.admin, "carl", func(u *auth.User) { u.Admin, u.Disabled = true, true }); err != nil {
		t.Fatal(err)
	}
	for _, credential := range []string{carls, anns} {
		if said := f.refused(credential); !strings.Contains(said, `"carl" is disabled`) {
			t.Errorf("it says %s", said)
		}
	}
}

// A child has its parent's limits, or narrower ones.
func TestTokenDoesNotExceedItsParent(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("ann")
	for _, ns := range []*stele.Namespace{{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"}, {Scheme: "ark", Prefix: "ark:12345/x5"}, {Scheme: "ark", Prefix: "ark:99999"}} {
		must(f.AddNamespace(f.admin, ns))(t)
	}
	writes, _ := f.made(f.admin, auth.TokenRequest{User: "root", Scopes: []auth.Scope{auth.ScopeWrite}, Namespaces: []string{"ark:/12345"}})
	ctx := f.by(writes)
	_, same := f.made(ctx, auth.TokenRequest{User: "root"})
	if !slices.Equal(same.Scopes, []auth.Scope{auth.ScopeWrite}) || !slices.Equal(same.Namespaces, []string{"ark:12345"}) {
		t.Errorf("got %+v", same)
	}
	_, less := f.made(ctx, auth.TokenRequest{User: "root", Scopes: []auth.Scope{auth.ScopeRead}, Namespaces: []string{"ark:12345/x5", "ark:/12345/x5"}})
	if !slices.Equal(less.Scopes, []auth.Scope{auth.ScopeRead}) || !slices.Equal(less.Namespaces, []string{"ark:12345/x5"}) {
		t.Errorf("got %+v", less)
	}
	for _, tt := range []struct {
		want  auth.TokenRequest
		kind  stele.Kind
		words string
	}{
		{auth.TokenRequest{User: "root", Scopes: []auth.Scope{auth.ScopeAdmin}}, stele.Forbidden, "it has the scopes write"},
		{auth.TokenRequest{User: "root", Scopes: []auth.Scope{auth.ScopeRead, auth.ScopeBackup}}, stele.Forbidden, "backup"},
		{auth.TokenRequest{User: "root", Namespaces: []string{"ark:99999"}}, stele.NotFound, "ark:99999"},
		{auth.TokenRequest{User: "root", Namespaces: []string{"ark:"}}, stele.NotFound, "ark:"},
		{auth.TokenRequest{User: "root", Namespaces: []string{"ark:12345/none"}}, stele.NotFound, "exist"},
		{auth.TokenRequest{User: "ann"}, stele.Forbidden, "limited"},
	} {
		_, _, err := f.CreateToken(ctx, tt.want)
		want(t, err, tt.kind, tt.words)
	}
	// It sees itself and what it made, and revokes that only.
	_, other := f.token("root", time.Hour)
	if list := must(each(f.Tokens(ctx, "root")))(t); len(list) != 3 {
		t.Errorf("got %+v", list)
	}
	_, err := f.RevokeToken(ctx, other.ID)
	want(t, err, stele.NotFound)
	must(f.RevokeToken(ctx, less.ID))(t)
	must(f.RevokeToken(ctx, writes))(t)
	f.refused(writes)
}

// How many tokens may be above each other is bounded.
func TestTokenDepthIsBounded(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	credential, _ := f.token("ann", time.Hour)
	for range auth.MaxTokenDepth - 1 {
		credential, _ = f.made(f.by(credential), auth.TokenRequest{User: "ann"})
	}
	_, _, err := f.CreateToken(f.by(credential), auth.TokenRequest{User: "ann"})
	want(t, err, stele.Exhausted, "there are 8 tokens above")
}

// Tokens that are their own ancestors, or have too many, are not valid; no code loops
// over them for ever.
func TestTokenCircles(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	a, at := f.token("ann", time.Hour)
	b, bt := f.made(f.by(a), auth.TokenRequest{User: "ann"})
	cell := stele.Cell{Name: auth.TokenCells + at.ID}
	cell.Value = must(f.store.Cell(f.admin, cell.Name))(t)
	kept := must(auth.ReadToken(cell))(t)
	kept.Parent = bt.ID
	next := must(kept.Cell())(t)
	if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value, After: next.Value}}}); err != nil {
		t.Fatal(err)
	}
	f.refused(a)
	f.refused(b)
	must(each(f.Tokens(f.admin, "")))(t)
}

// crowd gives a user as many tokens as they may have, and one more: the first that is
// not valid any more is removed to make room.
func (f *fixture) crowd(user string) {
	f.t.Helper()
	c := &stele.Commit{}
	for i := range auth.MaxTokens - len(must(each(f.Tokens(f.admin, user)))(f.t)) {
		cell := must((&auth.Token{ID: fmt.Sprintf("%012d", i), User: user}).Cell())(f.t)
		c.Cells = append(c.Cells, stele.CellChange{Name: cell.Name, After: cell.Value})
	}
	if err := f.store.Apply(f.admin, c); err != nil {
		f.t.Fatal(err)
	}
	f.token(user, time.Hour)
}

// A revoked parent that made room for others leaves no child alive.
func TestRoomRevivesNoChild(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("ann")
	top, topToken := f.made(f.admin, auth.TokenRequest{User: "root", Never: true})
	anns, annsToken := f.made(f.by(top), auth.TokenRequest{User: "ann", Never: true})
	must(f.RevokeToken(f.admin, topToken.ID))(t)
	f.crowd("root")
	if cell := must(f.store.Cell(f.admin, auth.TokenCells+topToken.ID))(t); cell != nil {
		t.Fatal("the revoked token made no room")
	}
	if said := f.refused(anns); !strings.Contains(said, topToken.ID) {
		t.Errorf("it says %s", said)
	}
	for _, x := range must(each(f.Tokens(f.admin, "ann")))(t) {
		if x.ID == annsToken.ID && x.EndedWith != topToken.ID {
			t.Errorf("got %+v", x)
		}
	}
}

// A backup that knows a parent as good, and its children, brings none of them back when
// the parent was revoked since, also if the parent made room for others since.
func TestRestoreRevivesNoChild(t *testing.T) {
	for _, gone := range []bool{false, true} {
		f, backup := newFixture(t), newFixture(t)
		f.user("root", admin)
		f.user("ann")
		top, topToken := f.made(f.admin, auth.TokenRequest{User: "root", Never: true})
		anns, _ := f.made(f.by(top), auth.TokenRequest{User: "ann", Never: true})
		backup.inherit(f)
		backup.by(anns)
		// The child is known to the backup only.
		for cell, err := range f.store.Cells(f.admin, auth.TokenCells, "") {
			if x, rerr := auth.ReadToken(cell); err != nil || rerr != nil {
				t.Fatal(err, rerr)
			} else if x.User == "ann" {
				if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value}}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		must(f.RevokeToken(f.admin, topToken.ID))(t)
		if gone {
			f.crowd("root")
		}
		backup.inherit(f)
		if said := backup.refused(anns); !strings.Contains(said, topToken.ID) {
			t.Errorf("it says %s", said)
		}
	}
}

// inherit makes f take over what survives of another registry.
func (f *fixture) inherit(other *fixture) {
	f.t.Helper()
	legacy, err := ReadLegacy(other.admin, other.store, f.store)
	if err == nil {
		err = f.Inherit(f.admin, legacy)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// What a token with the scope mint may do: make names with records, and nothing to those
// that are there.
func TestMintScope(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	must(f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".reeeedk"}}))(t)
	credential, _ := f.made(f.admin, auth.TokenRequest{User: "ann", Scopes: []auth.Scope{auth.ScopeMint}})
	ctx := f.by(credential)
	if labels, err := f.Mint(ctx, key, 2); err != nil || len(labels) != 2 {
		t.Errorf("got %v, %v", labels, err)
	}
	record := &stele.Record{State: stele.Reserved}
	made := must(f.MintAndRegister(ctx, record, key))(t)
	if made, err := f.MintBatch(ctx, nil, []stele.NamespaceKey{key}, 1, record); err != nil || len(made.Records) != 1 {
		t.Errorf("got %v, %v", made, err)
	}
	_, err := f.Update(ctx, made.ID, 0, func(r *stele.Record) error { r.Readers = nil; return nil })
	want(t, err, stele.NotFound)
	_, err = f.Register(ctx, &stele.Record{ID: f.id("ark:12345/mine"), State: stele.Reserved})
	want(t, err, stele.Forbidden, "limited")
}

// A token with the backup scope may read and verify all, and administrates nothing.
func TestBackupScope(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("ann")
	limits := auth.TokenRequest{User: "root", Scopes: []auth.Scope{auth.ScopeBackup}}
	credential, _ := f.made(f.admin, limits)
	ctx := f.by(credential)
	if err := f.Verify(ctx, func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
	must(each(f.Changes(ctx, 0)))(t)
	must(each(f.Tokens(ctx, "")))(t)
	_, err := f.AddUser(ctx, auth.User{Name: "bob"})
	want(t, err, stele.Forbidden, "scope admin")
	limits.User = "ann" // a scope gives no right that the user does not have
	credential, _ = f.made(f.admin, limits)
	want(t, f.Verify(f.by(credential), func(*stele.Message) {}), stele.Forbidden)
}
