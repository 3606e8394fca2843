package main

import (
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/progress"
	"github.com/stele-id/stele/internal/wording"

	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// importOptions are the flags of import.
type importOptions struct {
	bulk.FileOptions
	encoding string
	index    bool
	noLog    bool
	handle   foreignFlags
	live     liveFlags
}

func (p *program) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE...|-",
		Short: "Register many records from a file",
		Long: `Import reads records from a file, or from standard input if FILE is -, and registers
them. The file has one JSON object per line, as 'stele export' and 'stele show --json'
write it, or is CSV with a header. Import recognises gzip and zstd. docs/import.md
describes both formats.

A line that can't be imported does not stop the import. Import writes it to FILE.rejects
(see --rejects) with its number and the problem, and exits with 1. Correct the lines of
that file, and import it. With --dry-run import prints how many lines it would reject, by
reason.

Import skips a record that is already registered with the same content. It rejects a
record that is registered with other content, or with --update changes it, as a new
version. It leaves fields alone that the file does not have: missing columns, missing
members of a JSON object. An empty cell changes nothing, unless --empty-clears is given;
in JSON null removes a field. With --replace import also removes the fields that the
file does not have. Try --update --dry-run first: it shows every field that changes.

A record may have its earlier versions in "earlier". They become its history, with their
dates, if the record is new and --fresh is not given; import counts them.

Import knows usual names of columns, such as title, author and link; --map defines
others. It reads files of Excel as they are: in Windows-1252, Latin-1 or UTF-16, with
semicolons or tabs.

With --from handle import reads the files of a Handle server: a JSON export, text dumps
of Berkeley DB (handles-*.dump, nas-*.dump) with the log dbtxns.log, dumps of PostgreSQL
and MySQL, and batch files, whose commands also change handles that are registered here.
Name files that belong together in one command. Prefixes, indexes, order, TTLs,
timestamps, permissions and references stay as they are. Import leaves out values that
grant rights (HS_ADMIN, HS_VLIST, HS_PUBKEY) unless --with-admins is given, and secrets
(HS_SECKEY) unless --with-secrets is given; it tells how many. The registry keeps secrets
encrypted. docs/import.md describes the formats.

With --from handle --live SERVER the arguments are prefixes, and import reads their handles
from a Handle server that runs, as the administrator --identity. It lists the names first,
and writes them to a file (see --list), so that an import that was interrupted continues.
A handle that can't be read is rejected, with the reason. With --server, too, this program
asks the Handle server, and not the server of the registry.

With --from noid import reads what Noid, Nog and egg have: 'db_dump -p noid.bdb', 'noid
dbinfo dump', 'egg iddump', or the state of a minter in JSON. Names keep their targets,
dates and holds, and all other elements as metadata. The minter of the file continues
here, with --create-namespaces in a namespace of its own: its counters are imported, so
that the next name is the one that it would have given. It is shut until 'stele ns skip',
because the original may have issued names since the dump.

With --from ezid import reads a batch download of EZID in ANVL, CSV or XML, also as gzip or zip. EZID's API of
this registry shows the records as EZID does; owners are kept as metadata, and grant nothing.

With --from arklet import reads the table ark_ark, as CSV or as pg_dump writes it. arklet keeps NAANs as
numbers; if one has lost zeros at its beginning, say what it is with --prefix.

With --from shlink, yourls and kutt import reads the links of a service of short URLs, as CSV or, for
Kutt, in JSON. A short code is not an identifier: --prefix says what stands before it, in which
{domain} is the domain of the link. Import leaves out IP addresses of persons, and tells how many.

With --from datacite import reads what DataCite has of DOIs: pages of its REST API, the
parts of its public data file, or the whole archive. The names keep their targets, states
and dates; see docs/import.md for what becomes of the other attributes. With --from
crossref it reads deposits to Crossref in XML (doi_batch), the answers of queries, works of
the REST API, and parts of the public data file.

With --from zone import reads master files of the DNS: NAPTR and URI records are targets, TXT
and CNAME records metadata. It reads back what 'stele zone export' writes. Rules name their
identifiers; if they do not, --prefix says what identifiers begin with, and the labels of an
owner name are the parts that follow, the last one first.

With --from purl.org import reads the files of domains of purl.org, as the Internet Archive
has them: purl_NAME_purl.json, and purl_NAME_purl_history.json with it, whose versions
become the history of the records, with their dates. With --from purlz import reads batches of
PURLZ in XML, and tables with the columns domain, id and target; --prefix says what stands before the
names, such as https://purl.example.org.

With --from w3id import reads .htaccess files of Apache httpd, as w3id.org has them, in
folders and archives. The path of a folder is a part of its names, after --prefix (default
https://w3id.org/). A redirect of one name becomes a record, and one of many names a rule of
the folder's namespace (see --create-namespaces); conditions on Accept become targets by
media type. Import refuses what it can't say exactly, and tells what share it has read.

With --from obo import reads the YAML files of the OBO Foundry's purl.obolibrary.org (config/*.yml),
or files of that form. Products, base redirects and exact entries become records, prefixes
and regular expressions rules, and the terms of a project a rule of their own namespace, such as
https://purl.obolibrary.org/obo/HP_. --prefix says what stands instead of
https://purl.obolibrary.org/obo/. Then import runs the tests and example terms of the
files, prints those that fail, and exits with 1 if there are any; with --server by HTTP requests to
the server, as a browser asks. With --dry-run it holds them against what the files say.

Import prints the number of the import. 'stele import ls' lists imports, and 'stele
revert --import NUMBER' undoes one.

If an import is interrupted or killed, give the same command again: it continues where
it stopped. If the import is complete, the same command does nothing.

A file can say when a record was created and changed, and by whom. On a folder or a
database import accepts this, because the user of a local registry is its administrator;
with --server it accepts it from an administrator only. With --fresh it ignores it.`,
		Example: `  stele import records.jsonl
  stele import --dry-run records.csv.gz
  zcat old.jsonl.gz | jq -c 'select(.state != "withdrawn")' | stele import -
  stele import --update --rejects bad.jsonl records.jsonl.zst
  stele import --index catalogue.jsonl.gz
  stele import --update --dry-run titles.csv
  stele import --map 'Persistent ID=id' --map 'Shelf mark=meta.shelf' catalogue.csv
  stele import --from handle --create-namespaces export.json
  stele import --from handle --with-admins --with-secrets handles.dump nas.dump dbtxns.log
  stele import --from handle --format sql --map pids=handles dump.sql.gz
  stele import --from handle --live hdl.example.org --identity 300:0.NA/20.500.12345 --identity-key admpriv.bin --with-admins --create-namespaces 20.500.12345
  stele import --from noid --create-namespaces noid.dump
  stele import --from purl.org purl_dc_purl.json purl_dc_purl_history.json
  stele import --from purlz --prefix https://purl.example.org batch.xml
  stele import --from ezid --dry-run download.txt.gz
  stele import --from arklet --prefix ark:00123/ arklet.sql.gz
  stele import --from yourls --prefix https://purl.example.org/s/ yourls_url.csv
  stele import --from shlink --prefix 'https://{domain}/' short_urls.csv
  stele import --from datacite page1.json page2.json
  stele import --from crossref deposit.xml
  stele import --from zone --prefix urn:example: example.zone
  stele import --from w3id --create-namespaces w3id.org
  stele import --from obo --create-namespaces --dry-run config
  stele import ls`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.handle.from != "" && len(args) > 1 {
				return nil
			}
			return usage.OneArgument("the file (- for standard input)")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.handle.from != "" {
				return p.importHandles(cmd, args, o)
			}
			f, err := p.openImport(args[0])
			if err != nil {
				return err
			}
			err = p.creating(cmd, func(ctx context.Context, l *Registry) error {
				return p.importRecords(ctx, l, f, o)
			})
			return errors.Join(err, f.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Rejects, "rejects", "", "`file` for lines that can't be imported (default FILE.rejects, or standard error)")
	flags.IntVar(&o.MaxErrors, "max-errors", -1, "stop when more lines than this are rejected (-1: never)")
	flags.BoolVar(&o.DryRun, "dry-run", false, "print what would happen, and write nothing")
	flags.BoolVar(&o.Update, "update", false, "change records that are already registered")
	flags.BoolVar(&o.Again, "again", false, "start again, even if an earlier import of the file is complete")
	flags.BoolVar(&o.Replace, "replace", false, "with --update: remove fields that the file does not have, except names and signatures")
	flags.BoolVar(&o.EmptyClears, "empty-clears", false, "with --update: an empty cell of a CSV file removes the field")
	flags.StringArrayVar(&o.Columns, "map", nil, "meaning of a column of a CSV file, as `COLUMN=FIELD`; the field - skips the column, and '*=meta' turns all unknown columns into metadata. With --from handle: the usual name of a table or column of SQL")
	flags.StringVar(&o.encoding, "encoding", string(bulk.Auto), "character encoding of a CSV file: auto, utf-8, cp1252, latin-1 or utf-16")
	flags.BoolVar(&o.index, "index", false, "also make the search index, which 'stele find' would make later; it takes less time now, while the records are in memory")
	flags.BoolVar(&o.noLog, "no-log", false, "do not add the changes to the transparency log now; the next import or 'stele serve' does")
	flags.BoolVar(&o.Fresh, "fresh", false, "ignore what the file says about when records were created and changed, and by whom")
	usage.Choices(cmd, "encoding", bulk.Encodings()...)
	o.handle.add(cmd)
	o.live.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("map", cobra.NoFileCompletions)
	cmd.AddCommand(p.importListCommand())
	return cmd
}

