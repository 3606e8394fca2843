package remote

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// UsageSettings returns how the use of a namespace is counted.
func (r *Registry) UsageSettings(ctx context.Context, key stele.NamespaceKey) (registrar.UsageSettings, error) {
	return r.usageSettings(ctx, "show usage settings", key, &ask{method: http.MethodGet, path: pathOf("usagesettings", key.String()), again: true})
}

// SetUsageSettings changes how the use of a namespace is counted. It sends what it changes: another change at the same time is lost only if it is of the same setting.
func (r *Registry) SetUsageSettings(ctx context.Context, key stele.NamespaceKey, change func(*registrar.UsageSettings)) (registrar.UsageSettings, error) {
	u, err := r.UsageSettings(ctx, key)
	if err != nil {
		return u, err
	}
	next := u
	change(&next)
	var d apijson.UsageSettingsChange
	if next.CountAll != u.CountAll {
		d.CountAll = &next.CountAll
	}
	if next.Public != u.Public {
		d.Public = &next.Public
	}
	const op = "set usage settings"
	return r.usageSettings(ctx, op, key, &ask{method: http.MethodPut, path: pathOf("usagesettings", key.String()), document: &d, again: true})
}

func (r *Registry) usageSettings(ctx context.Context, op string, key stele.NamespaceKey, q *ask) (u registrar.UsageSettings, err error) {
	var d apijson.UsageSettings
	if err := r.fetch(ctx, op, q, &d); err != nil {
		return u, err
	}
	return registrar.UsageSettings{Scheme: key.Scheme, Namespace: key.Prefix, CountAll: d.CountAll, Public: d.Public, By: d.By, Changed: d.Changed}, nil
}
