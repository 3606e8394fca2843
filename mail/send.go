package mail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

const (
	// leaseLife is how long a server that has died keeps a letter. It is longer than an attempt.
	leaseLife = 2 * sendTime

	endTries = 5 // to keep what became of a letter
	endPause = 2 * time.Second

	lookEvery = 5 * time.Second // for letters of other servers, and for those whose pause is over
	tidyEvery = 10 * time.Minute
)

// Run sends letters until the context ends. A letter that is under way then is accepted by the mail
// server or tried again.
func (q *Queue) Run(ctx context.Context) {
	look, tidy := time.NewTicker(lookEvery), time.NewTicker(tidyEvery)
	defer look.Stop()
	defer tidy.Stop()
	for {
		if err := q.SendDue(ctx); err != nil && ctx.Err() == nil {
			q.o.Log.Warn("mail can't be sent at the moment", "error", err.Error())
		}
		select {
		case <-look.C:
		case <-q.wake:
		case <-tidy.C:
			if err := q.Tidy(ctx); err != nil && ctx.Err() == nil {
				q.o.Log.Warn("notes of old mail can't be removed", "error", err.Error())
			}
		case <-ctx.Done():
			return
		}
	}
}

// SendDue tries each letter once whose time has come and that no other server sends.
func (q *Queue) SendDue(ctx context.Context) error {
	var due []string
	var failed error
	now := q.now()
	for n, err := range q.notes(ctx) {
		if err != nil {
			return err
		}
		if n.State == Waiting && !now.Before(n.Next) && (n.Holder == "" || !now.Before(n.Until)) {
			due = append(due, n.ID)
		}
	}
	for _, id := range due {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed = cmp.Or(failed, q.try(ctx, id)) // one that can't be tried must not hold up those after it
	}
	return failed
}

// read reads what is known of a letter, and its cell; a nil cell if it is not there.
func (q *Queue) read(ctx context.Context, id string) (n Note, value []byte, err error) {
	value, err = q.o.Registrar.WorkCell(asServer(ctx), noteCells+id)
	if err == nil && value != nil {
		err = decode(stele.Cell{Name: noteCells + id, Value: value}, &n)
	}
	return n, value, err
}

// keep changes what is known of a letter. Conflict if another server did.
func (q *Queue) keep(ctx context.Context, n *Note, before []byte, also ...stele.CellChange) (after []byte, err error) {
	if after, err = json.Marshal(n); err != nil {
		return nil, err
	}
	return after, q.o.Registrar.KeepWork(asServer(ctx), append([]stele.CellChange{{Name: noteCells + n.ID, Before: before, After: after}}, also...)...)
}

// try takes the lease of a letter, sends it, and keeps what became of it. A server that dies between
// the acceptance and the last commit makes the next one send the letter again: with the same Message-ID, by which mail
// programs recognise it.
func (q *Queue) try(ctx context.Context, id string) error {
	n, held, err := q.read(ctx, id)
	now := q.now()
	if err != nil || held == nil || n.State != Waiting || now.Before(n.Next) || n.Holder != "" && now.Before(n.Until) {
		return err
	}
	if n.Holder, err = q.newID(); err != nil {
		return err
	}
	n.Until = now.Add(leaseLife)
	if held, err = q.keep(ctx, &n, held); errors.Is(err, stele.Conflict) {
		return nil // another server was faster
	} else if err != nil {
		return err
	}
	l, text, err := q.letter(ctx, id)
	switch {
	case err != nil:
	case !n.Expires.IsZero() && !now.Before(n.Expires):
		err = &finalError{stele.Messagef("mail.link-expired", "the link in it expired before the mail server took the mail; make another")}
	default:
		if l.Digest != nil && q.o.Renew != nil && now.Sub(n.Created) >= firstPause {
			err = q.renew(ctx, &l)
		}
		if err == nil {
			err = q.o.Send(ctx, &l)
		}
	}
	done := context.WithoutCancel(ctx) // what the mail server has accepted must be kept
	if err != nil && ctx.Err() != nil {
		n.Holder, n.Until = "", time.Time{} // the next run need not wait for the lease
		_, err = q.keep(done, &n, held)
		return err
	}
	return q.end(done, &n, held, text, err)
}

// errDropped says that a letter is not to be sent any more.
var errDropped = stele.Messagef("mail.not-wanted", "the user wants the mail no more, or may not read it")

// renew makes the texts of a letter anew.
func (q *Queue) renew(ctx context.Context, l *Letter) error {
	still, err := q.o.Renew(ctx, l)
	switch {
	case err != nil:
		return err
	case !still:
		return errDropped
	}
	return l.check()
}

