package registrar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/secret"
)

// secretCell holds the identifier of the key under which secrets are encrypted from now
// on. All servers of a registry use that one, whatever other keys they were given.
const secretCell = "secret key"

// secretMarks begin the names of the cells that hold secrets.
var secretMarks = []string{zonekey.CellPrefix, zonekey.TSIGCellPrefix, password.Cells, LetterCells, HandleSecretCells, handleSiteCell, logKeysCell}

// LetterCells are the cells of letters that wait to be sent.
const LetterCells = WorkCells + "letter "

// SealedLetter is a letter as it is kept: it may have a one-time link in it. Its place is its cell.
type SealedLetter struct {
	Letter secret.Value `json:"letter"`
}

// sealLetter is a [SecretCodec] for letters; isLetter is false if the cell is another one.
func sealLetter(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) (after []byte, isLetter bool, err error) {
	if !strings.HasPrefix(c.Name, LetterCells) {
		return nil, false, nil
	}
	var l SealedLetter
	if err := json.Unmarshal(c.Value, &l); err != nil {
		return nil, true, refuse("encrypt secret", stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, c.Name, err)
	}
	changed, err := seal(c.Name, &l.Letter)
	if err != nil || !changed {
		return nil, true, err
	}
	after, err = json.Marshal(&l)
	return after, true, err
}

// SecretCodec finds the secret in a cell: it calls seal with the secret and with the name
// of the place that the secret belongs to, and returns the new value of the cell if seal
// reports a change, or nil. The protocol that wrote the cell provides it.
type SecretCodec func(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) ([]byte, error)

// withPasswords returns a codec that also knows the cells that the registrar writes itself.
func withPasswords(codec SecretCodec) SecretCodec {
	return func(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) ([]byte, error) {
		if after, isPassword, err := password.SealCell(c, seal); isPassword {
			return after, err
		}
		if after, isLetter, err := sealLetter(c, seal); isLetter {
			return after, err
		}
		if after, ours, err := sealHandleCell(c, seal); ours {
			return after, err
		}
		if after, ours, err := sealSiteCell(c, seal); ours {
			return after, err
		}
		if after, ours, err := sealLogKeysCell(c, seal); ours {
			return after, err
		}
		return codec(c, seal)
	}
}

// SealSecret encrypts a secret for the place with this name, with the key that the
// registry uses. The first secret of a registry decides which key that is.
func (r *Registrar) SealSecret(ctx context.Context, place string, v *secret.Value) error {
	const op = "encrypt secret"
	id, err := r.secretKey(ctx, op)
	if err != nil {
		return err
	}
	if id == "" {
		if id, err = r.firstSecretKey(ctx, op); err != nil {
			return err
		}
	}
	key, err := r.o.Secrets.Key(id)
	if err != nil {
		return tellSecret(op, err)
	}
	_, err = v.Seal(key, place)
	return tellSecret(op, err)
}

// OpenSecret decrypts a secret of the place with this name.
func (r *Registrar) OpenSecret(place string, v *secret.Value) error {
	return tellSecret("decrypt secret", v.Open(r.o.Secrets, place))
}

// tellSecret makes one of our errors of one about keys.
func tellSecret(op string, err error) error {
	var missing *secret.MissingError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, secret.ErrNoKey):
		return refuse(op, stele.ID{}, stele.Conflict, "registry.no-secret-key", "{cause}; secrets are stored encrypted only, so make a key with 'stele secret keygen FILE', and name the file with --secret-key-file, the same for each server of the registry", secret.ErrNoKey)
	case errors.As(err, &missing):
		return refuse(op, stele.ID{}, stele.Conflict, "registry.secret-key-not-at-hand", "this registry encrypts secrets under the key {key}, which is not in {where}; put the key there from its copy, or if it is lost use another one with 'stele secret rotate --lost'", missing.Key, missing.Where)
	}
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return refuse(op, stele.ID{}, stele.Internal, "", "{cause}", err)
}

