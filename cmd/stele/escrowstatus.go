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

func (p *program) escrowStatusCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "status",
		Short: "Show the deposits that servers make",
		Long: `Status shows what is known of the deposits that servers of the registry make, as the setting escrow
asks for them: when the last one was made, of which change, when it was checked, and the last error.
Only administrators see that.`,
		Example: "  stele escrow status\n  stele escrow status --server https://id.example.org --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				list, err := l.Deposits(ctx)
				if err != nil {
					return err
				}
				for i := range list {
					if p.json {
						err = p.printObject(list[i])
					} else {
						err = p.sayDeposits(&list[i])
					}
					if err != nil {
						return err
					}
				}
				if len(list) == 0 && !p.json {
					return p.say("no server makes deposits yet; the setting escrow asks for them\n")
				}
				return nil
			})
		},
	})
}

// sayDeposits prints what is known of the deposits at a place.
func (p *program) sayDeposits(d *registrar.ScheduledDeposit) error {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s  %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s\n", printable(d.Name))
	line("place", "%s", d.Place)
	if len(d.Prefixes) > 0 {
		line("of", "%s", strings.Join(d.Prefixes, ", "))
	}
	if d.Deposit != "" {
		line("last", "%s, change %s, %s records", wording.Moment(d.Deposited), grouped(int64(d.Change)), grouped(int64(d.Records)))
		line("sent", "%s of %s objects, %s bytes", grouped(int64(d.Sent)), grouped(int64(d.Objects)), grouped(d.Bytes))
	} else {
		line("last", "none was made yet")
	}
	if !d.Checked.IsZero() {
		line("checked", "%s, and whole", wording.Moment(d.Checked))
	}
	if d.Failures > 0 {
		line("failed", "%s, %d times: %s", wording.Moment(d.Ended), d.Failures, d.Said)
	}
	switch {
	case d.Server != "":
		line("now", "a server works on it")
	case !d.Next.IsZero():
		line("next", "%s", wording.Moment(d.Next))
	}
	return p.say("%s", b.String())
}
