package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// HandleSites makes the registry a site of the Handle System. The private key of the site never leaves it. The registrar
// judges what the caller in the context may do.
type HandleSites interface {
	// HandleSite returns the site; NotFound if none was set up.
	HandleSite(ctx context.Context) (*apijson.HandleSite, error)

	// SetUpHandles makes a prefix, such as 20.500.12345, one that the Handle protocol serves.
	SetUpHandles(ctx context.Context, prefix string, want apijson.HandleSetup) (*apijson.HandlePrefix, error)

	// RollHandleSite replaces the key of the site.
	RollHandleSite(ctx context.Context) (*apijson.HandleSite, error)
}

func (h *Handler) handleOperations() []operation {
	const group = "Handle System"
	site := answer{status: 200, about: "The site as it is now.", value: apijson.HandleSite{}}
	return []operation{{
		name: "getHandleSite", method: http.MethodGet, path: "handlesite", group: group,
		summary: "Show the site by which the Handle System knows this registry",
		about:   "Its keys are not shown.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{site},
		fails:   []int{404},
		serve:   h.getHandleSite,
	}, {
		name: "rollHandleSite", method: http.MethodPost, path: "handlesite", group: group,
		summary: "Replace the key of the site",
		about:   "The records of all prefixes are brought up to date. Clients that know the former site are answered with the former key until the next roll.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{site},
		fails:   []int{404, 409},
		serve:   h.rollHandleSite,
	}, {
		name: "setUpHandlePrefix", method: http.MethodPost, path: "handleprefixes/{prefix}", group: group,
		tail:    parameter{name: "prefix", about: "The prefix of handles, whose namespace exists", example: "20.500.12345"},
		summary: "Make a prefix one that the Handle protocol serves",
		about:   "The server makes the key of the site, if there is none yet, and keeps it. The caller makes the key of the prefix's administrator, and sends its public half. Where the prefix has a record, its administrators stay as they are.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.HandleSetup{}, example: `{"addresses":["192.0.2.7"]}`},
		answers: []answer{{status: 200, about: "The prefix is set up.", value: apijson.HandlePrefix{}}},
		fails:   []int{404, 409},
		serve:   h.setUpHandlePrefix,
	}}
}

// handleSites returns what sets up handles; NotFound if the server does not.
func (c *call) handleSites() (HandleSites, error) {
	if s := c.h.o.Upkeep.Handles; s != nil {
		return s, nil
	}
	return nil, &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("handle.unsupported-by-server", "this server does not set up the Handle protocol")}
}

// getHandleSite shows the site.
func (h *Handler) getHandleSite(c *call) error {
	s, err := c.handleSites()
	if err != nil {
		return err
	}
	site, err := s.HandleSite(c.ctx)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, site)
}

// rollHandleSite replaces the key of the site.
func (h *Handler) rollHandleSite(c *call) error {
	s, err := c.handleSites()
	if err != nil {
		return err
	}
	site, err := s.RollHandleSite(c.ctx)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, site)
}

// setUpHandlePrefix sets up a prefix.
func (h *Handler) setUpHandlePrefix(c *call) error {
	var want apijson.HandleSetup
	if err := c.decode(&want); err != nil {
		return err
	}
	s, err := c.handleSites()
	if err != nil {
		return err
	}
	made, err := s.SetUpHandles(c.ctx, c.tail, want)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, made)
}
