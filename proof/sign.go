package proof

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"io"
	"slices"

	"github.com/stele-id/stele"
)

// Digest reads all of what is signed, and notes its size and digest in the signature. It calls
// progress with the size of each piece, and ends early when the context does.
func Digest(ctx context.Context, from io.Reader, s *stele.Signature, progress func(n int)) error {
	sum := sha256.New()
	size := uint64(0)
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.Read(buf)
		sum.Write(buf[:n]) // never fails
		size += uint64(n)
		progress(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	s.Size = size
	sum.Sum(s.SHA256[:0])
	return nil
}

// AddSignature signs what the signature says of a record's own identifier, and adds it to the
// record. With replace it takes the place of all signatures of the same media type.
// Otherwise, if the key signed the same before, it returns that signature, and changes nothing.
// Conflict if the record has as many signatures as it can have.
func AddSignature(rec *stele.Record, key crypto.Signer, s stele.Signature, replace bool) (made stele.Signature, before bool, err error) {
	if made, err = Sign(key, rec.ID, s); err != nil {
		return made, false, err
	}
	if at := slices.IndexFunc(rec.Signatures, func(have stele.Signature) bool {
		return have.Key == made.Key && have.SHA256 == s.SHA256 && have.Size == s.Size && have.Type == s.Type
	}); at >= 0 && !replace {
		return rec.Signatures[at], true, nil
	}
	if replace {
		rec.Signatures = slices.DeleteFunc(rec.Signatures, func(have stele.Signature) bool { return have.Type == s.Type })
	}
	if len(rec.Signatures) >= stele.MaxSignatures {
		return made, false, stele.Errorf("sign", stele.ID{}, stele.Conflict, "sign.too-many-signatures", "it has {count} signatures, and can't have more; --replace takes the place of those of the same media type", len(rec.Signatures))
	}
	rec.Signatures = append(rec.Signatures, made)
	return made, false, nil
}
