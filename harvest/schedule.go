package harvest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// Schedule keeps the harvests that servers do from time to time: a registrar.
type Schedule interface {
	Harvests(ctx context.Context) ([]registrar.ScheduledHarvest, error)
	ChangeHarvest(ctx context.Context, name string, change func(before *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error)) error
}

// Users returns the principal of a user as it is now, and an error of the kind Unauthenticated if the user may not sign in: an
// [auth.Directory].
type Users interface {
	Principal(ctx context.Context, user string) (auth.Principal, error)
}

// Runner does scheduled harvests on one of the servers of a registry, one after the other. A lease makes sure that no other server does
// the same harvest; if it fails to, the bookmark does: what the second one writes is refused.
type Runner struct {
	Schedule Schedule
	To       Ruled
	Users    Users
	Schemes  *stele.Schemes
	Client   func() *Client // a new one for each harvest
	Now      func() time.Time
	Log      *slog.Logger
	Server   string        // names this server, other than all others
	Lease    time.Duration // how long a server that has died keeps a harvest
	Tick     time.Duration // how often it looks for what is due; half a minute if 0

	Rejected func(item *Item, err error) // is told of each record of which nothing is written; may be nil
}

// A harvest that failed is tried again after firstRetry, and after twice the time each further time, up to lastRetry.
const (
	firstRetry = 5 * time.Minute
	lastRetry  = 24 * time.Hour
)

// retryAfter returns how long a harvest waits that failed so many times, one after the other.
func retryAfter(failures int) time.Duration {
	return min(firstRetry<<min(max(failures-1, 0), 20), lastRetry)
}

