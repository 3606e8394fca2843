package harvest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/lease"
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

// Runner does scheduled harvests on one of the servers of a registry, a few at a time, so that a slow repository does not hold up the
// others. It does one at a time of those that ask the same host, and of those that write into the same namespace. A lease makes sure that
// no other server does the same harvest; if it fails to, the bookmark does: what the second one writes is refused.
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

	Rejected func(item *Item, err error) // is told of each record of which nothing is written, by several harvests at once; may be nil
}

// Limits on scheduled harvests.
const (
	atOnce          = 4         // on a server
	maxWaitedOnTime = time.Hour // for a repository that is busy, in a run; then the run ends and goes on later
)

// Run does what is due until the context ends. A harvest that is under way then goes on later, at the page where it was. The context
// is that of the server itself.
func (r *Runner) Run(ctx context.Context) {
	u := newUnderWay()
	lease.Often(ctx, cmp.Or(r.Tick, 30*time.Second), func(ctx context.Context) {
		if _, err := r.begin(ctx, u, make(map[string]bool)); err != nil && ctx.Err() == nil {
			r.Log.Debug("scheduled harvests can't be read", "error", err.Error())
		}
	})
	u.all.Wait()
}

// Look does the harvests that are due now, each once, and returns when they are done.
func (r *Runner) Look(ctx context.Context) error {
	u, begun := newUnderWay(), make(map[string]bool)
	for {
		left, err := r.begin(ctx, u, begun)
		u.all.Wait()
		if err != nil || left == 0 || ctx.Err() != nil {
			return err
		}
	}
}

// begin begins harvests that are due, and for which there is room: first those that a person asks for, and then the ones that are due for
// the longest time. It leaves those that were begun before, and returns for how many there is no room.
func (r *Runner) begin(ctx context.Context, u *underWay, begun map[string]bool) (left int, err error) {
	list, err := r.Schedule.Harvests(ctx)
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(list, func(a, b registrar.ScheduledHarvest) int {
		if a.Asked != b.Asked {
			if a.Asked {
				return -1
			}
			return 1
		}
		return a.Next.Compare(b.Next)
	})
	for _, h := range list {
		if ctx.Err() != nil || begun[h.Name] || !r.isDue(&h) || !r.isFree(&h) {
			continue
		}
		end, ok := u.enter(&h)
		if !ok {
			left++
			continue
		}
		begun[h.Name] = true
		u.all.Go(func() {
			defer end()
			if _, err := r.do(ctx, h.Name, false, false); err != nil && ctx.Err() == nil {
				r.Log.Warn("a scheduled harvest can't be done; it is tried again", "harvest", h.Name, "error", err.Error())
			}
		})
	}
	return left, nil
}

// underWay are the harvests that a runner does at the moment.
type underWay struct {
	all   sync.WaitGroup
	mu    sync.Mutex
	n     int
	taken map[string]bool // hosts and namespaces
}

func newUnderWay() *underWay { return &underWay{taken: make(map[string]bool)} }

// enter takes a place for a harvest, if there is one. The caller gives it back with end.
func (u *underWay) enter(h *registrar.ScheduledHarvest) (end func(), ok bool) {
	host := h.URL
	if at, err := url.Parse(h.URL); err == nil {
		host = strings.ToLower(at.Hostname())
	}
	host, into := "host "+host, "namespace "+h.Scheme+" "+h.Prefix
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == atOnce || u.taken[host] || u.taken[into] {
		return nil, false
	}
	u.n++
	u.taken[host], u.taken[into] = true, true
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.n--
		delete(u.taken, host)
		delete(u.taken, into)
	}, true
}

// isDue reports whether servers should do a harvest now.
func (r *Runner) isDue(h *registrar.ScheduledHarvest) bool {
	return h.Asked || h.Waits == "" && !r.Now().Before(h.Next)
}

// isFree reports whether no server works on a harvest.
func (r *Runner) isFree(h *registrar.ScheduledHarvest) bool {
	return lease.IsFree(h.Server, h.Until, r.Now())
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
	renew := func(ctx context.Context) (bool, error) { return r.renew(ctx, name) }
	went := false
	lost := lease.Keep(ctx, r.Lease, renew, func(ctx context.Context) { said, went, err = r.harvest(ctx, &h, asked, agreed) })
	if lost && !asked {
		return "", nil // another server has it or may have it, or it was stopped
	} else if lost {
		return "", errTaken
	}
	if failed := r.leave(context.WithoutCancel(ctx), name, said, err, went, ctx.Err() != nil); failed != nil {
		return said, failed
	}
	if !asked {
		return said, nil // it is logged, and kept with the harvest
	}
	return said, err
}

// renew keeps the lease, and reports whether this server still has it. An error says that this is not known, and that the lease is not renewed.
func (r *Runner) renew(ctx context.Context, name string) (held bool, err error) {
	err = r.Schedule.ChangeHarvest(ctx, name, func(now *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
		if now == nil || now.Server != r.Server {
			return now, errTaken
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

// leave gives the harvest back, with what became of it, and whether it got on.
func (r *Runner) leave(ctx context.Context, name, said string, failed error, went, interrupted bool) error {
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
		if next.Failures++; went && errors.Is(failed, errSlow) { // a repository that always wants its harvesters to wait is harvested bit by bit
			next.Failures = 1
		}
		next.Next = r.Now().Add(lease.RetryAfter(next.Failures))
		if _, many := errors.AsType[*TooManyError](failed); many {
			next.Waits, next.Failures = registrar.HarvestWaitsDeleted, 0
		} else if _, lacks := errors.AsType[*rightsError](failed); lacks {
			next.Waits, next.Failures = registrar.HarvestWaitsRights, 0
		}
		return &next, nil
	})
}

// harvest does a harvest, and says what became of it, and whether it wrote a page. One for which no person waits does not wait long for
// the repository.
func (r *Runner) harvest(ctx context.Context, s *registrar.ScheduledHarvest, asked, yes bool) (said string, went bool, err error) {
	first := ""
	client := func() *Client {
		c := r.Client()
		if !asked {
			c.mostWaited = maxWaitedOnTime
		}
		return c
	}
	o := Options{To: &asUser{Ruled: r.To, users: r.Users, user: s.By, into: s.Into()}, Yes: yes, Schemes: r.Schemes, Client: client(), Source: Source{URL: s.URL, Format: Format(s.Format), Set: s.Set}, Into: s.Into(), Limit: s.Limit,
		Told: func(Counts) { went = true },
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
			o.Client, o.Again = client(), true // the place is lost, and what is there stays
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
	return said, went, err
}
