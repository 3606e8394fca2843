package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"time"

	"github.com/stele-id/stele"
)

// The names of cells in which sessions and one-time links are kept.
const (
	SessionCells = "session "
	LinkCells    = "link "
)

// How long a session lasts without being used, and in all; how long a proof of identity is
// fresh; and how often it is noted that a session was used.
const (
	SessionIdle = 12 * time.Hour
	SessionLife = 30 * 24 * time.Hour
	FreshProof  = 10 * time.Minute
	SessionNote = 5 * time.Minute
)

// How long a one-time link lasts, and how long at least and at most.
const (
	LinkLife    = 24 * time.Hour
	MinLinkLife = 15 * time.Minute
	MaxLinkLife = 7 * 24 * time.Hour
)

// Limits on sessions and links.
const (
	MaxSessions = 100 // of one user
	MaxLinks    = 20  // of one user that are not used
	MaxAgent    = 200 // bytes that are kept of what a browser says it is

	MaxTokenSessions = 20 // of one token; a new one ends the one that was not used for the longest time
)

// Proof is how a user proved who they are.
type Proof string

// The proofs. An issuer's URL follows ProvedByIssuer.
const (
	ProvedByLink     Proof = "link"
	ProvedByPasskey  Proof = "passkey"
	ProvedByPassword Proof = "password"
	ProvedByProxy    Proof = "proxy"
	ProvedByToken    Proof = "token"
	ProvedByDemo     Proof = "demo" // none: a demonstration on a loopback address
	ProvedByIssuer   Proof = "oidc "
)

// Session is a user's visit to the desk: a credential in a cookie. The cookie's secret is not
// kept, only its hash.
type Session struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Hash    []byte    `json:"hash,omitempty"`
	How     Proof     `json:"how"`
	Agent   string    `json:"agent,omitempty"` // what the browser says it is
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"`   // when it was used last, to [SessionNote]
	Proved  time.Time `json:"proved"` // when the user proved last who they are

	// Token is the ID of the token by which a program began the session: the session is not a visit to the desk then, and
	// may be used for what that token may be used for, as long as the token is valid. "" for a visit.
	Token string `json:"token,omitempty"`
}

// Expires returns when the session ends if it is not used before.
func (s *Session) Expires() time.Time {
	idle, last := s.Seen.Add(SessionIdle), s.Created.Add(SessionLife)
	if idle.Before(last) {
		return idle
	}
	return last
}

// Ended reports whether the session has expired.
func (s *Session) Ended(now time.Time) bool { return !now.Before(s.Expires()) }

// IsFresh reports whether the user has proved who they are recently enough for a dangerous step.
func (s *Session) IsFresh(now time.Time) bool { return now.Sub(s.Proved) < FreshProof }

// errOldProof says that a user has to prove again who they are.
var errOldProof = stele.Messagef("session.proof-too-old", "this step needs a proof of who you are that is not older than 10 minutes; prove it again")

// NeedProof returns an error, of Kind Forbidden, if p acts by a session whose user has not
// proved recently enough who they are for a dangerous step: one that gives rights away, or changes
// very many records. A token, and a process on the data folder, need no such proof. See
// [IsOldProof].
func (p Principal) NeedProof(op string, now time.Time) error {
	if p.Session == "" || now.Sub(p.Proved) < FreshProof {
		return nil
	}
	return &stele.Error{Op: op, Kind: stele.Forbidden, Err: errOldProof}
}

// IsOldProof reports whether a step was refused because the user has to prove again who they are.
func IsOldProof(err error) bool { return errors.Is(err, errOldProof) }

// Cell returns the session as it is kept.
func (s *Session) Cell() (stele.Cell, error) {
	value, err := json.Marshal(s)
	return stele.Cell{Name: SessionCells + s.ID, Value: value}, err
}

// ReadSession reads a session from its cell.
func ReadSession(c stele.Cell) (s Session, err error) {
	if err := read(c, &s); err != nil {
		return Session{}, err
	}
	if c.Name != SessionCells+s.ID || !isID(s.ID) {
		return Session{}, damaged(c, stele.Messagef("token.stored-id-differs", "it has another ID inside"))
	}
	return s, nil
}

// Link is a link that signs a user in once.
type Link struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Hash    []byte    `json:"hash,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by,omitempty"` // the user who made it
}

// Ended reports whether the link has expired.
func (l *Link) Ended(now time.Time) bool { return !now.Before(l.Expires) }

// Cell returns the link as it is kept.
func (l *Link) Cell() (stele.Cell, error) {
	value, err := json.Marshal(l)
	return stele.Cell{Name: LinkCells + l.ID, Value: value}, err
}

