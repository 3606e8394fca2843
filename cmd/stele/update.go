package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

// updateFlags are the flags of update beside those of register.
type updateFlags struct {
	recordFlags
	drop      []string
	public    bool
	activate  bool
	ifVersion uint64
}

func (p *program) updateCommand() *cobra.Command {
	var f updateFlags
	cmd := &cobra.Command{
		Use:   "update ID",
		Short: "Change what an identifier stands for",
		Long: `Update changes what the flags say and leaves the rest. Every change is a new
version, kept with who made it and when; 'stele history ID' shows them.

--to takes the place of the target with the same service, type and language, of
which it keeps order, preference, TTL, status and the rest unless you give them. If
there is no such target, one is added. --drop-to removes a target by its URL.

--meta key= removes a field of the metadata, as --title '' removes the title.
--alias adds a name; no name can be taken away. --reader replaces all readers, and
--public opens the record to everybody.

With --if-version N nothing is written if somebody changed the record meanwhile.`,
		Example: `  stele update ark:12345/x54xz321 --to https://archive.example.org/report.pdf --type application/pdf
  stele update 10.5072/rivers --title 'Rivers of Pará, second edition' --meta edition=2
  stele update 10.5072/rivers --drop-to http://mirror.example.org/rivers --if-version 4
  stele update urn:x1:draft --activate --public`,
		Args: oneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				aliases, bad := f.parseAliases(l.Schemes)
				if bad != nil {
					return &stele.Error{Op: "update", ID: id, Kind: stele.Invalid, Err: bad}
				}
				rec, err := l.Update(ctx, id, f.ifVersion, func(rec *stele.Record) error {
					return f.change(rec, aliases)
				})
				if err != nil {
					return err
				}
				return p.printName(p.stdout, rec)
			})
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.drop, "drop-to", nil, "remove the target with this `URL`; may be repeated")
	flags.BoolVar(&f.public, "public", false, "let everybody see it")
	flags.BoolVar(&f.activate, "activate", false, "make a reserved record active: it resolves from now on")
	ifVersionFlag(cmd, &f.ifVersion)
	return neverFiles(cmd)
}

// ifVersionFlag adds the flag by which a user overwrites only a version they have seen.
func ifVersionFlag(cmd *cobra.Command, version *uint64) {
	cmd.Flags().Uint64Var(version, "if-version", 0, "write only if this is the record's version")
}

// check finds what is wrong with the flags themselves.
func (f *updateFlags) check() error {
	if !given(f.cmd, "if-version") {
		return misuse(f.cmd, "there is nothing to change; say what, such as --to URL or --title TEXT")
	}
	if f.public && f.given("reader") {
		return misuse(f.cmd, "--public lets everybody see the record, --reader only some; keep one")
	}
	return f.recordFlags.check()
}

// change changes a record as the flags say.
func (f *updateFlags) change(rec *stele.Record, aliases []stele.ID) error {
	replaced := false
	for _, url := range f.drop {
		dropped, err := f.dropTarget(rec, url, !replaced)
		if err != nil {
			return err
		}
		replaced = replaced || dropped
	}
	if !replaced && len(f.to) > 0 {
		if err := f.place(rec); err != nil {
			return err
		}
	}
	f.describe(rec)
	for _, alias := range aliases {
		if alias != rec.ID && !slices.Contains(rec.Aliases, alias) {
			rec.Aliases = append(rec.Aliases, alias)
		}
	}
	if f.public {
		rec.Readers = nil
	}
	if f.activate {
		rec.State = stele.Active
	}
	return nil
}

// dropTarget removes the targets with a URL. If the target of --to has the same service,
// type and language, and is not placed yet, it takes the place.
func (f *updateFlags) dropTarget(rec *stele.Record, url string, mayPlace bool) (placed bool, err error) {
	at := slices.IndexFunc(rec.Targets, func(t stele.Target) bool { return t.URL == url })
	if at < 0 {
		return false, &stele.Error{Op: "update", ID: rec.ID, Kind: stele.Conflict, Err: fmt.Errorf(
			"it has no target with the URL %.200q; 'stele show %s' shows those it has", url, rec.ID)}
	}
	for i := at; i < len(rec.Targets); {
		t := &rec.Targets[i]
		switch {
		case t.URL != url:
			i++
		case mayPlace && !placed && len(f.to) > 0 && f.isAlike(t):
			f.revise(t)
			placed = true
			i++
		default:
			rec.Targets = slices.Delete(rec.Targets, i, i+1)
		}
	}
	return placed, nil
}
