package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Givers asks the registries that this one watches as their heir. The principal is in the context.
type Givers interface {
	// Check says what is wrong with a registry that is to be watched, and completes its URL.
	Check(w *registrar.WatchedGiver) error

	// Ask asks a registry for its checkpoint, and returns what is known of it then.
	Ask(ctx context.Context, origin string) (*registrar.WatchedGiver, error)

	// ConfirmEnd asks a registry once more, and returns an error if it answers, if it can't be known whether it does, or if another of its heirs has taken over one of the namespaces.
	ConfirmEnd(ctx context.Context, origin string, spaces []registrar.AdoptedSpace) error
}

func (h *Handler) watchOperations() []operation {
	const group = "Heirs of other registries"
	origin := parameter{name: "origin", about: "The name of the registry: the origin of its log", example: "giver.example.org/.log"}
	return []operation{{
		name: "listWatches", method: http.MethodGet, path: "watches", group: group,
		summary: "List the registries that servers watch",
		about:   "A registry that is an heir of another one asks it for a checkpoint of its log about once a day, and counts the days without one.",
		asks:    administrator, scope: auth.ScopeRead,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.WatchedPage{}}},
		serve:   h.listWatches,
	}, {
		name: "addWatch", method: http.MethodPost, path: "watches", group: group,
		summary: "Let servers watch a registry",
		about:   "If it is watched already its URL and its keys are replaced, and the count of silent days begins anew.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewWatch{}, example: `{"origin":"giver.example.org/.log","url":"https://giver.example.org","keys":["giver.example.org/.log+f3ed7f9b+AQ..."]}`},
		answers: []answer{{status: 204, about: "It is watched."}},
		serve:   h.addWatch,
	}, {
		name: "removeWatch", method: http.MethodDelete, path: "watches/{origin}", group: group, tail: origin,
		summary: "End the watch of a registry",
		about:   "What was counted is forgotten.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 204, about: "It is not watched any more."}},
		fails:   []int{404},
		serve: func(c *call) error {
			if err := h.o.Registrar.RemoveWatch(c.ctx, c.tail); err != nil {
				return err
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}, {
		name: "askWatched", method: http.MethodPost, path: "watch-now/{origin}", group: group, tail: origin,
		summary: "Ask a watched registry for its checkpoint now",
		about:   "The answer counts as that of a question that was due.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "What is known of it then.", value: apijson.WatchedRegistry{}}},
		fails:   []int{404, 409},
		serve:   h.askWatched,
	}}
}

func watchDocument(w *registrar.WatchedGiver) apijson.WatchedRegistry {
	return apijson.WatchedRegistry{Origin: w.Origin, URL: w.URL, Keys: w.Keys, By: w.By, Added: w.Added, Size: w.Size, Seen: w.Seen, Silent: w.Silent, Asked: w.Asked, Next: w.Next, Said: apijson.Legible(w.Said)}
}

// listWatches lists the registries that servers watch.
func (h *Handler) listWatches(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	list, err := h.o.Registrar.Watches(c.ctx)
	if err != nil {
		return err
	}
	page := newPage(c)
	for i := range list {
		if list[i].Origin <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(list[i].Origin)
		if err := page.addValue(watchDocument(&list[i])); err != nil {
			return err
		}
	}
	return page.end()
}

// addWatch lets servers watch a registry.
func (h *Handler) addWatch(c *call) error {
	var want apijson.NewWatch
	if err := c.decode(&want); err != nil {
		return err
	}
	w := registrar.WatchedGiver{Origin: want.Origin, URL: want.URL, Keys: want.Keys}
	if err := h.o.Givers.Check(&w); err != nil {
		return err
	}
	if err := h.o.Registrar.AddWatch(c.ctx, w); err != nil {
		return err
	}
	c.replyEmpty(http.StatusNoContent)
	return nil
}

// askWatched asks a registry now.
func (h *Handler) askWatched(c *call) error {
	ctx, stop := c.running()
	defer stop()
	c.extend(heirTime)
	w, err := h.o.Givers.Ask(ctx, c.tail)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, watchDocument(w))
}
