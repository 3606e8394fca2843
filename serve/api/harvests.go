package api

import (
	"net/http"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// What a harvest is that does not say it.
const (
	usualHarvestFormat = "oai_dc"
	usualHarvestEvery  = 24 * time.Hour
	usualHarvestLimit  = 0.05
)

func (h *Handler) harvestOperations() []operation {
	const group = "Harvests"
	name := parameter{name: "harvest", about: "The name of the harvest", example: "theses"}
	return []operation{{
		name: "listHarvests", method: http.MethodGet, path: "harvests", group: group,
		summary: "List the harvests that servers do",
		about:   "Those of namespaces that you own; an administrator sees all.",
		asks:    known, scope: auth.ScopeAdmin,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.HarvestPage{}}},
		serve:   h.listHarvests,
	}, {
		name: "addHarvest", method: http.MethodPost, path: "harvests", group: group,
		summary: "Let servers harvest a repository from time to time",
		about:   "A server does it soon, and then each time that the time has passed. It has your rights, which are looked up each time.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewHarvest{}, example: `{"name":"theses","url":"https://example.org/oai","namespace":"ark:12345"}`},
		answers: []answer{{status: 204, about: "It is kept."}},
		fails:   []int{404, 409},
		serve:   h.addHarvest,
	}, {
		name: "stopHarvest", method: http.MethodDelete, path: "harvests/{harvest}", group: group, tail: name,
		summary: "End a harvest that servers do",
		about:   "Names that it brought stay.",
		asks:    owner, scope: auth.ScopeAdmin,
		answers: []answer{{status: 204, about: "It is ended."}},
		fails:   []int{404},
		serve: func(c *call) error {
			if err := h.o.Registrar.StopHarvest(c.ctx, c.tail); err != nil {
				return err
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}, {
		name: "askHarvest", method: http.MethodPost, path: "harvest-now/{harvest}", group: group, tail: name,
		summary: "Let a server do a harvest now",
		about:   "A server does it within a minute, whether or not it is due or waits for a person. What became of it is in the list.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.HarvestNow{}, example: `{"yes":true}`},
		answers: []answer{{status: 204, about: "A server will do it."}},
		fails:   []int{404},
		serve: func(c *call) error {
			var want apijson.HarvestNow
			if err := c.decode(&want); err != nil {
				return err
			}
			if err := h.o.Registrar.AskHarvest(c.ctx, c.tail, want.Yes); err != nil {
				return err
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}}
}

// listHarvests lists the harvests of namespaces that the caller owns.
func (h *Handler) listHarvests(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	list, err := h.o.Registrar.Harvests(c.ctx)
	if err != nil {
		return err
	}
	page := newPage(c)
	for i := range list {
		s := &list[i]
		if s.Name <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(s.Name)
		if err := page.addValue(apijson.Harvest{Name: s.Name, URL: s.URL, Namespace: s.Into().String(), Format: s.Format, Set: s.Set, Every: int64(s.Every / time.Second), Limit: s.Limit, By: s.By,
			Added: s.Added, Ended: s.Ended, Next: s.Next, Said: s.Said, Failures: s.Failures, Waits: s.Waits, UnderWay: s.Server != "", Asked: s.Asked}); err != nil {
			return err
		}
	}
	return page.end()
}

// addHarvest keeps a harvest.
func (h *Handler) addHarvest(c *call) error {
	var want apijson.NewHarvest
	if err := c.decode(&want); err != nil {
		return err
	}
	key, err := h.o.Registrar.ParsePrefix(want.Namespace)
	if err != nil {
		return amiss(c, "namespace", err)
	}
	s := registrar.ScheduledHarvest{Name: want.Name, URL: want.URL, Scheme: key.Scheme, Prefix: key.Prefix, Format: want.Format, Set: want.Set, Every: usualHarvestEvery, Limit: usualHarvestLimit}
	if s.Format == "" {
		s.Format = usualHarvestFormat
	}
	if want.Every != 0 {
		s.Every = time.Duration(min(max(want.Every, 0), int64(registrar.MostEvery/time.Second)+1)) * time.Second
	}
	if want.Limit != nil {
		s.Limit = *want.Limit
	}
	if h.o.CheckHarvest != nil {
		if err := h.o.CheckHarvest(s.URL, s.Format, s.Set); err != nil {
			return err
		}
	}
	if err := h.o.Registrar.AddHarvest(c.ctx, s); err != nil {
		return err
	}
	c.replyEmpty(http.StatusNoContent)
	return nil
}
