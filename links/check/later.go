package check

import (
	"context"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
)

// postponement is a target that is due later than it was.
type postponement struct {
	target target
	due    string // the cell that says that it is due now, if there is one
	until  time.Time
	cause  links.Cause // why a target is not asked that a user waits for: the user is told so; NoCause: no user waits
}

// putOff postpones tasks that do not wait in the line any more. An error is that of all tasks.
func (w *worker) putOff(ctx context.Context, out []links.Postponed) error {
	for _, task := range out {
		for _, name := range task.Keys {
			k := key(name)
			due, cause := "", links.NoCause
			if p := w.pending[k]; p != nil {
				due = p.due
				w.unspend(p)
				if p.urgent {
					cause = links.AskedToWait
				}
			}
			delete(w.pending, k)
			delete(w.wheel, k)
			t, ok, err := w.target(ctx, k)
			if err != nil {
				if err := w.rest(ctx, k, err); err != nil {
					return err
				}
			} else if ok {
				w.later = append(w.later, postponement{t, due, task.Until, cause})
			}
		}
	}
	return w.flush(ctx)
}

// flush keeps what was postponed, some at once. A target that can't be postponed rests; an error is that of all.
func (w *worker) flush(ctx context.Context) error {
	for len(w.later) > 0 {
		some := w.later[:min(len(w.later), atOnce)]
		err := w.keep(ctx, w.lease, func(b *batch) error {
			for i := range some {
				if err := b.postpone(ctx, &some[i]); err != nil {
					return err
				}
			}
			return w.keepQuotas(ctx, b)
		})
		if err != nil && endsWork(ctx, err) {
			w.later = nil // their cells are as they were
			return err
		}
		w.later = w.later[len(some):]
		if err == nil {
			w.keptQuotas()
			continue
		}
		for i := range some { // one of them is not like the others
			p := &some[i]
			if err := w.keep(ctx, w.lease, func(b *batch) error { return b.postpone(ctx, p) }); err != nil {
				if err := w.rest(ctx, p.target.key, err); err != nil {
					return err
				}
			}
		}
	}
	w.later = nil
	return nil
}

// postpone makes a target due later, and changes nothing else of what is known of it now.
func (b *batch) postpone(ctx context.Context, p *postponement) error {
	k := p.target.key
	if p.due != "" {
		if err := b.set(ctx, p.due, nil); err != nil {
			return err
		}
	}
	until := round(p.until.Add(time.Minute))
	s, _, err := b.status(ctx, k)
	if err != nil {
		return err
	}
	if p.cause != links.NoCause {
		return b.tell(ctx, p, &s, until)
	}
	if s.URL == links.Hash(p.target.url) {
		if !s.Next.IsZero() {
			if err := b.set(ctx, k.due(s.Next), nil); err != nil {
				return err
			}
		}
		s.Next = until
		if err := b.setState(ctx, k, s.Append(nil)); err != nil {
			return err
		}
	}
	return b.set(ctx, k.due(until), []byte{})
}

// tell keeps that a target was not asked that a user waits for, so that the user need not wait until it is: its domain is left alone for long.
func (b *batch) tell(ctx context.Context, p *postponement, before *links.Status, until time.Time) error {
	if err := b.dropDue(ctx, p.target.key); err != nil {
		return err
	}
	now, s := b.c.now(), *before
	if s.URL != links.Hash(p.target.url) {
		s = links.Status{URL: links.Hash(p.target.url)}
	}
	e := links.Evidence{Cause: p.cause, Status: int(s.Code), Wait: until.Sub(now)}
	s.Add(&e, links.Target{Key: p.target.key.hash()}, now, now)
	s.Next = until
	return b.setStatus(ctx, &p.target, before, &s, &e)
}

// restFor is how long a target is left alone that can't be checked.
const restFor = time.Hour

// endsWork reports whether an error is not one of a single target: the lease is lost, or the store takes nothing at the moment.
func endsWork(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errLost) || errors.Is(err, stele.Unavailable) || errors.Is(err, stele.ErrSealed)
}

// setAside postpones a task that can't be checked because of an error of its own, so that the others go on. It returns the error if
// it is that of all.
func (w *worker) setAside(ctx context.Context, task *links.Task, err error) error {
	if err == nil || endsWork(ctx, err) {
		return err
	}
	for _, name := range task.Keys {
		if err := w.rest(ctx, key(name), err); err != nil {
			return err
		}
		delete(w.pending, key(name))
		delete(w.wheel, key(name))
	}
	return nil
}

// rest leaves a target alone for a while after an error of its own.
func (w *worker) rest(ctx context.Context, k key, err error) error {
	if endsWork(ctx, err) {
		return err
	}
	w.o.Log.Error("a target can't be checked at the moment; it is tried again later", "target", string(k), "error", err.Error())
	until := w.now().Add(restFor)
	w.resting[k] = until // it stays where it is if the store does not take the cell
	err = w.keep(ctx, w.lease, func(b *batch) error { return b.set(ctx, k.due(round(until)), []byte{}) })
	if err != nil && endsWork(ctx, err) {
		return err
	}
	return nil
}

// isResting reports whether a target is left alone after an error.
func (w *worker) isResting(k key, now time.Time) bool {
	until, ok := w.resting[k]
	if ok && !now.Before(until.Add(-time.Minute)) { // the cell that says so is kept to the minute
		delete(w.resting, k)
		return false
	}
	return ok
}
