package server

import (
	"bytes"
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/api"
)

// deskZones is the zones of the registry for the desk, and the questions about them to other servers.
type deskZones struct {
	*Keys
	s *server
}

// askTime is how long the server asks other servers about a zone.
const askTime = 15 * time.Second

// Survey tells how the names of a namespace are cut.
func (d deskZones) Survey(ctx context.Context, key stele.NamespaceKey, separator string) (string, int, error) {
	zones, end := d.zones()
	defer end()
	return zones.Survey(ctx, key, separator)
}

// Preview returns how a record would be found.
func (d deskZones) Preview(ctx context.Context, ns *stele.Namespace, rec *stele.Record) (*publish.Previewed, error) {
	zones, end := d.zones()
	defer end()
	return zones.Preview(ctx, ns, rec)
}

// Judge says why a namespace can't be published.
func (d deskZones) Judge(ctx context.Context, ns *stele.Namespace) error {
	zones, end := d.zones()
	defer end()
	return zones.Judge(ctx, ns)
}

// Parent returns the records that administrators of other zones publish.
func (d deskZones) Parent(ctx context.Context, key stele.NamespaceKey) (string, error) {
	var b bytes.Buffer
	err := d.WriteZone(ctx, &b, key, api.ZoneFile{Parent: true})
	return b.String(), err
}

// delegations returns the client that asks about zones. It asks the name servers of the system, and
// in a demonstration the server itself; servers that others name are asked at public addresses and
// those of notify-allow only.
func (d deskZones) delegations() (*client.Delegations, error) {
	var at []string
	if d.s.o.Demo != "" && d.s.dns != nil {
		at = append(at, d.s.dns.Addr().String())
	}
	ask, err := client.NewDelegations(at...)
	if err != nil {
		return nil, err
	}
	ask.Timeout, ask.Dial = 2*time.Second, (&outbound.Dialer{Rule: d.s.notify}).DialContext
	return ask, nil
}

// Delegation asks how a zone is found.
func (d deskZones) Delegation(ctx context.Context, zone string, servers []stele.NameServer) (*client.Delegation, error) {
	ask, err := d.delegations()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return ask.Check(ctx, zone, servers)
}

// DS asks the parent of a zone for its DS records.
func (d deskZones) DS(ctx context.Context, zone string) (string, []string, error) {
	ask, err := d.delegations()
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return ask.DS(ctx, zone)
}

// Secondaries asks the secondaries of a zone for the serials of their copies, and compares them
// with that of the zone.
func (d deskZones) Secondaries(ctx context.Context, zone string) ([]stele.SecondaryAnswer, error) {
	list, err := registry.AskZoneSecondaries(ctx, d.s.notify, d.r.Store, zone)
	if err != nil {
		return nil, err
	}
	z, err := d.r.Store.ZoneState(ctx, zone)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = list[i].Against(z.Serial())
	}
	return list, nil
}
