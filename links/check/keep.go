package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
)

// keepTries is how often a change is tried that another one may precede.
const keepTries = 5

// batch collects changes of cells. It reads what each cell has now.
type batch struct {
	c    *Checker
	list []stele.CellChange
	seen map[string]int
	was  map[string][]byte

	blocks  map[string]*block // by the names of their cells
	damaged bool              // one of them is
}

func (c *Checker) newBatch() *batch {
	return &batch{c: c, seen: make(map[string]int), was: make(map[string][]byte), blocks: make(map[string]*block)}
}

// read returns the value that a cell has. A change of the cell in this batch is refused if it has another one by then, so that what a user said
// meanwhile is not lost.
func (b *batch) read(ctx context.Context, name string) ([]byte, error) {
	if value, ok := b.was[name]; ok {
		return value, nil
	}
	value, err := b.c.o.Registrar.CheckCell(asServer(ctx), name)
	if err == nil {
		b.was[name] = value
	}
	return value, err
}

// status is [Checker.status] for a status that the batch may change.
func (b *batch) status(ctx context.Context, k key) (links.Status, []byte, error) {
	value, err := b.state(ctx, k)
	if err != nil {
		return links.Status{}, nil, err
	}
	s, ok := b.c.readStatus(k, value)
	if !ok {
		value = nil
	}
	return s, value, nil
}

// set gives a cell a value; nil removes it.
func (b *batch) set(ctx context.Context, name string, after []byte) error {
	if i, ok := b.seen[name]; ok {
		b.list[i].After = after
		return nil
	}
	before, err := b.read(ctx, name)
	if err != nil || bytes.Equal(before, after) && (before == nil) == (after == nil) {
		return err
	}
	b.seen[name] = len(b.list)
	b.list = append(b.list, stele.CellChange{Name: name, Before: before, After: after})
	return nil
}

// setJSON gives a cell a value as JSON.
func (b *batch) setJSON(ctx context.Context, name string, v any) error {
	after, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.set(ctx, name, after)
}

// keep commits what fill collects, and tries again if another commit was faster. The lease, if there is one, must be held.
func (c *Checker) keep(ctx context.Context, l *lease, fill func(b *batch) error) error {
	return c.keepBy(ctx, l, fill, func(changes []stele.CellChange) error { return c.o.Registrar.KeepChecks(asServer(ctx), changes...) })
}

// keepBy is keep with another way to commit.
func (c *Checker) keepBy(ctx context.Context, l *lease, fill func(b *batch) error, commit func([]stele.CellChange) error) error {
	for attempt := 1; ; attempt++ {
		b := c.newBatch()
		if err := fill(b); err != nil {
			return err
		}
		if err := b.flushBlocks(ctx); err != nil || len(b.list) == 0 {
			return err
		}
		if l != nil {
			held, ok := l.held()
			if !ok {
				return errLost
			}
			b.list = append(b.list, stele.CellChange{Name: leaseCell, Before: held, After: held})
		}
		err := commit(b.list)
		if err == nil || attempt == keepTries || !errors.Is(err, stele.Conflict) || errors.Is(err, stele.ErrSealed) {
			return err
		}
	}
}

// forget removes all that is known of a target.
func (b *batch) forget(ctx context.Context, k key, s *links.Status) error {
	if err := b.setState(ctx, k, nil); err != nil {
		return err
	}
	for _, name := range []string{k.found(), k.waits()} {
		if err := b.set(ctx, name, nil); err != nil {
			return err
		}
	}
	if s.Next.IsZero() {
		return nil
	}
	return b.set(ctx, k.due(s.Next), nil)
}

