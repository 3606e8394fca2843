package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
)

func (p *program) zoneCheckCommand() *cobra.Command {
	local := false
	cmd := &cobra.Command{
		Use:   "check [ZONE]",
		Short: "Tell what is wrong with a zone",
		Long: `Check tells everything that is wrong with a zone, or with all, or that could be
better: names that do not fit the DNS, and why; URLs that are too long for a rule;
answers that do not fit one packet; missing name servers and addresses.

It also asks each secondary that is told of changes for the serial of its copy, and
compares it with that of the zone. A secondary that is ahead, as one can be after a
restore, keeps other contents and takes no changes: 'stele zone raise' mends that. One
that is behind takes the zone when it asks next. Secondaries are asked at public
addresses, and at those of --notify-allow; through a server, by the server. With --local
none is asked.

It exits with 1 if there is something that is not found because of it, if a zone is shut
since a restore, or if a secondary has another zone than this one or does not answer.`,
		Example: `  stele zone check
  stele zone check paradisec.example --json
  stele zone check paradisec.example --notify-allow 10.1.0.0/16
  stele zone check --local`,
		Args:              atMostOne("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return p.withZones(cmd, func(ctx context.Context, l *ledger, zones *dnsd.Zones) error {
				return p.checkZones(ctx, l, zones, name, local)
			})
		},
	}
	cmd.Flags().BoolVar(&local, "local", false, "ask no secondary")
	p.allowFlag(cmd)
	return neverFiles(cmd)
}

// problemDocument is a problem as programs see it.
type problemDocument struct {
	Zone    string `json:"zone,omitempty"`
	ID      string `json:"id,omitempty"`
	Serious bool   `json:"serious"`
	Text    string `json:"problem"`
}

// checkZones checks zones, and compares them with their secondaries.
func (p *program) checkZones(ctx context.Context, l *ledger, zones *dnsd.Zones, name string, local bool) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	serious, all := 0, 0
	var failed error
	progress := p.newProgress("check", "records", 0, nil)
	err := zones.Check(ctx, name, func(problem dnsd.Problem) {
		all++
		if problem.Serious {
			serious++
		}
		if failed == nil {
			failed = p.writeProblem(out, &problem)
		}
	}, progress.Add)
	progress.End()
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	}
	if err := out.Flush(); err != nil {
		return err
	}
	wrong, err := p.checkTransfers(ctx, l, zones, name, local)
	switch {
	case err != nil:
		return err
	case serious > 0:
		return refuse("check", stele.Conflict, "%d of %d problems keep something from being found", serious, all)
	case wrong > 0:
		return refuse("check", stele.Conflict, "%d problems keep secondaries from having a zone as it is", wrong)
	}
	return nil
}

func (p *program) writeProblem(out *bufio.Writer, problem *dnsd.Problem) error {
	if p.json {
		if err := out.Flush(); err != nil {
			return err
		}
		return p.printLine(problemDocument{problem.Zone, problem.ID.String(), problem.Serious, problem.Text})
	}
	about, grade := problem.Zone, "hint"
	if problem.ID.IsValid() {
		about = problem.ID.String()
	}
	if problem.Serious {
		grade = "problem"
	}
	_, err := fmt.Fprintf(out, "%-8s %s: %s\n", grade, printable(about), printable(problem.Text))
	return err
}
