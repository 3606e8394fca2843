// Package sheet gives names to the rows of a CSV file: it makes names, registers what each row
// says, and writes the names into the file. A run that was interrupted can be continued, and
// no row gets two names.
package sheet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/internal/disk"
)

// Options are which file gets names, and how.
type Options struct {
	From      string        // the file
	Output    string        // where it is written to; "" for the file itself
	Column    string        // for the names
	Columns   []string      // what columns mean, as COLUMN=FIELD
	Encoding  bulk.Encoding // of the file
	Rejects   string        // file for rows that get no name; "" for From with .rejects
	MaxErrors int           // so many rows may be rejected; -1 for any number
	DryRun    bool          // make no names

	// OnEncoding is called when the encoding of the file is known.
	OnEncoding func(rows *bulk.Reader, f *bulk.File)
}

// Sheet is the file whose rows get names. It is read three times: to count rows, to name
// them, and to write them with their names.
type Sheet struct {
	o        Options
	path     string // with no symbolic links
	output   string
	info     os.FileInfo // of the file as it was at first
	encoding bulk.Encoding
	nameless int // rows without a name
}

// Open finds the file, and reads it to find out its encoding and how many rows have no
// name. Invalid if it is not a CSV file that can be written back as it is.
func Open(o Options) (*Sheet, error) {
	path, err := filepath.EvalSymlinks(o.From)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, disk.FileError(err)
	}
	s := &Sheet{o: o, path: path, output: path, encoding: o.Encoding}
	if s.info, err = os.Stat(path); err != nil {
		return nil, disk.FileError(err)
	}
	if o.Output != "" {
		if s.output, err = filepath.Abs(o.Output); err != nil {
			return nil, err
		}
	}
	return s, s.survey()
}

// Nameless returns how many rows have no name.
func (s *Sheet) Nameless() int { return s.nameless }

// Output returns the file that gets the names.
func (s *Sheet) Output() string { return s.output }

// survey reads the file once.
func (s *Sheet) survey() error {
	r, err := s.read(nil)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		row, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if row.isNameless() {
			s.nameless++
		}
	}
	if r.rows.Decoder().Damaged() {
		return refuse(stele.Invalid, "mint.file-has-broken-utf16", "{path} has UTF-16 that stands for no characters, so it could not be written as it was; save it as UTF-8 first", s.path)
	}
	s.o.OnEncoding(r.rows, r.file)
	s.encoding, _ = r.rows.Decoder().Found()
	return nil
}

// changed reports whether the file is another one than at first.
func (s *Sheet) changed() (bool, error) {
	now, err := os.Stat(s.path)
	if err != nil {
		return false, disk.FileError(err)
	}
	return !os.SameFile(s.info, now) || now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()), nil
}

// reader reads the rows of a sheet as they stand there.
type reader struct {
	sheet  *Sheet
	file   *bulk.File
	rows   *bulk.Reader
	parser *bulk.Parser // its header has the column for names
	index  int          // of that column
	added  bool         // the file does not have that column
	block  *bulk.Block
	line   int
}

// row is a row of a sheet.
type row struct {
	line  int
	text  []byte // without its end
	end   []byte // the end of its line
	cells []string
	asIs  bool   // a remark, or empty
	name  string // in its column; "" if it has none
	err   error  // what is wrong with its cells
}

func (r *row) isNameless() bool { return !r.asIs && r.err == nil && r.name == "" }

// digest tells rows apart that do not say the same.
func (r *row) digest() string {
	sum := sha256.Sum256(r.text)
	return hex.EncodeToString(sum[:8])
}

// read opens the file at its first row.
func (s *Sheet) read(schemes *stele.Schemes) (*reader, error) {
	file, err := bulk.OpenFile(s.path)
	if err != nil {
		return nil, sheetError(err)
	}
	r := &reader{sheet: s, file: file, rows: bulk.NewReader(file)}
	if err := r.begin(schemes); err != nil {
		return nil, errors.Join(sheetError(err), r.close())
	}
	return r, nil
}

