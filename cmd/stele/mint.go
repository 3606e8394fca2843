package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/sheet"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/edit"
	"github.com/stele-id/stele/registrar/minting"
)

func (p *program) mintCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "mint SCHEME",
		Short: "Make new identifiers",
		Long: `Mint makes new identifiers and prints them, one per line. It never makes the same
identifier twice, even after a crash. The settings of the minter are stored in the
namespace, which mint makes if it does not exist: next time the prefix is enough.

With --to, --title or --reserve mint also registers each new name, and prints it when
its record is durable.

With --from FILE.csv mint makes a name for each row of a spreadsheet. It registers the
content of the row, with columns as 'stele import' reads them, and writes the names into
the column id of the file, which it adds if the file has none. It changes nothing else
in the file. It skips rows that have a name, so you can give the same command again:
after an interruption, or after you corrected rejected rows. docs/minting.md has more.`,
		Example: `  stele mint ibi --host mtc-m18.sid.inpe.br --ip 150.163.34.243
  stele mint ark --naan 12345 --shoulder x5 --template .reedeedk -n 100
  stele mint pilin --prefix 102.100.272 --to https://example.org/1
  stele mint ark --naan 12345 --shoulder x5 --from catalogue.csv --map 'Shelf mark=meta.shelf'`,
	}, p.mintIBICommand(), p.mintPILINCommand(), p.mintARKCommand(),
		p.mintTemplateCommand(hdlTemplates), p.mintTemplateCommand(urnTemplates), p.mintTemplateCommand(lsidTemplates),
		p.mintUUIDCommand())
}

// mintFlags are the flags of all kinds of mint.
type mintFlags struct {
	count   int
	reserve bool
	record  recordFlags
	minter  minterFlags
	sheet   sheetFlags
}

func (f *mintFlags) add(cmd *cobra.Command) {
	f.minter.owner = cmd
	cmd.Flags().IntVarP(&f.count, "count", "n", 1, "number of names to make")
	cmd.Flags().BoolVar(&f.reserve, "reserve", false, "register the new names, hidden from the public")
	f.record.add(cmd)
	f.sheet.add(cmd)
}

// check finds what is wrong with the flags themselves.
func (f *mintFlags) check() error {
	cmd := f.record.cmd
	if err := f.sheet.check(cmd); err != nil || f.sheet.From != "" {
		return err
	}
	switch {
	case f.count < 1:
		return usage.Errorf(cmd, "flag.count-not-positive", "{count} is not a number of names; make one or more", f.count)
	case f.registers():
		if f.count > 1 && len(f.record.aliases) > 0 {
			return usage.Errorf(cmd, "flag.alias-with-several-names", "an alias belongs to one record, so it can't go with {count} names; make one", f.count)
		}
	case f.record.given("alias", "reader", "level", "until", "statement"):
		return usage.Errorf(cmd, "flag.mint-record-empty", "nothing is registered without --to, --title, --meta or --reserve; give one of them")
	}
	return f.record.check()
}

// registers reports whether the new names are registered.
func (f *mintFlags) registers() bool { return f.reserve || f.record.describes() }

// run makes names in the namespaces that choose returns.
func (f *mintFlags) run(p *program, choose func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error)) error {
	cmd := f.record.cmd
	if err := f.check(); err != nil {
		return err
	}
	if f.sheet.From != "" {
		return f.mintFrom(p, choose)
	}
	p.block = minting.BlockFor(f.count)
	return p.creating(cmd, func(ctx context.Context, l *Registry) error {
		pool, err := choose(ctx, l)
		if err != nil {
			return err
		}
		if !f.registers() {
			return p.mint(ctx, l, pool, f.count)
		}
		rec := &stele.Record{State: stele.Active}
		f.record.edit().Fill(rec)
		if f.reserve {
			rec.State = stele.Reserved
		}
		aliases, bad := edit.ParseAliases(l.Schemes, f.record.aliases)
		if bad != nil {
			return &stele.Error{Op: "mint and register", Kind: stele.Invalid, Err: append(bad, edit.Problems(rec)...)}
		}
		rec.Aliases = aliases
		return p.mintRecords(ctx, l, pool, rec, f.count)
	})
}

// mint makes and prints n names.
func (p *program) mint(ctx context.Context, l *Registry, pool []stele.NamespaceKey, n int) error {
	out := bufio.NewWriter(p.stdout)
	err := l.MintBatches(ctx, pool, n, func(labels []minting.Label) error {
		for _, label := range labels {
			if err := p.printLabel(out, label); err != nil {
				return err
			}
		}
		return out.Flush()
	})
	if err != nil && ctx.Err() != nil {
		return interrupted()
	}
	return err
}

