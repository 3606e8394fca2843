package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
)

// zoneState is what a server says about a zone.
type zoneState struct {
	Zone  string `json:"zone"`
	Base  uint32 `json:"base"`
	Last  uint64 `json:"last"`
	Since uint64 `json:"since"`
	Shut  bool   `json:"shut"`
	At    uint64 `json:"at"`
}

func (z zoneState) state() stele.ZoneState {
	return stele.ZoneState{Zone: z.Zone, Base: z.Base, Last: z.Last, Since: z.Since, Shut: z.Shut, At: z.At}
}

// ZoneStates yields what the server keeps about zones, by name. Only an administrator may
// ask.
func (r *Registry) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return func(yield func(stele.ZoneState, error) bool) {
		for z, err := range listed[zoneState](ctx, r, "list zones", &ask{method: http.MethodGet, path: "zones", again: true,
			query: url.Values{"limit": {strconv.Itoa(pageSize)}}}) {
			if !yield(z.state(), err) || err != nil {
				return
			}
		}
	}
}

// CheckedZone is a zone, and what its secondaries said.
type CheckedZone struct {
	Zone        string
	Serial      uint32
	Shut        bool
	Secondaries []stele.SecondaryAnswer
}

// UnmarshalJSON reads a zone as the API shows it.
func (z *CheckedZone) UnmarshalJSON(text []byte) error {
	var d struct {
		Zone        string
		Serial      uint32
		Shut        bool
		Secondaries []struct {
			At     string
			State  stele.SecondaryState
			Serial uint32
			Why    string
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	*z = CheckedZone{Zone: d.Zone, Serial: d.Serial, Shut: d.Shut}
	for _, s := range d.Secondaries {
		z.Secondaries = append(z.Secondaries, stele.SecondaryAnswer{Zone: d.Zone, At: s.At, State: s.State, Serial: s.Serial, Why: s.Why})
	}
	return nil
}

// CheckSecondaries has the server ask the secondaries of a zone for the serials of their
// copies. Only an administrator may.
func (r *Registry) CheckSecondaries(ctx context.Context, zone string) (CheckedZone, error) {
	var z CheckedZone
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: pathOf("secondaries", zone), again: true})
	if err != nil {
		return z, under("check secondaries", stele.ID{}, err)
	}
	err = a.decode(&z)
	return z, err
}

// ZoneFile says what is written of a zone.
type ZoneFile struct {
	Signed bool   // with signatures
	Parent bool   // the records that others must have instead
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

// RaiseZone gives a zone a serial above another one, or above its own if that is nil; see
// registrar.RaiseZone.
func (r *Registry) RaiseZone(ctx context.Context, zone string, above *uint32) (stele.ZoneState, error) {
	const op = "raise zone"
	body, err := json.Marshal(map[string]*uint32{"above": above})
	if above == nil {
		body = []byte("{}")
	}
	if err != nil {
		return stele.ZoneState{}, tell(op, err)
	}
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: pathOf("zones", zone), media: jsonType, body: body})
	if err != nil {
		return stele.ZoneState{}, under(op, stele.ID{}, err)
	}
	var z zoneState
	err = a.decode(&z)
	return z.state(), err
}
