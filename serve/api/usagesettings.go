package api

import (
	"net/http"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

func (h *Handler) usageSettingsOperations() []operation {
	settings := answer{status: 200, about: "The settings as they are now.", value: apijson.UsageSettings{}}
	return []operation{{
		name: "getUsageSettings", method: http.MethodGet, path: "usagesettings/{prefix}", group: "Namespaces", tail: prefixInPath,
		summary: "Show how the use of a namespace is counted",
		asks:    reader, scope: auth.ScopeRead,
		answers: []answer{settings},
		fails:   []int{404},
		serve: func(c *call) error {
			key, err := c.prefix()
			if err != nil {
				return err
			}
			u, err := h.o.Registrar.UsageSettings(c.ctx, key)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, usageSettings(u))
		},
	}, {
		name: "putUsageSettings", method: http.MethodPut, path: "usagesettings/{prefix}", group: "Namespaces", tail: prefixInPath,
		summary: "Set how the use of a namespace is counted",
		about:   "Servers follow within half a minute. What is left out stays as it is.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.UsageSettingsChange{}, example: `{"countAll":true,"public":true}`},
		answers: []answer{settings},
		fails:   []int{404, 409},
		serve:   h.putUsageSettings,
	}}
}

func usageSettings(u registrar.UsageSettings) apijson.UsageSettings {
	return apijson.UsageSettings{CountAll: u.CountAll, Public: u.Public, By: u.By, Changed: u.Changed}
}

func (h *Handler) putUsageSettings(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	var want apijson.UsageSettingsChange
	if err := c.decode(&want); err != nil {
		return err
	}
	u, err := h.o.Registrar.SetUsageSettings(c.ctx, key, func(u *registrar.UsageSettings) {
		if want.CountAll != nil {
			u.CountAll = *want.CountAll
		}
		if want.Public != nil {
			u.Public = *want.Public
		}
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, usageSettings(u))
}
