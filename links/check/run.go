package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
)

const (
	lookEvery   = time.Second // for what is due
	spacesEvery = 10 * time.Second
	maxPending  = 2000 // tasks in memory
	atOnce      = 500  // changes, records or cells that are read before the next answer is taken
	sweepAtOnce = 100  // findings that are compared with their records at once
	wheelStep   = 10 * time.Minute
	farBehind   = 100_000 // changes of the feed after which namespaces are read anew
	day         = 24 * time.Hour
)

// RunAsked does what Run does, for a process that works for one user: it does nothing but the checks that users ask for.
func (c *Checker) RunAsked(ctx context.Context) {
	c.askedOnly = true
	c.Run(ctx)
}

// Run checks targets until the context ends, whenever no other server does. It takes no lease as long as no
// namespace wants its targets to be checked and no user asks for a check.
func (c *Checker) Run(ctx context.Context) {
	tick := time.NewTicker(min(c.o.Lease/4, 5*time.Second))
	defer tick.Stop()
	for ctx.Err() == nil {
		if needed, err := c.isNeeded(ctx); err == nil && needed {
			if l, err := c.take(ctx); err == nil && l != nil {
				c.work(ctx, l)
			} else if err != nil && ctx.Err() == nil {
				c.o.Log.Debug("the lease of link checks can't be taken", "error", err.Error())
			}
		}
		select {
		case <-tick.C:
		case <-c.wake:
		case <-ctx.Done():
		}
	}
}

// isNeeded reports whether there is something to do.
func (c *Checker) isNeeded(ctx context.Context) (bool, error) {
	list, err := c.o.Registrar.CheckedSpaces(asServer(ctx))
	for _, l := range list {
		if l.On && !c.askedOnly {
			return true, nil
		}
	}
	if err != nil {
		return false, err
	}
	for cell, err := range c.o.Registrar.CheckList(asServer(ctx), dueCells, "") {
		return err == nil && string(cell.Value) == urgent, err
	}
	return false, nil
}

// work checks targets as long as this server has the lease.
func (c *Checker) work(ctx context.Context, l *lease) {
	inner, lose := context.WithCancelCause(ctx)
	var others sync.WaitGroup
	others.Go(func() { l.keepRenewed(inner, lose) })
	w := newWorker(c, l)
	err := w.run(inner, &others)
	lose(err)
	others.Wait()
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLost) {
		c.o.Log.Warn("links can't be checked at the moment; it is tried again", "error", err.Error())
	}
	l.leave(ctx)
}

// worker is a server that checks targets now.
type worker struct {
	*Checker
	lease   *lease
	line    *links.Line
	spaces  spaces
	looked  time.Time // at the settings
	pending map[key]bool
	wheel   map[key]bool // of them, those that the wheel gave
	place   place
	next    time.Time // to which the wheel is read, but not all is checked
	used    map[stele.NamespaceKey]int
	today   int64
	names   map[string]counted
	answers chan answered
	resting map[key]time.Time // targets that can't be checked, and until when they are left alone
	swept   string            // the last cell of findings that was looked at
	sweepAt time.Time         // when to begin with the first one again
}

func newWorker(c *Checker, l *lease) *worker {
	w := &worker{Checker: c, lease: l, line: links.NewLine(), pending: make(map[key]bool), wheel: make(map[key]bool), resting: make(map[key]time.Time),
		used: make(map[stele.NamespaceKey]int), names: make(map[string]counted), answers: make(chan answered)}
	w.line.Pace = w.pace
	return w
}

// place is how far this work is.
type place struct {
	Generation stele.GenerationID `json:"generation"`
	Change     uint64             `json:"change"`
	Wheel      time.Time          `json:"wheel"`
}

type answered struct {
	task   links.Task
	answer *links.Answer
	report links.Report
}

type counted struct {
	names, share int
	at           time.Time
}

