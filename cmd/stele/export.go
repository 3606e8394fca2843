package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"
)

// exportOptions are the flags of export.
type exportOptions struct {
	prefix     string
	file       string
	format     string
	namespaces bool
	history    bool
	to         string
}

func (p *program) exportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export [PREFIX]",
		Short: "Write records to a file",
		Long: `Export writes the records whose identifiers begin with PREFIX, or all records, in the
format that import reads: one JSON object per line, ordered by scheme and then by name.
If another registry imports the file, it exports the same records, byte for byte. What
--namespaces adds is the same except for minters; see below.

With --namespaces the file also says how far each minter is, and which bytes a name stands
for where a protocol promises that these never change (LSID). A registry that imports it
makes no name again that was made here, and refuses other bytes: a template is shut there
until an administrator sets its counter ahead, and dates continue from the time of import.

Export compresses a file whose name ends in .gz or .zst. The file appears when it is
complete.

The records have no version numbers, because a version counts the changes in one
registry. With --history export writes all versions, oldest first. Such a file is for
people and programs to read, not for import.

CSV has one row per record, with a column for every field that some record has, and
contains all that jsonl does. Export puts an apostrophe before a cell that a spreadsheet
would interpret as a formula; import removes it. CSV export reads the records twice.

With --to export writes handles for a Handle server: handle-json is what its tool
LoadHandlesFromJson reads, and handle-batch is for hdl-genericbatch. Export never writes
secrets (HS_SECKEY). It leaves out what a Handle server does not have, such as withdrawn
records, and tells how many. A batch file has no timestamps, no references and no binary
data, so export names the values that it can't say; use handle-json to keep everything.

htaccess and nginx-map are redirects for Apache httpd and nginx, of all names in the
spellings that their schemes know, to the first location of each record; withdrawn
names are gone (410). Rules of namespaces are in the file as far as a web server can
follow them; export names the others. How to include the file stands at its beginning.
zone is the zone of a published namespace, which name servers load; see also 'stele
zone export'.

datacite-json is a page of DataCite's REST API with all DOIs, which 'stele import --from
datacite' reads. ezid-csv is a batch download of EZID in CSV, which 'stele import --from
ezid' reads. Export tells of how many records it can't say all.`,
		Example: `  stele export > records.jsonl
  stele export ark:12345/x5 -o x5.jsonl.zst
  stele export --namespaces -o registry.jsonl.gz
  stele export --format csv urn:example -o example.csv
  stele export --to handle-json 20.500.12345/ -o handles.json
  stele export --to handle-batch 20.500.12345/ -o handles.txt
  stele export --to nginx-map ark:12345/x5 -o redirects.map
  stele export --to htaccess -o .htaccess
  stele export --to zone urn:paradisec -o paradisec.zone
  stele export --to datacite-json 10.5072/ -o dois.json
  stele export --to ezid-csv ark:12345/ -o ezid.csv`,
		Args: usage.AtMostOne("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.prefix = args[0]
			}
			switch {
			case o.to != "" && !slices.Contains(exportTargets(), o.to):
				return usage.Errorf(cmd, "flag.export-target-unknown", `"{target}" is not a kind of file that is known; there are {kinds}`, o.to, strings.Join(exportTargets(), ", "))
			case o.to != "" && (o.namespaces || o.history || cmd.Flags().Changed("format")):
				return usage.Errorf(cmd, "flag.export-to-alone", "--to writes records in their current version; leave --format, --namespaces and --history out")
			case o.format != "jsonl" && o.format != "csv":
				return usage.Errorf(cmd, "flag.export-format-unknown", `"{format}" is not a format; there are jsonl and csv`, o.format)
			case o.format == "csv" && (o.namespaces || o.history):
				return usage.Errorf(cmd, "flag.export-csv-current-only", "CSV has records only, in their current version; use --format jsonl")
			}
			if o.to == zoneTarget {
				return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
					return p.exportNamespaceZone(ctx, l, zones, cmd, o)
				})
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return p.export(ctx, l, o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "output", "o", "", "write to this `file` instead of standard output")
	flags.StringVar(&o.format, "format", "jsonl", "format of the file: jsonl or csv")
	flags.BoolVar(&o.namespaces, "namespaces", false, "also write namespaces, before the records, with the progress of their minters")
	flags.BoolVar(&o.history, "history", false, "write all versions of each record")
	flags.StringVar(&o.to, "to", "", "write a file for another system, of this `kind`: handle-json, handle-batch, htaccess, nginx-map, datacite-json, ezid-csv or zone")
	usage.Choices(cmd, "format", "jsonl", "csv")
	usage.Choices(cmd, "to", exportTargets()...)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// zoneTarget is the kind of file that name servers load.
