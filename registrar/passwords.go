package registrar

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/secret"
)

// Offer is a secret for the authenticator app of a user who sets a password. It is not stored before the
// user has sent a code of it.
type Offer struct {
	Key    []byte // for the app
	Sealed string // the same, encrypted, with the time when the offer expires; the user's form sends it back
}

// offerLife is how long an offer may be taken.
const offerLife = time.Hour

// maxOffer is how many bytes a sealed offer may have.
const maxOffer = 4 << 10

// offerPlace is the place for which an offer is encrypted: that of one user.
func offerPlace(user string) string { return "password offer " + user }

// OfferKey makes a secret for the authenticator app of the caller. It writes nothing: the secret comes back with
// the form that sets the password, and only servers with the keys of this registry can read it.
func (r *Registrar) OfferKey(ctx context.Context) (Offer, error) {
	const op = "offer authenticator"
	if err := r.ownPassword(ctx, op); err != nil {
		return Offer{}, err
	}
	key, err := password.NewKey(r.o.Rand)
	if err != nil {
		return Offer{}, err
	}
	with, err := r.sealingKey(ctx, op)
	if err != nil {
		return Offer{}, err
	}
	clear := append(binary.BigEndian.AppendUint64(nil, uint64(r.now().Add(offerLife).Unix())), key...)
	sealed, err := with.Seal(offerPlace(auth.From(ctx).Name), clear)
	if err != nil {
		return Offer{}, tellSecret(op, err)
	}
	text, err := json.Marshal(sealed)
	if err != nil {
		return Offer{}, tell(op, err)
	}
	return Offer{Key: key, Sealed: base64.RawURLEncoding.EncodeToString(text)}, nil
}

// sealingKey returns the key that the registry uses, or the last one of this process if that is not
// decided yet.
func (r *Registrar) sealingKey(ctx context.Context, op string) (secret.Key, error) {
	id, err := r.secretKey(ctx, op)
	if err != nil {
		return secret.Key{}, err
	}
	if id != "" {
		key, err := r.o.Secrets.Key(id)
		return key, tellSecret(op, err)
	}
	keys, err := r.o.Secrets.Keys()
	if err != nil {
		return secret.Key{}, tellSecret(op, err)
	}
	return keys[len(keys)-1], nil
}

// OpenOffer returns the offer of which a form has the sealed text. Invalid if it is not an offer to the caller, or has expired.
func (r *Registrar) OpenOffer(ctx context.Context, sealed string) (Offer, error) {
	const op = "take authenticator"
	gone := refuse(op, stele.ID{}, stele.Invalid, "password.offer-expired", "this page was open for too long, so there is a new secret for the authenticator app; add it to the app")
	var s secret.Sealed
	text, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(sealed) > maxOffer || json.Unmarshal(text, &s) != nil {
		return Offer{}, gone
	}
	clear, err := r.o.Secrets.Open(offerPlace(auth.From(ctx).Name), &s)
	if err != nil || len(clear) <= 8 || r.now().Unix() >= int64(binary.BigEndian.Uint64(clear)) {
		return Offer{}, gone
	}
	return Offer{Key: clear[8:], Sealed: sealed}, nil
}

// ownPassword makes sure that the caller is a user at the desk who has proved recently who they are.
func (r *Registrar) ownPassword(ctx context.Context, op string) error {
	if err := identify(ctx, op); err != nil {
		return err
	}
	if auth.From(ctx).Session == "" {
		return refuse(op, stele.ID{}, stele.Forbidden, "password.at-desk-only", "users set passwords for themselves only, at the desk")
	}
	return r.needProof(ctx, op)
}

// NewPassword is what a user sends to set a password.
type NewPassword struct {
	Password string
	Again    string   // the same, typed a second time
	Offer    string   // the sealed text of an [Offer]; "": the app that the user has stays
	Code     string   // of the app
	Context  []string // names that the password must not be made of, beside that of the user
}

