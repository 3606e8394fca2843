package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// KeyKeeper looks after the keys of zones and of secondaries. Who may do what is judged by
// the registrar, with the context.
type KeyKeeper interface {
	// ZoneKeys returns the keys of a namespace's zone. Parent is for how long others
	// keep what the zone above says; the usual time if 0.
	ZoneKeys(ctx context.Context, ns stele.NamespaceKey, parent time.Duration) (*ZoneKeys, error)

	// ChangeZoneKeys does something with them, and returns how they are then.
	ChangeZoneKeys(ctx context.Context, ns stele.NamespaceKey, change ZoneKeysChange) (*ZoneKeys, error)

	// TSIGKeys returns the keys of secondaries, without their secrets.
	TSIGKeys(ctx context.Context) ([]TSIGKey, error)

	// AddTSIGKey makes a key. It alone tells the secret, once.
	AddTSIGKey(ctx context.Context, name, algorithm string) (*TSIGKey, error)

	// RetireTSIGKey makes a key good for nothing, and erases its secret.
	RetireTSIGKey(ctx context.Context, name string) (*TSIGKey, error)

	// SecretKeys returns the keys that encrypt secrets of the registry.
	SecretKeys(ctx context.Context) (*SecretKeys, error)

	// RotateSecrets encrypts all secrets under another key.
	RotateSecrets(ctx context.Context, want SecretRotation) (*SecretRotated, error)
}

// ZoneKeys are the keys of a zone. Private parts never leave the server.
type ZoneKeys struct {
	Zone string       `json:"zone" example:"paradisec.example."`
	Keys []ZoneKey    `json:"keys"`
	Next []ZoneStep   `json:"next,omitempty" doc:"The next steps of rolls that are under way."`
	DS   []ZoneRecord `json:"ds,omitempty" doc:"The records that the zone above should have."`

	Unsigned time.Time `json:"unsigned,omitzero" doc:"From when a zone that is about to go without signatures may. It is known once the zone above is said to have no DS records."`
}

// ZoneKey is a key of a zone.
type ZoneKey struct {
	Tag       string    `json:"tag" example:"31589"`
	Role      string    `json:"role" enum:"csk,ksk,zsk" doc:"What it signs: everything, the keys, or the zone."`
	Algorithm string    `json:"algorithm" example:"ecdsap256sha256"`
	Public    string    `json:"public" doc:"As in the DNSKEY record."`
	State     string    `json:"state" enum:"prepared,published,active,retired,leaving,removed"`
	Prepared  time.Time `json:"prepared,omitzero" doc:"Since when it signs without being in the zone, if the algorithm changes."`
	Published time.Time `json:"published,omitzero"`
	Active    time.Time `json:"active,omitzero"`
	Retired   time.Time `json:"retired,omitzero"`
	Leaving   time.Time `json:"leaving,omitzero" doc:"Since when it signs without being in the zone any more."`
	Removed   time.Time `json:"removed,omitzero"`
}

// ZoneStep is the next step of a roll.
type ZoneStep struct {
	Role   string    `json:"role,omitempty" doc:"Without it all keys change their algorithm."`
	Tag    string    `json:"tag" doc:"Of the key that it is about."`
	State  string    `json:"state" doc:"That the key comes into."`
	From   time.Time `json:"from" doc:"When it may be done."`
	Parent bool      `json:"parent,omitempty" doc:"The zone above must have the new key's DS record by then; none of the old keys, if the state is leaving."`
}

// ZoneRecord is a record of the DNS.
type ZoneRecord struct {
	Owner  string `json:"owner"`
	Record string `json:"record" doc:"TTL, class, type and data."`
}

// ZoneKeysChange is what is to be done with the keys of a zone.
type ZoneKeysChange struct {
	Do          string `json:"do" enum:"sign,unsign,refresh,roll,next" doc:"Sign the zone, and make its first keys if it has none; have it go without signatures; make all signatures of a zone in the mode transfer anew; begin to put a new key in the place of one; do the next step of that."`
	Mode        string `json:"mode,omitempty" enum:"online,transfer" doc:"How it is signed; for sign."`
	Algorithm   string `json:"algorithm,omitempty" maxLength:"40" doc:"Of the first keys, for sign; that all keys change to, for roll." example:"ed25519"`
	Split       bool   `json:"split,omitempty" doc:"Make two first keys, one for the keys and one for the zone; for sign."`
	Role        string `json:"role,omitempty" enum:"csk,ksk,zsk" doc:"Which key, for roll and next; without it the only kind there is."`
	DSPublished bool   `json:"dsPublished,omitempty" doc:"The zone above has the DS record of the new key, for next; none of the old keys, for next if the state is leaving; none at all, for unsign. What is gone there is noted first, and done when it is said again after the time that others keep it."`
	Force       bool   `json:"force,omitempty" doc:"Do it at once, even if resolvers still have the old keys; for next and unsign."`
	ParentTTL   uint32 `json:"parentTTL,omitempty" doc:"For how many seconds others keep what the zone above says; a day if 0."`
}

// TSIGKey is a key that name servers show each other.
type TSIGKey struct {
	Name      string    `json:"name" example:"secondary1.example.org."`
	Algorithm string    `json:"algorithm" enum:"hmac-sha256,hmac-sha384,hmac-sha512"`
	Secret    []byte    `json:"secret,omitempty" doc:"In base64. It is shown once, when the key is made."`
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired,omitzero" doc:"Since when it is good for nothing."`
}

// newTSIGKey is a key that is asked for.
type newTSIGKey struct {
	Name      string `json:"name" maxLength:"254" doc:"A domain name, which is never given to another key." example:"secondary2.example.org"`
	Algorithm string `json:"algorithm,omitempty" enum:"hmac-sha256,hmac-sha384,hmac-sha512" doc:"hmac-sha256 if nothing is said."`
}

