package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/registrar"
)

// AuditPage returns a part of the audit trail that a query asks for, up to which number it
// was read, and whether that is the end for now.
func (r *Registry) AuditPage(ctx context.Context, q registrar.AuditQuery) (page []audit.Document, after uint64, last bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "after": {strconv.FormatUint(q.After, 10)}}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	texts := map[string]string{"by": q.By, "operation": q.Operation, "outcome": string(q.Outcome)}
	if q.Namespace != (stele.NamespaceKey{}) {
		texts["namespace"] = q.Namespace.String()
	}
	for name, text := range texts {
		if text != "" {
			query.Set(name, text)
		}
	}
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: "audit", query: query, again: true})
	if err != nil {
		return nil, 0, false, under("read audit trail", stele.ID{}, err)
	}
	var got struct {
		Items []audit.Document `json:"items"`
		After uint64           `json:"after"`
		Last  bool             `json:"last"`
	}
	if err := a.decode(&got); err != nil {
		return nil, 0, false, err
	}
	return got.Items, got.After, got.Last, nil
}
