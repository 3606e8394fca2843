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
	flags.StringVarP(&o.file, "output", "o", "", "write to this `file`, not to standard output")
	flags.StringVar(&o.format, "format", "jsonl", "jsonl or csv")
	flags.BoolVar(&o.namespaces, "namespaces", false, "write namespaces too, before the records")
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