// tsigPage is a part of a list of keys.
type tsigPage struct {
	Items []TSIGKey `json:"items"`
	Next  string    `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

func (h *Handler) zoneKeyOperations() []operation {
	const group = "Zones of the DNS"
	keys := answer{status: 200, about: "The keys as they are now.", value: ZoneKeys{}}
	return append(h.secretOperations(), []operation{{
		name: "getZoneKeys", method: http.MethodGet, path: "zonekeys/{prefix}", group: group, tail: prefixInPath,
		summary: "Show the keys of a namespace's zone",
		about:   "And what is to be done about them. Their private parts are never shown.",
		asks:    owner, scope: auth.ScopeAdmin,
		query:   []parameter{{name: "parentTTL", kind: numberKind, max: maxTTL, about: "For how many seconds others keep what the zone above says", usual: "86400"}},
		answers: []answer{keys},
		fails:   []int{404, 409},
		serve:   h.getZoneKeys,
	}, {
		name: "changeZoneKeys", method: http.MethodPost, path: "zonekeys/{prefix}", group: group, tail: prefixInPath,
		summary: "Sign a namespace's zone, or roll its keys",
		about:   "Each step of a roll waits until no resolver can have what was before the last one; it is refused before that time.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{jsonType}, limit: maxBody, value: ZoneKeysChange{}, example: `{"do":"sign","mode":"online"}`},
		answers: []answer{keys},
		fails:   []int{404, 409},
		serve:   h.changeZoneKeys,
	}, {
		name: "listTSIGKeys", method: http.MethodGet, path: "tsig", group: group,
		summary: "List the keys that name servers show each other",
		asks:    administrator, scope: auth.ScopeAdmin,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: tsigPage{}}},
		fails:   []int{404},
		serve:   h.listTSIGKeys,
	}, {
		name: "addTSIGKey", method: http.MethodPost, path: "tsig", group: group,
		summary: "Make a key for name servers",
		about:   "Its secret is in the answer, and is never told again.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{jsonType}, limit: maxBody, value: newTSIGKey{}, example: `{"name":"secondary2.example.org"}`},
		answers: []answer{{status: 201, about: "The key was made.", value: TSIGKey{}}},
		fails:   []int{404, 409},
		serve:   h.addTSIGKey,
	}, {
		name: "retireTSIGKey", method: http.MethodDelete, path: "tsig/{key}", group: group,
		tail:    parameter{name: "key", about: "The name of the key", example: "secondary1.example.org."},
		summary: "Make a key for name servers good for nothing",
		about:   "Its secret is erased. Its name is never given to another one.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The key as it is now.", value: TSIGKey{}}},
		fails:   []int{404},
		serve:   h.retireTSIGKey,
	}}...)
}

// maxTTL is the largest TTL of the DNS (RFC 2181, section 8).
const maxTTL = 1<<31 - 1

// keys returns who keeps keys; NotFound if nobody does.
func (c *call) keys() (KeyKeeper, error) {
	if k := c.h.o.Upkeep.Keys; k != nil {
		return k, nil
	}
	return nil, &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: errors.New("this server keeps no keys of zones")}
}

// zoneKeys returns the namespace in the path, if whoever asks may see to the keys of its
// zone, and who keeps them.
func (c *call) zoneKeys() (key stele.NamespaceKey, k KeyKeeper, err error) {
	if key, err = c.prefix(); err != nil {
		return key, nil, err
	}
	if _, err = c.h.o.Registrar.ZoneKeys(c.ctx, key); err != nil {
		return key, nil, err
	}
	k, err = c.keys()
	return key, k, err
}

// getZoneKeys shows keys.
func (h *Handler) getZoneKeys(c *call) error {
	key, k, err := c.zoneKeys()
	if err != nil {
		return err
	}
	status, err := k.ZoneKeys(c.ctx, key, time.Duration(c.number("parentTTL"))*time.Second)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, status)
}

// changeZoneKeys changes keys.
func (h *Handler) changeZoneKeys(c *call) error {
	var want ZoneKeysChange
	if err := c.decode(&want); err != nil {
		return err
	}
	key, k, err := c.zoneKeys()
	if err != nil {
		return err
	}
	status, err := k.ChangeZoneKeys(c.ctx, key, want)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, status)
}

// listTSIGKeys lists keys of secondaries. A cursor is the name of the last one.
func (h *Handler) listTSIGKeys(c *call) error {
	k, err := c.keys()
	if err != nil {
		return err
	}
	after, err := c.after()
	if err != nil {
		return err
	}
	list, err := k.TSIGKeys(c.ctx)
	if err != nil {
		return err
	}
	page := newPage(c)
	for _, one := range list {
		if one.Name <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(one.Name)
		if err := page.addValue(one); err != nil {
			return err
		}
	}
	return page.end()
}

// addTSIGKey makes a key of a secondary.
func (h *Handler) addTSIGKey(c *call) error {
	var want newTSIGKey
	if err := c.decode(&want); err != nil {
		return err
	}
	k, err := c.keys()
	if err != nil {
		return err
	}
	made, err := k.AddTSIGKey(c.ctx, want.Name, want.Algorithm)
	if err != nil {
		return err
	}
	return c.reply(http.StatusCreated, made)
}

// retireTSIGKey ends the use of a key of a secondary.
func (h *Handler) retireTSIGKey(c *call) error {
	k, err := c.keys()
	if err != nil {
		return err
	}
	retired, err := k.RetireTSIGKey(c.ctx, c.tail)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, retired)
}
