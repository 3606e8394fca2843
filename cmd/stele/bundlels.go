package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registrar"
)

func (p *program) bundleListCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls",
		Short: "List the last bundles that were made by hand",
		Long: `Ls lists, for the namespaces that you own, the last bundle that has all names of the
namespace: when it was made and by which user, up to which change, and when such a bundle
was last checked with 'stele bundle check --note'. A bundle of all names of a scheme is
listed by the scheme. The deposits that servers make are not in the list; see
'stele escrow status'.`,
		Example: "  stele bundle ls\n  stele bundle ls --server https://id.example.org --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				list, err := l.TakenBundles(ctx)
				if err != nil {
					return err
				}
				for i := range list {
					if p.json {
						err = p.printObject(takenBundle{list[i].Namespace.String(), &list[i]})
					} else {
						err = p.sayTaken(&list[i])
					}
					if err != nil {
						return err
					}
				}
				if len(list) == 0 && !p.json {
					return p.say("no bundle was made yet; 'stele bundle' makes one\n")
				}
				return nil
			})
		},
	})
}

// takenBundle is what --json prints of a bundle that was made.
type takenBundle struct {
	Of string `json:"of"`
	*registrar.TakenBundle
}

// sayTaken prints what is known of a bundle.
func (p *program) sayTaken(t *registrar.TakenBundle) error {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s  %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s\n", printable(t.Namespace.String()))
	line("made", "%s by %s, up to change %s", wording.Moment(t.Made), t.By, grouped(int64(t.Change)))
	records := fmt.Sprintf("%s in %s versions", grouped(int64(t.Records)), grouped(int64(t.Versions)))
	if t.Wider {
		records += ", with those of other namespaces"
	}
	line("records", "%s", records)
	line("manifest", "SHA-256 %s", t.Manifest)
	if t.Checked.IsZero() {
		line("checked", "never")
	} else {
		line("checked", "%s by %s, up to change %s", wording.Moment(t.Checked), t.CheckedBy, grouped(int64(t.CheckedChange)))
	}
	return p.say("%s", b.String())
}
