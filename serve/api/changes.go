package api

import (
	"net/http"
	"time"

	"github.com/stele-id/stele/auth"
)

// changePage is a part of the list of changes.
type changePage struct {
	Items []changeDocument `json:"items"`
	Last  uint64           `json:"last" doc:"The number of the last change that there is. Ask again with after, the number of the last item, until they are the same."`
}

// changeDocument is a change: of a record or of a namespace.
type changeDocument struct {
	Seq       uint64    `json:"seq" doc:"Its number. Numbers begin with 1 and have no gaps." minimum:"1"`
	ID        string    `json:"id,omitempty" doc:"The record that changed."`
	Namespace string    `json:"namespace,omitempty" doc:"The namespace that changed."`
	Version   uint64    `json:"version" doc:"The version that it got."`
	At        time.Time `json:"at"`
}

func (h *Handler) changeOperations() []operation {
	return []operation{{
		name: "listChanges", method: http.MethodGet, path: "changes", group: "Running the server",
		summary: "List what was changed, in order",
		about:   "For who copies the registry elsewhere: it tells of all that there is.",
		asks:    administrator, scope: auth.ScopeBackup,
		query: []parameter{
			{name: "after", kind: numberKind, usual: "0", about: "only changes behind the one with this number", example: "0"},
			limitParameter,
		},
		answers: []answer{{status: 200, about: "Changes in their order; none if there are no more.", value: changePage{}}},
		serve:   h.listChanges,
	}}
}

// listChanges lists changes.
func (h *Handler) listChanges(c *call) error {
	last, err := h.o.Store.LastChange(c.ctx)
	if err != nil {
		return err
	}
	page := changePage{Items: []changeDocument{}, Last: last}
	limit := int(c.number("limit"))
	for change, err := range h.o.Registrar.Changes(c.ctx, c.number("after")) {
		if err != nil {
			return err
		}
		if len(page.Items) == limit {
			break
		}
		item := changeDocument{Seq: change.Seq, Version: change.Version, At: change.At.UTC()}
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
