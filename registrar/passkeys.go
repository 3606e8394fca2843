package registrar

import (
	"context"
	"iter"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
)

// ChallengeKey returns the key that seals the challenges of passkeys, for all servers of the
// registry. It is made when it is needed first. Only a server may ask.
func (r *Registrar) ChallengeKey(ctx context.Context) (auth.ChallengeKey, error) {
	const op = opChallengeKey
	if err := serverOnly(ctx, op); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		value, err := r.store.Cell(ctx, auth.ChallengeKeyCell)
		if err != nil {
			return nil, tell(op, err)
		}
		if k := auth.ChallengeKey(value); k.IsValid() {
			return k, nil
		}
		k, err := auth.NewChallengeKey(r.o.Rand)
		if err != nil {
			return nil, err
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: auth.ChallengeKeyCell, Before: value, After: k}}})
		if err == nil {
			return k, nil
		}
		if !r.again(ctx, err, attempt) {
			return nil, err
		}
	}
}

// serverOnly makes sure that the caller is a server, to which a user has proved who they are.
func serverOnly(ctx context.Context, op string) error {
	if who := auth.From(ctx); !who.Admin || who.Token != "" || who.Session != "" {
		return refuse(op, stele.ID{}, stele.Forbidden, "session.begun-by-server-only", "only a server begins sessions, for a user who has proved who they are")
	}
	return nil
}

// answered returns the changes that mark a challenge as answered, and remove marks that are not needed
// any more. A challenge that was answered before makes the commit fail.
func (r *Registrar) answered(ctx context.Context, op string, a auth.Answered) ([]stele.CellChange, error) {
	now := r.now()
	list, _, err := r.endedCells(ctx, op, auth.ChallengeCells, func(c stele.Cell) (ended, valid bool) { return auth.AnsweredLong(c, now), false })
	cell := a.Cell()
	return append(list, stele.CellChange{Name: cell.Name, After: cell.Value}), err
}

// AddPasskey adds a passkey of the caller, who has proved recently who they are, and marks the
// challenge that it answers as used. Conflict if the challenge was used before, or the passkey is there already.
func (r *Registrar) AddPasskey(ctx context.Context, p auth.Passkey, a auth.Answered) (auth.Passkey, error) {
	const op = "add passkey"
	if err := identify(ctx, op); err != nil {
		return auth.Passkey{}, err
	}
	if who := auth.From(ctx); who.Session == "" || who.Name != p.User {
		return auth.Passkey{}, refuse(op, stele.ID{}, stele.Forbidden, "passkey.of-other-user", "users add passkeys for themselves only, at the desk")
	}
	if err := r.needProof(ctx, op); err != nil {
		return auth.Passkey{}, err
	}
	p.ID, p.Created, p.Used = auth.PasskeyID(p.Credential), r.now(), r.now()
	if err := p.Validate(); err != nil {
		return auth.Passkey{}, err
	}
	held, err := r.enabledUser(ctx, op, p.User)
	if err != nil {
		return auth.Passkey{}, err
	}
	count := 0
	for other, err := range r.Passkeys(ctx, p.User) {
		if err != nil {
			return auth.Passkey{}, err
		}
		if other.ID == p.ID {
			return auth.Passkey{}, refuse(op, stele.ID{}, stele.Conflict, "passkey.exists", "this passkey is there already")
		}
		count++
	}
	if count >= auth.MaxPasskeys {
		return auth.Passkey{}, refuse(op, stele.ID{}, stele.Exhausted, "passkey.too-many", "there are {count} passkeys, and there may be no more; remove some first", count)
	}
	cells, err := r.answered(ctx, op, a)
	if err != nil {
		return auth.Passkey{}, err
	}
	cell, err := p.Cell()
	if err != nil {
		return auth.Passkey{}, tell(op, err)
	}
	cells = append(cells, stele.CellChange{Name: held.Name, Before: held.Value, After: held.Value}, stele.CellChange{Name: cell.Name, After: cell.Value})
	return p, r.apply(ctx, op, &stele.Commit{Cells: cells})
}

