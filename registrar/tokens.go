package registrar

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// CreateToken makes a token for a user, and returns its credential, which is not stored
// and can't be shown again. An administrator may make tokens for all users, others for
// themselves. It lasts for a year at most unless an administrator makes it.
//
// If the caller acts by a token, the new one is its child: it never outlives its parent,
// may be used for nothing that its parent may not be used for, and ends when its parent
// is revoked. Without a token it is a child of its user; a session must be proved freshly. Forbidden if more is asked for,
// Conflict if the user is disabled, Exhausted if the user has too many valid tokens, or
// there are too many levels of tokens above it.
func (r *Registrar) CreateToken(ctx context.Context, want auth.TokenRequest) (credential string, t auth.Token, err error) {
	const op = "create token"
	t = auth.Token{User: want.User, Label: want.Label, Created: r.now(), Expires: want.Expires.UTC().Round(0),
		By: auth.From(ctx).Name, Scopes: want.Scopes, Namespaces: want.Namespaces}
	if err := mayToken(ctx, op, want, t.Created); err != nil {
		return "", auth.Token{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return "", auth.Token{}, err
	}
	if err := t.Validate(); err != nil {
		return "", auth.Token{}, err
	}
	if err := r.limitToken(ctx, op, &t); err != nil {
		return "", auth.Token{}, err
	}
	for attempt := 1; ; attempt++ {
		made, err := auth.NewCredential(r.o.Rand)
		if err != nil {
			return "", auth.Token{}, err
		}
		t.ID, t.Hash = made.ID(), made.Hash()
		c, err := r.tokenCommit(ctx, op, want, &t)
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

// tokenCommit returns the commit that adds a token below that of the caller. Its
// conditions are that the user and the parent are as they were read: a user that is
// disabled meanwhile gets no token, and a token that is revoked meanwhile makes none.
func (r *Registrar) tokenCommit(ctx context.Context, op string, want auth.TokenRequest, t *auth.Token) (*stele.Commit, error) {
	owner, held, err := r.user(ctx, op, t.User)
	if err != nil {
		return nil, err
	}
	if owner.Disabled {
		return nil, refuse(op, stele.ID{}, stele.Conflict, "token.for-disabled-user", "the user {user} is disabled; enable it first", t.User)
	}
	all, err := r.readTokens(ctx, op)
	if err != nil {
		return nil, err
	}
	cells := []stele.CellChange{{Name: held.Name, Before: held.Value, After: held.Value}}
	parent, err := all.adopt(op, auth.From(ctx).Token, want, t)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		cells = append(cells, stele.CellChange{Name: parent.Name, Before: parent.Value, After: parent.Value})
	}
	cell, err := t.Cell()
	if err != nil {
		return nil, tell(op, err)
	}
	cells = append(cells, stele.CellChange{Name: cell.Name, After: cell.Value})
	room, err := all.makeRoom(op, t.User, r.now(), auth.From(ctx).Token)
	return &stele.Commit{Cells: append(cells, room...)}, err
}

// mayToken makes sure that the caller may make such a token, apart from the limits of the
// caller's own token.
func mayToken(ctx context.Context, op string, want auth.TokenRequest, now time.Time) error {
	if err := identify(ctx, op); err != nil {
		return err
	}
	who := auth.From(ctx)
	switch {
	case want.Never && !want.Expires.IsZero():
		return refuse(op, stele.ID{}, stele.Invalid, "token.expiry-and-no-expiry", "a token that never expires has no time at which it does; leave one of both out")
	case !want.Expires.IsZero() && !now.Before(want.Expires):
		return refuse(op, stele.ID{}, stele.Invalid, "token.expiry-in-the-past", "the token would have expired on {time}; give a time to come", want.Expires.UTC().Format(time.RFC3339))
	case who.Admin:
		return nil
	case who.Name != want.User && who.IsLimited():
		return refuse(op, stele.ID{}, stele.Forbidden, "token.limited-makes-own-only", `this token of "{user}" is limited, and may make tokens for "{user}" only; ask an administrator`, who.Name)
	case who.Name != want.User:
		return refuse(op, stele.ID{}, stele.Forbidden, "token.for-other-user", `"{user}" may make tokens for themselves only; ask an administrator`, who.Name)
	case want.Never:
		return refuse(op, stele.ID{}, stele.Forbidden, "token.unlimited-time-not-allowed", `"{user}" may not make a token that never expires; give a time, or ask an administrator`, who.Name)
	case want.Expires.After(now.Add(auth.MaxTokenLife)):
		return refuse(op, stele.ID{}, stele.Forbidden, "token.time-too-long", `"{user}" may not make a token for more than a year; give a sooner time, or ask an administrator`, who.Name)
	}
	return nil
}

// limitToken makes sure that a new token may be used for nothing that the caller's may
// not be used for, and gives it the caller's limits where it has none of its own.
func (r *Registrar) limitToken(ctx context.Context, op string, t *auth.Token) error {
	who := auth.From(ctx)
	for _, s := range t.Scopes {
		if !who.Has(s) {
			return refuse(op, stele.ID{}, stele.Forbidden, "token.scope-beyond-maker", "the token with which this is asked may not be used for {scope}, so neither may one that it makes; it has the scopes {scopes}", s, scopeList(who.Scopes()))
		}
	}
	if len(t.Scopes) == 0 {
		t.Scopes = who.Scopes()
	}
	if len(t.Namespaces) == 0 {
		t.Namespaces = who.Namespaces()
		return nil
	}
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	named := make([]string, 0, len(t.Namespaces))
	for _, text := range t.Namespaces {
		key, err := r.ParsePrefix(text)
		if err != nil {
			return err
		}
		sp := s.Get(key)
		if sp == nil || !who.Admin && auth.RoleIn(who, s.Ancestors(sp)...) == stele.NoRole && !auth.MayMint(who, s.Ancestors(sp)...) {
			return refuse(op, stele.ID{}, stele.NotFound, "token.namespace-without-role", `there is no namespace {namespace} in which "{user}" has a role; a token is limited to namespaces that exist`, key, who.Name)
		}
		if !slices.Contains(named, key.String()) {
			named = append(named, key.String())
		}
	}
	t.Namespaces = named
	return nil
}

func scopeList(scopes []auth.Scope) string {
	words := make([]string, 0, len(scopes))
	for _, s := range scopes {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// tokens are all tokens, and their cells as the store has them.
type tokens struct {
	tree  *auth.Tree
	list  []auth.Token
	cells map[string]stele.Cell // by ID
}

// readTokens reads all tokens. One that can't be read is left out; see Verify.
func (r *Registrar) readTokens(ctx context.Context, op string) (*tokens, error) {
	all := &tokens{tree: auth.NewTree(), cells: make(map[string]stele.Cell)}
	for cell, err := range r.store.Cells(ctx, auth.TokenCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		t, err := auth.ReadToken(cell)
		if err != nil {
			continue
		}
		all.tree.AddToken(t)
		all.list = append(all.list, t)
		all.cells[t.ID] = cell
	}
	return all, nil
}

// adopt makes a token a child of the caller's, and says until when it lasts if that was
// not asked for. It returns the parent's cell; nil if there is none.
func (all *tokens) adopt(op, parent string, want auth.TokenRequest, t *auth.Token) (*stele.Cell, error) {
	last := time.Time{}
	if parent != "" {
		line, _ := all.tree.Line(parent)
		var ended string
		last, ended = all.tree.End(parent)
		switch {
		case ended != "" || !last.IsZero() && !t.Created.Before(last):
			return nil, refuse(op, stele.ID{}, stele.Unauthenticated, "token.asking-token-void", "the token of the request is not valid any more; get a new one")
		case len(line) == auth.MaxTokenDepth:
			return nil, refuse(op, stele.ID{}, stele.Exhausted, "token.chain-too-long", "there are {count} tokens above the new one, and there may be no more; make it with one of those, {token} for example", len(line), line[1].ID)
		}
	}
	t.Parent = parent
	switch {
	case !want.Never && want.Expires.IsZero():
		t.Expires = t.Created.Add(auth.TokenLife)
		if !last.IsZero() && last.Before(t.Expires) {
			t.Expires = last
		}
	case !last.IsZero() && (want.Never || want.Expires.After(last)):
		return nil, refuse(op, stele.ID{}, stele.Forbidden, "token.outlives-maker", "a token can't outlive the one that makes it: {token} expires at {time}; give that time or a sooner one, or use a token that lasts longer",
			parent, last.Format(time.RFC3339))
	}
	if parent == "" {
		return nil, nil
	}
	cell := all.cells[parent]
	return &cell, nil
}

// makeRoom makes sure that a user has no more tokens than allowed. Of those that are not
// valid any more, it removes the first one to end. All tokens below that one are invalid
// too, and stay so without it.
func (all *tokens) makeRoom(op, user string, now time.Time, spare string) ([]stele.CellChange, error) {
	count, oldest := 0, ""
	var first time.Time
	for _, t := range all.list {
		if t.User != user {
			continue
		}
		count++
		expires, ended := all.tree.End(t.ID)
		if t.ID == spare || ended == "" && (expires.IsZero() || now.Before(expires)) {
			continue
		}
		end := t.Revoked
		if end.IsZero() {
			end = expires
		}
		if oldest == "" || end.Before(first) {
			oldest, first = t.ID, end
		}
	}
	switch {
	case count < auth.MaxTokens:
		return nil, nil
	case oldest == "":
		return nil, refuse(op, stele.ID{}, stele.Exhausted, "token.too-many-of-user", "{user} has {count} tokens, and may have no more; revoke some", user, count)
	}
	cell := all.cells[oldest]
	return []stele.CellChange{{Name: cell.Name, Before: cell.Value}}, nil
}

// Tokens yields the tokens of a user, or of all if the name is empty, by ID, with the
// time of their last use and the token above them that ended them, and without their
// secrets. An administrator may ask for all, others for their own. A caller whose token
// is limited sees that one and those below it, and no more.
func (r *Registrar) Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error] {
	const op = "list tokens"
	return func(yield func(auth.Token, error) bool) {
		if err := identify(ctx, op); err != nil {
			yield(auth.Token{}, err)
			return
		}
		who := auth.From(ctx)
		every := who.Administers(auth.ScopeBackup) // a backup has them all
		if !every && who.Name != user {
			yield(auth.Token{}, refuse(op, stele.ID{}, stele.Forbidden, "token.list-of-other-user", `"{user}" may see their own tokens only; ask an administrator`, who.Name))
			return
		}
		all, err := r.readTokens(ctx, op)
		if err != nil {
			yield(auth.Token{}, err)
			return
		}
		for cell, err := range r.store.Cells(ctx, auth.TokenCells, "") {
			var t auth.Token
			if err == nil {
				t, err = auth.ReadToken(cell)
			}
			if err == nil && (user != "" && t.User != user || !every && who.IsLimited() && !all.tree.IsBelow(t.ID, who.Token)) {
				continue
			}
			if err == nil {
				t, err = r.withUse(ctx, all.tree.Mark(t))
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

// RevokeToken revokes a token and all tokens below it, and returns it. An administrator
// may revoke every token, others their own and those that were made with the token by
// which they act. A caller whose token is limited may revoke that one and those below
// it. NotFound if there is none that the caller may revoke. A token that is revoked
// already stays as it is.
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

// token reads a token that the caller may revoke, and its cell as the store has it.
func (r *Registrar) token(ctx context.Context, op, id string) (t auth.Token, held stele.Cell, err error) {
	// The caller may pass the whole credential: its ID is used, and no message repeats
	// it.
	if c, err := auth.ParseCredential(id); err == nil {
		id = c.ID()
	}
	if strings.Contains(id, "_") || len(id) > auth.MaxName {
		return t, held, refuse(op, stele.ID{}, stele.Invalid, "token.id-malformed", "a token is revoked by its ID, the 12 characters after stele_; list the tokens")
	}
	none := refuse(op, stele.ID{}, stele.NotFound, "token.missing", `there is no token "{token}"; list the tokens`, id)
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
	may, err := r.mayRevoke(ctx, op, &t)
	if err == nil && !may {
		err = none
	}
	if err != nil {
		return auth.Token{}, held, err
	}
	return t, held, nil
}

// mayRevoke reports whether the caller may revoke a token.
func (r *Registrar) mayRevoke(ctx context.Context, op string, t *auth.Token) (bool, error) {
	who := auth.From(ctx)
	switch {
	case who.Admin, who.Name == t.User && !who.IsLimited():
		return true, nil
	case who.Token == "":
		return false, nil
	}
	all, err := r.readTokens(ctx, op)
	if err != nil {
		return false, err
	}
	return all.tree.IsBelow(t.ID, who.Token), nil
}
