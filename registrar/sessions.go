package registrar

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
)

// CreateLink makes a link that signs a user in once, and returns its credential, which is not
// stored. A life of 0 is [auth.LinkLife]. Only an administrator may. Conflict if the user is
// disabled.
func (r *Registrar) CreateLink(ctx context.Context, user string, life time.Duration) (credential string, l auth.Link, err error) {
	return r.CreateMailedLink(ctx, user, life, nil)
}

// CreateMailedLink is CreateLink for a link that is sent to the user. If the user has confirmed an address it is sent
// there only; Conflict otherwise.
func (r *Registrar) CreateMailedLink(ctx context.Context, user string, life time.Duration, mailed *MailedLink) (credential string, l auth.Link, err error) {
	const op = "create link"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return "", auth.Link{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return "", auth.Link{}, err
	}
	if life == 0 {
		life = auth.LinkLife
	}
	if err := cmp.Or(checkLinkLife(op, life), mailed.check(op)); err != nil {
		return "", auth.Link{}, err
	}
	held, err := r.enabledUser(ctx, op, user)
	if err != nil {
		return "", auth.Link{}, err
	}
	now := r.now()
	made, err := auth.NewCredentialOf(auth.LinkCredential, r.o.Rand)
	if err != nil {
		return "", auth.Link{}, err
	}
	l = auth.Link{ID: made.ID(), User: user, Hash: made.Hash(), Created: now, Expires: now.Add(life), By: auth.From(ctx).Name}
	cell, err := l.Cell()
	if err != nil {
		return "", auth.Link{}, tell(op, err)
	}
	ended, valid, err := r.endedCells(ctx, op, auth.LinkCells, func(c stele.Cell) (ended, valid bool) {
		// A link that is mailed takes the place of the others: one of them may have gone to a wrong address.
		other, err := auth.ReadLink(c)
		return err != nil || other.Ended(now) || mailed != nil && other.User == user, err == nil && other.User == user
	})
	if err != nil {
		return "", auth.Link{}, err
	}
	if valid >= auth.MaxLinks {
		return "", auth.Link{}, refuse(op, stele.ID{}, stele.Exhausted, "link.too-many", `"{user}" has {count} links that were not used; wait until they expire`, user, valid)
	}
	cells := append(ended, stele.CellChange{Name: held.Name, Before: held.Value, After: held.Value}, stele.CellChange{Name: cell.Name, After: cell.Value})
	also, err := r.mailLink(ctx, op, mailed, l, made.Reveal())
	if err != nil {
		return "", auth.Link{}, err
	}
	if err := r.apply(ctx, op, &stele.Commit{Cells: append(cells, also...)}); err != nil {
		return "", auth.Link{}, err
	}
	l.Hash = nil
	return made.Reveal(), l, nil
}

// UseLink signs in by a link. The link, which the caller got from [auth.Directory.Link] with its
// cell, is used up in the same commit: Conflict if another request was faster.
func (r *Registrar) UseLink(ctx context.Context, l auth.Link, held stele.Cell, agent string) (credential string, s auth.Session, err error) {
	used, err := r.LinkUsed(ctx, l, held)
	if err != nil {
		return "", auth.Session{}, err
	}
	return r.beginSession(ctx, opSignIn, auth.Session{User: l.User, How: auth.ProvedByLink, Agent: agent, Proved: r.now()}, used...)
}

// LinkUsed returns the changes by which a link is used up. If the link was mailed, its user has
// read that mail, so the address is confirmed. Only a server may call it.
func (r *Registrar) LinkUsed(ctx context.Context, l auth.Link, held stele.Cell) ([]stele.CellChange, error) {
	if err := serverOnly(ctx, opSignIn); err != nil {
		return nil, err
	}
	also, err := r.linkRead(ctx, opSignIn, l)
	return append(also, stele.CellChange{Name: held.Name, Before: held.Value}), err
}

