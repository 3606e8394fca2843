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

	By       string    `json:"by"` // the user whose rights it has
	Added    time.Time `json:"added"`
	Began    time.Time `json:"began,omitzero"` // the last run
	Ended    time.Time `json:"ended,omitzero"`
	Next     time.Time `json:"next,omitzero"`
	Said     string    `json:"said,omitempty"`     // what the last run said
	Failures int       `json:"failures,omitempty"` // one after the other
	Waits    string    `json:"waits,omitempty"`    // for a person: [HarvestWaitsDeleted] or [HarvestWaitsRights]; it is not done until then

	Asked bool `json:"asked,omitempty"` // a person asked that a server does it now
	Yes   bool `json:"yes,omitempty"`   // and that it withdraws all names that are deleted

	Server string    `json:"server,omitempty"` // that works on it
	Until  time.Time `json:"until,omitzero"`   // the end of its lease
}

// Why a scheduled harvest waits for a person.
const (
	HarvestWaitsDeleted = "deleted" // more names than the limit would be withdrawn
	HarvestWaitsRights  = "rights"  // its user is disabled, or is not an owner of the namespace any more
)

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

// Harvests returns the scheduled harvests of namespaces that the caller owns, by name; an administrator sees all.
func (r *Registrar) Harvests(ctx context.Context) (list []ScheduledHarvest, err error) {
	if err := identify(ctx, opHarvest); err != nil {
		return nil, err
	}
	all, err := r.harvests(ctx)
	for i := range all {
		if r.ownsHarvest(ctx, &all[i]) == nil {
			list = append(list, all[i])
		}
	}
	return list, err
}

// ownsHarvest makes sure that the caller is an owner of the namespace of a harvest, or an administrator.
func (r *Registrar) ownsHarvest(ctx context.Context, h *ScheduledHarvest) error {
	if role, err := r.RoleIn(ctx, h.Into()); err != nil {
		return err
	} else if !role.Includes(stele.RoleOwner) {
		return refuse(opHarvest, stele.ID{}, stele.Forbidden, "harvest.not-owner", `"{user}" is not an owner of {namespace}, and may not schedule harvests there; ask one of its owners`, auth.From(ctx).Name, h.Into())
	}
	return nil
}

func (r *Registrar) harvests(ctx context.Context) (list []ScheduledHarvest, err error) {
	for c, err := range r.store.Cells(ctx, harvestCells, "") {
		if err != nil {
			return nil, tell(opHarvest, err)
		}
		var h ScheduledHarvest
		if err := json.Unmarshal(c.Value, &h); err != nil {
			r.o.Log.ErrorContext(ctx, "a scheduled harvest can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		h.Name = strings.TrimPrefix(c.Name, harvestCells)
		list = append(list, h)
	}
	return list, nil
}

// ChangeHarvest changes a scheduled harvest, or adds it: change is called with what there is, nil if there is none, and returns what
// is to be kept; nil ends it. It is called again if another server was faster. The caller is an owner of the namespace or an
// administrator. A new harvest has the rights of the caller; an administrator may give it those of another user.
func (r *Registrar) ChangeHarvest(ctx context.Context, name string, change func(before *ScheduledHarvest) (*ScheduledHarvest, error)) error {
	if err := identify(ctx, opHarvest); err != nil {
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
			} else if err := r.ownsHarvest(ctx, before); err != nil {
				return err
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

// AddHarvest adds a scheduled harvest. Conflict if there is one with its name.
func (r *Registrar) AddHarvest(ctx context.Context, h ScheduledHarvest) error {
	return r.ChangeHarvest(ctx, h.Name, func(before *ScheduledHarvest) (*ScheduledHarvest, error) {
		if before != nil {
			return nil, refuse(opHarvest, stele.ID{}, stele.Conflict, "harvest.name-taken", `there is a harvest "{name}" already; stop it first, or choose another name`, h.Name)
		}
		added := h
		return &added, nil
	})
}

// StopHarvest ends a scheduled harvest. NotFound if there is none.
func (r *Registrar) StopHarvest(ctx context.Context, name string) error {
	return r.ChangeHarvest(ctx, name, func(before *ScheduledHarvest) (*ScheduledHarvest, error) {
		if before == nil {
			return nil, noHarvest(name)
		}
		return nil, nil
	})
}

// AskHarvest lets a server do a scheduled harvest soon, whether or not it is due or waits for a person; with yes it withdraws all names that
// are deleted. NotFound if there is none.
func (r *Registrar) AskHarvest(ctx context.Context, name string, yes bool) error {
	return r.ChangeHarvest(ctx, name, func(before *ScheduledHarvest) (*ScheduledHarvest, error) {
		if before == nil {
			return nil, noHarvest(name)
		}
		next := *before
		next.Asked, next.Yes = true, yes
		return &next, nil
	})
}

func noHarvest(name string) error {
	return refuse(opHarvest, stele.ID{}, stele.NotFound, "harvest.missing", `there is not a harvest "{name}"; 'stele harvest ls' lists them`, name)
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
	if err := r.ownsHarvest(ctx, next); err != nil {
		return err
	}
	if before != nil {
		next.By, next.Added = before.By, before.Added
		return nil
	}
	if _, err := r.Namespace(ctx, next.Into()); err != nil {
		return err
	}
	list, err := r.harvests(ctx)
	if err != nil {
		return err
	}
	if len(list) >= MaxHarvests {
		return refuse(opHarvest, stele.ID{}, stele.Exhausted, "harvest.too-many", "there are {most} scheduled harvests, and that is the most; stop one first", MaxHarvests)
	}
	if i := slices.IndexFunc(list, func(h ScheduledHarvest) bool {
		return h.URL == next.URL && h.Format == next.Format && h.Set == next.Set && h.Into() == next.Into()
	}); i >= 0 {
		return refuse(opHarvest, stele.ID{}, stele.Conflict, "harvest.scheduled-already", `the harvest "{name}" reads the same records into the same namespace; stop it first`, list[i].Name)
	}
	if who := auth.From(ctx); next.By == "" || !who.Admin {
		next.By = who.Name
	}
	next.Added = r.now()
	return nil
}

func isHarvestName(name string) bool {
	if name == "" || len(name) > maxHarvestName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// harvestEntry returns the entry about a harvest that was added, changed or stopped; nil if a server only noted how far it is.
func harvestEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	var before, after ScheduledHarvest
	_ = json.Unmarshal(c.Before, &before) // what can't be read is not told
	_ = json.Unmarshal(c.After, &after)
	what, h := "changed", &after
	switch {
	case c.Before == nil:
		what = "added"
	case c.After == nil:
		what, h = "stopped", &before
	case !before.Asked && after.Asked:
		what = "asked for"
	case before.settings() == after.settings():
		return nil
	}
	e := entry(ctx, op, "harvest:"+strings.TrimPrefix(c.Name, harvestCells))
	e.Namespace, e.Details = h.Into(), what+": "+h.URL+" every "+h.Every.String()+", by "+h.By
	return e
}

// settings returns what of a harvest is not about its runs.
func (h *ScheduledHarvest) settings() ScheduledHarvest {
	return ScheduledHarvest{URL: h.URL, Scheme: h.Scheme, Prefix: h.Prefix, Format: h.Format, Set: h.Set, Every: h.Every, Limit: h.Limit, By: h.By}
}