// check finds what is wrong with the flags themselves.
func (o *importOptions) check(cmd *cobra.Command) error {
	switch {
	case o.Replace && !o.Update:
		return usage.Errorf(cmd, "flag.replace-without-update", "--replace is for changing records; give --update too")
	case o.EmptyClears && (!o.Update || o.Replace):
		return usage.Errorf(cmd, "flag.empty-clears-without-update", "--empty-clears is for changing records; give --update, without --replace")
	}
	o.Encoding = bulk.Encoding(o.encoding)
	if o.handle.from != "" {
		return o.handle.check(cmd, o)
	}
	if err := o.handle.unused(cmd); err != nil {
		return err
	}
	return checkSpreadsheet(cmd, o.Encoding, o.Columns)
}

// checkSpreadsheet finds what is wrong with the flags that say how a CSV file is read.
func checkSpreadsheet(cmd *cobra.Command, encoding bulk.Encoding, columns []string) error {
	if !slices.Contains(bulk.Encodings(), encoding) {
		return usage.Errorf(cmd, "flag.encoding-unknown", `"{encoding}" is not an encoding that is known; there are auto, utf-8, cp1252, latin-1 and utf-16`, string(encoding))
	}
	if _, err := bulk.ParseMap(columns); err != nil {
		return usage.Errorf(cmd, "", "--map: {cause}", err)
	}
	return nil
}

