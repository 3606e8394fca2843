package foreign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// A list has the names of the handles that are read from a server that runs. The server may list them
// in another order each time, and handles come and go: only a list that does not change lets an
// import that was killed continue. It is a text: an object that says what it is, then a name a line,
// in quotes. A name after a question mark may be missing at the server.

// ListHead says of what a list is.
type ListHead struct {
	Server   string    `json:"handlesOf"` // as the user named it
	Prefixes []string  `json:"prefixes"`  // such as 20.500.12345
	Listed   time.Time `json:"listed"`
}

// Same reports whether two lists are of the same prefixes of the same server.
func (h *ListHead) Same(as *ListHead) bool {
	return h.Server == as.Server && strings.Join(h.Prefixes, " ") == strings.Join(as.Prefixes, " ")
}

const (
	maxListed   = 100_000_000 // names
	maxListHead = 64 << 10    // bytes
)

// WriteList asks a server for the handles of the prefixes, and writes the list of them. The file is there
// when the list is complete, and not before. Tell is called for each name.
func WriteList(ctx context.Context, path string, h ListHead, from Server, tell func()) (err error) {
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return disk.FileError(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part) // the error that is returned says more
		}
	}()
	err = writeList(ctx, file, h, from, tell)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return disk.FileError(err)
	}
	return disk.Sync(filepath.Dir(path))
}

func writeList(ctx context.Context, file *os.File, h ListHead, from Server, tell func()) error {
	out := bufio.NewWriterSize(file, windowBytes)
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	text := append(head, '\n')
	for _, prefix := range h.Prefixes {
		text = strconv.AppendQuote(append(text, '?'), authorities+prefix)
		text = append(text, '\n')
	}
	if _, err := out.Write(text); err != nil {
		return disk.FileError(err)
	}
	count := 0
	for _, prefix := range h.Prefixes {
		for name, err := range from.List(ctx, prefix) {
			if err != nil {
				return failf(stele.KindOf(err), "import.live-not-listed", "the handles of {prefix} are not listed: {cause}", prefix, stele.Reason(err))
			}
			if count++; count > maxListed {
				return failf(stele.Exhausted, "import.live-too-many", "{server} lists more than {most} handles; import the prefixes one by one", h.Server, maxListed)
			}
			text = append(strconv.AppendQuote(text[:0], name), '\n')
			if _, err := out.Write(text); err != nil {
				return disk.FileError(err)
			}
			tell()
		}
	}
	return errors.Join(out.Flush(), file.Sync())
}

// ReadListHead says of what the list in a file is; nil if there is no such file.
func ReadListHead(path string) (*ListHead, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, disk.FileError(err)
	}
	defer file.Close()
	line, err := bufio.NewReader(io.LimitReader(file, maxListHead)).ReadBytes('\n')
	if err != nil {
		return nil, notAList(path)
	}
	return parseListHead(path, line)
}

func parseListHead(name string, line []byte) (*ListHead, error) {
	var h ListHead
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if d.Decode(&h) != nil || h.Server == "" || len(h.Prefixes) == 0 {
		return nil, notAList(name)
	}
	return &h, nil
}

func notAList(name string) error {
	return failf(stele.Invalid, "import.live-list-invalid", "{file} is not a list of handles that an import has written; name another file with --list, or list anew with --again", name)
}

// parseListed reads a line of a list.
func parseListed(line []byte) (name string, optional, ok bool) {
	text, optional := strings.CutPrefix(string(line), "?")
	name, err := strconv.Unquote(text)
	return name, optional, err == nil && name != "" && strings.HasPrefix(text, `"`)
}
