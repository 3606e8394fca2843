package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// sheetFlags are the flags of mint for a file whose rows get names.
type sheetFlags struct {
	from      string
	output    string
	column    string
	columns   []string // COLUMN=FIELD
	encoding  string
	rejects   string
	maxErrors int
	dryRun    bool
}

func (f *sheetFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "make a name for each row of this CSV `file`, register what the row says, and write the names into the file")
	flags.StringVar(&f.output, "output", "", "with --from: write to this `file` instead, and leave the other as it is")
	flags.StringVar(&f.column, "column", "id", "with --from: the column for the names; it is added if it is not there")
	flags.StringArrayVar(&f.columns, "map", nil, "with --from: what a column means, as `COLUMN=FIELD`; the field - passes it over, and '*=meta' makes metadata of all that are not known")
	flags.StringVar(&f.encoding, "encoding", string(bulk.Auto), "with --from: how characters stand in the file: auto, utf-8, cp1252, latin-1 or utf-16")
	flags.StringVar(&f.rejects, "rejects", "", "with --from: `file` for rows that get no name, and why (default FILE.rejects)")
	flags.IntVar(&f.maxErrors, "max-errors", -1, "with --from: give up when more rows than this are rejected (-1: never)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --from: tell what would happen, and make no names")
	choices(cmd, "encoding", bulk.Encodings()...)
	for _, name := range []string{"from", "output", "rejects"} {
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // names of files
		})
	}
}

// ofSheet are the flags that say something about the file of --from.
var ofSheet = []string{"output", "column", "map", "encoding", "rejects", "max-errors", "dry-run"}

// check finds what is wrong with the flags themselves.
func (f *sheetFlags) check(cmd *cobra.Command) error {
	if f.from == "" {
		for _, name := range ofSheet {
			if cmd.Flags().Changed(name) {
				return misuse(cmd, "--%s says something about a file whose rows get names; name the file with --from", name)
			}
		}
		return nil
	}
	for _, name := range slices.Concat([]string{"count", "to", "title", "who", "when", "where", "meta", "alias", "reader", "level", "until", "statement"}, targetFlags) {
		if cmd.Flags().Changed(name) {
			return misuse(cmd, "with --from the columns of the file say what the records are, so leave --%s out", name)
		}
	}
	switch {
	case f.from == "-":
		return misuse(cmd, "--from needs a file, since the names are written into it")
	case strings.TrimSpace(f.column) == "":
		return misuse(cmd, "--column is empty; name the column for the names")
	case !slices.Contains(bulk.Encodings(), bulk.Encoding(f.encoding)):
		return misuse(cmd, "%.60q is not an encoding that is known; there are auto, utf-8, cp1252, latin-1 and utf-16", f.encoding)
	}
	if _, err := bulk.ParseMap(f.columns); err != nil {
		return misuse(cmd, "--map: %w", err)
	}
	return nil
}

// sheet is the file whose rows get names. It is read three times: to count rows, to name
// them, and to write them with their names.
type sheet struct {
	p        *program
	o        sheetFlags
	path     string // with no symbolic links
	output   string
	info     os.FileInfo // of the file as it was at first
	encoding bulk.Encoding
	nameless int // rows without a name
}

// openSheet finds the file, and reads it to find out its encoding and how many rows have
// no name. Invalid if it is not a CSV file that can be written back as it is.
func (p *program) openSheet(o sheetFlags) (*sheet, error) {
	path, err := filepath.EvalSymlinks(o.from)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fileError(err)
	}
	s := &sheet{p: p, o: o, path: path, output: path, encoding: bulk.Encoding(o.encoding)}
	if s.info, err = os.Stat(path); err != nil {
		return nil, fileError(err)
	}
	if o.output != "" {
		if s.output, err = filepath.Abs(o.output); err != nil {
			return nil, err
		}
	}
	return s, s.survey()
}

// survey reads the file once.
func (s *sheet) survey() error {
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
		return refuse("mint", stele.Invalid, "%s has UTF-16 that stands for no characters, so it could not be written as it was; save it as UTF-8 first", s.path)
	}
	s.p.tellEncoding(r.rows, r.file)
	s.encoding, _ = r.rows.Decoder().Found()
	return nil
}

// changed reports whether the file is another one than at first.
func (s *sheet) changed() (bool, error) {
	now, err := os.Stat(s.path)
	if err != nil {
		return false, fileError(err)
	}
	return !os.SameFile(s.info, now) || now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()), nil
}

