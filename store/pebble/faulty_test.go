package pebble

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// faulty is a disk that fails when it is told to: everything that would change it,
// or every such operation on a file of some kind.
type faulty struct {
	vfs.FS
	busy  sync.RWMutex // MemFS.CrashClone and MemFS.Link lock each other out for ever
	ops   atomic.Int64 // how many changes were tried
	mu    sync.Mutex
	after int64  // which of them is the first to fail; 0 for none
	count int64  // how many fail, and what is tried of their kind meanwhile
	only  string // part of the name of files that fail
	fault error
	torn  bool // half of what is written reaches the disk
	avail uint64
	slow  chan struct{} // while it is open, logs are not synced

	stalled atomic.Int64 // how often an operation waited for that
}

// stall lets nothing be synced to a log until the returned function is called.
func (f *faulty) stall() (goOn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	slow := make(chan struct{})
	f.slow = slow
	return sync.OnceFunc(func() { close(slow) })
}

func (f *faulty) wait(name string) {
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	if slow != nil && strings.HasSuffix(name, ".log") {
		f.stalled.Add(1)
		<-slow
	}
}

// failAfter makes count operations fail, beginning with the n-th from now.
func (f *faulty) failAfter(n, count int64, only string, fault error, torn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after, f.count, f.only, f.fault, f.torn = f.ops.Load()+n, count, only, fault, torn
}

// crash returns a disk as it may be after a crash now. The one below is a MemFS.
func (f *faulty) crash(rng *rand.Rand) vfs.FS {
	f.busy.Lock()
	defer f.busy.Unlock()
	own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
	return f.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: own})
}

// heal ends all failures.
func (f *faulty) heal() { f.failAfter(0, 0, "", nil, false) }

func (f *faulty) setFree(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.avail = n
}

func (f *faulty) check(name string) error {
	n := f.ops.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count > 0 && n >= f.after && strings.Contains(name, f.only) {
		f.count--
		return &os.PathError{Op: "fail", Path: name, Err: f.fault}
	}
	return nil
}

func (f *faulty) tears() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.torn
}

func (f *faulty) GetDiskUsage(string) (vfs.DiskUsage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.avail == 0 {
		return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 41}, nil
	}
	return vfs.DiskUsage{AvailBytes: f.avail, TotalBytes: 1 << 41}, nil
}

func (f *faulty) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

func (f *faulty) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.check(name); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f *faulty) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if err := f.check(name); err != nil {
		return nil, err
	}
	file, err := f.FS.OpenReadWrite(name, c, o...)
	return f.wrap(name, file, err)
}

func (f *faulty) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.check(newname); err != nil {
		return nil, err
	}
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	return f.wrap(newname, file, err)
}

func (f *faulty) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.wrap(name, file, err)
}

func (f *faulty) Link(oldname, newname string) error {
	if err := f.check(newname); err != nil {
		return err
	}
	f.busy.RLock()
	defer f.busy.RUnlock()
	return f.FS.Link(oldname, newname)
}

func (f *faulty) Rename(oldname, newname string) error {
	if err := f.check(newname); err != nil {
		return err
	}
	return f.FS.Rename(oldname, newname)
}

func (f *faulty) Remove(name string) error {
	if err := f.check(name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *faulty) Lock(name string) (io.Closer, error) { return f.FS.Lock(name) }
func (f *faulty) Unwrap() vfs.FS                      { return f.FS }

type faultyFile struct {
	vfs.File
	fs   *faulty
	name string
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.fs.check(f.name); err != nil {
		if n := len(p) / 2; f.fs.tears() && n > 0 {
			n, torn := f.File.Write(p[:n])
			return n, errors.Join(err, torn)
		}
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.check(f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) SyncData() error {
	f.fs.wait(f.name)
	if err := f.fs.check(f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *faultyFile) SyncTo(length int64) (bool, error) {
	if err := f.fs.check(f.name); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}

func (f *faultyFile) Close() error {
	err := f.fs.check(f.name)
	return errors.Join(err, f.File.Close())
}

var (
	errFull   = error(syscall.ENOSPC)
	errBroken = error(syscall.EIO)
)