// secretKey returns the identifier of the key that the registry uses; "" if it uses none
// yet.
func (r *Registrar) secretKey(ctx context.Context, op string) (string, error) {
	id, err := r.store.Cell(ctx, secretCell)
	return string(id), tell(op, err)
}

// firstSecretKey decides which key the registry uses: the last one of this process.
func (r *Registrar) firstSecretKey(ctx context.Context, op string) (id string, err error) {
	keys, err := r.o.Secrets.Keys()
	switch {
	case errors.Is(err, secret.ErrNoKey):
		made, err := r.o.Secrets.Make()
		if err != nil {
			return "", tellSecret(op, err)
		}
		id = made.ID()
	case err != nil:
		return "", tellSecret(op, err)
	default:
		id = keys[len(keys)-1].ID()
	}
	err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: secretCell, After: []byte(id)}}})
	if stele.KindOf(err) == stele.Conflict && !errors.Is(err, stele.ErrSealed) { // another process was faster
		return r.secretKey(ctx, op)
	}
	return id, err
}

// underKey adds to a commit that writes secrets the condition that the registry still uses
// the key that it used when they were encrypted. So no secret is left under a key that a
// rotation has replaced meanwhile.
func underKey(c *stele.Commit, id string) *stele.Commit {
	if id != "" {
		c.Cells = append(c.Cells, stele.CellChange{Name: secretCell, Before: []byte(id), After: []byte(id)})
	}
	return c
}

// SecretKey is a key that encrypts secrets of the registry, or could.
type SecretKey struct {
	ID      string // "" stands for secrets that are not encrypted yet
	Current bool   // new secrets are encrypted under it
	Present bool   // this process has it
	Secrets int    // that are encrypted under it
}

