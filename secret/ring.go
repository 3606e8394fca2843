package secret

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stele-id/stele"
)

// ErrNoKey says that a process was given no secret key at all.
var ErrNoKey = stele.Messagef("secret.no-key", "this process was given no secret key")

// MissingError says that a secret is encrypted under a key that this process does not
// have.
type MissingError struct {
	Key   string // identifier of the key
	Where string // where keys were looked for
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("it is encrypted under the secret key %s, which is not in %s; put the key there from its copy, or make the secret anew", e.Key, e.Where)
}

// Ring is the keys that a process was given. The nil Ring has none. It is used by many
// goroutines at once.
type Ring struct {
	source Source
	mu     sync.Mutex
	keys   []Key
	read   bool
	err    error
}

// NewRing returns the keys of a source. The ring reads the source when the first key is
// needed, and again when an unknown key is needed.
func NewRing(source Source) *Ring { return &Ring{source: source} }

// Where says where the keys come from.
func (r *Ring) Where() string {
	if r == nil {
		return "no place at all"
	}
	return r.source.String()
}

// Source returns where the keys come from.
func (r *Ring) Source() Source {
	if r == nil {
		return nil
	}
	return r.source
}

// Keys returns all keys, in the order of the source. The error is [ErrNoKey] if there is
// none.
func (r *Ring) Keys() ([]Key, error) {
	if r == nil {
		return nil, ErrNoKey
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read || r.err != nil {
		r.load()
	}
	return slices.Clone(r.keys), r.err
}

// load reads the source.
func (r *Ring) load() {
	keys, err := r.source.Keys()
	r.read = true
	if err == nil || len(r.keys) == 0 { // keys that were read once stay good
		r.keys, r.err = keys, err
	}
}

// Key returns the key with this identifier. The error is a [*MissingError] if there is
// none.
func (r *Ring) Key(id string) (Key, error) {
	keys, err := r.Keys()
	if k, ok := find(keys, id); ok {
		return k, nil
	}
	if err == nil && r != nil { // it may have been added meanwhile
		r.mu.Lock()
		r.load()
		keys, err = r.keys, r.err
		r.mu.Unlock()
		if k, ok := find(keys, id); ok {
			return k, nil
		}
	}
	if err != nil && !errors.Is(err, ErrNoKey) {
		return Key{}, err
	}
	return Key{}, &MissingError{id, r.Where()}
}

func find(keys []Key, id string) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.id == id })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// Open decrypts a secret of the place with this name.
func (r *Ring) Open(place string, s *Sealed) ([]byte, error) {
	k, err := r.Key(s.Key)
	if err != nil {
		return nil, err
	}
	return k.Open(place, s)
}

// Make makes the first key, if the source allows that.
func (r *Ring) Make() (Key, error) {
	if r == nil {
		return Key{}, ErrNoKey
	}
	m, ok := r.source.(Maker)
	if !ok {
		return Key{}, ErrNoKey
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := m.Make()
	if err == nil {
		r.load()
	}
	return k, err
}
