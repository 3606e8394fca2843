package pebble

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// failstop stands between one opening of Pebble and the disk.
//
// Pebble does not survive a failed write to its log or manifest. It panics or calls
// Logger.Fatalf, from the goroutine of a caller or from one of its own, and in the
// middle of changing logs it does so while a mutex is in a state that makes the Go
// runtime end the process (DB.rotateWAL in version 2.1.7). So the failstop never returns
// such an error to Pebble. At the first failed write the failstop freezes: nothing that
// this opening of Pebble does reaches the disk from then on, and the failstop reports
// success for all of it. To the disk that is a crash, from which Pebble recovers like
// from any other: another opening, with a failstop of its own, reads the logs again. The
// committer asks the failstop, after Pebble said that a commit is durable and before any
// caller is told.
//
// While the failstop is frozen the old opening still answers reads. A memtable must
// therefore not be dropped because it was "written" to a table, so writing tables
// waits. When the old opening is not needed any more the failstop is void: new tables are
// written to memory, all that waits goes on, and the opening can be closed like a
// healthy one. While Pebble is being opened or closed there are no readers, and a
// failure makes the failstop void at once: Open and Close would wait without end for
// tables to be written.
//
// The next opening must leave the old one its tables while it is read from, also those
// that are in no manifest. It holds: it does not remove tables before it is told to.
//
// Files outside of the store's folder, where backups go, are left alone: an error
// there is the backup's.
type failstop struct {
	vfs.FS
	folder  string
	failed  func(error) // told of the first failure; must not block
	mu      sync.RWMutex
	unread  bool            // under mu: the opening has no readers
	cause   error           // under mu: why it is frozen
	void    chan struct{}   // closed when it is void
	memory  vfs.FS          // where tables of a void failstop are
	outside context.Context // under mu: of the backup under way
	last    string          // under mu: the log or manifest that was opened last
	holds   bool            // under mu: tables are removed later
	wiping  bool            // under mu: logs are wiped before they are used again
	held    sync.Mutex      // for later
	later   []string        // tables to remove then
}

// errFrozen has the text that callers see, and is os.ErrPermission to Pebble, which
// tries again by other means after some errors.
var errFrozen = stele.Messagef("store.opened-again-after-failed-write", "the store is opened again after a failed write: {cause}", os.ErrPermission)

func newFailstop(fs vfs.FS, folder string, holds bool, failed func(error)) *failstop {
	return &failstop{FS: fs, folder: folder, holds: holds, failed: failed, unread: true, void: make(chan struct{}), memory: vfs.NewMem()}
}

// setUnread says whether the opening has no readers, so that a failure makes the failstop
// void at once.
func (f *failstop) setUnread(unread bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unread = unread
}

// freeze cuts Pebble off from the disk. It returns when nothing is on its way there
// any more.
func (f *failstop) freeze(cause error) {
	f.mu.Lock()
	first, unread := f.cause == nil, f.unread
	if first {
		f.cause = cause
	}
	f.mu.Unlock()
	if first && unread {
		f.empty()
	}
	if first {
		f.failed(cause)
	}
}

// retire is freeze for an opening that is replaced on purpose: it is not reported. It
// returns false if the failstop is frozen already.
func (f *failstop) retire(cause error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return false
	}
	f.cause = cause
	return true
}

// broken returns why the failstop is frozen, or nil. What was written before a call
// that returns nil, and said to be synced, is on the disk.
func (f *failstop) broken() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.cause
}

// empty makes the failstop void. The caller has frozen it before.
func (f *failstop) empty() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.void:
	default:
		close(f.void)
	}
}

func (f *failstop) isVoid() bool {
	select {
	case <-f.void:
		return true
	default:
		return false
	}
}

// lastRead returns the log or manifest that was opened last: the damaged one, if
// Open failed because of damage.
func (f *failstop) lastRead() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.last
}

// backup lets files outside of the folder be written until the context ends.
func (f *failstop) backup(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outside = ctx
}

func (f *failstop) guards(name string) bool { return name == f.folder || f.PathDir(name) == f.folder }

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// change changes the disk by way of op, or pretends to. It does not pretend that a
// table was written whose first part is on the disk: once the failstop is void Pebble is
// told that it was not, and writes another.
func (f *failstop) change(name string, op func() error) error {
	if !f.guards(name) {
		return f.changeOutside(op)
	}
	f.mu.RLock()
	if f.cause == nil {
		err := op()
		f.mu.RUnlock()
		if err == nil {
			return nil
		}
		f.freeze(err)
	} else {
		f.mu.RUnlock()
	}
	if isTable(name) {
		<-f.void
		return errFrozen
	}
	return nil
}

// changeOutside is change for files that are not the store's. It returns errors.
func (f *failstop) changeOutside(op func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.cause != nil {
		return errFrozen
	}
	if f.outside != nil && f.outside.Err() != nil {
		// Pebble would copy a file that it can't link.
		return errors.Join(f.outside.Err(), os.ErrPermission)
	}
	return op()
}