// sheetReader reads the rows of a sheet as they stand there.
type sheetReader struct {
	sheet  *sheet
	file   *bulk.File
	rows   *bulk.Reader
	parser *bulk.Parser // its header has the column for names
	index  int          // of that column
	added  bool         // the file does not have that column
	block  *bulk.Block
	line   int
}

// sheetRow is a row of a sheet.
type sheetRow struct {
	line  int
	text  []byte // without its end
	end   []byte // the end of its line
	cells []string
	asIs  bool   // a remark, or empty
	name  string // in its column; "" if it has none
	err   error  // what is wrong with its cells
}

func (r *sheetRow) isNameless() bool { return !r.asIs && r.err == nil && r.name == "" }

// digest tells rows apart that do not say the same.
func (r *sheetRow) digest() string {
	sum := sha256.Sum256(r.text)
	return hex.EncodeToString(sum[:8])
}

// read opens the file at its first row.
func (s *sheet) read(schemes *stele.Schemes) (*sheetReader, error) {
	file, err := s.p.openImport(s.path)
	if err != nil {
		return nil, sheetError(err)
	}
	r := &sheetReader{sheet: s, file: file, rows: bulk.NewReader(file)}
	if err := r.begin(schemes); err != nil {
		return nil, errors.Join(sheetError(err), r.close())
	}
	return r, nil
}

func (r *sheetReader) begin(schemes *stele.Schemes) error {
	if !r.file.CanSeek() {
		return refuse("mint", stele.Invalid, "%s is compressed, or not a file; --from needs a CSV file that it can write into", r.file.Name)
	}
	columns, err := bulk.ParseMap(r.sheet.o.columns)
	if err != nil {
		return err
	}
	r.rows.Lone, r.rows.Keeps = true, true
	r.parser, err = bulk.NewParser(schemes, r.rows, r.file.Name, bulk.Format{
		Columns: bulk.HeaderOptions{Map: columns, ID: r.sheet.o.column}, Encoding: r.sheet.encoding,
	})
	r.rows.Keeps = false
	switch {
	case err != nil:
		return err
	case r.parser.Header == nil:
		return refuse("mint", stele.Invalid, "%s is empty, or has records in JSON; --from needs a CSV file with a header", r.file.Name)
	}
	if r.index = slices.Index(r.parser.Header, "id"); r.index < 0 {
		r.index, r.added = len(r.parser.Header), true
		r.parser.Header = append(slices.Clone(r.parser.Header), "id")
	}
	return nil
}

func (r *sheetReader) close() error { return r.file.Close() }

// head returns what stands before the first row, as it is written: with the column for
// names.
func (r *sheetReader) head() ([]byte, error) {
	text := r.rows.Passed()
	if !r.added {
		return text, nil
	}
	at := bytes.LastIndex(text, r.parser.Title)
	title, err := bulk.SetCell(r.parser.Title, r.parser.Delimiter, r.index, r.sheet.o.column, r.quotes())
	if err != nil || at < 0 {
		return nil, errors.Join(err, errors.New("the header can't be found again"))
	}
	return slices.Concat(text[:at], title, text[at+len(r.parser.Title):]), nil
}

// quotes reports whether the file has quotation marks around all cells.
func (r *sheetReader) quotes() bool { return bulk.IsQuoted(r.parser.Title, r.parser.Delimiter) }

// next returns the next row; io.EOF after the last one.
func (r *sheetReader) next() (row sheetRow, err error) {
	for r.block == nil || len(r.block.Text) == 0 {
		if r.block, err = r.rows.Next(); err == io.EOF {
			return row, err
		} else if err != nil {
			return row, sheetError(r.file.ReadError(err))
		}
		if r.block.Long > 0 {
			return row, refuse("mint", stele.Invalid, "line %d of %s has %d bytes; %d are the most, so the file could not be written as it was",
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
func (r *sheetReader) split(row *sheetRow) {
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
		row.err = fmt.Errorf("the row has %d cells, and the header has %d", have, want)
		return
	}
	row.name = strings.TrimSpace(row.cells[r.index])
}

// named returns a row as it is written with a name. A row that has no name and could
// have one gets an empty cell where the column is new.
func (r *sheetReader) named(row *sheetRow, name string) ([]byte, error) {
	if row.asIs || row.err != nil || name == "" && !r.added {
		return slices.Concat(row.text, row.end), nil
	}
	text, err := bulk.SetCell(row.text, r.parser.Delimiter, r.index, name, r.quotes())
	return append(text, row.end...), err
}

// record reads what a row says, with an identifier that stands for the name to come.
func (r *sheetReader) record(row *sheetRow, id string) (*stele.Record, error) {
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
