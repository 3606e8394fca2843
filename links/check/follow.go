package check

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
)

// enrolCells begins the names of the cells that say how far the records of a namespace were read.
const enrolCells = registrar.CheckCells + "e "

// enrolled is how far the records of a namespace were read.
type enrolled struct {
	After string    `json:"after,omitempty"` // the text of the last identifier
	Done  bool      `json:"done,omitempty"`
	Since time.Time `json:"since"` // of the settings
}

// readAll says that the records of a namespace were read to the end.
type readAll struct {
	since time.Time // of the settings
	at    time.Time // when that was found in the cell
}

// readEvery is how often a cell is read again that says so: where what is known is damaged, it is removed.
const readEvery = 10 * time.Minute

// follow takes over what changed since: a target that changed is checked anew.
func (w *worker) follow(ctx context.Context) error {
	now, err := w.o.Store.Position(ctx)
	if err != nil {
		return err
	}
	if now.Generation != w.place.Generation || now.Change < w.place.Change {
		return w.restart(ctx, now)
	}
	if now.Change == w.place.Change {
		return nil
	}
	changed := make(map[stele.ID]bool)
	at, read := w.place.Change, 0
	for ch, err := range w.o.Store.Changes(ctx, at) {
		if err != nil {
			return err
		}
		if ch.ID.IsValid() && !changed[ch.ID] {
			space, err := w.space(ctx, ch.ID)
			if err != nil {
				return err
			}
			if space != nil {
				changed[ch.ID] = true
			}
		}
		at = ch.Seq
		if read++; read >= atOnce {
			break
		}
	}
	next := w.place
	next.Change = at
	err = w.keep(ctx, w.lease, func(b *batch) error {
		for id := range changed {
			rec, err := w.o.Store.Record(ctx, id)
			if errors.Is(err, stele.NotFound) {
				continue
			} else if err != nil {
				if endsWork(ctx, err) {
					return err
				}
				w.o.Log.Error("the targets of a record that changed can't be checked", "id", id.String(), "error", err.Error())
				continue
			}
			if err := w.enter(ctx, b, rec); err != nil {
				return err
			}
		}
		return b.setJSON(ctx, placeCell, &next)
	})
	if err == nil {
		w.place = next
	}
	return err
}

