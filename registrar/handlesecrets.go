package registrar

import (
	"context"
	"encoding/base32"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/secret"
)

// HandleSecretCells begin the names of cells that have the secrets of handle values of type
// HS_SECKEY, encrypted. The record itself has a reference to the cell, so that no history,
// export or copy of the record has the secret. A cell stays when its value is replaced, as the
// version of the record does that refers to it.
const HandleSecretCells = "handle secret "

const (
	typeSecretKey = "HS_SECKEY"

	// secretReference begins the data of a value whose secret is in a cell.
	secretReference = "stele-secret:"

	maxHandleSecret = 1 << 10 // bytes
	secretNameBytes = 15
)

var secretNames = base32.StdEncoding.WithPadding(base32.NoPadding)

// handleSecret is a secret as its cell has it. Its place is its cell.
type handleSecret struct {
	Secret secret.Value `json:"secret"`
}

// isClearSecret reports whether a handle value is a secret that is not encrypted.
func isClearSecret(v *stele.HandleValue) bool {
	return destination.HasType(v.Type, typeSecretKey) && !isSecretReference(string(v.Data))
}

// isSecretReference reports whether the data of a value of type HS_SECKEY refer to a cell.
func isSecretReference(data string) bool {
	name, ok := strings.CutPrefix(data, secretReference)
	if !ok {
		return false
	}
	raw, err := secretNames.DecodeString(name)
	return err == nil && len(raw) == secretNameBytes
}

// hasClearSecret reports whether a record has a secret that is not encrypted.
func hasClearSecret(rec *stele.Record) bool {
	for i := range rec.Values {
		if isClearSecret(&rec.Values[i]) {
			return true
		}
	}
	return false
}

// hideSecrets adds to a commit the secrets of the handle values in its records, encrypted, and
// leaves references to them in the records.
func (r *Registrar) hideSecrets(ctx context.Context, op string, c *stele.Commit) error {
	if !slices.ContainsFunc(c.Records, hasClearSecret) {
		return nil
	}
	var key string
	for _, rec := range c.Records {
		values := slices.Clone(rec.Values) // the caller's own stay as they are until all is well
		for i := range values {
			v := &values[i]
			if !isClearSecret(v) {
				continue
			}
			if len(v.Data) > maxHandleSecret {
				return secretTooLong(op, rec.ID, v)
			}
			name, under, change, err := r.sealHandleSecret(ctx, v.Data)
			if err != nil {
				return err
			}
			v.Data, key = []byte(secretReference+name), under
			c.Cells = append(c.Cells, change)
		}
		rec.Values = values
	}
	underKey(c, key)
	return nil
}

// secretTooLong refuses a secret.
func secretTooLong(op string, id stele.ID, v *stele.HandleValue) error {
	return refuse(op, id, stele.Invalid, "handle-value.secret-too-long", "the secret of the value {index} has {size} bytes; {most} are the most", v.Index, len(v.Data), maxHandleSecret)
}

// tooLongSecret returns a value of a record whose secret is too long; nil if there is none.
func tooLongSecret(rec *stele.Record) *stele.HandleValue {
	for i := range rec.Values {
		if v := &rec.Values[i]; isClearSecret(v) && len(v.Data) > maxHandleSecret {
			return v
		}
	}
	return nil
}

// sealHandleSecret encrypts a secret for a cell of a new name.
func (r *Registrar) sealHandleSecret(ctx context.Context, clear []byte) (name, key string, change stele.CellChange, err error) {
	raw := make([]byte, secretNameBytes)
	if _, err := io.ReadFull(r.o.Rand, raw); err != nil {
		return "", "", change, refuse("encrypt secret", stele.ID{}, stele.Unavailable, "registry.random-unavailable", "the system gives no random bytes: {cause}", err)
	}
	name = secretNames.EncodeToString(raw)
	s := handleSecret{Secret: secret.NewValue(clear)}
	if err := r.SealSecret(ctx, HandleSecretCells+name, &s.Secret); err != nil {
		return "", "", change, err
	}
	value, err := json.Marshal(&s)
	if err != nil {
		return "", "", change, tell("encrypt secret", err)
	}
	return name, s.Secret.Key(), stele.CellChange{Name: HandleSecretCells + name, After: value}, nil
}

// HandleSecret returns the secret of a value of type HS_SECKEY. The caller is a server that
// compares it with what a client proves, and shows it to no client. NotFound if the value refers to
// a secret that is not in this registry.
func (r *Registrar) HandleSecret(ctx context.Context, v *stele.HandleValue) ([]byte, error) {
	const op = "read secret"
	if !isSecretReference(string(v.Data)) {
		return v.Data, nil // as an earlier version of the program kept it
	}
	cell := HandleSecretCells + strings.TrimPrefix(string(v.Data), secretReference)
	value, err := r.store.Cell(ctx, cell)
	if err != nil {
		return nil, tell(op, err)
	}
	if value == nil {
		return nil, refuse(op, stele.ID{}, stele.NotFound, "handle-value.secret-missing", "the secret of the value {index} is not in this registry; write the value again", v.Index)
	}
	var s handleSecret
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, refuse(op, stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, cell, err)
	}
	if err := r.OpenSecret(cell, &s.Secret); err != nil {
		return nil, err
	}
	return s.Secret.Clear(), nil
}

// sealHandleCell is a [SecretCodec] for secrets of handle values; ours is false if the cell is
// another one.
func sealHandleCell(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) (after []byte, ours bool, err error) {
	if !strings.HasPrefix(c.Name, HandleSecretCells) {
		return nil, false, nil
	}
	var s handleSecret
	if err := json.Unmarshal(c.Value, &s); err != nil {
		return nil, true, refuse("encrypt secret", stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, c.Name, err)
	}
	changed, err := seal(c.Name, &s.Secret)
	if err != nil || !changed {
		return nil, true, err
	}
	after, err = json.Marshal(&s)
	return after, true, err
}
