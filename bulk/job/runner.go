package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Runner works on jobs, on one of the servers of a registry.
type Runner struct {
	Board     *Board
	Directory *auth.Directory
	Log       *slog.Logger
	Server    string        // names this server in the log of a job; may be empty
	Lease     time.Duration // how long a server that has died keeps a job; 0: DefaultLease

	mu   sync.Mutex
	mine map[string]bool // jobs that this process works on
	last string          // the job that was taken last; only look uses it
}

const (
	// AtOnce is how many jobs a server works on at once.
	AtOnce = 2

	// DefaultLease is how long a server that has died keeps a job, and how long one that lost its
	// database may go on: a step that two servers do changes nothing the second time.
	DefaultLease = 20 * time.Second

	lookEvery = 2 * time.Second // for jobs of other servers, at least; leases that are short need more
	tidyEvery = time.Hour
)

// Run works on jobs until the context ends. A job that is under way then is left to another
// server, or to the next run.
func (r *Runner) Run(ctx context.Context) {
	r.mine = make(map[string]bool)
	var workers sync.WaitGroup
	defer workers.Wait()
	turns := make(chan struct{}, AtOnce)
	look, tidy := time.NewTicker(min(lookEvery, r.lifetime()/4)), time.NewTicker(tidyEvery)
	defer look.Stop()
	defer tidy.Stop()
	for {
		if err := r.look(ctx, turns, &workers); err != nil && ctx.Err() == nil {
			r.Log.Debug("the list of jobs can't be read", "error", err.Error())
		}
		select {
		case <-look.C:
		case <-r.Board.wake:
		case <-tidy.C:
			if err := r.Board.Tidy(ctx); err != nil && ctx.Err() == nil {
				r.Log.Warn("old jobs can't be removed", "error", err.Error())
			}
		case <-ctx.Done():
			return
		}
	}
}

// lifetime returns how long a lease lasts.
func (r *Runner) lifetime() time.Duration { return cmp.Or(r.Lease, DefaultLease) }

// look begins to work on jobs that no server works on.
func (r *Runner) look(ctx context.Context, turns chan struct{}, workers *sync.WaitGroup) error {
	var open []string
	for c, err := range r.Board.o.Registrar.WorkList(asServer(ctx), leaseCells, "") {
		var l lease
		if err == nil {
			err = decode(c.Name, c.Value, &l)
		}
		if err != nil {
			return err
		}
		if l.Server == "" || !r.Board.now().Before(l.Until) {
			open = append(open, strings.TrimPrefix(c.Name, leaseCells))
		}
	}
	// Jobs after the last that was taken come first, so that those which can't go on do not keep
	// the others waiting.
	next := slices.IndexFunc(open, func(id string) bool { return id > r.last }) // they are in order
	if next > 0 {
		open = slices.Concat(open[next:], open[:next])
	}
	for _, id := range open {
		select {
		case turns <- struct{}{}:
		default:
			return nil // this server has enough to do
		}
		if !r.take(id) {
			<-turns
			continue
		}
		r.last = id
		workers.Go(func() {
			err := r.work(ctx, id)
			r.leave(id)
			<-turns
			if err == nil {
				r.Board.poke() // there is room for the next
			} else if ctx.Err() == nil { // at the next look: a store that can't be written must not be asked without a pause
				r.Log.Warn("a job could not go on; it is tried again", "job", id, "error", err.Error())
			}
		})
	}
	return nil
}

func (r *Runner) take(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mine[id] {
		return false
	}
	r.mine[id] = true
	return true
}

func (r *Runner) leave(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mine, id)
}

// working is a job on which this server works.
type working struct {
	*Runner
	name    string // of the lease's holder
	job     Job
	resumed bool // an earlier attempt may have done the next step

	before map[string]bool // after a resumption: names that rows before the next one wrote; their versions are not of that row

	mu    sync.Mutex
	lease []byte    // the value of its cell
	until time.Time // it ends, by the clock of this server
}

// holds returns errLost if the lease has ended before this server could renew it, since it was
// suspended or cut off: another one may work on the job by now. It is asked before anything is written that
// the lease itself does not guard.
func (w *working) holds() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Board.now().Before(w.until) {
		return errLost
	}
	return nil
}

// errLost says that another server works on the job.
var errLost = stele.Messagef("job.lease-lost", "another server works on this job")

// errCancelled says that a user asked for the end of a job.
var errCancelled = stele.Messagef("job.cancelled", "the job was cancelled")

// work takes the lease of a job and works until the job ends, or until it can't go on.
func (r *Runner) work(ctx context.Context, id string) error {
	w := &working{Runner: r}
	ok, err := w.claim(ctx, id)
	if err != nil || !ok {
		return err
	}
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(ctx, lose) })
	err = w.run(ctx)
	if errors.Is(context.Cause(ctx), errLost) {
		err = errLost
	}
	lose(nil)
	renewing.Wait()
	return w.end(context.WithoutCancel(ctx), err)
}