// enter makes the targets of a record due that are not known, and forgets those that it does not have any more.
func (w *worker) enter(ctx context.Context, b *batch, rec *stele.Record) error {
	wanted := make(map[key]*target)
	list := targets(rec)
	for i := range list {
		wanted[list[i].key] = &list[i]
	}
	first := keyOf(rec.ID, 0)
	if len(first) >= stele.MaxCellName-64 {
		return nil
	}
	place := first.place()
	prefix := place[:len(place)-1]
	var known []state
	for s, err := range w.states(ctx, prefix, prefix+"\xff", func(place string) { known = append(known, state{place: place}) }) {
		if err != nil {
			return err
		}
		known = append(known, s)
	}
	for c, err := range w.o.Registrar.CheckList(asServer(ctx), stateCells+prefix, "") { // of an earlier version
		if err != nil {
			return err
		}
		known = append(known, state{strings.TrimPrefix(c.Name, stateCells), c.Value})
	}
	good := make(map[key]bool)
	for i := range known {
		k := known[i].key()
		if good[k] { // servers of both versions were at work
			continue
		}
		if _, _, err := k.parse(); err != nil || known[i].value == nil { // the block is damaged
			if _, err := b.block(ctx, known[i].place); err != nil {
				return err
			}
			continue
		}
		s, err := links.ReadStatus(known[i].value)
		t := wanted[k]
		if err == nil && t != nil && s.URL == links.Hash(t.url) {
			delete(wanted, k)
			good[k] = true
			continue
		}
		if err := b.forget(ctx, k, &s); err != nil {
			return err
		}
	}
	for k := range wanted {
		if err := b.await(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// sweep looks at some findings, all of them in about a day, and removes those about targets that are not there any more: a restored
// registry may have other records than its findings are about.
func (w *worker) sweep(ctx context.Context) error {
	if w.now().Before(w.sweepAt) {
		return nil
	}
	var old []string
	read, full := 0, false
	for cell, err := range w.o.Registrar.CheckList(asServer(ctx), foundCells, w.swept) {
		if err != nil {
			return err
		}
		if read++; read > sweepAtOnce {
			break
		}
		before := w.swept
		w.swept = cell.Name
		k := key(strings.TrimPrefix(cell.Name, foundCells))
		var f Finding
		if decode(w.Checker, cell.Name, cell.Value, &f) {
			t, ok, err := w.target(ctx, k)
			if ok && t.url == f.URL {
				room, err := w.wantCopy(ctx, k)
				if err != nil {
					return err
				}
				if !room { // it goes on here when the archive has answered
					w.swept, full = before, true
					break
				}
				continue
			}
			if err != nil && stele.KindOf(err) == stele.Unavailable {
				continue
			}
		}
		old = append(old, cell.Name)
	}
	if read <= sweepAtOnce && !full {
		w.swept, w.sweepAt = "", w.now().Add(day)
	}
	return w.keep(ctx, w.lease, func(b *batch) error {
		for _, name := range old {
			if err := b.set(ctx, name, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// enrol reads on in the records of a namespace whose targets are to be checked.
func (w *worker) enrol(ctx context.Context) error {
	for i := range w.spaces {
		l := &w.spaces[i]
		if !l.On {
			continue
		}
		cell := enrolCells + l.Scheme + "\t" + l.Namespace
		if read, err := w.enrolLater(ctx, l, cell, l.Namespace); read || err != nil {
			return err
		}
		for _, prefix := range w.beside[l.Key()] {
			if read, err := w.enrolLater(ctx, l, cell+"\t"+prefix, prefix); read || err != nil {
				return err
			}
		}
	}
	return nil
}

// enrolLater is enrolSome, and leaves the records alone for a while that can't be read, so that others are checked meanwhile.
func (w *worker) enrolLater(ctx context.Context, l *registrar.LinkChecks, cell, prefix string) (bool, error) {
	if w.isResting(key(cell), w.now()) {
		return false, nil
	}
	read, err := w.enrolSome(ctx, l, cell, prefix)
	if err == nil || endsWork(ctx, err) {
		return read, err
	}
	w.o.Log.Error("the records of a namespace can't be read to check their targets; it is tried again later", "namespace", l.Namespace, "error", err.Error())
	w.resting[key(cell)] = w.now().Add(restFor)
	return true, nil
}

// enrolSome reads on in the records whose names begin with a prefix, and keeps in a cell how far it came. It reports false if all were
// read before.
func (w *worker) enrolSome(ctx context.Context, l *registrar.LinkChecks, cell, prefix string) (bool, error) {
	if done, ok := w.enrolled[cell]; ok && done.since.Equal(l.Changed) && w.now().Sub(done.at) < readEvery {
		return false, nil
	}
	value, err := w.o.Registrar.CheckCell(asServer(ctx), cell)
	if err != nil {
		return false, err
	}
	delete(w.enrolled, cell)
	var at enrolled
	decode(w.Checker, cell, value, &at)
	if !at.Since.Equal(l.Changed) { // it may have been off
		at = enrolled{Since: l.Changed}
	}
	if at.Done {
		w.enrolled[cell] = readAll{l.Changed, w.now()}
		return false, nil
	}
	var list []*stele.Record
	var unread error // what stands before it is taken over
	for rec, err := range w.o.Store.Scan(ctx, l.Scheme, prefix, at.After) {
		if unread = err; err != nil {
			break
		}
		if list = append(list, rec); len(list) == atOnce {
			break
		}
	}
	at.Done = unread == nil && len(list) < atOnce
	if len(list) > 0 {
		at.After = list[len(list)-1].ID.String()
	}
	err = w.keep(ctx, w.lease, func(b *batch) error {
		for _, rec := range list {
			// A name may begin with the text of a namespace and belong to another: urn:example2:x.
			if space, err := w.space(ctx, rec.ID); err != nil {
				return err
			} else if space == nil {
				continue
			}
			if err := w.enter(ctx, b, rec); err != nil {
				return err
			}
		}
		return b.setJSON(ctx, cell, &at)
	})
	if err == nil {
		err = unread
	}
	return true, err
}
