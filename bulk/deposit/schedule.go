package deposit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/internal/lease"
	"github.com/stele-id/stele/registrar"
)

// Entry says that servers make deposits at a place from time to time.
type Entry struct {
	Name     string
	Place    Place
	Prefixes []string // none: all names
	Every    time.Duration
	Access   Access
}

// Schedule keeps what is known of scheduled deposits: a registrar.
type Schedule interface {
	ChangeDeposit(ctx context.Context, name string, change func(before *registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error)) error
}

// Runner makes scheduled deposits on one of the servers of a registry, one after the other. A lease makes sure that no other server makes
// the same; if it fails to, nothing is lost: objects and lists never replace others.
type Runner struct {
	Schedule Schedule
	Entries  []Entry

	// State returns the generation of the registry, and the number of its last change.
	State func(ctx context.Context) (generation string, change uint64, err error)

	// Job returns what makes a bundle of the names that begin with prefixes, or of all.
	Job func(ctx context.Context, prefixes []string) (*bundle.Job, error)

	// Options returns how a deposit is checked.
	Options func(ctx context.Context) (bundle.Options, error)

	Now    func() time.Time
	Log    *slog.Logger
	Server string        // names this server, other than all others
	Lease  time.Duration // how long a server that has died keeps a deposit
	Tick   time.Duration // how often it looks for what is due; half a minute if 0
}

// LeastEvery is after which time deposits are made again at the earliest: each stays, and reads the whole registry.
const LeastEvery = time.Hour

// checkEvery is after which time all of the last deposit is read again: a disk may have forgotten it.
const checkEvery = 7 * 24 * time.Hour

// mostAhead is how far ahead of now a time is believed that was noted before. One that is later was noted by a clock that was ahead: else no
// deposit would be made, or checked, until that time comes.
const mostAhead = 24 * time.Hour

// Run makes the deposits that are due until the context ends. The context is that of the server itself.
func (r *Runner) Run(ctx context.Context) {
	if len(r.Entries) == 0 {
		return
	}
	lease.Often(ctx, cmp.Or(r.Tick, 30*time.Second), r.Look)
}

// Look makes the deposits that are due now.
func (r *Runner) Look(ctx context.Context) {
	for i := range r.Entries {
		if ctx.Err() != nil {
			return
		}
		e := &r.Entries[i]
		if err := r.do(ctx, e); err != nil && ctx.Err() == nil {
			r.Log.Debug("what is known of a scheduled deposit can't be read or written", "escrow", e.Name, "error", err.Error())
		}
	}
}

// errTaken says that another server makes the deposit, or that it is not due.
var errTaken = failf(stele.Conflict, "deposit.lease-lost", "another server makes this deposit now")

// fresh returns what is known of an entry: nothing, if it is of another place than before.
func (e *Entry) fresh(now *registrar.ScheduledDeposit) registrar.ScheduledDeposit {
	next := registrar.ScheduledDeposit{Place: e.Place.String(), Prefixes: e.Prefixes, Every: e.Every}
	if now == nil || now.Place != next.Place || !slices.Equal(now.Prefixes, next.Prefixes) {
		return next
	}
	changed := *now
	if now.Every != e.Every && now.Failures == 0 && !now.Ended.IsZero() {
		changed.Next = now.Ended.Add(e.Every)
	}
	changed.Every = e.Every
	return changed
}

// isDue reports whether the time of the next deposit has come, or is one that no clock would have noted that is right: after a deposit the
// next one waits for as long as the entry says, and after a failure for a day at most.
func (e *Entry) isDue(next, now time.Time) bool {
	return !now.Before(next) || next.Sub(now) > max(e.Every, lease.LastRetry)+mostAhead
}

// isChecked reports whether a check has found all of the last deposit not long ago.
func (r *Runner) isChecked(state *registrar.ScheduledDeposit) bool {
	age := r.Now().Sub(state.Checked)
	return age < checkEvery && age > -mostAhead
}

// do takes an entry if it is due, and makes the deposit.
func (r *Runner) do(ctx context.Context, e *Entry) error {
	var state registrar.ScheduledDeposit
	err := r.Schedule.ChangeDeposit(ctx, e.Name, func(now *registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error) {
		next := e.fresh(now)
		if now != nil && !lease.IsFree(now.Server, now.Until, r.Now()) || !e.isDue(next.Next, r.Now()) {
			return nil, errTaken
		}
		next.Server, next.Until = r.Server, r.Now().Add(r.Lease)
		state = next
		return &next, nil
	})
	if errors.Is(err, errTaken) {
		return nil
	} else if err != nil {
		return err
	}
	var failed error
	renew := func(ctx context.Context) (bool, error) { return r.renew(ctx, e.Name) }
	if lease.Keep(ctx, r.Lease, renew, func(ctx context.Context) { failed = r.deposit(ctx, e, &state) }) {
		return nil // another server has it, or may have it
	}
	interrupted := ctx.Err() != nil
	if err := r.leave(context.WithoutCancel(ctx), e, state, failed, interrupted); err != nil {
		return err
	}
	if failed != nil && !interrupted { // it is told when it is noted
		r.logOf(e).Warn("a scheduled deposit failed; it is tried again", "error", stele.Reason(failed).Error())
	}
	return nil
}

func (r *Runner) logOf(e *Entry) *slog.Logger {
	return r.Log.With("escrow", e.Name, "place", e.Place.String())
}

