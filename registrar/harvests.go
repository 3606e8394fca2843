package registrar

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// ScheduledHarvest says that servers harvest a repository from time to time, and what became of the last time. What was harvested is
// in the bookmark of the harvest.
type ScheduledHarvest struct {
	Name   string        `json:"name"`
	URL    string        `json:"url"`
	Scheme string        `json:"scheme"`
	Prefix string        `json:"prefix"` // of the namespace that the names are in
	Format string        `json:"format"`
	Set    string        `json:"set,omitempty"`
	Every  time.Duration `json:"every"`
	Limit  float64       `json:"limit"` // part of the names that may be withdrawn

	By      string    `json:"by"` // who added it
	Added   time.Time `json:"added"`
	Began   time.Time `json:"began,omitzero"` // the last run
	Ended   time.Time `json:"ended,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	Said    string    `json:"said,omitempty"` // what the last run said
	Failed  bool      `json:"failed,omitempty"`
	Stopped bool      `json:"stopped,omitempty"` // it waits for a user: too much would be withdrawn

	Server string    `json:"server,omitempty"` // that works on it
	Until  time.Time `json:"until,omitzero"`   // the end of its lease
}

// Into returns the namespace that the names are in.
func (h *ScheduledHarvest) Into() stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: h.Scheme, Prefix: h.Prefix}
}

// Limits on scheduled harvests.
const (
	MaxHarvests     = 1000
	LeastEvery      = time.Minute
	MostEvery       = 366 * 24 * time.Hour
	maxHarvestName  = 64
	harvestCells    = "harvest "
	opHarvest       = "schedule harvest"
	maxHarvestsSaid = 1000
)

// Harvests returns the scheduled harvests, by name. Only an administrator may ask: a harvest writes with the rights of the server.
func (r *Registrar) Harvests(ctx context.Context) (list []ScheduledHarvest, err error) {
	if err := administrate(ctx, opHarvest, stele.ID{}); err != nil {
		return nil, err
	}
	for c, err := range r.store.Cells(ctx, harvestCells, "") {
		if err != nil {
			return nil, tell(opHarvest, err)
		}
		var h ScheduledHarvest
		if err := json.Unmarshal(c.Value, &h); err != nil {
			r.o.Log.Error("a scheduled harvest can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		h.Name = strings.TrimPrefix(c.Name, harvestCells)
		list = append(list, h)
	}
	return list, nil
}

// ChangeHarvest changes a scheduled harvest, or adds it: change is called with what there is, nil if there is none, and returns what
// is to be kept; nil ends it. It is called again if another server was faster. Only an administrator may.
func (r *Registrar) ChangeHarvest(ctx context.Context, name string, change func(before *ScheduledHarvest) (*ScheduledHarvest, error)) error {
	if err := administrate(ctx, opHarvest, stele.ID{}); err != nil {
		return err
	}
	if !isHarvestName(name) {
		return refuse(opHarvest, stele.ID{}, stele.Invalid, "harvest.name-invalid", `"{name}" is not a name for a harvest; use up to {most} of a-z, 0-9 and hyphen, beginning with a letter`, name, maxHarvestName)
	}
	for attempt := 1; ; attempt++ {
		value, err := r.store.Cell(ctx, harvestCells+name)
		if err != nil {
			return tell(opHarvest, err)
		}
		var before *ScheduledHarvest
		if value != nil {
			before = new(ScheduledHarvest)
			if err := json.Unmarshal(value, before); err != nil {
				before = nil // it can be added anew
			}
		}
		next, err := change(before)
		if err != nil || next == before {
			return err
		}
		cell := stele.CellChange{Name: harvestCells + name, Before: value}
		if next != nil {
			if err := r.judgeHarvest(ctx, name, before, next); err != nil {
				return err
			}
			next.Name = name
			if cell.After, err = json.Marshal(next); err != nil {
				return tell(opHarvest, err)
			}
		} else if value == nil {
			return nil
		}
		err = r.apply(ctx, opHarvest, &stele.Commit{Cells: []stele.CellChange{cell}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// judgeHarvest says what is wrong with a scheduled harvest.
func (r *Registrar) judgeHarvest(ctx context.Context, name string, before, next *ScheduledHarvest) error {
	if next.Every < LeastEvery || next.Every > MostEvery {
		return refuse(opHarvest, stele.ID{}, stele.Invalid, "harvest.every-invalid", "a harvest is repeated after a time from {least} to {most}", LeastEvery, MostEvery)
	}
	if next.Limit < 0 || next.Limit > 1 {
		return refuse(opHarvest, stele.ID{}, stele.Invalid, "harvest.limit-invalid", "the limit is a part of all names, from 0 to 100 %")
	}
	next.Said = next.Said[:min(len(next.Said), maxHarvestsSaid)]
	if before != nil {
		return nil
	}
	if _, err := r.Namespace(ctx, next.Into()); err != nil {
		return err
	}
	list, err := r.Harvests(ctx)
	if err != nil {
		return err
	}
	if len(list) >= MaxHarvests {
		return refuse(opHarvest, stele.ID{}, stele.Exhausted, "harvest.too-many", "there are {most} scheduled harvests, and that is the most; stop one first", MaxHarvests)
	}
	if i := slices.IndexFunc(list, func(h ScheduledHarvest) bool {
		return h.URL == next.URL && h.Format == next.Format && h.Set == next.Set && h.Into() == next.Into()
	}); i >= 0 {
		return refuse(opHarvest, stele.ID{}, stele.Conflict, "harvest.scheduled-already", `the harvest "{name}" does the same; stop it first`, list[i].Name)
	}
	next.By, next.Added = auth.From(ctx).Name, r.now()
	return nil
}

func isHarvestName(name string) bool {
	if name == "" || len(name) > maxHarvestName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
