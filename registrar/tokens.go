package registrar

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// CreateToken makes a token for a user, and returns its credential, which is kept
// nowhere and can't be had again. An administrator may for everybody, others for
// themselves. It lasts until expires, at most a year unless an administrator makes
// it; the zero time is for ever. Conflict if the user is disabled, Exhausted if
// they have too many tokens that are of use.
func (r *Registrar) CreateToken(ctx context.Context, user, label string, expires time.Time) (credential string, t auth.Token, err error) {
	const op = "create token"
	if err := mayToken(ctx, op, user, expires, r.now()); err != nil {
		return "", t, err
	}
	t = auth.Token{User: user, Label: label, Created: r.now(), Expires: expires.UTC().Round(0), By: auth.From(ctx).Name}
	if err := t.Validate(); err != nil {
		return "", auth.Token{}, err
	}
	for attempt := 1; ; attempt++ {
		made, err := auth.NewCredential(r.o.Rand)
		if err != nil {
			return "", auth.Token{}, err
		}
		t.ID, t.Hash = made.ID(), made.Hash()
		c, err := r.tokenCommit(ctx, op, t)
		if err != nil {
			return "", auth.Token{}, err
		}
		err = r.apply(ctx, op, c)
		if err == nil {
			t.Hash = nil
			return made.Reveal(), t, nil
		}
		if !r.again(ctx, err, attempt) {
			return "", auth.Token{}, err
		}
	}
}

// tokenCommit returns the commit that adds a token. It holds that the user is as it
// was read: who is disabled at that moment gets none.
func (r *Registrar) tokenCommit(ctx context.Context, op string, t auth.Token) (*stele.Commit, error) {
	owner, held, err := r.user(ctx, op, t.User)
	if err != nil {
		return nil, err
	}
	if owner.Disabled {
		return nil, refuse(op, stele.ID{}, stele.Conflict, "the user %s is disabled; enable it first", t.User)
	}
	cell, err := t.Cell()
	if err != nil {
		return nil, tell(op, err)
	}
	cells := []stele.CellChange{
		{Name: held.Name, Before: held.Value, After: held.Value},
		{Name: cell.Name, After: cell.Value},
	}
	room, err := r.makeRoom(ctx, op, t.User)
	return &stele.Commit{Cells: append(cells, room...)}, err
}

// mayToken makes sure that whoever acts may make such a token.
func mayToken(ctx context.Context, op, user string, expires, now time.Time) error {
	if err := identify(ctx, op); err != nil {
		return err
	}
	who := auth.From(ctx)
	switch {
	case !expires.IsZero() && !now.Before(expires):
		return refuse(op, stele.ID{}, stele.Invalid, "the token would have expired on %s; give a time to come", expires.UTC().Format(time.RFC3339))
	case who.Admin:
		return nil
	case who.Name != user:
		return refuse(op, stele.ID{}, stele.Forbidden, "%q may make tokens for themselves only; ask an administrator", who.Name)
	case expires.IsZero():
		return refuse(op, stele.ID{}, stele.Forbidden, "%q may not make a token that never expires; give a time, or ask an administrator", who.Name)
	case expires.After(now.Add(auth.MaxTokenLife)):
		return refuse(op, stele.ID{}, stele.Forbidden, "%q may not make a token for more than a year; give a sooner time, or ask an administrator", who.Name)
	}
	return nil
}

// makeRoom makes sure that a user has no more tokens than they may. Of those that are
// of no use any more, the first one to end goes.
func (r *Registrar) makeRoom(ctx context.Context, op, user string) ([]stele.CellChange, error) {
	now, count := r.now(), 0
	var oldest stele.Cell
	var ended time.Time
	for cell, err := range r.store.Cells(ctx, auth.TokenCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		t, err := auth.ReadToken(cell)
		if err != nil || t.User != user {
			continue
		}
		count++
		if !t.Ended(now) {
			continue
		}
		end := t.Revoked
		if end.IsZero() {
			end = t.Expires
		}
		if oldest.Name == "" || end.Before(ended) {
			oldest, ended = cell, end
		}
	}
	switch {
	case count < auth.MaxTokens:
		return nil, nil
	case oldest.Name == "":
		return nil, refuse(op, stele.ID{}, stele.Exhausted, "%s has %d tokens, and may have no more; revoke some", user, count)
	}
	return []stele.CellChange{{Name: oldest.Name, Before: oldest.Value}}, nil
}