// renew keeps the lease, and reports whether this server still has it. An error says that this is not known, and that the lease is not renewed.
func (r *Runner) renew(ctx context.Context, name string) (held bool, err error) {
	err = r.Schedule.ChangeDeposit(ctx, name, func(now *registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error) {
		if now == nil || now.Server != r.Server {
			return nil, errTaken
		}
		next := *now
		next.Until = r.Now().Add(r.Lease)
		return &next, nil
	})
	if errors.Is(err, errTaken) {
		return false, nil
	}
	return err == nil, err
}

// leave gives the entry back, with what became of it.
func (r *Runner) leave(ctx context.Context, e *Entry, state registrar.ScheduledDeposit, failed error, interrupted bool) error {
	return r.Schedule.ChangeDeposit(ctx, e.Name, func(now *registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error) {
		if now == nil || now.Server != r.Server {
			return now, nil
		}
		next := state
		next.Server, next.Until = "", time.Time{}
		if interrupted { // another server makes it as soon as one is there
			return &next, nil
		}
		next.Ended, next.Said = r.Now(), ""
		if failed == nil {
			next.Failures, next.Next = 0, r.Now().Add(e.Every)
			return &next, nil
		}
		next.Failures++
		next.Said, next.Next = stele.Reason(failed).Error(), r.Now().Add(min(lease.RetryAfter(next.Failures), max(e.Every, lease.RetryAfter(1))))
		return &next, nil
	})
}

// deposit makes a deposit if something has changed since the last, and checks it if that was not done for long. A deposit that is not whole is
// made again: that brings what is missing. It notes in state what it has done.
func (r *Runner) deposit(ctx context.Context, e *Entry, state *registrar.ScheduledDeposit) error {
	log := r.logOf(e)
	job, err := r.Job(ctx, e.Prefixes)
	if err != nil {
		return err
	}
	same, beside, err := r.isSame(ctx, job, state)
	if err != nil {
		return err
	}
	if same && r.isChecked(state) {
		return nil
	}
	to, err := e.Place.Open(e.Access)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	if err := r.isThere(ctx, to, state); err != nil {
		return err
	}
	if !same {
		if err := r.make(ctx, log, job, to, state); err != nil {
			return err
		}
		state.Beside = beside // of before: what was minted meanwhile is noticed the next time
	}
	if r.isChecked(state) {
		return nil
	}
	err = r.check(ctx, to, state.Deposit)
	if kind := stele.KindOf(err); kind == stele.NotFound || kind == stele.Invalid {
		log.Warn("a deposit is not whole; what is missing is brought again", "deposit", state.Deposit, "error", stele.Reason(err).Error())
		if job, err = r.Job(ctx, e.Prefixes); err != nil {
			return err
		}
		if err := r.make(ctx, log, job, to, state); err != nil {
			return err
		}
		err = r.check(ctx, to, state.Deposit)
	}
	if err != nil {
		return err
	}
	state.Checked = r.Now()
	log.Info("a deposit was checked, and is whole", "deposit", state.Deposit)
	return nil
}

// isSame reports whether a bundle made now is that of the last deposit, and returns the digest of what the change feed does not say.
func (r *Runner) isSame(ctx context.Context, job *bundle.Job, state *registrar.ScheduledDeposit) (same bool, beside string, err error) {
	generation, change, err := r.State(ctx)
	if err != nil {
		return false, "", err
	}
	if beside, err = job.Beside(ctx); err != nil {
		return false, "", err
	}
	return state.Deposit != "" && state.Generation == generation && state.Change == change && state.Beside == beside, beside, nil
}

// check reads all of a deposit.
func (r *Runner) check(ctx context.Context, to Destination, name string) error {
	o, err := r.Options(ctx)
	if err != nil {
		return err
	}
	list, err := readList(ctx, to, name)
	if err != nil {
		return err
	}
	_, err = (&Rebuild{From: to, List: list}).Check(ctx, o)
	return err
}

// isThere makes sure that the place still has the last deposit: it may be a folder in which a disk is not mounted at the moment.
func (r *Runner) isThere(ctx context.Context, to Destination, state *registrar.ScheduledDeposit) error {
	if state.Deposit == "" {
		return nil
	}
	all, err := All(ctx, to)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(k Kept) bool { return k.Name == state.Deposit }) {
		return failf(stele.Conflict, "deposit.last-missing", "{deposit}, which was made at {place}, is not there any more; is the disk mounted? To begin anew, give the place another name in the settings", state.Deposit, state.Place)
	}
	return nil
}

// make makes a deposit, or brings to the place what is missing of the last one.
func (r *Runner) make(ctx context.Context, log *slog.Logger, job *bundle.Job, to Destination, state *registrar.ScheduledDeposit) error {
	made, err := (&Job{Bundle: job, To: to, Now: r.Now()}).Make(ctx)
	if err != nil {
		return err
	}
	l := made.List
	state.Deposit, state.Deposited, state.Generation, state.Change = l.Name, l.At, l.Bundle.Generation, l.Bundle.Changes
	state.Records, state.Objects, state.Sent, state.Bytes = l.Records, len(l.Objects), made.Sent, made.Bytes
	if made.Same {
		log.Info("the last deposit is of the same bundle; no other is made", "deposit", state.Deposit, "new", state.Sent, "bytes", state.Bytes)
		return nil
	}
	log.Info("a scheduled deposit is made", "deposit", state.Deposit, "change", state.Change, "objects", state.Objects, "new", state.Sent, "bytes", state.Bytes)
	return nil
}