// importing is a run of the verb.
type importing struct {
	*bulk.FileImport
	progress *progress.Bar // nil until it runs
	shown    changeReport
}

// openImport opens a file, or standard input for "-".
func (p *program) openImport(path string) (*bulk.File, error) {
	if path != "-" {
		return bulk.OpenFile(path)
	}
	if isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "Type records, one a line; end with Ctrl-D.")
	}
	return bulk.NewFile("standard input", p.stdin)
}

// importRecords imports a file.
func (p *program) importRecords(ctx context.Context, l *Registry, f *bulk.File, o importOptions) error {
	if err := mayKeep(ctx, l, o); err != nil {
		return err
	}
	return p.runImport(ctx, l, o, func(o bulk.FileOptions) (*bulk.FileImport, error) { return bulk.NewFileImport(ctx, l, l.Schemes, f, o) }, f.Size)
}

// runImport begins an import, or continues it, and prints what became of it.
func (p *program) runImport(ctx context.Context, l *Registry, o importOptions, begin func(bulk.FileOptions) (*bulk.FileImport, error), size int64) (err error) {
	im := &importing{shown: changeReport{out: p.stdout, json: p.json}}
	o.ChunkRows, o.Complaints, o.Changed = l.ChunkRows, p.stderr, im.shown.add
	if im.FileImport, err = begin(o.FileOptions); err != nil {
		return err
	}
	finish := func(context.Context) error { return nil }
	if o.index && !o.DryRun {
		if finish, err = l.Index(ctx); err != nil {
			return err
		}
	}
	if im.Mark.Done {
		return errors.Join(p.importDone(im), finish(ctx))
	}
	logged := func(context.Context) error { return nil }
	if !o.noLog && !o.DryRun {
		logged = l.FollowLog(ctx)
	}
	defer waitForGarbage(o.index)()
	if im.Mark.Offset > 0 {
		fmt.Fprintf(p.stderr, "import: continues at line %s\n", grouped(int64(im.Mark.Line)))
	}
	started := p.now()
	err = im.Run(ctx, func() bulk.Progress {
		im.progress = p.newProgress("import", "lines", size, im.Read)
		return im.progress
	})
	if im.progress != nil {
		im.progress.End()
	}
	err = errors.Join(err, finish(ctx))
	if late := logged(ctx); late != nil && ctx.Err() == nil { // all is imported, and nothing is lost
		fmt.Fprintf(p.stderr, "import: the transparency log did not follow: %v; the next import or 'stele serve' continues it\n", late)
	}
	p.tellEncoding(im.Text, im.File)
	return p.importReport(im, p.now().Sub(started), err)
}

