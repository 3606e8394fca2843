package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/edit"
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
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return p.change(cmd, args[0], func(ctx context.Context, l *Registry, id stele.ID) (*stele.Record, error) {
				e := f.edit()
				aliases, bad := edit.ParseAliases(l.Schemes, f.aliases)
				if bad != nil {
					return nil, &stele.Error{Op: "update", ID: id, Kind: stele.Invalid, Err: bad}
				}
				e.Aliases, e.Drop, e.Public, e.Activate = aliases, f.drop, f.public, f.activate
				return l.Update(ctx, id, f.ifVersion, e.Apply)
			})
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.drop, "drop-to", nil, "remove the target with this `URL`; may be repeated")
	flags.BoolVar(&f.public, "public", false, "let everybody see it")
	flags.BoolVar(&f.activate, "activate", false, "make a reserved record active: it resolves from now on")
	ifVersionFlag(cmd, &f.ifVersion)
	return usage.NeverFiles(cmd)
}

// ifVersionFlag adds the flag by which a user overwrites only a version they have seen.
func ifVersionFlag(cmd *cobra.Command, version *uint64) {
	cmd.Flags().Uint64Var(version, "if-version", 0, "write only if this is the record's version")
}

// check finds what is wrong with the flags themselves.
func (f *updateFlags) check() error {
	if !usage.Given(f.cmd, "if-version") {
		return usage.Errorf(f.cmd, "flag.record-change-missing", "there is nothing to change; say what, such as --to URL or --title TEXT")
	}
	if f.public && f.given("reader") {
		return usage.Errorf(f.cmd, "flag.public-and-reader", "--public lets everybody see the record, --reader only some; keep one")
	}
	return f.recordFlags.check()
}
