package check

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
)

const (
	farDays       = 30  // to which targets beyond a quota are put off at most: the owner may give a larger one meanwhile
	pausedAMinute = 100 // targets of a pause that come back in a minute
)

// quota is how much of the checks of a namespace is spent. What counts after a restart is kept with each result.
type quota struct {
	Day  int64 `json:"day"`
	Done int   `json:"done"` // targets that were asked on that day

	// Targets beyond the quota are put off to the first day that has room for them, so that they are not put off again on each day.
	Last   int64 `json:"last,omitempty"`   // the last day that has some of them
	Booked int   `json:"booked,omitempty"` // how many

	used   int // targets that are in the line, and those that were asked
	paused int // targets that were put off because of a pause
	far    int // targets that were put off, and found no day with room
	dirty  bool
}

func quotaCell(of stele.NamespaceKey) string { return quotaCells + of.Scheme + "\t" + of.Prefix }

func dayOf(at time.Time) int64 { return at.Unix() / int64(day/time.Second) }

// quota returns what is spent today of a namespace.
func (w *worker) quota(ctx context.Context, of stele.NamespaceKey) (*quota, error) {
	q := w.quotas[of]
	if q == nil {
		value, err := w.o.Registrar.CheckCell(asServer(ctx), quotaCell(of))
		if err != nil {
			return nil, err
		}
		q = new(quota)
		decode(w.Checker, quotaCell(of), value, q)
		q.used = q.Done
		w.quotas[of] = q
	}
	if today := dayOf(w.now()); q.Day != today {
		q.Day, q.Done, q.used, q.paused = today, 0, 0, 0
	}
	return q, nil
}

// putOffUntil returns until when a target is not asked by the settings of its namespace: its host is paused, or the quota is spent. Zero if it is asked.
func (w *worker) putOffUntil(ctx context.Context, l *registrar.LinkChecks, t *links.Task) (time.Time, error) {
	now := w.now()
	q, err := w.quota(ctx, l.Key())
	if err != nil {
		return time.Time{}, err
	}
	if until := l.PausedUntil(t.Host, now); !until.IsZero() {
		if until.Sub(now) > day { // the owner may end the pause before
			until = now.Add(day)
		}
		q.paused++
		return until.Add(time.Duration(q.paused/pausedAMinute) * time.Minute), nil
	}
	if l.Quota == 0 || q.used < l.Quota {
		return time.Time{}, nil
	}
	return time.Unix(q.book(l.Quota, t.Rank)*int64(day/time.Second), 0).UTC(), nil
}

// book returns the day to which a target is put off. One that failed comes back on the next day, whatever else waits: the next answer decides.
func (q *quota) book(most int, rank links.Rank) int64 {
	if rank < links.Routine {
		return q.Day + 1
	}
	if q.Last <= q.Day {
		q.Last, q.Booked = q.Day+1, 0
	}
	if q.Booked >= most {
		if q.Last >= q.Day+farDays {
			q.far++
			return q.Day + 1 + int64(q.far%farDays)
		}
		q.Last, q.Booked = q.Last+1, 0
	}
	q.Booked++
	q.dirty = true
	return q.Last
}

// unspend gives back the part of a quota that a target had which leaves the line without having been asked.
func (w *worker) unspend(p *waiting) {
	if q := w.quotas[p.space]; q != nil && q.Day == p.day && q.used > q.Done {
		q.used--
	}
}

// keepQuotas adds to a batch what changed of the quotas.
func (w *worker) keepQuotas(ctx context.Context, b *batch) error {
	for of, q := range w.quotas {
		if !q.dirty {
			continue
		}
		if err := b.setJSON(ctx, quotaCell(of), q); err != nil {
			return err
		}
	}
	return nil
}

// keptQuotas says that what keepQuotas added was committed.
func (w *worker) keptQuotas() {
	for _, q := range w.quotas {
		q.dirty = false
	}
}

// spend counts a target of a name that was asked. It does nothing where there is no quota.
func (w *worker) spend(ctx context.Context, id stele.ID) error {
	l, err := w.space(ctx, id)
	if err != nil || l == nil || l.Quota == 0 {
		return err
	}
	q, err := w.quota(ctx, l.Key())
	if err != nil {
		return err
	}
	q.Done++
	q.used, q.dirty = max(q.used, q.Done), true
	return nil
}
