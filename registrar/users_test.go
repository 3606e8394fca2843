package registrar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/store/mem"
)

// user adds a user.
func (f *fixture) user(name string, change ...func(*auth.User)) auth.User {
	f.t.Helper()
	u := auth.User{Name: name}
	for _, c := range change {
		c(&u)
	}
	return must(f.AddUser(f.admin, u))(f.t)
}

func admin(u *auth.User)    { u.Admin = true }
func disabled(u *auth.User) { u.Disabled = true }

// asAdmin returns a context in which an administrator of the registry acts.
func asAdmin(name string) context.Context {
	return auth.With(context.Background(), auth.Principal{Name: name, Admin: true})
}

// set changes a user.
func (f *fixture) set(ctx context.Context, name string, change func(*auth.User)) error {
	_, err := f.SetUser(ctx, name, func(u *auth.User) error { change(u); return nil })
	return err
}

// each collects what an iterator yields.
func each[T any](seq func(func(T, error) bool)) (list []T, err error) {
	for v, err := range seq {
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

func TestUsers(t *testing.T) {
	f := newFixture(t)
	root := f.user("root", admin)
	ann := must(f.AddUser(asAdmin("root"), auth.User{Name: "ann", Groups: []string{"staff", "press"}, By: "forged", Created: time.Unix(1, 0)}))(t)
	if !slices.Equal(ann.Groups, []string{"press", "staff"}) || ann.By != "root" || !ann.Created.Equal(ann.Modified) || ann.Created.Year() < 2020 || root.By != "local" {
		t.Errorf("got %+v, %+v", ann, root)
	}
	_, err := f.AddUser(f.admin, auth.User{Name: "ann"})
	want(t, err, stele.Conflict, "ann", "choose another")
	_, err = f.AddUser(f.admin, auth.User{Name: "Ann"})
	want(t, err, stele.Invalid, "name")
	_, err = f.AddUser(f.admin, auth.User{Name: "local"})
	want(t, err, stele.Invalid, "data folder")

	f.jump(time.Hour)
	changed := must(f.SetUser(asAdmin("root"), "ann", func(u *auth.User) error {
		u.Groups = append(u.Groups, "a")
		u.Created, u.By = time.Time{}, "forged"
		return nil
	}))(t)
	if !slices.Equal(changed.Groups, []string{"a", "press", "staff"}) || changed.By != "root" || changed.Created != ann.Created || !changed.Modified.After(ann.Modified) {
		t.Errorf("got %+v", changed)
	}
	f.jump(-2 * time.Hour)
	if u := must(f.SetUser(f.admin, "ann", func(*auth.User) error { return nil }))(t); u.By != "root" {
		t.Errorf("nothing was changed, and it is %+v", u)
	}
	if u := must(f.SetUser(f.admin, "ann", func(u *auth.User) error { u.Groups = nil; return nil }))(t); u.Modified.Before(changed.Modified) {
		t.Errorf("changed before it was: %+v", u)
	}
	want(t, f.set(f.admin, "ann", func(u *auth.User) { u.Name = "bob" }), stele.Invalid, "never changes")
	want(t, f.set(f.admin, "ann", func(u *auth.User) { u.Groups = []string{"A"} }), stele.Invalid, "groups[0]")
	want(t, f.set(f.admin, "bob", func(*auth.User) {}), stele.NotFound, "bob")
	want(t, f.set(f.admin, "a\nb", func(*auth.User) {}), stele.NotFound, `a\nb`)
	stop := errors.New("stop")
	if _, err := f.SetUser(f.admin, "ann", func(*auth.User) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	list := must(each(f.Users(f.admin)))(t)
	if len(list) != 2 || list[0].Name != "ann" || list[1].Name != "root" {
		t.Errorf("got %+v", list)
	}
	if diff := cmp.Diff(list[0], must(f.User(as("ann"), "ann"))(t)); diff != "" {
		t.Error(diff)
	}
	// A sealed registry refuses a new user, whose name is free all the same.
	if err := f.store.Seal(t.Context(), "it moves"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.AddUser(f.admin, auth.User{Name: "new"}); !errors.Is(err, stele.ErrSealed) {
		t.Errorf("got %v", err)
	}
}

// An administrator alone looks after users; the others see themselves.
func TestUserRights(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("ann")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		kind stele.Kind
	}{
		{"the public", context.Background(), stele.Unauthenticated},
		{"a user", as("ann"), stele.Forbidden},
		{"a user whose group has the name of an administrator", as("ann", "root"), stele.Forbidden},
	} {
		_, err := f.AddUser(tt.ctx, auth.User{Name: "eve", Admin: true})
		want(t, err, tt.kind)
		want(t, f.set(tt.ctx, "ann", admin), tt.kind)
		want(t, f.set(tt.ctx, "nobody", admin), tt.kind)
		_, err = each(f.Users(tt.ctx))
		want(t, err, tt.kind)
		other, none := tt.kind, tt.kind
		if tt.kind == stele.Forbidden {
			other, none = stele.NotFound, stele.NotFound
		}
		_, err = f.User(tt.ctx, "root")
		want(t, err, other)
		_, err = f.User(tt.ctx, "nobody")
		want(t, err, none)
	}
	must(f.User(asAdmin("root"), "ann"))(t)
}

func TestLastAdministrator(t *testing.T) {
	f := newFixture(t)
	f.user("root", admin)
	f.user("off", admin, disabled)
	f.user("ann")
	drop := func(u *auth.User) { u.Admin = false }
	for name, ctx := range map[string]context.Context{"local": f.admin, "themselves": asAdmin("root")} {
		err := f.set(ctx, "root", drop)
		want(t, err, stele.Conflict, "last administrator")
		err = f.set(ctx, "root", disabled)
		want(t, err, stele.Conflict, "last administrator")
		if u := must(f.User(f.admin, "root"))(t); !u.Admin || u.Disabled {
			t.Errorf("by %s: %+v", name, u)
		}
	}
	// The right of a disabled administrator may be removed, and that of an enabled one if
	// another stays.
	must(f.SetUser(f.admin, "off", func(u *auth.User) error { u.Admin = false; return nil }))(t)
	must(f.SetUser(f.admin, "ann", func(u *auth.User) error { u.Admin = true; return nil }))(t)
	must(f.SetUser(asAdmin("ann"), "root", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	want(t, f.set(f.admin, "ann", drop), stele.Conflict, "last administrator")
}

// meeting is a store in which something happens before a commit of cells.
type meeting struct {
	stele.Store
	before func()
}

func (m *meeting) Apply(ctx context.Context, c *stele.Commit) error {
	if do := m.before; do != nil && len(c.Cells) > 0 {
		m.before = nil
		do()
	}
	return m.Store.Apply(ctx, c)
}

// Two administrators take each other's rights away at once, in two processes: the
// commit of the one comes just before that of the other. The store's condition on
// both users is what keeps the last one.
func TestLastAdministratorMeets(t *testing.T) {
	for name, take := range map[string]func(*auth.User){
		"no administrator any more": func(u *auth.User) { u.Admin = false },
		"disabled":                  disabled,
	} {
		f := newFixture(t)
		f.user("ann", admin)
		f.user("bob", admin)
		other := New(f.store, testSchemes(t), f.options)
		m := &meeting{Store: f.store}
		m.before = func() {
			must(other.SetUser(asAdmin("ann"), "bob", func(u *auth.User) error { take(u); return nil }))(t)
		}
		f.store = m
		f.start()
		want(t, f.set(asAdmin("bob"), "ann", take), stele.Conflict, "last administrator")
		if u := must(f.User(f.admin, "ann"))(t); !administers(u) {
			t.Errorf("%s: nobody is left: %+v", name, u)
		}
	}
}

// However many administrators take rights from each other at once, one is left.
func TestLastAdministratorRaces(t *testing.T) {
	for round := range 20 {
		f := newFixture(t)
		const n = 6
		for i := range n {
			f.user(fmt.Sprint("a", i), admin)
		}
		var wg sync.WaitGroup
		var refused atomic.Int64
		for i := range n {
			process := New(f.store, testSchemes(t), f.options)
			wg.Go(func() {
				_, err := process.SetUser(f.admin, fmt.Sprint("a", i), func(u *auth.User) error {
					if round%2 == 0 {
						u.Admin = false
					} else {
						u.Disabled = true
					}
					return nil
				})
				if err != nil {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		left := 0
		for _, u := range must(each(f.Users(f.admin)))(t) {
			if administers(u) {
				left++
			}
		}
		if left != 1 || refused.Load() != 1 {
			t.Fatalf("round %d: %d administrators are left, %d changes were refused", round, left, refused.Load())
		}
	}
}

// No change of a user is lost to another one.
func TestSetUserConcurrently(t *testing.T) {
	f := newFixture(t)
	f.user("ann")
	var wg sync.WaitGroup
	const n = 24
	for i := range n {
		process := New(f.store, testSchemes(t), f.options)
		wg.Go(func() {
			if _, err := process.SetUser(f.admin, "ann", func(u *auth.User) error {
				u.Groups = append(u.Groups, fmt.Sprint("g", i))
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if u := must(f.User(f.admin, "ann"))(t); len(u.Groups) != n {
		t.Errorf("%d groups, want %d", len(u.Groups), n)
	}
}

// uncertain is a store that commits and does not know it.
type uncertain struct{ stele.Store }

func (s uncertain) Apply(ctx context.Context, c *stele.Commit) error {
	if err := s.Store.Apply(ctx, c); err != nil {
		return err
	}
	return &stele.Error{Op: "commit", Kind: stele.Unavailable, Err: errors.New("the disk did not answer")}
}

// OnAccess is called for each change of users and tokens before the writer is answered,
// also if it is unknown whether the change was made, and for nothing else.
func TestOnAccess(t *testing.T) {
	told := 0
	f := newFixture(t, func(o *Options) { o.OnAccess = func() { told++ } })
	expect := func(n int, what string) {
		t.Helper()
		if told != n {
			t.Errorf("%s: told %d times, want %d", what, told, n)
		}
		told = 0
	}
	f.user("ann")
	expect(1, "a user")
	_, token, err := f.CreateToken(f.admin, auth.TokenRequest{User: "ann", Never: true})
	if err != nil {
		t.Fatal(err)
	}
	expect(1, "a token")
	must(f.RevokeToken(f.admin, token.ID))(t)
	expect(1, "a token revoked")
	must(f.RevokeToken(f.admin, token.ID))(t)
	expect(0, "a token revoked again")
	must(f.SetUser(f.admin, "ann", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	expect(1, "a user changed")
	f.space("ark:12345")
	f.registered("ark:12345/x")
	expect(0, "a record and a namespace")
	if err := f.apply(f.admin, "x", &stele.Commit{Cells: []stele.CellChange{{Name: "other", After: []byte("x")}}}); err != nil {
		t.Fatal(err)
	}
	expect(0, "another cell")
	_, err = f.AddUser(f.admin, auth.User{Name: "ann"})
	want(t, err, stele.Conflict)
	expect(0, "a user who is there already")
	f.store = uncertain{mem.New(f.clock)}
	f.start()
	_, err = f.AddUser(f.admin, auth.User{Name: "bob"})
	want(t, err, stele.Unavailable)
	expect(1, "a commit that may have been made")
}
