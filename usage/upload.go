package usage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// Limits on files that are sent to a server.
const (
	maxUploads  = 4       // at once
	maxUpload   = 4 << 30 // bytes of a file
	uploadIdle  = time.Hour
	uploadBlock = 20 // bytes of random in the name of one; it is a secret between the client and the server
)

// Uploads takes log files of other servers in pieces, and counts them by the code that counts files where the registry is. It keeps a file in the folder for temporary files, without a
// name, until it is counted; a restart of the server forgets it, and the client sends it again. It is for many goroutines at once.
type Uploads struct {
	// Importer returns what counts a file: all is set except what the options of the file say.
	Importer func() *LogImporter
	Now      func() time.Time

	mutex sync.Mutex
	files map[string]*upload
}

type upload struct {
	mutex sync.Mutex // held while the file is written or counted
	file  *os.File
	size  int64
	used  time.Time // guarded by Uploads.mutex
}

// Begin begins a file, and returns its name. Exhausted if too many are there already.
func (u *Uploads) Begin() (id string, err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	err = u.forget()
	if len(u.files) >= maxUploads {
		return "", errors.Join(err, refuse(stele.Exhausted, "usage.too-many-uploads", "{count} log files are being sent to this server already; try again later", len(u.files)))
	}
	file, err := os.CreateTemp("", "stele-log-")
	if err != nil {
		return "", refuse(stele.Unavailable, "usage.upload-not-kept", "the server can't keep the file: {cause}", err)
	}
	if err := os.Remove(file.Name()); err != nil { // it is gone when the program ends
		return "", errors.Join(refuse(stele.Unavailable, "usage.upload-not-kept", "the server can't keep the file: {cause}", err), file.Close())
	}
	random := make([]byte, uploadBlock)
	_, _ = rand.Read(random) // it never fails, see crypto/rand
	id = hex.EncodeToString(random)
	if u.files == nil {
		u.files = make(map[string]*upload)
	}
	u.files[id] = &upload{file: file, used: u.Now()}
	return id, nil
}

// Forget forgets files of clients that have left. The server calls it now and then, so that what they sent does not stay.
func (u *Uploads) Forget() error {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.forget()
}

// forget is Forget. The caller holds the lock.
func (u *Uploads) forget() (err error) {
	for id, f := range u.files {
		if u.Now().Sub(f.used) > uploadIdle && f.mutex.TryLock() {
			err = errors.Join(err, u.end(id, f))
		}
	}
	return err
}

// end forgets a file. The caller holds both locks.
func (u *Uploads) end(id string, f *upload) error {
	delete(u.files, id)
	return f.file.Close()
}

// take returns a file, for the caller alone, and what gives it back.
func (u *Uploads) take(id string) (f *upload, release func(), err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	f = u.files[id]
	switch {
	case f == nil:
		return nil, nil, refuse(stele.NotFound, "usage.upload-unknown", "the server does not have the log file any more: it was counted, nothing came for an hour, or the server was restarted; send it again from its beginning")
	case !f.mutex.TryLock():
		return nil, nil, refuse(stele.Conflict, "usage.upload-busy", "the log file is being written or counted; wait for that")
	}
	f.used = u.Now()
	return f, f.mutex.Unlock, nil
}

// Add adds a piece at a place of a file, and returns how many bytes the file has then. A piece that is there already is not added again, so a request can be repeated. Conflict
// if the place is not the end of the file.
func (u *Uploads) Add(id string, at int64, piece []byte) (size int64, err error) {
	f, release, err := u.take(id)
	if err != nil {
		return 0, err
	}
	defer release()
	switch end := at + int64(len(piece)); {
	case end == f.size && at < f.size:
		return f.size, nil
	case at != f.size:
		return 0, refuse(stele.Conflict, "usage.upload-elsewhere", "the piece begins at byte {at}, and the file has {size} bytes; go on there", at, f.size)
	case end > maxUpload:
		return 0, refuse(stele.Exhausted, "usage.upload-too-large", "the log file has more than {most} bytes; split it, at the beginning of a day", maxUpload)
	}
	if _, err := f.file.WriteAt(piece, at); err != nil {
		return 0, refuse(stele.Unavailable, "usage.upload-not-kept", "the server can't keep the file: {cause}", err)
	}
	f.size += int64(len(piece))
	return f.size, nil
}

// Has makes sure that a file is there, with so many bytes. Conflict if it has another size: it can go on at its end.
func (u *Uploads) Has(id string, size int64) error {
	f, release, err := u.take(id)
	if err != nil {
		return err
	}
	defer release()
	return f.has(size)
}

func (f *upload) has(size int64) error {
	if size != f.size {
		return refuse(stele.Conflict, "usage.upload-incomplete", "the server has {have} bytes of the log file, which should have {size}; send it again", f.size, size)
	}
	return nil
}

// Count counts a file, and forgets it. The errors are those of [LogImporter.Import].
func (u *Uploads) Count(ctx context.Context, id string, o apijson.UsageLogOptions, progress func(lines int)) (sum *LogSummary, err error) {
	f, release, err := u.take(id)
	if err != nil {
		return nil, err
	}
	defer func() {
		u.mutex.Lock()
		err = errors.Join(err, u.end(id, f))
		u.mutex.Unlock()
		release()
	}()
	if err := f.has(o.Size); err != nil {
		return nil, err
	}
	im := u.Importer()
	im.Combined, im.Base, im.Host, im.DryRun, im.NewLists, im.Progress = o.Format != "common", o.Base, o.Host, o.DryRun, o.NewLists, progress
	im.Cut = im.Cut || o.Cut
	if o.Masked {
		im.Country, im.Cut = nil, o.Cut // there are no addresses
	}
	return im.Import(ctx, o.Name, func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(f.file, 0, f.size)), nil })
}

// Drop forgets a file.
func (u *Uploads) Drop(id string) error {
	f, release, err := u.take(id)
	if err != nil {
		return err
	}
	defer release()
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.end(id, f)
}
