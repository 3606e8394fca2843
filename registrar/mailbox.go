package registrar

import (
	"context"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// LetterFor returns the changes that put a letter with a credential into the queue of mail. They are
// committed together with what the letter is about.
type LetterFor func(credential string, expires time.Time) ([]stele.CellChange, error)

// Mailbox returns the mail address of a user: to an administrator of any user, to others their own. A
// user without an address has an empty one.
func (r *Registrar) Mailbox(ctx context.Context, user string) (auth.Mailbox, error) {
	const op = "show address"
	if err := identify(ctx, op); err != nil {
		return auth.Mailbox{}, err
	}
	if who := auth.From(ctx); who.Name != user && !who.Administers(auth.ScopeAdmin) {
		return auth.Mailbox{}, noUser(op, user)
	}
	m, _, err := r.mailbox(ctx, op, user)
	return m, err
}

// mailbox reads the mailbox of a user, and its cell.
func (r *Registrar) mailbox(ctx context.Context, op, user string) (auth.Mailbox, stele.Cell, error) {
	none := auth.Mailbox{User: user}
	cell := stele.Cell{Name: auth.MailboxCells + user}
	if !auth.IsName(user) {
		return none, cell, noUser(op, user)
	}
	var err error
	if cell.Value, err = r.store.Cell(ctx, cell.Name); err != nil || cell.Value == nil {
		return none, cell, tell(op, err)
	}
	m, err := auth.ReadMailbox(cell)
	return m, cell, tell(op, err)
}

// setMailbox changes a mailbox: change is called with a copy of it, and again if another request was faster. It
// returns other changes for the same commit.
func (r *Registrar) setMailbox(ctx context.Context, op, user string, change func(m *auth.Mailbox) ([]stele.CellChange, error)) (auth.Mailbox, error) {
	for attempt := 1; ; attempt++ {
		next, held, err := r.mailbox(ctx, op, user)
		if err != nil {
			return next, err
		}
		also, err := change(&next)
		if err != nil {
			return next, err
		}
		cell, err := next.Cell()
		if err != nil {
			return next, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: append([]stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}, also...)})
		if err == nil || !r.again(ctx, err, attempt) {
			return next, err
		}
	}
}

// ownMailbox makes sure that the caller may change their own address. One-time links go there, so it needs a
// fresh proof.
func (r *Registrar) ownMailbox(ctx context.Context, op string) (user string, err error) {
	if err := identify(ctx, op); err != nil {
		return "", err
	}
	who := auth.From(ctx)
	if who.IsLimited() {
		return "", refuse(op, stele.ID{}, stele.Forbidden, "mail.token-limited", "this token may not be used to change the address; use one that has no limits")
	}
	return who.Name, r.needProof(ctx, op)
}

// AskAddress asks the caller to confirm a mail address: letter gets the credential that confirms it. The address that was
// confirmed before stays until then.
func (r *Registrar) AskAddress(ctx context.Context, address, language string, letter LetterFor) (auth.Mailbox, error) {
	const op = "ask address"
	user, err := r.ownMailbox(ctx, op)
	if err != nil {
		return auth.Mailbox{}, err
	}
	if address, err = auth.ParseAddress(address); err != nil {
		return auth.Mailbox{}, &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Path: "address", Err: err}}}
	}
	return r.setMailbox(ctx, op, user, func(m *auth.Mailbox) ([]stele.CellChange, error) {
		made, err := auth.NewCredentialOf(auth.MailboxCredential, r.o.Rand)
		if err != nil {
			return nil, err
		}
		m.Asked = &auth.AskedAddress{Address: address, Expires: r.now().Add(auth.ConfirmLife), ID: made.ID(), Hash: made.Hash()}
		m.Language = language
		return letter(made.Reveal(), m.Asked.Expires)
	})
}