// claim takes the lease of a job; false if another server was faster.
func (w *working) claim(ctx context.Context, id string) (bool, error) {
	random, err := w.Board.NewID()
	if err != nil {
		return false, err
	}
	w.name = random // a server that was started anew is another one
	var l lease
	before, ok, err := w.Board.read(ctx, leaseCells+id, &l)
	if err != nil || !ok || l.Server != "" && w.Board.now().Before(l.Until) {
		return false, err
	}
	w.until = w.Board.now().Add(w.lifetime())
	c, err := change(leaseCells+id, before, &lease{Server: w.name, Until: w.until})
	if err != nil {
		return false, err
	}
	if err := w.Board.o.Registrar.KeepWork(asServer(ctx), c); errors.Is(err, stele.Conflict) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	w.lease = c.After
	_, ok, err = w.Board.read(ctx, jobCells+id, &w.job)
	switch {
	case err != nil: // the job is there, and is tried again
		w.job.ID = id
		return false, errors.Join(err, w.release(context.WithoutCancel(ctx)))
	case !ok:
		return false, w.Board.remove(ctx, leaseCells+id) // a lease of nothing
	}
	return true, w.save(ctx, func(j *Job) {
		if w.resumed = !j.Began.IsZero(); w.resumed {
			j.note(w.Board.now(), "resumed", w.Server)
			return
		}
		j.State, j.Began = Working, w.Board.now()
		j.note(j.Began, "began", w.Server)
	})
}

// renew renews the lease until the context ends.
func (w *working) renew(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(w.lifetime() / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		until := w.Board.now().Add(w.lifetime())
		c, err := change(leaseCells+w.job.ID, w.lease, &lease{Server: w.name, Until: until})
		if err == nil {
			err = w.Board.o.Registrar.KeepWork(asServer(ctx), c)
		}
		if err == nil {
			w.lease, w.until = c.After, until
		}
		w.mu.Unlock()
		if errors.Is(err, stele.Conflict) {
			lose(errLost)
			return
		}
	}
}

// save changes what is kept of the job, with other cells, if the lease is still held. A user may
// ask for the end of the job at the same time.
func (w *working) save(ctx context.Context, edit func(*Job), also ...stele.CellChange) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	const attempts = 10
	for n := 1; ; n++ {
		var j Job
		before, ok, err := w.Board.read(ctx, jobCells+w.job.ID, &j)
		if err != nil || !ok {
			return errors.Join(err, errLost)
		}
		edit(&j)
		c, err := change(jobCells+j.ID, before, &j)
		if err != nil {
			return err
		}
		held := stele.CellChange{Name: leaseCells + j.ID, Before: w.lease, After: w.lease}
		if !j.IsOpen() {
			held.After = nil
		}
		err = w.Board.o.Registrar.KeepWork(asServer(ctx), append([]stele.CellChange{c, held}, also...)...)
		if err == nil {
			w.job = j
			return nil
		}
		if !errors.Is(err, stele.Conflict) || n == attempts {
			return err
		}
		if now, err := w.Board.o.Registrar.WorkCell(asServer(ctx), leaseCells+j.ID); err != nil || string(now) != string(w.lease) {
			return errors.Join(err, errLost)
		}
	}
}

// run does what the job is about.
func (w *working) run(ctx context.Context) error {
	if w.job.Cancel {
		return errCancelled
	}
	defer w.Board.forget()
	switch w.job.Task {
	case Import:
		return w.importRows(ctx)
	case Revert:
		return w.revert(ctx)
	case Replace:
		return w.replace(ctx)
	case Accept:
		return w.accept(ctx)
	}
	return refuse(stele.Internal, "job.task-unknown", `this server does not know the task "{task}"`, string(w.job.Task))
}

// asUser returns a context with the rights that the job's user has now.
func (w *working) asUser(ctx context.Context) (context.Context, error) {
	ctx, err := asUser(ctx, w.Directory, w.job.User)
	return auth.WithOrigin(ctx, auth.Origin{Via: "desk"}), err
}

// end keeps how the job ended. One that can't go on at the moment is left to the next attempt.
func (w *working) end(ctx context.Context, err error) error {
	state, what := Done, "done"
	var problem *Problem
	switch kind := stele.KindOf(err); {
	case err == nil:
	case errors.Is(err, errLost):
		return nil
	case errors.Is(err, errCancelled):
		state, what = Cancelled, "cancelled"
	case errors.Is(err, context.Canceled), kind == stele.Unavailable:
		return errors.Join(err, w.release(ctx))
	default:
		state, what = Failed, "failed"
		p := problemOf("", err)
		problem = &p
	}
	w.noteImport(ctx)
	now := w.Board.now()
	const attempts = 5
	for n := 1; ; n++ {
		also, err := w.mayUndoAgain(ctx, state)
		if err != nil {
			return err
		}
		err = w.save(ctx, func(j *Job) {
			j.State, j.Ended, j.Problem = state, now, problem
			j.note(now, what, w.Server)
		}, also...)
		if !errors.Is(err, stele.Conflict) || n == attempts {
			return err
		}
	}
}

// mayUndoAgain returns the change after which a job can be undone again, if this one should have
// undone it and did not come to its end. The registrar goes on then where it was.
func (w *working) mayUndoAgain(ctx context.Context, state State) ([]stele.CellChange, error) {
	if w.job.Task != Revert || state == Done {
		return nil, nil
	}
	var of Job
	before, ok, err := w.Board.read(ctx, jobCells+w.job.Of, &of)
	if err != nil || !ok || of.UndoneBy != w.job.ID {
		return nil, err
	}
	of.UndoneBy = ""
	c, err := change(jobCells+of.ID, before, &of)
	return []stele.CellChange{c}, err
}

// release gives the lease back, so that another server need not wait until it expires.
func (w *working) release(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := change(leaseCells+w.job.ID, w.lease, &lease{})
	if err != nil {
		return err
	}
	if err := w.Board.o.Registrar.KeepWork(asServer(ctx), c); err != nil && !errors.Is(err, stele.Conflict) {
		return err
	}
	return nil
}
