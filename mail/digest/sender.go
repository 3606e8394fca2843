package digest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/language"
)

// toldCells begins the names of cells that say how far users were told. The user follows. A restore
// removes them, as all cells of work: then a user is told of what happens after the last digest that was due.
const toldCells = registrar.WorkCells + "digest "

const (
	lookEvery = 5 * time.Minute

	// patience is how long a digest waits for a source that fails. Then it is sent without that section.
	patience = time.Hour
)

// Options are what a Sender needs. All must be set, except Log.
type Options struct {
	Registrar *registrar.Registrar
	Directory *auth.Directory
	Queue     *mail.Queue
	Writer    *mail.Writer
	Languages *language.Catalog
	Schedule  mail.Schedule
	Sources   []Source // of the sections, in order
	Base      string   // public address of the server
	Now       func() time.Time
	Log       *slog.Logger
}

// Sender puts digests into the queue of mail when they are due.
type Sender struct{ o Options }

// New makes a Sender.
func New(o Options) *Sender {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Sender{o}
}

// told says how far a user was told.
type told struct {
	Through time.Time       `json:"through"` // end of the time of the last digest
	Rate    auth.DigestRate `json:"rate"`    // then
	Keys    []string        `json:"keys,omitempty"`
}

// Run looks for digests that are due until the context ends.
func (s *Sender) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := s.SendDue(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
			s.o.Log.Warn("not all digests can be sent at the moment; it is tried again", "error", err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// SendDue puts the digests that are due into the queue. It returns the first error, after it has tried all.
func (s *Sender) SendDue(ctx context.Context) error {
	ctx = auth.With(ctx, auth.Local())
	readers, err := s.o.Registrar.DigestReaders(ctx)
	if err != nil {
		return err
	}
	known, sent := make(map[string]bool), false
	periods := make(activities)
	for _, to := range readers {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		known[toldCells+to.User] = true
		queued, failed := s.sendTo(ctx, to, periods)
		if failed != nil {
			failed = stele.Errorf("send digest", stele.ID{}, stele.KindOf(failed), "mail.digest-failed", "the digest of {user} can't be made: {cause}", to.User, failed)
		}
		err, sent = cmp.Or(err, failed), sent || queued
	}
	if sent {
		s.o.Queue.Wake()
	}
	return cmp.Or(err, s.forget(ctx, known))
}

// forget removes what is kept of users who get no digests any more: one who wants them again is told of what happens from then on.
func (s *Sender) forget(ctx context.Context, known map[string]bool) error {
	var gone []stele.CellChange
	for c, err := range s.o.Registrar.WorkList(ctx, toldCells, "") {
		if err != nil {
			return err
		}
		if !known[c.Name] {
			gone = append(gone, stele.CellChange{Name: c.Name, Before: c.Value})
		}
	}
	for _, c := range gone {
		if err := s.o.Registrar.KeepWork(ctx, c); err != nil && !errors.Is(err, stele.Conflict) {
			return err
		}
	}
	return nil
}

// sendTo puts the digest of a user into the queue, if it is due and something is new. Another server may be faster.
func (s *Sender) sendTo(ctx context.Context, to registrar.DigestReader, periods activities) (queued bool, err error) {
	name := toldCells + to.User
	held, err := s.o.Registrar.WorkCell(ctx, name)
	if err != nil {
		return false, err
	}
	due := s.o.Schedule.Last(s.o.Now(), to.Rate)
	var last told
	if err := json.Unmarshal(held, &last); held == nil || err != nil { // the first digest is the next one
		return false, s.keep(ctx, name, held, told{Through: due, Rate: to.Rate})
	}
	if !last.Through.Before(due) {
		return false, nil
	}
	from := due.Add(-max(mail.Period(to.Rate), mail.Period(last.Rate))) // after a long stop, the last time only
	if from.Before(last.Through) {
		from = last.Through
	}
	next := told{Through: due, Rate: to.Rate}
	r := s.reader(ctx, to, from, due, periods)
	m, err := s.make(ctx, r, last.Keys, s.o.Now().Sub(due) >= patience)
	switch {
	case isGone(err):
		return false, s.keep(ctx, name, held, next)
	case err != nil:
		return false, err
	}
	if next.Keys = m.keys; !m.fresh {
		next.Keys = slices.DeleteFunc(m.keys, func(key string) bool { return !slices.Contains(last.Keys, key) })
		return false, s.keep(ctx, name, held, next)
	}
	l, err := s.letter(ctx, to, r, m, last.Keys)
	if err != nil {
		return false, err
	}
	changes, err := s.o.Queue.Prepare(ctx, mail.DigestKind, "", l)
	if err != nil {
		return false, err
	}
	return true, s.keep(ctx, name, held, next, changes...)
}

// keep keeps how far a user was told, together with the letter.
func (s *Sender) keep(ctx context.Context, name string, before []byte, next told, also ...stele.CellChange) error {
	after, err := json.Marshal(next)
	if err != nil {
		return err
	}
	err = s.o.Registrar.KeepWork(ctx, append([]stele.CellChange{{Name: name, Before: before, After: after}}, also...)...)
	if errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed) {
		return nil // another server was faster
	}
	return err
}

// activities are what was read of the audit trail, by time, for all users of a run.
type activities map[[2]time.Time]*registrar.Activity

func (s *Sender) reader(ctx context.Context, to registrar.DigestReader, from, until time.Time, periods activities) *Reader {
	lang := s.o.Languages.Get(to.Language)
	if lang == nil {
		lang = s.o.Languages.Languages()[0]
	}
	return &Reader{User: to.User, Language: lang, From: from, To: until, base: strings.TrimSuffix(s.o.Base, "/"), activity: func() (*registrar.Activity, error) {
		key := [2]time.Time{from, until}
		if a := periods[key]; a != nil {
			return a, nil
		}
		a, err := s.o.Registrar.Activity(ctx, from, until)
		if err == nil {
			periods[key] = a
		}
		return a, err
	}}
}

// make asks all sources, as the user. With without, a source that fails is left out.
func (s *Sender) make(ctx context.Context, r *Reader, told []string, without bool) (m made, err error) {
	as, err := actAs(ctx, s.o.Directory, r.User)
	if err != nil {
		return m, err
	}
	for _, source := range s.o.Sources {
		section, err := source(as, r)
		switch {
		case err != nil && (!without || ctx.Err() != nil):
			return m, err
		case err != nil:
			s.o.Log.Error("a section of a digest was left out", "user", r.User, "error", err.Error())
			continue
		}
		m.add(r, section, told)
	}
	return m, nil
}

// letter makes the letter of a digest. Told are the keys of what the user was told before.
func (s *Sender) letter(ctx context.Context, to registrar.DigestReader, r *Reader, m made, told []string) (*mail.Letter, error) {
	credential, err := s.o.Registrar.DigestCredential(ctx, to.User)
	if err != nil {
		return nil, err
	}
	l, err := s.write(to, r, m, credential)
	if err == nil {
		l.Digest.Told = told
	}
	return l, err
}

// write makes the letter of a digest with the credential of the link that ends digests.
func (s *Sender) write(to registrar.DigestReader, r *Reader, m made, credential string) (*mail.Letter, error) {
	l, err := s.o.Writer.Digest(r.Language, to.Address, mail.Digest{User: r.User, From: r.From, To: r.To, Rate: to.Rate, Sections: m.sections,
		Settings: r.base + desk + "settings", End: r.base + desk + "digest/" + to.User + "/" + credential})
	if err == nil {
		l.Digest = &mail.DigestOf{User: r.User, From: r.From, To: r.To}
	}
	return l, err
}

// Renew makes the texts of a digest anew that has waited for the mail server; false if the user gets none any more, or there is
// nothing left to tell. It is for [mail.Options].
func (s *Sender) Renew(ctx context.Context, l *mail.Letter) (bool, error) {
	ctx = auth.With(ctx, auth.Local())
	readers, err := s.o.Registrar.DigestReaders(ctx)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(readers, func(to registrar.DigestReader) bool { return to.User == l.Digest.User && to.Address == l.To })
	if i < 0 {
		return false, nil
	}
	r := s.reader(ctx, readers[i], l.Digest.From, l.Digest.To, make(activities))
	m, err := s.make(ctx, r, l.Digest.Told, true)
	if isGone(err) || err == nil && len(m.sections) == 0 {
		return false, nil
	} else if err != nil {
		return false, err
	}
	made, err := s.letter(ctx, readers[i], r, m, l.Digest.Told)
	if err != nil {
		return false, err
	}
	l.Subject, l.Text, l.HTML, l.Language = made.Subject, made.Text, made.HTML, made.Language
	return true, nil
}