func (w *worker) run(ctx context.Context, asking *sync.WaitGroup) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		for {
			task, _, ok := w.line.Next(w.now())
			if !ok {
				break
			}
			if err := w.start(ctx, asking, task); err != nil {
				w.line.Cancel(&task)
				if err := w.setAside(ctx, &task, err); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case a := <-w.answers:
			if err := w.setAside(ctx, &a.task, w.take(ctx, a)); err != nil {
				return err
			}
		case <-tick.C:
		case <-w.wake:
		}
	}
}

// start asks a task in the background.
func (w *worker) start(ctx context.Context, asking *sync.WaitGroup, task links.Task) error {
	known, err := w.prepare(ctx, &task)
	if err != nil {
		return err
	}
	if len(task.Keys) == 0 {
		w.line.Cancel(&task)
		return nil
	}
	asking.Go(func() {
		answer, report := w.o.Ask(ctx, task.URL, known)
		select {
		case w.answers <- answered{task, answer, report}:
		case <-ctx.Done(): // it is asked again
		}
	})
	return nil
}

// prepare returns what is known of the targets of a task. It drops those from the task that changed while it waited, and those
// that are not to be checked any more: their cells say what happens with them.
func (w *worker) prepare(ctx context.Context, task *links.Task) (known ask.Known, err error) {
	var keys []string
	for _, name := range task.Keys {
		t, ok, err := w.target(ctx, key(name))
		if err != nil {
			return known, err
		}
		id, _, err := key(name).parse()
		if err != nil {
			return known, err
		}
		space, err := w.space(ctx, id)
		if err != nil {
			return known, err
		}
		if !ok || t.url != task.URL || task.Rank != links.Urgent && space == nil {
			delete(w.pending, key(name))
			delete(w.wheel, key(name))
			continue
		}
		keys = append(keys, name)
		s, _, err := w.status(ctx, key(name))
		if err != nil {
			return known, err
		}
		known.Whole = known.Whole || t.unchanging
		if s.URL == links.Hash(task.URL) && s.State == links.OK && len(task.Keys) == 1 && !known.Whole {
			known.Print, known.Large = s.Print, s.Large
		}
	}
	task.Keys = keys
	return known, nil
}

// take takes over an answer.
func (w *worker) take(ctx context.Context, a answered) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.result(ctx, w.lease, w.line, &a.task, a.answer, a.report); err != nil {
		return err
	}
	for _, name := range a.task.Keys {
		delete(w.pending, key(name))
		delete(w.wheel, key(name))
	}
	return nil
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

// begin reads how far the work is.
func (w *worker) begin(ctx context.Context) error {
	now, err := w.o.Store.Position(ctx)
	if err != nil {
		return err
	}
	value, err := w.o.Registrar.CheckCell(asServer(ctx), placeCell)
	if err != nil {
		return err
	}
	decode(w.Checker, placeCell, value, &w.place)
	if !w.askedOnly && (w.place.Generation != now.Generation || w.place.Change > now.Change || now.Change-w.place.Change > farBehind) {
		if err := w.restart(ctx, now); err != nil {
			return err
		}
	}
	if w.place.Wheel.IsZero() || w.now().Sub(w.place.Wheel) > links.Turn {
		w.place.Wheel = w.now().Add(-min(links.Turn, w.now().Sub(w.place.Wheel)))
	}
	for c, err := range w.o.Registrar.CheckList(asServer(ctx), hostCells, "") {
		if err != nil {
			return err
		}
		var kept keptHost
		if !decode(w.Checker, c.Name, c.Value, &kept) {
			continue
		}
		*w.line.Host(kept.Host) = kept.Known
	}
	return nil
}

// restart begins to follow the feed from now on, and has all namespaces read anew.
func (w *worker) restart(ctx context.Context, now stele.Position) error {
	w.place.Generation, w.place.Change = now.Generation, now.Change
	return w.keep(ctx, w.lease, func(b *batch) error {
		for c, err := range w.o.Registrar.CheckList(asServer(ctx), enrolCells, "") {
			if err != nil {
				return err
			}
			if err := b.set(ctx, c.Name, nil); err != nil {
				return err
			}
		}
		return b.setJSON(ctx, placeCell, &w.place)
	})
}

