package registrar

import (
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// keepValues gives a record the registered values of the types that the import leaves out, each after the
// value that it follows now. Conflict if the import has a value of another type with the index of one.
func (in *intake) keepValues(before, rec *stele.Record) error {
	left := func(v stele.HandleValue) bool {
		return slices.ContainsFunc(in.o.KeepTypes, func(t string) bool { return destination.HasType(v.Type, t) })
	}
	if !slices.ContainsFunc(before.Values, left) {
		return nil
	}
	values, next := slices.Clone(rec.Values), 0
	for _, v := range before.Values {
		at := slices.IndexFunc(values, func(w stele.HandleValue) bool { return w.Index == v.Index })
		switch {
		case !left(v):
			if at >= 0 {
				next = at + 1
			}
		case at < 0:
			values = slices.Insert(values, next, v)
			next++
		case left(values[at]):
			values[at], next = v, at+1
		default:
			return refuse("import", rec.ID, stele.Conflict, "import.value-kept", "its value {index} has the type {type}, which this import leaves out, and the import has another value with that index; give that another index, or import values of the type {type} too", v.Index, v.Type)
		}
	}
	rec.Values = values
	return nil
}
