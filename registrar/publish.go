package registrar

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// mayPublish makes sure that whoever acts may publish a namespace in its zone. All zones
// of a server are in one tree, and whoever has a zone has its keys. So nobody takes one
// that is, or is above or below, the zone of a namespace which is not theirs to manage,
// nor one of which there are keys already.
func (r *Registrar) mayPublish(ctx context.Context, op string, s *spaces, before, next *stele.Namespace) error {
	who, zone := auth.From(ctx), next.Publication.Zone
	if zone == "" || who.Admin || before != nil && before.Publication.Zone == zone {
		return nil
	}
	theirs := false
	for _, sp := range s.byKey {
		other := sp.Publication.Zone
		if other == "" || !overlap(zone, other) {
			continue
		}
		if !auth.MayManage(who, s.chain(sp)...) {
			return refuse(op, stele.ID{}, stele.Forbidden,
				"%q may not publish %s in %s: %s is the zone of %s; choose another, or ask an administrator", who.Name, next.Key(), zone, other, sp.Key())
		}
		theirs = theirs || other == zone
	}
	if theirs {
		return nil
	}
	keys, err := r.zoneKeys(ctx, op, zone)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		return refuse(op, stele.ID{}, stele.Forbidden,
			"%q may not publish %s in %s: there are keys of that zone from before; choose another, or ask an administrator", who.Name, next.Key(), zone)
	}
	return nil
}

// overlap reports whether two domains are the same, or one is below the other.
func overlap(a, b string) bool {
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}