// EnterByPasskey begins a session of the user of a passkey, whose signature the calling server has
// checked, and notes in the same commit that the challenge was answered and the passkey used. Held is the
// cell that the passkey was read from. If the counter of the passkey did not grow, the passkey may have been copied:
// the log and the audit trail say so. Old is as in [Registrar.BeginSession]. Conflict if the
// challenge was answered before.
func (r *Registrar) EnterByPasskey(ctx context.Context, p auth.Passkey, held stele.Cell, counter uint32, a auth.Answered, agent, old string) (credential string, s auth.Session, err error) {
	const op = opSignIn
	if err := serverOnly(ctx, op); err != nil {
		return "", auth.Session{}, err
	}
	if p.Used = r.now(); counter <= p.Counter && (counter != 0 || p.Counter != 0) {
		p.Copied = p.Used
		r.o.Log.WarnContext(ctx, "the counter of a passkey went back: it may have been copied; its user should remove it and make another", "user", p.User, "passkey", p.ID, "counter", counter, "before", p.Counter)
	} else {
		p.Counter = counter
	}
	cell, err := p.Cell()
	if err != nil {
		return "", auth.Session{}, tell(op, err)
	}
	also, err := r.answered(ctx, op, a)
	if err != nil {
		return "", auth.Session{}, err
	}
	ended, err := r.endOld(ctx, op, old)
	if err != nil {
		return "", auth.Session{}, err
	}
	also = append(also, ended...)
	also = append(also, stele.CellChange{Name: held.Name, Before: held.Value, After: cell.Value})
	return r.beginSession(ctx, op, auth.Session{User: p.User, How: auth.ProvedByPasskey, Agent: agent, Proved: r.now()}, also...)
}

// Passkeys yields the passkeys of a user: to an administrator of any user, to others their own.
func (r *Registrar) Passkeys(ctx context.Context, user string) iter.Seq2[auth.Passkey, error] {
	const op = "list passkeys"
	return func(yield func(auth.Passkey, error) bool) {
		if err := maySessions(ctx, op, user); err != nil {
			yield(auth.Passkey{}, err)
			return
		}
		for c, err := range r.store.Cells(ctx, auth.PasskeyCells, "") {
			if err != nil {
				yield(auth.Passkey{}, tell(op, err))
				return
			}
			p, err := auth.ReadPasskey(c)
			if err != nil || p.User != user { // what can't be read, Verify reports
				continue
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// PasskeySites returns the hosts for which there are passkeys, sorted. Only an administrator may ask.
func (r *Registrar) PasskeySites(ctx context.Context) (sites []string, err error) {
	const op = "list passkeys"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	for c, err := range r.store.Cells(ctx, auth.PasskeyCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		if p, err := auth.ReadPasskey(c); err == nil && !slices.Contains(sites, p.Site) {
			sites = append(sites, p.Site)
		}
	}
	slices.Sort(sites)
	return sites, nil
}

// RenamePasskey gives a passkey of the caller another name.
func (r *Registrar) RenamePasskey(ctx context.Context, id, name string) error {
	return r.changePasskey(ctx, "rename passkey", id, func(p *auth.Passkey) ([]byte, error) {
		p.Name = name
		if err := p.Validate(); err != nil {
			return nil, err
		}
		cell, err := p.Cell()
		return cell.Value, err
	})
}

// RemovePasskey removes a passkey of the caller, who has proved recently who they are, or for an
// administrator of any user.
func (r *Registrar) RemovePasskey(ctx context.Context, id string) error {
	const op = "remove passkey"
	if err := r.needProof(ctx, op); err != nil {
		return err
	}
	return r.changePasskey(ctx, op, id, func(*auth.Passkey) ([]byte, error) { return nil, nil })
}

// changePasskey gives the cell of a passkey another value.
func (r *Registrar) changePasskey(ctx context.Context, op, id string, change func(*auth.Passkey) ([]byte, error)) error {
	if err := identify(ctx, op); err != nil {
		return err
	}
	none := refuse(op, stele.ID{}, stele.NotFound, "passkey.missing", "there is no such passkey; it may have been removed")
	held := stele.Cell{Name: auth.PasskeyCells + id}
	if len(held.Name) > stele.MaxCellName {
		return none
	}
	for attempt := 1; ; attempt++ {
		var err error
		if held.Value, err = r.store.Cell(ctx, held.Name); err != nil {
			return tell(op, err)
		}
		p, err := auth.ReadPasskey(held)
		if held.Value == nil || err != nil || maySessions(ctx, op, p.User) != nil {
			return none
		}
		next, err := change(&p)
		if err != nil {
			return err
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: held.Name, Before: held.Value, After: next}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// restorePasskeys removes the passkeys, passwords and addresses that the backup has and the registry that it replaces has not: their
// users removed them since. If that registry is not known, all of them are removed unless the
// operator accepts what the backup has; users sign in by a one-time link then.
func (r *Registrar) restorePasskeys(ctx context.Context, l *Legacy) error {
	const op = "restore"
	if !l.IsKnown() && l.AcceptTokens {
		return nil
	}
	known := make(map[string]bool)
	for _, c := range l.Access {
		known[c.Name] = true
	}
	var gone []stele.CellChange
	for _, cells := range []string{auth.PasskeyCells, password.Cells, auth.MailboxCells} {
		for c, err := range r.store.Cells(ctx, cells, "") {
			if err != nil {
				return tell(op, err)
			}
			if !known[c.Name] {
				gone = append(gone, stele.CellChange{Name: c.Name, Before: c.Value})
			}
		}
	}
	w := cellWriter{r: r, op: op}
	for _, c := range gone {
		if err := w.put(ctx, c); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}