// ReadLink reads a link from its cell.
func ReadLink(c stele.Cell) (l Link, err error) {
	if err := read(c, &l); err != nil {
		return Link{}, err
	}
	if c.Name != LinkCells+l.ID || !isID(l.ID) {
		return Link{}, damaged(c, stele.Messagef("token.stored-id-differs", "it has another ID inside"))
	}
	return l, nil
}

// errNoSession says that a session is not valid. Nothing tells an unknown session from one
// that ended or from a wrong secret.
func errNoSession() error {
	return refuse(stele.Unauthenticated, "session.ended", "the session has ended; sign in again")
}

// errNoLink is errNoSession for links.
func errNoLink() error {
	return refuse(stele.Unauthenticated, "link.used-or-expired", "the link was used already or has expired; ask an administrator for a new one")
}

// Session returns the session of a credential, without its hash, and its principal.
// Unauthenticated if the credential is not valid, or the user is disabled. Sessions are
// looked up one by one: they change with each visit, so no server keeps them all.
func (d *Directory) Session(ctx context.Context, credential string) (Session, Principal, error) {
	c, held, err := d.find(ctx, SessionCredential, SessionCells, credential)
	if err != nil {
		return Session{}, Principal{}, err
	}
	s, err := d.sessions.Read(held, ReadSession)
	now := d.now()
	if err != nil || !c.Proves(s.Hash) || s.Ended(now) || s.Token != "" {
		return Session{}, Principal{}, errNoSession()
	}
	p, err := d.Principal(ctx, s.User)
	if err != nil {
		return Session{}, Principal{}, err
	}
	s.Hash = nil
	p.Expires, p.Session, p.Proved = s.Expires(), s.ID, s.Proved
	return s, p, nil
}

// TokenSession is Session for a session that a program began with a token: its principal is that of the token.
func (d *Directory) TokenSession(ctx context.Context, credential string) (Session, Principal, error) {
	c, held, err := d.find(ctx, SessionCredential, SessionCells, credential)
	if err != nil {
		return Session{}, Principal{}, err
	}
	s, err := ReadSession(held)
	now := d.now()
	if err != nil || !c.Proves(s.Hash) || s.Ended(now) || s.Token == "" {
		return Session{}, Principal{}, errNoSession()
	}
	r, err := d.current(ctx, now)
	if err != nil {
		return Session{}, Principal{}, err
	}
	e := r.tokens[s.Token]
	if e == nil || e.principal.Name != s.User && e.refused == nil {
		return Session{}, Principal{}, errNoSession()
	}
	p, err := e.admit(now)
	s.Hash = nil
	return s, p, err
}

// Link returns the link of a credential, and its cell. Unauthenticated if the credential is
// not valid, was used, or the user is disabled.
func (d *Directory) Link(ctx context.Context, credential string) (Link, stele.Cell, error) {
	c, held, err := d.find(ctx, LinkCredential, LinkCells, credential)
	if err != nil {
		return Link{}, stele.Cell{}, err
	}
	l, err := ReadLink(held)
	if err != nil || !c.Proves(l.Hash) || l.Ended(d.now()) {
		return Link{}, stele.Cell{}, errNoLink()
	}
	if _, err := d.Principal(ctx, l.User); err != nil {
		return Link{}, stele.Cell{}, err
	}
	return l, held, nil
}

// find reads the cell of a credential. A malformed credential is looked up too, under an ID
// that no credential has.
func (d *Directory) find(ctx context.Context, kind CredentialKind, cells, credential string) (Credential, stele.Cell, error) {
	c, _ := parseCredential(kind, credential)
	value, err := d.store.Cell(ctx, cells+c.id)
	if err != nil {
		return c, stele.Cell{}, tell(err)
	}
	return c, stele.Cell{Name: cells + c.id, Value: value}, nil
}

// Proves reports, in constant time, whether a hash is that of the credential's secret.
func (c Credential) Proves(hash []byte) bool {
	sum := sha256.Sum256(c.secret[:])
	return c.id != "" && subtle.ConstantTimeCompare(sum[:], hash) == 1
}

// Principal returns the principal of a user who acts without a token. Unauthenticated if
// there is no such user, or the user is disabled.
func (d *Directory) Principal(ctx context.Context, user string) (Principal, error) {
	r, err := d.current(ctx, d.now())
	if err != nil {
		return Principal{}, err
	}
	u := r.users[user]
	if u == nil {
		return Principal{}, errNoSession()
	}
	if u.Disabled {
		return Principal{}, refuse(stele.Unauthenticated, "token.user-disabled", `the user "{user}" is disabled; ask an administrator`, user)
	}
	return Principal{Name: u.Name, Groups: u.Groups, Admin: u.Admin, rules: u.Admin}, nil
}
