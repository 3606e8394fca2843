package check

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
)

// Names may have the same target: one answer is for all of them. The first name of a task is asked again in its turn, and the others, its siblings, a whole turn
// later, so that each answer for the first one comes before their turns do. If the first one is withdrawn, one of the others takes its place.
const (
	maxSiblings    = 500 // names of a target that one answer is kept for; others are asked themselves
	siblingsAtOnce = 100 // in one commit
)

// sight is an answer, and what is kept of it.
type sight struct {
	*answered
	evidence *links.Evidence
	host     *links.Host // what was known of the host before
	now      time.Time
	print    links.Print // of the first target
}

// apply adds an answer to what is known of a target.
func (b *batch) apply(ctx context.Context, t *target, before *links.Status, seen *sight, isSibling bool) error {
	s, k := *before, t.key
	if s.URL != links.Hash(t.url) {
		s = links.Status{URL: links.Hash(t.url)}
	}
	s.Add(seen.evidence, links.Target{Key: k.hash(), Unchanging: t.unchanging, Signed: t.signed, Servers: seen.moved}, seen.host.Answered, seen.now)
	unchanged := seen.answer.Status == http.StatusNotModified
	s.Large = ask.IsLarge(seen.answer) || s.Large && unchanged
	switch {
	case !isSibling:
		seen.print = s.Print
	case unchanged && s.Print == (links.Print{}): // what is not modified is what is known of the first one
		s.Print = seen.print
	}
	if isSibling && s.Next.Equal(links.Slot(k.hash(), seen.now)) {
		s.Next = links.Slot(k.hash(), seen.now.Add(links.Turn))
	}
	s.Next = round(s.Next.Add(time.Minute - 1))
	return b.setStatus(ctx, t, before, &s, seen.evidence)
}

// tellSiblings keeps an answer for other names that have the same target and are checked. What is promised not to change is asked for itself, since it is read
// in another way.
func (w *worker) tellSiblings(ctx context.Context, seen *sight) error {
	if e := seen.evidence; e.Cause == links.AskedToWait || e.Cause == links.OwnFault {
		return nil // that is not about the target
	}
	var list []target
	read := 0
	for id, err := range w.o.Store.Pointing(ctx, stele.Location{URL: seen.task.URL}, stele.ID{}) {
		if err != nil {
			return err
		}
		if read++; read > maxSiblings {
			break
		}
		found, err := w.siblings(ctx, id, seen)
		if err != nil {
			if endsWork(ctx, err) {
				return err
			}
			continue // it is asked itself
		}
		list = append(list, found...)
	}
	for some := range slices.Chunk(list, siblingsAtOnce) {
		err := w.keep(ctx, w.lease, func(b *batch) error {
			for i := range some {
				if err := b.tellSibling(ctx, &some[i], seen); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && endsWork(ctx, err) {
			return err
		}
	}
	return nil
}

// siblings returns the targets of a name for which an answer counts too, and which were not in its task.
func (w *worker) siblings(ctx context.Context, id stele.ID, seen *sight) (list []target, err error) {
	space, err := w.space(ctx, id)
	if err != nil || space == nil {
		return nil, err
	}
	rec, err := w.o.Store.Record(ctx, id)
	if errors.Is(err, stele.NotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, t := range targets(rec) {
		if t.url == seen.task.URL && !t.unchanging && !slices.Contains(seen.task.Keys, string(t.key)) {
			list = append(list, t)
		}
	}
	return list, nil
}

func (b *batch) tellSibling(ctx context.Context, t *target, seen *sight) error {
	s, _, err := b.status(ctx, t.key)
	if err != nil {
		return err
	}
	if err := b.dropDue(ctx, t.key); err != nil {
		return err
	}
	if err := b.set(ctx, t.key.waits(), nil); err != nil {
		return err
	}
	return b.apply(ctx, t, &s, seen, true)
}
