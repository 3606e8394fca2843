package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// maxUsageNames is how many names an answer with figures has: all that were used, unless the caller wants fewer.
const maxUsageNames = 100_000

// UsageBook reads figures of use, and judges who may see them: [usage.Book].
type UsageBook interface {
	Report(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error)
}

func (h *Handler) statisticsOperations() []operation {
	return []operation{{
		name: "statistics", method: http.MethodGet, path: "statistics", group: "Records",
		summary: "How often names are used",
		about: "The figures of one record, or of all names with a prefix, by month, day or name. A resolution is a redirect to the target of a name; of clicks of one reader at most 30 seconds apart the last one counts. " +
			"Robots are counted apart. Names are sorted by their resolutions, the most used first. Figures are written every half minute, and days are added up to months after 400 days. The caller is a reader of the namespace.",
		asks: reader, scope: auth.ScopeRead,
		query: []parameter{
			{name: "prefix", required: true, min: 1, max: stele.MaxText, about: "a registered name, or the beginning of names", example: "ark:12345"},
			{name: "from", max: 10, about: "the first month or day; without it 12 months before the last", example: "2026-01"},
			{name: "until", max: 10, about: "the last month or day; without it today", example: "2026-11-17"},
			{name: "by", choices: []string{"month", "day", "name"}, about: "what a row is; without it a month"},
			{name: "limit", kind: numberKind, min: 1, max: maxUsageNames, about: "of names, how many there are at most, those that were used most; without it all, if they are not more", example: "100"},
		},
		answers: []answer{{status: 200, about: "The figures.", value: apijson.Usage{}}},
		gathers: true,
		serve:   h.statistics,
	}}
}

// statistics reports how often names are used.
func (h *Handler) statistics(c *call) error {
	if h.o.Usage == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: stele.Messagef("usage.not-kept", "this server has no figures of use")}
	}
	q := apijson.UsageQuery{Name: c.text("prefix"), From: c.text("from"), Until: c.text("until"), By: c.text("by"), Limit: int(c.number("limit"))}
	report, err := h.o.Usage.Report(c.ctx, q)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, report)
}
