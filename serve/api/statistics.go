package api

import (
	"context"
	"iter"
	"net/http"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
)

// maxUsageNames is how many names an answer with figures has: all that were used, unless the caller wants fewer.
const maxUsageNames = 100_000

// UsageBook reads figures of use, and judges who may see them: [usage.Book].
type UsageBook interface {
	Report(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error)
	Breakdown(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error)
	Unused(ctx context.Context, q apijson.UnusedQuery) (*apijson.Unused, error)
	CounterReport(ctx context.Context, q apijson.UsageReportQuery) (*apijson.UsageReport, error)
}

// usagePrefix and usagePeriod are parameters of several operations.
func usagePrefix(about string) parameter {
	return parameter{name: "prefix", required: true, min: 1, max: stele.MaxText, about: about, example: "ark:12345"}
}

func usagePeriod() []parameter {
	return []parameter{
		{name: "from", max: 10, about: "the first month or day; without it 12 months before the last", example: "2026-01"},
		{name: "until", max: 10, about: "the last month or day; without it today", example: "2026-11-17"},
	}
}

// tableFormat is the parameter of operations whose answer may be a table.
func tableFormat() parameter {
	return parameter{name: "format", choices: []string{"json", "csv"}, usual: "json", about: "the form of the answer; in CSV no cell can be taken for a formula by a spreadsheet"}
}

// tableAnswers are the answers of such an operation.
func tableAnswers(about string, value any) []answer {
	return []answer{{status: 200, about: about, value: value}, {status: 200, about: about, media: apijson.CSV}}
}

func (h *Handler) statisticsOperations() []operation {
	return []operation{{
		name: "statistics", method: http.MethodGet, path: "statistics", group: "Records",
		summary: "How often names are used",
		about: "The figures of one record, or of all names with a prefix, by month, day or name. A resolution is a redirect to the target of a name; of clicks of one reader at most 30 seconds apart the last one counts. " +
			"Robots are counted apart. Names are sorted by their resolutions, the most used first. Figures are written every half minute, and days are added up to months after 400 days. The caller is a reader of the namespace. " +
			"Where the owner made figures public, all may see those of whole months, of the namespace and of each name that the public may see; never by day or by name, nor of other prefixes.",
		asks: anyone, scope: auth.ScopeRead,
		query: slices.Concat([]parameter{usagePrefix("a registered name, or the beginning of names")}, usagePeriod(), []parameter{
			{name: "of", choices: []string{"record", "namespace"}, about: "whose figures are wanted, where a record and a namespace have the name; without it those of the namespace"},
			{name: "by", choices: []string{"month", "day", "name"}, about: "what a row is; without it a month"},
			{name: "limit", kind: numberKind, min: 1, max: maxUsageNames, about: "of names, how many there are at most, those that were used most; without it all, if they are not more", example: "100"},
			tableFormat(),
		}),
		answers: tableAnswers("The figures.", apijson.Usage{}),
		fails:   []int{401, 403},
		gathers: true,
		serve:   h.statistics,
	}, {
		name: "usageBreakdown", method: http.MethodGet, path: "usagebreakdown", group: "Records",
		summary: "Referring sites, countries, failed names and DNS answers of a namespace",
		about: "What is counted for a namespace, and never for a single name: registrable domains of pages that referred to its names; countries of readers, if the server knows them; names that readers asked for several times in the last week, and that lead nowhere; " +
			"answers of the DNS for its zone, by hour. Referring sites and countries are counted by month: of a month that the period touches, all days count.",
		asks: reader, scope: auth.ScopeRead,
		query: slices.Concat([]parameter{usagePrefix("of a namespace"), {name: "by", required: true, choices: []string{"referrer", "country", "failure", "dns"}, about: "what is counted", example: "referrer"}}, usagePeriod(), []parameter{
			{name: "limit", kind: numberKind, min: 1, max: maxUsageNames, about: "how many rows there are at most, those that were counted most; without it 100, and all countries", example: "100"},
			tableFormat(),
		}),
		answers: tableAnswers("The counts.", apijson.UsageBreakdown{}),
		fails:   []int{404},
		gathers: true,
		serve:   h.usageBreakdown,
	}, {
		name: "unusedNames", method: http.MethodGet, path: "unusednames", group: "Records",
		summary: "Names that were not used",
		about:   "Active records of a namespace without a resolution or description by people and programs since a month, in the order of their names. Robots do not count. What was before counting began is not known.",
		asks:    reader, scope: auth.ScopeRead,
		query: []parameter{
			usagePrefix("the beginning of names"),
			{name: "since", max: 10, about: "the first month in which a use counts; without it 24 months ago", example: "2024-11"},
			{name: "after", max: stele.MaxText, about: "the name after which the list begins: what the answer before has as next"},
			{name: "limit", kind: numberKind, min: 1, max: maxLimit, usual: "100", about: "how many names there are at most", example: "100"},
			tableFormat(),
		},
		answers: tableAnswers("The names.", apijson.Unused{}),
		gathers: true,
		serve:   h.unusedNames,
	}, {
		name: "usageReport", method: http.MethodGet, path: "usagereport", group: "Records",
		summary: "A report of the use of names, in COUNTER's shape",
		about: "The figures of all used names with a prefix, by month, in the shape of the reports of COUNTER's Code of Practice for Research Data. It is not one of its reports, and has an id of its own: a resolver delivers nothing, so it counts resolutions and descriptions. " +
			"Names come in their order; if there are more, report-header has next.",
		asks: reader, scope: auth.ScopeRead,
		query: slices.Concat([]parameter{usagePrefix("the beginning of names")}, usagePeriod(), []parameter{
			{name: "after", max: stele.MaxText, about: "the name after which the report goes on: what the answer before has as next"},
			{name: "limit", kind: numberKind, min: 1, max: maxLimit, usual: "100", about: "how many names there are at most", example: "100"},
		}),
		answers: []answer{{status: 200, about: "The report.", value: apijson.UsageReport{}}},
		gathers: true,
		serve:   h.usageReport,
	}}
}