// SetPassword sets the password and the authenticator app of the caller, who has proved recently who they
// are. All other sessions of the user that began with a password end. Invalid, with [stele.Problems] of the paths
// password, again, code and offer, if the password is not accepted or the code is wrong.
func (r *Registrar) SetPassword(ctx context.Context, n NewPassword) error {
	const op = "set password"
	if err := r.ownPassword(ctx, op); err != nil {
		return err
	}
	user := auth.From(ctx).Name
	var problems stele.Problems
	if err := password.Check(n.Password, append(n.Context, user)...); err != nil {
		problems = append(problems, stele.Problem{Path: "password", Err: err})
	}
	if n.Password != n.Again {
		problems = append(problems, stele.Problem{Path: "again", Err: stele.Messagef("password.again-differs", "this is not the same password; type both again")})
	}
	hash := ""
	for attempt := 1; ; attempt++ {
		held, next, err := r.nextPassword(ctx, op, user, n)
		if list, ok := stele.Reason(err).(stele.Problems); ok {
			problems = append(problems, list...)
		} else if err != nil {
			return err
		}
		if len(problems) > 0 {
			return &stele.Error{Op: op, Kind: stele.Invalid, Err: problems}
		}
		if hash == "" {
			prepared, err := password.Prepare(n.Password)
			if err != nil {
				return tell(op, err)
			}
			if hash, err = r.hasher.Hash(ctx, prepared); err != nil {
				return err
			}
		}
		next.Hash = hash
		err = r.commitPassword(ctx, op, held, next)
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// nextPassword returns the password of a user as it is to be, without its hash, and the cell of the present one.
func (r *Registrar) nextPassword(ctx context.Context, op, user string, n NewPassword) (held stele.Cell, next password.Stored, err error) {
	wrong := func(path string, err error) (stele.Cell, password.Stored, error) {
		return held, next, &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Path: path, Err: stele.Reason(err)}}}
	}
	now := r.now()
	held = stele.Cell{Name: password.Cells + user}
	if held.Value, err = r.store.Cell(ctx, held.Name); err != nil {
		return held, next, tell(op, err)
	}
	next = password.Stored{User: user, Created: now}
	if held.Value != nil && n.Offer == "" {
		if next, err = password.Read(held); err != nil {
			return held, next, err
		}
		if err := next.Key.Open(r.o.Secrets, next.Place()); err != nil {
			return held, next, tellSecret(op, err)
		}
	} else {
		offer, err := r.OpenOffer(ctx, n.Offer)
		if err != nil {
			return wrong("offer", err)
		}
		next.Key = secret.NewValue(offer.Key)
	}
	next.Changed = now
	step, ok := password.Match(next.Key.Clear(), n.Code, now, next.Step)
	if !ok {
		return wrong("code", stele.Messagef("password.code-wrong", "this is not the code that the app shows now; wait for the next one and type that, and see that the clock of the device is right"))
	}
	next.Step = step
	return held, next, nil
}

// commitPassword writes a password, and ends other sessions that began with the one before.
func (r *Registrar) commitPassword(ctx context.Context, op string, held stele.Cell, next password.Stored) error {
	user, err := r.enabledUser(ctx, op, next.User)
	if err != nil {
		return err
	}
	if err := r.SealSecret(ctx, next.Place(), &next.Key); err != nil {
		return err
	}
	cell, err := next.Cell()
	if err != nil {
		return tell(op, err)
	}
	ended, err := r.passwordSessions(ctx, op, next.User)
	if err != nil {
		return err
	}
	cells := append(ended, stele.CellChange{Name: user.Name, Before: user.Value, After: user.Value}, stele.CellChange{Name: held.Name, Before: held.Value, After: cell.Value})
	return r.apply(ctx, op, underKey(&stele.Commit{Cells: cells}, next.Key.Key()))
}

// passwordSessions returns the changes that end the sessions of a user that began with a password,
// except that of the caller.
func (r *Registrar) passwordSessions(ctx context.Context, op, user string) (list []stele.CellChange, err error) {
	for c, err := range r.store.Cells(ctx, auth.SessionCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		if s, err := auth.ReadSession(c); err == nil && s.User == user && s.How == auth.ProvedByPassword && s.ID != auth.From(ctx).Session {
			list = append(list, stele.CellChange{Name: c.Name, Before: c.Value})
		}
	}
	return list, nil
}

// PasswordState says what a user may know of a password.
type PasswordState struct {
	Created, Changed, Used time.Time
}

// Password returns whether a user has a password, and since when: to an administrator of any user, to others
// of themselves. It is nil if there is none.
func (r *Registrar) Password(ctx context.Context, user string) (*PasswordState, error) {
	const op = "show password"
	if err := maySessions(ctx, op, user); err != nil {
		return nil, err
	}
	if !auth.IsName(user) {
		return nil, nil
	}
	held := stele.Cell{Name: password.Cells + user}
	var err error
	if held.Value, err = r.store.Cell(ctx, held.Name); err != nil || held.Value == nil {
		return nil, tell(op, err)
	}
	s, err := password.Read(held)
	if err != nil {
		return &PasswordState{}, nil // Verify reports it; its user can remove it
	}
	return &PasswordState{Created: s.Created, Changed: s.Changed, Used: s.Used}, nil
}

