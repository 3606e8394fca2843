package pebble

import (
	"encoding/binary"
	"errors"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// numbers are the two numbers of a schema: of a program, or of a store.
type numbers struct {
	written  uint64 // the version of the table in keys.go
	readable uint64 // the oldest version whose programs may use the store
}

// ours are the numbers of this program.
var ours = numbers{written: schemaVersion, readable: readableFrom}

// migrations bring a store from one version to the next, the first from 1 to 2. The
// program is the only one that uses the store then. Each is durable when it returns, and
// may be begun again if the program was cut off.
var migrations = []func(s *Store, h *opening) error{
	(*Store).firstGeneration,
	(*Store).firstZones,
}

// checkSchema makes sure that this program may use the store, brings a store of an
// earlier version up to date, and gives a new store its version. A store of a later
// version that this program may use is left as it is.
func (s *Store) checkSchema(h *opening) error {
	have, found, err := readNumbers(h.db)
	switch {
	case err != nil:
		return h.damage("open", stele.ID{}, err)
	case !found:
		return s.beginSchema(h)
	case have.readable == 0 || have.written < have.readable:
		return refuse("open", stele.ID{}, stele.Internal, "store.version-missing", `the store in "{folder}" does not say which version it has; restore a backup`, s.folder)
	case have.readable > s.o.schema.written:
		return refuse("open", stele.ID{}, stele.Invalid, "store.version-too-new", `the store in "{folder}" has version {version} and can be used by programs of version {readable-from} and later; this program has version {program-version}: use a later program`, s.folder, have.written, have.readable, s.o.schema.written)
	}
	h.later = have.written > s.o.schema.written
	for ; have.written < s.o.schema.written; have.written++ {
		if i := have.written - 1; i < uint64(len(migrations)) {
			if err := migrations[i](s, h); err != nil {
				return err
			}
		}
		next := have.written + 1
		have.readable = max(have.readable, min(s.o.schema.readable, next))
		if err := s.setMeta(h, numbers{next, have.readable}.values()); err != nil {
			return err
		}
		s.log.Info("the store was brought up to date", "folder", s.folder, "version", next)
	}
	return nil
}

// readNumbers reads the numbers of a store. It may have none yet.
func readNumbers(db *pebbledb.DB) (n numbers, found bool, err error) {
	read := func(key []byte, into *uint64) (bool, error) {
		value, closer, err := db.Get(key)
		if errors.Is(err, pebbledb.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		defer closer.Close()
		if *into, err = parseUvarint(value); err != nil {
			*into = 0 // which no store has
		}
		return true, nil
	}
	if found, err = read(metaReadable, &n.readable); err != nil || !found {
		return n, found, err
	}
	written, err := read(metaWritten, &n.written)
	if !written {
		n.written = n.readable // as programs of version 1 wrote it
	}
	return n, true, err
}

// beginSchema gives its version to a store that has nothing yet.
func (s *Store) beginSchema(h *opening) error {
	if s.o.Existing {
		return missing(s.folder)
	}
	it, err := h.db.NewIter(nil)
	if err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	empty := !it.First()
	if err := it.Close(); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	if !empty {
		return refuse("open", stele.ID{}, stele.Invalid, "store.not-a-registry", `the folder "{folder}" has a database that is not a registry; use another folder`, s.folder)
	}
	values := s.o.schema.values()
	if values[string(metaGenerations)], err = stele.FirstGeneration(s.now()).MarshalText(); err != nil {
		return err
	}
	return s.setMeta(h, values)
}

// values returns both numbers as they are kept.
func (n numbers) values() map[string][]byte {
	return map[string][]byte{
		string(metaReadable): binary.AppendUvarint(nil, n.readable),
		string(metaWritten):  binary.AppendUvarint(nil, n.written),
	}
}

// setMeta writes values while the store is opened, all or none, and syncs them.
func (s *Store) setMeta(h *opening, values map[string][]byte) error {
	b := h.db.NewBatch()
	defer b.Close()
	var err error
	for key, value := range values {
		err = errors.Join(err, b.Set([]byte(key), value, nil))
	}
	err = errors.Join(err, h.db.Apply(b, pebbledb.Sync))
	if err := errors.Join(err, h.failstop.broken()); err != nil {
		return refuse("open", stele.ID{}, stele.Unavailable, "store.not-written", "the store can't be written: {cause}", err)
	}
	return nil
}

// SchemaVersion returns the version of what is kept, as keys.go has it.
func (s *Store) SchemaVersion() uint64 { return schemaVersion }