func (r *reader) begin(schemes *stele.Schemes) error {
	if !r.file.CanSeek() {
		return refuse(stele.Invalid, "mint.file-compressed", "{file} is compressed, or not a file; --from needs a CSV file that it can write into", r.file.Name)
	}
	columns, err := bulk.ParseMap(r.sheet.o.Columns)
	if err != nil {
		return err
	}
	r.rows.Lone, r.rows.Keeps = true, true
	r.parser, err = bulk.NewParser(schemes, r.rows, r.file.Name, bulk.Format{
		Columns: bulk.HeaderOptions{Map: columns, ID: r.sheet.o.Column}, Encoding: r.sheet.encoding,
	})
	r.rows.Keeps = false
	switch {
	case err != nil:
		return err
	case r.parser.Header == nil:
		return refuse(stele.Invalid, "mint.file-without-header", "{file} is empty, or has records in JSON; --from needs a CSV file with a header", r.file.Name)
	}
	if r.index = slices.Index(r.parser.Header, "id"); r.index < 0 {
		r.index, r.added = len(r.parser.Header), true
		r.parser.Header = append(slices.Clone(r.parser.Header), "id")
	}
	return nil
}

func (r *reader) close() error { return r.file.Close() }

// head returns what stands before the first row, as it is written: with the column for
// names.
func (r *reader) head() ([]byte, error) {
	text := r.rows.Passed()
	if !r.added {
		return text, nil
	}
	at := bytes.LastIndex(text, r.parser.Title)
	title, err := bulk.SetCell(r.parser.Title, r.parser.Delimiter, r.index, r.sheet.o.Column, r.quotes())
	if err != nil || at < 0 {
		return nil, errors.Join(err, stele.Messagef("mint.header-not-found-again", "the header can't be found again"))
	}
	return slices.Concat(text[:at], title, text[at+len(r.parser.Title):]), nil
}

// quotes reports whether the file has quotation marks around all cells.
func (r *reader) quotes() bool { return bulk.IsQuoted(r.parser.Title, r.parser.Delimiter) }

// next returns the next row; io.EOF after the last one.
func (r *reader) next() (row row, err error) {
	for r.block == nil || len(r.block.Text) == 0 {
		if r.block, err = r.rows.Next(); err == io.EOF {
			return row, err
		} else if err != nil {
			return row, sheetError(r.file.ReadError(err))
		}
		if r.block.Long > 0 {
			return row, refuse(stele.Invalid, "mint.file-line-too-long", "line {line} of {file} has {size} bytes; {most} are the most, so the file could not be written as it was",
				r.block.Line, r.file.Name, r.block.Long, bulk.MaxRow)
		}
		r.line = r.block.Line
	}
	text := r.block.Text
	n := bulk.RowEnd(text, r.parser.Delimiter)
	if n == 0 {
		n = len(text)
	}
	row.line, row.text = r.line, bulk.TrimEnd(text[:n])
	row.end = text[len(row.text):n]
	r.line += bytes.Count(text[:n], []byte{'\n'})
	r.block.Text = text[n:]
	r.split(&row)
	return row, nil
}

// split finds the cells of a row, and its name.
func (r *reader) split(row *row) {
	if row.asIs = bulk.IsSkipped(row.text); row.asIs {
		return
	}
	if row.cells, row.err = bulk.SplitRow(row.text, r.parser.Delimiter, nil); row.err != nil {
		return
	}
	if row.asIs = bulk.IsEmpty(row.cells); row.asIs {
		return
	}
	if r.added {
		row.cells = append(row.cells, "")
	}
	if have, want := len(row.cells), len(r.parser.Header); have != want {
		if r.added {
			have, want = have-1, want-1
		}
		row.err = stele.Messagef("row.number-of-cells-differs", "the row has {cells} cells, and the header has {expected}", have, want)
		return
	}
	row.name = strings.TrimSpace(row.cells[r.index])
}

// named returns a row as it is written with a name. A row that has no name and could
// have one gets an empty cell where the column is new.
func (r *reader) named(row *row, name string) ([]byte, error) {
	if row.asIs || row.err != nil || name == "" && !r.added {
		return slices.Concat(row.text, row.end), nil
	}
	text, err := bulk.SetCell(row.text, r.parser.Delimiter, r.index, name, r.quotes())
	return append(text, row.end...), err
}

// record reads what a row says, with an identifier that stands for the name to come.
func (r *reader) record(row *row, id string) (*stele.Record, error) {
	cells := slices.Clone(row.cells)
	cells[r.index] = id
	rec, _, err := r.parser.ReadRow(cells)
	return rec, err
}

// sheetError makes an error of the file's reader one of mint.
func sheetError(err error) error {
	if e, ok := errors.AsType[*stele.Error](err); ok && e.Op == "import" {
		e.Op = "mint"
	}
	return err
}

// refuse makes an error of minting.
func refuse(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "mint", Kind: kind, Err: stele.Messagef(code, text, args...)}
}