// RemoveAddress removes the caller's own address. No mail is sent to the user any more.
func (r *Registrar) RemoveAddress(ctx context.Context) error {
	const op = "remove address"
	user, err := r.ownMailbox(ctx, op)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		_, held, err := r.mailbox(ctx, op, user)
		if err != nil || held.Value == nil {
			return err
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: held.Name, Before: held.Value}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// AskedAddress returns the address that a credential confirms, or an error like that of a link that was used. The caller is a
// server.
func (r *Registrar) AskedAddress(ctx context.Context, user, credential string) (string, error) {
	m, _, err := r.askedMailbox(ctx, "confirm address", user, credential)
	if err != nil {
		return "", err
	}
	return m.Asked.Address, nil
}

func (r *Registrar) askedMailbox(ctx context.Context, op, user, credential string) (auth.Mailbox, stele.Cell, error) {
	if err := serverOnly(ctx, op); err != nil {
		return auth.Mailbox{}, stele.Cell{}, err
	}
	invalid := refuse(op, stele.ID{}, stele.Unauthenticated, "mail.confirmation-invalid", "this link was used already or has expired; ask for another one on the page of your settings")
	c, ok := auth.ParseMailboxCredential(credential)
	if !ok || !auth.IsName(user) {
		return auth.Mailbox{}, stele.Cell{}, invalid
	}
	m, held, err := r.mailbox(ctx, op, user)
	if err != nil {
		return m, held, err
	}
	if m.Asked == nil || m.Asked.ID != c.ID() || !c.Proves(m.Asked.Hash) || !r.now().Before(m.Asked.Expires) {
		return m, held, invalid
	}
	return m, held, nil
}

// ConfirmAddress makes the address that a credential confirms the user's. The caller is a server to which a browser has
// sent the credential; the user need not be signed in there.
func (r *Registrar) ConfirmAddress(ctx context.Context, user, credential string) (auth.Mailbox, error) {
	const op = "confirm address"
	m, held, err := r.askedMailbox(ctx, op, user, credential)
	if err != nil {
		return m, err
	}
	if _, err := r.enabledUser(ctx, op, user); err != nil {
		return m, err
	}
	r.confirm(&m)
	cell, err := m.Cell()
	if err != nil {
		return m, tell(op, err)
	}
	from := auth.OriginOf(ctx)
	from.Caller = auth.Principal{Name: user}
	return m, r.apply(auth.WithOrigin(ctx, from), op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}})
}

func (r *Registrar) confirm(m *auth.Mailbox) {
	m.Address, m.Confirmed, m.Asked = m.Asked.Address, r.now(), nil
}

// linkMailed returns the change of the mailbox of a user to whom a one-time link is sent. An address that is not
// confirmed is asked for: who signs in by the link has read the mail.
func (r *Registrar) linkMailed(ctx context.Context, op string, l auth.Link, address, language string) ([]stele.CellChange, error) {
	m, held, err := r.mailbox(ctx, op, l.User)
	if err != nil {
		return nil, err
	}
	if m.Address != "" {
		if !strings.EqualFold(m.Address, address) {
			return nil, refuse(op, stele.ID{}, stele.Conflict, "mail.address-confirmed", "{user} has confirmed another address; links go to that one only", l.User)
		}
		return []stele.CellChange{{Name: held.Name, Before: held.Value, After: held.Value}}, nil // it is still that one when the link is made
	}
	m.Asked, m.Language = &auth.AskedAddress{Address: address, Expires: l.Expires, Link: l.ID}, language
	cell, err := m.Cell()
	return []stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}, tell(op, err)
}

// linkRead returns the change that confirms the address to which a one-time link was sent, when the link is used.
func (r *Registrar) linkRead(ctx context.Context, op string, l auth.Link) ([]stele.CellChange, error) {
	m, held, err := r.mailbox(ctx, op, l.User)
	if err != nil && held.Value != nil { // a damaged address keeps no user out
		r.o.Log.ErrorContext(ctx, "the mail address of a user can't be read", "user", l.User, "error", err.Error())
		return nil, nil
	}
	if err != nil || m.Asked == nil || m.Asked.Link != l.ID {
		return nil, err
	}
	r.confirm(&m)
	cell, err := m.Cell()
	return []stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}, tell(op, err)
}