// mayKeep makes sure that the user is an administrator, before much is sent.
func mayKeep(ctx context.Context, l *Registry, o importOptions) error {
	if o.Fresh {
		return nil
	}
	me, err := l.Me(ctx)
	if err == nil && !me.Admin {
		return refuse("import", stele.Forbidden, "import.provenance-not-permitted", `"{user}" is not an administrator, and so can't say when records were created, and by whom; give --fresh`, me.Name)
	}
	return err
}

// importDone says that there is nothing left to do.
func (p *program) importDone(im *importing) error {
	if !p.json {
		fmt.Fprintf(p.stdout, "%s is imported already, and nothing is left to do; --again starts over\n", printable(im.File.Name))
	}
	return p.importReport(im, 0, nil)
}

// importReport prints what became of the lines, and returns the error of the verb.
func (p *program) importReport(im *importing, took time.Duration, err error) error {
	c := im.Mark.Counts
	switch {
	case errors.Is(err, context.Canceled):
		err = refuse("import", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case errors.Is(err, bulk.ErrTooMany):
		err = refuse("import", stele.Invalid, "import.too-many-rejected-lines", "more than {most} lines are rejected, so the rest is not read", im.MaxErrors)
	}
	if err := im.shown.end(); err != nil {
		return err
	}
	if err := p.printCounts(im, took); err != nil {
		return err
	}
	if im.Overflowed() {
		fmt.Fprintf(p.stderr, "stele: beyond %s names it was not looked for names that come twice\n", grouped(bulk.RehearsalNames))
	}
	if c.Rejected == 0 {
		return err
	}
	lines := c.Rows()
	if im.Text == nil {
		lines -= c.Namespaces // which no line of another system's file is
	}
	if im.Rejects.Path != "" {
		return errors.Join(err, refuse("import", stele.Invalid, "import.lines-rejected-to-file", "{rejected} of {lines} lines were rejected; {file} has them, and says why", grouped(int64(c.Rejected)), grouped(int64(lines)), im.Rejects.Path))
	}
	return errors.Join(err, refuse("import", stele.Invalid, "import.lines-rejected", "{rejected} of {lines} lines were rejected", grouped(int64(c.Rejected)), grouped(int64(lines))))
}

// printCounts prints how many lines were what.
func (p *program) printCounts(im *importing, took time.Duration) error {
	c := im.Mark.Counts
	rate := im.rate(took)
	if p.json {
		return p.printObject(struct {
			bulk.Counts
			Import  uint64  `json:"import,omitempty"`
			DryRun  bool    `json:"dryRun,omitempty"`
			Done    bool    `json:"done"`
			Seconds float64 `json:"seconds"`
			Rate    int64   `json:"rate"`

			Reasons []bulk.Reason `json:"reasons,omitempty"`
		}{c, im.Mark.Import, im.DryRun, im.Mark.Done, took.Round(time.Millisecond).Seconds(), rate, im.Reasons.List()})
	}
	text := fmt.Sprintf("%s new, %s updated, %s unchanged, %s rejected",
		grouped(int64(c.New)), grouped(int64(c.Updated)), grouped(int64(c.Unchanged)), grouped(int64(c.Rejected)))
	if c.Namespaces > 0 {
		text += fmt.Sprintf(", %s namespaces", grouped(int64(c.Namespaces)))
	}
	if c.Earlier > 0 {
		text += fmt.Sprintf("; %s earlier versions", grouped(int64(c.Earlier)))
	}
	if c.EarlierLeft > 0 {
		text += fmt.Sprintf("; %s earlier versions left out", grouped(int64(c.EarlierLeft)))
	}
	if took >= time.Second && c.Rows() >= 1000 { // less says nothing
		text += fmt.Sprintf("; %s a second", grouped(rate))
	}
	if im.DryRun {
		text += "; nothing was written"
	}
	if im.Mark.Import != 0 {
		text += fmt.Sprintf("; import %d", im.Mark.Import)
	}
	if im.DryRun {
		text += reasonLines(im.Reasons.List())
	}
	_, err := fmt.Fprintln(p.stdout, text)
	return err
}

// reasonLines returns how many lines are rejected for which reason, one a line.
func reasonLines(list []bulk.Reason) string {
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "\n%9s rejected, as line %s: %s", grouped(int64(r.Count)), grouped(int64(r.Line)), printable(r.Text))
	}
	return b.String()
}

