package registrar

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// maxNumbered bounds how many users are made with one name before the @.
const maxNumbered = 100

// Arrive returns the user of a person whom an OpenID provider or a proxy has signed in, and makes
// the user a member of the groups that the account gives at present. It takes away only groups
// that the same account gave before. The caller is a server, and begins a session then. Forbidden if
// the account is linked to no user, and none may be made.
func (r *Registrar) Arrive(ctx context.Context, a auth.Arrival) (user string, err error) {
	const op = "sign in"
	if who := auth.From(ctx); !who.Admin || who.Token != "" {
		return "", refuse(op, stele.ID{}, stele.Forbidden, "session.begun-by-server-only", "only a server begins sessions, for a user who has proved who they are")
	}
	for attempt := 1; ; attempt++ {
		user, c, err := r.arrival(ctx, op, a)
		if err != nil {
			if stele.KindOf(err) == stele.Conflict && r.again(ctx, err, attempt) {
				continue // the name of the new user was taken meanwhile
			}
			return "", err
		}
		from := auth.OriginOf(ctx)
		from.Caller = auth.Principal{Name: user}
		if err = r.apply(auth.WithOrigin(ctx, from), op, c); err == nil {
			return user, nil
		}
		if !r.again(ctx, err, attempt) {
			return "", err
		}
	}
}

// arrival returns the user of an account, and the commit that notes the arrival.
func (r *Registrar) arrival(ctx context.Context, op string, a auth.Arrival) (string, *stele.Commit, error) {
	id, held, err := r.identity(ctx, op, auth.IdentityID(a.Issuer, a.Subject))
	if err != nil {
		return "", nil, err
	}
	switch {
	case held.Value == nil:
		id = auth.Identity{Issuer: a.Issuer, Subject: a.Subject, Created: r.now()}
		if id.User, err = r.userOf(ctx, op, a); err != nil {
			return "", nil, err
		}
	case !id.Ended.IsZero() && a.Issuer == auth.ProxyIssuer:
		// The proxy says at each visit who the user is, so there is nothing to link again.
		id.Ended, id.Groups = time.Time{}, nil
		if id.User, err = r.userOf(ctx, op, a); err != nil {
			return "", nil, err
		}
	case !id.Ended.IsZero():
		return "", nil, refuse(op, stele.ID{}, stele.Forbidden, "identity.ended", "this account was taken from its user here; ask an administrator to link it again")
	}
	name := auth.UserCells + id.User
	before, err := r.store.Cell(ctx, name)
	if err != nil {
		return "", nil, tell(op, err)
	}
	if before != nil && held.Value == nil && a.User == "" {
		// Another person got the name since userOf looked: they are not the same.
		return "", nil, refuse(op, stele.ID{}, stele.Conflict, "identity.name-taken", `the user "{user}" was added meanwhile; try again`, id.User)
	}
	u := auth.User{Name: id.User, Created: r.now(), By: id.User}
	if before != nil {
		if u, err = auth.ReadUser(stele.Cell{Name: name, Value: before}); err != nil {
			return "", nil, err
		}
	}
	if u.Disabled {
		return "", nil, refuse(op, stele.ID{}, stele.Forbidden, "identity.user-disabled", `the user "{user}" of this account is disabled; ask an administrator`, u.Name)
	}
	next := u
	next.Groups, id.Groups = regroup(u.Groups, id.Groups, a.Groups)
	after := before
	if before == nil || !slices.Equal(u.Groups, next.Groups) {
		next.Modified = r.now()
		if err := next.Validate(); err != nil {
			return "", nil, err
		}
		cell, err := next.Cell()
		if err != nil {
			return "", nil, tell(op, err)
		}
		after = cell.Value
	}
	id.Label, id.Used = shortLabel(a.Label), r.now()
	cell, err := id.Cell()
	if err != nil {
		return "", nil, tell(op, err)
	}
	return u.Name, &stele.Commit{Cells: []stele.CellChange{
		{Name: name, Before: before, After: after}, {Name: cell.Name, Before: held.Value, After: cell.Value},
	}}, nil
}

