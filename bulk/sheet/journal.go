package sheet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registrar/minting"
)

// journal is the file FILE.names, in which 'mint --from FILE' writes down which row
// gets which name before the name is registered. A run that was interrupted continues
// from it: a row that is in it never gets another name. It is removed when FILE has the
// names.
//
// The first line says which import the names are registered by. The others are entries,
// as JSON; the last one may be cut off.
type journal struct {
	path    string
	file    *os.File
	head    journalHead
	entries map[int]journalEntry // by line
	old     int                  // how many entries an earlier run wrote
	size    int64                // of its whole lines
}

// journalHead is the first line of the journal.
type journalHead struct {
	Sheet  string    `json:"sheet"`            // the file with the rows
	Output string    `json:"output,omitempty"` // where the names are to stand, if not there
	Import uint64    `json:"import"`
	Began  time.Time `json:"began"` // when the import began; with its number it tells registries apart
}

// journalEntry says which name a row has.
type journalEntry struct {
	Line    int      `json:"line"`
	Row     string   `json:"row,omitempty"` // a digest of the row
	ID      string   `json:"id,omitempty"`
	Aliases []string `json:"aliases,omitempty"`
	Void    bool     `json:"void,omitempty"` // the registry refused the row, so it has no name
}

// label returns the names of an entry.
func (e journalEntry) label(schemes *stele.Schemes) (label minting.Label, err error) {
	if label.ID, err = schemes.Parse(e.ID); err != nil {
		return label, err
	}
	for _, text := range e.Aliases {
		alias, err := schemes.Parse(text)
		if err != nil {
			return label, err
		}
		label.Aliases = append(label.Aliases, alias)
	}
	return label, nil
}

// openJournal opens the journal of a sheet, and reads what an earlier run wrote. The file
// is made by begin. Unavailable if another process uses it.
func openJournal(path string) (*journal, error) {
	j := &journal{path: path, entries: make(map[int]journalEntry)}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, disk.FileError(err)
	}
	if err := errors.Join(j.lock(file), j.read(file)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	j.file = file
	return j, nil
}

// lock makes sure that no other process names the rows of the sheet.
func (j *journal) lock(file *os.File) error {
	if disk.Lock(file) != nil {
		return refuse(stele.Unavailable, "mint.journal-in-use", "another stele process is using {path}; wait for it to end", j.path)
	}
	return nil
}

// read reads the journal, and passes over a last line that was not written to its end;
// the next line that is written takes its place. A
// journal without a whole first line is one that never began.
func (j *journal) read(file *os.File) error {
	in := bufio.NewReader(file)
	good := int64(0)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return disk.FileError(err)
		}
		if err := j.add(number, bytes.TrimSpace(line)); err != nil {
			return refuse(stele.Invalid, "mint.journal-line-unreadable", "line {line} of {path} can't be read ({cause}); if it is not a file of 'stele mint --from', move it away", number, j.path, err)
		}
		good += int64(len(line))
	}
	j.old, j.size = len(j.entries), good
	return nil
}

// add takes over a line of the journal.
func (j *journal) add(number int, line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if number == 1 {
		if err := d.Decode(&j.head); err != nil || j.head.Import == 0 {
			return errors.Join(err, stele.Messagef("mint.journal-without-import", "it does not begin with the number of an import"))
		}
		return nil
	}
	var e journalEntry
	if err := d.Decode(&e); err != nil {
		return err
	}
	j.keep(e)
	return nil
}

// keep remembers an entry. A row that the registry refused has no name.
func (j *journal) keep(e journalEntry) {
	if e.Void {
		delete(j.entries, e.Line)
		return
	}
	j.entries[e.Line] = e
}

// began reports whether the journal has its first line.
func (j *journal) began() bool { return j.head.Import != 0 }

// begin makes the journal, and writes its first line.
func (j *journal) begin(head journalHead) (err error) {
	if j.file == nil {
		if j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return j.failed(err)
		}
		if err := j.lock(j.file); err != nil {
			return err
		}
		if err := disk.Sync(filepath.Dir(j.path)); err != nil {
			return j.failed(err)
		}
	}
	j.head = head
	return j.write(head)
}

// append writes entries down, and returns when they are durable.
func (j *journal) append(list []journalEntry) error {
	lines := make([]any, len(list))
	for i, e := range list {
		lines[i] = e
	}
	if err := j.write(lines...); err != nil {
		return err
	}
	for _, e := range list {
		j.keep(e)
	}
	return nil
}

func (j *journal) write(lines ...any) error {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	for _, line := range lines {
		if err := out.Encode(line); err != nil {
			return err
		}
	}
	n, err := j.file.WriteAt(b.Bytes(), j.size)
	j.size += int64(n)
	return j.failed(errors.Join(err, j.file.Truncate(j.size), j.file.Sync()))
}

func (j *journal) failed(err error) error {
	if err == nil {
		return nil
	}
	return refuse(stele.Unavailable, "mint.journal-not-written", "which row gets which name can't be written down, so no more names are made: {cause}", err)
}

// close closes the journal. With done it is removed: the names stand in the sheet.
func (j *journal) close(done bool) error {
	if j.file == nil {
		return nil
	}
	var err error
	if done {
		err = os.Remove(j.path)
	}
	return errors.Join(err, j.file.Close())
}
