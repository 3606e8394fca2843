package api

import (
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

func (h *Handler) changeOperations() []operation {
	return []operation{{
		name: "listChanges", method: http.MethodGet, path: "changes", group: "Running the server",
		summary: "List what was changed, in order",
		about:   "For programs that copy the registry elsewhere: the list has all changes.",
		asks:    administrator, scope: auth.ScopeBackup,
		query: []parameter{
			{name: "after", kind: numberKind, usual: "0", about: "only changes after the one with this number", example: "0"},
			{name: "generation", max: maxToken, about: "the generation that the number belongs to, as the page before had it; without it, the first. If the registry is in another one since, the request is refused with the code restored: read from the beginning"},
			limitParameter,
		},
		answers: []answer{{status: 200, about: "Changes in their order; none if there are no more.", value: apijson.ChangePage{}}},
		gathers: true,
		serve:   h.listChanges,
	}}
}

// position returns after which change the list begins.
func (c *call) position() (p stele.Position, err error) {
	p.Change = c.number("after")
	if text := c.text("generation"); text != "" {
		if p.Generation, err = stele.ParseGenerationID(text); err != nil {
			return p, invalidf("page.generation-invalid", `"{generation}" is not a generation; use that of the page before as it is`, text)
		}
	}
	return p, nil
}

// listChanges lists changes.
func (h *Handler) listChanges(c *call) error {
	at, err := c.position()
	if err != nil {
		return err
	}
	now, err := h.o.Store.Position(c.ctx)
	if err != nil {
		return err
	}
	if list := h.generations(); list != nil {
		if err := list.Judge("the number of the change", at); err != nil {
			return err
		}
	}
	page := apijson.ChangePage{Items: []apijson.Change{}, Generation: now.Generation.String(), Last: now.Change}
	limit := int(c.number("limit"))
	for change, err := range h.o.Registrar.Changes(c.ctx, c.number("after")) {
		if err != nil {
			return err
		}
		if len(page.Items) == limit {
			break
		}
		item := apijson.Change{Seq: change.Seq, Version: change.Version, At: change.At.UTC()}
		if change.ID.IsValid() {
			item.ID = change.ID.String()
		} else {
			item.Namespace = change.Namespace.String()
		}
		page.Items = append(page.Items, item)
		page.Last = max(page.Last, change.Seq)
	}
	return c.reply(http.StatusOK, page)
}
