package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/transparency"
)

// Prove returns the proof of a version of a record: of that which was current at a time if that is not zero, and of the current
// one if the number is zero too. With full it has the whole document. The server signs checkpoints at intervals: Prove
// waits for the first that has the version, as long as a client waits for a server that is not ready.
func (r *Registry) Prove(ctx context.Context, name stele.ID, version uint64, at time.Time, full bool) (*transparency.Proof, error) {
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.FormatUint(version, 10))
	}
	if !at.IsZero() {
		query.Set("at", at.UTC().Format(time.RFC3339Nano))
	}
	if full {
		query.Set("full", "true")
	}
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: pathOf("proof", name.String()), query: query, again: true})
	if err != nil {
		return nil, under("prove", name, err)
	}
	p := new(transparency.Proof)
	if err := p.UnmarshalText(a.body); err != nil {
		return nil, unread(stele.Reason(err))
	}
	return p, nil
}

// LogStatus returns how the transparency log of the server is.
func (r *Registry) LogStatus(ctx context.Context) (s apijson.Log, err error) {
	return s, r.fetch(ctx, "show log", &ask{method: http.MethodGet, path: "log", again: true}, &s)
}

// RollLogKey makes a new key of the log, which signs together with those before it for an overlap.
func (r *Registry) RollLogKey(ctx context.Context, overlap time.Duration) (apijson.Log, error) {
	seconds := uint64(max(overlap, 0) / time.Second)
	return r.changeLogKeys(ctx, "roll log key", apijson.LogKeyChange{Do: "roll", Overlap: &seconds})
}

// RetireLogKeys ends the overlap of the keys of the log.
func (r *Registry) RetireLogKeys(ctx context.Context) (apijson.Log, error) {
	return r.changeLogKeys(ctx, "retire log key", apijson.LogKeyChange{Do: "retire"})
}

func (r *Registry) changeLogKeys(ctx context.Context, op string, change apijson.LogKeyChange) (s apijson.Log, err error) {
	return s, r.fetch(ctx, op, &ask{method: http.MethodPost, path: "log", document: change}, &s)
}
