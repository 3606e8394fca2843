package handles

import (
	"context"
	"crypto/sha256"
	"log/slog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
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
}

// Verify returns the identity that a proof proves: the one that is claimed, with the index of the value
// that fits if it was claimed without one. A refusal with the code 403 says that it proves none.
func (s *Service) Verify(ctx context.Context, who Identity, p *Proof) (Identity, error) {
	return s.verify(ctx, who, p.Type, func(key *hdl.PublicKey, secret []byte) error {
		if key != nil {
			return hdl.VerifyKeyAnswer(key, p.Answer, p.Nonce, p.Digest)
		}
		return hdl.VerifySecretAnswer(p.Version, p.Answer, secret, p.Nonce, p.Digest)
	})
}

// Stamp returns what changes when the key or the secret of an identity is replaced or removed: a session ends then. It is "" if there is
// none.
func (s *Service) Stamp(ctx context.Context, who Identity) (string, error) {
	id, err := s.Parse(who.Handle)
	if err != nil {
		return "", nil
	}
	rec, err := s.present(ctx, id)
	if err != nil || rec == nil {
		return "", err
	}
	k := at(rec.Values, who.Index)
	if k < 0 {
		return "", nil
	}
	sum := sha256.Sum256([]byte(rec.Values[k].Type + "\x00" + string(rec.Values[k].Data)))
	return string(sum[:]), nil
}

// VerifySecret returns the identity that a password proves, or a refusal.
func (s *Service) VerifySecret(ctx context.Context, who Identity, same func(secret []byte) bool) (Identity, error) {
	return s.verify(ctx, who, TypeSecretKey, func(_ *hdl.PublicKey, secret []byte) error {
		if same(secret) {
			return nil
		}
		return refuse(hdl.NotAuthenticated, "")
	})
}

// VerifyKey returns the identity whose public key fits.
func (s *Service) VerifyKey(ctx context.Context, who Identity, fits func(key *hdl.PublicKey) bool) (Identity, error) {
	return s.verify(ctx, who, TypePublicKey, func(key *hdl.PublicKey, _ []byte) error {
		if fits(key) {
			return nil
		}
		return refuse(hdl.NotAuthenticated, "")
	})
}

// verify tries the keys or secrets of an identity. What is not there, can't be read or does not fit gives
// the same answer, so that a client does not learn which.
func (s *Service) verify(ctx context.Context, who Identity, kind string, proves func(key *hdl.PublicKey, secret []byte) error) (Identity, error) {
	failed := refuse(hdl.NotAuthenticated, "")
	id, err := s.Parse(who.Handle)
	if err != nil {
		return Identity{}, failed
	}
	rec, err := s.present(ctx, id)
	if err != nil {
		return Identity{}, err
	}
	if rec == nil {
		return Identity{}, failed
	}
	tried := 0
	for i := range rec.Values {
		v := &rec.Values[i]
		if who.Index != 0 && v.Index != who.Index || !destination.HasType(v.Type, kind) {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		if s.provesBy(ctx, id, v, kind, proves) {
			return Identity{Handle: who.Handle, Index: v.Index}, nil
		}
	}
	return Identity{}, failed
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
