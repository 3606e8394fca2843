package foreign

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/anvl"
	"github.com/stele-id/stele/document/ezidrecord"
)

// EZIDTable is a batch download of EZID in CSV.
const EZIDTable Target = "ezid-csv"

// null is a cell that tables of MySQL have instead of an empty one; see [table.said].
const null = `\N`

// ExportEZID writes the records whose identifiers begin with one of the prefixes as a batch download of EZID in CSV, which --from ezid reads.
// It leaves out records for some readers only and those whose content is redacted. It reads the records twice: first to find
// the columns. Told, progress and the result are those of [Export]. It makes each record again of its row, and tells of the first
// records what differs then.
func ExportEZID(ctx context.Context, from bulk.Source, keys []stele.NamespaceKey, schemes *stele.Schemes, out io.Writer, told func(name string, what error), progress func(rows int)) (done Exported, err error) {
	x := &ezidExport{schemes: schemes}
	if err := x.layout(ctx, from, keys); err != nil {
		return done, err
	}
	line := append(bulk.AppendRow(nil, x.columns, ','), '\n')
	if _, err := out.Write(line); err != nil {
		return done, err
	}
	for _, key := range keys {
		for rec, err := range from.Export(ctx, key, false) {
			if err != nil {
				return done, err
			}
			if progress != nil {
				progress(1)
			}
			if isHidden(rec) {
				done.Hidden++
				continue
			}
			cells, lost, err := x.row(rec)
			if err != nil {
				if done.Others++; done.Others <= maxUnsaid {
					told(rec.ID.String(), stele.Messagef("export.ezid-left-out", "it is left out, because import would refuse its row: {cause}", err))
				}
				continue
			}
			if len(lost) > 0 {
				if done.Unsaid++; done.Unsaid <= maxUnsaid {
					told(rec.ID.String(), stele.Messagef("export.ezid-unsaid", "EZID has no elements for {fields}", strings.Join(lost, ", ")))
				}
			}
			done.Records++
			line = append(bulk.AppendRow(line[:0], cells, ','), '\n')
			if _, err := out.Write(line); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// isHidden reports whether only some readers may see all of a record.
func isHidden(rec *stele.Record) bool { return rec.Redacted || len(rec.Readers) > 0 }

// ezidExport is an export as a batch download of EZID.
type ezidExport struct {
	schemes *stele.Schemes
	columns []string
}

// layout finds the columns: those of all such files, and then the other elements that records have. A file has no more of them than an
// import reads.
func (x *ezidExport) layout(ctx context.Context, from bulk.Source, keys []stele.NamespaceKey) error {
	x.columns = ezidrecord.Columns()
	seen := make(map[string]bool)
	for _, name := range x.columns {
		seen[name] = true
	}
	size := len(bulk.AppendRow(nil, x.columns, ',')) + len("\n")
	others := make(map[string]bool)
	for _, key := range keys {
		for rec, err := range from.Export(ctx, key, false) {
			if err != nil {
				return err
			}
			if isHidden(rec) {
				continue
			}
			for name := range ezidrecord.ToBatch(x.schemes, rec) {
				if seen[name] || others[name] || !isColumn(name) {
					continue
				}
				more := len(bulk.AppendCell(nil, name, ',')) + len(",")
				if len(x.columns)+len(others) < maxTableColumns && size+more < maxTableHeader {
					others[name] = true
					size += more
				}
			}
		}
	}
	x.columns = append(x.columns, slices.Sorted(maps.Keys(others))...)
	return nil
}

// isColumn reports whether a header can have a name as it is: names are not marked there as cells are that a spreadsheet would take for formulas.
func isColumn(name string) bool {
	return utf8.ValidString(name) && strings.TrimSpace(name) == name && bulk.Neutralise(name) == name && strings.IndexFunc(name, unicode.IsControl) < 0
}

// row returns the cells of a record, and what they do not say. Elements that an import would refuse are left empty.
func (x *ezidExport) row(rec *stele.Record) (cells, lost []string, err error) {
	all := ezidrecord.ToBatch(x.schemes, rec)
	id, err := ezidrecord.ParseName(x.schemes, all[ezidrecord.ID])
	if err != nil {
		return nil, nil, err
	}
	if id != rec.ID {
		return nil, nil, stele.Messagef("export.ezid-other-name", "it would be read as {name}", id)
	}
	for {
		cells = make([]string, len(x.columns))
		var elements []anvl.Element
		for i, name := range x.columns {
			if value := all[name]; value != "" && value != null {
				cells[i] = bulk.Neutralise(value)
				if name != ezidrecord.ID {
					elements = append(elements, anvl.Element{Label: name, Value: value})
				}
			}
		}
		made, err := ezidrecord.FromBatch(x.schemes, rec.ID, elements)
		if err == nil {
			return cells, ezidrecord.Lost(rec, made), nil
		}
		if problems, ok := errors.AsType[stele.Problems](err); !ok || !without(all, problems) {
			return nil, nil, err
		}
	}
}

// without removes the elements that problems are about, and reports whether there was one.
func without(all map[string]string, problems stele.Problems) (removed bool) {
	for _, p := range problems {
		if _, ok := all[p.Path]; ok && p.Path != ezidrecord.ID {
			delete(all, p.Path)
			removed = true
		}
	}
	return removed
}
