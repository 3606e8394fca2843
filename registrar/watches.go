package registrar

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// WatchedGiver is another registry of which this one may be an heir: servers ask it for a checkpoint of its log about once a day, and count the days
// on which they get none. See docs/decisions/0077.
type WatchedGiver struct {
	Origin string   `json:"origin"` // of its log, without the era
	URL    string   `json:"url"`    // below which its log is served
	Keys   []string `json:"keys"`   // of its log

	By    string    `json:"by"`
	Added time.Time `json:"added"`

	// The last good checkpoint.
	Era  string    `json:"era,omitempty"` // its origin
	Size uint64    `json:"size,omitempty"`
	Root string    `json:"root,omitempty"`
	Seen time.Time `json:"seen,omitzero"` // when this registry got it

	// Silent is on how many different days, by UTC, this registry has asked since then and got none. Day is the last of them.
	Silent     int    `json:"silent,omitempty"`
	Day        string `json:"day,omitempty"`        // 2031-05-02
	Generation string `json:"generation,omitempty"` // of this registry, in which the days were counted

	Asked time.Time `json:"asked,omitzero"`
	Next  time.Time `json:"next,omitzero"`
	Said  string    `json:"said,omitempty"` // what became of the last question

	Server string    `json:"server,omitempty"` // that asks now
	Until  time.Time `json:"until,omitzero"`   // the end of its lease
}

// Limits on watches.
const (
	MaxWatches    = 100
	MaxWatchKeys  = 16
	maxWatchSaid  = 1000
	maxWatchURL   = 2000
	maxWatchKey   = 1000
	watchCells    = "watch "
	opWatch       = "watch registry"
	opRemoveWatch = "end watch"
	opAskWatched  = "ask registry"
)

