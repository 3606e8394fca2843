package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/sheet"
	"github.com/stele-id/stele/registrar/minting"
)

// sheetFlags are the flags of mint for a file whose rows get names.
type sheetFlags struct {
	sheet.Options
	encoding string
}

func (f *sheetFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.From, "from", "", "make a name for each row of this CSV `file`, register what the row says, and write the names into the file")
	flags.StringVar(&f.Output, "output", "", "with --from: write to this `file` instead, and leave the other as it is")
	flags.StringVar(&f.Column, "column", "id", "with --from: the column for the names; it is added if it is not there")
	flags.StringArrayVar(&f.Columns, "map", nil, "with --from: what a column means, as `COLUMN=FIELD`; the field - passes it over, and '*=meta' makes metadata of all that are not known")
	flags.StringVar(&f.encoding, "encoding", string(bulk.Auto), "with --from: how characters stand in the file: auto, utf-8, cp1252, latin-1 or utf-16")
	flags.StringVar(&f.Rejects, "rejects", "", "with --from: `file` for rows that get no name, and why (default FILE.rejects)")
	flags.IntVar(&f.MaxErrors, "max-errors", -1, "with --from: give up when more rows than this are rejected (-1: never)")
	flags.BoolVar(&f.DryRun, "dry-run", false, "with --from: tell what would happen, and make no names")
	choices(cmd, "encoding", bulk.Encodings()...)
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
				return misuse(cmd, "flag.mint-without-from", "--{flag} says something about a file whose rows get names; name the file with --from", name)
			}
		}
		return nil
	}
	for _, name := range slices.Concat([]string{"count", "to", "title", "who", "when", "where", "meta", "alias", "reader", "level", "until", "statement"}, targetFlags) {
		if cmd.Flags().Changed(name) {
			return misuse(cmd, "flag.mint-with-from", "with --from the columns of the file say what the records are, so leave --{flag} out", name)
		}
	}
	switch {
	case f.From == "-":
		return misuse(cmd, "flag.from-not-a-file", "--from needs a file, since the names are written into it")
	case strings.TrimSpace(f.Column) == "":
		return misuse(cmd, "flag.column-empty", "--column is empty; name the column for the names")
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
				fmt.Fprintf(p.stderr, "mint: goes on; %s rows have names in %s\n", grouped(int64(rows)), journal)
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
		line, err := json.Marshal(struct {
			sheet.Counts
			Import uint64 `json:"import,omitempty"`
			File   string `json:"file"`
			Column string `json:"column"`
			DryRun bool   `json:"dryRun,omitempty"`
			Done   bool   `json:"done"`
		}{done.Counts, done.Import, s.Output(), done.Column, o.DryRun, whole && !o.DryRun})
		if err != nil {
			return err
		}
		return p.say("%s\n", line)
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
