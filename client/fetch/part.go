package fetch

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/stele-id/stele"
)

// Files beside a file that is not whole.
const (
	partSuffix = ".part"      // what is there of it
	noteSuffix = ".part.json" // what that is
	maxNote    = 16 << 10

	// ownMode leaves read access to the umask, and lets no other user write: a user who can
	// write into a part could change it after it was verified.
	ownMode = 0o644
)

// Part is a file that is not whole yet. It stands beside where the whole is to be, under
// a name of its own, with a note that says what it is part of. It is used by one
// goroutine, and one process has it at a time.
type Part struct {
	path string // of the whole
	file *os.File
	made bool // just now, by us
	size int64
	sum  hash.Hash // of all that is there
	note note
}

// note says what a part is part of.
type note struct {
	Location string `json:"location"` // that was asked for
	Mark     mark   `json:"mark"`
}

// OpenPart opens the part of a file, or begins one. It does not touch a part that others
// have made, or something else of that name, unless force is set. It never follows
// symbolic links.
func OpenPart(path string, force bool) (*Part, error) {
	p := &Part{path: path, sum: sha256.New()}
	err := p.open(force)
	if err == nil {
		err = p.read(force)
	}
	if err != nil {
		if p.made {
			_ = os.Remove(path + partSuffix)
		}
		if p.file != nil {
			_ = p.file.Close()
		}
		return nil, err
	}
	return p, nil
}

// open opens the file and makes sure that it is what stands under that name, and ours.
func (p *Part) open(force bool) (err error) {
	name := p.path + partSuffix
	err = p.create()
	if errors.Is(err, fs.ErrExist) {
		if p.file, err = openOwn(name, os.O_RDWR); isForeign(err) && force {
			if err = os.Remove(name); err == nil {
				err = p.create()
			}
		}
	}
	if err != nil {
		return fail(kindOfFile(err), "", "{cause}", err)
	}
	if err := lock(p.file); err != nil {
		return fail(stele.Conflict, "fetch.other-process-fetching", `another process is fetching "{path}" now; wait for it`, p.path)
	}
	// The process that had it before may have renamed it to its final name meanwhile.
	if now, err := os.Lstat(name); err != nil || !isSame(p.file, now) {
		return fail(stele.Conflict, "fetch.other-process-was-fetching", `another process was fetching "{path}" until now; look whether it is there`, p.path)
	}
	return nil
}

// create makes a new file, and opens nothing that is there.
func (p *Part) create() (err error) {
	p.file, err = os.OpenFile(p.path+partSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, ownMode)
	p.made = err == nil
	return err
}

var (
	errNoFile  = stele.Messagef("fetch.not-an-ordinary-file", "this is not an ordinary file; move it away, or overwrite it with --force")
	errForeign = stele.Messagef("fetch.file-not-safe", "this file belongs to another user, or others may write to it, or it has another name too; move it away, or put a new one in its place with --force")
)

// isForeign reports whether something is there that is not ours to write to.
func isForeign(err error) bool { return errors.Is(err, errNoFile) || errors.Is(err, errForeign) }

