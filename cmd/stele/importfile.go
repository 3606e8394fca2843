package main

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
)

// importFile is what is imported: a file or standard input, decompressed if it is
// compressed.
type importFile struct {
	name string // for messages
	path string // "" for standard input
	size int64  // of the file, as it lies on the disk; 0 if nobody knows
	read atomic.Int64

	// key names the file as it is now: path, size, time of its last change, and its
	// first bytes. "" for standard input, which has no identity.
	key string

	text    io.Reader // decompressed
	whole   bool      // reads may wait for more: nobody writes meanwhile
	closers []func() error
}

const (
	keyBytes = 64 << 10 // of a file are part of its key

	// maxWindow is how much memory a zstd file may ask for: what "zstd --ultra"
	// without --long needs.
	maxWindow = 128 << 20
)

// openImport opens a file, or standard input for "-".
func (p *program) openImport(path string) (*importFile, error) {
	f := &importFile{name: "standard input"}
	var raw io.Reader = p.stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fileError(err)
		}
		raw = file
		f.closers = append(f.closers, file.Close)
		if err := f.identify(file, path); err != nil {
			return nil, errors.Join(err, f.close())
		}
	} else if isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "Type records, one a line; end with Ctrl-D.")
	}
	if err := f.decompress(raw); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// identify finds out which file it is.
func (f *importFile) identify(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return fileError(err)
	}
	f.name = path
	if info.IsDir() {
		return refuse("import", stele.Invalid, "%s is a folder; name a file", path)
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
		return fileError(err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%d\n%d\n", full, info.Size(), info.ModTime().UnixNano())
	sum.Write(head[:n])
	f.path, f.size, f.whole = full, info.Size(), true
	f.key = fmt.Sprintf("%s %x", full, sum.Sum(nil)[:16])
	return nil
}

// decompress finds out by its first bytes how the file is compressed.
func (f *importFile) decompress(raw io.Reader) error {
	in := &countingReader{r: raw, n: &f.read}
	head := make([]byte, 4)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	head = head[:n]
	all := io.MultiReader(bytes.NewReader(head), in)
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(all)
		if err != nil {
			return f.readError(err)
		}
		f.text = z
	case bytes.Equal(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return f.readError(err)
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

// readError says that the file can't be read to its end.
func (f *importFile) readError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse("import", stele.Invalid, "%s is compressed and ends too early; get the rest of it", f.name)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return refuse("import", stele.Invalid, "%s needs too much memory to decompress; compress it again without --long", f.name)
	case errors.Is(err, os.ErrClosed):
		return err
	}
	return refuse("import", stele.Invalid, "%s can't be read to its end: %w", f.name, err)
}

func (f *importFile) close() error {
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

// seekingReader is a file that is not compressed: to go on behind its beginning one
// need not read that.
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

// fileError is the error about a file that somebody named.
func fileError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &stele.Error{Kind: stele.NotFound, Err: err}
	}
	return &stele.Error{Kind: stele.Invalid, Err: err}
}

// refuse makes an error of a verb.
func refuse(op string, kind stele.Kind, format string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: fmt.Errorf(format, args...)}
}
