package registry

import (
	"context"
	"encoding/base64"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/transparency"
)

// LogStatus returns how the transparency log is, for all readers.
func (r *Registry) LogStatus(ctx context.Context) (d apijson.Log, err error) {
	s, err := r.Log.Status(ctx)
	if err != nil {
		return d, err
	}
	d = apijson.Log{Size: s.Size, Changes: s.Changes, Behind: s.Changes - min(s.Size, s.Changes)}
	for _, e := range s.Eras {
		d.Eras = append(d.Eras, apijson.LogEra{Generation: e.Generation.String(), Number: e.Number, Size: e.Size, Began: e.Began.UTC()})
	}
	keys, err := r.LogPublicKeys(ctx)
	if err != nil {
		return d, err
	}
	if keys != nil {
		d.Origin, d.Keys = keys.Origin, LogKeyDocuments(keys)
	}
	last, err := r.Log.Published(ctx)
	if err != nil || last.Note == "" {
		return d, err
	}
	c, err := transparency.ParseCheckpoint(last.Note)
	if err != nil {
		return d, &stele.Error{Op: "show log", Kind: stele.Internal, Err: stele.Reason(err)}
	}
	d.Checkpoint = &apijson.LogCheckpoint{Origin: c.Origin, Size: c.Size, Root: base64.StdEncoding.EncodeToString(c.Root[:]), At: last.At.UTC(), Note: last.Note}
	for _, w := range transparency.ReadCosignatures(last.Note) {
		d.Checkpoint.Cosignatures = append(d.Checkpoint.Cosignatures, apijson.LogCosignature{Witness: w.Witness, At: w.At})
	}
	return d, nil
}

// LogKeyDocuments returns the public keys of a log as the API shows them.
func LogKeyDocuments(keys *transparency.Keys) (list []apijson.LogKey) {
	for i, k := range keys.Public() {
		d := apijson.LogKey{Key: k.String(), Created: keys.List[i].Created.UTC()}
		if at := keys.List[i].Retired; !at.IsZero() {
			at = at.UTC()
			d.Retired = &at
		}
		list = append(list, d)
	}
	return list
}