// BeginSession begins a session of a user, and returns its credential, which is not stored.
// The caller is a server to which the user has proved who they are, as how says. If old is not "",
// the session of this ID ends: the credential changes whenever a user proves more. Proved is when
// the user did so, which at an OpenID provider may have been long ago; zero if that is not known.
func (r *Registrar) BeginSession(ctx context.Context, user string, how auth.Proof, proved time.Time, agent, old string) (credential string, s auth.Session, err error) {
	const op = opSignIn
	if err := serverOnly(ctx, op); err != nil {
		return "", auth.Session{}, err
	}
	return r.tryBegin(ctx, op, auth.Session{User: user, How: how, Agent: agent, Proved: proved}, func() ([]stele.CellChange, error) {
		return r.endOld(ctx, op, old)
	})
}

// BeginTokenSession begins a session of a program, and returns its credential, which is not stored. The caller is a server to
// which the program has sent the token of p. The session may be used for no more, and for no longer, than that token.
func (r *Registrar) BeginTokenSession(ctx context.Context, p auth.Principal, agent string) (credential string, s auth.Session, err error) {
	const op = opSignIn
	if err := serverOnly(ctx, op); err != nil {
		return "", auth.Session{}, err
	}
	if p.Token == "" {
		return "", auth.Session{}, refuse(op, stele.ID{}, stele.Unauthenticated, "request.token-missing", "say who you are: send your token in the header Authorization: Bearer")
	}
	return r.tryBegin(ctx, op, auth.Session{User: p.Name, Token: p.Token, How: auth.ProvedByToken, Agent: agent}, func() ([]stele.CellChange, error) {
		return r.fullToken(ctx, op, p.Token)
	})
}

// tryBegin is beginSession with changes that are read again if the commit conflicts with another one: users who sign in at the
// same time remove the same sessions that ended.
func (r *Registrar) tryBegin(ctx context.Context, op string, s auth.Session, also func() ([]stele.CellChange, error)) (string, auth.Session, error) {
	for attempt := 1; ; attempt++ {
		changes, err := also()
		if err != nil {
			return "", auth.Session{}, err
		}
		credential, begun, err := r.beginSession(ctx, op, s, changes...)
		m, _ := errors.AsType[*stele.Message](err)
		disabled := m != nil && m.Code == "token.for-disabled-user"
		if err == nil || disabled || !r.again(ctx, err, attempt) {
			return credential, begun, err
		}
	}
}

// fullToken returns the change that ends a session of a token which has as many as it may have: the one that was not used for
// the longest time.
func (r *Registrar) fullToken(ctx context.Context, op, token string) ([]stele.CellChange, error) {
	var oldest stele.Cell
	var seen time.Time
	count, now := 0, r.now()
	for c, err := range r.store.Cells(ctx, auth.SessionCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		s, err := auth.ReadSession(c)
		if err != nil || s.Token != token || s.Ended(now) {
			continue
		}
		if count++; count == 1 || s.Seen.Before(seen) {
			oldest, seen = c, s.Seen
		}
	}
	if count < auth.MaxTokenSessions {
		return nil, nil
	}
	return []stele.CellChange{{Name: oldest.Name, Before: oldest.Value}}, nil
}

// endOld returns the change that ends the session that a new one replaces; none if there is none.
func (r *Registrar) endOld(ctx context.Context, op, old string) ([]stele.CellChange, error) {
	if old == "" {
		return nil, nil
	}
	value, err := r.store.Cell(ctx, auth.SessionCells+old)
	if err != nil || value == nil {
		return nil, tell(op, err)
	}
	return []stele.CellChange{{Name: auth.SessionCells + old, Before: value}}, nil
}

