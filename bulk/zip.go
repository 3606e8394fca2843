package bulk

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// maxMembers is how many members a zip file may have in its directory, which is read as a whole.
const maxMembers = 1000

// unzip reads the only file of a zip file. Neither its name nor its path is used.
func (f *File) unzip(raw io.Reader) error {
	in, size := seekable(raw, f.Size)
	if in == nil {
		return failf(stele.Invalid, "import.zip-from-a-pipe", "{file} is a zip file, whose directory is at its end; name the file, or unpack it with 'unzip -p'", f.Name)
	}
	if !isSmallZip(in, size) {
		return failf(stele.Invalid, "import.zip-broken", "{file} is not a whole zip file, or has more than {most} files; get the rest of it, or unpack it", f.Name, maxMembers)
	}
	f.Read.Store(0)
	archive, err := zip.NewReader(&countingReaderAt{in, &f.Read}, size)
	if err != nil {
		return f.ReadError(err)
	}
	var found *zip.File
	for _, member := range archive.File {
		if strings.HasSuffix(member.Name, "/") {
			continue
		}
		if found != nil {
			return failf(stele.Invalid, "import.zip-several-files", "{file} has several files; unpack it, and name those that belong together", f.Name)
		}
		found = member
	}
	if found == nil {
		return failf(stele.Invalid, "import.zip-empty", "{file} has no file in it", f.Name)
	}
	text, err := found.Open()
	if err != nil {
		return f.ReadError(err)
	}
	f.text = text
	f.closers = append(f.closers, text.Close)
	return nil
}

// seekable returns a file, or a text in memory, of which any part can be read.
func seekable(raw io.Reader, size int64) (io.ReaderAt, int64) {
	in, ok := raw.(io.ReaderAt)
	if sized, known := raw.(interface{ Size() int64 }); ok && known {
		return in, sized.Size()
	}
	if !ok || size == 0 { // a pipe
		return nil, 0
	}
	return in, size
}

// isSmallZip reports whether the end of a file is that of a zip file with few members (APPNOTE.TXT, 4.3.16).
func isSmallZip(in io.ReaderAt, size int64) bool {
	const record, comment = 22, 1<<16 - 1
	end := make([]byte, min(size, record+comment))
	if _, err := in.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return false
	}
	at := bytes.LastIndex(end, []byte("PK\x05\x06"))
	return at >= 0 && len(end)-at >= record && binary.LittleEndian.Uint16(end[at+10:]) <= maxMembers
}

// countingReaderAt counts what is read.
type countingReaderAt struct {
	io.ReaderAt
	n *atomic.Int64
}

func (c *countingReaderAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.n.Add(int64(n))
	return n, err
}