// Watches returns the registries that servers watch, by their names. Only an administrator may see them.
func (r *Registrar) Watches(ctx context.Context) (list []WatchedGiver, err error) {
	if err := administrateBy(ctx, opWatch, stele.ID{}, auth.ScopeRead); err != nil {
		return nil, err
	}
	generation, err := r.generation(ctx)
	if err != nil {
		return nil, err
	}
	for c, err := range r.store.Cells(ctx, watchCells, "") {
		if err != nil {
			return nil, tell(opWatch, err)
		}
		w, err := readWatch(c.Name, c.Value, generation)
		if err != nil {
			r.o.Log.ErrorContext(ctx, "a watched registry can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		list = append(list, *w)
	}
	return list, nil
}

// generation returns in which generation this registry is.
func (r *Registrar) generation(ctx context.Context) (string, error) {
	list, err := r.store.Generations(ctx)
	if err != nil {
		return "", tell(opWatch, err)
	}
	return list.Last().ID.String(), nil
}

// readWatch reads a cell. Days that were counted before this registry was restored from a backup are not: the giver may have given a sign of life that the backup
// does not know of.
func readWatch(name string, value []byte, generation string) (*WatchedGiver, error) {
	w := new(WatchedGiver)
	if err := json.Unmarshal(value, w); err != nil {
		return nil, err
	}
	w.Origin = strings.TrimPrefix(name, watchCells)
	if w.Generation != generation {
		w.Generation, w.Silent, w.Day = generation, 0, ""
	}
	return w, nil
}

// NoteWatch notes what became of a question to a watched registry: change is called with what is kept of it, nil if it is not watched, and returns what is to be
// kept. It is called again if another server was faster. Only an administrator may.
func (r *Registrar) NoteWatch(ctx context.Context, origin string, change func(before *WatchedGiver) (*WatchedGiver, error)) error {
	return r.changeWatch(ctx, opAskWatched, origin, change)
}

// changeWatch changes, adds or, if change returns nil, ends a watch.
func (r *Registrar) changeWatch(ctx context.Context, op, origin string, change func(before *WatchedGiver) (*WatchedGiver, error)) error {
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	generation, err := r.generation(ctx)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		cell := stele.CellChange{Name: watchCells + origin}
		if cell.Before, err = r.store.Cell(ctx, cell.Name); err != nil {
			return tell(op, err)
		}
		var before *WatchedGiver
		if cell.Before != nil {
			if before, err = readWatch(cell.Name, cell.Before, generation); err != nil {
				before = nil // it can be added anew
			}
		}
		next, err := change(before)
		if err != nil || next == nil && cell.Before == nil {
			return err
		}
		if next != nil {
			next.Origin, next.Generation, next.Said = origin, generation, next.Said[:min(len(next.Said), maxWatchSaid)]
			if cell.After, err = json.Marshal(next); err != nil {
				return tell(op, err)
			}
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{cell}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// AddWatch lets servers watch a registry: Origin, URL and Keys are given, which the caller has judged. If it is watched already the URL and the keys are replaced, and
// the count of silent days begins anew. Only an administrator may.
func (r *Registrar) AddWatch(ctx context.Context, w WatchedGiver) error {
	var problems stele.Report
	stele.CheckRegistryName(&problems, "origin", w.Origin)
	if err := problems.Err(opWatch, stele.ID{}); err != nil {
		return err
	}
	own, err := r.LogOrigin(ctx)
	if err != nil {
		return err
	}
	long := len(w.URL) > maxWatchURL || len(w.Keys) > MaxWatchKeys
	for _, k := range w.Keys {
		long = long || len(k) > maxWatchKey
	}
	switch {
	case w.Origin == own.Origin:
		return refuse(opWatch, stele.ID{}, stele.Invalid, "watch.own-registry", `"{origin}" is this registry itself; give the origin of the other one's log, which 'stele log key' prints there`, w.Origin)
	case long:
		return refuse(opWatch, stele.ID{}, stele.Invalid, "watch.too-long", "the URL has at most {url} bytes, and there are at most {keys} keys", maxWatchURL, MaxWatchKeys)
	}
	return r.changeWatch(ctx, opWatch, w.Origin, func(before *WatchedGiver) (*WatchedGiver, error) {
		next := &WatchedGiver{URL: w.URL, Keys: w.Keys, By: auth.From(ctx).Name, Added: r.now()}
		if before != nil {
			next.Era, next.Size, next.Root, next.Seen = before.Era, before.Size, before.Root, before.Seen
			return next, nil
		}
		list, err := r.Watches(ctx)
		if err == nil && len(list) >= MaxWatches {
			err = refuse(opWatch, stele.ID{}, stele.Exhausted, "watch.too-many", "{most} registries are watched, and that is the most; remove one first", MaxWatches)
		}
		return next, err
	})
}

// RemoveWatch ends the watch of a registry. NotFound if it is not watched. Only an administrator may.
func (r *Registrar) RemoveWatch(ctx context.Context, origin string) error {
	return r.changeWatch(ctx, opRemoveWatch, origin, func(before *WatchedGiver) (*WatchedGiver, error) {
		if before == nil {
			return nil, NotWatched(opRemoveWatch, origin)
		}
		return nil, nil
	})
}

// NotWatched says that a registry is not watched.
func NotWatched(op, origin string) error {
	return refuse(op, stele.ID{}, stele.NotFound, "watch.missing", "{origin} is not watched; 'stele escrow watch ls' lists the registries that are, and 'stele escrow watch add' adds one", origin)
}

// watchEntry returns the entry about a watch that was added, changed or ended; nil if a server only noted an answer.
func watchEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	var before, after WatchedGiver
	_ = json.Unmarshal(c.Before, &before) // what can't be read is not told
	_ = json.Unmarshal(c.After, &after)
	e := entry(ctx, op, "watch:"+strings.TrimPrefix(c.Name, watchCells))
	switch {
	case c.After == nil:
		e.Details = "ended"
	case c.Before == nil:
		e.Details = "added: " + after.URL
	case !before.Added.Equal(after.Added):
		e.Details = "changed: " + after.URL
	default:
		return nil
	}
	return e
}