// printLabel prints a new name: for a person its identifier, for a program all its
// names, as a record has them.
func (p *program) printLabel(w io.Writer, label minting.Label) error {
	return p.printName(w, &stele.Record{ID: label.ID, Aliases: label.Aliases, State: stele.Active})
}

// mintRecords makes n names, registers a record like rec under each, and prints them.
// What is registered is printed, whatever happens to the others.
func (p *program) mintRecords(ctx context.Context, l *Registry, pool []stele.NamespaceKey, rec *stele.Record, n int) error {
	var failed error
	printed := 0
	for done, err := range l.MintRecords(ctx, rec, pool, n) {
		if err == nil {
			printed++
			if err := p.printName(p.stdout, done); err != nil {
				return err
			}
		} else if failed == nil {
			failed = err
		}
	}
	if ctx.Err() != nil && printed < n {
		return interrupted()
	}
	return failed
}

// interrupted is the error of a run that the user interrupted.
func interrupted() error {
	return &stele.Error{Op: "mint", Kind: stele.Unavailable, Err: stele.Messagef("mint.interrupted", "interrupted; what was printed is given, and will not be made again")}
}

// namespace returns the namespace to make names in, as it is or as the flags say.
func (f *minterFlags) namespace(ctx context.Context, l *Registry, want *stele.Namespace) ([]stele.NamespaceKey, error) {
	return []stele.NamespaceKey{want.Key()}, l.EnsureMinter(ctx, want, f.isGiven, f.looks)
}

