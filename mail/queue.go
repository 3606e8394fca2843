package mail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/secret"
)

// What the names of cells begin with. The ID of a letter follows.
const (
	noteCells = registrar.WorkCells + "mail " // what is known of a letter
	textCells = registrar.LetterCells         // the letter itself, encrypted: it may have a one-time link
)

// Limits on the queue.
const (
	MaxWaiting    = 5000               // letters that are to be sent
	maxDigests    = MaxWaiting / 2     // letters that may wait before a digest: other mail must find room
	HourAddress   = 10                 // letters to one address in an hour
	hourConfirm   = 3                  // letters that ask one address for a user, in an hour
	maxOwnWaiting = 100                // letters of a user that wait or were given up, with which the user may ask for an address
	HourUser      = 100                // letters that one user causes in an hour
	GiveUpAfter   = 5 * 24 * time.Hour // as RFC 5321, section 4.5.4.1, advises
	keepSent      = time.Hour          // notes of letters that were sent: the limits count them
	keepGivenUp   = 30 * 24 * time.Hour
	maxGivenUp    = 1000 // notes of letters that were given up
	firstPause    = time.Minute
	longestPause  = 6 * time.Hour
)

// State is what became of a letter.
type State string

const (
	Waiting State = "waiting"
	Sent    State = "sent"     // the mail server has accepted it
	GivenUp State = "given-up" // it was not accepted, and is not tried again
	Dropped State = "dropped"  // the user wants it no more, or may not read it
)

// Note is what is known of a letter.
type Note struct {
	ID      string    `json:"id"`
	Kind    Kind      `json:"kind"`
	To      string    `json:"to"`
	By      string    `json:"by,omitempty"` // the user who caused it; "": the server
	State   State     `json:"state"`
	Created time.Time `json:"created"`
	Ended   time.Time `json:"ended,omitzero"`
	Next    time.Time `json:"next,omitzero"` // of the next attempt
	Tries   int       `json:"tries,omitempty"`
	Expires time.Time `json:"expires,omitzero"`  // when the letter is worth nothing
	Problem *Problem  `json:"problem,omitempty"` // of the last attempt

	Holder string    `json:"holder,omitempty"` // the server that sends it now
	Until  time.Time `json:"until,omitzero"`   // when another one may
}

// Problem is why a letter was not sent, as it is kept.
type Problem struct {
	Code   string        `json:"code,omitempty"`
	Text   string        `json:"text"`
	Params []stele.Param `json:"params,omitempty"`
}

// Err returns the problem as an error.
func (p *Problem) Err() error { return stele.ReceivedMessage(p.Code, p.Text, p.Params) }

func problemOf(err error) *Problem {
	p := &Problem{Text: stele.Reason(err).Error()}
	if m, ok := errors.AsType[*stele.Message](err); ok {
		p.Code, p.Params = m.Code, m.Params
	}
	return p
}

// Options are what a Queue needs. Rand is crypto/rand's Reader if nil.
type Options struct {
	Registrar *registrar.Registrar
	Send      func(ctx context.Context, l *Letter) error // [Transport.Send]
	From      string                                     // address of the sender; its host ends Message-IDs
	Now       func() time.Time
	Rand      io.Reader
	Log       *slog.Logger

	// Renew makes the texts of a digest anew that has waited, so that a user whose rights have ended
	// meanwhile reads no more than the user may now; false: it is not to be sent. Nil: digests are sent as they were made.
	Renew func(ctx context.Context, l *Letter) (still bool, err error)
}

// Queue keeps letters until the mail server has accepted them. It is used by many goroutines at once.
type Queue struct {
	o    Options
	host string
	wake chan struct{}
}

// NewQueue makes a queue.
func NewQueue(o Options) *Queue {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{o: o, host: "localhost", wake: make(chan struct{}, 1)}
	if from, err := parseSender(o.From); err == nil {
		_, q.host, _ = strings.Cut(from.Address, "@")
	}
	return q
}

func (q *Queue) now() time.Time { return q.o.Now().UTC().Round(0) }

// asServer returns a context in which cells can be kept.
func asServer(ctx context.Context) context.Context { return auth.With(ctx, auth.Local()) }

// newID returns an ID that no other letter has.
func (q *Queue) newID() (string, error) {
	const letters = "0123456789bcdfghjkmnpqrstvwxz"
	random := make([]byte, 20)
	if _, err := io.ReadFull(q.o.Rand, random); err != nil {
		return "", refuse(stele.Internal, "job.no-random-bits", "there are no random bits: {cause}", err)
	}
	for i, c := range random {
		random[i] = letters[int(c)%len(letters)]
	}
	return string(random), nil
}

