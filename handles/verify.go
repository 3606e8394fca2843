package handles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// Types of values by which an identity proves itself.
const (
	TypePublicKey = "HS_PUBKEY"
	TypeSecretKey = "HS_SECKEY"
)

// maxTried is how many values of a handle are tried for an identity without an index.
const maxTried = 16

// Proof is the answer of a client to a challenge.
type Proof struct {
	Version hdl.Version
	Type    string // HS_PUBKEY or HS_SECKEY
	Nonce   []byte // of the challenge
	Digest  []byte // of the request that was challenged
	Answer  []byte

	// Enter waits for a turn to compute; nil: none is needed. It is called once the key or the secret is here, so that
	// a client that names an identity of a slow server does not hold a turn while others wait.
	Enter func(ctx context.Context) (leave func(), err error)
}

// Verify returns the identity that a proof proves: the one that is claimed, with the index of the value
// that fits if it was claimed without one. A refusal with the code 403 says that it proves none.
func (s *Service) Verify(ctx context.Context, who Identity, p *Proof) (Identity, error) {
	return s.verify(ctx, who, claim{kind: p.Type, enter: p.Enter, proves: func(key *hdl.PublicKey, secret []byte) error {
		if key != nil {
			return hdl.VerifyKeyAnswer(key, p.Answer, p.Nonce, p.Digest)
		}
		return hdl.VerifySecretAnswer(p.Version, p.Answer, secret, p.Nonce, p.Digest)
	}, away: func(who Identity) (bool, error) { return s.o.Elsewhere.Verify(ctx, who, p) }})
}

// Stamp returns what changes when the key or the secret of an identity is replaced or removed: a session ends then. It is "" if there is
// none, and for a secret that another server keeps: then each request proves itself.
func (s *Service) Stamp(ctx context.Context, who Identity) (string, error) {
	id, err := s.Parse(who.Handle)
	if err != nil {
		return "", nil
	}
	rec, err := s.present(ctx, id)
	if err != nil {
		return "", err
	}
	var values []stele.HandleValue
	if rec != nil {
		values = rec.Values
	} else if values, _, err = s.valuesOf(ctx, id, who.Index, TypePublicKey); err != nil {
		return "", err
	}
	k := at(values, who.Index)
	if k < 0 {
		return "", nil
	}
	sum := sha256.Sum256([]byte(values[k].Type + "\x00" + string(values[k].Data)))
	return string(sum[:]), nil
}

// VerifySecret returns the identity that a password proves, or a refusal.
func (s *Service) VerifySecret(ctx context.Context, who Identity, password []byte) (Identity, error) {
	return s.verify(ctx, who, claim{kind: TypeSecretKey, proves: func(_ *hdl.PublicKey, secret []byte) error {
		if subtle.ConstantTimeCompare(secret, password) == 1 {
			return nil
		}
		return refuse(hdl.NotAuthenticated, "")
	}, away: func(who Identity) (bool, error) { return s.o.Elsewhere.VerifySecret(ctx, who, password) }})
}

// VerifyKey returns the identity whose public key fits.
func (s *Service) VerifyKey(ctx context.Context, who Identity, fits func(key *hdl.PublicKey) bool) (Identity, error) {
	return s.verify(ctx, who, claim{kind: TypePublicKey, proves: func(key *hdl.PublicKey, _ []byte) error {
		if fits(key) {
			return nil
		}
		return refuse(hdl.NotAuthenticated, "")
	}})
}

// claim is what a client claims to have: a key or a secret.
type claim struct {
	kind   string
	proves func(key *hdl.PublicKey, secret []byte) error
	enter  func(ctx context.Context) (leave func(), err error)
	away   func(who Identity) (bool, error) // asks the server that has the secret, if this one does not
}

// verify tries the keys or secrets of an identity. What is not there, can't be read or does not fit gives
// the same answer, so that a client does not learn which.
func (s *Service) verify(ctx context.Context, who Identity, c claim) (Identity, error) {
	failed := refuse(hdl.NotAuthenticated, "")
	id, err := s.Parse(who.Handle)
	if err != nil {
		return Identity{}, failed
	}
	if c.kind == TypeSecretKey {
		if right, done, err := s.verifyAway(ctx, id, who, c); done || err != nil {
			if right && err == nil {
				return who, nil
			}
			return Identity{}, cmp.Or(err, error(failed))
		}
	}
	values, _, err := s.valuesOf(ctx, id, who.Index, c.kind)
	if err != nil {
		return Identity{}, err
	}
	if c.enter != nil && len(values) > 0 {
		leave, err := c.enter(ctx)
		if err != nil {
			return Identity{}, err
		}
		defer leave()
	}
	for i := range values[:min(len(values), maxTried)] {
		if v := &values[i]; s.provesBy(ctx, id, v, c.kind, c.proves) {
			return Identity{Handle: who.Handle, Index: v.Index}, nil
		}
	}
	return Identity{}, failed
}

// verifyAway asks the home server of an identity whether a proof by its secret is right; done is false if the identity belongs here.
func (s *Service) verifyAway(ctx context.Context, id stele.ID, who Identity, c claim) (right, done bool, err error) {
	rec, err := s.present(ctx, id)
	if err != nil || rec != nil {
		return false, false, err
	}
	away, err := s.isAway(ctx, id)
	if err != nil || !away {
		return false, false, err
	}
	if c.away == nil || who.Index == 0 { // the home server does not say which value fits
		return false, true, nil
	}
	if right, err = c.away(who); err != nil {
		return false, true, refusalOf(err)
	}
	return right, true, nil
}

// provesBy tries one key or secret.
func (s *Service) provesBy(ctx context.Context, id stele.ID, v *stele.HandleValue, kind string, proves func(key *hdl.PublicKey, secret []byte) error) bool {
	if kind == TypePublicKey {
		key, err := hdl.ParsePublicKey(v.Data)
		return err == nil && proves(&key, nil) == nil
	}
	secret, err := s.o.Registrar.HandleSecret(ctx, v)
	if err != nil {
		s.o.Log.WarnContext(ctx, "the secret of a handle value can't be read", slog.String("handle", id.String()), slog.Uint64("index", uint64(v.Index)), slog.Any("err", err))
		return false
	}
	return len(secret) > 0 && proves(nil, secret) == nil
}
