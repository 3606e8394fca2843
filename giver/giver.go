// Package giver watches registries of which this one is an heir: it asks each for a checkpoint of its log about once a day, and counts the days on which
// it got none. After as many silent days as the giver itself has agreed to, this registry may take its names over (docs/decisions/0077).
//
// A question that was not asked, or that failed on this side, is never counted as silence. So a day counts only if this registry reached another server then: another one
// that it watches, or a control. Nor is the silence of a registry counted that was never seen: its URL may be wrong. It sends no credentials, and reads no more
// than it has bounds for. Redirects are followed: the signature of a checkpoint says whose it is.
package giver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/lease"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// Times of a question: for connecting, for the head of an answer, and for all requests. The client of the log bounds the bytes.
const (
	Connecting = 10 * time.Second
	Heading    = 20 * time.Second
	wholeTime  = 2 * time.Minute
)

// How often a giver is asked. One that does not answer is asked more often, so that a bad hour of a day is not taken for silence.
const (
	afterAnswer  = 24 * time.Hour
	afterSilence = 6 * time.Hour
)

// mostAhead is how far ahead of now a time is believed that was noted before.
const mostAhead = 48 * time.Hour

// Watches keeps what is known of givers: a registrar.
type Watches interface {
	Watches(ctx context.Context) ([]registrar.WatchedGiver, error)
	NoteWatch(ctx context.Context, origin string, change func(before *registrar.WatchedGiver) (*registrar.WatchedGiver, error)) error
}

// Watcher asks the givers of a registry. Of several servers one asks, by a lease.
type Watcher struct {
	Watches Watches
	HTTP    transparency.Doer
	Agent   string // the name under which it asks
	// Controls are URLs of servers that are always there: if one of them answers, this registry is not offline. See [CheckControl].
	Controls []string
	// AskHeir returns what another registry says of a namespace and of those below it; see [Others].
	AskHeir func(ctx context.Context, address string, key stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error)
	Now     func() time.Time
	Wait    func(ctx context.Context, d time.Duration) error
	Log     *slog.Logger  // may be nil
	Server  string        // names this server, other than all others
	Tick    time.Duration // how often it looks for what is due; a minute if 0
}

// life is how long a server that has died keeps a giver. A question takes less.
const life = 2*wholeTime + time.Minute

// Run asks what is due until the context ends, in which an administrator acts.
func (w *Watcher) Run(ctx context.Context) {
	lease.Often(ctx, cmp.Or(w.Tick, time.Minute), func(ctx context.Context) {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil && w.Log != nil {
			w.Log.Debug("watched registries can't be read", "error", err.Error())
		}
	})
}

// Look asks the givers that are due now.
func (w *Watcher) Look(ctx context.Context) error {
	list, err := w.Watches.Watches(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		g := &list[i]
		if ctx.Err() != nil || !w.isDue(g) || !w.isFree(g) {
			continue
		}
		if _, _, err := w.ask(ctx, g.Origin, false); err != nil && ctx.Err() == nil && w.Log != nil {
			w.Log.Warn("a watched registry can't be asked; it is tried again", "registry", g.Origin, "error", err.Error())
		}
	}
	return nil
}

// isDue reports whether a giver is to be asked. One that is due much later than after a day was asked by a clock that was ahead.
func (w *Watcher) isDue(g *registrar.WatchedGiver) bool {
	return !w.Now().Before(g.Next) || g.Next.Sub(w.Now()) > 2*afterAnswer
}

// isFree reports whether no server asks a giver now.
func (w *Watcher) isFree(g *registrar.WatchedGiver) bool {
	return lease.IsFree(g.Server, g.Until, w.Now())
}

// errTaken says that another server asks.
var errTaken = &stele.Error{Op: opAsk, Kind: stele.Conflict, Err: stele.Messagef("watch.asked-elsewhere", "another server asks this registry now, or it is not watched any more; look at it with 'stele escrow watch ls'")}

