package registrar

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
)

// ErrUnchanged says of a record in an import that it is registered as it is there:
// nothing was written, and nothing is wrong.
var ErrUnchanged = stele.Messagef("record.registered-same", "it is registered like this already")

// recognise finds records among those whose names are taken that are registered
// just as they are in the chunk.
func (in *intake) recognise(ctx context.Context) error {
	clashes := func(i int) bool { return in.errs[i] != nil && stele.KindOf(in.errs[i]) == stele.Conflict }
	return in.lookUpAll(ctx, clashes, func(i int, have *stele.Record) { // or else an alias is taken
		switch rec := in.records[i]; {
		case saysSame(have, rec):
			rec.Version, in.errs[i] = have.Version, ErrUnchanged
		case have.ID == rec.ID && !in.o.Update && in.expects(i) == 0:
			in.errs[i] = differs(rec)
		}
	})
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

// differs refuses a record that is registered with other content.
func differs(rec *stele.Record) error {
	return refuse("import", rec.ID, stele.Conflict, "record.registered-differently", "it is registered already, and says something else; only an update changes it")
}