// userOf returns the user to whom an account that was never linked is linked now.
func (r *Registrar) userOf(ctx context.Context, op string, a auth.Arrival) (string, error) {
	unknown := refuse(op, stele.ID{}, stele.Forbidden, "identity.unknown", "this account is linked to no user here; ask an administrator for a one-time link, or sign in another way and link it on the page of your account")
	if a.User != "" {
		_, held, err := r.user(ctx, op, a.User)
		switch {
		case err == nil, held.Value == nil && held.Name != "" && a.Make:
			return a.User, nil
		case stele.KindOf(err) == stele.NotFound:
			return "", unknown
		}
		return "", err
	}
	if !a.Make {
		return "", unknown
	}
	for number := 1; number <= maxNumbered; number++ {
		name := auth.NewName(a.Name, a.IssuerName, number)
		held, err := r.store.Cell(ctx, auth.UserCells+name)
		if err != nil {
			return "", tell(op, err)
		}
		if held == nil {
			return name, nil
		}
	}
	return "", refuse(op, stele.ID{}, stele.Exhausted, "identity.names-taken", "there are {count} users with this name already; ask an administrator", maxNumbered)
}

// regroup returns the groups of a user, and those of them that an account gives: had are those that
// it gave before, gives those that it gives now.
func regroup(groups, had, gives []string) (all, mine []string) {
	for _, g := range groups {
		if !slices.Contains(had, g) || slices.Contains(gives, g) {
			all = append(all, g)
		}
	}
	for _, g := range gives {
		if slices.Contains(had, g) || !slices.Contains(groups, g) {
			mine = append(mine, g)
		}
		if !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	return all, mine
}

// shortLabel returns what is kept of the label of an account.
func shortLabel(label string) string { return shortAgent(label) }

// identity reads an identity by its ID, and its cell as the store has it, whose value is nil if there
// is none.
func (r *Registrar) identity(ctx context.Context, op, id string) (i auth.Identity, held stele.Cell, err error) {
	if held.Name = auth.IdentityCells + id; len(held.Name) > stele.MaxCellName {
		return i, held, nil // there is none of that name
	}
	if held.Value, err = r.store.Cell(ctx, held.Name); err != nil || held.Value == nil {
		return i, held, tell(op, err)
	}
	i, err = auth.ReadIdentity(held)
	return i, held, err
}

// LinkIdentity makes an account at an OpenID provider sign a user in. Only an administrator may, or
// a server at which the user has signed in and proved that the account is theirs: a user who could
// name any account would be taken for its owner. Conflict if the account is another user's. Also is
// committed with it, such as the end of a one-time link.
func (r *Registrar) LinkIdentity(ctx context.Context, user, issuer, subject, label string, also ...stele.CellChange) (auth.Identity, error) {
	const op = "link identity"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return auth.Identity{}, err
	}
	if issuer == "" || subject == "" || len(issuer) > maxIssuer || len(subject) > maxSubject {
		return auth.Identity{}, refuse(op, stele.ID{}, stele.Invalid, "identity.invalid", "an account is an issuer's URL of at most {issuer} bytes and a subject of at most {subject}; give both", maxIssuer, maxSubject)
	}
	for attempt := 1; ; attempt++ {
		owner, err := r.enabledUser(ctx, op, user)
		if err != nil {
			return auth.Identity{}, err
		}
		before, held, err := r.identity(ctx, op, auth.IdentityID(issuer, subject))
		if err != nil {
			return auth.Identity{}, err
		}
		if held.Value != nil && before.Ended.IsZero() {
			if before.User == user {
				if len(also) == 0 {
					return before, nil
				}
				return before, r.apply(ctx, op, &stele.Commit{Cells: also})
			}
			return auth.Identity{}, refuse(op, stele.ID{}, stele.Conflict, "identity.of-other-user", "this account signs another user in; take it from that user first")
		}
		if err := r.roomForIdentity(ctx, op, user); err != nil {
			return auth.Identity{}, err
		}
		next := auth.Identity{Issuer: issuer, Subject: subject, User: user, Label: shortLabel(label), Created: r.now(), By: entry(ctx, op, "").By}
		cell, err := next.Cell()
		if err != nil {
			return auth.Identity{}, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: append([]stele.CellChange{
			{Name: owner.Name, Before: owner.Value, After: owner.Value}, {Name: cell.Name, Before: held.Value, After: cell.Value},
		}, also...)})
		if err == nil {
			return next, nil
		}
		if !r.again(ctx, err, attempt) {
			return auth.Identity{}, err
		}
	}
}

// Limits on accounts. OpenID Connect Core 1.0, section 2, bounds the subject.
const (
	maxIssuer  = 1000
	maxSubject = 255
)