// create opens a file by way of op. The file of a frozen failstop is one of nothing, or
// in memory if it is a table.
func (f *failstop) create(name string, op func() (vfs.File, error)) (vfs.File, error) {
	file := &failstopFile{failstop: f, name: name}
	err := f.change(name, func() (err error) {
		file.File, err = op()
		return err
	})
	if err == errFrozen && f.guards(name) {
		return f.memory.Create(f.PathBase(name), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Create implements [vfs.FS], as all below do.
func (f *failstop) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.create(name, func() (vfs.File, error) {
		if err := f.settle(name); err != nil {
			return nil, err
		}
		return f.FS.Create(name, category)
	})
}

// settle makes the names in the folder durable before a marker is made or removed.
// Pebble makes a manifest and then a marker with its name, removes the marker before
// that, and syncs the folder once after all of it (versionSet.logAndApply and
// atomicfs.Marker.Move in version 2.1.7). A file system that does not keep that order
// can be left by a crash with a marker of a manifest that is not there, or with none.
func (f *failstop) settle(name string) error {
	if !f.guards(name) || !strings.HasPrefix(f.PathBase(name), "marker.") {
		return nil
	}
	return syncFolder(f.FS, f.folder)
}

func (f *failstop) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.create(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

func (f *failstop) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.create(newname, func() (vfs.File, error) {
		if f.wiping { // create holds mu
			if err := f.FS.Remove(oldname); err != nil {
				return nil, err
			}
			return f.FS.Create(newname, category)
		}
		return f.FS.ReuseForWrite(oldname, newname, category)
	})
}

func (f *failstop) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if base := f.PathBase(name); strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST") {
		f.mu.Lock()
		f.last = name
		f.mu.Unlock()
	}
	if f.isVoid() && f.guards(name) && isTable(name) {
		if file, err := f.memory.Open(f.PathBase(name), opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

func (f *failstop) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &failstopFile{File: file, failstop: f, name: name}, nil
}

// Link returns errors: if a table can't be linked Pebble copies it.
func (f *failstop) Link(oldname, newname string) error {
	if !f.guards(newname) {
		return f.changeOutside(func() error { return f.FS.Link(oldname, newname) })
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.cause != nil {
		return errFrozen
	}
	return f.FS.Link(oldname, newname)
}

func (f *failstop) Rename(oldname, newname string) error {
	return f.change(newname, func() error { return f.FS.Rename(oldname, newname) })
}

func (f *failstop) MkdirAll(name string, _ os.FileMode) error {
	return f.change(name, func() error { return f.FS.MkdirAll(name, private) })
}

// Remove returns errors: Pebble tolerates a file that can't be removed. But nothing is
// removed that another opening may need.
func (f *failstop) Remove(name string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	switch {
	case f.cause != nil && f.guards(name):
		return nil
	case !f.holds || !f.guards(name) || !isTable(name):
		if err := f.settle(name); err != nil {
			return err
		}
		return f.FS.Remove(name)
	}
	f.held.Lock()
	defer f.held.Unlock()
	f.later = append(f.later, name)
	return nil
}

// RemoveAll is for files outside of the folder: Pebble has no folders in it.
func (f *failstop) RemoveAll(name string) error {
	if f.guards(name) {
		return errFrozen
	}
	return f.FS.RemoveAll(name)
}

// release removes the tables that were held, and those to come at once. What can't be
// removed now is removed when the store is opened the next time.
func (f *failstop) release() {
	f.mu.Lock()
	f.holds = false
	names := f.later
	f.later = nil
	f.mu.Unlock()
	for _, name := range names {
		_ = f.Remove(name)
	}
}

// Lock does nothing: the store holds the lock, over all openings of Pebble.
func (f *failstop) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *failstop) Unwrap() vfs.FS { return f.FS }

// failstopFile is a file that was opened for writing, or a folder that may be synced.
// It has no File if the failstop was frozen already.
type failstopFile struct {
	vfs.File
	failstop *failstop
	name     string
}

func (f *failstopFile) Write(p []byte) (int, error) {
	return len(p), f.failstop.change(f.name, func() error {
		_, err := f.File.Write(p)
		return err
	})
}

func (f *failstopFile) WriteAt(p []byte, at int64) (int, error) {
	return len(p), f.failstop.change(f.name, func() error {
		_, err := f.File.WriteAt(p, at)
		return err
	})
}

func (f *failstopFile) Sync() error {
	return f.failstop.change(f.name, func() error { return f.File.Sync() })
}

func (f *failstopFile) SyncData() error {
	return f.failstop.change(f.name, func() error { return f.File.SyncData() })
}

func (f *failstopFile) SyncTo(length int64) (full bool, err error) {
	err = f.failstop.change(f.name, func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate does not count as a failed write: a file system need not support it.
func (f *failstopFile) Preallocate(offset, length int64) error {
	f.failstop.mu.RLock()
	defer f.failstop.mu.RUnlock()
	if f.failstop.cause != nil || f.File == nil {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Close closes the file in any case: it writes nothing any more.
func (f *failstopFile) Close() error {
	if f.File == nil {
		return nil
	}
	err := f.File.Close()
	if err != nil && f.failstop.guards(f.name) {
		f.failstop.freeze(err)
		return nil
	}
	return err
}

func (f *failstopFile) Read(p []byte) (int, error) {
	if f.File == nil {
		return 0, io.EOF
	}
	return f.File.Read(p)
}

func (f *failstopFile) ReadAt(p []byte, at int64) (int, error) {
	if f.File == nil {
		return 0, io.EOF
	}
	return f.File.ReadAt(p, at)
}

func (f *failstopFile) Prefetch(offset, length int64) error {
	if f.File == nil {
		return nil
	}
	return f.File.Prefetch(offset, length)
}

func (f *failstopFile) Fd() uintptr {
	if f.File == nil {
		return vfs.InvalidFd
	}
	return f.File.Fd()
}

func (f *failstopFile) Stat() (vfs.FileInfo, error) {
	if f.File == nil {
		return nothing(f.failstop.PathBase(f.name)), nil
	}
	return f.File.Stat()
}

// nothing is the FileInfo of a file that does not exist, by its name.
type nothing string

func (n nothing) Name() string         { return string(n) }
func (nothing) Size() int64            { return 0 }
func (nothing) Mode() os.FileMode      { return 0 }
func (nothing) ModTime() time.Time     { return time.Time{} }
func (nothing) IsDir() bool            { return false }
func (nothing) Sys() any               { return nil }
func (nothing) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
