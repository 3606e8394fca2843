package proof

import (
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"

	"github.com/stele-id/stele"
)

// jwkDates are the members of a key (RFC 7517) that say when it is good, by the names
// that JWT has for them (RFC 7519, 4.1), and as OpenID Federation has them for expired
// and revoked keys.
type jwkDates struct {
	NotBefore *int64 `json:"nbf,omitempty"`
	Expires   *int64 `json:"exp,omitempty"`
	Revoked   *struct {
		At int64 `json:"revoked_at"`
	} `json:"revoked,omitempty"`
}

// jwkNumbers are the members that are the public key itself. Only these are passed to
// go-jose: it would read certificates too, which have no meaning here.
type jwkNumbers struct {
	Type  string `json:"kty"`
	Curve string `json:"crv,omitempty"`
	X     string `json:"x,omitempty"`
	Y     string `json:"y,omitempty"`
	N     string `json:"n,omitempty"`
	E     string `json:"e,omitempty"`
}

// JWKS returns keys as a JWK Set (RFC 7517, section 5), application/jwk-set+json.
func JWKS(keys []stele.SigningKey) ([]byte, error) {
	set := struct {
		Keys []map[string]any `json:"keys"`
	}{Keys: []map[string]any{}}
	for _, k := range keys {
		jwk, err := toJWK(k)
		if err != nil {
			return nil, invalid("write the keys", err)
		}
		set.Keys = append(set.Keys, jwk)
	}
	b, err := json.Marshal(set)
	return append(b, '\n'), err
}

func toJWK(k stele.SigningKey) (jwk map[string]any, err error) {
	public, err := check(k)
	if err != nil {
		return nil, err
	}
	b, err := jose.JSONWebKey{Key: public, KeyID: k.ID, Algorithm: string(algorithms[k.Algorithm]), Use: "sig"}.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &jwk); err != nil {
		return nil, err
	}
	jwk["nbf"] = k.Created.Unix()
	if !k.Expires.IsZero() {
		jwk["exp"] = k.Expires.Unix()
	}
	if !k.Revoked.IsZero() {
		jwk["revoked"] = map[string]int64{"revoked_at": k.Revoked.Unix()}
	}
	return jwk, nil
}

// ParseJWKS reads a JWK Set. It ignores keys of other kinds and for other uses (RFC 7517,
// section 5). A key that is one of ours must be what it says (see [Check]), and public.
func ParseJWKS(data []byte) ([]stele.SigningKey, error) {
	const op = "read the keys"
	if len(data) > maxDocument {
		return nil, invalid(op, stele.Messagef("document.too-large", "the document has {size} bytes; {most} are the most", len(data), maxDocument))
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil || set.Keys == nil {
		return nil, invalid(op, stele.Messagef("jwks.malformed", "this is not a JWK Set; it is a JSON object with a list named keys"))
	}
	if len(set.Keys) > MaxKeys {
		return nil, invalid(op, stele.Messagef("jwks.too-many-keys", "there are {count} keys; {most} are the most", len(set.Keys), MaxKeys))
	}
	var keys []stele.SigningKey
	for i, raw := range set.Keys {
		k, ours, err := fromJWK(raw)
		if err != nil {
			return nil, invalid(op, fmt.Errorf("keys[%d]: %w", i, err))
		}
		if ours {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// fromJWK reads a key; ours is false if it is of another kind.
func fromJWK(raw []byte) (k stele.SigningKey, ours bool, err error) {
	var shape struct {
		Use       string `json:"use"`
		Algorithm string `json:"alg"`
		ID        string `json:"kid"`
		Private   any    `json:"d"`
		jwkNumbers
		jwkDates
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return k, false, stele.Messagef("jwk.malformed", "it is not a JWK")
	}
	if shape.Private != nil {
		return k, false, stele.Messagef("jwk.private", "it is a private key; its publisher must revoke it")
	}
	switch kind := shape.Type + " " + shape.Curve; {
	case shape.Use != "" && shape.Use != "sig":
		return k, false, nil
	case kind != "OKP Ed25519" && kind != "EC P-256" && kind != "RSA ":
		return k, false, nil
	}
	public, err := shape.jwkNumbers.read()
	if err != nil {
		return k, false, err
	}
	if k, err = PublicKey(public, time.Unix(0, 0)); err != nil {
		return k, false, err
	}
	switch {
	case shape.ID != k.ID:
		return k, false, stele.Messagef("jwk.kid-not-thumbprint", `its kid is "{id}"; its thumbprint is "{thumbprint}"`, shape.ID, k.ID)
	case shape.Algorithm != string(algorithms[k.Algorithm]):
		return k, false, stele.Messagef("jwk.algorithm-differs", `its alg is "{algorithm}"; a key of its kind signs with "{expected}"`, shape.Algorithm, algorithms[k.Algorithm])
	}
	return k, true, shape.dates(&k)
}

func (n jwkNumbers) read() (crypto.PublicKey, error) {
	b, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(b); err != nil || !jwk.Valid() {
		return nil, stele.Messagef("jwk.not-a-public-key", "its numbers are not a public key")
	}
	return jwk.Key, nil
}

// dates sets the time in which the key is valid.
func (d *jwkDates) dates(k *stele.SigningKey) error {
	if d.NotBefore == nil {
		return stele.Messagef("jwk.not-before-missing", "it does not say from when on it is good; nbf is missing")
	}
	read := func(to *time.Time, seconds int64) error {
		if seconds < 0 || seconds > 253_402_300_799 { // the year 9999 ends
			return stele.Messagef("jwk.not-a-time", "{seconds} is not a time", seconds)
		}
		*to = time.Unix(seconds, 0).UTC()
		return nil
	}
	err := read(&k.Created, *d.NotBefore)
	if d.Expires != nil {
		err = errors.Join(err, read(&k.Expires, *d.Expires))
	}
	if d.Revoked != nil {
		err = errors.Join(err, read(&k.Revoked, d.Revoked.At))
	}
	return err
}
