package access

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/transparency"
)

// Log is the transparency log of a registry.
type Log interface {
	// SetUpLog makes sure that the log has a name and a key. A registry in this process gets a key if it has none; a server
	// makes its own. An empty origin does for a log that has a name.
	SetUpLog(ctx context.Context, origin string) (apijson.Log, error)

	// Prove returns the proof of a version of a record: of that which was current at a time if that is not zero, and of the
	// current one if the number is zero too. With full it has the whole document. The log of a registry in this process is brought
	// up to date and signed first.
	Prove(ctx context.Context, name stele.ID, version uint64, at time.Time, full bool) (*transparency.Proof, error)

	LogStatus(ctx context.Context) (apijson.Log, error)
	RollLogKey(ctx context.Context, overlap time.Duration) (apijson.Log, error)
	RetireLogKeys(ctx context.Context) (apijson.Log, error)
}

// SetUpLog makes the first key of the log, if there is none.
func (f *Local) SetUpLog(ctx context.Context, origin string) (apijson.Log, error) {
	have, err := f.Registry.LogPublicKeys(ctx)
	if err == nil && (have == nil || origin != "" && origin != have.Origin) { // a key that is lost can be rolled, and need not be decrypted for it
		_, err = f.Registry.SetUpLog(ctx, origin)
	}
	if err != nil {
		return apijson.Log{}, err
	}
	return f.Registry.LogStatus(ctx)
}

// Prove brings the log up to date, signs a checkpoint, and proves a version of a record.
func (f *Local) Prove(ctx context.Context, name stele.ID, version uint64, at time.Time, full bool) (*transparency.Proof, error) {
	if _, err := f.Disclose(ctx, name, version, at); err != nil {
		return nil, err
	}
	keys, err := f.Registry.SetUpLog(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := f.Registry.SignLog(ctx, keys, nil); err != nil {
		return nil, err
	}
	return f.Registry.Prove(ctx, name, version, at, full)
}

// LogStatus returns how the log is.
func (f *Local) LogStatus(ctx context.Context) (apijson.Log, error) { return f.Registry.LogStatus(ctx) }

// RollLogKey makes a new key of the log, which signs together with those before it for an overlap.
func (f *Local) RollLogKey(ctx context.Context, overlap time.Duration) (apijson.Log, error) {
	if _, err := f.Registry.RollLogKey(ctx, overlap); err != nil {
		return apijson.Log{}, err
	}
	return f.Registry.LogStatus(ctx)
}

// RetireLogKeys ends the overlap of the keys of the log.
func (f *Local) RetireLogKeys(ctx context.Context) (apijson.Log, error) {
	if _, err := f.Registry.RetireLogKeys(ctx); err != nil {
		return apijson.Log{}, err
	}
	return f.Registry.LogStatus(ctx)
}

// SetUpLog makes sure that the server's log has a name, and that it is the one that is meant.
func (d *Remote) SetUpLog(ctx context.Context, origin string) (apijson.Log, error) {
	const op = "set up log"
	status, err := d.LogStatus(ctx)
	switch {
	case err != nil:
		return status, err
	case status.Origin == "":
		return status, stele.Errorf(op, stele.ID{}, stele.NotFound, "log.server-without-key", "the log of this server has no key; the server makes one when it starts with its public address (--base) or with --log-origin")
	case origin != "" && origin != status.Origin:
		return status, stele.Errorf(op, stele.ID{}, stele.Conflict, "log.name-kept", `the log is called "{origin}", and keeps its name: proofs have it; leave the other name out`, status.Origin)
	}
	return status, nil
}