// beginSession commits a session and other changes. The user of the session is the actor of
// the entry in the audit trail.
func (r *Registrar) beginSession(ctx context.Context, op string, s auth.Session, also ...stele.CellChange) (string, auth.Session, error) {
	held, err := r.enabledUser(ctx, op, s.User)
	if err != nil {
		return "", auth.Session{}, err
	}
	made, err := auth.NewCredentialOf(auth.SessionCredential, r.o.Rand)
	if err != nil {
		return "", auth.Session{}, err
	}
	now := r.now()
	s.ID, s.Hash, s.Agent = made.ID(), made.Hash(), shortAgent(s.Agent)
	s.Created, s.Seen = now, now
	if s.Proved.After(now) {
		s.Proved = now
	}
	cell, err := s.Cell()
	if err != nil {
		return "", auth.Session{}, tell(op, err)
	}
	ended, valid, err := r.endedCells(ctx, op, auth.SessionCells, func(c stele.Cell) (ended, valid bool) {
		other, err := auth.ReadSession(c)
		for _, change := range also {
			if change.Name == c.Name {
				return false, false
			}
		}
		return err != nil || other.Ended(now), err == nil && other.User == s.User && other.Token == s.Token
	})
	if err != nil {
		return "", auth.Session{}, err
	}
	if valid >= auth.MaxSessions {
		return "", auth.Session{}, refuse(op, stele.ID{}, stele.Exhausted, "session.too-many", `"{user}" has {count} sessions; end some of them first`, s.User, valid)
	}
	cells := append(ended, also...)
	cells = append(cells, stele.CellChange{Name: held.Name, Before: held.Value, After: held.Value}, stele.CellChange{Name: cell.Name, After: cell.Value})
	from := auth.OriginOf(ctx)
	from.Caller = auth.Principal{Name: s.User}
	if err := r.apply(auth.WithOrigin(ctx, from), op, &stele.Commit{Cells: cells}); err != nil {
		return "", auth.Session{}, err
	}
	s.Hash = nil
	return made.Reveal(), s, nil
}

// shortAgent returns what is kept of what a browser says it is.
func shortAgent(agent string) string {
	agent = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			return -1
		}
		return c
	}, agent)
	return strings.ToValidUTF8(agent[:min(len(agent), auth.MaxAgent)], "")
}

// maxEnded bounds how many cells of sessions or links that ended one commit removes.
const maxEnded = 100

// endedCells returns changes that remove cells of sessions or links that ended, and how many are valid.
func (r *Registrar) endedCells(ctx context.Context, op, cells string, judge func(stele.Cell) (ended, valid bool)) (list []stele.CellChange, count int, err error) {
	for c, err := range r.store.Cells(ctx, cells, "") {
		if err != nil {
			return nil, 0, tell(op, err)
		}
		switch ended, valid := judge(c); {
		case ended && len(list) < maxEnded:
			list = append(list, stele.CellChange{Name: c.Name, Before: c.Value})
		case valid && !ended:
			count++
		}
	}
	return list, count, nil
}

// enabledUser returns the cell of a user who is not disabled.
func (r *Registrar) enabledUser(ctx context.Context, op, name string) (stele.Cell, error) {
	u, held, err := r.user(ctx, op, name)
	if err != nil {
		return held, err
	}
	if u.Disabled {
		return held, refuse(op, stele.ID{}, stele.Conflict, "token.for-disabled-user", "the user {user} is disabled; enable it first", name)
	}
	return held, nil
}

// Sessions yields the sessions of a user that have not ended, without their hashes: to an
// administrator of any user, to others their own.
func (r *Registrar) Sessions(ctx context.Context, user string) iter.Seq2[auth.Session, error] {
	const op = "list sessions"
	return func(yield func(auth.Session, error) bool) {
		if err := maySessions(ctx, op, user); err != nil {
			yield(auth.Session{}, err)
			return
		}
		now := r.now()
		for c, err := range r.store.Cells(ctx, auth.SessionCells, "") {
			if err != nil {
				yield(auth.Session{}, tell(op, err))
				return
			}
			s, err := auth.ReadSession(c)
			if err != nil || s.User != user || s.Ended(now) {
				continue
			}
			s.Hash = nil
			if !yield(s, nil) {
				return
			}
		}
	}
}

// maySessions makes sure that the caller may see and end the sessions of a user.
func maySessions(ctx context.Context, op, user string) error {
	if err := identify(ctx, op); err != nil {
		return err
	}
	if who := auth.From(ctx); !who.Admin && (who.Name != user || who.IsLimited()) {
		return refuse(op, stele.ID{}, stele.Forbidden, "session.of-other-user", `"{user}" may see and end their own sessions only; ask an administrator`, who.Name)
	}
	return nil
}

