package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// expiresSoon is how long before its end the status lists a token.
const expiresSoon = 30 * 24 * time.Hour

func newGenerationDocument(g stele.Generation) apijson.Generation {
	d := apijson.Generation{ID: g.ID.String(), Number: g.Number, Began: g.Began.UTC()}
	if g.Restored != (stele.Position{}) {
		d.Restored = g.Restored.String()
	}
	if g.Replaced != (stele.Position{}) {
		d.Replaced = g.Replaced.String()
	}
	return d
}

func (h *Handler) statusOperations() []operation {
	return []operation{{
		name: "getStatus", method: http.MethodGet, path: "status", group: "Running the server",
		summary: "Show how the server is",
		asks:    administrator, scope: auth.ScopeBackup,
		answers: []answer{{status: 200, about: "How it is.", value: apijson.Status{}}},
		serve:   h.getStatus,
	}}
}

// getStatus shows how the server is.
func (h *Handler) getStatus(c *call) error {
	up := &h.o.Upkeep
	d := apijson.Status{Version: up.Version, Now: h.o.Now().UTC(), Ready: true}
	if err := h.o.Store.Ready(c.ctx); err != nil {
		d.Ready, d.Why = false, apijson.Legible(err.Error())
	}
	if up.Disk != nil {
		if free, total, err := up.Disk(); err == nil {
			d.Disk = &apijson.Disk{Free: free, Total: total}
		} else {
			h.o.Log.WarnContext(c.ctx, "the disk's room is not known", "error", apijson.Legible(err.Error()))
		}
	}
	if up.Certificates != nil {
		for _, cert := range up.Certificates() {
			d.Certificates = append(d.Certificates, apijson.Certificate{Name: cert.Name, NotAfter: cert.NotAfter.UTC()})
		}
	}
	for _, part := range []func(context.Context, *apijson.Status) error{h.statusOfZones, h.statusOfChanges, h.statusOfNamespaces, h.statusOfTokens, h.statusOfSearch} {
		if err := part(c.ctx, &d); err != nil {
			return err
		}
	}
	return c.reply(http.StatusOK, d)
}

// statusOfSearch says how the search index is.
func (h *Handler) statusOfSearch(_ context.Context, d *apijson.Status) error {
	if h.o.Search != nil {
		s := h.o.Search.Index.Status()
		d.Search = &apijson.Search{Indexed: s.Change, Behind: s.Behind(), Records: s.Documents, Bytes: s.Bytes}
	}
	return nil
}

// statusOfZones lists the zones that the server answers for.
func (h *Handler) statusOfZones(ctx context.Context, d *apijson.Status) (err error) {
	if h.o.Upkeep.Zones != nil {
		d.Zones, err = h.o.Upkeep.Zones(ctx)
	}
	return err
}

// statusOfChanges says how many changes there are, and when the last one was.
func (h *Handler) statusOfChanges(ctx context.Context, d *apijson.Status) (err error) {
	generations, err := h.o.Store.Generations(ctx)
	if err != nil {
		return err
	}
	d.Generation = newGenerationDocument(generations.Last())
	if d.Changes, err = h.o.Store.LastChange(ctx); err != nil || d.Changes == 0 {
		return err
	}
	for change, err := range h.o.Registrar.Changes(ctx, d.Changes-1) {
		if err != nil {
			return err
		}
		at := change.At.UTC()
		d.LastChange = &at
		break
	}
	return nil
}

// statusOfNamespaces counts the namespaces, and lists those whose minter is shut.
func (h *Handler) statusOfNamespaces(ctx context.Context, d *apijson.Status) error {
	for ns, err := range h.o.Registrar.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if ns.Version > 0 {
			d.Namespaces++
		}
		if ns.Minter.Kind != stele.MinterNOID {
			continue
		}
		minter, err := h.o.Registrar.MinterStatus(ctx, ns.Key())
		if err != nil {
			return err
		}
		if minter.Shut {
			d.Shut = append(d.Shut, ns.Key().String())
		}
	}
	return nil
}

// statusOfTokens lists the tokens that expire soon.
func (h *Handler) statusOfTokens(ctx context.Context, d *apijson.Status) error {
	for t, err := range h.o.Registrar.Tokens(ctx, "") {
		if err != nil {
			return err
		}
		if t.Ended(d.Now) || t.Expires.IsZero() || t.Expires.After(d.Now.Add(expiresSoon)) {
			continue
		}
		d.Tokens = append(d.Tokens, apijson.Expiry{ID: t.ID, User: t.User, Label: t.Label, Expires: t.Expires.UTC()})
		if len(d.Tokens) == maxLimit {
			break
		}
	}
	return nil
}
