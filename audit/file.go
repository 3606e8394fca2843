package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/stele-id/stele"
)

// File appends entries to a file as JSON lines. Its last line has the number of the last
// entry.
type File struct {
	name string

	mu   sync.Mutex
	file *os.File
	torn bool // the last line has no end
}

// OpenFile opens the file of that name, and makes it if it does not exist, and returns the
// number of the last entry in it; 0 if it has none.
func OpenFile(name string) (*File, uint64, error) {
	f := &File{name: name}
	if err := f.Reopen(); err != nil {
		return nil, 0, err
	}
	last, err := f.last()
	if err != nil {
		return nil, 0, errors.Join(err, f.file.Close())
	}
	return f, last, nil
}

// Reopen opens the file of the name anew, after another program has moved it away. If it
// can't, the open one stays.
func (f *File) Reopen() error {
	if info, err := os.Stat(f.name); err == nil && !info.Mode().IsRegular() {
		return &stele.Error{Op: "audit", Kind: stele.Invalid, Err: stele.Messagef("audit.log-not-a-file", `"{name}" is not a file; see audit-file in 'stele config list'`, f.name)}
	}
	file, err := os.OpenFile(f.name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return &stele.Error{Op: "audit", Kind: stele.Unavailable, Err: stele.Messagef("audit.log-not-opened", "the audit file can't be opened, see audit-file in 'stele config list': {cause}", err)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close() // each line was written
	}
	f.file, f.torn = file, false
	return nil
}

// maxTail is how much of a file is read to find its last entry: more than two entries.
const maxTail = 256 << 10

// last returns the number of the last entry that is whole.
func (f *File) last() (uint64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	tail := make([]byte, min(info.Size(), maxTail))
	if _, err := f.file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	f.torn = len(tail) > 0 && tail[len(tail)-1] != '\n'
	for lines := bytes.Split(tail, []byte{'\n'}); len(lines) > 0; lines = lines[:len(lines)-1] {
		var d Document
		if json.Unmarshal(lines[len(lines)-1], &d) == nil && d.Number > 0 {
			return d.Number, nil
		}
	}
	return 0, nil
}

// Send appends entries.
func (f *File) Send(_ context.Context, list []*stele.AuditEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b []byte
	if f.torn {
		b = append(b, '\n')
	}
	for _, e := range list {
		b = append(append(b, JSON(e)...), '\n')
	}
	n, err := f.file.Write(b)
	f.torn = n > 0 && b[n-1] != '\n' || n == 0 && f.torn
	return err
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
