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
		Short: "Change the record of an identifier",
		Long: `Update changes the fields that flags name, and leaves the others. Every change is a new
version, stored with its author and its date; 'stele history ID' lists the versions.

--to replaces the target with the same service, type and language. It keeps the order,
preference, TTL, status and other settings of that target unless you give them. If there
is no such target, update adds one. --drop-to removes a target by its URL.

--meta key= removes a metadata field, as --title '' removes the title. --alias adds a
name; names can't be removed. --reader replaces all readers, and --public makes the
record public.

With --if-version N update writes nothing if the record was changed in the meantime.`,
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
	flags.BoolVar(&f.public, "public", false, "make the record public")
	flags.BoolVar(&f.activate, "activate", false, "activate a reserved record, so that it resolves")
	ifVersionFlag(cmd, &f.ifVersion)
	return usage.NeverFiles(cmd)
}

// ifVersionFlag adds the flag by which a user overwrites only a version they have seen.
func ifVersionFlag(cmd *cobra.Command, version *uint64) {
	cmd.Flags().Uint64Var(version, "if-version", 0, "write only if the record has this version")
}

// check finds what is wrong with the flags themselves.
func (f *updateFlags) check() error {
	if !usage.Given(f.cmd, "if-version") {
		return usage.Errorf(f.cmd, "flag.record-change-missing", "there is nothing to change; say what, such as --to URL or --title TEXT")
	}
	if f.public && f.given("reader") {
		return usage.Errorf(f.cmd, "flag.public-and-reader", "--public makes the record public, --reader restricts it; keep one")
	}
	return f.recordFlags.check()
}
