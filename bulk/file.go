package bulk

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// File is what is imported: a file or standard input, decompressed if it is
// compressed.
type File struct {
	Name string       // for messages
	Path string       // "" for standard input
	Size int64        // of the file, as it lies on the disk; 0 if it is not known
	Read atomic.Int64 // bytes of it

	// Key names the file as it is now: path, size, time of its last change, and its
	// first bytes. "" for standard input, which has no identity.
	Key string

	text    io.Reader // decompressed
	whole   bool      // reads may wait for more: no other process writes meanwhile
	closers []func() error
}

const (
	keyBytes = 64 << 10 // of a file are part of its key

	// maxWindow is how much memory a zstd file may ask for: what "zstd --ultra"
	// without --long needs.
	maxWindow = 128 << 20
)

// OpenFile opens a file.
func OpenFile(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, disk.FileError(err)
	}
	f := &File{closers: []func() error{file.Close}}
	if err := f.identify(file, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.begin(file)
}

// NewFile reads from something else, such as standard input.
func NewFile(name string, in io.Reader) (*File, error) { return (&File{Name: name}).begin(in) }

func (f *File) begin(raw io.Reader) (*File, error) {
	if err := f.decompress(raw); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// CanSeek reports whether a part of the file can be read again: it is neither compressed
// nor a pipe.
func (f *File) CanSeek() bool {
	_, ok := f.text.(*seekingReader)
	return ok
}

// identify finds out which file it is.
func (f *File) identify(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return disk.FileError(err)
	}
	f.Name = path
	if info.IsDir() {
		return failf(stele.Invalid, "import.file-is-a-folder", "{path} is a folder; name a file", path)
	}
	if !info.Mode().IsRegular() { // a pipe can't be read again
		return nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	head := make([]byte, keyBytes)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return disk.FileError(err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%d\n%d\n", full, info.Size(), info.ModTime().UnixNano())
	sum.Write(head[:n])
	f.Path, f.Size, f.whole = full, info.Size(), true
	f.Key = fmt.Sprintf("%s %x", full, sum.Sum(nil)[:16])
	return nil
}

// decompress finds out by its first bytes how the file is compressed.
func (f *File) decompress(raw io.Reader) error {
	in := &countingReader{r: raw, n: &f.Read}
	head := make([]byte, 4)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	head = head[:n]
	if bytes.Equal(head, []byte("PK\x03\x04")) {
		return f.unzip(raw)
	}
	all := io.MultiReader(bytes.NewReader(head), in)
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(all)
		if err != nil {
			return f.ReadError(err)
		}
		f.text = z
	case bytes.Equal(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return f.ReadError(err)
		}
		f.text = z
		f.closers = append(f.closers, func() error { z.Close(); return nil })
	default:
		f.text = all
		if s, ok := raw.(io.Seeker); ok && f.whole {
			f.text = &seekingReader{Reader: all, in: in, seeker: s}
		}
	}
	return nil
}

// Text returns what the file says, decompressed, for other readers than those of this package.
func (f *File) Text() io.Reader { return fileText{f} }

// fileText reads a file with errors for people.
type fileText struct{ file *File }

func (t fileText) Read(b []byte) (int, error) {
	n, err := t.file.text.Read(b)
	if err != nil && err != io.EOF {
		err = t.file.ReadError(err)
	}
	return n, err
}

// ReadError says that the file can't be read to its end.
func (f *File) ReadError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return failf(stele.Invalid, "import.compressed-file-cut-off", "{file} is compressed and ends too early; get the rest of it", f.Name)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return failf(stele.Invalid, "import.decompression-needs-memory", "{file} needs too much memory to decompress; compress it again without --long", f.Name)
	case errors.Is(err, os.ErrClosed):
		return err
	}
	return failf(stele.Invalid, "import.file-not-read-to-end", "{file} can't be read to its end: {cause}", f.Name, err)
}

// Close closes the file.
func (f *File) Close() error {
	var errs []error
	for _, end := range f.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// countingReader counts what is read.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// seekingReader is a file that is not compressed: it continues at an offset without
// reading what is before it.
type seekingReader struct {
	io.Reader
	in     *countingReader
	seeker io.Seeker
}

// seekTo makes the next read begin at an offset.
func (s *seekingReader) seekTo(offset int64) error {
	if _, err := s.seeker.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	s.in.n.Store(offset)
	s.Reader = s.in
	return nil
}

// failf makes an error of an import.
func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "import", Kind: kind, Err: stele.Messagef(code, text, args...)}
}
