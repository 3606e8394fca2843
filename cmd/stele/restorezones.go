package main

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/api"
)

// restoredZone is what a restore made of a zone, and what its secondaries said.
type restoredZone struct {
	Zone        string           `json:"zone"`
	Serial      uint32           `json:"serial"`
	Shut        bool             `json:"shut,omitempty"`
	Secondaries []secondaryCheck `json:"secondaries,omitempty"`

	answers []stele.SecondaryAnswer
}

func newRestoredZone(zone string, serial uint32, shut bool, answers []stele.SecondaryAnswer) restoredZone {
	z := restoredZone{Zone: zone, Serial: serial, Shut: shut}
	for _, a := range answers {
		a = a.Against(serial)
		z.Secondaries, z.answers = append(z.Secondaries, newSecondaryCheck(a)), append(z.answers, a)
	}
	return z
}

// restoredZones returns the zones of a registry that was restored, as far as there is
// something to say of them: those with secondaries, and those that are shut.
func restoredZones(ctx context.Context, r *registry.Registry, answers []stele.SecondaryAnswer) (list []restoredZone, err error) {
	said := make(map[string][]stele.SecondaryAnswer)
	for _, a := range answers {
		said[a.Zone] = append(said[a.Zone], a)
	}
	for z, err := range r.Registrar.ZoneStates(ctx) {
		if err != nil {
			return nil, err
		}
		if z.Shut || len(said[z.Zone]) > 0 {
			list = append(list, newRestoredZone(z.Zone, z.Serial(), z.Shut, said[z.Zone]))
		}
	}
	return list, nil
}

// restoredAPI is zones as the API shows them.
func restoredAPI(list []restoredZone) (zones []api.RestoredZone) {
	for _, z := range list {
		zones = append(zones, api.RestoredZone{Zone: z.Zone, Serial: z.Serial, Shut: z.Shut, Secondaries: z.answers})
	}
	return zones
}

// printRestoredZones says which serials restored zones have, and why some are shut.
func (p *program) printRestoredZones(list []restoredZone) error {
	for _, z := range list {
		for _, a := range z.answers {
			text := secondaryWords(a, z.Serial)
			if a.State == stele.SecondaryBehind {
				text = fmt.Sprintf("the secondary %s has serial %d, and takes the whole zone", a.At, a.Serial)
			}
			if _, err := fmt.Fprintf(p.stdout, "%s %s\n", printable(z.Zone), printable(text)); err != nil {
				return err
			}
		}
		text := fmt.Sprintf("has serial %d now", z.Serial)
		if z.Shut {
			text = "is shut: " + shutWords(z.Zone)
		}
		if _, err := fmt.Fprintf(p.stdout, "%s %s\n", printable(z.Zone), printable(text)); err != nil {
			return err
		}
	}
	return nil
}
