package pebble

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele/store/storetest"
)

// age makes a store what a program of version 1 or 2 would have left: without zones, marks
// of versions and the history of namespaces; in version 1 also without generations.
func age(t *testing.T, s *Store, version uint64) {
	t.Helper()
	db := s.current.Load().db
	err := errors.Join(
		db.DeleteRange([]byte{familyZone}, []byte{familyMark + 1}, pebbledb.Sync), // the history of namespaces is between them
		db.Delete(metaVersions, pebbledb.Sync),
		db.Set(metaReadable, binary.AppendUvarint(nil, version), pebbledb.Sync),
		db.Set(metaWritten, binary.AppendUvarint(nil, version), pebbledb.Sync))
	if version == 1 {
		err = errors.Join(err, db.Delete(metaWritten, pebbledb.Sync), db.Delete(metaGenerations, pebbledb.Sync))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeOld: a store of an earlier program gets the states of its zones, the index of
// times and the marks of what is withheld when it is opened, also if the program was cut
// off while it was brought up to date.
func TestUpgradeOld(t *testing.T) {
	for name, test := range map[string]struct {
		version uint64
		cut     bool
	}{"version 1": {1, false}, "version 2": {2, false}, "cut off after the zones": {2, true}} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			s, err := Open(t.Context(), folder, Options{Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			old := storetest.NewOld(t, s)
			age(t, s, test.version)
			mustClose(t, s)
			if test.cut {
				// The zones are there, and their version is; the marks of versions are not.
				if s, err = Open(t.Context(), folder, Options{Now: time.Now}); err != nil {
					t.Fatal(err)
				}
				db := s.current.Load().db
				if err := errors.Join(db.DeleteRange([]byte{familyMark}, []byte{familyMark + 1}, pebbledb.Sync), db.Delete(metaVersions, pebbledb.Sync)); err != nil {
					t.Fatal(err)
				}
				mustClose(t, s)
			}
			if s, err = Open(t.Context(), folder, Options{Now: time.Now}); err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, s)
			if got := numbersOf(t, s); got != ours {
				t.Errorf("the store has the numbers %+v, want %+v", got, ours)
			}
			old.Check(t, s)
		})
	}
}