// Prepare returns the changes that put a letter into the queue, for the commit that the letter is about:
// both are kept, or neither. The caller calls [Queue.Wake] after the commit. The letter gets its Message-ID and date.
// Exhausted if the recipient gets, or the user by causes, too many letters in an hour.
func (q *Queue) Prepare(ctx context.Context, kind Kind, by string, l *Letter) ([]stele.CellChange, error) {
	id, err := q.newID()
	if err != nil {
		return nil, err
	}
	now := q.now()
	l.ID, l.Date = id+"@"+q.host, now
	if err := l.check(); err != nil {
		return nil, refuse(stele.Invalid, "", "{cause}", err)
	}
	if err := q.mayAdd(ctx, now, kind, l.To, by); err != nil {
		return nil, err
	}
	clear, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	kept := registrar.SealedLetter{Letter: secret.NewValue(clear)}
	if err := q.o.Registrar.SealSecret(asServer(ctx), textCells+id, &kept.Letter); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&kept)
	if err != nil {
		return nil, err
	}
	note, err := json.Marshal(&Note{ID: id, Kind: kind, To: l.To, By: by, State: Waiting, Created: now, Next: now, Expires: l.Expires})
	if err != nil {
		return nil, err
	}
	return []stele.CellChange{{Name: noteCells + id, After: note}, {Name: textCells + id, After: text}}, nil
}

// mayAdd counts the letters of the last hour. Two requests at the same time may both be the last one;
// the limits need not be exact.
//
// Letters that confirm an address have limits of their own, by user: any user may ask for any address, and must
// not use up what an administrator may send there, nor fill the queue.
func (q *Queue) mayAdd(ctx context.Context, now time.Time, kind Kind, to, by string) error {
	waiting, address, user, confirmed, kept := 0, 0, 0, 0, 0
	for n, err := range q.notes(ctx) {
		if err != nil {
			return err
		}
		if n.State == Waiting {
			waiting++
		}
		own := n.By == by && by != ""
		if own && n.State != Sent {
			kept++
		}
		if now.Sub(n.Created) >= time.Hour {
			continue
		}
		switch {
		case !strings.EqualFold(n.To, to):
		case n.Kind != ConfirmKind:
			address++
		case own:
			confirmed++
		}
		if own {
			user++
		}
	}
	switch {
	case waiting >= MaxWaiting, kind == DigestKind && waiting >= maxDigests:
		return refuse(stele.Exhausted, "mail.queue-full", "{count} mails wait to be sent; try again later, and see whether the mail server takes them", waiting)
	case kind == ConfirmKind && confirmed >= hourConfirm:
		return refuse(stele.Exhausted, "mail.too-many-to-address", "this address has got {count} mails in the last hour; try again later", confirmed)
	case kind != ConfirmKind && address >= HourAddress:
		return refuse(stele.Exhausted, "mail.too-many-to-address", "this address has got {count} mails in the last hour; try again later", address)
	case user >= HourUser || kind == ConfirmKind && kept >= maxOwnWaiting:
		return refuse(stele.Exhausted, "mail.too-many-by-user", "{count} mails were sent for you in the last hour; try again later", user)
	}
	return nil
}

// Add puts a letter into the queue on its own.
func (q *Queue) Add(ctx context.Context, kind Kind, by string, l *Letter) error {
	changes, err := q.Prepare(ctx, kind, by, l)
	if err != nil {
		return err
	}
	if err := q.o.Registrar.KeepWork(asServer(ctx), changes...); err != nil {
		return err
	}
	q.Wake()
	return nil
}

// Wake makes [Queue.Run] look for letters at once.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// notes yields what is known of all letters. One that can't be read does not stop the others.
func (q *Queue) notes(ctx context.Context) func(yield func(Note, error) bool) {
	return func(yield func(Note, error) bool) {
		for c, err := range q.o.Registrar.WorkList(asServer(ctx), noteCells, "") {
			var n Note
			if err == nil {
				if damaged := decode(c, &n); damaged != nil {
					q.o.Log.Error("what is known of a mail can't be read", "error", damaged.Error())
					continue
				}
			}
			if !yield(n, err) || err != nil {
				return
			}
		}
	}
}

func decode(c stele.Cell, v any) error {
	if err := json.Unmarshal(c.Value, v); err != nil {
		return refuse(stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, c.Name, err)
	}
	return nil
}

// List returns the letters that wait, and those that were given up, the oldest first. Only an
// administrator may ask.
func (q *Queue) List(ctx context.Context) (list []Note, err error) {
	if who := auth.From(ctx); !who.Administers(auth.ScopeAdmin) {
		return nil, refuse(stele.Forbidden, "user.not-administrator", `"{user}" is not an administrator; ask one`, who.Name)
	}
	for n, err := range q.notes(ctx) {
		if err != nil {
			return nil, err
		}
		if n.State == Waiting || n.State == GivenUp {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b Note) int { return a.Created.Compare(b.Created) })
	return list, nil
}
