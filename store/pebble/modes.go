package pebble

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// privateFile is the mode of files.
const privateFile = 0o600

// privateFS is the file system of the machine, with files that only their owner may read
// and write, whatever the umask is. Pebble asks for mode 0666. The folders that Pebble
// makes get their mode from the failstop.
type privateFS struct{ vfs.FS }

// Create implements [vfs.FS], as all below do.
func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := p.FS.Create(name, category)
	return restrict(file, name, err)
}

func (p privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := p.FS.OpenReadWrite(name, category, opts...)
	return restrict(file, name, err)
}

func (p privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := p.FS.ReuseForWrite(oldname, newname, category)
	return restrict(file, newname, err)
}

func (p privateFS) Lock(name string) (io.Closer, error) {
	lock, err := p.FS.Lock(name)
	return restrict(lock, name, err)
}

func (p privateFS) Unwrap() vfs.FS { return p.FS }

// restrict sets the mode of a file that was opened, or passes on why it was not. No other
// user reaches the file before that: the folder is private.
func restrict[F io.Closer](file F, name string, err error) (F, error) {
	if err != nil {
		return file, err
	}
	if err := os.Chmod(name, privateFile); err != nil {
		var none F
		return none, errors.Join(err, file.Close())
	}
	return file, nil
}