// rate returns how many lines of this run were done in a second.
func (im *importing) rate(took time.Duration) int64 {
	if im.progress == nil {
		return 0
	}
	return im.progress.Rate(took)
}

// tellEncoding says in which encoding a CSV file was read, if it is not UTF-8, and whether its last row may be cut off.
func (p *program) tellEncoding(rows *bulk.Reader, f *bulk.File) {
	if rows != nil && rows.Unended() {
		fmt.Fprintf(p.stderr, "stele: %s\n", printable(bulk.Unended(f.Name).Error()))
	}
	if rows == nil || rows.Decoder() == nil {
		return
	}
	if found, lines := rows.Decoder().Found(); found != bulk.UTF8 {
		fmt.Fprintf(p.stderr, "stele: %s was read as %s; %s lines have characters outside ASCII. If they look wrong, name another encoding with --encoding\n",
			printable(f.Name), found.Title(), grouped(int64(lines)))
	}
}

func (p *program) importListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List imports, with their numbers",
		Long: `Ls lists imports, oldest first: the number, the start, the user, the source and the
result. An administrator sees all imports, other users see their own. 'stele revert
--import NUMBER' undoes one.`,
		Example: "  stele import ls\n  stele import ls --json | jq 'select(.updated > 0)'",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				for i, err := range l.Imports(ctx, 0) {
					if err == nil {
						err = p.printImport(i)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	return usage.NeverFiles(cmd)
}

// printImport prints what is kept of an import.
func (p *program) printImport(i registrar.Import) error {
	if p.json {
		i.After, i.Last, i.At = 0, 0, 0 // only the registry uses them
		return p.printObject(struct {
			registrar.Import
			After *int `json:"after,omitempty"`
		}{Import: i})
	}
	text := fmt.Sprintf("%d  %s  %s", i.Number, i.Began.UTC().Format(time.DateTime), printable(i.By))
	if i.Label != "" {
		text += "  " + printable(i.Label)
	}
	if i.Reverts != 0 {
		text += fmt.Sprintf("  revert of %d: %s changed, %s left", i.Reverts, grouped(int64(i.Updated)), grouped(int64(i.Refused)))
	} else {
		text += fmt.Sprintf("  %s new, %s updated", grouped(int64(i.Created)), grouped(int64(i.Updated)))
	}
	if i.Ended.IsZero() {
		text += "; not ended"
	}
	if i.Reverted != 0 {
		text += fmt.Sprintf("; reverted by %d", i.Reverted)
	}
	_, err := fmt.Fprintln(p.stdout, text)
	return err
}

// shownChanges is how many fields that change a dry run prints for people. With --json
// all are printed.
const shownChanges = 200

// changeReport prints what an update would change.
type changeReport struct {
	out     io.Writer
	json    bool
	records int
	fields  int
	err     error
}

// changeLine is a field that changes, as a line of JSON.
type changeLine struct {
	Line int    `json:"line"`
	ID   string `json:"id"`
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// add prints the fields of a record that change.
func (r *changeReport) add(row *bulk.Row, fields []registrar.FieldChange) {
	if len(fields) == 0 {
		return
	}
	r.records++
	id := row.Record.ID.String()
	for i, f := range fields {
		r.fields++
		switch {
		case r.err != nil:
		case r.json:
			var text []byte
			if text, r.err = json.Marshal(changeLine{row.Line, id, f.Path, f.Old, f.New}); r.err == nil {
				_, r.err = fmt.Fprintf(r.out, "%s\n", text)
			}
		case r.fields <= shownChanges:
			if i == 0 {
				fmt.Fprintf(r.out, "%s (line %d)\n", printable(id), row.Line)
			}
			_, r.err = fmt.Fprintf(r.out, "  %s: %s -> %s\n", printable(f.Path), shownValue(f.Old), shownValue(f.New))
		}
	}
}

// end prints how much would change in all.
func (r *changeReport) end() error {
	if r.err != nil || r.json || r.fields == 0 {
		return r.err
	}
	if r.fields > shownChanges {
		fmt.Fprintf(r.out, "and %s fields more; --json prints all\n", grouped(int64(r.fields-shownChanges)))
	}
	_, err := fmt.Fprintf(r.out, "%s fields of %s records change\n", grouped(int64(r.fields)), grouped(int64(r.records)))
	return err
}

// shownValue returns the value of a field for people.
func shownValue(value string) string {
	if value == "" {
		return "(nothing)"
	}
	return fmt.Sprintf("%q", wording.Shorten(value))
}

// What an import makes is garbage as soon as its chunk is committed. So the collector
// may wait until there is much of it, but not for ever: what is in use is a third of
// the limit at most times. The store has some memory beside that.
// Some records wait for the transparency log. More of them wait for the search index if it is
// made beside, so that there half of the lower limit is in use.
const (
	importGarbage = 400
	importMemory  = 1000 << 20
	indexMemory   = 1300 << 20
)

// waitForGarbage makes the collector wait, unless the user has configured it. The
// function that it returns undoes that.
func waitForGarbage(index bool) (undo func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	most := int64(importMemory)
	if index {
		most = indexMemory
	}
	percent, limit := debug.SetGCPercent(importGarbage), debug.SetMemoryLimit(most)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
