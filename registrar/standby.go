package registrar

import (
	"context"
	"errors"
	"time"

	"github.com/stele-id/stele"
)

// reading is when the store was outdated last; see [Options.Lagging].
type reading struct {
	since time.Time
	yes   bool
}

// beginReading is called before a look-up that may find nothing.
func (r *Registrar) beginReading() (b reading) {
	if r.o.Lagging != nil {
		b.since, b.yes = r.o.Lagging()
	}
	return b
}

// lookUp returns the record that has a name, to decide what is written. NotFound if
// there is none, and Unavailable if that is not known.
func (r *Registrar) lookUp(ctx context.Context, op string, name stele.ID) (*stele.Record, error) {
	began := r.beginReading()
	rec, err := r.store.Record(ctx, name)
	if errors.Is(err, stele.NotFound) {
		return nil, r.missing(op, name, began)
	}
	return rec, tell(op, err)
}

// missing returns the error for a name that a look-up did not find: NotFound, or Unavailable
// if the store may have been outdated meanwhile, as a standby is. A client whose
// registration was acknowledged must not get the answer that the name is not registered.
func (r *Registrar) missing(op string, name stele.ID, began reading) error {
	if now := r.beginReading(); began.yes || now.yes || !now.since.Equal(began.since) {
		return refuse(op, name, stele.Unavailable, "record.unknown-while-primary-away", "the primary database is away, and what is read in its place may be outdated, so it is not known whether this name is registered; try again")
	}
	return refuse(op, name, stele.NotFound, "record.not-registered", "nothing is registered under this name")
}
