package transparency

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Signing is how checkpoints are made.
type Signing struct {
	// Keys returns the keys of the log. Nil keys say that there are none: the log is kept, and not signed.
	Keys func(ctx context.Context) (*Keys, error)

	Interval time.Duration // between checkpoints, at least

	// Published is called with each new checkpoint, to collect co-signatures; it may be nil.
	Published func(ctx context.Context, p Published)
}

// lookEvery is how often Run looks for changes that it was not told of.
const lookEvery = time.Second

// Run keeps the log up to date, and signs checkpoints, until the context ends.
func (l *Log) Run(ctx context.Context, s Signing) {
	l.following.Add(1)
	defer l.following.Add(-1)
	tick := time.NewTicker(min(lookEvery, max(s.Interval, time.Millisecond)))
	defer tick.Stop()
	var signed time.Time
	var unsigned error // why the last checkpoint could not be signed
	failed := ""
	for ctx.Err() == nil {
		err := l.CatchUp(ctx, nil)
		if errors.Is(err, stele.ErrSealed) { // it is meant to be read only
			err, signed, unsigned = nil, l.o.Now(), nil
		}
		if now := l.o.Now(); err == nil && (signed.IsZero() || now.Before(signed) || now.Sub(signed) >= s.Interval) { // the clock may be set back
			signed = now
			unsigned = l.signOnce(ctx, s)
		}
		if err == nil {
			err = unsigned // until it is tried again
		}
		if ctx.Err() != nil {
			return
		}
		failed = l.tell(err, failed)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// tell logs a failure once, and its end.
func (l *Log) tell(err error, before string) string {
	switch {
	case err != nil && err.Error() != before:
		l.o.Log.Warn("the transparency log can't follow the registry; it is tried again", "error", err.Error())
		return err.Error()
	case err == nil && before != "":
		l.o.Log.Info("the transparency log follows the registry again")
		return ""
	}
	return before
}

func (l *Log) signOnce(ctx context.Context, s Signing) error {
	keys, err := s.Keys(ctx)
	if err != nil || keys == nil {
		return err
	}
	before, err := l.Published(ctx)
	if err != nil {
		return err
	}
	after, err := l.Sign(ctx, keys)
	if err != nil {
		return err
	}
	if s.Published != nil && after.Note != before.Note {
		s.Published(ctx, after)
	}
	return nil
}

// AddCosignature adds the line of a co-signature to the last checkpoint, if it is still the one that the line is about, and has none
// of the same witness. The caller has checked it.
func (l *Log) AddCosignature(ctx context.Context, about Published, witness PublicKey, line string) error {
	for range maxTries {
		now, cell, err := l.published(ctx)
		if err != nil {
			return err
		}
		if signedText(now.Note) != signedText(about.Note) || !now.At.Equal(about.At) || HasCosignature(now.Note, witness) {
			return nil // there is a newer one, or another server was faster
		}
		now.Note += line
		if err = l.publish(ctx, cell, now); stele.KindOf(err) != stele.Conflict {
			return err
		}
	}
	return nil
}

// signedText returns what the signatures of a note are about.
func signedText(note string) string {
	text, _, _ := strings.Cut(note, "\n\n")
	return text
}