// letter reads a letter, and its cell.
func (q *Queue) letter(ctx context.Context, id string) (l Letter, value []byte, err error) {
	name := textCells + id
	if value, err = q.o.Registrar.WorkCell(asServer(ctx), name); err != nil {
		return l, nil, err
	}
	var kept registrar.SealedLetter
	if err := decode(stele.Cell{Name: name, Value: value}, &kept); err != nil {
		return l, value, &finalError{err}
	}
	if err := q.o.Registrar.OpenSecret(name, &kept.Letter); err != nil {
		return l, value, err // the key may come back
	}
	return l, value, decode(stele.Cell{Name: name, Value: kept.Letter.Clear()}, &l)
}

// end keeps what became of an attempt.
func (q *Queue) end(ctx context.Context, n *Note, held, text []byte, failed error) error {
	now := q.now()
	n.Tries++
	n.Holder, n.Until, n.Problem = "", time.Time{}, nil
	gone := []stele.CellChange{{Name: textCells + n.ID, Before: text}}
	switch {
	case failed == nil:
		n.State, n.Ended = Sent, now
	case errors.Is(failed, errDropped):
		n.State, n.Ended = Dropped, now
	case IsFinal(failed) || now.Sub(n.Created) >= GiveUpAfter:
		n.State, n.Ended, n.Problem = GivenUp, now, problemOf(failed)
		q.o.Log.Error("a mail was given up", "mail", n.ID, "kind", string(n.Kind), "attempts", n.Tries, "error", failed.Error())
	default:
		n.Problem, gone = problemOf(failed), nil
		n.Next = now.Add(pause(n.Tries))
		if last := n.Created.Add(GiveUpAfter); n.Next.After(last) {
			n.Next = last
		}
		q.o.Log.Warn("a mail was not sent; it is tried again", "mail", n.ID, "next", n.Next, "error", failed.Error())
	}
	if text == nil {
		gone = nil
	}
	return q.keepEnd(ctx, n, held, gone)
}

// keepEnd keeps what became of an attempt. If the store does not answer, it tries again for a
// while: a letter that was accepted and is not noted as sent would be sent again. A letter that was
// encrypted under another key meanwhile is removed as it is now.
func (q *Queue) keepEnd(ctx context.Context, n *Note, held []byte, gone []stele.CellChange) error {
	for attempt := 1; ; attempt++ {
		_, err := q.keep(ctx, n, held, gone...)
		if err == nil || attempt == endTries {
			return err
		}
		if errors.Is(err, stele.Conflict) {
			_, now, readErr := q.read(ctx, n.ID)
			if readErr == nil && !bytes.Equal(now, held) {
				q.o.Log.Warn("another server sent a mail at the same time", "mail", n.ID)
				return nil
			}
			for i := range gone {
				if gone[i].Before, readErr = q.o.Registrar.WorkCell(asServer(ctx), gone[i].Name); readErr == nil && gone[i].Before == nil {
					gone = nil
					break
				}
			}
		}
		select {
		case <-ctx.Done(): // never, if the caller's does not end
		case <-time.After(endPause):
		}
	}
}

// pause returns how long to wait after so many attempts: 1, 2, 4, ... minutes, and 6 hours at most.
func pause(tries int) time.Duration {
	if tries > 9 {
		return longestPause
	}
	return min(firstPause<<(tries-1), longestPause)
}

// Tidy removes notes of letters that were sent or given up long ago, and of those that were given up all but the
// newest maxGivenUp.
func (q *Queue) Tidy(ctx context.Context) error {
	now := q.now()
	var old []stele.CellChange
	type ending struct {
		at   time.Time
		cell stele.CellChange
	}
	var givenUp []ending
	for c, err := range q.o.Registrar.WorkList(asServer(ctx), noteCells, "") {
		if err != nil {
			return err
		}
		var n Note
		if decode(c, &n) != nil {
			continue
		}
		gone := stele.CellChange{Name: c.Name, Before: c.Value}
		switch {
		case (n.State == Sent || n.State == Dropped) && now.Sub(n.Ended) >= keepSent || n.State == GivenUp && now.Sub(n.Ended) >= keepGivenUp:
			old = append(old, gone)
		case n.State == GivenUp:
			givenUp = append(givenUp, ending{n.Ended, gone})
		}
	}
	slices.SortFunc(givenUp, func(a, b ending) int { return b.at.Compare(a.at) })
	for _, e := range givenUp[min(len(givenUp), maxGivenUp):] {
		old = append(old, e.cell)
	}
	for _, c := range old {
		if err := q.o.Registrar.KeepWork(asServer(ctx), c); err != nil && !errors.Is(err, stele.Conflict) {
			return err
		}
	}
	return nil
}
