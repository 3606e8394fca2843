package bulk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/terminal"
)

// Rejects is where rows go that can't be imported. It is itself a file that
// can be imported: a remark says which line it was and what is wrong, and the row
// follows as it was.
//
//	# line 17: url: is not a URL
//	{"id":"ark:12345/x1","url":"nonsense"}
type Rejects struct {
	Path   string    // "" if they go to Out
	Out    io.Writer // standard error
	Header []byte    // of a CSV file

	file *os.File // nil until there is something to write
	size int64    // of the file, up to what is committed
}

// Add writes rows to the file, and syncs it; to Out if there is no file.
func (j *Rejects) Add(rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, row := range rows {
		fmt.Fprintf(&b, "# line %d: %s\n", row.Line, terminal.Printable(reasonOf(row.Err)))
		if long, ok := errors.AsType[*longRow](row.Err); ok {
			fmt.Fprintf(&b, "# it begins: %s\n", terminal.Printable(string(long.head)))
			continue
		}
		if row.Later != nil {
			row.Text = row.Later()
		}
		b.Write(row.Text)
		b.WriteByte('\n')
	}
	if j.Path == "" {
		for line := range bytes.Lines(b.Bytes()) {
			if _, err := fmt.Fprintln(j.Out, terminal.Printable(string(TrimEnd(line)))); err != nil {
				return err
			}
		}
		return nil
	}
	return j.write(b.Bytes())
}

func (j *Rejects) write(text []byte) error {
	if err := j.open(); err != nil {
		return failf(stele.Invalid, "import.rejects-file-not-written", "what can't be imported can't be written down: {cause}; name another file with --rejects", err)
	}
	n, err := j.file.Write(text)
	j.size += int64(n)
	if err = errors.Join(err, j.file.Sync()); err != nil {
		return failf(stele.Unavailable, "import.rejects-not-written", "what can't be imported can't be written down: {cause}", err)
	}
	return nil
}

// open opens the file. An import that continues keeps what it wrote up to its bookmark;
// another one begins anew.
func (j *Rejects) open() (err error) {
	if j.file != nil {
		return nil
	}
	if j.file, err = os.OpenFile(j.Path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
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
	if j.size == 0 && j.Header != nil {
		n, err := fmt.Fprintf(j.file, "%s\n", j.Header)
		j.size += int64(n)
		return err
	}
	return nil
}

// Close closes the file.
func (j *Rejects) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// reasonOf returns what is wrong, without what was tried on what: that stands in the
// row. It is one line.
func reasonOf(err error) string {
	return strings.ReplaceAll(stele.Reason(err).Error(), "\n", "; ")
}
