package check

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
)

// waits returns how many targets are in memory that users wait for, and how many others. Neither keeps the other out.
func (w *worker) waits() (wanted, others int) {
	for _, p := range w.pending {
		if p.urgent {
			wanted++
		} else {
			others++
		}
	}
	return wanted, others
}

// isCrowded reports whether users wait for enough targets of a domain: it is asked every 5 seconds, and others should not have to read past it.
func (w *worker) isCrowded(domain string) bool {
	n := 0
	for _, p := range w.pending {
		if p.urgent && p.domain == domain {
			n++
		}
	}
	return n >= maxUrgent
}

// fillDue puts targets into the line that are due at another time than their turn: first those that users wait for.
func (w *worker) fillDue(ctx context.Context) error {
	asked := fmt.Sprintf("%s%010x", dueCells, askedNow.Unix())
	var err error
	if w.asked, err = w.fillFrom(ctx, asked+" ", w.asked); err != nil {
		return err
	}
	_, err = w.fillFrom(ctx, dueCells, asked+"!") // which comes after all of these
	return err
}

// fillFrom does that for the cells whose names begin with a text and come after another. It reads some of them, and returns the last one that it read if there are more: what
// users wait for is read from there on the next time. Else a user who asks for many names of one domain, which wait for each other, would keep out all whose names come after these.
func (w *worker) fillFrom(ctx context.Context, prefix, after string) (last string, err error) {
	now := w.now()
	read, before, more := 0, "", ""
	urgents, others := w.waits()
	for c, err := range w.o.Registrar.CheckList(asServer(ctx), prefix, after) {
		if err != nil {
			return "", err
		}
		at, k, err := parseDue(c.Name)
		if err != nil {
			if err := w.remove(ctx, c.Name); err != nil {
				return "", err
			}
			continue
		}
		wanted := string(c.Value) == urgent
		if at.After(now) || !wanted && others >= maxPending {
			break
		}
		if read++; read > 2*maxPending {
			more = before
			break
		}
		before = c.Name
		if wanted && urgents >= maxPending && w.pending[k] == nil {
			continue
		}
		if p := w.pending[k]; p != nil && wanted && !p.urgent && !w.isCrowded(p.domain) {
			p.urgent = true
			if t, ok, err := w.target(ctx, k); err == nil && ok {
				w.line.Raise(stele.Target{URL: t.url}.Host(), t.url)
			}
		}
		if w.pending[k] != nil || w.isResting(k, now) || w.askedOnly && !wanted {
			continue
		}
		if err := w.add(ctx, k, c.Name, wanted); err != nil {
			if err := w.rest(ctx, k, err); err != nil {
				return "", err
			}
		}
		switch {
		case w.pending[k] == nil:
		case wanted:
			urgents++
		default:
			others++
		}
	}
	return more, w.flush(ctx)
}

// fillWheel puts targets into the line whose turn has come. How far it came is kept when all of them are checked.
func (w *worker) fillWheel(ctx context.Context) error {
	if _, others := w.waits(); len(w.wheel) > 0 || others >= maxPending || !w.converted {
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

// slots yields what is known of the targets of a part of the turn, and reads no others.
func (c *Checker) slots(ctx context.Context, from, last int, damaged func(place string)) iter.Seq2[state, error] {
	return c.states(ctx, fmt.Sprintf("%04x", from), fmt.Sprintf("%04x\xff", last), damaged)
}

// CountDue returns how many targets are due in their turn between two times, less than a turn apart. It reads what is known of these, and of no others.
func (c *Checker) CountDue(ctx context.Context, from, to time.Time) (n int, err error) {
	first, last := slotOf(from), slotOf(to)
	parts := [][2]int{{first, last}}
	if last < first {
		parts = [][2]int{{first, slots - 1}, {0, last}}
	}
	for _, part := range parts {
		for known, err := range c.slots(ctx, part[0], part[1], func(string) {}) {
			if err != nil {
				return n, err
			}
			if s, err := links.ReadStatus(known.value); err == nil && !s.Next.After(to) {
				n++
			}
		}
	}
	return n, nil
}

// readSlots adds what is due of a part of the turn.
func (w *worker) readSlots(ctx context.Context, from, last int) error {
	var damaged []string
	for known, err := range w.slots(ctx, from, last, func(place string) { damaged = append(damaged, place) }) {
		if err != nil {
			return err
		}
		k := known.key()
		if _, _, err := k.parse(); err != nil {
			damaged = append(damaged, known.place)
			continue
		}
		s, ok := w.readStatus(k, known.value)
		if !ok {
			s = links.Status{}
		}
		if w.pending[k] != nil || w.isResting(k, w.now()) || s.Next.After(w.now()) {
			continue
		}
		if err := w.add(ctx, k, "", false); err != nil {
			if err := w.rest(ctx, k, err); err != nil {
				return err
			}
		}
		if w.pending[k] != nil {
			w.wheel[k] = true
		}
	}
	if len(damaged) > 0 {
		if err := w.mend(ctx, damaged); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// mend writes damaged blocks anew, with what can be read of them.
func (w *worker) mend(ctx context.Context, places []string) error {
	return w.keep(ctx, w.lease, func(b *batch) error {
		for _, place := range places {
			bl, err := b.block(ctx, place)
			if err != nil {
				return err
			}
			before := len(bl.states)
			bl.states = slices.DeleteFunc(bl.states, func(s state) bool {
				_, _, err := s.key().parse()
				return err != nil
			})
			bl.dirty = bl.dirty || len(bl.states) < before
		}
		return nil
	})
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
	domain := links.Domain(task.Host)
	switch {
	case wanted && w.isCrowded(domain): // the cell stays, and is looked at again
		w.resting[k] = now.Add(2 * time.Minute)
		return nil
	case wanted:
		task.Rank = links.Urgent
	case s.State == links.Failing:
		task.Rank = links.Retried
	}
	var later time.Time
	if space != nil && !wanted {
		if later, err = w.putOffUntil(ctx, space, &task); err != nil {
			return err
		}
	}
	cause := links.NoCause
	if wanted {
		if later, cause = w.line.Rests(now), links.OwnFault; later.IsZero() {
			cause = links.AskedToWait
		}
	}
	if later.IsZero() {
		if later, ok = w.line.Add(task, now); ok {
			p := &waiting{due: due, urgent: wanted, domain: domain}
			w.pending[k] = p
			if space != nil {
				q, err := w.quota(ctx, space.Key())
				if err != nil {
					return err
				}
				q.used++
				p.space, p.day = space.Key(), q.Day
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
	w.later = append(w.later, postponement{t, due, later, cause})
	return nil
}
