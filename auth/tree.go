package auth

import (
	"time"

	"github.com/stele-id/stele"
)

// TokenRequest is a token that a caller asks for.
type TokenRequest struct {
	User  string // the user that it will belong to
	Label string

	// Expires is until when it lasts, and Never says that it does not expire. Without
	// either it lasts for [TokenLife], or as long as the token that makes it if that is
	// less.
	Expires time.Time
	Never   bool

	Scopes     []Scope  // none: those of the token that makes it, or all that its user may do
	Namespaces []string // none: those of the token that makes it, or all
}

// Tree holds tokens with their parents and users. A token is a child of the token that made
// it, or else of its user. It is valid only as long as all above it are: so revoking a token
// revokes all below it, in one step.
type Tree struct {
	tokens map[string]*Token
	users  map[string]*User
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{make(map[string]*Token), make(map[string]*User)} }

// AddUser adds a user.
func (tr *Tree) AddUser(u User) { tr.users[u.Name] = &u }

// AddToken adds a token. The tree keeps it, without what proves it.
func (tr *Tree) AddToken(t Token) {
	t.Hash = nil
	tr.tokens[t.ID] = &t
}

// Line returns a token and those above it, the token first. Missing is the ID of a parent
// that is not there: it was revoked or expired, and then removed to make room. A line that is
// longer than MaxTokenDepth, or a circle, ends like that too.
func (tr *Tree) Line(id string) (line []*Token, missing string) {
	for id != "" {
		t := tr.tokens[id]
		if t == nil || len(line) == MaxTokenDepth {
			return line, id
		}
		line, id = append(line, t), t.Parent
	}
	return line, ""
}

// End returns when a token expires, by its own expiry or that of a token above it, zero for
// never, and the ID of the first one from it upwards that was revoked or is missing, "" if
// none is.
func (tr *Tree) End(id string) (expires time.Time, ended string) {
	line, missing := tr.Line(id)
	for _, t := range line {
		if !t.Expires.IsZero() && (expires.IsZero() || t.Expires.Before(expires)) {
			expires = t.Expires
		}
		if ended == "" && !t.Revoked.IsZero() {
			ended = t.ID
		}
	}
	if ended == "" {
		ended = missing
	}
	return expires, ended
}

// Mark returns a token as it is shown: with the ID of the token above it that ended it.
func (tr *Tree) Mark(t Token) Token {
	if t.EndedWith = ""; t.Parent == "" || !t.Revoked.IsZero() {
		return t
	}
	if _, ended := tr.End(t.ID); ended != t.ID {
		t.EndedWith = ended
	}
	return t
}

// IsBelow reports whether a token is the one with the ID above, or was made by it or by
// one below it.
func (tr *Tree) IsBelow(id, above string) bool {
	line, _ := tr.Line(id)
	for _, t := range line {
		if above != "" && t.ID == above {
			return true
		}
	}
	return false
}

// principal returns the principal of a token, or why the token is not valid now. Its own
// expiry and that of the tokens above it are in the principal.
func (tr *Tree) principal(id string) (Principal, error) {
	line, missing := tr.Line(id)
	if missing != "" {
		return Principal{}, refuse(stele.Unauthenticated, "token.maker-token-gone", "the token was made by the token {token}, which was revoked or has expired; ask for a new one", missing)
	}
	var l limits
	for _, t := range line {
		if !t.Revoked.IsZero() {
			if t.ID == id {
				return Principal{}, refuse(stele.Unauthenticated, "token.revoked", "the token was revoked on {date}; ask for a new one", day(t.Revoked))
			}
			return Principal{}, refuse(stele.Unauthenticated, "token.maker-token-revoked", "the token was made by the token {token}, which was revoked on {date}; ask for a new one", t.ID, day(t.Revoked))
		}
		if t.Shut {
			return Principal{}, &stele.Error{Op: op, Kind: stele.Unauthenticated, Err: stele.Messagef("token.shut",
				"the registry was restored from a backup that can't know whether the token {id} was revoked since, so it is shut; an administrator opens it with 'stele token open {id}' on the machine of the registry, or makes a new one", t.ID)}
		}
		l = l.add(t)
	}
	for i, t := range line {
		u := tr.users[t.User]
		switch {
		case u == nil:
			return Principal{}, errUnknownToken()
		case u.Disabled:
			return Principal{}, refuse(stele.Unauthenticated, "token.user-disabled", `the user "{user}" is disabled; ask an administrator`, t.User)
		case i > 0 && t.User != line[i-1].User && !(tr.rules(t) && u.Admin):
			return Principal{}, refuse(stele.Unauthenticated, "token.maker-not-administrator", `the token was made by "{user}", who is not an administrator any more; ask for a new one`, t.User)
		}
	}
	u := tr.users[line[0].User]
	p := Principal{Name: u.Name, Groups: u.Groups, Token: id, limits: l, rules: u.Admin}
	p.Admin = u.Admin && l.allow(ScopeAdmin) && len(l.within) == 0
	p.Expires, _ = tr.End(id)
	return p, nil
}

// rules reports whether a token may be used for all that an administrator may do, as far
// as its own limits go.
func (tr *Tree) rules(t *Token) bool {
	l := limits{}.add(t)
	return l.allow(ScopeAdmin) && len(l.within) == 0
}

func errUnknownToken() error {
	return refuse(stele.Unauthenticated, "token.unknown", "the token is not known; check it, or ask for a new one")
}
