package remote

import (
	"context"
	"net/http"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Watches returns the registries that servers watch as their heir.
func (r *Registry) Watches(ctx context.Context) ([]registrar.WatchedGiver, error) {
	return gather(ctx, r, "list watches", listOf("watches", ""), func(d *apijson.WatchedRegistry) (registrar.WatchedGiver, error) { return *watchOf(d), nil })
}

func watchOf(d *apijson.WatchedRegistry) *registrar.WatchedGiver {
	return &registrar.WatchedGiver{Origin: d.Origin, URL: d.URL, Keys: d.Keys, By: d.By, Added: d.Added, Size: d.Size, Seen: d.Seen, Silent: d.Silent, Asked: d.Asked, Next: d.Next, Said: d.Said}
}

// AddWatch lets servers watch a registry.
func (r *Registry) AddWatch(ctx context.Context, w registrar.WatchedGiver) error {
	return r.post(ctx, "watch registry", "watches", apijson.NewWatch{Origin: w.Origin, URL: w.URL, Keys: w.Keys})
}

// RemoveWatch ends the watch of a registry.
func (r *Registry) RemoveWatch(ctx context.Context, origin string) error {
	return r.fetch(ctx, "end watch", &ask{method: http.MethodDelete, path: pathOf("watches", origin)}, nil)
}

// AskGiver has the server ask a registry that it watches.
func (r *Registry) AskGiver(ctx context.Context, origin string) (*registrar.WatchedGiver, error) {
	var d apijson.WatchedRegistry
	if err := r.fetch(ctx, "ask registry", &ask{method: http.MethodPost, path: pathOf("watch-now", origin), timeout: heirTime}, &d); err != nil {
		return nil, err
	}
	return watchOf(&d), nil
}