// Tokens yields the tokens of a user, or of all if the name is empty, by ID, with
// the time of their last use and without what proves them. An administrator may ask
// for all, others for their own.
func (r *Registrar) Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error] {
	const op = "list tokens"
	return func(yield func(auth.Token, error) bool) {
		if err := identify(ctx, op); err != nil {
			yield(auth.Token{}, err)
			return
		}
		if who := auth.From(ctx); !who.Admin && who.Name != user {
			yield(auth.Token{}, refuse(op, stele.ID{}, stele.Forbidden, "%q may see their own tokens only; ask an administrator", who.Name))
			return
		}
		for cell, err := range r.store.Cells(ctx, auth.TokenCells, "") {
			var t auth.Token
			if err == nil {
				t, err = auth.ReadToken(cell)
			}
			if err == nil && user != "" && t.User != user {
				continue
			}
			if err == nil {
				t, err = r.withUse(ctx, t)
			}
			if !yield(t, tell(op, err)) || err != nil {
				return
			}
		}
	}
}

// withUse returns a token as it is shown.
func (r *Registrar) withUse(ctx context.Context, t auth.Token) (auth.Token, error) {
	t.Hash = nil
	used, err := r.store.Cell(ctx, auth.UsedCells+t.ID)
	if err != nil || used == nil {
		return t, err
	}
	t.LastUse, _ = time.Parse(time.RFC3339, string(used)) // what can't be read is not known
	return t, nil
}

// RevokeToken makes a token useless from now on, and returns it. An administrator
// may revoke every token, others their own. NotFound if there is none for them. One
// that is revoked stays as it is.
func (r *Registrar) RevokeToken(ctx context.Context, id string) (auth.Token, error) {
	const op = "revoke token"
	if err := identify(ctx, op); err != nil {
		return auth.Token{}, err
	}
	for attempt := 1; ; attempt++ {
		t, held, err := r.token(ctx, op, id)
		if err != nil {
			return auth.Token{}, err
		}
		if !t.Revoked.IsZero() {
			return r.withUse(ctx, t)
		}
		t.Revoked = r.now()
		cell, err := t.Cell()
		if err != nil {
			return auth.Token{}, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}})
		if err == nil {
			return r.withUse(ctx, t)
		}
		if !r.again(ctx, err, attempt) {
			return auth.Token{}, err
		}
	}
}

// token reads a token that whoever acts may revoke, and its cell as the store has it.
func (r *Registrar) token(ctx context.Context, op, id string) (t auth.Token, held stele.Cell, err error) {
	// Somebody may give the whole credential: its ID is meant, and it is not repeated.
	if c, err := auth.ParseCredential(id); err == nil {
		id = c.ID()
	}
	if strings.Contains(id, "_") || len(id) > auth.MaxName {
		return t, held, refuse(op, stele.ID{}, stele.Invalid, "a token is revoked by its ID, the 12 characters behind stele_; list the tokens")
	}
	none := refuse(op, stele.ID{}, stele.NotFound, "there is no token %q; list the tokens", id)
	held.Name = auth.TokenCells + id
	if held.Value, err = r.store.Cell(ctx, held.Name); err != nil {
		return t, held, tell(op, err)
	}
	if held.Value == nil {
		return t, held, none
	}
	if t, err = auth.ReadToken(held); err != nil {
		return t, held, err
	}
	if who := auth.From(ctx); !who.Admin && who.Name != t.User {
		return auth.Token{}, held, none
	}
	return t, held, nil
}
