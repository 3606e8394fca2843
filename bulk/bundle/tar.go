package bundle

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// A bundle is an archive of one form: POSIX ustar with regular files only, and with headers that say nothing but name, size and
// time. The reader makes each header again and compares it, so that there is one archive for the same files, and a changed bit of
// a header is seen.
const (
	blockSize  = 512
	maxTarName = 100
	maxTarTime = 1<<33 - 1
)

// tarHeader returns the header of a file.
func tarHeader(name string, size, mtime int64) (h [blockSize]byte) {
	octal := func(at, digits int, n int64) {
		text := strconv.FormatInt(n, 8)
		copy(h[at:], strings.Repeat("0", digits-len(text))+text)
	}
	copy(h[:maxTarName], name)
	octal(100, 7, 0o644)
	octal(108, 7, 0)
	octal(116, 7, 0)
	octal(124, 11, size)
	octal(136, 11, mtime)
	h[156] = '0'
	copy(h[257:], "ustar\x0000")
	octal(329, 7, 0)
	octal(337, 7, 0)
	copy(h[148:], "        ")
	sum := int64(0)
	for _, c := range h {
		sum += int64(c)
	}
	octal(148, 6, sum)
	h[154], h[155] = 0, ' '
	return h
}

// padding returns how many bytes follow a file of a size.
func padding(size int64) int64 { return -size & (blockSize - 1) }

// tarReader reads an archive of this form.
type tarReader struct {
	in     io.Reader
	offset int64 // how many bytes were read
	folder string
	mtime  int64
	left   int64 // of the file under way
	pad    int64
	broken error // why the archive can't be read on
}

// archiveError says where an archive is not one of this form.
func (t *tarReader) archiveError(at int64, why string) error {
	if t.broken == nil {
		t.broken = &stele.Error{Op: opRead, Kind: stele.Invalid, Err: stele.Messagef("bundle.archive-damaged", "the archive is damaged, or is not a bundle: at byte {offset} {reason}", at, why)}
	}
	return t.broken
}

// fill reads a block.
func (t *tarReader) fill(b []byte) error {
	n, err := io.ReadFull(t.in, b)
	at := t.offset
	t.offset += int64(n)
	if err == nil {
		return nil
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.broken = err
	}
	return t.archiveError(at, "it ends too early")
}

// next returns the next file; "" at the end of the archive, which is then read to its end.
func (t *tarReader) next() (name string, size int64, err error) {
	if err := t.skip(); err != nil {
		return "", 0, err
	}
	var h [blockSize]byte
	at := t.offset
	if err := t.fill(h[:]); err != nil {
		return "", 0, err
	}
	if h == [blockSize]byte{} {
		return "", 0, t.end()
	}
	full, _, _ := bytes.Cut(h[:maxTarName], []byte{0})
	size, ok := octalOf(h[124:135])
	mtime, ok2 := octalOf(h[136:147])
	folder, name, ok3 := strings.Cut(string(full), "/")
	if !ok || !ok2 || !ok3 || tarHeader(string(full), size, mtime) != h {
		return "", 0, t.archiveError(at, "is not the header of a file as bundles have it")
	}
	if t.folder == "" {
		if !isFolder(folder) {
			return "", 0, t.archiveError(at, "is the name of a folder that bundles do not have")
		}
		t.folder, t.mtime = folder, mtime
	}
	if folder != t.folder || mtime != t.mtime {
		return "", 0, t.archiveError(at, "is a file of another folder or time than the first one")
	}
	t.left, t.pad = size, padding(size)
	return name, size, nil
}

// octalOf reads a number of a header.
func octalOf(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}

// Read reads from the file under way.
func (t *tarReader) Read(p []byte) (int, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	n, err := t.in.Read(p[:min(int64(len(p)), t.left)])
	t.left -= int64(n)
	at := t.offset
	t.offset += int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF) && t.left == 0:
		return n, nil
	case !errors.Is(err, io.EOF):
		t.broken = err
	}
	return n, t.archiveError(at+int64(n), "it ends too early")
}

// skip reads the rest of the file under way, and what follows it up to the next block.
func (t *tarReader) skip() error {
	if t.left > 0 {
		if _, err := io.Copy(io.Discard, t); err != nil {
			return err
		}
	}
	var zero [blockSize]byte
	pad := zero[:t.pad]
	t.pad = 0
	at := t.offset
	if err := t.fill(pad); err != nil {
		return err
	}
	for i, c := range pad {
		if c != 0 {
			return t.archiveError(at+int64(i), "is not zero, after the end of a file")
		}
	}
	return nil
}

// end reads the second block of the end of the archive, after which nothing follows.
func (t *tarReader) end() error {
	var b [blockSize]byte
	at := t.offset
	if err := t.fill(b[:]); err != nil {
		return err
	}
	if b != [blockSize]byte{} {
		return t.archiveError(at, "it does not end as an archive ends")
	}
	at = t.offset
	switch n, err := io.ReadFull(t.in, b[:1]); {
	case n > 0:
		return t.archiveError(at, "something follows the end of the archive")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// maxFolder is how long the name of the folder in an archive may be: paths in it stay within what a header can say.
const maxFolder = 30

// isFolder reports whether a text can be the name of the folder.
func isFolder(name string) bool { return name != "" && name == folderName(name) }

// folderName returns the name of the folder for a log: its origin with other characters replaced.
func folderName(origin string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(origin) {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && (c == '.' || c == '-'):
			b.WriteRune(c)
		case b.Len() > 0:
			b.WriteByte('-')
		}
		if b.Len() >= maxFolder {
			break
		}
	}
	if name := strings.TrimRight(b.String(), ".-"); name != "" {
		return name
	}
	return "bundle"
}
