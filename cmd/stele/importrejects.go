package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// importRejects is where rows go that can't be imported. It is itself a file that
// can be imported: a remark says which line it was and what is wrong, and the row
// follows as it was.
//
//	# line 17: url: is not a URL
//	{"id":"ark:12345/x1","url":"nonsense"}
type importRejects struct {
	path   string    // "" if they go to w
	w      io.Writer // standard error
	header []byte    // of a CSV file
	file   *os.File  // nil until there is something to write
	size   int64     // of the file, up to what is committed
}

// add writes down rows, and makes sure that they stay.
func (j *importRejects) add(rows []importRow) error {
	if len(rows) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, row := range rows {
		fmt.Fprintf(&b, "# line %d: %s\n", row.line, printable(reasonOf(row.err)))
		if long, ok := errors.AsType[*longRow](row.err); ok {
			fmt.Fprintf(&b, "# it begins: %s\n", printable(string(long.head)))
			continue
		}
		b.Write(row.text)
		b.WriteByte('\n')
	}
	if j.path == "" {
		for line := range bytes.Lines(b.Bytes()) {
			if _, err := fmt.Fprintln(j.w, printable(string(bulk.TrimEnd(line)))); err != nil {
				return err
			}
		}
		return nil
	}
	return j.write(b.Bytes())
}

func (j *importRejects) write(text []byte) error {
	if err := j.open(); err != nil {
		return refuse("import", stele.Invalid, "what can't be imported can't be written down: %w; name another file with --rejects", err)
	}
	n, err := j.file.Write(text)
	j.size += int64(n)
	if err = errors.Join(err, j.file.Sync()); err != nil {
		return refuse("import", stele.Unavailable, "what can't be imported can't be written down: %w", err)
	}
	return nil
}

// open opens the file. An import that goes on keeps what it wrote up to its bookmark;
// another one begins anew.
func (j *importRejects) open() (err error) {
	if j.file != nil {
		return nil
	}
	if j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		j.size = min(j.size, info.Size())
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
		if _, err := j.file.Seek(j.size, io.SeekStart); err != nil {
			return err
		}
	}
	if j.size == 0 && j.header != nil {
		n, err := fmt.Fprintf(j.file, "%s\n", j.header)
		j.size += int64(n)
		return err
	}
	return nil
}

func (j *importRejects) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// reasonOf returns what is wrong, without what was tried on what: that stands in the
// row. It is one line.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*stele.Error](err); ok && e.Err != nil {
		err = e.Err
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
