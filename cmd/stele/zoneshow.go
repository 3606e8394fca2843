package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/publish"
)

func (p *program) zoneShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [ZONE | ID]",
		Short: "Show the records of a zone or of an identifier",
		Long: `Show prints the records of a zone that do not belong to single names: servers, rules,
keys. For an identifier it prints the owner name and the records there, or why it has
none. Without an argument it prints all zones.

It exits with 3 if the zone does not exist, or if the identifier is not published.`,
		Example:           "  stele zone show paradisec.example\n  stele zone show urn:paradisec:AB1:001:A",
		Args:              usage.AtMostOne("the zone or identifier"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
				if len(args) == 0 {
					return p.showZones(ctx, zones)
				}
				shown, err := zones.Show(ctx, args[0])
				if err == nil {
					return p.showZone(shown)
				}
				id, noName := l.Parse(args[0])
				if noName != nil || !errors.Is(err, stele.NotFound) {
					return err
				}
				return p.showPlace(ctx, zones, id)
			})
		},
	}
	return usage.NeverFiles(cmd)
}

func (p *program) showZones(ctx context.Context, zones *publish.Zones) error {
	list, err := zones.List(ctx)
	if err != nil {
		return err
	}
	for _, z := range list {
		shown, err := zones.Show(ctx, z.Zone)
		if err != nil {
			return err
		}
		if err := p.showZone(shown); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) showZone(z *publish.Shown) error {
	if p.json {
		d := newZoneDocument(z.Listed, z.Records)
		d.Secondaries = secondaryDocuments(z.Secondaries)
		return p.printLine(d)
	}
	out := bufio.NewWriter(p.stdout)
	fmt.Fprintf(out, "%s\n", z.Zone)
	var b strings.Builder
	card.Row(&b, "namespace", namespaceText(z.Listed))
	card.Row(&b, "layout", string(z.Layout))
	if z.Shut {
		card.Row(&b, "shut", wording.ShutZone(z.Zone))
	}
	for _, s := range z.Secondaries {
		card.Row(&b, "secondary", secondaryText(s))
	}
	out.WriteString(b.String())
	writeEntries(out, z.Records)
	return out.Flush()
}

// writeEntries writes records of the DNS.
func writeEntries(out *bufio.Writer, list []publish.Entry) {
	for _, e := range list {
		fmt.Fprintf(out, "%s%s %s\n", card.Indent, e.Owner, e.Text)
	}
}

// placeDocument is where an identifier stands, as programs see it.
type placeDocument struct {
	ID      string           `json:"id"`
	Zone    string           `json:"zone,omitempty"`
	Owner   string           `json:"owner,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Records []recordDocument `json:"records,omitempty"`
	Notes   []string         `json:"notes,omitempty"`
}

func (p *program) showPlace(ctx context.Context, zones *publish.Zones, id stele.ID) error {
	place, err := zones.Where(ctx, id)
	if err != nil {
		return err
	}
	if p.json {
		d := placeDocument{ID: id.String(), Zone: place.Zone, Owner: place.Owner, Records: recordDocuments(place.Records)}
		if place.Reason != nil {
			d.Reason = place.Reason.Error()
		}
		for _, note := range place.Notes {
			d.Notes = append(d.Notes, note.Error())
		}
		err = p.printLine(d)
	} else if place.Owner != "" {
		err = p.drawPlace(id, place)
	}
	if err == nil && place.Reason != nil {
		err = &stele.Error{Op: "show", ID: id, Kind: stele.NotFound, Err: stele.Messagef("zone.nothing-published", "nothing is published of it: {cause}", place.Reason)}
	}
	return err
}

// drawPlace draws where an identifier stands for a person.
func (p *program) drawPlace(id stele.ID, place *publish.Place) error {
	out := bufio.NewWriter(p.stdout)
	var b strings.Builder
	fmt.Fprintln(&b, printable(id.String()))
	card.Row(&b, "zone", place.Zone)
	card.Row(&b, "owner name", place.Owner)
	for _, note := range place.Notes {
		card.Row(&b, "note", printable(note.Error()))
	}
	out.WriteString(b.String())
	writeEntries(out, place.Records)
	return out.Flush()
}
