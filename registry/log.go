package registry

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// LogKeys returns the name of the transparency log and the keys that sign its checkpoints, for the server's own use; nil if none
// were set up.
func (r *Registry) LogKeys(ctx context.Context) (*transparency.Keys, error) {
	keys, err := r.Registrar.LogKeys(auth.With(ctx, auth.Local()))
	if err != nil || keys.Origin == "" {
		return nil, err
	}
	return signingKeys(&keys), nil
}

// LogPublicKeys returns the name of the log and its keys, without their private halves.
func (r *Registry) LogPublicKeys(ctx context.Context) (*transparency.Keys, error) {
	keys, err := r.Registrar.LogOrigin(ctx)
	if err != nil || keys.Origin == "" {
		return nil, err
	}
	return signingKeys(&keys), nil
}

// signingKeys returns the keys as package transparency has them.
func signingKeys(keys *registrar.LogKeys) *transparency.Keys {
	out := &transparency.Keys{Origin: keys.Origin}
	for _, k := range keys.Keys {
		s := transparency.SigningKey{Half: k.Public, Created: k.Created, Retired: k.Retired}
		if len(k.Seed) == ed25519.SeedSize {
			s.Private = ed25519.NewKeyFromSeed(k.Seed)
		}
		out.List = append(out.List, s)
	}
	return out
}

// SetUpLog makes the first key of the log, if there is none, and names the log. An empty origin does for a log that has a
// name; Invalid if it has none. Only an administrator may.
func (r *Registry) SetUpLog(ctx context.Context, origin string) (*transparency.Keys, error) {
	const op = "set up log"
	have, err := r.Registrar.LogOrigin(ctx)
	switch {
	case err != nil:
		return nil, err
	case have.Origin != "" && origin != "" && origin != have.Origin:
		return nil, failf(op, stele.Conflict, "log.name-kept", `the log is called "{origin}", and keeps its name: proofs have it; leave the other name out`, have.Origin)
	case have.Origin != "":
		return r.LogKeys(ctx)
	case origin == "":
		return nil, failf(op, stele.Invalid, "log.origin-missing", "the log has no name yet; name it with --origin, a URL without its scheme that stays yours, such as names.example.org/.log")
	}
	if err := transparency.CheckOrigin(origin); err != nil {
		return nil, err
	}
	keys, err := r.Registrar.SetLogKeys(ctx, func(keys *registrar.LogKeys) error {
		if keys.Origin != "" { // another server was faster
			return nil
		}
		k, err := newLogKey(r.now())
		keys.Origin, keys.Keys = origin, append(keys.Keys, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	return signingKeys(&keys), nil
}

func newLogKey(now time.Time) (registrar.LogKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	return registrar.LogKey{Public: public, Seed: private.Seed(), Created: now.UTC().Truncate(time.Second)}, err
}

// maxLogOverlap bounds how long two keys of the log sign together.
const maxLogOverlap = 10 * 365 * 24 * time.Hour

// RollLogKey makes a new key that signs from now on. Those before it go on signing for the overlap, so that readers have time to
// get the new one. Only an administrator may.
func (r *Registry) RollLogKey(ctx context.Context, overlap time.Duration) (*transparency.Keys, error) {
	const op = "roll log key"
	if overlap < 0 || overlap > maxLogOverlap {
		return nil, failf(op, stele.Invalid, "log.overlap-out-of-range", "the overlap of two keys is 0 to {most} days", int(maxLogOverlap/(24*time.Hour)))
	}
	return r.changeLogKeys(ctx, op, func(keys *registrar.LogKeys) error {
		at := r.now().UTC().Truncate(time.Second)
		k, err := newLogKey(at)
		if err != nil {
			return err
		}
		for i := range keys.Keys {
			if old := &keys.Keys[i]; old.Retired.IsZero() || old.Retired.After(at.Add(overlap)) {
				old.Retired = at.Add(overlap)
			}
		}
		keys.Keys = append(keys.Keys, k)
		return nil
	})
}

// RetireLogKeys ends the overlap: the newest key alone signs, and the private halves of the others are erased. Only an administrator may.
func (r *Registry) RetireLogKeys(ctx context.Context) (*transparency.Keys, error) {
	return r.changeLogKeys(ctx, "retire log key", func(keys *registrar.LogKeys) error {
		at := r.now().UTC().Truncate(time.Second)
		for i := range keys.Keys[:len(keys.Keys)-1] {
			k := &keys.Keys[i]
			if k.Seed, k.Lost = nil, false; k.Retired.IsZero() || k.Retired.After(at) {
				k.Retired = at
			}
		}
		return nil
	})
}

// changeLogKeys changes the keys of a log that has some.
func (r *Registry) changeLogKeys(ctx context.Context, op string, change func(*registrar.LogKeys) error) (*transparency.Keys, error) {
	keys, err := r.Registrar.SetLogKeys(ctx, func(keys *registrar.LogKeys) error {
		if len(keys.Keys) == 0 {
			return failf(op, stele.NotFound, "log.keys-missing", "the log has no key yet; 'stele log key --origin NAME' makes the first one, and so does a server that knows its public address")
		}
		return change(keys)
	})
	if err != nil {
		return nil, err
	}
	return signingKeys(&keys), nil
}

// Prove makes the proof of a version of a record, as far as the caller may see it: see [registrar.Registrar.Disclose]. With full it
// has all of the document; Forbidden if the caller may not see that.
func (r *Registry) Prove(ctx context.Context, name stele.ID, version uint64, at time.Time, full bool) (*transparency.Proof, error) {
	d, err := r.Registrar.Disclose(ctx, name, version, at)
	if err != nil {
		return nil, err
	}
	if full && d.Content && !d.All {
		return nil, &stele.Error{Op: "prove", ID: d.ID, Kind: stele.Forbidden, Err: stele.Messagef("log.full-proof-forbidden", "the full document is for users with a role in its namespace; ask for the proof for the public")}
	}
	return r.Log.Prove(ctx, transparency.Wanted{ID: d.ID, Version: d.Version, Record: d.Record, Full: full, Entry: !d.Content})
}

// Proves reports whether versions can be proved: the log has a signed checkpoint.
func (r *Registry) Proves(ctx context.Context) bool {
	p, err := r.Log.Published(ctx)
	return err == nil && p.Note != ""
}

// SignLog brings the log up to date and signs a checkpoint of it: for a registry that no server has open.
func (r *Registry) SignLog(ctx context.Context, keys *transparency.Keys, progress func(transparency.Status)) error {
	if err := r.Log.CatchUp(ctx, progress); err != nil {
		return err
	}
	_, err := r.Log.Sign(ctx, keys)
	return err
}
