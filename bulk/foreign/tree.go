package foreign

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// Limits of a folder with files that are read together.
const (
	maxTreeFile  = 4 << 20   // bytes of a file
	maxTreeText  = 256 << 20 // bytes of all
	maxTreeFiles = 200_000
)

// treeFile is a file of a folder.
type treeFile struct {
	name string // its path, with slashes
	text string
}

// tarName returns the name of the first file of a tar archive.
func tarName(head []byte) string {
	name, _, _ := bytes.Cut(head[:min(100, len(head))], []byte{0})
	return string(name)
}

// readTree reads files, and the archives among them, of which it takes the files that are wanted.
func (s *Source) readTree(texts []*window, archive Format, wanted func(base string) bool) (list []treeFile, err error) {
	room := maxTreeText
	var unended, outside []string
	read := func(in io.Reader, name string) (string, error) {
		text, err := readAll(in, name, &room)
		if n := len(text); n > 0 && text[n-1] != '\n' && !strings.EqualFold(path.Base(name), "readme.md") {
			unended = append(unended, name)
		}
		return text, err
	}
	for i, w := range texts {
		if s.kinds[i] != archive {
			text, err := read(windowReader{w}, w.name)
			if err != nil {
				return nil, err
			}
			list = append(list, treeFile{w.name, text})
			continue
		}
		in := tar.NewReader(windowReader{w})
		for {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, failf(stele.Invalid, "import.archive-damaged", "{file} is not a whole tar archive: {cause}", w.name, err)
			}
			if h.Typeflag != tar.TypeReg || !wanted(path.Base(h.Name)) {
				continue
			}
			if len(list) == maxTreeFiles {
				return nil, failf(stele.Invalid, "import.archive-files-too-many", "{file} has more than {most} files; import its folders one by one", w.name, maxTreeFiles)
			}
			name, inside := s.belowRoot(path.Clean(strings.TrimPrefix(h.Name, "./")))
			if !inside {
				outside = append(outside, name)
				continue
			}
			text, err := read(in, name)
			if err != nil {
				return nil, err
			}
			list = append(list, treeFile{name, text})
		}
	}
	if len(outside) > 0 {
		s.note("import.tree-outside-root", "{count} files are not in the folder {folder}, and are left out, such as {file}", len(outside), s.o.Root, outside[0])
	}
	for i, name := range unended {
		if left := len(unended) - i; i == maxUnended && left > 1 {
			s.note("import.files-unended", "{count} more files do not end with a line end, such as {file}; check their last lines", left, name)
			break
		}
		s.note("import.file-unended", "{file} does not end with a line end; check its last row", name)
	}
	return list, nil
}

// belowRoot returns the path of a file after the folder at which names begin, and whether it is in that folder.
func (s *Source) belowRoot(name string) (string, bool) {
	root := strings.Trim(s.o.Root, "/")
	if root == "" {
		return name, true
	}
	if rest, ok := strings.CutPrefix(name, root+"/"); ok {
		return rest, true
	}
	return name, false
}

// maxUnended is how many files are named of those that may be cut off.
const maxUnended = 10

// readAll reads a file of a folder.
func readAll(in io.Reader, name string, room *int) (string, error) {
	text, err := io.ReadAll(io.LimitReader(in, int64(min(maxTreeFile, *room))+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxTreeFile || len(text) > *room:
		return "", failf(stele.Invalid, "import.tree-too-large", "{file} is too large: a file has {most} bytes at most, and all of them {all}", name, maxTreeFile, maxTreeText)
	}
	*room -= len(text)
	return string(text), nil
}

// rowsPart has rows that are made together, because what one file says depends on others. Its bookmark is the number
// of rows, which are the same each time.
type rowsPart struct {
	s    *Source
	load func() ([]bulk.Row, error)
	rows []bulk.Row
	done int
	made bool
}

func (p *rowsPart) ready() (err error) {
	if !p.made {
		p.rows, err = p.load()
		p.made = err == nil
	}
	return err
}

// next implements part.
func (p *rowsPart) next() (*bulk.Block, error) {
	if err := p.ready(); err != nil {
		return nil, err
	}
	if p.done == len(p.rows) {
		return nil, io.EOF
	}
	const some = 1000
	b := &bulk.Block{Rows: p.rows[p.done:min(len(p.rows), p.done+some)]}
	for i := range b.Rows {
		b.Size += len(b.Rows[i].Text) + 512
	}
	p.done += len(b.Rows)
	b.Line, b.Next, b.End = b.Rows[0].Line, b.Rows[len(b.Rows)-1].Line+1, int64(p.done)
	return b, nil
}

// parse implements part.
func (p *rowsPart) parse(row *bulk.Row) { p.s.fill(row, row.Record) }

// skip implements part.
func (p *rowsPart) skip(end int64, _ int) error {
	if err := p.ready(); err != nil {
		return err
	}
	p.done = min(int(end), len(p.rows))
	return nil
}

func (p *rowsPart) close() error { return nil }

// PackTree writes files as a tar archive, which a system reads as it reads the folder that they are in: a folder may
// have more files than a process can have open.
func PackTree(out io.Writer, each func(add func(name string, text []byte) error) error) error {
	w := tar.NewWriter(out)
	files, room := 0, maxTreeText
	err := each(func(name string, text []byte) error {
		if files++; files > maxTreeFiles {
			return failf(stele.Invalid, "import.archive-files-too-many", "{file} has more than {most} files; import its folders one by one", name, maxTreeFiles)
		}
		if room -= len(text); len(text) > maxTreeFile || room < 0 {
			return failf(stele.Invalid, "import.tree-too-large", "{file} is too large: a file has {most} bytes at most, and all of them {all}", name, maxTreeFile, maxTreeText)
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err := w.Write(text)
		return err
	})
	return errors.Join(err, w.Close())
}