// Run does what is due until the context ends. A harvest that is under way then goes on later, at the page where it was. The context
// is that of the server itself.
func (r *Runner) Run(ctx context.Context) {
	every := r.Tick
	if every == 0 {
		every = 30 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := r.Look(ctx); err != nil && ctx.Err() == nil {
			r.Log.Debug("scheduled harvests can't be read", "error", err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// Look does the harvests that are due now.
func (r *Runner) Look(ctx context.Context) error {
	list, err := r.Schedule.Harvests(ctx)
	if err != nil {
		return err
	}
	for _, h := range list {
		if ctx.Err() != nil || !r.isDue(&h) || !r.isFree(&h) {
			continue
		}
		if _, err := r.do(ctx, h.Name, false, false); err != nil && ctx.Err() == nil {
			r.Log.Warn("a scheduled harvest can't be done; it is tried again", "harvest", h.Name, "error", err.Error())
		}
	}
	return nil
}

// isDue reports whether servers should do a harvest now.
func (r *Runner) isDue(h *registrar.ScheduledHarvest) bool {
	return h.Asked || h.Waits == "" && !r.Now().Before(h.Next)
}

// isFree reports whether no server works on a harvest. A lease that ends much later than leases do was taken by a clock that was ahead.
func (r *Runner) isFree(h *registrar.ScheduledHarvest) bool {
	return h.Server == "" || !r.Now().Before(h.Until) || h.Until.Sub(r.Now()) > 10*r.Lease+time.Hour
}

// errTaken says that another server has the harvest.
var errTaken = refuse(stele.Conflict, "harvest.lease-lost", "another server does this harvest now, or it was stopped; look at it with 'stele harvest ls'")

// RunNow does a harvest that a person asks for, whether or not it is due or waits for a person; with yes it withdraws all that is
// deleted. It returns what became of it. Conflict if another server does it at the moment.
func (r *Runner) RunNow(ctx context.Context, name string, yes bool) (said string, err error) {
	return r.do(ctx, name, true, yes)
}

// do takes a harvest, and does it. One that is not due, and that no person asks for, is left.
func (r *Runner) do(ctx context.Context, name string, asked, yes bool) (said string, err error) {
	var h registrar.ScheduledHarvest
	agreed := yes
	err = r.Schedule.ChangeHarvest(ctx, name, func(now *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
		switch {
		case now == nil && asked:
			return nil, refuse(stele.NotFound, "harvest.missing", `there is not a harvest "{name}"; 'stele harvest ls' lists them`, name)
		case now == nil, !r.isFree(now), !asked && !r.isDue(now):
			return now, errTaken
		}
		next := *now
		next.Server, next.Until, next.Began = r.Server, r.Now().Add(r.Lease), r.Now()
		next.Asked, next.Yes = false, false
		h, agreed = next, yes || now.Yes
		return &next, nil
	})
	if errors.Is(err, errTaken) && !asked {
		return "", nil
	} else if err != nil {
		return "", err
	}
	inner, lose := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { r.renew(inner, name, lose) })
	said, err = r.harvest(inner, &h, agreed)
	lost := errors.Is(context.Cause(inner), errTaken)
	lose(nil)
	renewing.Wait()
	if lost && !asked {
		return "", nil // another server has it, or it was stopped
	} else if lost {
		return "", errTaken
	}
	if failed := r.leave(context.WithoutCancel(ctx), name, said, err, ctx.Err() != nil); failed != nil {
		return said, failed
	}
	if !asked {
		return said, nil // it is logged, and kept with the harvest
	}
	return said, err
}

// renew keeps the lease.
func (r *Runner) renew(ctx context.Context, name string, lost func(error)) {
	tick := time.NewTicker(max(r.Lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := r.Schedule.ChangeHarvest(ctx, name, func(now *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
			if now == nil || now.Server != r.Server {
				return now, errTaken
			}
			next := *now
			next.Until = r.Now().Add(r.Lease)
			return &next, nil
		})
		if errors.Is(err, errTaken) {
			lost(errTaken)
			return
		}
	}
}

// leave gives the harvest back, with what became of it.
func (r *Runner) leave(ctx context.Context, name, said string, failed error, interrupted bool) error {
	return r.Schedule.ChangeHarvest(ctx, name, func(now *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
		if now == nil || now.Server != r.Server {
			return now, nil
		}
		next := *now
		next.Server, next.Until = "", time.Time{}
		if interrupted { // it goes on as soon as a server is there
			return &next, nil
		}
		next.Ended, next.Said, next.Waits = r.Now(), said, ""
		if failed == nil {
			next.Failures, next.Next = 0, r.Now().Add(next.Every)
			return &next, nil
		}
		next.Failures++
		next.Next = r.Now().Add(retryAfter(next.Failures))
		if _, many := errors.AsType[*TooManyError](failed); many {
			next.Waits, next.Failures = registrar.HarvestWaitsDeleted, 0
		} else if _, lacks := errors.AsType[*rightsError](failed); lacks {
			next.Waits, next.Failures = registrar.HarvestWaitsRights, 0
		}
		return &next, nil
	})
}

// harvest does a harvest, and says what became of it.
func (r *Runner) harvest(ctx context.Context, s *registrar.ScheduledHarvest, yes bool) (said string, err error) {
	first := ""
	o := Options{To: &asUser{Ruled: r.To, users: r.Users, user: s.By, into: s.Into()}, Yes: yes, Schemes: r.Schemes, Client: r.Client(), Source: Source{URL: s.URL, Format: Format(s.Format), Set: s.Set}, Into: s.Into(), Limit: s.Limit,
		Rejected: func(item *Item, err error) {
			if r.Rejected != nil {
				r.Rejected(item, err)
			}
			if first == "" {
				first = brief(item.Identifier) + ": " + brief(stele.Reason(err).Error())
			}
		}}
	h, err := New(ctx, o)
	if err == nil {
		err = h.Run(ctx)
		if code, _ := stele.CodeOf(err); code == "harvest.token-refused" && ctx.Err() == nil {
			o.Client, o.Again = r.Client(), true // the place is lost, and what is there stays
			if h, err = New(ctx, o); err == nil {
				err = h.Run(ctx)
			}
		}
	}
	if h != nil {
		c, _ := h.Counts()
		said = fmt.Sprintf("%d new, %d updated, %d unchanged, %d withdrawn, %d rejected", c.New, c.Updated, c.Unchanged, c.Withdrawn, c.Rejected)
	}
	if many, ok := errors.AsType[*TooManyError](err); ok {
		said = fmt.Sprintf("%d of %d names would be withdrawn, more than the limit of %g %%; none of them is", many.Deleted, many.All, many.Limit*100)
	} else if err != nil {
		said = brief(stele.Reason(err).Error())
	} else if first != "" {
		said += "; first " + first
	}
	log := r.Log.With("harvest", s.Name, "url", s.URL, "result", said)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn("a scheduled harvest failed")
	default:
		log.Info("a scheduled harvest is done")
	}
	return said, err
}