// openOwn opens an ordinary file that no other user can write to, and follows no link.
func openOwn(name string, flag int) (*os.File, error) {
	info, err := os.Lstat(name)
	if err == nil {
		err = checkOwn(info)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	now, err := file.Stat()
	switch {
	case err != nil:
	case !os.SameFile(now, info):
		err = errNoFile
	default:
		err = checkOwn(now)
	}
	if err != nil {
		_ = file.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file, nil
}

// checkOwn refuses a file that others can change. With a second hard link, an attacker could
// make this program overwrite one of the user's files elsewhere.
func checkOwn(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errNoFile
	case !isOwn(info):
		return errForeign
	}
	return nil
}

func isSame(file *os.File, info fs.FileInfo) bool {
	now, err := file.Stat()
	return err == nil && os.SameFile(now, info)
}

// kindOfFile returns the kind of the error that a file can't be opened.
func kindOfFile(err error) stele.Kind {
	if isForeign(err) || errors.Is(err, fs.ErrExist) {
		return stele.Conflict
	}
	return stele.Invalid
}

// read reads what is there, and the note. A part without a note is not ours.
func (p *Part) read(force bool) error {
	size, err := p.file.Seek(0, io.SeekEnd)
	if err != nil {
		return fail(stele.Invalid, "", "{cause}", err)
	}
	known, err := p.readNote()
	if err != nil && (size > 0 || !errors.Is(err, fs.ErrNotExist)) {
		if !force {
			return fail(stele.Conflict, "fetch.part-not-ours", `"{part}" is there and was not made by this program, or is damaged; move it and "{note}" away, or overwrite them with --force`, p.path+partSuffix, p.path+noteSuffix)
		}
		return p.begin(note{})
	}
	if size == 0 || err != nil {
		return nil
	}
	p.note = known
	if _, err = p.file.Seek(0, io.SeekStart); err == nil {
		p.size, err = io.Copy(p.sum, p.file)
	}
	if err != nil {
		return fail(stele.Invalid, "", "{cause}", err)
	}
	return nil
}

func (p *Part) readNote() (n note, err error) {
	file, err := openOwn(p.path+noteSuffix, os.O_RDONLY)
	if err != nil {
		return n, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxNote))
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(text, &n)
}

// begin discards what is there. The order matters: after a crash, an empty part is begun
// anew, whatever the note says.
func (p *Part) begin(n note) error {
	err := p.file.Truncate(0)
	if err == nil {
		_, err = p.file.Seek(0, io.SeekStart)
	}
	if err == nil {
		p.size, p.note = 0, n
		p.sum.Reset()
		err = p.writeNote()
	}
	if err != nil {
		return fail(stele.Invalid, "", "{cause}", err)
	}
	return nil
}

func (p *Part) writeNote() error {
	text, err := json.Marshal(p.note)
	if err != nil {
		return err
	}
	name := p.path + noteSuffix
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownMode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// resumable returns the byte from which a location can be resumed, and the mark that it
// must have; 0 if it can't be resumed.
func (p *Part) resumable(location string) (int64, *mark) {
	if p.note.Location != location || !p.note.Mark.isStrong() || p.size == 0 {
		return 0, &mark{Size: -1}
	}
	return p.size, &p.note.Mark
}

// Write adds bytes at the end.
func (p *Part) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.size += int64(n)
	_, _ = p.sum.Write(b[:n]) // it does not fail
	return n, err
}

// Size returns how many bytes are there.
func (p *Part) Size() int64 { return p.size }

// SHA256 returns the digest of what is there.
func (p *Part) SHA256() (sum [sha256.Size]byte) {
	p.sum.Sum(sum[:0])
	return sum
}

// Copy writes what is there to w.
func (p *Part) Copy(w io.Writer) error {
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, p.file)
	return err
}

// Place syncs the part to the disk and gives it its final name. A file of that name is an
// error, unless it may be overwritten.
func (p *Part) Place(overwrite bool) error {
	err := p.file.Sync()
	if err == nil {
		err = p.rename(overwrite)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fail(stele.Conflict, "fetch.file-exists", `"{path}" is there already; overwrite it with --force`, p.path)
	case err != nil:
		return fail(stele.Invalid, "", "{cause}", err)
	}
	_ = os.Remove(p.path + noteSuffix) // if it stays, it does no harm
	return p.file.Close()
}

// rename gives the part its name. A hard link never replaces a file, as a rename would;
// where there are no hard links, rename looks for the file before.
func (p *Part) rename(overwrite bool) error {
	if !overwrite {
		err := os.Link(p.path+partSuffix, p.path)
		if err == nil {
			return os.Remove(p.path + partSuffix)
		}
		if _, found := os.Lstat(p.path); found == nil || errors.Is(err, fs.ErrExist) {
			return fs.ErrExist
		}
	}
	return os.Rename(p.path+partSuffix, p.path)
}

// Close keeps the part so that it can be resumed; it removes an empty one.
func (p *Part) Close() error {
	if p.size == 0 {
		return p.Remove()
	}
	return p.file.Close()
}

// Remove throws the part away.
func (p *Part) Remove() error {
	return errors.Join(os.Remove(p.path+partSuffix), ignoreMissing(os.Remove(p.path+noteSuffix)), p.file.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
