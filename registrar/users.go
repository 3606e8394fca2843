package registrar

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// AddUser adds a user. It sets the creator and the time. Only an administrator may.
// Conflict if there is one of that name.
func (r *Registrar) AddUser(ctx context.Context, u auth.User) (auth.User, error) {
	const op = "add user"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return auth.User{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return auth.User{}, err
	}
	u.Groups = slices.Sorted(slices.Values(u.Groups))
	u.Created, u.By = r.now(), auth.From(ctx).Name
	u.Modified = u.Created
	if err := u.Validate(); err != nil {
		return auth.User{}, err
	}
	cell, err := u.Cell()
	if err != nil {
		return auth.User{}, tell(op, err)
	}
	err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, After: cell.Value}}})
	if err != nil && stele.KindOf(err) == stele.Conflict && !errors.Is(err, stele.ErrSealed) {
		return auth.User{}, userExists(op, u.Name)
	}
	if err != nil {
		return auth.User{}, err
	}
	return u, nil
}

// SetUser changes a user: change is called with a copy of it, and again if another
// writer was faster. Name and times are not its to change. Only an administrator may.
// Conflict if no enabled administrator were left.
func (r *Registrar) SetUser(ctx context.Context, name string, change func(*auth.User) error) (auth.User, error) {
	const op = "set user"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return auth.User{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return auth.User{}, err
	}
	for attempt := 1; ; attempt++ {
		before, held, err := r.user(ctx, op, name)
		if err != nil {
			return auth.User{}, err
		}
		next, err := r.changeUser(ctx, op, before, change)
		if err != nil {
			return auth.User{}, err
		}
		if sameUser(before, next) {
			return before, nil
		}
		c, err := r.userCommit(ctx, op, held, before, next)
		if err != nil {
			return auth.User{}, err
		}
		err = r.apply(ctx, op, c)
		if err == nil {
			return next, nil
		}
		if !r.again(ctx, err, attempt) {
			return auth.User{}, err
		}
	}
}

// changeUser returns the user as it is to be.
func (r *Registrar) changeUser(ctx context.Context, op string, before auth.User, change func(*auth.User) error) (auth.User, error) {
	next := before
	next.Groups = slices.Clone(before.Groups)
	if err := change(&next); err != nil {
		return next, tell(op, err)
	}
	if next.Name != before.Name {
		return next, refuse(op, stele.ID{}, stele.Invalid, "user.name-changed", "the name of a user never changes: history has it; add another user")
	}
	next.Groups = slices.Sorted(slices.Values(next.Groups))
	next.Created, next.Modified, next.By = before.Created, r.now(), auth.From(ctx).Name
	if next.Modified.Before(before.Modified) { // the clock stepped back
		next.Modified = before.Modified
	}
	return next, next.Validate()
}

// userCommit returns the commit that changes a user. One that disables the user ends all their
// sessions, one-time links and the password too: they must not come back when the user is enabled again. If it revokes the right to
// administrate, its condition is also that another administrator is unchanged: if two
// administrators do so to each other at the same time, one commit fails.
func (r *Registrar) userCommit(ctx context.Context, op string, held stele.Cell, before, next auth.User) (*stele.Commit, error) {
	cell, err := next.Cell()
	if err != nil {
		return nil, tell(op, err)
	}
	c := &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}}
	if next.Disabled && !before.Disabled {
		visits, err := r.visitsOf(ctx, op, next.Name)
		if err != nil {
			return nil, err
		}
		c.Cells = append(c.Cells, visits...)
	}
	if !administers(before) || administers(next) {
		return c, nil
	}
	for kept, err := range r.store.Cells(ctx, auth.UserCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		if other, err := auth.ReadUser(kept); err == nil && other.Name != next.Name && administers(other) {
			c.Cells = append(c.Cells, stele.CellChange{Name: kept.Name, Before: kept.Value, After: kept.Value})
			return c, nil
		}
	}
	return nil, refuse(op, stele.ID{}, stele.Conflict,
		"user.last-administrator", "{name} is the last administrator, and the registry could not be administered any more; make another user one first", next.Name)
}

func administers(u auth.User) bool { return u.Admin && !u.Disabled }

// sameUser reports whether two versions are equal in all that users set.
func sameUser(a, b auth.User) bool {
	return a.Admin == b.Admin && a.Disabled == b.Disabled && slices.Equal(a.Groups, b.Groups)
}

// User returns a user: to an administrator any, to others themselves. NotFound if there
// is none that the caller may see.
func (r *Registrar) User(ctx context.Context, name string) (auth.User, error) {
	const op = "show user"
	if err := identify(ctx, op); err != nil {
		return auth.User{}, err
	}
	if who := auth.From(ctx); !who.Admin && who.Name != name {
		return auth.User{}, noUser(op, name)
	}
	u, _, err := r.user(ctx, op, name)
	return u, err
}

// user reads a user, and its cell as the store has it.
func (r *Registrar) user(ctx context.Context, op, name string) (auth.User, stele.Cell, error) {
	if !auth.IsName(name) {
		return auth.User{}, stele.Cell{}, noUser(op, name)
	}
	cell := stele.Cell{Name: auth.UserCells + name}
	var err error
	if cell.Value, err = r.store.Cell(ctx, cell.Name); err != nil {
		return auth.User{}, cell, tell(op, err)
	}
	if cell.Value == nil {
		return auth.User{}, cell, noUser(op, name)
	}
	u, err := auth.ReadUser(cell)
	return u, cell, err
}

func noUser(op, name string) error {
	return refuse(op, stele.ID{}, stele.NotFound, "user.missing", `there is no user "{name}"; add it first`, name)
}

// Users yields all users, by name. Only an administrator may ask; a backup has them all, so a
// token for backups is enough.
func (r *Registrar) Users(ctx context.Context) iter.Seq2[auth.User, error] {
	const op = "list users"
	return func(yield func(auth.User, error) bool) {
		if err := administrateBy(ctx, op, stele.ID{}, auth.ScopeBackup); err != nil {
			yield(auth.User{}, err)
			return
		}
		for cell, err := range r.store.Cells(ctx, auth.UserCells, "") {
			var u auth.User
			if err == nil {
				u, err = auth.ReadUser(cell)
			}
			if !yield(u, tell(op, err)) || err != nil {
				return
			}
		}
	}
}

// identify makes sure that the caller is authenticated.
func identify(ctx context.Context, op string) error {
	if !auth.From(ctx).IsKnown() {
		return refuse(op, stele.ID{}, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	return nil
}

// needProof makes sure that a user who acts by a session has proved recently who they are.
func (r *Registrar) needProof(ctx context.Context, op string) error {
	return auth.From(ctx).NeedProof(op, r.now())
}

// changesAccess reports whether a commit changes users or tokens.
func changesAccess(c *stele.Commit) bool {
	return slices.ContainsFunc(c.Cells, func(cell stele.CellChange) bool {
		return strings.HasPrefix(cell.Name, auth.UserCells) || strings.HasPrefix(cell.Name, auth.TokenCells)
	})
}
