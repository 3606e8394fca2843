package registrar

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/secret"
)

// logKeysCell has the name of the transparency log and the keys that sign its checkpoints.
const logKeysCell = LogCells + "keys"

// maxLogKeys bounds the keys of the log, those that were retired too.
const maxLogKeys = 100

// LogKeys are the name of the transparency log and the keys that sign its checkpoints.
type LogKeys struct {
	Origin string // the name; see [transparency.Keys]
	Keys   []LogKey

	By      string
	Changed time.Time
}

// LogKey is an Ed25519 key.
type LogKey struct {
	Public  []byte
	Seed    []byte // the private key (RFC 8032, section 5.1.5)
	Created time.Time
	Retired time.Time // zero: it signs

	// Lost says that the private key is there, and can't be decrypted: the secret key that it is encrypted under is not at hand. Then Seed is nil.
	Lost   bool
	sealed secret.Value // if it is lost: kept as it is, should that key be found again
}

// storedLogKeys are the keys as their cell has them.
type storedLogKeys struct {
	Origin  string         `json:"origin"`
	Keys    []storedLogKey `json:"keys"`
	By      string         `json:"by,omitempty"`
	Changed time.Time      `json:"changed,omitzero"`
}

type storedLogKey struct {
	Public  []byte       `json:"public"`
	Seed    secret.Value `json:"seed,omitzero"`
	Created time.Time    `json:"created"`
	Retired time.Time    `json:"retired,omitzero"`
}

// place returns the name of the place of a private key.
func (k *storedLogKey) place() string { return logKeysCell + " " + hex.EncodeToString(k.Public) }

// LogOrigin returns the name of the log and its public keys to everybody; the zero value if none was set up.
func (r *Registrar) LogOrigin(ctx context.Context) (LogKeys, error) {
	s, _, err := r.storedLogKeys(ctx, "show log keys")
	if err != nil {
		return LogKeys{}, err
	}
	keys := LogKeys{Origin: s.Origin}
	for _, k := range s.Keys {
		keys.Keys = append(keys.Keys, LogKey{Public: k.Public, Created: k.Created, Retired: k.Retired})
	}
	return keys, nil
}

// LogKeys returns the keys of the log with their private halves; the zero value if none was set up. Conflict if that of the last key can't be decrypted:
// the log is not signed by earlier keys alone. Only an administrator may.
func (r *Registrar) LogKeys(ctx context.Context) (LogKeys, error) {
	const op = "show log keys"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return LogKeys{}, err
	}
	keys, _, err := r.logKeys(ctx, op)
	if n := len(keys.Keys); err == nil && n > 0 && keys.Keys[n-1].Lost {
		last := &keys.Keys[n-1]
		return LogKeys{}, r.OpenSecret((&storedLogKey{Public: last.Public}).place(), &last.sealed)
	}
	return keys, err
}

func (r *Registrar) storedLogKeys(ctx context.Context, op string) (s storedLogKeys, value []byte, err error) {
	if value, err = r.store.Cell(ctx, logKeysCell); err != nil || value == nil {
		return s, nil, tell(op, err)
	}
	if err := json.Unmarshal(value, &s); err != nil {
		return s, nil, refuse(op, stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, logKeysCell, err)
	}
	return s, value, nil
}

func (r *Registrar) logKeys(ctx context.Context, op string) (LogKeys, []byte, error) {
	s, value, err := r.storedLogKeys(ctx, op)
	if err != nil {
		return LogKeys{}, nil, err
	}
	keys := LogKeys{Origin: s.Origin, By: s.By, Changed: s.Changed}
	for i := range s.Keys {
		k := &s.Keys[i]
		kept := LogKey{Public: k.Public, Created: k.Created, Retired: k.Retired}
		if !k.Seed.IsZero() {
			err := k.Seed.Open(r.o.Secrets, k.place())
			if _, missing := errors.AsType[*secret.MissingError](err); missing {
				kept.Lost, kept.sealed = true, k.Seed
			} else if err != nil {
				return LogKeys{}, nil, tellSecret("decrypt secret", err)
			}
			kept.Seed = k.Seed.Clear()
		}
		keys.Keys = append(keys.Keys, kept)
	}
	return keys, value, nil
}

// SetLogKeys changes the keys of the log: change is called with what is there, and again if another writer was faster. Only an
// administrator may, by a session only with a fresh proof: who has the key signs for the registry.
func (r *Registrar) SetLogKeys(ctx context.Context, change func(*LogKeys) error) (LogKeys, error) {
	const op = "set log keys"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return LogKeys{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return LogKeys{}, err
	}
	for attempt := 1; ; attempt++ {
		keys, before, err := r.logKeys(ctx, op)
		if err != nil {
			return LogKeys{}, err
		}
		if err := change(&keys); err != nil {
			return LogKeys{}, tell(op, err)
		}
		if len(keys.Keys) > maxLogKeys {
			return LogKeys{}, refuse(op, stele.ID{}, stele.Exhausted, "log.too-many-keys", "the log has had {count} keys, and may have no more", len(keys.Keys))
		}
		keys.By, keys.Changed = auth.From(ctx).Name, r.now()
		after, key, err := r.sealLogKeys(ctx, &keys)
		if err != nil {
			return LogKeys{}, err
		}
		err = r.apply(ctx, op, underKey(&stele.Commit{Cells: []stele.CellChange{{Name: logKeysCell, Before: before, After: after}}}, key))
		if err == nil {
			return keys, nil
		}
		if !r.again(ctx, err, attempt) {
			return LogKeys{}, err
		}
	}
}

// sealLogKeys returns the keys as their cell has them, and under which key they are encrypted.
func (r *Registrar) sealLogKeys(ctx context.Context, keys *LogKeys) (value []byte, key string, err error) {
	s := storedLogKeys{Origin: keys.Origin, By: keys.By, Changed: keys.Changed}
	for _, k := range keys.Keys {
		kept := storedLogKey{Public: k.Public, Created: k.Created, Retired: k.Retired}
		if k.Lost {
			kept.Seed = k.sealed
		} else if k.Seed != nil {
			kept.Seed = secret.NewValue(k.Seed)
			if err := r.SealSecret(ctx, kept.place(), &kept.Seed); err != nil {
				return nil, "", err
			}
			key = kept.Seed.Key()
		}
		s.Keys = append(s.Keys, kept)
	}
	value, err = json.Marshal(&s)
	return value, key, tell("encrypt secret", err)
}

// sealLogKeysCell is a [SecretCodec] for the keys of the log; ours is false if the cell is another one.
func sealLogKeysCell(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) (after []byte, ours bool, err error) {
	if c.Name != logKeysCell {
		return nil, false, nil
	}
	var s storedLogKeys
	if err := json.Unmarshal(c.Value, &s); err != nil {
		return nil, true, refuse("encrypt secret", stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, c.Name, err)
	}
	changed := false
	for i := range s.Keys {
		k := &s.Keys[i]
		if k.Seed.IsZero() {
			continue
		}
		one, err := seal(k.place(), &k.Seed)
		if err != nil {
			return nil, true, err
		}
		changed = changed || one
	}
	if !changed {
		return nil, true, nil
	}
	after, err = json.Marshal(&s)
	return after, true, err
}