func (p *program) mintIBICommand() *cobra.Command {
	var f mintFlags
	var pool []string
	cmd := &cobra.Command{
		Use:   "ibi",
		Short: "IBIs, from a host name or an IP address and the time",
		Long: `Mint ibi makes Internet Based Identifiers. With --host it makes repository names, with
--ip it makes IBIps. With both, each new name is a repository name whose alias is an
IBIp of the same date; --json shows both.

No two names have the same date. --granularity is the smallest distance between two
dates: at 1s, a second name waits for the next second. You can change it at any time.

With --pool mint makes each name in the first of several namespaces that is free: ten
namespaces with one date per second make ten names per second. The namespaces must exist
('stele ns add').`,
		Example: `  stele mint ibi --host mtc-m18.sid.inpe.br
  stele mint ibi --host mtc-m18.sid.inpe.br --port 80 --ip 150.163.34.243 --ip-port 800 --json
  stele mint ibi --host mtc-m18.sid.inpe.br --granularity 1us -n 1000000 > names.txt
  stele mint ibi --pool sid.inpe.br/mtc-m18,sid.inpe.br/mtc-m19 -n 10`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server := f.record.given("host", "port", "ip", "ip-port", "allow-private", "granularity")
			if len(pool) > 0 {
				if server {
					return usage.Errorf(cmd, "flag.settings-with-pool", "the namespaces of --pool have settings of their own; leave the other settings out")
				}
				return f.run(p, func(_ context.Context, l *Registry) ([]stele.NamespaceKey, error) { return l.ParsePool(pool) })
			}
			if !f.record.given("host", "ip") {
				return usage.Errorf(cmd, "flag.ibi-host-missing", "an IBI is made from a server; give its host name with --host, its IP address with --ip, or both")
			}
			want := &stele.Namespace{Scheme: "ibi", Minter: stele.Minter{Kind: stele.MinterIBI}}
			f.minter.apply(&want.Minter)
			return f.run(p, func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error) {
				if err := l.PlaceIBI(want); err != nil {
					return nil, err
				}
				return f.minter.namespace(ctx, l, want)
			})
		},
	}
	f.minter.addIBI(cmd)
	cmd.Flags().StringSliceVar(&pool, "pool", nil, "`prefixes` of the namespaces to make names in, separated by commas")
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (p *program) mintPILINCommand() *cobra.Command {
	var f mintFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   "pilin",
		Short: "Handles by PILIN's rule, from the time",
		Long: `Mint pilin makes handles as PILIN did: the suffix encodes the millisecond of the
request. It makes at most a thousand handles per second.`,
		Example: "  stele mint pilin --prefix 102.100.272\n  stele mint pilin --prefix 102.100.272 --to https://example.org/1 --title 'A letter'",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.runBelow(p, prefix, "102.100.272", stele.Minter{Kind: stele.MinterPILIN})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the handles")
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (p *program) mintARKCommand() *cobra.Command {
	var f mintFlags
	var naan, shoulder string
	cmd := &cobra.Command{
		Use:   "ark",
		Short: "ARKs, from a template",
		Long: `Mint ark makes ARKs under a Name Assigning Authority Number and a shoulder, from a NOID
template: a dot, the order (r quasi-random, s sequential, z sequential and unbounded), a
mask of e (one of 29 characters) and d (a digit), and k for a check character.`,
		Example: `  stele mint ark --naan 12345 --shoulder x5 --template .reedeedk
  stele mint ark --naan 12345 --shoulder x5 -n 1000
  stele mint ark --naan 12345 --shoulder x5 --from catalogue.csv --dry-run`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if naan == "" {
				return usage.Errorf(cmd, "flag.naan-missing", "the number of the authority is missing; give it with --naan, such as 12345")
			}
			prefix := "ark:" + naan
			if shoulder != "" {
				prefix += "/" + shoulder
			}
			return f.runBelow(p, prefix, "", stele.Minter{Kind: stele.MinterNOID})
		},
	}
	cmd.Flags().StringVar(&naan, "naan", "", "Name Assigning Authority `number`")
	cmd.Flags().StringVar(&shoulder, "shoulder", "", "beginning of the names, such as x5")
	f.minter.addNOID(cmd)
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

// templates is a kind of names that are made by templates below a prefix.
type templates struct {
	name, what, prefix string
}

var (
	hdlTemplates  = templates{"hdl", "Handles", "10.5072"}
	urnTemplates  = templates{"urn", "URNs", "urn:example"}
	lsidTemplates = templates{"lsid", "LSIDs", "urn:lsid:example.org:specimens"}
)

func (p *program) mintTemplateCommand(t templates) *cobra.Command {
	var f mintFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   t.name,
		Short: t.what + ", from a template",
		Long: "Mint " + t.name + " makes " + t.what + ` below a prefix, from a NOID template: a dot, the order
(r quasi-random, s sequential, z sequential and unbounded), a mask of e (one of 29
characters) and d (a digit), and k for a check character.`,
		Example: "  stele mint " + t.name + " --prefix " + t.prefix + " --template .reedeedk\n" +
			"  stele mint " + t.name + " --prefix " + t.prefix + " --to https://example.org/1",
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.runBelow(p, prefix, t.prefix, stele.Minter{Kind: stele.MinterNOID})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the names, such as "+t.prefix)
	f.minter.addNOID(cmd)
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (p *program) mintUUIDCommand() *cobra.Command {
	var f mintFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   "uuid",
		Short: "Names that end in a UUID, in any scheme that takes one",
		Long: `Mint uuid makes names that consist of a prefix and a UUID of version 7, which has the
time and random digits. The minter stores nothing: the UUIDs are unique without it.`,
		Example: "  stele mint uuid --prefix urn:example\n  stele mint uuid --prefix 10.5072 -n 10",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.runBelow(p, prefix, "urn:example", stele.Minter{Kind: stele.MinterUUID})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the names")
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

// runBelow makes names below a prefix.
func (f *mintFlags) runBelow(p *program, prefix, example string, minter stele.Minter) error {
	if prefix == "" {
		return usage.Errorf(f.record.cmd, "flag.prefix-missing", "the prefix is missing; give it with --prefix, such as {example}", example)
	}
	f.minter.apply(&minter)
	return f.run(p, func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error) {
		key, err := l.ParsePrefix(prefix)
		if err != nil {
			return nil, err
		}
		if _, err := l.Namespace(ctx, key); minter.Kind == stele.MinterNOID && minter.Template == "" && errors.Is(err, stele.NotFound) {
			return nil, usage.Errorf(f.record.cmd, "flag.template-missing", "there is no namespace {namespace} yet; say how its names are made with --template, such as .reedeedk", key)
		}
		return f.minter.namespace(ctx, l, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: minter})
	})
}

// sheetFlags are the flags of mint for a file whose rows get names.
type sheetFlags struct {
	sheet.Options
	encoding string
}

func (f *sheetFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.From, "from", "", "make a name for each row of this CSV `file`, register the row, and write the names into the file")
	flags.StringVar(&f.Output, "output", "", "with --from: write to this `file`, and leave the input unchanged")
	flags.StringVar(&f.Column, "column", "id", "with --from: column for the names; mint adds it if the file has none")
	flags.StringArrayVar(&f.Columns, "map", nil, "with --from: meaning of a column, as `COLUMN=FIELD`; the field - skips the column, and '*=meta' turns all unknown columns into metadata")
	flags.StringVar(&f.encoding, "encoding", string(bulk.Auto), "with --from: character encoding of the file: auto, utf-8, cp1252, latin-1 or utf-16")
	flags.StringVar(&f.Rejects, "rejects", "", "with --from: `file` for rejected rows, with the reasons (default FILE.rejects)")
	flags.IntVar(&f.MaxErrors, "max-errors", -1, "with --from: stop when more rows than this are rejected (-1: never)")
	flags.BoolVar(&f.DryRun, "dry-run", false, "with --from: print what would happen, and make no names")
	usage.Choices(cmd, "encoding", bulk.Encodings()...)
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
	if f.From == "" {
		for _, name := range ofSheet {
			if cmd.Flags().Changed(name) {
				return usage.Errorf(cmd, "flag.mint-without-from", "--{flag} says something about a file whose rows get names; name the file with --from", name)
			}
		}
		return nil
	}
	for _, name := range slices.Concat([]string{"count", "to", "title", "who", "when", "where", "meta", "alias", "reader", "level", "until", "statement"}, targetFlags) {
		if cmd.Flags().Changed(name) {
			return usage.Errorf(cmd, "flag.mint-with-from", "with --from the columns of the file say what the records are, so leave --{flag} out", name)
		}
	}
	switch {
	case f.From == "-":
		return usage.Errorf(cmd, "flag.from-not-a-file", "--from needs a file, since the names are written into it")
	case strings.TrimSpace(f.Column) == "":
		return usage.Errorf(cmd, "flag.column-empty", "--column is empty; name the column for the names")
	}
	return checkSpreadsheet(cmd, bulk.Encoding(f.encoding), f.Columns)
}

