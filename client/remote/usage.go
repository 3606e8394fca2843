package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// Usage returns how often names are used.
func (r *Registry) Usage(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error) {
	query := url.Values{"prefix": {q.Name}}
	for name, value := range map[string]string{"from": q.From, "until": q.Until, "by": q.By} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: "statistics", query: query, again: true})
	report := new(apijson.Usage)
	if err == nil {
		err = a.decode(report)
	}
	if err != nil {
		return nil, under("usage", stele.ID{}, err)
	}
	return report, nil
}
