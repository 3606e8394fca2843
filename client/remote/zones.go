package remote

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/publish/zonekey"
)

// zoneState returns the state of a zone, as the server reports it.
func zoneState(z apijson.ZoneState) stele.ZoneState {
	return stele.ZoneState{Zone: z.Zone, Base: z.Base, Last: z.Last, Since: z.Since, Shut: z.Shut, At: z.At}
}

// ZoneStates yields the states of zones, by name. Only an administrator may ask.
func (r *Registry) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	q := &ask{method: http.MethodGet, path: "zones", again: true, query: url.Values{"limit": {strconv.Itoa(pageSize)}}}
	return listed(ctx, r, "list zones", q, zoneState)
}

// CheckedZone is a zone, and the answers of its secondaries.
type CheckedZone struct {
	Zone        string
	Serial      uint32
	Shut        bool
	Secondaries []stele.SecondaryAnswer
}

// checkedZone returns a zone that the API shows.
func checkedZone(z *apijson.CheckedZone) CheckedZone {
	out := CheckedZone{Zone: z.Zone, Serial: z.Serial, Shut: z.Shut}
	for _, s := range z.Secondaries {
		one := stele.SecondaryAnswer{Zone: z.Zone, At: s.At, State: stele.SecondaryState(s.State), Why: s.Why}
		if s.Serial != nil {
			one.Serial = *s.Serial
		}
		out.Secondaries = append(out.Secondaries, one)
	}
	return out
}

// CheckSecondaries has the server ask the secondaries of a zone for the serials of their
// copies. Only an administrator may ask.
func (r *Registry) CheckSecondaries(ctx context.Context, zone string) (CheckedZone, error) {
	var z apijson.CheckedZone
	err := r.fetch(ctx, "check secondaries", &ask{method: http.MethodGet, path: pathOf("secondaries", zone), again: true}, &z)
	return checkedZone(&z), err
}

// ZoneFile says what WriteZone writes of a zone.
type ZoneFile struct {
	Signed bool   // with signatures
	Parent bool   // instead the records that the zone above must have
	Root   string // under which the keys of the scheme stand, for Parent; "" for the usual one
}

// WriteZone has the server write the zone of a namespace as a master file.
func (r *Registry) WriteZone(ctx context.Context, w io.Writer, key stele.NamespaceKey, want ZoneFile) error {
	const op = "export zone"
	query := url.Values{"signed": {strconv.FormatBool(want.Signed)}, "parent": {strconv.FormatBool(want.Parent)}}
	if want.Root != "" {
		query.Set("root", want.Root)
	}
	s, err := r.open(ctx, &ask{method: http.MethodGet, path: pathOf("zonefiles", key.String()), query: query, again: true}, nil, streamStill)
	if err != nil {
		return under(op, stele.ID{}, err)
	}
	defer s.Close()
	if _, err := io.Copy(w, s); err != nil {
		return tell(op, err)
	}
	return nil
}

// RaiseZone gives a zone a serial above the given one, or above its own if that is nil; see
// [registrar.Registrar.RaiseZone].
func (r *Registry) RaiseZone(ctx context.Context, zone string, above *uint32) (stele.ZoneState, error) {
	const op = "raise zone"
	var z apijson.ZoneState
	err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: pathOf("zones", zone), document: apijson.ZoneRaise{Above: above}}, &z)
	return zoneState(z), err
}

// ZoneKeys returns the keys of a namespace's zone, to its owners and to administrators.
// Parent is how long resolvers cache the DS records of the zone above; the usual time if 0.
func (r *Registry) ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error) {
	q := &ask{method: http.MethodGet, path: pathOf("zonekeys", key.String()), again: true}
	if parent > 0 {
		q.query = url.Values{"parentTTL": {strconv.FormatInt(int64(parent/time.Second), 10)}}
	}
	return r.zoneKeys(ctx, "show zone keys", q)
}

// ChangeZoneKeys changes the keys of a namespace's zone.
func (r *Registry) ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, change zonekey.Change) (*zonekey.Status, error) {
	const op = "set zone keys"
	// It is not retried: a retry could roll a key twice.
	return r.zoneKeys(ctx, op, &ask{method: http.MethodPost, path: pathOf("zonekeys", key.String()), document: change})
}

// zoneKeys sends a request that is answered with keys.
func (r *Registry) zoneKeys(ctx context.Context, op string, q *ask) (*zonekey.Status, error) {
	k := new(zonekey.Status)
	return k, r.fetch(ctx, op, q, k)
}

// SecondaryKeys yields the keys of secondaries, without their secrets, by name. Only an
// administrator may ask.
func (r *Registry) SecondaryKeys(ctx context.Context) iter.Seq2[zonekey.TSIGKey, error] {
	q := &ask{method: http.MethodGet, path: "tsig", again: true, query: url.Values{"limit": {strconv.Itoa(pageSize)}}}
	return listed(ctx, r, "show TSIG keys", q, func(k zonekey.TSIGKey) zonekey.TSIGKey { return k })
}

// AddSecondaryKey makes a TSIG key of secondaries, and returns its secret, which the server
// shows only once.
func (r *Registry) AddSecondaryKey(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error) {
	return r.secondaryKey(ctx, &ask{method: http.MethodPost, path: "tsig", document: apijson.NewTSIGKey{Name: name, Algorithm: algorithm}})
}

// RetireSecondaryKey ends the use of a TSIG key of secondaries.
func (r *Registry) RetireSecondaryKey(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	return r.secondaryKey(ctx, &ask{method: http.MethodDelete, path: pathOf("tsig", name), again: true})
}

// secondaryKey sends a request that is answered with a key of secondaries.
func (r *Registry) secondaryKey(ctx context.Context, q *ask) (*zonekey.TSIGKey, error) {
	k := new(zonekey.TSIGKey)
	return k, r.fetch(ctx, "set TSIG key", q, k)
}
