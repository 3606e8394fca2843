package check

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
)

const (
	copyEvery = 7 * day         // an archive is asked for a copy of a page
	copyGap   = 5 * time.Second // between two questions
	copyPause = time.Hour       // after a question that the archive did not answer
	maxCopies = 1000            // questions that wait

	// fallBackAfter is how long a target must be broken before its copy takes its place, if the owner wants that.
	fallBackAfter = 30 * day

	// lately is how long ago it may have been seen to be broken then. What is broken is asked once a week.
	lately = 8 * day
)

// archived is a question about an archived copy, and its answer.
type archived struct {
	key  key
	url  string
	near time.Time
	copy links.Copy
	use  bool // the copy is known, and is to be used if it can be read
	read bool // it can
	err  error
}

// outage returns since when a target leads nowhere, and when that was seen last: it is broken or gone, or its host is down. Both are zero if
// that is not so.
func (w *worker) outage(f *Finding, s *links.Status) (since, last time.Time) {
	switch {
	case s.URL != links.Hash(f.URL):
	case s.State == links.Broken, s.State == links.Gone:
		return s.Since, s.Row.Last
	case s.State == links.Failing:
		h := w.line.Host(f.Host)
		return h.Down, h.Row.Last
	}
	return since, last
}

// lost is a target that leads nowhere, of a record that the public may see, and whose checks are on.
type lost struct {
	finding Finding
	value   []byte // of the cell of the finding
	since   time.Time
	last    time.Time // when that was seen
	space   *registrar.LinkChecks
	record  *stele.Record
}

// lost reads what is known of a target for which an archive may be asked; nil if it may not: the target works, or its owner has switched checks off or
// paused them, or its address is not for the public.
func (w *worker) lost(ctx context.Context, k key) (*lost, error) {
	id, _, err := k.parse()
	if err != nil {
		return nil, err
	}
	l := &lost{}
	if l.value, err = w.o.Registrar.CheckCell(asServer(ctx), k.found()); err != nil || !decode(w.Checker, k.found(), l.value, &l.finding) {
		return nil, err
	}
	s, _, err := w.status(ctx, k)
	if err != nil {
		return nil, err
	}
	if l.since, l.last = w.outage(&l.finding, &s); l.since.IsZero() {
		return nil, nil
	}
	if l.space, err = w.space(ctx, id); err != nil || l.space == nil || !l.space.PausedUntil(l.finding.Host, w.now()).IsZero() {
		return nil, err
	}
	if l.record, err = w.o.Store.Record(ctx, id); err != nil || !l.record.IsPublic() || !isOf(l.record, &l.finding) {
		return nil, err
	}
	return l, nil
}

// isRipe reports whether a copy may take the place of a target: the target was seen to be broken for long, and lately. A server that was switched off
// does not know what happened meanwhile.
func (w *worker) isRipe(l *lost) bool {
	return l.space.FallBack && l.finding.Copy != "" && l.last.Sub(l.since) >= fallBackAfter && w.now().Sub(l.last) <= lately &&
		registrar.TakesCopy(l.record, l.finding.URL, l.finding.Copy)
}

// wantCopy has an archive asked for a copy of a target that is broken, at most once a week. A copy that is known takes the place of a target that has been
// broken for long, if the owner of the namespace wants that and the copy can be read. It reports false if there is no room for the question.
func (w *worker) wantCopy(ctx context.Context, k key) (bool, error) {
	if w.o.Archive == nil {
		return true, nil
	}
	l, err := w.lost(ctx, k)
	if err != nil || l == nil {
		if err != nil && !endsWork(ctx, err) {
			w.o.Log.Warn("no archive can be asked for a copy of a broken target", "target", string(k), "error", err.Error())
			err = nil
		}
		return true, err
	}
	if !w.isRipe(l) && w.now().Sub(l.finding.CopyAsked) < copyEvery {
		return true, nil
	}
	if len(w.copies) >= maxCopies {
		return false, nil
	}
	w.copies = append(w.copies, k)
	return true, nil
}

// nextCopy returns what an archive is to be asked next; false if there is nothing to ask now.
func (w *worker) nextCopy(ctx context.Context) (q archived, ok bool) {
	for !w.copying && len(w.copies) > 0 && !w.now().Before(w.copyAt) {
		k := w.copies[0]
		w.copies = w.copies[1:]
		l, err := w.lost(ctx, k)
		if err != nil || l == nil {
			continue // the next sweep finds it
		}
		q = archived{key: k, url: l.finding.URL, near: l.finding.Good}
		if w.now().Sub(l.finding.CopyAsked) >= copyEvery {
			if q.near.IsZero() {
				q.near = l.finding.First
			}
			return q, true
		}
		if value, err := w.o.Registrar.CheckCell(asServer(ctx), copiedCell(l)); err == nil && value == nil && w.isRipe(l) {
			q.copy, q.use = links.Copy{URL: l.finding.Copy, At: l.finding.CopyAt}, true
			return q, true
		}
	}
	return q, false
}

