package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) disavowCommand() *cobra.Command {
	var reason, versions string
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "disavow ID --version N[-M] --reason TEXT",
		Short: "Declare that earlier versions of a record must not be used",
		Long: `Disavow declares that earlier versions of a record are wrong: an attacker used a stolen
account to redirect the name, or an editor made a mistake that readers must not follow.
It adds a version to the record that says so, with the reason. The reason is public.

From then on the server answers requests for these versions (/.memento/) with 410 Gone
and the reason, and shows their content only to users who may change the record. The
history still has their numbers and dates. A disavowal can't be undone. Only an owner of
the namespace may disavow.

The current version can't be disavowed: update or withdraw the record first.`,
		Example: `  stele disavow ark:12345/x54xz321 --version 3 --reason 'The account of an editor was stolen.'
  stele disavow 10.5072/rivers --version 3-5 --reason 'These led to a copy with errors.'`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			first, last, ok := readVersions(versions)
			switch {
			case !ok:
				return usage.Errorf(cmd, "flag.version-not-a-range", `--version "{versions}" is neither a version, such as 3, nor a range, such as 3-5; 'stele history' lists them`, versions)
			case reason == "":
				return usage.Errorf(cmd, "flag.disavow-reason-missing", "the reason is missing; give it with --reason, for those who ask for such a version")
			}
			return p.change(cmd, args[0], func(ctx context.Context, l *Registry, id stele.ID) (*stele.Record, error) {
				return l.Disavow(ctx, id, ifVersion, first, last, reason)
			})
		},
	}
	cmd.Flags().StringVar(&versions, "version", "", "version `N`, or versions N-M")
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, which is public")
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}

// readVersions reads a version or a range of them.
func readVersions(text string) (first, last uint64, ok bool) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 64)
	last, err2 := strconv.ParseUint(to, 10, 64)
	return first, last, err1 == nil && err2 == nil && first > 0 && first <= last
}
