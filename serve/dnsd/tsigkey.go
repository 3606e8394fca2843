package dnsd

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// TSIGKey is a secret that two name servers share, with which they sign what they tell
// each other (RFC 8945).
type TSIGKey struct {
	Name      string // a domain name, absolute and in lower case
	Algorithm string
	Secret    []byte
	Created   time.Time
	Retired   time.Time // its secret is erased then
}

// tsigCell is a key as it is stored. Its name is in that of the cell.
type tsigCell struct {
	Algorithm string       `json:"algorithm"`
	Secret    secret.Value `json:"secret,omitzero"`
	Created   time.Time    `json:"created"`
	Retired   time.Time    `json:"retired,omitzero"`
}

// Algorithms of TSIG keys. What RFC 8945, section 6, has beside them is shortened, or
// uses MD5 or SHA-1.
const (
	TSIGSHA256 = "hmac-sha256"
	TSIGSHA384 = "hmac-sha384"
	TSIGSHA512 = "hmac-sha512"
)

// TSIGAlgorithms returns the names of all algorithms, the usual one first.
func TSIGAlgorithms() []string { return []string{TSIGSHA256, TSIGSHA384, TSIGSHA512} }

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

func tsigError(kind stele.Kind, format string, args ...any) error {
	return &stele.Error{Op: "TSIG keys", Kind: kind, Err: fmt.Errorf(format, args...)}
}

// tsigCells is what the names of cells with such keys begin with.
const tsigCells = "tsig "

// readTSIGKey reads the key of a cell, without its secret, and the secret.
func readTSIGKey(c stele.Cell) (*TSIGKey, *tsigCell, error) {
	name, kept := strings.TrimPrefix(c.Name, tsigCells), new(tsigCell)
	if err := json.Unmarshal(c.Value, kept); err != nil || tsigHash(kept.Algorithm) == nil || kept.Retired.IsZero() == kept.Secret.IsZero() {
		return nil, nil, tsigError(stele.Internal, "the key %.100q can't be read; restore it from a backup, or retire it and make another", name)
	}
	return &TSIGKey{Name: name, Algorithm: kept.Algorithm, Created: kept.Created, Retired: kept.Retired}, kept, nil
}

// TSIGStore is where keys are written: the registrar. Its obligations are those of the
// registrar's methods.
type TSIGStore interface {
	TSIGKeys(ctx context.Context) ([]stele.Cell, error)
	SetTSIGKey(ctx context.Context, name string, change func(value []byte) ([]byte, error)) error
	SealSecret(ctx context.Context, place string, v *secret.Value) error
}

// TSIGKeys look after the keys of secondaries, for administrators.
type TSIGKeys struct {
	Store  TSIGStore
	Now    func() time.Time
	Random io.Reader
}

