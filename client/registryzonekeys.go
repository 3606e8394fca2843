package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// ZoneKeys are the keys of a zone, without their private parts: those never leave the
// server.
type ZoneKeys struct {
	Zone string       `json:"zone"`
	Keys []ZoneKey    `json:"keys"`
	Next []ZoneStep   `json:"next"` // of rolls that are under way
	DS   []ZoneRecord `json:"ds"`   // that the zone above should have

	// Unsigned is from when a zone that is about to go without signatures may.
	Unsigned time.Time `json:"unsigned"`
}

// ZoneKey is a key of a zone.
type ZoneKey struct {
	Tag       string    `json:"tag"`
	Role      string    `json:"role"` // csk, ksk or zsk
	Algorithm string    `json:"algorithm"`
	Public    string    `json:"public"`
	State     string    `json:"state"`
	Prepared  time.Time `json:"prepared"`
	Published time.Time `json:"published"`
	Active    time.Time `json:"active"`
	Retired   time.Time `json:"retired"`
	Leaving   time.Time `json:"leaving"`
	Removed   time.Time `json:"removed"`
}

// ZoneStep is the next step of a roll.
type ZoneStep struct {
	Role   string    `json:"role"` // empty for a change of algorithm, which is of all keys
	Tag    string    `json:"tag"`
	State  string    `json:"state"`
	From   time.Time `json:"from"`
	Parent bool      `json:"parent"` // the zone above must have its DS record by then
}

// ZoneRecord is a record of the DNS.
type ZoneRecord struct {
	Owner  string `json:"owner"`
	Record string `json:"record"`
}

// ZoneKeysChange is what is to be done with the keys of a zone.
type ZoneKeysChange struct {
	Do          string `json:"do"` // sign, unsign, refresh, roll or next
	Mode        string `json:"mode,omitempty"`
	Algorithm   string `json:"algorithm,omitempty"`
	Split       bool   `json:"split,omitempty"`
	Role        string `json:"role,omitempty"`
	DSPublished bool   `json:"dsPublished,omitempty"`
	Force       bool   `json:"force,omitempty"`
	ParentTTL   uint32 `json:"parentTTL,omitempty"`
}

// ZoneKeys returns the keys of a namespace's zone, to its owners and to administrators.
// Parent is for how long others keep what the zone above says; the usual time if 0.
func (r *Registry) ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*ZoneKeys, error) {
	q := &ask{method: http.MethodGet, path: pathOf("zonekeys", key.String()), again: true}
	if parent > 0 {
		q.query = url.Values{"parentTTL": {strconv.FormatInt(int64(parent/time.Second), 10)}}
	}
	return r.zoneKeys(ctx, "show zone keys", q)
}

// ChangeZoneKeys does something with the keys of a namespace's zone.
func (r *Registry) ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, change ZoneKeysChange) (*ZoneKeys, error) {
	const op = "set zone keys"
	body, err := json.Marshal(change)
	if err != nil {
		return nil, tell(op, err)
	}
	// It is not sent again: what was done already would be done twice.
	return r.zoneKeys(ctx, op, &ask{method: http.MethodPost, path: pathOf("zonekeys", key.String()), media: jsonType, body: body})
}

// zoneKeys sends a request that is answered with keys.
func (r *Registry) zoneKeys(ctx context.Context, op string, q *ask) (*ZoneKeys, error) {
	a, err := r.call(ctx, q)
	if err != nil {
		return nil, under(op, stele.ID{}, err)
	}
	k := new(ZoneKeys)
	return k, a.decode(k)
}

// TSIGKey is a key that name servers show each other.
type TSIGKey struct {
	Name      string    `json:"name"`
	Algorithm string    `json:"algorithm"`
	Secret    []byte    `json:"secret"` // when it is made, and never again
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired"`
}

// SecondaryKeys yields the keys of secondaries, without their secrets, by name. Only an
// administrator may ask.
func (r *Registry) SecondaryKeys(ctx context.Context) iter.Seq2[TSIGKey, error] {
	return listed[TSIGKey](ctx, r, "show TSIG keys", &ask{method: http.MethodGet, path: "tsig", again: true,
		query: url.Values{"limit": {strconv.Itoa(pageSize)}}})
}

// AddSecondaryKey makes a key of secondaries, and tells its secret, which can't be had
// again.
func (r *Registry) AddSecondaryKey(ctx context.Context, name, algorithm string) (k TSIGKey, err error) {
	body, err := json.Marshal(map[string]string{"name": name, "algorithm": algorithm})
	if err != nil {
		return k, tell("set TSIG key", err)
	}
	return r.secondaryKey(ctx, &ask{method: http.MethodPost, path: "tsig", media: jsonType, body: body})
}

// RetireSecondaryKey makes a key of secondaries good for nothing.
func (r *Registry) RetireSecondaryKey(ctx context.Context, name string) (TSIGKey, error) {
	return r.secondaryKey(ctx, &ask{method: http.MethodDelete, path: pathOf("tsig", name), again: true})
}

// secondaryKey sends a request that is answered with a key of secondaries.
func (r *Registry) secondaryKey(ctx context.Context, q *ask) (k TSIGKey, err error) {
	a, err := r.call(ctx, q)
	if err != nil {
		return k, under("set TSIG key", stele.ID{}, err)
	}
	return k, a.decode(&k)
}
