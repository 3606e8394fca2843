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

// lockFile is Pebble's own, so that Pebble's tools respect it too. HolderFile is a
// remark for people beside it, which is there while a process has the folder open; nothing that is
// written depends on it.
const (
	lockFile   = "LOCK"
	HolderFile = "HOLDER"
)

// lock takes the folder for this process. It is held over all openings of Pebble.
func (s *Store) lock() (unlock func() error, err error) {
	held, err := s.fs.Lock(s.fs.PathJoin(s.folder, lockFile))
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "store.folder-not-locked", "the folder can't be locked: {cause}", err)
	} else if err != nil {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "", "{cause}", s.inUse(err))
	}
	s.since = s.now()
	holder := s.fs.PathJoin(s.folder, HolderFile)
	s.writeHolder("")
	return func() error {
		if err := s.fs.Remove(holder); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("the remark about who holds the folder can't be removed", "file", holder, "error", err)
		}
		return held.Close()
	}, nil
}

// writeHolder writes down which process holds the folder, and at which URL a server
// answers for it if one does.
func (s *Store) writeHolder(url string) {
	holder := s.fs.PathJoin(s.folder, HolderFile)
	text := fmt.Sprintf("process %d since %s\n", os.Getpid(), s.since.UTC().Format(time.RFC3339))
	if url != "" {
		text += serving + url + "\n"
	}
	if err := writeFile(s.fs, holder, text); err != nil {
		s.log.Warn("who holds the folder can't be written down", "file", holder, "error", err)
	}
}

// serving begins the second line of the remark.
const serving = "serving "

// Serving notes the URL at which this process answers for the registry, so that other
// processes which want to open the folder can name it.
func (s *Store) Serving(url string) { s.writeHolder(url) }

// Holder says which process holds the folder of a store, as that process wrote it down,
// and the URL at which it answers, "" if it is not a server. The process may have ended
// since without removing the remark: only a lock tells that.
func Holder(folder string) (who, url string) { return holder(vfs.Default, folder) }

func holder(fs vfs.FS, folder string) (who, url string) {
	const unknown = "another process"
	f, err := fs.Open(fs.PathJoin(folder, HolderFile))
	if err != nil {
		return unknown, ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 500))
	who, rest, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	url, _ = strings.CutPrefix(rest, serving)
	if err != nil || stele.CheckText("", who) != nil {
		return unknown, ""
	}
	if stele.CheckText("", url) != nil {
		url = ""
	}
	return who, url
}

// inUse is the error of a folder that another process has open.
func (s *Store) inUse(err error) error {
	who, url := holder(s.fs, s.folder)
	if url == "" {
		return stele.Messagef("store.folder-in-use", `the folder "{folder}" is in use by {process}; stop it, or name its server with --server ({cause})`, s.folder, who, err)
	}
	return stele.Messagef("store.folder-in-use-by-server", `the folder "{folder}" is in use by {process}, a server; add --server {url} to let it do the work, with a token in STELE_TOKEN, or stop it ({cause})`, s.folder, who, url, err)
}

func writeFile(fs vfs.FS, name, text string) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Sync(), f.Close())
}

// private is the mode of folders. Credentials and the keys of zones are not for other
// users of the machine.
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
