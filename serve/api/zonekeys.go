package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/publish/zonekey"
)

// KeyManager looks after the keys of zones and of secondaries. The registrar judges what the
// caller in the context may do.
type KeyManager interface {
	// ZoneKeys returns the keys of a namespace's zone. Parent is for how long resolvers cache
	// the records of the zone above; the usual time if 0.
	ZoneKeys(ctx context.Context, ns stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error)

	// ChangeZoneKeys changes the keys, and returns their new status.
	ChangeZoneKeys(ctx context.Context, ns stele.NamespaceKey, change zonekey.Change) (*zonekey.Status, error)

	// TSIGKeys returns the keys of secondaries, without their secrets.
	TSIGKeys(ctx context.Context) ([]zonekey.TSIGKey, error)

	// AddTSIGKey makes a key. Only its result has the secret.
	AddTSIGKey(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error)

	// RetireTSIGKey disables a key, and erases its secret.
	RetireTSIGKey(ctx context.Context, name string) (*zonekey.TSIGKey, error)

	// SecretKeys returns the keys that encrypt secrets of the registry.
	SecretKeys(ctx context.Context) (*apijson.SecretKeys, error)

	// RotateSecrets encrypts all secrets under another key.
	RotateSecrets(ctx context.Context, want apijson.SecretRotation) (*apijson.SecretRotated, error)
}

// tsigPage is a part of a list of keys.
type tsigPage struct {
	Items []zonekey.TSIGKey `json:"items"`
	Next  string            `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

func (h *Handler) zoneKeyOperations() []operation {
	const group = "Zones of the DNS"
	keys := answer{status: 200, about: "The keys as they are now.", value: zonekey.Status{}}
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
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: zonekey.Change{}, example: `{"do":"sign","mode":"online"}`},
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
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewTSIGKey{}, example: `{"name":"secondary2.example.org"}`},
		answers: []answer{{status: 201, about: "The key was made.", value: zonekey.TSIGKey{}}},
		fails:   []int{404, 409},
		serve:   h.addTSIGKey,
	}, {
		name: "retireTSIGKey", method: http.MethodDelete, path: "tsig/{key}", group: group,
		tail:    parameter{name: "key", about: "The name of the key", example: "secondary1.example.org."},
		summary: "Retire a key of name servers",
		about:   "Its secret is erased. Its name is never given to another one.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The key as it is now.", value: zonekey.TSIGKey{}}},
		fails:   []int{404},
		serve:   h.retireTSIGKey,
	}}...)
}

// maxTTL is the largest TTL of the DNS (RFC 2181, section 8).
const maxTTL = 1<<31 - 1

// keys returns the manager of keys; NotFound if the server has none.
func (c *call) keys() (KeyManager, error) {
	if k := c.h.o.Upkeep.Keys; k != nil {
		return k, nil
	}
	return nil, &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("dnssec-key.unsupported-by-server", "this server keeps no keys of zones")}
}

// zoneKeys returns the namespace in the path, if the caller may see to the keys of its zone,
// and the manager of the keys.
func (c *call) zoneKeys() (key stele.NamespaceKey, k KeyManager, err error) {
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
	var want zonekey.Change
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
	var want apijson.NewTSIGKey
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

func (h *Handler) secretOperations() []operation {
	const group = "Secrets"
	return []operation{{
		name: "getSecretKeys", method: http.MethodGet, path: "secrets", group: group,
		summary: "Show which keys encrypt secrets of the registry",
		about:   "Secrets are private keys of zones and keys of secondaries.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The keys.", value: apijson.SecretKeys{}}},
		fails:   []int{404},
		serve:   h.getSecretKeys,
	}, {
		name: "rotateSecrets", method: http.MethodPost, path: "secrets", group: group,
		summary: "Encrypt all secrets with another key",
		about:   "The other servers of the registry must have that key before.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.SecretRotation{}, example: `{"key":"5f0c1d2e3a4b"}`},
		answers: []answer{{status: 200, about: "What was done.", value: apijson.SecretRotated{}}},
		fails:   []int{404, 409},
		serve:   h.rotateSecrets,
	}}
}

// getSecretKeys shows which keys encrypt secrets.
func (h *Handler) getSecretKeys(c *call) error {
	k, err := c.keys()
	if err != nil {
		return err
	}
	keys, err := k.SecretKeys(c.ctx)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, keys)
}

// rotateSecrets encrypts all secrets under another key.
func (h *Handler) rotateSecrets(c *call) error {
	var want apijson.SecretRotation
	if err := c.decode(&want); err != nil {
		return err
	}
	k, err := c.keys()
	if err != nil {
		return err
	}
	done, err := k.RotateSecrets(c.ctx, want)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, done)
}
