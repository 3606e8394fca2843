package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele/document/apijson"
)

// Usage returns how often names are used.
func (r *Registry) Usage(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error) {
	return askUsage[apijson.Usage](ctx, r, "statistics", usageQuery(q))
}

// Breakdown returns what is counted for a namespace.
func (r *Registry) Breakdown(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	return askUsage[apijson.UsageBreakdown](ctx, r, "usagebreakdown", usageQuery(q))
}

// Unused returns a page of names that were not used.
func (r *Registry) Unused(ctx context.Context, q apijson.UnusedQuery) (*apijson.Unused, error) {
	return askUsage[apijson.Unused](ctx, r, "unusednames", queryOf(q.Name, q.Limit, "since", q.Since, "after", q.After))
}

// CounterReport returns a page of a report of the use of names.
func (r *Registry) CounterReport(ctx context.Context, q apijson.UsageReportQuery) (*apijson.UsageReport, error) {
	return askUsage[apijson.UsageReport](ctx, r, "usagereport", queryOf(q.Name, q.Limit, "from", q.From, "until", q.Until, "after", q.After))
}

func usageQuery(q apijson.UsageQuery) url.Values {
	return queryOf(q.Name, q.Limit, "from", q.From, "until", q.Until, "by", q.By, "of", q.Of)
}

// queryOf returns a query with the parameters that have a value.
func queryOf(prefix string, limit int, more ...string) url.Values {
	query := url.Values{"prefix": {prefix}}
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			query.Set(more[i], more[i+1])
		}
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query
}

// askUsage asks for figures of use.
func askUsage[T any](ctx context.Context, r *Registry, path string, query url.Values) (*T, error) {
	found := new(T)
	if err := r.fetch(ctx, "usage", &ask{method: http.MethodGet, path: path, query: query, again: true}, found); err != nil {
		return nil, err
	}
	return found, nil
}
