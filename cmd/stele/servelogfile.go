package main

import (
	"io"
	"os"
	"sync"

	"github.com/stele-id/stele"
)

// logFile is a log that can be opened anew, after another program has moved its file
// away. Without a name it is standard error.
type logFile struct {
	name  string
	other io.Writer // standard error

	mu   sync.Mutex
	file *os.File // nil for standard error
}

// openLog opens the log of that name.
func openLog(name string, stderr io.Writer) (*logFile, error) {
	l := &logFile{name: name, other: stderr}
	return l, l.reopen()
}

// reopen opens the file of the log's name, which is made if there is none. If it
// can't, the one that is open stays.
func (l *logFile) reopen() error {
	if l.name == "" {
		return nil
	}
	if info, err := os.Stat(l.name); err == nil && !info.Mode().IsRegular() {
		return refuse("log", stele.Invalid, "%q is no file; see log-file in 'stele config list'", l.name)
	}
	// Lines can name restricted records. An operator who lets a group read the log makes
	// the file before, as logrotate does with "create".
	file, err := os.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return refuse("log", stele.Unavailable, "the log can't be opened, see log-file in 'stele config list': %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each line was written
	}
	l.file = file
	return nil
}

// Write implements [io.Writer]. A line that the file can't take, since the disk is
// full perhaps, goes to standard error.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.other.Write(line)
	}
	if n, err := l.file.Write(line); err != nil {
		m, err := l.other.Write(line[n:])
		return n + m, err
	}
	return len(line), nil
}

// close closes the file. Lines that come later go to standard error.
func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}
