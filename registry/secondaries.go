package registry

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
)

// AskSecondaries asks the secondaries of all zones that stores publish for the serials of
// their copies, at addresses that the rule allows. A nil store has none.
func AskSecondaries(ctx context.Context, may outbound.Rule, stores ...stele.Store) ([]stele.SecondaryAnswer, error) {
	var open []registrar.NamespaceLister
	for _, store := range stores {
		if store == nil {
			continue
		}
		// A registry that is being replaced may be damaged; the restore reports that.
		if _, err := registrar.Secondaries(ctx, store); err != nil && stele.KindOf(err) != stele.Internal {
			return nil, err
		} else if err == nil {
			open = append(open, store)
		}
	}
	list, err := registrar.Secondaries(ctx, open...)
	if err != nil {
		return nil, err
	}
	client.AskSecondaries(ctx, may, list)
	return list, nil
}

// AskZoneSecondaries is [AskSecondaries] for one zone of one store.
func AskZoneSecondaries(ctx context.Context, may outbound.Rule, store registrar.NamespaceLister, zone string) ([]stele.SecondaryAnswer, error) {
	list, err := registrar.Secondaries(ctx, store)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(a stele.SecondaryAnswer) bool { return a.Zone != zone })
	client.AskSecondaries(ctx, may, list)
	return list, nil
}