// askCopy asks the archive for a copy, or whether the one that is known can be read.
func (w *worker) askCopy(ctx context.Context, q *archived) {
	if !q.use {
		q.copy, q.err = w.o.Archive(ctx, q.url, q.near)
		return
	}
	answer, _ := w.o.Ask(ctx, q.copy.URL, ask.Known{})
	e := w.o.Rules.Judge(answer)
	q.read = e.Weight == links.Good
}

// startCopy asks the archive in the background, one question at a time.
func (w *worker) startCopy(ctx context.Context, asking *sync.WaitGroup) {
	q, ok := w.nextCopy(ctx)
	if !ok {
		return
	}
	w.copying = true
	asking.Go(func() {
		w.askCopy(ctx, &q)
		select {
		case w.archived <- q:
		case <-ctx.Done(): // it is asked again
		}
	})
}

// takeCopy keeps what an archive said. An archive that does not answer is left alone for a while; one that refuses an address is asked for the others.
func (w *worker) takeCopy(ctx context.Context, a *archived) error {
	w.copying, w.copyAt = false, w.now().Add(copyGap)
	if a.use {
		return w.fallBack(ctx, a)
	}
	if a.err != nil {
		w.o.Log.Warn("the archive gives no answer", "url", a.url, "error", a.err.Error())
		if stele.KindOf(a.err) == stele.Unavailable {
			w.copyAt = w.now().Add(copyPause)
			return nil
		}
	}
	return w.keep(ctx, w.lease, func(b *batch) error {
		value, err := b.read(ctx, a.key.found())
		var f Finding
		if err != nil || !decode(w.Checker, a.key.found(), value, &f) || f.URL != a.url {
			return err
		}
		f.CopyAsked = w.now()
		if a.err == nil {
			f.Copy, f.CopyAt = "", time.Time{}
			if a.copy.URL != a.url {
				f.Copy, f.CopyAt = a.copy.URL, a.copy.At
			}
		}
		return b.setJSON(ctx, a.key.found(), &f)
	})
}

// copiedCell returns the name of the cell that says that a target was replaced by a copy.
func copiedCell(l *lost) string {
	return fmt.Sprintf("%s%s\t%s\t%016x", copiedCells, l.record.ID.Scheme(), l.record.ID, links.Hash(l.finding.URL))
}

// fallBack puts the copy of a target into its place if the copy can be read, once: a user who reverts that does not want it. What is not as it was when
// the question was asked is looked at again by the next sweep.
func (w *worker) fallBack(ctx context.Context, a *archived) error {
	l, err := w.lost(ctx, a.key)
	if err == nil && l != nil && l.finding.URL == a.url && l.finding.Copy == a.copy.URL && w.isRipe(l) {
		if !a.read {
			w.o.Log.Warn("a broken target is not replaced, since its archived copy can't be read", "target", string(a.key), "copy", a.copy.URL)
			return nil
		}
		err = w.useCopy(ctx, a.key, l)
	}
	if err != nil && !endsWork(ctx, err) {
		w.o.Log.Warn("a broken target can't be replaced by its archived copy", "target", string(a.key), "copy", a.copy.URL, "error", err.Error())
		return nil
	}
	return err
}

// useCopy changes the record.
func (w *worker) useCopy(ctx context.Context, k key, l *lost) error {
	held, ok := w.lease.held()
	if !ok {
		return errLost
	}
	id, f := l.record.ID, &l.finding
	used, err := w.o.Registrar.UseCopy(asServer(ctx), id, f.URL, f.Copy, stele.CellChange{Name: copiedCell(l), After: []byte(w.now().Format(time.RFC3339))},
		stele.CellChange{Name: k.found(), Before: l.value, After: l.value}, stele.CellChange{Name: leaseCell, Before: held, After: held})
	if errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed) {
		return nil // the record or what is known of the target changed, or it was replaced before, or the lease was renewed; it is tried again tomorrow
	}
	if used {
		w.o.Log.Info("an archived copy took the place of a target that has been broken for 30 days", "id", id.String(), "target", f.URL, "copy", f.Copy)
	}
	return err
}
