package remote

import (
	"context"
	"net/http"

	"github.com/stele-id/stele/document/apijson"
)

// HandleSite returns the site by which the Handle System knows the servers of the registry. Only an administrator may ask.
func (r *Registry) HandleSite(ctx context.Context) (*apijson.HandleSite, error) {
	return r.handleSite(ctx, "show handle site", &ask{method: http.MethodGet, path: "handlesite", again: true})
}

// RollHandleSite has the server replace the key of the site.
func (r *Registry) RollHandleSite(ctx context.Context) (*apijson.HandleSite, error) {
	// It is not retried: a retry could roll the key twice, and clients know the former key only once.
	return r.handleSite(ctx, "roll handle key", &ask{method: http.MethodPost, path: "handlesite"})
}

// handleSite sends a request that is answered with the site.
func (r *Registry) handleSite(ctx context.Context, op string, q *ask) (*apijson.HandleSite, error) {
	site := new(apijson.HandleSite)
	return site, r.fetch(ctx, op, q, site)
}

// SetUpHandles has the server set up a prefix of handles, such as 20.500.12345.
func (r *Registry) SetUpHandles(ctx context.Context, prefix string, want apijson.HandleSetup) (*apijson.HandlePrefix, error) {
	const op = "set up handles"
	made := new(apijson.HandlePrefix)
	return made, r.fetch(ctx, op, &ask{method: http.MethodPost, path: pathOf("handleprefixes", prefix), document: want}, made)
}
