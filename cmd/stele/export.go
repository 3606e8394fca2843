package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/cmd/stele/usage"
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
		Short: "Write records to a file",
		Long: `Export writes the records whose identifiers begin with PREFIX, or all records, in the
format that import reads: one JSON object per line, ordered by scheme and then by name.
If another registry imports the file, its export is the same, byte for byte.

Export compresses a file whose name ends in .gz or .zst. The file appears when it is
complete.

The records have no version numbers, because a version counts the changes in one
registry. With --history export writes all versions, oldest first. Such a file is for
people and programs to read, not for import.

CSV has one row per record, with a column for every field that some record has, and
contains all that jsonl does. Export puts an apostrophe before a cell that a spreadsheet
would interpret as a formula; import removes it. CSV export reads the records twice.`,
		Example: `  stele export > records.jsonl
  stele export ark:12345/x5 -o x5.jsonl.zst
  stele export --namespaces -o registry.jsonl.gz
  stele export --format csv urn:example -o example.csv`,
		Args: usage.AtMostOne("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.prefix = args[0]
			}
			switch {
			case o.format != "jsonl" && o.format != "csv":
				return usage.Errorf(cmd, "flag.export-format-unknown", `"{format}" is not a format; there are jsonl and csv`, o.format)
			case o.format == "csv" && (o.namespaces || o.history):
				return usage.Errorf(cmd, "flag.export-csv-current-only", "CSV has records only, in their current version; use --format jsonl")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return p.export(ctx, l, o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "output", "o", "", "write to this `file` instead of standard output")
	flags.StringVar(&o.format, "format", "jsonl", "format of the file: jsonl or csv")
	flags.BoolVar(&o.namespaces, "namespaces", false, "also write namespaces, before the records")
	flags.BoolVar(&o.history, "history", false, "write all versions of each record")
	usage.Choices(cmd, "format", "jsonl", "csv")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// export writes what the options ask for.
func (p *program) export(ctx context.Context, l *Registry, o exportOptions) error {
	keys, err := l.Beginnings(o.prefix)
	if err != nil {
		return err
	}
	out, err := bulk.CreateOutput(o.file, p.stdout)
	if err != nil {
		return err
	}
	progress := p.newProgress("export", "records", 0, nil)
	err = bulk.Export(ctx, l, keys, out, bulk.ExportOptions{CSV: o.format == "csv", Namespaces: o.namespaces, History: o.history, Progress: progress.Add})
	progress.End()
	return out.End(err)
}