// EndSession ends a session of the caller, or for an administrator of any user. A session
// that is not there has ended already.
func (r *Registrar) EndSession(ctx context.Context, id string) error {
	const op = opSignOut
	if err := identify(ctx, op); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		value, err := r.store.Cell(ctx, auth.SessionCells+id)
		if err != nil || value == nil {
			return tell(op, err)
		}
		s, err := auth.ReadSession(stele.Cell{Name: auth.SessionCells + id, Value: value})
		if err != nil {
			return tell(op, err)
		}
		if err := maySessions(ctx, op, s.User); err != nil {
			return err
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: auth.SessionCells + id, Before: value}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// EndSessions ends all sessions of a user but the one with the ID kept, "" for none, and returns how
// many it ended.
func (r *Registrar) EndSessions(ctx context.Context, user, kept string) (ended int, err error) {
	for s, err := range r.Sessions(ctx, user) {
		if err != nil {
			return ended, err
		}
		if s.ID == kept {
			continue
		}
		if err := r.EndSession(ctx, s.ID); err != nil {
			return ended, err
		}
		ended++
	}
	return ended, nil
}

// NoteSession notes that a session was used, if that was not noted for a while. Another
// request may do it at the same time, which is as good.
func (r *Registrar) NoteSession(ctx context.Context, s auth.Session) error {
	const op = opNoteSession
	now := r.now()
	if now.Sub(s.Seen) < auth.SessionNote {
		return nil
	}
	value, err := r.store.Cell(ctx, auth.SessionCells+s.ID)
	if err != nil || value == nil {
		return tell(op, err)
	}
	kept, err := auth.ReadSession(stele.Cell{Name: auth.SessionCells + s.ID, Value: value})
	if err != nil || !kept.Seen.Before(now) {
		return tell(op, err)
	}
	kept.Seen = now
	cell, err := kept.Cell()
	if err != nil {
		return tell(op, err)
	}
	err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: value, After: cell.Value}}})
	if stele.KindOf(err) == stele.Conflict {
		return nil
	}
	return err
}

// Operations on sessions that the audit trail treats in a special way.
const (
	opSignIn       = "sign in"
	opSignOut      = "sign out"
	opNoteSession  = "note session"
	opChallengeKey = "make challenge key"
	opDigestKey    = "make digest key"
)

// visitsOf returns the changes that end all sessions, one-time links and the password of a user.
func (r *Registrar) visitsOf(ctx context.Context, op, user string) (list []stele.CellChange, err error) {
	for _, cells := range []string{auth.SessionCells, auth.LinkCells} {
		for c, err := range r.store.Cells(ctx, cells, "") {
			if err != nil {
				return nil, tell(op, err)
			}
			s, notSession := auth.ReadSession(c)
			l, notLink := auth.ReadLink(c)
			if notSession == nil && s.User == user || notLink == nil && l.User == user {
				list = append(list, stele.CellChange{Name: c.Name, Before: c.Value})
			}
		}
	}
	held, err := r.store.Cell(ctx, password.Cells+user)
	if err != nil {
		return nil, tell(op, err)
	}
	if held != nil {
		list = append(list, stele.CellChange{Name: password.Cells + user, Before: held})
	}
	return list, nil
}

// endVisits ends all sessions and one-time links, and makes all challenges invalid.
func (r *Registrar) endVisits(ctx context.Context, op string) error {
	gone := cellWriter{r: r, op: op}
	for _, cells := range []string{auth.SessionCells, auth.LinkCells, auth.ChallengeCells} {
		var list []stele.CellChange
		for c, err := range r.store.Cells(ctx, cells, "") {
			if err != nil {
				return tell(op, err)
			}
			list = append(list, stele.CellChange{Name: c.Name, Before: c.Value})
		}
		for _, c := range list {
			if err := gone.put(ctx, c); err != nil {
				return err
			}
		}
	}
	return gone.flush(ctx)
}