// setStatus keeps what is known of a target: its state, when it is due if that is not its turn, and what is told.
func (b *batch) setStatus(ctx context.Context, t *target, before, s *links.Status, e *links.Evidence) error {
	if !before.Next.IsZero() {
		if err := b.set(ctx, t.key.due(before.Next), nil); err != nil {
			return err
		}
	}
	if err := b.setState(ctx, t.key, s.Append(nil)); err != nil {
		return err
	}
	if !isTurn(t.key, s.Next) {
		if err := b.set(ctx, t.key.due(s.Next), []byte{}); err != nil {
			return err
		}
	}
	if !isTold(s) {
		return b.set(ctx, t.key.found(), nil)
	}
	f := finding(t.key, t.url, s, e)
	value, err := b.read(ctx, t.key.found())
	if err != nil {
		return err
	}
	var old Finding
	if decode(b.c, t.key.found(), value, &old) && old.URL == t.url {
		f.Copy, f.CopyAt, f.CopyAsked = old.Copy, old.CopyAt, old.CopyAsked
		if e == nil || e.Cause == links.AskedToWait || e.Cause == links.OwnFault { // the state is that of an earlier answer, so what was seen is, too
			f.Final, f.Title, f.Wall = old.Final, old.Title, old.Wall
		}
	}
	return b.setJSON(ctx, t.key.found(), f)
}

// slack is how much later than its turn a target may be due, since times are kept to the minute.
const slack = 3 * time.Minute

// isTurn reports whether a target is due in its turn.
func isTurn(k key, at time.Time) bool {
	turn := int64(links.Turn / time.Second)
	return (at.Unix()-k.turn()%turn+turn)%turn < int64(slack/time.Second)
}

// round returns a time as it is stored.
func round(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Minute)
}

// result takes over the answer to a task, for all targets that led there. Host is what was known of their host before, and known what is now.
func (w *worker) result(ctx context.Context, host, known *links.Host, a *answered, e *links.Evidence) error {
	task := &a.task
	seen := &sight{answered: a, evidence: e, host: host, now: w.now()}
	for _, name := range task.Keys {
		k := key(name)
		t, ok, err := w.target(ctx, k)
		if err != nil {
			return err
		}
		if id, _, err := k.parse(); err == nil {
			if err := w.spend(ctx, id); err != nil {
				return err
			}
		}
		err = w.keep(ctx, w.lease, func(b *batch) error {
			if err := w.keepQuotas(ctx, b); err != nil {
				return err
			}
			s, _, err := b.status(ctx, k)
			if err != nil {
				return err
			}
			if ok && t.url != task.URL { // it changed meanwhile; a user who waits for it waits for the new one
				if err := b.forget(ctx, k, &s); err != nil {
					return err
				}
				return b.await(ctx, k)
			}
			if err := b.dropDue(ctx, k); err != nil {
				return err
			}
			if e.Cause != links.OwnFault {
				if err := b.set(ctx, k.waits(), nil); err != nil {
					return err
				}
			}
			if !ok {
				return b.forget(ctx, k, &s)
			}
			return b.apply(ctx, &t, &s, seen, name != task.Keys[0])
		})
		if err != nil {
			return err
		}
		w.keptQuotas()
	}
	if err := w.tellSiblings(ctx, seen); err != nil {
		return err
	}
	return w.keepHost(ctx, w.lease, task.Host, known)
}

// await makes a target due that was never asked.
func (b *batch) await(ctx context.Context, k key) error {
	if err := b.set(ctx, k.waits(), []byte{}); err != nil {
		return err
	}
	return b.set(ctx, k.due(neverChecked), []byte{})
}

// dropDue removes what says that a target was never checked, or that a user waits for it.
func (b *batch) dropDue(ctx context.Context, k key) error {
	if err := b.set(ctx, k.due(askedNow), nil); err != nil {
		return err
	}
	return b.set(ctx, k.due(neverChecked), nil)
}

// keptHost is what is kept of a host.
type keptHost struct {
	Host  string     `json:"host"`
	Known links.Host `json:"known"`
	Names int        `json:"names,omitempty"` // that lead there, if only a sample of them is asked
	Share int        `json:"share,omitempty"` // of them, in thousandths
}

// keepHost keeps what is known of a host that does not answer.
func (c *Checker) keepHost(ctx context.Context, l *lease, name string, h *links.Host) error {
	return c.keep(ctx, l, func(b *batch) error {
		var kept keptHost
		value, err := c.o.Registrar.CheckCell(asServer(ctx), hostCells+name)
		if err != nil {
			return err
		}
		decode(c, hostCells+name, value, &kept)
		kept.Host, kept.Known = name, *h
		if h.Streak == 0 && h.Down.IsZero() {
			if kept.Names == 0 {
				return b.set(ctx, hostCells+name, nil)
			}
			kept.Known = links.Host{}
		}
		return b.setJSON(ctx, hostCells+name, &kept)
	})
}