// hasUsage makes sure that there are figures.
func (h *Handler) hasUsage(c *call) error {
	if h.o.Usage == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: stele.Messagef("usage.not-kept", "this server has no figures of use")}
	}
	return nil
}

// table is an answer that can be a table.
type table interface{ Table() iter.Seq[[]string] }

// replyTable answers in the form that the caller wants.
func (c *call) replyTable(t table) error {
	if c.text("format") != "csv" {
		return c.reply(http.StatusOK, t)
	}
	c.write(http.StatusOK, csvType, bulk.AppendTable(nil, t.Table()))
	return nil
}

const csvType = apijson.CSV + "; charset=utf-8; header=present"

// statistics reports how often names are used.
func (h *Handler) statistics(c *call) error {
	if err := h.hasUsage(c); err != nil {
		return err
	}
	q := apijson.UsageQuery{Name: c.text("prefix"), Of: c.text("of"), From: c.text("from"), Until: c.text("until"), By: c.text("by"), Limit: int(c.number("limit"))}
	report, err := h.o.Usage.Report(c.ctx, q)
	if err != nil {
		return err
	}
	return c.replyTable(report)
}

// usageBreakdown reports what is counted for a namespace.
func (h *Handler) usageBreakdown(c *call) error {
	if err := h.hasUsage(c); err != nil {
		return err
	}
	q := apijson.UsageQuery{Name: c.text("prefix"), From: c.text("from"), Until: c.text("until"), By: c.text("by"), Limit: int(c.number("limit"))}
	found, err := h.o.Usage.Breakdown(c.ctx, q)
	if err != nil {
		return err
	}
	return c.replyTable(found)
}

// unusedNames lists names that were not used.
func (h *Handler) unusedNames(c *call) error {
	if err := h.hasUsage(c); err != nil {
		return err
	}
	found, err := h.o.Usage.Unused(c.ctx, apijson.UnusedQuery{Name: c.text("prefix"), Since: c.text("since"), After: c.text("after"), Limit: int(c.number("limit"))})
	if err != nil {
		return err
	}
	return c.replyTable(found)
}

// usageReport reports the use of names in COUNTER's shape.
func (h *Handler) usageReport(c *call) error {
	if err := h.hasUsage(c); err != nil {
		return err
	}
	report, err := h.o.Usage.CounterReport(c.ctx, apijson.UsageReportQuery{Name: c.text("prefix"), From: c.text("from"), Until: c.text("until"), After: c.text("after"), Limit: int(c.number("limit"))})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, report)
}
