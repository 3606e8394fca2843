package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stele-id/stele"
)

// SecretKeys are the keys that encrypt secrets of a registry.
type SecretKeys struct {
	Keys  []SecretKey `json:"keys"`
	Clear int         `json:"clear"` // secrets that are not encrypted yet
}

// SecretKey is a key that encrypts secrets.
type SecretKey struct {
	ID      string `json:"id"`
	Current bool   `json:"current"` // new secrets are encrypted under it
	Present bool   `json:"present"` // the server has it
	Secrets int    `json:"secrets"` // that are encrypted under it
}

// SecretRotation is how secrets are to be encrypted.
type SecretRotation struct {
	Key  string `json:"key,omitempty"`  // "": the server chooses or makes one
	Lost bool   `json:"lost,omitempty"` // leave secrets as they are that can't be decrypted
}

// SecretRotated is what a rotation did.
type SecretRotated struct {
	Key   string         `json:"key"`
	Moved int            `json:"moved"`
	Lost  map[string]int `json:"lost,omitempty"`
}

// SecretKeys shows which keys encrypt secrets of the registry.
func (r *Registry) SecretKeys(ctx context.Context) (k SecretKeys, err error) {
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: "secrets", again: true})
	if err != nil {
		return k, under("show secret keys", stele.ID{}, err)
	}
	return k, a.decode(&k)
}

// RotateSecrets encrypts all secrets of the registry under another key.
func (r *Registry) RotateSecrets(ctx context.Context, want SecretRotation) (done SecretRotated, err error) {
	body, err := json.Marshal(want)
	if err != nil {
		return done, tell("rotate secret key", err)
	}
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: "secrets", media: jsonType, body: body})
	if err != nil {
		return done, under("rotate secret key", stele.ID{}, err)
	}
	return done, a.decode(&done)
}