// look finds what is due.
func (w *worker) look(ctx context.Context) error {
	now := w.now()
	if now.Sub(w.looked) >= spacesEvery {
		list, err := w.o.Registrar.CheckedSpaces(asServer(ctx))
		if err != nil {
			return err
		}
		w.spaces, w.looked = list, now
	}
	if today := now.Unix() / int64(day/time.Second); today != w.today {
		w.today = today
		clear(w.used)
	}
	steps := []func(context.Context) error{w.follow, w.enrol, w.sweep, w.fillDue, w.fillWheel}
	if w.askedOnly {
		steps = []func(context.Context) error{w.fillDue}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fillDue puts targets into the line that are due at another time than their turn.
func (w *worker) fillDue(ctx context.Context) error {
	now := w.now()
	read := 0
	for c, err := range w.o.Registrar.CheckList(asServer(ctx), dueCells, "") {
		if err != nil {
			return err
		}
		at, k, err := parseDue(c.Name)
		if err != nil {
			if err := w.remove(ctx, c.Name); err != nil {
				return err
			}
			continue
		}
		if read++; at.After(now) || len(w.pending) >= maxPending || read > 2*maxPending {
			return nil
		}
		if w.pending[k] || w.isResting(k, now) || w.askedOnly && string(c.Value) != urgent {
			continue
		}
		if err := w.add(ctx, k, c.Name, string(c.Value) == urgent); err != nil {
			if err := w.rest(ctx, k, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillWheel puts targets into the line whose turn has come. How far it came is kept when all of them are checked.
func (w *worker) fillWheel(ctx context.Context) error {
	if len(w.wheel) > 0 || len(w.pending) >= maxPending {
		return nil
	}
	if !w.next.IsZero() {
		w.place.Wheel, w.next = w.next, time.Time{}
		if err := w.keep(ctx, w.lease, func(b *batch) error { return b.setJSON(ctx, placeCell, &w.place) }); err != nil {
			return err
		}
	}
	now := w.now().Add(-slack)
	to := w.place.Wheel.Add(wheelStep)
	if to.After(now) {
		to = now
	}
	if to.Sub(w.place.Wheel) < time.Minute {
		return nil
	}
	from, last := slotOf(w.place.Wheel), slotOf(to)
	if last < from {
		if err := w.readSlots(ctx, from, slots-1); err != nil {
			return err
		}
		from = 0
	}
	if err := w.readSlots(ctx, from, last); err != nil {
		return err
	}
	w.next = to
	return nil
}

// readSlots adds what is due of a part of the turn.
func (w *worker) readSlots(ctx context.Context, from, last int) error {
	end := fmt.Sprintf("%s%04x", stateCells, last)
	for c, err := range w.o.Registrar.CheckList(asServer(ctx), stateCells, fmt.Sprintf("%s%04x", stateCells, from)) {
		if err != nil {
			return err
		}
		if c.Name[:min(len(end), len(c.Name))] > end {
			return nil
		}
		k := parseState(c.Name)
		if _, _, err := k.parse(); err != nil {
			if err := w.remove(ctx, c.Name); err != nil {
				return err
			}
			continue
		}
		s, err := links.ReadStatus(c.Value)
		if err != nil {
			w.logDamaged(c.Name)
			s = links.Status{}
		}
		if w.pending[k] || w.isResting(k, w.now()) || s.Next.After(w.now()) {
			continue
		}
		if err := w.add(ctx, k, "", false); err != nil {
			if err := w.rest(ctx, k, err); err != nil {
				return err
			}
		}
		if w.pending[k] {
			w.wheel[k] = true
		}
	}
	return nil
}

// remove removes a cell whose name is damaged.
func (w *worker) remove(ctx context.Context, name string) error {
	w.logDamaged(name)
	return w.keep(ctx, w.lease, func(b *batch) error { return b.set(ctx, name, nil) })
}

// add puts a target into the line, or says when it is due instead. Due is the name of the cell that says that it is due now.
func (w *worker) add(ctx context.Context, k key, due string, wanted bool) error {
	now := w.now()
	id, _, err := k.parse()
	if err != nil {
		return err
	}
	t, ok, err := w.target(ctx, k)
	if err != nil {
		return err
	}
	s, _, err := w.status(ctx, k)
	if err != nil {
		return err
	}
	space, err := w.space(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !ok, space == nil && !wanted:
		return w.keep(ctx, w.lease, func(b *batch) error {
			if due != "" {
				if err := b.set(ctx, due, nil); err != nil {
					return err
				}
			}
			return b.forget(ctx, k, &s)
		})
	case !wanted && s.URL == links.Hash(t.url) && s.Next.After(now):
		if due == "" {
			return nil
		}
		return w.keep(ctx, w.lease, func(b *batch) error { return b.set(ctx, due, nil) }) // it was checked since
	}
	task := links.Task{URL: t.url, Host: stele.Target{URL: t.url}.Host(), Keys: []string{string(k)}, Rank: links.Routine}
	switch {
	case wanted:
		task.Rank = links.Urgent
	case s.State == links.Failing:
		task.Rank = links.Retried
	}
	var later time.Time
	if space != nil && !wanted {
		later = space.PausedUntil(task.Host, now)
		if space.Quota > 0 && w.used[space.Key()] >= space.Quota {
			later = now.Truncate(day).Add(day)
		}
	}
	if later.IsZero() {
		if later, ok = w.line.Add(task, now); ok {
			w.pending[k] = true
			if space != nil {
				w.used[space.Key()]++
			}
			return nil
		}
		if task.Rank == links.Routine && !w.line.Host(task.Host).IsOpen() {
			share, err := w.share(ctx, task.Host)
			if err != nil {
				return err
			}
			if !links.IsSampled(k.hash(), share) {
				later = later.Add(links.Turn)
			}
		}
	}
	return w.postpone(ctx, k, &t, &s, due, later)
}

// postpone makes a target due later.
func (w *worker) postpone(ctx context.Context, k key, t *target, s *links.Status, due string, later time.Time) error {
	return w.keep(ctx, w.lease, func(b *batch) error {
		if due != "" {
			if err := b.set(ctx, due, nil); err != nil {
				return err
			}
		}
		later := round(later.Add(time.Minute))
		if s.URL == links.Hash(t.url) {
			next := *s
			next.Next = later
			if err := b.set(ctx, k.state(), next.Append(nil)); err != nil {
				return err
			}
		}
		return b.set(ctx, k.due(later), []byte{})
	})
}

// share returns which part of the names of a host is asked, in thousandths, and keeps that for the report.
func (w *worker) share(ctx context.Context, host string) (int, error) {
	if n, ok := w.names[host]; ok && w.now().Sub(n.at) < day {
		return n.share, nil
	}
	n := counted{at: w.now(), share: 1000}
	for _, err := range w.o.Store.Pointing(ctx, stele.Location{Host: host}, stele.ID{}) {
		if err != nil {
			return 0, err
		}
		n.names++
	}
	gap := w.pace(host)
	if gap == 0 {
		gap = links.Gap
	}
	n.share = links.Share(n.names, gap)
	w.names[host] = n
	err := w.keep(ctx, w.lease, func(b *batch) error {
		kept := keptHost{Host: host, Known: *w.line.Host(host)}
		if n.share < 1000 {
			kept.Names, kept.Share = n.names, n.share
			return b.setJSON(ctx, hostCells+host, &kept)
		}
		return nil
	})
	return n.share, err
}

// pace returns the gap that an owner allows for a host of their own.
func (w *worker) pace(host string) (gap time.Duration) {
	for i := range w.spaces {
		if !w.spaces[i].On {
			continue
		}
		for _, o := range w.spaces[i].Own {
			if (host == o.Host || strings.HasSuffix(host, "."+o.Host)) && (gap == 0 || o.Gap > gap) {
				gap = o.Gap
			}
		}
	}
	return gap
}