// Add makes a key. It alone tells the secret, once.
func (t *TSIGKeys) Add(ctx context.Context, name, algorithm string) (*TSIGKey, error) {
	name, err := tsigName(name)
	if err != nil {
		return nil, err
	}
	made := tsigHash(algorithm)
	if made == nil {
		return nil, tsigError(stele.Invalid, "%.40q is no algorithm for keys; take one of %s", algorithm, strings.Join(TSIGAlgorithms(), ", "))
	}
	// RFC 2104, section 3: as long as what the hash gives.
	k := &TSIGKey{Name: name, Algorithm: algorithm, Secret: make([]byte, made().Size()), Created: t.Now().UTC().Truncate(time.Second)}
	if _, err := io.ReadFull(t.Random, k.Secret); err != nil {
		return nil, tsigError(stele.Internal, "no key could be made: %w", err)
	}
	err = t.Store.SetTSIGKey(ctx, name, func(value []byte) ([]byte, error) {
		if value != nil {
			return nil, tsigError(stele.Conflict, "there is a key %s already, or was one; choose another name", name)
		}
		kept := tsigCell{Algorithm: k.Algorithm, Secret: secret.NewValue(k.Secret), Created: k.Created}
		if err := t.Store.SealSecret(ctx, tsigCells+name, &kept.Secret); err != nil {
			return nil, err
		}
		return json.Marshal(kept)
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// tsigName returns the canonical form of a key's name.
func tsigName(name string) (string, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".") + "."
	if _, ok := dns.IsDomainName(name); !ok || len(name) > maxNameText+1 {
		return "", tsigError(stele.Invalid, "%.100q is no name for a key; write one such as secondary1.example.org.", name)
	}
	return name, nil
}

// List returns all keys in order of their names, without their secrets.
func (t *TSIGKeys) List(ctx context.Context) ([]TSIGKey, error) {
	cells, err := t.Store.TSIGKeys(ctx)
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

// Retire makes a key good for nothing from now on, and erases its secret. Its name is
// not given to another one.
func (t *TSIGKeys) Retire(ctx context.Context, name string) (*TSIGKey, error) {
	name, err := tsigName(name)
	if err != nil {
		return nil, err
	}
	var k *TSIGKey
	err = t.Store.SetTSIGKey(ctx, name, func(value []byte) ([]byte, error) {
		if value == nil {
			return nil, tsigError(stele.NotFound, "there is no key %s; 'stele zone tsig ls' lists them", name)
		}
		if k, _, err = readTSIGKey(stele.Cell{Name: tsigCells + name, Value: value}); err != nil {
			k = &TSIGKey{Name: name, Algorithm: TSIGSHA256} // it can be retired all the same
		}
		if k.Retired.IsZero() {
			k.Retired = t.Now().UTC().Truncate(time.Second)
		}
		return json.Marshal(tsigCell{Algorithm: k.Algorithm, Created: k.Created, Retired: k.Retired})
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// keyring is the keys that secondaries may show, as they were a moment ago.
type keyring struct {
	keys map[string]*TSIGKey
	read time.Time
}

// keyringLife is how long keys are kept that another process may change.
const keyringLife = time.Minute

// tsigKey returns a key that is in use, by its name in lower case; nil if there is
// none. The store is asked once a minute, whatever others ask for.
func (z *Zones) tsigKey(ctx context.Context, name string) (*TSIGKey, error) {
	ring := z.ring.Load()
	if now := z.now(); ring == nil || now.Sub(ring.read) > keyringLife || now.Before(ring.read) {
		var err error
		if ring, err = z.readKeyring(ctx, now); err != nil {
			return nil, err
		}
	}
	return ring.keys[name], nil
}

func (z *Zones) readKeyring(ctx context.Context, now time.Time) (*keyring, error) {
	ring := &keyring{keys: make(map[string]*TSIGKey), read: now}
	z.mu.Lock()
	forgotten := z.forgotten
	z.mu.Unlock()
	for c, err := range z.store.Cells(ctx, tsigCells, "") {
		if err != nil {
			return nil, err
		}
		k, kept, err := readTSIGKey(c)
		if err == nil {
			err = kept.Secret.Open(z.secrets, c.Name)
		}
		switch {
		case err != nil:
			z.log.Error("a TSIG key is not used", "key", strings.TrimPrefix(c.Name, tsigCells), "err", err)
		case k.Retired.IsZero():
			k.Secret = kept.Secret.Clear()
			ring.keys[k.Name] = k
		}
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if forgotten == z.forgotten {
		z.ring.Store(ring)
	}
	return ring, nil
}

// errNoKey says that the key of a secondary is not there.
var errNoKey = errors.New("there is no such TSIG key, or it is retired; 'stele zone tsig ls' lists them")

// isSecondary reports whether a name server may have the whole zone: who comes from an
// address, and has shown a key, if key is not "".
func (z *zone) isSecondary(from peer, key string) bool {
	return slices.ContainsFunc(z.ns.Publication.Secondaries, func(s stele.Secondary) bool {
		return (s.Key == "" || s.Key == key) && (s.Network == "" || inNetwork(s.Network, from.addr))
	})
}
