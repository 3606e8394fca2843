package registrar

import (
	"bytes"
	"context"

	"github.com/stele-id/stele"
)

// keepSecrets gives a record the references of the registered one, where both have the same
// secret: so what is imported twice is the same twice.
func (in *intake) keepSecrets(ctx context.Context, before, rec *stele.Record) error {
	for i := range rec.Values {
		v := &rec.Values[i]
		if !isClearSecret(v) {
			continue
		}
		for j := range before.Values {
			have := &before.Values[j]
			if have.Index != v.Index || !isSecretReference(string(have.Data)) {
				continue
			}
			known, err := in.HandleSecret(ctx, have)
			if err != nil && stele.KindOf(err) != stele.NotFound {
				return err
			}
			if err == nil && bytes.Equal(known, v.Data) {
				v.Data = have.Data
			}
		}
	}
	return nil
}

// findSecrets looks up the records that have secrets, if registered ones are not updated: a secret
// that will not be written is not encrypted either.
func (in *intake) findSecrets(ctx context.Context) error {
	if !in.o.Secrets {
		return nil
	}
	return in.lookUpAll(ctx, func(i int) bool { return in.expects(i) == 0 && hasClearSecret(in.records[i]) }, func(i int, have *stele.Record) {
		rec := in.records[i]
		if in.errs[i] = in.keepSecrets(ctx, have, rec); in.errs[i] == nil && hasClearSecret(rec) {
			in.errs[i] = differs(rec)
		}
	})
}

// sealedTogether is how many records get their secrets encrypted in one commit.
const sealedTogether = 500

// sealSecrets encrypts the secrets of the records that will be written, and commits them before the
// records, which refer to them. After a crash in between they are encrypted again, in other cells.
func (in *intake) sealSecrets(ctx context.Context) error {
	if !in.o.Secrets {
		return nil
	}
	var part []*stele.Record
	flush := func() error {
		c := &stele.Commit{Records: part}
		part = nil
		if err := in.hideSecrets(ctx, opImport, c); err != nil || len(c.Cells) == 0 {
			return err
		}
		return in.commit(ctx, opImport, &stele.Commit{Cells: c.Cells})
	}
	for i, rec := range in.records {
		if in.errs[i] != nil || !hasClearSecret(rec) {
			continue
		}
		if v := tooLongSecret(rec); v != nil {
			in.errs[i] = secretTooLong(opImport, rec.ID, v)
			continue
		}
		if part = append(part, rec); len(part) == sealedTogether {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
