package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/serve/dnsd"
)

func (p *program) zoneExportCommand() *cobra.Command {
	var file, root string
	var parent, signed bool
	cmd := &cobra.Command{
		Use:   "export ZONE",
		Short: "Write a zone to a file",
		Long: `Export writes a whole zone as a master file, which BIND, Knot, NSD and PowerDNS load.
The same registry gives the same file; its serial is the number of the last change. A
file that is named .gz or .zst is compressed. It appears when it is complete.

With --parent it prints what others must have, so that the zone is found: its name
servers, for the administrator of the domain above it, and its rules, for that of the
root of the scheme, such as urn.arpa.

With --signed the file has all signatures and the chain of names of a zone that is
signed for others, so that servers without its keys can serve it. The signatures are
good for a month.`,
		Example: `  stele zone export paradisec.example -o paradisec.zone
  stele zone export paradisec.example --signed -o paradisec.signed
  stele zone export paradisec.example --parent
  stele zone export paradisec.example --parent --root urn.example.`,
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			if signed && parent {
				return misuse(cmd, "--parent prints what others sign themselves; give it without --signed")
			}
			if root != "" && !parent {
				return misuse(cmd, "--root says for whom the records of --parent are; give that too")
			}
			return p.withZones(cmd, func(ctx context.Context, _ *ledger, zones *dnsd.Zones) error {
				out, err := p.newExportFile(file)
				if err != nil {
					return err
				}
				if parent {
					return out.end(zones.ExportParent(ctx, out.w, args[0], root))
				}
				progress := p.newProgress("export", "records", 0, nil)
				export := zones.Export
				if signed {
					export = zones.ExportSigned
				}
				err = export(ctx, out.w, args[0], progress.add)
				progress.end()
				return out.end(err)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "output", "o", "", "write to this `file`, not to standard output")
	flags.BoolVar(&signed, "signed", false, "with signatures, of a zone that is signed for others")
	flags.BoolVar(&parent, "parent", false, "print the records that others must have")
	flags.StringVar(&root, "root", "", "`zone` under which the keys of the scheme stand (default: that of this registry, or the scheme's, such as urn.arpa.)")
	_ = cmd.RegisterFlagCompletionFunc("root", cobra.NoFileCompletions) // it has that flag
	return cmd
}
