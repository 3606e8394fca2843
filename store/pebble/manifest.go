package pebble

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"

	"github.com/stele-id/stele"
)

// checkManifests reads the files in which Pebble keeps the list of its tables, before
// Pebble does. Where an entry is damaged Pebble takes the list to end, as after a
// crash, and then removes the tables that it does not know of: all that was written
// since would be lost silently. An entry that is cut off at the end of the file is what
// a crash leaves, and is harmless.
func (s *Store) checkManifests() error {
	names, err := s.fs.List(s.folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return refuse("open", stele.ID{}, stele.Unavailable, "store.folder-unreadable", `the folder "{folder}" can't be read: {cause}`, s.folder, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		if err := s.checkManifest(name); err != nil {
			return refuse("open", stele.ID{}, stele.Internal, "store.damaged-in-file", `the store in "{folder}" is damaged, in the file "{file}" ({cause}); restore a backup`, s.folder, name, err)
		}
	}
	return nil
}

func (s *Store) checkManifest(name string) error {
	f, err := s.fs.Open(s.fs.PathJoin(s.folder, name))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return checkChunks(text)
}

// checkChunks checks the sums of the chunks of a file in Pebble's record format
// (package record there): blocks of 32 KiB, in each of them chunks of a sum, a length,
// a type and data. The sum is of type and data.
func checkChunks(text []byte) error {
	const (
		blockSize = 32 << 10
		header    = 7
	)
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for at := 0; at+header <= len(text); {
		if left := blockSize - at%blockSize; left < header {
			at += left
			continue
		}
		sum, length, kind := binary.LittleEndian.Uint32(text[at:]), int(binary.LittleEndian.Uint16(text[at+4:])), text[at+6]
		if sum == 0 && length == 0 && kind == 0 {
			return nil // space that was taken ahead
		}
		end := at + header + length
		switch {
		case kind >= 5 && kind <= 8: // with the number of the log
			end += 4
		case kind >= 9 && kind <= 12: // and how far it is synced
			end += 12
		}
		if end > len(text) {
			return nil // cut off
		}
		crc := crc32.Checksum(text[at+6:end], castagnoli)
		if masked := (crc>>15 | crc<<17) + 0xa282ead8; masked != sum {
			return stele.Messagef("store.log-entry-sum-wrong", "the entry at byte {offset} has a wrong sum", at)
		}
		at = end
	}
	return nil
}
