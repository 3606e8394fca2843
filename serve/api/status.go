package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// expiresSoon is how long before its end the status lists a token.
const expiresSoon = 30 * 24 * time.Hour

// statusDocument is how a running installation is: what stele doctor looks at.
type statusDocument struct {
	Version      string                `json:"version,omitempty" doc:"The program's version."`
	Now          time.Time             `json:"now" doc:"The server's clock."`
	Ready        bool                  `json:"ready" doc:"The registry can be written."`
	Why          string                `json:"why,omitempty" doc:"Why it can't, and what will happen."`
	Changes      uint64                `json:"changes" doc:"How many changes the registry has."`
	Generation   generationDocument    `json:"generation" doc:"The generation of the registry. A restore begins another."`
	LastChange   *time.Time            `json:"lastChange,omitempty" doc:"When the last one was made."`
	Namespaces   int                   `json:"namespaces" doc:"How many namespaces there are."`
	Zones        []string              `json:"zones,omitempty" doc:"Zones that the server answers the DNS for."`
	Shut         []string              `json:"shut,omitempty" doc:"Namespaces that make no names until their counters are set ahead: a restore shut them."`
	Disk         *diskDocument         `json:"disk,omitempty" doc:"The disk of the registry."`
	Certificates []certificateDocument `json:"certificates,omitempty" doc:"Certificates that the server shows."`
	Tokens       []expiryDocument      `json:"tokens,omitempty" doc:"Tokens that are good now, and expire within 30 days; at most 1000."`
}

// generationDocument is a generation of the registry.
type generationDocument struct {
	ID       string    `json:"id" doc:"Its identifier, which version tokens begin with."`
	Number   uint64    `json:"number" doc:"1 for the first; greater for each that follows." minimum:"1"`
	Began    time.Time `json:"began" doc:"When it began."`
	Restored string    `json:"restored,omitempty" doc:"The generation and the last change of the backup that it began with."`
	Replaced string    `json:"replaced,omitempty" doc:"The generation and the last change of the registry whose place it took."`
}

func newGenerationDocument(g stele.Generation) generationDocument {
	d := generationDocument{ID: g.ID.String(), Number: g.Number, Began: g.Began.UTC()}
	if g.Restored != (stele.Position{}) {
		d.Restored = g.Restored.String()
	}
	if g.Replaced != (stele.Position{}) {
		d.Replaced = g.Replaced.String()
	}
	return d
}

// diskDocument is the room on a disk.
type diskDocument struct {
	Free  uint64 `json:"free" doc:"Bytes that can be written."`
	Total uint64 `json:"total" doc:"Bytes that it has."`
}

// certificateDocument is a certificate.
type certificateDocument struct {
	Name     string    `json:"name" doc:"The name that it is for."`
	NotAfter time.Time `json:"notAfter" doc:"When it expires."`
}

// expiryDocument is a token that expires soon.
type expiryDocument struct {
	ID      string    `json:"id" doc:"The token, without its secret."`
	User    string    `json:"user" doc:"Whose it is."`
	Label   string    `json:"label,omitempty" doc:"What it is for."`
	Expires time.Time `json:"expires"`
}

func (h *Handler) statusOperations() []operation {
	return []operation{{
		name: "getStatus", method: http.MethodGet, path: "status", group: "Running the server",
		summary: "Show how the server is",
		asks:    administrator, scope: auth.ScopeBackup,
		answers: []answer{{status: 200, about: "How it is.", value: statusDocument{}}},
		serve:   h.getStatus,
	}}
}

// getStatus shows how the server is.
func (h *Handler) getStatus(c *call) error {
	up := &h.o.Upkeep
	d := statusDocument{Version: up.Version, Now: h.o.Now().UTC(), Ready: true}
	if err := h.o.Store.Ready(c.ctx); err != nil {
		d.Ready, d.Why = false, legible(err.Error())
	}
	if up.Disk != nil {
		if free, total, err := up.Disk(); err == nil {
			d.Disk = &diskDocument{free, total}
		} else {
			h.o.Log.Warn("the disk's room is not known", "error", legible(err.Error()))
		}
	}
	if up.Certificates != nil {
		for _, cert := range up.Certificates() {
			d.Certificates = append(d.Certificates, certificateDocument{cert.Name, cert.NotAfter.UTC()})
		}
	}
	for _, part := range []func(context.Context, *statusDocument) error{h.statusOfZones, h.statusOfChanges, h.statusOfNamespaces, h.statusOfTokens} {
		if err := part(c.ctx, &d); err != nil {
			return err
		}
	}
	return c.reply(http.StatusOK, d)
}

// statusOfZones lists the zones that the server answers for.
func (h *Handler) statusOfZones(ctx context.Context, d *statusDocument) (err error) {
	if h.o.Upkeep.Zones != nil {
		d.Zones, err = h.o.Upkeep.Zones(ctx)
	}
	return err
}

// statusOfChanges says how many changes there are, and when the last one was.
func (h *Handler) statusOfChanges(ctx context.Context, d *statusDocument) (err error) {
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
func (h *Handler) statusOfNamespaces(ctx context.Context, d *statusDocument) error {
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
func (h *Handler) statusOfTokens(ctx context.Context, d *statusDocument) error {
	for t, err := range h.o.Registrar.Tokens(ctx, "") {
		if err != nil {
			return err
		}
		if t.Ended(d.Now) || t.Expires.IsZero() || t.Expires.After(d.Now.Add(expiresSoon)) {
			continue
		}
		d.Tokens = append(d.Tokens, expiryDocument{t.ID, t.User, t.Label, t.Expires.UTC()})
		if len(d.Tokens) == maxLimit {
			break
		}
	}
	return nil
}
