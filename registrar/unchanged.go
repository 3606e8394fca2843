package registrar

import (
	"context"
	"errors"
	"slices"

	"github.com/stele-id/stele"
)

// ErrUnchanged says of a record in an import that it is registered as it is there:
// nothing was written, and nothing is wrong.
var ErrUnchanged = errors.New("it is registered like this already")

// recognise finds records among those whose names are taken that are registered
// just as they are in the chunk.
func (in *intake) recognise(ctx context.Context) error {
	for i, rec := range in.records {
		if in.errs[i] == nil || stele.KindOf(in.errs[i]) != stele.Conflict {
			continue
		}
		have, err := in.store.Record(ctx, rec.ID)
		switch {
		case errors.Is(err, stele.NotFound): // an alias is taken
		case err != nil:
			return tell("import", err)
		case saysSame(have, rec):
			rec.Version, in.errs[i] = have.Version, ErrUnchanged
		case have.ID == rec.ID && !in.o.Update:
			in.errs[i] = refuse("import", rec.ID, stele.Conflict, "it is registered already, and says something else; only an update changes it")
		}
	}
	return nil
}

// saysSame reports whether a registered record says what rec does. What the system
// keeps does not count, nor do names that it was given later.
func saysSame(have, rec *stele.Record) bool {
	c := *rec
	c.Created = have.Created
	if t := rec.Tombstone; t != nil && have.Tombstone != nil {
		c.Tombstone = &stele.Tombstone{Reason: t.Reason, At: have.Tombstone.At, Replacement: t.Replacement}
	}
	if slices.ContainsFunc(rec.Aliases, func(id stele.ID) bool { return !slices.Contains(have.Aliases, id) }) {
		return false
	}
	c.Aliases = have.Aliases
	return have.ID == rec.ID && sameRecord(have, &c)
}