// roomForIdentity makes sure that a user may have another account.
func (r *Registrar) roomForIdentity(ctx context.Context, op, user string) error {
	count := 0
	for _, err := range r.Identities(ctx, user) {
		if err != nil {
			return err
		}
		count++
	}
	if count >= auth.MaxIdentities {
		return refuse(op, stele.ID{}, stele.Exhausted, "identity.too-many", `{count} accounts are linked to "{user}"; take one away first`, count, user)
	}
	return nil
}

// Identities yields the accounts that sign a user in: to an administrator of any user, to others
// their own.
func (r *Registrar) Identities(ctx context.Context, user string) iter.Seq2[auth.Identity, error] {
	const op = "list identities"
	return func(yield func(auth.Identity, error) bool) {
		if err := maySessions(ctx, op, user); err != nil {
			yield(auth.Identity{}, err)
			return
		}
		for c, err := range r.store.Cells(ctx, auth.IdentityCells, "") {
			if err != nil {
				yield(auth.Identity{}, tell(op, err))
				return
			}
			i, err := auth.ReadIdentity(c)
			if err != nil || i.User != user || !i.Ended.IsZero() {
				continue
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

// EndIdentity takes an account from its user, with the groups that it gave: from the caller, or for
// an administrator from any user. Sessions go on. NotFound if the caller has no such account.
func (r *Registrar) EndIdentity(ctx context.Context, user, id string) error {
	const op = "end identity"
	if err := maySessions(ctx, op, user); err != nil {
		return err
	}
	if err := r.needProof(ctx, op); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		i, held, err := r.identity(ctx, op, id)
		if err != nil {
			return err
		}
		if held.Value == nil || i.User != user || !i.Ended.IsZero() {
			return refuse(op, stele.ID{}, stele.NotFound, "identity.missing", `no account with this ID is linked to "{user}"; list them`, user)
		}
		u, owner, err := r.user(ctx, op, user)
		if err != nil {
			return err
		}
		next := u
		next.Groups, _ = regroup(u.Groups, i.Groups, nil)
		i.Groups, i.Ended = nil, r.now()
		cell, err := i.Cell()
		if err != nil {
			return tell(op, err)
		}
		after := owner.Value
		if !slices.Equal(u.Groups, next.Groups) {
			next.Modified, next.By = r.now(), auth.From(ctx).Name
			changed, err := next.Cell()
			if err != nil {
				return tell(op, err)
			}
			after = changed.Value
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{
			{Name: owner.Name, Before: owner.Value, After: after}, {Name: cell.Name, Before: held.Value, After: cell.Value},
		}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// shutIdentities ends all accounts: a backup can't know which of them were taken away since.
func (r *Registrar) shutIdentities(ctx context.Context, op string) error {
	var list []stele.CellChange
	given := make(map[string][]string) // by user, the groups that accounts gave
	for c, err := range r.store.Cells(ctx, auth.IdentityCells, "") {
		if err != nil {
			return tell(op, err)
		}
		i, err := auth.ReadIdentity(c)
		if err != nil || !i.Ended.IsZero() {
			continue
		}
		given[i.User] = append(given[i.User], i.Groups...)
		i.Ended, i.Groups = r.now(), nil
		cell, err := i.Cell()
		if err != nil {
			return tell(op, err)
		}
		list = append(list, stele.CellChange{Name: c.Name, Before: c.Value, After: cell.Value})
	}
	for _, user := range slices.Sorted(maps.Keys(given)) {
		change, err := r.ungroup(ctx, op, user, given[user])
		if err != nil {
			return err
		}
		if change != nil {
			list = append(list, *change)
		}
	}
	w := cellWriter{r: r, op: op}
	for _, change := range list {
		if err := w.put(ctx, change); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// ungroup returns the change that takes groups from a user; nil if the user has none of them.
func (r *Registrar) ungroup(ctx context.Context, op, user string, groups []string) (*stele.CellChange, error) {
	u, held, err := r.user(ctx, op, user)
	if stele.KindOf(err) == stele.NotFound && err != nil {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	next := u
	if next.Groups, _ = regroup(u.Groups, groups, nil); slices.Equal(u.Groups, next.Groups) {
		return nil, nil
	}
	next.Modified = r.now()
	cell, err := next.Cell()
	if err != nil {
		return nil, tell(op, err)
	}
	return &stele.CellChange{Name: held.Name, Before: held.Value, After: cell.Value}, nil
}
