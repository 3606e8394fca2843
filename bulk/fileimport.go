package bulk

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// FileOptions say how a file is imported.
type FileOptions struct {
	Rejects   string // the file for rows that can't be imported; "": beside the imported one, or Complaints
	MaxErrors int    // rejected rows after which the import ends; negative: never
	DryRun    bool   // write nothing
	Update    bool   // change records that are registered already
	Again     bool   // start over, even if an earlier import of the file is complete
	Fresh     bool   // ignore the times and authors of creation and change that records give
	Secrets   bool   // records may have secrets in clear, which the registry encrypts
	MarkFirst bool   // keep the number of the import before the first record is written

	KeepTypes []string // types of handle values that are left out, which registered records keep

	Replace     bool     // with Update: remove what the file leaves out
	EmptyClears bool     // with Update: an empty cell of a CSV file removes what is there
	Columns     []string // what columns of a CSV file mean, as COLUMN=FIELD
	Encoding    Encoding // of a CSV file

	ChunkRows  int                                            // rows that are committed together
	Complaints io.Writer                                      // for rejected rows, where there is no file for them
	Changed    func(row *Row, fields []registrar.FieldChange) // what an update would change, in a dry run
}

// format returns how a CSV file is read.
func (o *FileOptions) format() (Format, error) {
	columns, err := ParseMap(o.Columns)
	f := Format{
		Columns:  HeaderOptions{Map: columns, Need: []string{"id", "url"}},
		Rows:     RowOptions{Merges: o.Update && !o.Replace, EmptyClears: o.EmptyClears},
		Encoding: o.Encoding,
	}
	if o.Update {
		f.Columns.Need = []string{"id"}
	}
	return f, err
}

// mode is the part of the options that distinguishes imports of one file: an interrupted import
// continues only in the same mode.
func (o *FileOptions) mode() string {
	mode := fmt.Sprintf("update=%t fresh=%t", o.Update, o.Fresh)
	if o.Replace {
		mode += " replace"
	}
	if o.Secrets {
		mode += " secrets"
	}
	if o.EmptyClears {
		mode += " empty-clears"
	}
	if len(o.Columns) > 0 || o.Encoding != Auto {
		mode += fmt.Sprintf(" %s %q", o.Encoding, o.Columns)
	}
	return mode
}

// FileImport is the import of a file, or of several that belong together.
type FileImport struct {
	*Importer
	File *File
	Text *Reader // nil if other rows than those of this package are read
	rows Rows

	// Explain says why reading failed. Without one it is the file that can't be read to its end.
	Explain func(error) error
}

// NewFileImport finds out what a file is, and how far an earlier import of it is.
func NewFileImport(ctx context.Context, to Destination, schemes *stele.Schemes, f *File, o FileOptions) (*FileImport, error) {
	format, err := o.format()
	if err != nil {
		return nil, err
	}
	text := NewReader(f)
	parser, err := NewParser(schemes, text, f.Name, format)
	if err != nil {
		return nil, err
	}
	im := &FileImport{File: f, Text: text, rows: textRows{text, parser}}
	return im, im.begin(ctx, to, f.Key, parser.Title, o)
}

// NewRowsImport finds out how far an earlier import is of rows that are not lines of JSON or CSV.
// The file is the first that is read. Key names all of them as they are now; "" if that is not known. Rows with a method Title
// have a header, which the file of rejected rows begins with.
func NewRowsImport(ctx context.Context, to Destination, rows Rows, f *File, key string, o FileOptions) (*FileImport, error) {
	im := &FileImport{File: f, rows: rows}
	var title []byte
	if t, ok := rows.(interface{ Title() []byte }); ok {
		title = t.Title()
	}
	return im, im.begin(ctx, to, key, title, o)
}

func (im *FileImport) begin(ctx context.Context, to Destination, key string, title []byte, o FileOptions) error {
	f := im.File
	label := filepath.Base(f.Name)
	im.Importer = &Importer{
		To: to, Label: label[:min(len(label), registrar.MaxLabel)], ChunkRows: o.ChunkRows, MaxErrors: o.MaxErrors, Update: o.Update, Fresh: o.Fresh, DryRun: o.DryRun, Secrets: o.Secrets, MarkFirst: o.MarkFirst, KeepTypes: o.KeepTypes,
		Rejects: &Rejects{Path: o.Rejects, Out: o.Complaints, Header: title}, Changed: o.Changed,
	}
	if o.Rejects == "" && f.Path != "" {
		im.Rejects.Path = f.Path + ".rejects"
	}
	if key != "" && !o.DryRun {
		im.Key = key + " " + o.mode()
	}
	if o.Again {
		return nil
	}
	return im.Resume(ctx)
}

// Run imports the rest of the file. Progress is called when the first row is about to be read.
func (im *FileImport) Run(ctx context.Context, progress func() Progress) error {
	explain := im.File.ReadError
	if im.Explain != nil {
		explain = im.Explain
	}
	return im.Importer.Run(ctx, im.rows, explain, progress)
}
