package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// maxAuditRead is how many entries are read for one page: a filter may pass over many.
const maxAuditRead = 20_000

func (h *Handler) auditOperations() []operation {
	return []operation{{
		name: "listAudit", method: http.MethodGet, path: "audit", group: "Running the server",
		summary: "Read the audit trail",
		about: "Who did what to the registry, when, and with which outcome, the oldest entry first. An administrator sees all of it; the owner of a namespace sees what concerns that namespace and those below it, and is refused where a namespace is named that is not theirs. " +
			"A page may have fewer entries than asked for, or none, and still not be the last: ask again with after.",
		asks: owner, scope: auth.ScopeAdmin,
		query: []parameter{
			{name: "after", kind: numberKind, usual: "0", about: "only entries with a greater number", example: "0"},
			{name: "since", kind: momentKind, about: "only entries of this time or later", example: "2031-05-02T10:00:00Z"},
			{name: "until", kind: momentKind, about: "only entries of before this time", example: "2031-05-03T10:00:00Z"},
			{name: "by", max: stele.MaxAuditName, about: "only entries of this user", example: "ann"},
			{name: "operation", max: stele.MaxAuditName, about: "only entries of this operation", example: "create token"},
			{name: "outcome", choices: []string{"done", "refused", "failed"}, about: "only entries with this outcome", example: "refused"},
			{name: "via", max: stele.MaxAuditName, about: "only entries of this way in: " + strings.Join(auth.Ways(), ", "), example: "desk"},
			{name: "namespace", about: "only entries in this namespace, and in those that begin with its prefix", example: "ark:12345"},
			limitParameter,
		},
		answers: []answer{{status: 200, about: "A part of the trail.", value: audit.Page{}}},
		fails:   []int{403},
		gathers: true,
		serve:   h.listAudit,
	}}
}

// listAudit reads a part of the trail.
func (h *Handler) listAudit(c *call) error {
	q := registrar.AuditQuery{
		After: c.number("after"), Since: c.moment("since"), Until: c.moment("until"),
		By: c.text("by"), Operation: c.text("operation"), Outcome: stele.AuditOutcome(c.text("outcome")), Via: c.text("via"),
	}
	if prefix := c.text("namespace"); prefix != "" {
		var err error
		if q.Namespace, err = h.o.Registrar.ParsePrefix(prefix); err != nil {
			return err
		}
	}
	page := audit.Page{Items: []audit.Document{}, After: q.After, Last: true}
	limit, read, size := int(c.number("limit")), 0, 0
	for item, err := range h.o.Registrar.Audit(c.ctx, q) {
		if err != nil {
			return err
		}
		if read++; len(page.Items) == limit || read > maxAuditRead || size > maxPage {
			page.Last = false
			break
		}
		page.After = item.Number
		if item.Entry != nil {
			page.Items = append(page.Items, audit.NewDocument(item.Entry))
			size += 256 + len(item.Entry.Object) + len(item.Entry.Details)
		}
	}
	return c.reply(http.StatusOK, page)
}

// noteFailure leaves an audit entry about a request that was refused, and about one
// that was to change something and failed: every refusal, and every failure of what takes
// an administrator.
func (c *call) noteFailure(err error) {
	var kind stele.Kind
	if e, ok := errors.AsType[*stele.Error](err); ok {
		kind = e.Kind
	} else if _, ok := errors.AsType[*refusal](err); ok {
		return // a failure of HTTP itself has no entry
	}
	refused := kind == stele.Unauthenticated || kind == stele.Forbidden
	sensitive := c.op != nil && c.op.asks == administrator && (c.op.method != http.MethodGet || c.op.name == "backup")
	if !refused && !sensitive {
		return
	}
	operation, object := "request", ""
	switch {
	case c.op != nil:
		operation, object = c.op.name, c.tail
	case c.token && !c.who.IsKnown():
		operation = "authenticate"
	}
	c.h.o.Registrar.NoteFailure(c.ctx, operation, object, err)
}

// origin says how the request came in.
func (c *call) origin() auth.Origin {
	o := auth.Origin{Via: "api", Caller: c.who}
	if c.h.o.Addresses {
		o.Address = c.address()
	}
	return o
}
