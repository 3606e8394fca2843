package remote

import (
	"context"
	"net/http"
	"time"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar"
)

// Harvests returns the harvests that servers do, of namespaces that the caller owns.
func (r *Registry) Harvests(ctx context.Context) ([]registrar.ScheduledHarvest, error) {
	return gather(ctx, r, "list harvests", listOf("harvests", ""), func(d *apijson.Harvest) (h registrar.ScheduledHarvest, err error) {
		key, err := namespaces.ParsePrefix(r.o.Schemes, d.Namespace)
		if err != nil {
			return h, err
		}
		h = registrar.ScheduledHarvest{Name: d.Name, URL: d.URL, Scheme: key.Scheme, Prefix: key.Prefix, Format: d.Format, Set: d.Set, Every: time.Duration(d.Every) * time.Second, Limit: d.Limit, By: d.By,
			Added: d.Added, Ended: d.Ended, Next: d.Next, Said: d.Said, Failures: d.Failures, Waits: d.Waits, Asked: d.Asked}
		if d.UnderWay {
			h.Server = "server"
		}
		return h, nil
	})
}

// AddHarvest lets servers do a harvest from time to time, with the rights of the caller.
func (r *Registry) AddHarvest(ctx context.Context, h registrar.ScheduledHarvest) error {
	return r.post(ctx, "schedule harvest", "harvests",
		apijson.NewHarvest{Name: h.Name, URL: h.URL, Namespace: h.Into().String(), Format: h.Format, Set: h.Set, Every: int64(h.Every / time.Second), Limit: &h.Limit})
}

// StopHarvest ends a harvest that servers do.
func (r *Registry) StopHarvest(ctx context.Context, name string) error {
	return r.fetch(ctx, "schedule harvest", &ask{method: http.MethodDelete, path: pathOf("harvests", name)}, nil)
}

// AskHarvest lets a server do a harvest now; with yes it withdraws all names that are deleted.
func (r *Registry) AskHarvest(ctx context.Context, name string, yes bool) error {
	return r.post(ctx, "schedule harvest", pathOf("harvest-now", name), apijson.HarvestNow{Yes: yes})
}

// post sends a document, and expects no answer. It is not sent again if the answer is lost.
func (r *Registry) post(ctx context.Context, op, path string, document any) error {
	return r.fetch(ctx, op, &ask{method: http.MethodPost, path: path, document: document}, nil)
}
