package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/stele-id/stele"
)

// Source is where a process gets its keys from.
type Source interface {
	// Keys returns all keys. The error is [ErrNoKey] if there is no key and the operator
	// named none.
	Keys() ([]Key, error)

	// String says where that is, for messages.
	String() string
}

// Maker is a source that can get a new key.
type Maker interface {
	Source

	// Make adds a new key after the existing ones.
	Make() (Key, error)
}

// Text is keys in a text, such as that of an environment variable.
type Text struct {
	Keep string // the text
	Name string // what the text is, for messages
}

// Keys reads the text.
func (t Text) Keys() ([]Key, error) {
	keys, err := ParseKeys(t.Keep)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return keys, nil
}

func (t Text) String() string { return t.Name }

// None is the source that has no key.
type None struct {
	Hint string // what to do, for messages
}

// Keys returns [ErrNoKey].
func (n None) Keys() ([]Key, error) { return nil, ErrNoKey }

func (n None) String() string { return n.Hint }

// File is a file of keys, which only its owner may read.
type File struct {
	Path string

	// Optional says that the file may be missing. Otherwise a missing file is an
	// error, since the operator named it.
	Optional bool

	// Credential says that a service manager made the file and grants access to it, so
	// that its mode is not checked: systemd grants access by an ACL, which shows as
	// the mode of the group (systemd.exec(5)).
	Credential bool

	// Random makes keys; nil if keys must not be made.
	Random io.Reader

	// OnMake is called after a key was made; it may be nil.
	OnMake func(k Key, path string)
}

func (f *File) String() string { return f.Path }

// maxFile bounds the size of a file of keys.
const maxFile = 64 << 10

// Keys reads the file.
func (f *File) Keys() ([]Key, error) {
	text, err := f.read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.Optional:
		return nil, ErrNoKey
	case errors.Is(err, fs.ErrNotExist):
		return nil, stele.Messagef("secret.key-file-missing", "the secret key file {path} does not exist; put a copy of it there, or make one with 'stele secret keygen {path}'", f.Path)
	case err != nil:
		return nil, stele.Messagef("secret.key-file-unreadable", "the secret key file can't be read: {cause}", err)
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, stele.Messagef("secret.key-file-wrong", "the secret key file {path}: {cause}", f.Path, err)
	}
	return keys, nil
}

func (f *File) read() (string, error) {
	path := f.Path
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	// A group may read it: that is how an orchestrator hands a file to a container.
	if mode := info.Mode().Perm(); info.Mode().IsRegular() && mode&0o027 != 0 && !f.Credential {
		return "", stele.Messagef("secret.key-file-readable-by-others", "other users may read or write {path} (mode {mode}); run: chmod 600 {path}", path, fmt.Sprintf("%04o", mode))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = stele.Messagef("secret.key-file-too-large", "{path} has more than {most} bytes, so it is not a secret key file", path, maxFile)
	}
	return string(text), err
}

// Make makes a key and adds it to the file, or makes the file. A crash leaves the old file
// or the new one.
func (f *File) Make() (Key, error) {
	if f.Random == nil {
		return Key{}, ErrNoKey
	}
	before, err := f.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		before = "# Secret keys of a Stele registry: docs/secrets.md. Keep a copy apart from the backups.\n"
	case err != nil:
		return Key{}, stele.Messagef("secret.key-file-unreadable", "the secret key file can't be read: {cause}", err)
	default:
		if _, err := ParseKeys(before); err != nil {
			return Key{}, stele.Messagef("secret.key-file-wrong", "the secret key file {path}: {cause}", f.Path, err)
		}
	}
	if before != "" && before[len(before)-1] != '\n' {
		before += "\n"
	}
	k, err := NewKey(f.Random)
	if err != nil {
		return Key{}, err
	}
	if err := writeFile(f.Path, before+k.Text()+"\n"); err != nil {
		return Key{}, stele.Messagef("secret.key-file-not-written", "the secret key file can't be written: {cause}", err)
	}
	if f.OnMake != nil {
		f.OnMake(k, f.Path)
	}
	return k, nil
}

// writeFile replaces a file atomically, and syncs it to the disk.
func writeFile(path, text string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if owner, statErr := os.Stat(path); statErr == nil {
		keepOwner(file, owner)
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // it refuses to sync folders, and keeps a journal of them
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// How secret keys are given.
const (
	secretVariable   = "STELE_SECRET_KEY"      // the keys themselves
	credentialFolder = "CREDENTIALS_DIRECTORY" // of systemd, systemd.exec(5)
	credentialName   = "stele-secret-key"      // of the file there
	secretSuffix     = ".key"                  // after the name of the data folder
)

// FindOptions say where the keys of a registry may be.
type FindOptions struct {
	File   string                   // that the user names; "": none
	Data   string                   // the folder of the registry; not used if Shared
	Shared bool                     // the registry is in a database, which other servers use too
	Random io.Reader                // for keys that are made
	OnMake func(k Key, path string) // is called when a key was made beside the data folder
}

// Find decides where the secret keys of a registry come from: the file that is named, the
// environment, systemd, or a file beside the data folder. For a registry in a database it makes no
// key, since the other servers of the database would not have it.
func Find(getenv func(string) string, o FindOptions) Source {
	random := o.Random
	if o.Shared {
		random = nil
	}
	if o.File != "" {
		return &File{Path: o.File, Random: random}
	}
	if text := getenv(secretVariable); text != "" {
		return Text{Keep: text, Name: "the environment variable " + secretVariable}
	}
	if folder := getenv(credentialFolder); folder != "" {
		path := filepath.Join(folder, credentialName)
		if _, err := os.Stat(path); err == nil {
			return &File{Path: path, Credential: true}
		}
	}
	if o.Shared {
		return None{Hint: "this process, which was given no secret key (--secret-key-file)"}
	}
	return &File{Path: defaultFile(o.Data), Optional: true, Random: random, OnMake: o.OnMake}
}

// defaultFile is where the key is by default: beside the data folder, so that no copy of the
// folder has it.
func defaultFile(data string) string {
	if absolute, err := filepath.Abs(data); err == nil {
		data = absolute
	}
	return filepath.Clean(data) + secretSuffix
}
