package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry/access"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
)

func (p *program) zoneCheckCommand() *cobra.Command {
	local := false
	cmd := &cobra.Command{
		Use:   "check [ZONE]",
		Short: "Check a zone",
		Long: `Check prints all problems of a zone, or of all zones, and possible improvements: names
that do not fit the DNS, and why; URLs that are too long for a rule; answers that do not
fit into one packet; missing name servers and addresses.

Check also queries each secondary that gets notifications for its serial, and compares
it with that of the zone. A secondary with a higher serial, which can occur after a
restore, keeps its old content and transfers no changes: 'stele zone raise' corrects
this. A secondary with a lower serial transfers the zone at its next refresh. Check
queries secondaries at public addresses, and at those of --notify-allow; with --server,
the server does so. With --local check queries no secondary.

It exits with 1 if a name can't be resolved because of a problem, if a zone is shut
since a restore, or if a secondary has another version of the zone or does not answer.`,
		Example: `  stele zone check
  stele zone check paradisec.example --json
  stele zone check paradisec.example --notify-allow 10.1.0.0/16
  stele zone check --local`,
		Args:              usage.AtMostOne("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
				return p.checkZones(ctx, l, zones, name, local)
			})
		},
	}
	cmd.Flags().BoolVar(&local, "local", false, "do not query secondaries")
	p.allowFlag(cmd)
	return usage.NeverFiles(cmd)
}

// problemDocument is a problem as programs see it.
type problemDocument struct {
	Zone    string `json:"zone,omitempty"`
	ID      string `json:"id,omitempty"`
	Serious bool   `json:"serious"`
	Text    string `json:"problem"`
}

// checkZones checks zones, and compares them with their secondaries.
func (p *program) checkZones(ctx context.Context, l *Registry, zones *publish.Zones, name string, local bool) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	serious, all := 0, 0
	var failed error
	progress := p.newProgress("check", "records", 0, nil)
	err := zones.Check(ctx, name, func(problem publish.Problem) {
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
		return refuse("check", stele.Conflict, "zone-check.problems", "{serious} of {total} problems keep something from being found", serious, all)
	case wrong > 0:
		return refuse("check", stele.Conflict, "zone-check.secondaries-differ", "{count} problems keep secondaries from having a zone as it is", wrong)
	}
	return nil
}

func (p *program) writeProblem(out *bufio.Writer, problem *publish.Problem) error {
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

// transferProblem is the state of a zone at a secondary, or that it is shut, as programs see it.
type transferProblem struct {
	Zone      string               `json:"zone"`
	Secondary string               `json:"secondary,omitempty"`
	State     stele.SecondaryState `json:"state"`
	Serial    *uint32              `json:"serial,omitempty"` // of the secondary
	ZoneAt    uint32               `json:"zoneSerial"`
	Serious   bool                 `json:"serious"`
	Text      string               `json:"problem,omitempty"`
}

// zoneIsShut is the state of a zone that no secondary gets.
const zoneIsShut stele.SecondaryState = "shut"

// checkTransfers compares a zone, or all, with their secondaries, and returns how many
// problems there are. With local none is asked.
func (p *program) checkTransfers(ctx context.Context, l *Registry, zones *publish.Zones, name string, local bool) (wrong int, err error) {
	list, err := zones.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, z := range list {
		if name != "" && z.Zone != access.Absolute(name) {
			continue
		}
		if z.Shut {
			wrong++
			if err := p.printTransfer(transferProblem{Zone: z.Zone, State: zoneIsShut, ZoneAt: z.Serial, Serious: true, Text: "it is shut: " + wording.ShutZone(z.Zone)}); err != nil {
				return wrong, err
			}
		}
		if local || z.Layout == publish.LayoutCatalog { // some secondaries do not answer for a catalog
			continue
		}
		shown, err := zones.Show(ctx, z.Zone)
		if err != nil || len(shown.Secondaries) == 0 {
			if err != nil {
				return wrong, err
			}
			continue
		}
		checked, err := l.CompareZone(ctx, z, p.mayAsk)
		if err != nil {
			return wrong, err
		}
		for _, a := range checked.Secondaries {
			found := newTransferProblem(a.Against(checked.Serial), checked.Serial)
			if found.Serious {
				wrong++
			}
			if err := p.printTransfer(found); err != nil {
				return wrong, err
			}
		}
	}
	return wrong, nil
}

// newTransferProblem judges what a secondary said. One that has an older serial may be
// about to transfer the zone, and one that was not asked may be well.
func newTransferProblem(a stele.SecondaryAnswer, serial uint32) transferProblem {
	t := transferProblem{Zone: a.Zone, Secondary: a.At, State: a.State, Serial: newSecondaryCheck(a).Serial, ZoneAt: serial}
	switch a.State {
	case stele.SecondarySame, stele.SecondaryBehind, stele.SecondaryUnasked:
	default:
		t.Serious = true
	}
	if a.State != stele.SecondarySame || t.Serious {
		t.Text = wording.Secondary(a, serial)
	}
	return t
}

// printTransfer prints the state of a zone at a secondary.
func (p *program) printTransfer(t transferProblem) error {
	if p.json {
		return p.printLine(t)
	}
	grade, text := "ok", t.Text
	switch {
	case t.Serious:
		grade = "problem"
	case t.State != stele.SecondarySame:
		grade = "hint"
	default:
		text = fmt.Sprintf("the secondary %s has serial %d, as the zone", t.Secondary, t.ZoneAt)
	}
	_, err := fmt.Fprintf(p.stdout, "%-8s %s: %s\n", grade, printable(t.Zone), printable(text))
	return err
}

// allowFlag adds the flag that says which secondaries may be asked beside public ones.
func (p *program) allowFlag(cmd *cobra.Command) {
	s := config.Find("notify-allow")
	cmd.Flags().StringVar(&p.askAllow, s.Name, os.Getenv(s.Variable()), "`addresses` and networks, in addition to public ones, at which secondaries may be queried, separated by commas (environment: "+s.Variable()+")")
	_ = cmd.RegisterFlagCompletionFunc(s.Name, cobra.NoFileCompletions)
}

// mayAsk returns where secondaries may be asked: where a server may notify them.
func (p *program) mayAsk() (outbound.Rule, error) {
	if p.notify != nil {
		return *p.notify, nil
	}
	list := strings.FieldsFunc(p.askAllow, func(r rune) bool { return r == ',' || r == ' ' })
	allowed, err := outbound.ParseRule(list)
	if err != nil {
		return allowed, refuse("ask secondaries", stele.Invalid, "", "notify-allow: {cause}", err)
	}
	return allowed, nil
}

// secondaryCheck is a secondary as programs see it.
type secondaryCheck struct {
	At     string               `json:"at"`
	State  stele.SecondaryState `json:"state"`
	Serial *uint32              `json:"serial,omitempty"`
	Why    string               `json:"why,omitempty"`
}

func newSecondaryCheck(a stele.SecondaryAnswer) secondaryCheck {
	c := secondaryCheck{At: a.At, State: a.State, Why: a.Why}
	if a.HasSerial() {
		c.Serial = &a.Serial
	}
	return c
}
