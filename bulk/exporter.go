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

// ExportOptions say what is exported, and in which form.
type ExportOptions struct {
	CSV        bool           // a row a record; otherwise a line of JSON. Records only, in their current version
	Namespaces bool           // namespaces too, before the records
	History    bool           // all versions of each record, with their numbers
	Progress   func(rows int) // is called for each record; nil: is not
}

// Export writes the records whose identifiers begin with one of the prefixes. For CSV it reads them
// twice: first it finds out which columns they need.
func Export(ctx context.Context, from Source, keys []stele.NamespaceKey, out io.Writer, o ExportOptions) error {
	x := &exporter{from: from, keys: keys, out: out}
	if o.Namespaces {
		if err := x.namespaces(ctx); err != nil {
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
			if err := write(rec); err != nil {
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
	header Header // of CSV
}

// namespaces writes the namespaces that a user made or changed, without what only the registry
// keeps about them.
func (x *exporter) namespaces(ctx context.Context) error {
	for ns, err := range x.from.Namespaces(ctx) {
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

// record writes a record without its version, which counts the changes in one registry.
func (x *exporter) record(rec *stele.Record) error {
	rec.Version, rec.Import, rec.Withheld = 0, 0, stele.Withheld{}
	return x.line(rec)
}

func (x *exporter) line(rec *stele.Record) error {
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
func (x *exporter) row(rec *stele.Record) error {
	cells, err := x.header.Cells(rec)
	if err != nil {
		return stele.Errorf("export", stele.ID{}, stele.Unavailable, "export.registry-changed", "the registry changed while it was exported: {cause}; export it again", err)
	}
	x.buf = append(AppendRow(x.buf[:0], cells, ','), '\n')
	_, err = x.out.Write(x.buf)
	return err
}
