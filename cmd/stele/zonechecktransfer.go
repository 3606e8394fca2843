package main

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/dnsd"
)

// transferProblem is how a zone is at a secondary, or that it is shut, as programs see it.
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
func (p *program) checkTransfers(ctx context.Context, l *ledger, zones *dnsd.Zones, name string, local bool) (wrong int, err error) {
	list, err := zones.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, z := range list {
		if name != "" && z.Zone != absolute(name) {
			continue
		}
		if z.Shut {
			wrong++
			if err := p.printTransfer(transferProblem{Zone: z.Zone, State: zoneIsShut, ZoneAt: z.Serial, Serious: true, Text: "it is shut: " + shutWords(z.Zone)}); err != nil {
				return wrong, err
			}
		}
		if local || z.Layout == dnsd.LayoutCatalog { // some secondaries do not answer for what they read
			continue
		}
		shown, err := zones.Show(ctx, z.Zone)
		if err != nil || len(shown.Secondaries) == 0 {
			if err != nil {
				return wrong, err
			}
			continue
		}
		checked, err := p.compareZone(ctx, l, z)
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

// compareZone asks the secondaries of a zone, or has the server ask them.
func (p *program) compareZone(ctx context.Context, l *ledger, z dnsd.Listed) (remote.CheckedZone, error) {
	if far, ok := l.keeper.(*distant); ok {
		return far.CheckSecondaries(ctx, z.Zone)
	}
	may, err := p.mayAsk()
	if err != nil {
		return remote.CheckedZone{}, err
	}
	answers, err := registry.AskZoneSecondaries(ctx, may, l.Source(), z.Zone)
	return remote.CheckedZone{Zone: z.Zone, Serial: z.Serial, Shut: z.Shut, Secondaries: answers}, err
}

// newTransferProblem judges what a secondary said. One that is behind may be about to take
// the zone, and one that was not asked may be well.
func newTransferProblem(a stele.SecondaryAnswer, serial uint32) transferProblem {
	t := transferProblem{Zone: a.Zone, Secondary: a.At, State: a.State, Serial: newSecondaryCheck(a).Serial, ZoneAt: serial}
	switch a.State {
	case stele.SecondarySame, stele.SecondaryBehind, stele.SecondaryUnasked:
	default:
		t.Serious = true
	}
	if a.State != stele.SecondarySame || t.Serious {
		t.Text = secondaryWords(a, serial)
	}
	return t
}

// printTransfer prints how a zone is at a secondary.
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
