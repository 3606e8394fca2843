package check

import (
	"context"
	"errors"
	"slices"
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
	maxUrgent   = 100  // of them, of one domain, for which users wait
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
	beside  map[stele.NamespaceKey][]string // prefixes to which minters of the spaces lead
	looked  time.Time                       // at the settings
	pending map[key]*waiting
	wheel   map[key]bool // of them, those that the wheel gave
	place   place
	next    time.Time // to which the wheel is read, but not all is checked
	quotas  map[stele.NamespaceKey]*quota
	names   map[string]map[string]counted // of the hosts of a domain
	counted int                           // hosts of all domains there
	answers chan answered
	resting map[key]time.Time // targets that can't be checked, and until when they are left alone
	asked   string            // the last cell of what users wait for that was read; "": begin with the first
	swept   string            // the last cell of findings that was looked at
	sweepAt time.Time         // when to begin with the first one again
	host    string            // the last cell of a host that was looked at
	hostsAt time.Time         // when to begin with the first one again
	later   []postponement    // that are not kept yet

	enrolled map[string]readAll // the cells of what was read to the end

	converted bool // there is nothing left that an earlier version kept

	copies   []key // of targets for which an archive is to be asked
	copying  bool  // it is asked now
	copyAt   time.Time
	archived chan archived
}

// waiting is a target that is in the line, or that is asked.
type waiting struct {
	due    string // the cell that says that it is due; "" if its turn has come
	urgent bool   // a user waits for it
	domain string // that its owner has registered

	space stele.NamespaceKey // the quota of which it takes a part of
	day   int64
}

func newWorker(c *Checker, l *lease) *worker {
	w := &worker{Checker: c, lease: l, line: links.NewLine(), pending: make(map[key]*waiting), wheel: make(map[key]bool), resting: make(map[key]time.Time), enrolled: make(map[string]readAll), beside: make(map[stele.NamespaceKey][]string),
		quotas: make(map[stele.NamespaceKey]*quota), names: make(map[string]map[string]counted), answers: make(chan answered), archived: make(chan archived)}
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
	task    links.Task
	answer  *links.Answer
	report  links.Report
	servers []string  // of the domain; none: they were not asked for, or are not known
	moved   time.Time // when the name servers changed last; set by note
}

func (w *worker) run(ctx context.Context, asking *sync.WaitGroup) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w.tally.working.Store(true)
	defer func() {
		w.tally.working.Store(false)
		w.tally.waiting.Store(0)
	}()
	for look := true; ; {
		if look { // and not after each answer: it reads much
			if err := w.look(ctx); err != nil {
				return err
			}
		}
		look = false
		w.tally.waiting.Store(int64(len(w.pending)))
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
		w.startCopy(ctx, asking)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case a := <-w.answers:
			if err := w.setAside(ctx, &a.task, w.take(ctx, a)); err != nil {
				return err
			}
		case a := <-w.archived:
			if err := w.takeCopy(ctx, &a); err != nil {
				return err
			}
		case <-tick.C:
			look = true
		case <-w.wake:
			look = true
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
	domain, err := w.askServers(ctx, task.Host)
	if err != nil {
		return err
	}
	asking.Go(func() {
		a := answered{task: task}
		a.answer, a.report = w.o.Ask(ctx, task.URL, known)
		if domain != "" && a.answer.Failure == links.NoFailure {
			a.servers, _ = w.o.Servers(ctx, domain) // they are asked for again with the next target
		}
		select {
		case w.answers <- a:
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
		for _, s := range t.signed {
			if s.Type != "" && !slices.Contains(known.Types, s.Type) {
				known.Types = append(known.Types, s.Type)
			}
		}
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
	e := w.o.Rules.Judge(a.answer)
	host, outage := *w.line.Host(a.task.Host), w.line.Outage()
	out := w.line.Done(&a.task, a.report, &e, w.now())
	w.tally.count(&e)
	if err := w.noteOutage(ctx, outage); err != nil {
		return err
	}
	if err := w.putOff(ctx, out); err != nil {
		return err
	}
	if err := w.note(ctx, &a); err != nil {
		return err
	}
	if err := w.result(ctx, &host, w.line.Host(a.task.Host), &a, &e); err != nil {
		return err
	}
	for _, name := range a.task.Keys {
		delete(w.pending, key(name))
		delete(w.wheel, key(name))
	}
	return nil
}

// noteOutage keeps since when no host answers, if that is not as it was before. A server that starts meanwhile must not find out anew, at the expense of
// the same hosts.
func (w *worker) noteOutage(ctx context.Context, before time.Time) error {
	since := w.line.Outage()
	if since.Equal(before) {
		return nil
	}
	if since.IsZero() {
		w.o.Log.Info("hosts answer again; links are checked as before", "since", before)
		return w.keep(ctx, w.lease, func(b *batch) error { return b.set(ctx, outageCell, nil) })
	}
	w.o.Log.Warn("no host answers, so links are not checked; see whether this server reaches the Internet and its resolver. One host is tried every ten minutes")
	return w.keep(ctx, w.lease, func(b *batch) error { return b.setJSON(ctx, outageCell, since) })
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
	if w.place.Wheel.After(w.now()) { // the clock was ahead
		w.place.Wheel = w.now()
	}
	if value, err = w.o.Registrar.CheckCell(asServer(ctx), outageCell); err != nil {
		return err
	}
	var since time.Time
	if decode(w.Checker, outageCell, value, &since) {
		w.line.SetOutage(since)
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
		if kept.Names > 0 {
			w.setNames(kept.Host, counted{names: kept.Names, kept: true})
		}
	}
	return nil
}

// restart begins to follow the feed from now on, and has all namespaces read anew.
func (w *worker) restart(ctx context.Context, now stele.Position) error {
	w.place.Generation, w.place.Change = now.Generation, now.Change
	clear(w.enrolled)
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
		clear(w.beside)
		for i := range list {
			if !list[i].On {
				continue
			}
			if w.beside[list[i].Key()], err = w.o.Registrar.CheckedPrefixes(asServer(ctx), list[i].Key()); err != nil {
				return err
			}
		}
	}
	steps := []func(context.Context) error{w.convert, w.follow, w.enrol, w.sweep, w.sweepHosts, w.fillDue, w.fillWheel}
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