// SecretKeys returns the keys that this process has or that the registry needs, in order
// of their identifiers. Only an administrator may.
func (r *Registrar) SecretKeys(ctx context.Context, codec SecretCodec) ([]SecretKey, error) {
	const op = "show secret keys"
	codec = withPasswords(codec)
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	current, err := r.secretKey(ctx, op)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]*SecretKey)
	add := func(id string) *SecretKey {
		if keys[id] == nil {
			keys[id] = &SecretKey{ID: id, Current: id != "" && id == current}
		}
		return keys[id]
	}
	held, err := r.o.Secrets.Keys()
	if err != nil && !errors.Is(err, secret.ErrNoKey) {
		return nil, tellSecret(op, err)
	}
	for _, k := range held {
		add(k.ID()).Present = true
	}
	if current != "" {
		add(current)
	}
	for c, err := range r.secretCells(ctx) {
		if err != nil {
			return nil, tell(op, err)
		}
		// A damaged cell is reported where it is used.
		_, _ = codec(c, func(_ string, v *secret.Value) (bool, error) {
			add(v.Key()).Secrets++
			return false, nil
		})
	}
	var list []SecretKey
	for _, k := range keys {
		list = append(list, *k)
	}
	slices.SortFunc(list, func(a, b SecretKey) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// secretCells yields the cells that may hold secrets.
func (r *Registrar) secretCells(ctx context.Context) func(yield func(stele.Cell, error) bool) {
	return func(yield func(stele.Cell, error) bool) {
		for _, mark := range secretMarks {
			for c, err := range r.store.Cells(ctx, mark, "") {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// Encrypted is what was done to encrypt secrets.
type Encrypted struct {
	Key   string         // under which secrets are encrypted now; "" if there is none
	Clear int            // that were not encrypted before
	Moved int            // that were encrypted under another key before
	Lost  map[string]int // that could not be decrypted, by the key that is missing
}

// EncryptSecrets encrypts the secrets that an older program wrote in clear, under the key
// that the registry uses. It does nothing, and asks for no key, if there are none. Only an
// administrator may.
func (r *Registrar) EncryptSecrets(ctx context.Context, codec SecretCodec) (Encrypted, error) {
	const op = "encrypt secrets"
	codec = withPasswords(codec)
	var done Encrypted
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return done, err
	}
	var clear []stele.Cell
	for c, err := range r.secretCells(ctx) {
		if err != nil {
			return done, tell(op, err)
		}
		_, _ = codec(c, func(_ string, v *secret.Value) (bool, error) {
			if v.Key() == "" {
				clear = append(clear, c)
			}
			return false, nil
		})
	}
	for _, c := range clear {
		if err := r.encryptCell(ctx, op, c, codec, &done, func(v *secret.Value) bool { return v.Key() == "" }); err != nil {
			return done, err
		}
	}
	return done, nil
}

// RotateSecrets makes the registry use another key: new secrets are encrypted under it,
// and existing ones are encrypted anew. If it is interrupted, calling it again does the
// rest. Conflict if secrets are encrypted under a key that this process does not have,
// unless lost is set, which leaves them as they are. Without a key it continues a
// rotation that was interrupted, or takes the last of the keys that this process has if
// that is not in use, or makes one if it may. Only an administrator may.
func (r *Registrar) RotateSecrets(ctx context.Context, to string, lost bool, codec SecretCodec) (Encrypted, error) {
	const op = "rotate secret key"
	codec = withPasswords(codec)
	done := Encrypted{Key: to, Lost: make(map[string]int)}
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return done, err
	}
	if to == "" {
		var err error
		if to, err = r.nextSecretKey(ctx, op, codec); err != nil {
			return done, err
		}
		done.Key = to
	}
	if _, err := r.o.Secrets.Key(to); err != nil {
		return done, refuse(op, stele.ID{}, stele.NotFound, "secret.rotate-key-unknown", `the key "{key}" is not in {where}; 'stele secret ls' lists those that are`, to, r.o.Secrets.Where())
	}
	if err := r.lostSecrets(ctx, op, codec, &done); err != nil {
		return done, err
	}
	for id, n := range done.Lost {
		if !lost {
			return done, refuse(op, stele.ID{}, stele.Conflict, "secret.rotate-old-key-missing", "{count} secrets are encrypted under the key {key}, which is not in {where}, so that they can't be encrypted anew; put the key there from its copy, or if it is lost give --lost and make these secrets anew", n, id, r.o.Secrets.Where())
		}
	}
	if err := r.useSecretKey(ctx, op, to); err != nil {
		return done, err
	}
	var cells []stele.Cell
	for c, err := range r.secretCells(ctx) {
		if err != nil {
			return done, tell(op, err)
		}
		cells = append(cells, c)
	}
	for _, c := range cells {
		if err := r.encryptCell(ctx, op, c, codec, &done, func(v *secret.Value) bool { return v.Key() != to }); err != nil {
			return done, err
		}
	}
	return done, nil
}

// nextSecretKey returns the key that a rotation makes the registry use.
func (r *Registrar) nextSecretKey(ctx context.Context, op string, codec SecretCodec) (string, error) {
	list, err := r.SecretKeys(ctx, codec)
	if err != nil {
		return "", err
	}
	current := ""
	for _, k := range list {
		if k.Current && k.Present {
			current = k.ID
		}
	}
	for _, k := range list {
		if current != "" && !k.Current && k.Secrets > 0 && (k.Present || k.ID == "") {
			return current, nil // a rotation was interrupted
		}
	}
	if _, err := r.o.Secrets.Key(""); err != nil { // the source is read again: a key may have been added
		if _, ok := errors.AsType[*secret.MissingError](err); !ok {
			return "", tellSecret(op, err)
		}
	}
	keys, err := r.o.Secrets.Keys()
	if err != nil && !errors.Is(err, secret.ErrNoKey) {
		return "", tellSecret(op, err)
	}
	if len(keys) > 0 && keys[len(keys)-1].ID() != current {
		return keys[len(keys)-1].ID(), nil
	}
	made, err := r.o.Secrets.Make()
	if errors.Is(err, secret.ErrNoKey) {
		return "", refuse(op, stele.ID{}, stele.Conflict, "secret.rotate-no-other-key", "there is no other key in {where}; add one with 'stele secret keygen FILE' on each server of the registry, and rotate then", r.o.Secrets.Where())
	}
	return made.ID(), tellSecret(op, err)
}

// lostSecrets counts the secrets that this process can't decrypt.
func (r *Registrar) lostSecrets(ctx context.Context, op string, codec SecretCodec, done *Encrypted) error {
	for c, err := range r.secretCells(ctx) {
		if err != nil {
			return tell(op, err)
		}
		_, err := codec(c, func(_ string, v *secret.Value) (bool, error) {
			if v.Key() != "" {
				if _, err := r.o.Secrets.Key(v.Key()); err != nil {
					done.Lost[v.Key()]++
				}
			}
			return false, nil
		})
		if err != nil {
			r.o.Log.WarnContext(ctx, "a secret can't be read", "cell", c.Name, "err", err)
		}
	}
	return nil
}

// useSecretKey makes the registry use a key for new secrets.
func (r *Registrar) useSecretKey(ctx context.Context, op, to string) error {
	for attempt := 1; ; attempt++ {
		before, err := r.store.Cell(ctx, secretCell)
		if err != nil || string(before) == to {
			return tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: secretCell, Before: before, After: []byte(to)}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// encryptCell encrypts the secret of a cell under the key that the registry uses, if it is
// one of those wanted, and counts it. A secret whose key is missing is left as it is.
func (r *Registrar) encryptCell(ctx context.Context, op string, c stele.Cell, codec SecretCodec, done *Encrypted, wanted func(*secret.Value) bool) error {
	for attempt := 1; ; attempt++ {
		wasClear := false
		var key string
		after, err := codec(c, func(place string, v *secret.Value) (bool, error) {
			if !wanted(v) {
				return false, nil
			}
			if wasClear = v.Key() == ""; !wasClear && v.Open(r.o.Secrets, place) != nil {
				return false, nil
			}
			before := v.Key()
			if err := r.SealSecret(ctx, place, v); err != nil {
				return false, err
			}
			key = v.Key()
			return key != before, nil
		})
		if key != "" {
			done.Key = key
		}
		if err != nil && stele.KindOf(err) == stele.Internal {
			r.o.Log.WarnContext(ctx, "a secret can't be read", "cell", c.Name, "err", err)
			return nil
		}
		if err != nil || after == nil {
			return err
		}
		err = r.apply(ctx, op, underKey(&stele.Commit{Cells: []stele.CellChange{{Name: c.Name, Before: c.Value, After: after}}}, key))
		switch {
		case err == nil && wasClear:
			done.Clear++
			return nil
		case err == nil:
			done.Moved++
			return nil
		case !r.again(ctx, err, attempt):
			return err
		}
		if c.Value, err = r.store.Cell(ctx, c.Name); err != nil || c.Value == nil {
			return tell(op, err)
		}
	}
}

// ReadySecrets decides which key the registry uses, if that is not decided, and makes a
// key if this process has none and may make one. Only an administrator may.
func (r *Registrar) ReadySecrets(ctx context.Context) error {
	const op = "encrypt secrets"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	id, err := r.secretKey(ctx, op)
	if err != nil || id != "" {
		return err
	}
	_, err = r.firstSecretKey(ctx, op)
	return err
}

// SecretsAt says where this process looks for keys that encrypt secrets.
func (r *Registrar) SecretsAt() string { return r.o.Secrets.Where() }

// IsKeyless reports whether an error says that this process was given no key at all.
func IsKeyless(err error) bool { return errors.Is(err, secret.ErrNoKey) }
