package witness

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// Seen is the checkpoint of a log that a witness co-signed last.
type Seen struct {
	Origin string    `json:"origin"`
	Size   uint64    `json:"size"`
	Root   tlog.Hash `json:"root"`
	At     time.Time `json:"at"`
	Note   string    `json:"note"` // as the log signed it
}

// File keeps what a witness has co-signed: a witness that forgets can be shown another history. It is one file, which is written anew
// beside itself, made durable and put in its place, so that a crash leaves one or the other.
type File struct {
	path string
	lock *os.File

	mu   sync.Mutex
	kept stored
}

// stored is the text of the file.
type stored struct {
	Form int             `json:"form"`
	Logs map[string]Seen `json:"logs"`

	// Former are the last checkpoints of eras that ended by a restore, the oldest first.
	Former []Seen `json:"former,omitempty"`
}

const (
	fileForm  = 1
	maxFile   = 64 << 20
	maxFormer = 100
)

// OpenFile opens the file of a witness. NotFound if there is none, unless fresh says that one is begun. Only one process has it open.
func OpenFile(path string, fresh bool) (*File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, disk.FileError(err)
	}
	f := &File{path: path, lock: lock}
	if err := f.load(fresh); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

func (f *File) load(fresh bool) error {
	const op = "open witness"
	if err := disk.Lock(f.lock); err != nil {
		return &stele.Error{Op: op, Kind: stele.Unavailable, Err: stele.Messagef("log.witness-in-use", "another witness uses {file}; stop it, or give this one a file of its own", f.path)}
	}
	text, err := disk.ReadSome(f.path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && fresh:
		f.kept = stored{Form: fileForm, Logs: map[string]Seen{}}
		return f.write(&f.kept)
	case errors.Is(err, fs.ErrNotExist):
		return &stele.Error{Op: op, Kind: stele.NotFound, Err: stele.Messagef("log.witness-forgot", "{file} is missing, which has what this witness co-signed: without it a log could be shown to it with another history; put it back, or begin anew with --fresh", f.path)}
	case err != nil:
		return disk.FileError(err)
	}
	if json.Unmarshal(text, &f.kept) != nil || f.kept.Form != fileForm || f.kept.Logs == nil {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Messagef("log.witness-file-damaged", "{file} is not the file of a witness, or it is damaged; put it back from a copy", f.path)}
	}
	return nil
}

// Seen returns what was co-signed last of a log.
func (f *File) Seen(log string) (Seen, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.kept.Logs[log]
	return s, ok
}

// keep notes what is co-signed. It is on the disk when keep returns.
func (f *File) keep(log string, s Seen) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := stored{Form: fileForm, Logs: make(map[string]Seen, len(f.kept.Logs)+1), Former: f.kept.Former}
	for name, was := range f.kept.Logs {
		next.Logs[name] = was
	}
	if was, ok := next.Logs[log]; ok && was.Origin != s.Origin {
		next.Former = append(next.Former[max(0, len(next.Former)+1-maxFormer):len(next.Former):len(next.Former)], was)
	}
	next.Logs[log] = s
	if err := f.write(&next); err != nil {
		return err
	}
	f.kept = next
	return nil
}

func (f *File) write(s *stored) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary := f.path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.CreatePrivate(temporary, append(text, '\n')); err != nil {
		return err
	}
	if err := os.Rename(temporary, f.path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(f.path))
}

// Close lets another process open the file.
func (f *File) Close() error { return f.lock.Close() }