// mintFrom names the rows of a file.
func (f *mintFlags) mintFrom(p *program, choose func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error)) error {
	o := f.sheet.Options
	o.Encoding, o.OnEncoding = bulk.Encoding(f.sheet.encoding), p.tellEncoding
	s, err := sheet.Open(o)
	if err != nil {
		return err
	}
	p.block = minting.BlockFor(max(1, s.Nameless()))
	f.minter.looks = o.DryRun
	return p.creating(f.record.cmd, func(ctx context.Context, l *Registry) error {
		pool, err := choose(ctx, l)
		if err != nil {
			return err
		}
		n := &sheet.Namer{
			Sheet: s, Registry: l, Schemes: l.Schemes, Now: p.now, Pool: pool, Reserve: f.reserve,
			OnResume: func(rows int, journal string) {
				fmt.Fprintf(p.stderr, "mint: continues; %s rows have names in %s\n", grouped(int64(rows)), journal)
			},
			Progress: func(total int64, done func() int64) sheet.Progress { return p.newProgress("mint", "rows", total, done) },
		}
		done, err := n.Run(ctx)
		return p.reportNamed(o, s, done, err)
	})
}

// reportNamed reports the result for the rows, and returns the error of the verb.
func (p *program) reportNamed(o sheet.Options, s *sheet.Sheet, done sheet.Result, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		err = refuse("mint", stele.Unavailable, "mint-file.interrupted", "interrupted; give the same command again to go on, and leave {journal} where it is", done.Journal)
	case errors.Is(err, bulk.ErrTooMany):
		err = refuse("mint", stele.Invalid, "mint-file.too-many-rejected-rows", "more than {most} rows are rejected, so the rest is not read, and {output} stays as it was; {rejects} has the rejected ones. Names that were made are kept in {journal}; give the command again to go on",
			o.MaxErrors, printable(s.Output()), done.Rejects, done.Journal)
	case err != nil:
		return err
	}
	if perr := p.printNamed(o, s, done, err == nil); perr != nil {
		return errors.Join(err, perr)
	}
	if err == nil && done.Rejected > 0 {
		err = refuse("mint", stele.Invalid, "mint-file.rows-without-name", "{rejected} of {rows} rows have no name; {rejects} has them, and says why. Mend them in the file, and give the command again",
			grouped(int64(done.Rejected)), grouped(int64(done.Rejected+done.Named+done.Kept)), done.Rejects)
	}
	return err
}

// printNamed prints the result for the rows.
func (p *program) printNamed(o sheet.Options, s *sheet.Sheet, done sheet.Result, whole bool) error {
	if p.json {
		return p.printObject(struct {
			sheet.Counts
			Import uint64 `json:"import,omitempty"`
			File   string `json:"file"`
			Column string `json:"column"`
			DryRun bool   `json:"dryRun,omitempty"`
			Done   bool   `json:"done"`
		}{done.Counts, done.Import, s.Output(), done.Column, o.DryRun, whole && !o.DryRun})
	}
	text := fmt.Sprintf("%s named, %s had a name, %s rejected", grouped(int64(done.Named)), grouped(int64(done.Kept)), grouped(int64(done.Rejected)))
	switch {
	case o.DryRun:
		text += "; nothing was written"
	case done.Import != 0:
		text += fmt.Sprintf("; import %d", done.Import)
	}
	if !o.DryRun && whole && done.Named > 0 {
		output := o.Output
		if output == "" {
			output = o.From
		}
		text += fmt.Sprintf("\n%s has the names in its column %s", printable(output), printable(done.Column))
	}
	return p.say("%s\n", text)
}