const opAsk = "ask registry"

// Ask asks a giver now, whether or not it is due, and returns what is known of it then. NotFound if it is not watched; Conflict if another server asks it at the moment.
func (w *Watcher) Ask(ctx context.Context, origin string) (*registrar.WatchedGiver, error) {
	g, _, err := w.ask(ctx, origin, true)
	return g, err
}

// ask asks a giver; now says that a person wants it, and it need not be due. Nil if another server does it.
func (w *Watcher) ask(ctx context.Context, origin string, now bool) (_ *registrar.WatchedGiver, said answer, err error) {
	var g registrar.WatchedGiver
	err = w.Watches.NoteWatch(ctx, origin, func(before *registrar.WatchedGiver) (*registrar.WatchedGiver, error) {
		switch {
		case before == nil && now:
			return nil, registrar.NotWatched(opAsk, origin)
		case before == nil, !w.isFree(before), !now && !w.isDue(before):
			return nil, errTaken
		}
		g = *before
		next := g
		next.Server, next.Until = w.Server, w.Now().Add(life)
		return &next, nil
	})
	if errors.Is(err, errTaken) && !now {
		return nil, said, nil
	} else if err != nil {
		return nil, said, err
	}
	said = w.question(ctx, &g)
	if said.kind == none && !w.reaches(ctx, &g) {
		said = answer{kind: doubtful, said: stele.Messagef("watch.no-control", "{reason}; but no other registry that is watched was reached today either, nor a control, so that the fault may be on this side: name a control with the setting handover-control or with --control", said.said).Error()}
	}
	var result registrar.WatchedGiver
	err = w.Watches.NoteWatch(context.WithoutCancel(ctx), origin, func(before *registrar.WatchedGiver) (*registrar.WatchedGiver, error) {
		if before == nil || before.Server != w.Server || !before.Added.Equal(g.Added) {
			return nil, errTaken
		}
		next := *before
		next.Server, next.Until = "", time.Time{}
		if ctx.Err() == nil { // a question that was interrupted is not one
			note(&next, said, w.Now())
		}
		result = next
		return &next, nil
	})
	if errors.Is(err, errTaken) && !now {
		return nil, said, nil
	} else if err != nil {
		return nil, said, err
	}
	if w.Log != nil && ctx.Err() == nil {
		w.Log.Info("a watched registry was asked for its checkpoint", "registry", origin, "result", result.Said, "silent", result.Silent)
	}
	return &result, said, nil
}

// note keeps what became of a question.
func note(g *registrar.WatchedGiver, a answer, now time.Time) {
	now = now.UTC()
	g.Asked, g.Said, g.Next = now, a.said, now.Add(afterSilence)
	switch a.kind {
	case good:
		g.Era, g.Size, g.Root, g.Seen = a.checkpoint.Origin, a.checkpoint.Size, a.checkpoint.Root.String(), now
		g.Silent, g.Day = 0, ""
		g.Next = now.Add(afterAnswer)
	case none:
		if g.Seen.IsZero() { // its URL may be wrong
			return
		}
		day := now.Format(time.DateOnly)
		// What a clock wrote that was ahead is not believed for ever.
		most := now.Add(mostAhead)
		if g.Day > most.Format(time.DateOnly) {
			g.Day = day
		}
		var first time.Time // the day on which the watch began, or a sign of life came, does not count
		for _, at := range []time.Time{g.Added, g.Seen} {
			if at.After(first) && !at.After(most) {
				first = at
			}
		}
		// A clock that was set back counts no day twice: not more than there were.
		if day > g.Day && g.Silent < daysBetween(first, now) {
			g.Silent, g.Day = g.Silent+1, day
		}
	}
}

// daysBetween returns how many days by UTC came after that of a time, up to that of now.
func daysBetween(from, now time.Time) int {
	const day = 24 * time.Hour
	return int(now.UTC().Truncate(day).Sub(from.UTC().Truncate(day)) / day)
}
