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
		Short: "Declare that earlier versions of a record are not to be used",
		Long: `Disavow declares that earlier versions of a record are wrong: an account was stolen and
led a name to another place, or an editor made a mistake that must not be followed. A
new version of the record says so, with the reason, which the public reads.

From then on the server answers with 410 Gone and the reason where the versions could
be visited (/.memento/), and their content is shown only to those who may change the
record. That the versions were there, and when, stays. Nothing takes a disavowal back.
Only an owner of the namespace may disavow.

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
	cmd.Flags().StringVar(&versions, "version", "", "the version `N`, or the versions N-M")
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, which the public reads")
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
