package main

import (
	"bufio"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/edit"
	"github.com/stele-id/stele/registrar/minting"
)

func (p *program) mintCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "mint SCHEME",
		Short: "Make new identifiers",
		Long: `Mint makes identifiers that were never made before, whatever crashes, and prints
them, one a line. How they are made is kept with their namespace, which is made if it
is not there: next time, its prefix is enough.

With --to, --title or --reserve each new name is registered at once, and printed when
its record is durable.

With --from FILE.csv each row of a spreadsheet gets a name. What the row says is
registered, with columns as 'stele import' understands them, and the names are written
into the file, in a column id that is added if it is not there. Everything else in the
file stays as it is. Rows that have a name are left alone, so the same command can be
given again: after an interruption, or when rows that were rejected are mended.
docs/minting.md tells more.`,
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
	cmd.Flags().IntVarP(&f.count, "count", "n", 1, "how many")
	cmd.Flags().BoolVar(&f.reserve, "reserve", false, "register the new names, and show nothing to the public yet")
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
		return misuse(cmd, "flag.count-not-positive", "{count} is not a number of names; make one or more", f.count)
	case f.registers():
		if f.count > 1 && len(f.record.aliases) > 0 {
			return misuse(cmd, "flag.alias-with-several-names", "an alias belongs to one record, so it can't go with {count} names; make one", f.count)
		}
	case f.record.given("alias", "reader", "level", "until", "statement"):
		return misuse(cmd, "flag.mint-record-empty", "nothing is registered without --to, --title, --meta or --reserve; give one of them")
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
	return []stele.NamespaceKey{want.Key()}, l.EnsureMinter(ctx, want, f.owner.Flags().Changed, f.looks)
}
