package zonekey

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// TSIGKey is a secret that two name servers share, with which they sign the messages that
// they send each other (RFC 8945). Its name is a domain name, absolute and in lower case.
// Only [TSIGManager.Add] and [ReadTSIGKey] return keys with their secrets.
type TSIGKey struct {
	Name      string    `json:"name" example:"secondary1.example.org."`
	Algorithm string    `json:"algorithm" enum:"hmac-sha256,hmac-sha384,hmac-sha512"`
	Secret    []byte    `json:"secret,omitempty" doc:"In base64. It is shown once, when the key is made."`
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired,omitzero" doc:"Since when it is good for nothing."`
}

// tsigCell is a key as it is stored. The name of the cell has its name.
type tsigCell struct {
	Algorithm string       `json:"algorithm"`
	Secret    secret.Value `json:"secret,omitzero"`
	Created   time.Time    `json:"created"`
	Retired   time.Time    `json:"retired,omitzero"`
}

// Algorithms of TSIG keys. The others of RFC 8945, section 6, have truncated MACs, or use
// MD5 or SHA-1.
const (
	TSIGSHA256 = "hmac-sha256"
	TSIGSHA384 = "hmac-sha384"
	TSIGSHA512 = "hmac-sha512"
)

// TSIGAlgorithms returns the names of all algorithms, the usual one first.
func TSIGAlgorithms() []string { return []string{TSIGSHA256, TSIGSHA384, TSIGSHA512} }

// Hash returns the hash of the key's algorithm. It is never nil for a key that was added or
// read.
func (k *TSIGKey) Hash() func() hash.Hash { return tsigHash(k.Algorithm) }

// tsigHash returns the hash of an algorithm; nil if there is none.
func tsigHash(algorithm string) func() hash.Hash {
	switch algorithm {
	case TSIGSHA256:
		return sha256.New
	case TSIGSHA384:
		return sha512.New384
	case TSIGSHA512:
		return sha512.New
	}
	return nil
}

func tsigError(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "TSIG keys", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// ReadTSIGKey reads the key of a cell and its secret, which it decrypts. A key that is
// retired has no secret.
func ReadTSIGKey(c stele.Cell, secrets *secret.Ring) (*TSIGKey, error) {
	k, kept, err := readTSIGKey(c)
	if err != nil {
		return nil, err
	}
	if err := kept.Secret.Open(secrets, c.Name); err != nil {
		return nil, err
	}
	if k.Retired.IsZero() {
		k.Secret = kept.Secret.Clear()
	}
	return k, nil
}

// readTSIGKey reads the key of a cell, without its secret, and the cell's content.
func readTSIGKey(c stele.Cell) (*TSIGKey, *tsigCell, error) {
	name, kept := strings.TrimPrefix(c.Name, TSIGCellPrefix), new(tsigCell)
	if err := json.Unmarshal(c.Value, kept); err != nil || tsigHash(kept.Algorithm) == nil || kept.Retired.IsZero() == kept.Secret.IsZero() {
		return nil, nil, tsigError(stele.Internal, "tsig-key.unreadable", `the key "{name}" can't be read; restore it from a backup, or retire it and make another`, name)
	}
	return &TSIGKey{Name: name, Algorithm: kept.Algorithm, Created: kept.Created, Retired: kept.Retired}, kept, nil
}

// TSIGStore is where TSIG keys are written: the registrar. Its obligations are those of the
// registrar's methods.
type TSIGStore interface {
	TSIGKeys(ctx context.Context) ([]stele.Cell, error)
	SetTSIGKey(ctx context.Context, name string, change func(value []byte) ([]byte, error)) error
	SealSecret(ctx context.Context, place string, v *secret.Value) error
}

// TSIGManager adds, lists and retires TSIG keys, for administrators.
type TSIGManager struct {
	Store  TSIGStore
	Now    func() time.Time
	Random io.Reader
}

// Add makes a key of one of the [TSIGAlgorithms]. No other method returns the
// secret. Conflict if a key has or had that name.
func (m *TSIGManager) Add(ctx context.Context, name, algorithm string) (*TSIGKey, error) {
	name, err := tsigName(name)
	if err != nil {
		return nil, err
	}
	newHash := tsigHash(algorithm)
	if newHash == nil {
		return nil, tsigError(stele.Invalid, "tsig-key.algorithm-unknown", `"{algorithm}" is not an algorithm for keys; take one of {algorithms}`, algorithm, strings.Join(TSIGAlgorithms(), ", "))
	}
	// RFC 2104, section 3: as long as what the hash gives.
	k := &TSIGKey{Name: name, Algorithm: algorithm, Secret: make([]byte, newHash().Size()), Created: m.Now().UTC().Truncate(time.Second)}
	if _, err := io.ReadFull(m.Random, k.Secret); err != nil {
		return nil, tsigError(stele.Internal, "dnssec-key.not-made", "no key could be made: {cause}", err)
	}
	err = m.Store.SetTSIGKey(ctx, name, func(value []byte) ([]byte, error) {
		if value != nil {
			return nil, tsigError(stele.Conflict, "tsig-key.name-taken", "there is a key {name} already, or was one; choose another name", name)
		}
		kept := tsigCell{Algorithm: k.Algorithm, Secret: secret.NewValue(k.Secret), Created: k.Created}
		if err := m.Store.SealSecret(ctx, TSIGCellPrefix+name, &kept.Secret); err != nil {
			return nil, err
		}
		return json.Marshal(kept)
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// maxNameText bounds the text of an absolute domain name.
const maxNameText = 254

// tsigName returns the canonical form of a key's name.
func tsigName(name string) (string, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".") + "."
	if _, ok := dns.IsDomainName(name); !ok || len(name) > maxNameText {
		return "", tsigError(stele.Invalid, "tsig-key.name-invalid", `"{name}" is not a name for a key; write one such as secondary1.example.org.`, name)
	}
	return name, nil
}

// List returns all keys in order of their names, without their secrets.
func (m *TSIGManager) List(ctx context.Context) ([]TSIGKey, error) {
	cells, err := m.Store.TSIGKeys(ctx)
	if err != nil {
		return nil, err
	}
	var list []TSIGKey
	for _, c := range cells {
		k, _, err := readTSIGKey(c)
		if err != nil {
			return nil, err
		}
		list = append(list, *k)
	}
	return list, nil
}

// Retire ends the use of a key and erases its secret. No other key gets its name. NotFound
// if there is no such key.
func (m *TSIGManager) Retire(ctx context.Context, name string) (*TSIGKey, error) {
	name, err := tsigName(name)
	if err != nil {
		return nil, err
	}
	var k *TSIGKey
	err = m.Store.SetTSIGKey(ctx, name, func(value []byte) ([]byte, error) {
		if value == nil {
			return nil, tsigError(stele.NotFound, "tsig-key.unknown", "there is no key {name}; 'stele zone tsig ls' lists them", name)
		}
		if k, _, err = readTSIGKey(stele.Cell{Name: TSIGCellPrefix + name, Value: value}); err != nil {
			k = &TSIGKey{Name: name, Algorithm: TSIGSHA256} // it can be retired all the same
		}
		if k.Retired.IsZero() {
			k.Retired = m.Now().UTC().Truncate(time.Second)
		}
		return json.Marshal(tsigCell{Algorithm: k.Algorithm, Created: k.Created, Retired: k.Retired})
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}
