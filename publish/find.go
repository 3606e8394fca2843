package publish

import (
	"context"

	"github.com/stele-id/stele"
)

// Of returns the zone in which a namespace is published. NotFound if there is none.
func (zs *Zones) Of(ctx context.Context, key stele.NamespaceKey) (string, error) {
	list, err := zs.List(ctx)
	if err != nil {
		return "", err
	}
	for _, z := range list {
		if z.Namespace == key {
			return z.Zone, nil
		}
	}
	return "", stele.Errorf("find zone", stele.ID{}, stele.NotFound, "server.namespace-in-no-zone", "{namespace} is published in no zone; 'stele zone ls' lists them", key)
}
