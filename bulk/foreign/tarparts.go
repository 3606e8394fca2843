package foreign

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/stele-id/stele"
)

// tarParts reads the files of a tar archive as if they followed each other in one file: so lines are counted. It reads those whose
// names end as those of JSON do, also compressed ones, and tells others.
type tarParts struct {
	s    *Source
	tar  *tar.Reader
	w    *window // has the number of the line
	open func(w *window) func() (item, error)

	inner *window // of the file that is read
	next  func() (item, error)
	base  int // lines of the files before it
}

func newTarParts(s *Source, w *window, open func(*window) func() (item, error)) *tarParts {
	return &tarParts{s: s, w: &window{name: w.name, line: 1}, tar: tar.NewReader(windowReader{w}), open: open}
}

// windowReader reads what a window has not handed over yet.
type windowReader struct{ w *window }

func (r windowReader) Read(b []byte) (int, error) {
	if r.w.ended() {
		if err := r.w.failure(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	n := copy(b, r.w.buf[r.w.pos:])
	r.w.pos += n
	return n, nil
}

// isTar reports whether a file begins as a tar archive does (POSIX, ustar: the magic is at 257).
func isTar(head []byte) bool { return len(head) > 262 && bytes.Equal(head[257:262], []byte("ustar")) }

// read returns the next item of the archive.
func (t *tarParts) read() (item, error) {
	for {
		if t.inner == nil {
			if err := t.enter(); err != nil {
				return item{}, err
			}
		}
		it, err := t.next()
		t.w.line = t.base + t.inner.line
		if err == io.EOF {
			t.base += t.inner.line - 1
			t.inner = nil
			continue
		}
		it.line += t.base
		return it, err
	}
}

// enter goes to the next file with records; io.EOF at the end.
func (t *tarParts) enter() error {
	for {
		head, err := t.tar.Next()
		if err == io.EOF {
			return err
		}
		if err != nil {
			return failf(stele.Invalid, "import.tar-broken", "{file} can't be read as a tar archive: {cause}; get the rest of it", t.w.name, err)
		}
		if head.Typeflag == tar.TypeDir || head.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name := t.w.name + ": " + head.Name
		base := path.Ext(head.Name)
		if base == ".gz" {
			base = path.Ext(head.Name[:len(head.Name)-len(base)])
		}
		if head.Typeflag != tar.TypeReg || !slices.Contains([]string{".json", ".jsonl", ".ndjson"}, base) {
			t.s.note("import.tar-member-unknown", "{file} is left out: its name does not end in .json or .jsonl", name)
			continue
		}
		if isSparse(head) { // a few bytes could stand for very many
			t.s.note("import.tar-member-sparse", "{file} is left out: it is stored as a sparse file; pack it again without --sparse", name)
			continue
		}
		in := bufio.NewReader(t.tar)
		var text io.Reader = in
		if magic, _ := in.Peek(2); bytes.Equal(magic, []byte("\x1f\x8b")) {
			if text, err = gzip.NewReader(in); err != nil {
				return failf(stele.Invalid, "import.tar-member-broken", "{file} can't be decompressed: {cause}", name, err)
			}
		}
		t.inner = &window{name: name, in: partReader{t.s.o.Budget.Reader(text), name}, line: 1}
		t.next = t.open(t.inner)
		return nil
	}
}

// isSparse reports whether a file of an archive is stored without its holes (GNU tar, formats of sparse files 0.0 to 1.0).
func isSparse(head *tar.Header) bool {
	for name := range head.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return head.Typeflag == tar.TypeGNUSparse
}

// partReader reads a file of an archive, with errors that name it.
type partReader struct {
	io.Reader
	name string
}

func (r partReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if _, told := errors.AsType[*stele.Error](err); err != nil && err != io.EOF && !told {
		err = failf(stele.Invalid, "import.tar-member-broken", "{file} can't be decompressed: {cause}", r.name, err)
	}
	return n, err
}