const zoneTarget = "zone"

// exportTargets returns the kinds of files for other systems.
func exportTargets() (list []string) {
	for _, t := range foreign.Targets() {
		list = append(list, string(t))
	}
	return append(list, zoneTarget)
}

// exportNamespaceZone writes the zone in which a namespace is published.
func (p *program) exportNamespaceZone(ctx context.Context, l *Registry, zones *publish.Zones, cmd *cobra.Command, o exportOptions) error {
	if o.prefix == "" {
		return usage.Errorf(cmd, "flag.export-zone-namespace-missing", "which namespace? Write its prefix, as in 'stele export --to zone urn:paradisec'")
	}
	key, err := l.ParsePrefix(o.prefix)
	if err != nil {
		return err
	}
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if ns.Key() == key && ns.Publication.Zone != "" {
			return p.exportZone(ctx, l, zones, ns.Publication.Zone, o.file, remote.ZoneFile{})
		}
	}
	return stele.Errorf("export", stele.ID{}, stele.NotFound, "export.zone-unpublished", "{namespace} is not published in a zone; publish it with 'stele zone add'", key)
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
	if o.to != "" {
		done, err := p.exportTo(ctx, l, keys, out, foreign.Target(o.to), progress.Add)
		progress.End()
		p.tellUnexported(done, foreign.Target(o.to))
		return out.End(err)
	}
	err = bulk.Export(ctx, l.Backend, keys, out, bulk.ExportOptions{CSV: o.format == "csv", Namespaces: o.namespaces, History: o.history, Progress: progress.Add})
	progress.End()
	return out.End(err)
}

// exportTo writes a file for another system.
func (p *program) exportTo(ctx context.Context, l *Registry, keys []stele.NamespaceKey, out io.Writer, to foreign.Target, progress func(int)) (foreign.Exported, error) {
	if to == foreign.Htaccess || to == foreign.NginxMap {
		return foreign.ExportWeb(ctx, l, keys, l.Schemes, out, to, p.tellUnsaid, progress)
	}
	if to == foreign.DataCitePage {
		return foreign.ExportDataCite(ctx, l, keys, l.Schemes, out, p.tellUnsaid, progress)
	}
	if to == foreign.EZIDTable {
		return foreign.ExportEZID(ctx, l, keys, l.Schemes, out, p.tellUnsaid, progress)
	}
	return foreign.Export(ctx, l, keys, out, to, p.tellUnsaid, progress)
}

// tellUnsaid tells what the file can't say of a record.
func (p *program) tellUnsaid(handle string, what error) {
	fmt.Fprintf(p.stderr, "stele: %s: %s\n", printable(handle), printable(what.Error()))
}

// tellUnexported tells what is not in a file for another system.
func (p *program) tellUnexported(done foreign.Exported, to foreign.Target) {
	tell := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(p.stderr, "stele: %s %s\n", grouped(int64(n)), what)
		}
	}
	tell(done.Secrets, "secrets (HS_SECKEY) were left out; they are never exported")
	if to == foreign.Htaccess || to == foreign.NginxMap {
		tell(done.Hidden, "records were left out that are reserved or for some readers only")
		tell(done.Others, "records were left out that have no location")
		tell(done.Choices, "records have several locations, of which the file has the first")
		return
	}
	if to == foreign.DataCitePage {
		tell(done.Hidden, "DOIs were left out that are redacted or for some readers only")
		tell(done.Others, "records were left out that are not DOIs")
		tell(done.Unsaid, "DOIs have something that DataCite has no attributes for; it is left out")
		return
	}
	if to == foreign.EZIDTable {
		tell(done.Hidden, "records were left out that are redacted or for some readers only")
		tell(done.Others, "records were left out because import would refuse their rows")
		tell(done.Unsaid, "records have something that EZID has no elements for; it is left out")
		return
	}
	tell(done.Hidden, "handles were left out that are withdrawn, reserved, or for some readers only")
	tell(done.Others, "records were left out that are not handles")
}
