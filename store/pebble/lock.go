package pebble

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// lockFile is Pebble's own, so that its tools keep out too. holderFile is a remark
// for people beside it; nobody decides anything by it.
const (
	lockFile   = "LOCK"
	holderFile = "HOLDER"
)

// lock takes the folder for this process. It is held over all openings of Pebble.
func (s *Store) lock() (unlock func() error, err error) {
	held, err := s.fs.Lock(s.fs.PathJoin(s.folder, lockFile))
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "the folder can't be locked: %w", err)
	} else if err != nil {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "the folder %q is in use by %s; stop it, or ask it to do the work (%w)", s.folder, s.holder(), err)
	}
	holder := s.fs.PathJoin(s.folder, holderFile)
	if err := writeFile(s.fs, holder, fmt.Sprintf("process %d since %s\n", os.Getpid(), s.now().UTC().Format(time.RFC3339))); err != nil {
		s.log.Warn("who holds the folder can't be written down", "file", holder, "error", err)
	}
	return func() error {
		if err := s.fs.Remove(holder); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("the remark about who holds the folder can't be removed", "file", holder, "error", err)
		}
		return held.Close()
	}, nil
}

// holder says who holds the folder, as that process wrote it down.
func (s *Store) holder() string {
	f, err := s.fs.Open(s.fs.PathJoin(s.folder, holderFile))
	if err != nil {
		return "another process"
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 200))
	who := strings.TrimSpace(string(text))
	if err != nil || stele.CheckText("", who) != nil {
		return "another process"
	}
	return who
}

func writeFile(fs vfs.FS, name, text string) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Sync(), f.Close())
}

// private is the mode of folders. What proves who somebody is, and the keys of zones,
// are for nobody else on the machine.
const private = 0o700

// makeFolder makes a folder with all above it, durably.
func makeFolder(fs vfs.FS, folder string) error {
	var above []string // folders in which one is made
	for at := folder; ; at = fs.PathDir(at) {
		_, err := fs.Stat(at)
		if err == nil || fs.PathDir(at) == at {
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		above = append(above, fs.PathDir(at))
	}
	if len(above) == 0 {
		return nil
	}
	if err := fs.MkdirAll(folder, private); err != nil {
		return err
	}
	for _, name := range above {
		if err := syncFolder(fs, name); err != nil {
			return err
		}
	}
	return nil
}

func syncFolder(fs vfs.FS, name string) error {
	dir, err := fs.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
