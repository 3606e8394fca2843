package bulk

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// Source is the registry that an export reads: one at hand, or a client of one.
type Source interface {
	// Export yields the records that begin with a prefix, in the order of their names; with
	// history all versions of each, the oldest first.
	Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error]

	// Namespaces yields all namespaces.
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
}

// WholeSource is a Source that knows what a registry keeps beside namespaces and records, and that another one must have to
// continue it.
type WholeSource interface {
	Source

	// MinterProgress returns how far the minter of a namespace is.
	MinterProgress(ctx context.Context, ns *stele.Namespace) (registrar.Progress, error)

	// FixedDataReader returns what tells which bytes records stand for.
	FixedDataReader(ctx context.Context) (*registrar.FixedDataReader, error)
}

// LineSource is a Source elsewhere that writes the lines of an export itself.
type LineSource interface {
	// ExportLines writes the lines of an export of JSON, with all that a whole source knows if namespaces are asked for. It
	// calls progress for each line.
	ExportLines(ctx context.Context, key stele.NamespaceKey, namespaces, history bool, out io.Writer, progress func(rows int)) error
}

// ExportOptions say what is exported, and in which form.
type ExportOptions struct {
	CSV        bool           // a row a record; otherwise a line of JSON. Records only, in their current version
	Namespaces bool           // namespaces too, before the records, how far their minters are, and which bytes names stand for
	History    bool           // all versions of each record, with their numbers
	Progress   func(rows int) // is called for each record; nil: is not
}

// Export writes the records whose identifiers begin with one of the prefixes; several prefixes are those of all schemes. For CSV it
// reads them twice: first it finds out which columns they need. With namespaces the source must be a [WholeSource] or a [LineSource].
func Export(ctx context.Context, from Source, keys []stele.NamespaceKey, out io.Writer, o ExportOptions) error {
	if there, ok := from.(LineSource); ok && !o.CSV {
		return exportLines(ctx, there, keys, out, o)
	}
	x := &exporter{from: from, keys: keys, out: out}
	if o.Namespaces {
		if err := x.namespaces(ctx, from.(WholeSource)); err != nil {
			return err
		}
	}
	write := x.record
	if o.CSV {
		if err := x.columns(ctx); err != nil {
			return err
		}
		write = x.row
	} else if o.History {
		write = x.line
	}
	for _, key := range keys {
		for rec, err := range from.Export(ctx, key, o.History) {
			if err != nil {
				return err
			}
			if err := write(ctx, rec); err != nil {
				return err
			}
			if o.Progress != nil {
				o.Progress(1)
			}
		}
	}
	return nil
}

// exporter is an export under way.
type exporter struct {
	from   Source
	keys   []stele.NamespaceKey
	out    io.Writer
	buf    []byte
	header Header                     // of CSV
	fixed  *registrar.FixedDataReader // nil if it is not asked for
}

// exportLines copies the lines that a source elsewhere writes.
func exportLines(ctx context.Context, from LineSource, keys []stele.NamespaceKey, out io.Writer, o ExportOptions) error {
	if len(keys) > 1 {
		keys = []stele.NamespaceKey{{}} // all namespaces, and then all records
	}
	for _, key := range keys {
		if err := from.ExportLines(ctx, key, o.Namespaces, o.History, out, o.Progress); err != nil {
			return err
		}
	}
	return nil
}

// namespaces writes the namespaces that a user made or changed, without what only the registry
// keeps about them, except how far their minters are.
func (x *exporter) namespaces(ctx context.Context, from WholeSource) (err error) {
	if x.fixed, err = from.FixedDataReader(ctx); err != nil {
		return err
	}
	for ns, err := range x.from.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if ns.Version == 0 || !slices.ContainsFunc(x.keys, func(key stele.NamespaceKey) bool {
			return ns.Scheme == key.Scheme && strings.HasPrefix(ns.Prefix, key.Prefix)
		}) {
			continue
		}
		progress, err := from.MinterProgress(ctx, ns)
		if err != nil {
			return err
		}
		x.buf = registrar.AppendNamespaceProgress(x.buf[:0], ns, progress)
		if _, err := x.out.Write(x.buf); err != nil {
			return err
		}
	}
	return nil
}

// record writes a record without its version, which counts the changes in one registry.
func (x *exporter) record(ctx context.Context, rec *stele.Record) (err error) {
	var fixed *registrar.FixedData
	if x.fixed != nil {
		if fixed, err = x.fixed.Of(ctx, rec.ID); err != nil {
			return err
		}
	}
	rec.Version, rec.Import, rec.Withheld = 0, 0, stele.Withheld{}
	x.buf = append(registrar.AppendFixedData(document.AppendRecord(x.buf[:0], rec), fixed), '\n')
	_, err = x.out.Write(x.buf)
	return err
}

// line writes one of all versions of a record.
func (x *exporter) line(_ context.Context, rec *stele.Record) error {
	x.buf = append(document.AppendRecord(x.buf[:0], rec), '\n')
	_, err := x.out.Write(x.buf)
	return err
}

// columns finds out which columns the records need, and writes the header.
func (x *exporter) columns(ctx context.Context) error {
	var c Columns
	for _, key := range x.keys {
		for rec, err := range x.from.Export(ctx, key, false) {
			if err != nil {
				return err
			}
			c.Add(rec)
		}
	}
	x.header = c.Header()
	_, err := x.out.Write(append(AppendRow(nil, x.header, ','), '\n'))
	return err
}

// row writes a record as a row of CSV.
func (x *exporter) row(_ context.Context, rec *stele.Record) error {
	cells, err := x.header.Cells(rec)
	if err != nil {
		return stele.Errorf("export", stele.ID{}, stele.Unavailable, "export.registry-changed", "the registry changed while it was exported: {cause}; export it again", err)
	}
	x.buf = append(AppendRow(x.buf[:0], cells, ','), '\n')
	_, err = x.out.Write(x.buf)
	return err
}
