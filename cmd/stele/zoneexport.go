package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/server"
)

func (p *program) zoneExportCommand() *cobra.Command {
	var file, root string
	var parent, signed bool
	cmd := &cobra.Command{
		Use:   "export ZONE",
		Short: "Write a zone to a file",
		Long: `Export writes a whole zone as a master file, which BIND, Knot, NSD and PowerDNS load.
The file has the zone at one moment, independent of writes in the meantime; the same
registry gives the same file. Export compresses a file whose name ends in .gz or .zst.
The file appears when it is complete. With --server the server makes it, for users with
the role reader in the namespace.

With --parent export prints the records that other administrators must add, so that
clients find the zone: name servers and DS records for the parent zone, and rules for
the root of the scheme, such as urn.arpa.

With --signed the file has all signatures and the NSEC3 chain of a zone in the mode
transfer, so that servers without its keys can serve it. The signatures are valid for a
month. Without --signed the file of a signed zone has no signatures, and export says so.`,
		Example: `  stele zone export paradisec.example -o paradisec.zone
  stele zone export paradisec.example --signed -o paradisec.signed
  stele zone export paradisec.example --parent
  stele zone export paradisec.example --parent --root urn.example.`,
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			if signed && parent {
				return usage.Errorf(cmd, "flag.parent-with-signed", "--parent prints what others sign themselves; give it without --signed")
			}
			if root != "" && !parent {
				return usage.Errorf(cmd, "flag.root-without-parent", "--root says for whom the records of --parent are; give that too")
			}
			want := remote.ZoneFile{Signed: signed, Parent: parent, Root: root}
			return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
				return p.exportZone(ctx, l, zones, args[0], file, want)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "output", "o", "", "write to this `file` instead of standard output")
	flags.BoolVar(&signed, "signed", false, "write signatures, for a zone in the mode transfer")
	flags.BoolVar(&parent, "parent", false, "print the records that other administrators must add")
	flags.StringVar(&root, "root", "", "root `zone` of the scheme (default: that of this registry, or the scheme's, such as urn.arpa.)")
	_ = cmd.RegisterFlagCompletionFunc("root", cobra.NoFileCompletions) // it has that flag
	return cmd
}

// exportZone writes a zone to a file. For a server's registry, the server writes it: the
// server has the keys, and all names.
func (p *program) exportZone(ctx context.Context, l *Registry, zones *publish.Zones, zone, file string, want remote.ZoneFile) error {
	ns, err := l.PublishedIn(ctx, zone)
	if err != nil {
		return err
	}
	out, err := bulk.CreateOutput(file, p.stdout)
	if err != nil {
		return err
	}
	if far, ok := l.Backend.(*access.Remote); ok {
		err = far.WriteZone(ctx, out, ns.Key(), want)
	} else {
		progress := p.newProgress("export", "records", 0, nil)
		err = server.WriteZone(ctx, zones, out, ns.Publication.Zone, api.ZoneFile(want), progress.Add)
		progress.End()
	}
	if err := out.End(err); err != nil {
		return err
	}
	if how := ns.Publication.Signing; how != stele.NotSigned && !want.Signed && !want.Parent {
		advice := "add --signed"
		if how == stele.SigningOnline {
			advice = fmt.Sprintf("'stele zone sign %s --mode transfer' signs it for others, and then add --signed", ns.Publication.Zone)
		}
		fmt.Fprintf(p.stderr, "stele: %s is signed, and this file has no signatures: validating resolvers refuse what is served from it; %s\n", ns.Publication.Zone, advice)
	}
	return nil
}
