package api

import (
	"net/http"

	"github.com/stele-id/stele/auth"
)

// SecretKeys are the keys that encrypt secrets of the registry. The keys themselves are
// never shown.
type SecretKeys struct {
	Keys  []SecretKey `json:"keys"`
	Clear int         `json:"clear,omitempty" doc:"How many secrets are not encrypted yet."`
}

// SecretKey is a key that encrypts secrets.
type SecretKey struct {
	ID      string `json:"id" example:"5f0c1d2e3a4b" doc:"Derived from the key, which it does not help to find."`
	Current bool   `json:"current,omitempty" doc:"New secrets are encrypted under it."`
	Present bool   `json:"present,omitempty" doc:"This server has it."`
	Secrets int    `json:"secrets" doc:"How many secrets are encrypted under it."`
}

// SecretRotation is how secrets are to be encrypted.
type SecretRotation struct {
	Key  string `json:"key,omitempty" maxLength:"40" doc:"Under which key. Without it a rotation that was interrupted goes on, or the last key of the server is taken, or one is made."`
	Lost bool   `json:"lost,omitempty" doc:"Leave secrets as they are whose key the server does not have."`
}

// SecretRotated is what a rotation did.
type SecretRotated struct {
	Key   string         `json:"key" doc:"Under which secrets are encrypted now."`
	Moved int            `json:"moved" doc:"How many were encrypted anew."`
	Lost  map[string]int `json:"lost,omitempty" doc:"How many could not be decrypted, by the key that is missing. They must be made anew."`
}

func (h *Handler) secretOperations() []operation {
	const group = "Secrets"
	return []operation{{
		name: "getSecretKeys", method: http.MethodGet, path: "secrets", group: group,
		summary: "Show which keys encrypt secrets of the registry",
		about:   "Secrets are private keys of zones and keys of secondaries.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The keys.", value: SecretKeys{}}},
		fails:   []int{404},
		serve:   h.getSecretKeys,
	}, {
		name: "rotateSecrets", method: http.MethodPost, path: "secrets", group: group,
		summary: "Encrypt all secrets under another key",
		about:   "The other servers of the registry must have that key before.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{jsonType}, limit: maxBody, value: SecretRotation{}, example: `{"key":"5f0c1d2e3a4b"}`},
		answers: []answer{{status: 200, about: "What was done.", value: SecretRotated{}}},
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
	var want SecretRotation
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
