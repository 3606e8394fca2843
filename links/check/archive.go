package check

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
)

const (
	copyEvery = 7 * day         // an archive is asked for a copy of a page
	copyGap   = 5 * time.Second // between two questions
	maxCopies = 1000            // questions that wait

	// fallBackAfter is how long a target must be broken before its copy takes its place, if the owner wants that.
	fallBackAfter = 30 * day
)

// archived is what an archive said.
type archived struct {
	key  key
	url  string
	copy links.Copy
	err  error
}

// brokenSince returns since when a target leads nowhere: it is broken or gone, or its host is down; zero if it does not.
func (w *worker) brokenSince(f *Finding) time.Time {
	if f.State == links.Broken.String() || f.State == links.Gone.String() {
		return f.Since
	}
	if f.State == links.Failing.String() {
		return w.line.Host(f.Host).Down
	}
	return time.Time{}
}

// wantCopy has an archive asked for a copy of a target that is broken, at most once a week. A copy that is known takes the place of a target that has been
// broken for long, if the owner of the namespace wants that.
func (w *worker) wantCopy(ctx context.Context, k key, f *Finding) error {
	since := w.brokenSince(f)
	if since.IsZero() || w.o.Archive == nil {
		return nil
	}
	if f.Copy != "" && w.now().Sub(since) >= fallBackAfter {
		if err := w.fallBack(ctx, k, f); err != nil {
			if endsWork(ctx, err) {
				return err
			}
			w.o.Log.Warn("a broken target can't be replaced by its archived copy", "target", string(k), "copy", f.Copy, "error", err.Error())
		}
	}
	if w.now().Sub(f.CopyAsked) >= copyEvery && len(w.copies) < maxCopies {
		w.copies = append(w.copies, k)
	}
	return nil
}

// nextCopy returns what an archive is to be asked next; false if there is nothing to ask now.
func (w *worker) nextCopy(ctx context.Context) (q archived, near time.Time, ok bool) {
	for !w.copying && len(w.copies) > 0 && !w.now().Before(w.copyAt) {
		k := w.copies[0]
		w.copies = w.copies[1:]
		value, err := w.o.Registrar.CheckCell(asServer(ctx), k.found())
		var f Finding
		if err != nil || !decode(w.Checker, k.found(), value, &f) || w.brokenSince(&f).IsZero() || w.now().Sub(f.CopyAsked) < copyEvery {
			continue
		}
		if near = f.Good; near.IsZero() {
			near = f.First
		}
		return archived{key: k, url: f.URL}, near, true
	}
	return q, near, false
}

// startCopy asks the archive in the background, one question at a time.
func (w *worker) startCopy(ctx context.Context, asking *sync.WaitGroup) {
	q, near, ok := w.nextCopy(ctx)
	if !ok {
		return
	}
	w.copying = true
	asking.Go(func() {
		q.copy, q.err = w.o.Archive(ctx, q.url, near)
		select {
		case w.archived <- q:
		case <-ctx.Done(): // it is asked again
		}
	})
}

// takeCopy keeps what an archive said. An archive that does not answer is left alone until targets are looked at again.
func (w *worker) takeCopy(ctx context.Context, a *archived) error {
	w.copying, w.copyAt = false, w.now().Add(copyGap)
	if a.err != nil {
		w.copies = nil
		w.o.Log.Warn("the archive gives no answer", "url", a.url, "error", a.err.Error())
		return nil
	}
	return w.keep(ctx, w.lease, func(b *batch) error {
		value, err := w.o.Registrar.CheckCell(asServer(ctx), a.key.found())
		var f Finding
		if err != nil || !decode(w.Checker, a.key.found(), value, &f) || f.URL != a.url {
			return err
		}
		f.CopyAsked = w.now()
		if a.copy.URL != "" && a.copy.URL != a.url {
			f.Copy, f.CopyAt = a.copy.URL, a.copy.At
		}
		return b.setJSON(ctx, a.key.found(), &f)
	})
}

// fallBack puts the copy of a target into its place, once: a user who reverts that does not want it.
func (w *worker) fallBack(ctx context.Context, k key, f *Finding) error {
	id, _, err := k.parse()
	if err != nil {
		return err
	}
	space, err := w.space(ctx, id)
	if err != nil || space == nil || !space.FallBack {
		return err
	}
	mark := fmt.Sprintf("%s%s\t%s\t%016x", copiedCells, id.Scheme(), id, links.Hash(f.URL))
	if value, err := w.o.Registrar.CheckCell(asServer(ctx), mark); err != nil || value != nil {
		return err
	}
	held, ok := w.lease.held()
	if !ok {
		return errLost
	}
	when := []byte(w.now().Format(time.RFC3339))
	used, err := w.o.Registrar.UseCopy(asServer(ctx), id, f.URL, f.Copy, stele.CellChange{Name: mark, After: when}, stele.CellChange{Name: leaseCell, Before: held, After: held})
	if errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed) {
		return nil // the record changed, or the lease was renewed; it is tried again tomorrow
	}
	if used {
		w.o.Log.Info("an archived copy took the place of a target that has been broken for 30 days", "id", id.String(), "target", f.URL, "copy", f.Copy)
	}
	return err
}