// RemovePassword removes the password and the authenticator app of the caller, who has proved recently who
// they are, or for an administrator of any user. Sessions that began with it end, except that of the caller. NotFound if there is none.
func (r *Registrar) RemovePassword(ctx context.Context, user string) error {
	const op = "remove password"
	if err := maySessions(ctx, op, user); err != nil {
		return err
	}
	if auth.From(ctx).IsLimited() {
		if err := administrate(ctx, op, stele.ID{}); err != nil {
			return err
		}
	}
	if err := r.needProof(ctx, op); err != nil {
		return err
	}
	if _, _, err := r.user(ctx, op, user); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		held, err := r.store.Cell(ctx, password.Cells+user)
		if err != nil {
			return tell(op, err)
		}
		if held == nil {
			return refuse(op, stele.ID{}, stele.NotFound, "password.missing", `"{user}" has no password; it may have been removed`, user)
		}
		ended, err := r.passwordSessions(ctx, op, user)
		if err != nil {
			return err
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: append(ended, stele.CellChange{Name: password.Cells + user, Before: held})})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// PasswordProof is what a user sends to sign in.
type PasswordProof struct {
	User, Password, Code string
}

// passwordRefused says that a password does not sign in. Nothing tells an unknown user from a wrong password, a wrong
// or used code, or a disabled user.
func passwordRefused() error {
	return refuse(opSignIn, stele.ID{}, stele.Unauthenticated, "password.refused", "the user name, the password or the code is wrong; each code works once, so type the one that the app shows now")
}

// EnterByPassword begins a session of a user who has sent a password and a code, and notes in the same commit
// that the code was used: of two servers that get it, one refuses it. Old is as in [Registrar.BeginSession]. All
// refusals take as long as each other and have one text. Only a server may call it; the caller counts attempts by address and by account.
func (r *Registrar) EnterByPassword(ctx context.Context, p PasswordProof, agent, old string) (credential string, s auth.Session, err error) {
	const op = opSignIn
	if err := serverOnly(ctx, op); err != nil {
		return "", auth.Session{}, err
	}
	name := p.User
	if !auth.IsName(name) {
		name = "-" // which no user has: the store is asked all the same
	}
	prepared, err := password.Prepare(p.Password)
	if err != nil {
		prepared = "" // which no password is
	}
	var verified string // the hash that the password was compared with
	var rehash bool
	var rehashed string
	for attempt := 1; ; attempt++ {
		held, stored, err := r.heldPassword(ctx, op, name)
		if err != nil {
			return "", auth.Session{}, err
		}
		if attempt == 1 || stored.Hash != verified {
			ok, outdated, err := r.hasher.Verify(ctx, prepared, stored.Hash)
			if err != nil {
				return "", auth.Session{}, err
			}
			if !ok {
				return "", auth.Session{}, passwordRefused()
			}
			verified, rehash, rehashed = stored.Hash, outdated, ""
		}
		now := r.now()
		if err := stored.Key.Open(r.o.Secrets, stored.Place()); err != nil {
			r.o.Log.ErrorContext(ctx, "a user can't sign in by a password, since the secret of the authenticator app can't be read", "user", name, "error", err.Error())
			return "", auth.Session{}, passwordRefused()
		}
		step, ok := password.Match(stored.Key.Clear(), p.Code, now, stored.Step)
		if !ok {
			return "", auth.Session{}, passwordRefused()
		}
		if _, err := r.enabledUser(ctx, op, name); stele.KindOf(err) == stele.NotFound || stele.KindOf(err) == stele.Conflict {
			return "", auth.Session{}, passwordRefused()
		} else if err != nil {
			return "", auth.Session{}, err
		}
		// Not before the code is known to be right: the time that it takes would tell a right password.
		if rehash && rehashed == "" {
			if rehashed, err = r.hasher.Hash(ctx, prepared); err != nil {
				return "", auth.Session{}, err
			}
		}
		if stored.Step, stored.Used = step, now; rehashed != "" {
			stored.Hash = rehashed
		}
		cell, err := stored.Cell()
		if err != nil {
			return "", auth.Session{}, tell(op, err)
		}
		also, err := r.endOld(ctx, op, old)
		if err != nil {
			return "", auth.Session{}, err
		}
		also = append(also, stele.CellChange{Name: held.Name, Before: held.Value, After: cell.Value})
		credential, s, err = r.beginSession(ctx, op, auth.Session{User: name, How: auth.ProvedByPassword, Agent: agent, Proved: now}, also...)
		if err == nil || !r.again(ctx, err, attempt) {
			return credential, s, err
		}
	}
}

// heldPassword reads the password of a user, and its cell; it is zero if there is none.
func (r *Registrar) heldPassword(ctx context.Context, op, name string) (held stele.Cell, s password.Stored, err error) {
	held = stele.Cell{Name: password.Cells + name}
	if held.Value, err = r.store.Cell(ctx, held.Name); err != nil {
		return held, s, tell(op, err)
	}
	if held.Value == nil {
		return held, password.Stored{User: name}, nil
	}
	if s, err = password.Read(held); err != nil {
		r.o.Log.ErrorContext(ctx, "a user can't sign in by a password, since it can't be read", "user", name, "error", err.Error())
		return held, password.Stored{User: name}, nil
	}
	return held, s, nil
}
