package main

import (
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/progress"

	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// exportOptions are the flags of export.
type exportOptions struct {
	prefix     string
	file       string
	format     string
	namespaces bool
	history    bool
}

func (p *program) exportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export [PREFIX]",
		Short: "Write all records to a file",
		Long: `Export writes the records whose identifiers begin with PREFIX, or all, as import
reads them: one in JSON a line, by scheme and then in the order of their names. What
is exported from another registry that imported it is the same, byte for byte.

A file that is named .gz or .zst is compressed. It appears when it is complete.

The version is left out: it counts the changes in one registry. With --history all
versions are written, the oldest first; a file like that is for people and programs
to read, not for import.

CSV has one row a record, with a column for everything that some record says, and says
all that jsonl does. A cell that a spreadsheet would take for a formula gets an
apostrophe in front, which import takes away. The records are read twice for it.`,
		Example: `  stele export > records.jsonl
  stele export ark:12345/x5 -o x5.jsonl.zst
  stele export --namespaces -o registry.jsonl.gz
  stele export --format csv urn:example -o example.csv`,
		Args: atMostOne("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.prefix = args[0]
			}
			switch {
			case o.format != "jsonl" && o.format != "csv":
				return misuse(cmd, "%.60q is not a format; there are jsonl and csv", o.format)
			case o.format == "csv" && (o.namespaces || o.history):
				return misuse(cmd, "CSV has records only, in their current version; use --format jsonl")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return p.export(ctx, l, o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "output", "o", "", "write to this `file`, not to standard output")
	flags.StringVar(&o.format, "format", "jsonl", "jsonl or csv")
	flags.BoolVar(&o.namespaces, "namespaces", false, "write namespaces too, before the records")
	flags.BoolVar(&o.history, "history", false, "write all versions of each record")
	choices(cmd, "format", "jsonl", "csv")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// export writes what the options ask for.
func (p *program) export(ctx context.Context, l *Registry, o exportOptions) error {
	keys, err := l.Beginnings(o.prefix)
	if err != nil {
		return err
	}
	out, err := p.newExportFile(o.file)
	if err != nil {
		return err
	}
	x := &exporter{registry: l, o: o, keys: keys, out: out.w, progress: p.newProgress("export", "records", 0, nil)}
	err = x.run(ctx)
	x.progress.End()
	if err = out.end(err); err != nil {
		return err
	}
	return nil
}

// exporter is an export under way.
type exporter struct {
	registry *Registry
	o        exportOptions
	keys     []stele.NamespaceKey
	out      io.Writer
	progress *progress.Bar
	buf      []byte
	header   bulk.Header // of CSV
}

func (x *exporter) run(ctx context.Context) error {
	if x.o.namespaces {
		if err := x.namespaces(ctx); err != nil {
			return err
		}
	}
	write := x.record
	if x.o.format == "csv" {
		if err := x.columns(ctx); err != nil {
			return err
		}
		write = x.row
	} else if x.o.history {
		write = x.line
	}
	for _, key := range x.keys {
		for rec, err := range x.registry.Export(ctx, key, x.o.history) {
			if err != nil {
				return err
			}
			if err := write(rec); err != nil {
				return err
			}
			x.progress.Add(1)
		}
	}
	return nil
}

// namespaces writes the namespaces that a user made or changed. What the system
// keeps of them is left out.
func (x *exporter) namespaces(ctx context.Context) error {
	for ns, err := range x.registry.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if ns.Version == 0 || !slices.ContainsFunc(x.keys, func(key stele.NamespaceKey) bool {
			return ns.Scheme == key.Scheme && strings.HasPrefix(ns.Prefix, key.Prefix)
		}) {
			continue
		}
		x.buf = registrar.AppendNamespaceLine(x.buf[:0], ns)
		if _, err := x.out.Write(x.buf); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) record(rec *stele.Record) error {
	rec.Version, rec.Import, rec.Withheld = 0, 0, stele.Withheld{}
	return x.line(rec)
}

func (x *exporter) line(rec *stele.Record) error {
	x.buf = append(document.AppendRecord(x.buf[:0], rec), '\n')
	_, err := x.out.Write(x.buf)
	return err
}

// exportFile is where an export goes.
type exportFile struct {
	w       io.Writer
	path    string // "" for standard output
	file    *os.File
	direct  bool           // the file has its name already
	closers []func() error // what must be flushed, the innermost last
}

// newExportFile opens a temporary file beside the one that is asked for; end renames it
// when it is complete.
func (p *program) newExportFile(path string) (*exportFile, error) {
	f := &exportFile{path: path}
	var w io.Writer = p.stdout
	if path != "" {
		file, err := f.open()
		if err != nil {
			return nil, disk.FileError(err)
		}
		f.file, w = file, file
	}
	buffered := bufio.NewWriterSize(w, 256<<10)
	f.w, f.closers = buffered, []func() error{buffered.Flush}
	switch filepath.Ext(path) {
	case ".gz":
		z := gzip.NewWriter(buffered)
		f.w, f.closers = z, []func() error{z.Close, buffered.Flush}
	case ".zst":
		z, err := zstd.NewWriter(buffered, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, f.end(err)
		}
		f.w, f.closers = z, []func() error{z.Close, buffered.Flush}
	}
	return f, nil
}

// open opens the file that is written. A device or a pipe is written to directly.
func (f *exportFile) open() (*os.File, error) {
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		f.direct = true
		return os.OpenFile(f.path, os.O_WRONLY, 0)
	}
	return os.OpenFile(f.path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// end gives the file its final name, or removes it if there was an error.
func (f *exportFile) end(err error) error {
	for _, end := range f.closers {
		if err == nil {
			err = end()
		}
	}
	if f.file == nil {
		return err
	}
	if f.direct {
		return errors.Join(err, f.file.Close())
	}
	if err == nil {
		err = f.file.Sync()
	}
	err = errors.Join(err, f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	return nil
}

// columns finds out which columns the records need, and writes the header. The records
// are read twice for it.
func (x *exporter) columns(ctx context.Context) error {
	var c bulk.Columns
	for _, key := range x.keys {
		for rec, err := range x.registry.Export(ctx, key, false) {
			if err != nil {
				return err
			}
			c.Add(rec)
		}
	}
	x.header = c.Header()
	_, err := x.out.Write(append(bulk.AppendRow(nil, x.header, ','), '\n'))
	return err
}

// row writes a record as a row of CSV.
func (x *exporter) row(rec *stele.Record) error {
	cells, err := x.header.Cells(rec)
	if err != nil {
		return refuse("export", stele.Unavailable, "the registry changed while it was exported: %w; export it again", err)
	}
	x.buf = append(bulk.AppendRow(x.buf[:0], cells, ','), '\n')
	_, err = x.out.Write(x.buf)
	return err
}
