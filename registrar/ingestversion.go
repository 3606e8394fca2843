package registrar

import (
	"context"
	"math"

	"github.com/stele-id/stele"
)

// MustBeNew is the version that ImportOptions.Versions has for a record that must not be registered yet: a caller that found no
// record would overwrite one that another user registers meanwhile.
const MustBeNew = math.MaxUint64

// expects returns the version that the registered record must have; 0 for any, or none.
func (in *intake) expects(i int) uint64 {
	if in.o.Versions == nil {
		return 0
	}
	return in.o.Versions[i]
}

// expected makes sure that a registered record has the version that the caller has seen. It reports whether the same
// import has made another one of it meanwhile: a chunk whose answer was lost is sent again.
func (in *intake) expected(ctx context.Context, i int, at *lookup) (again bool, err error) {
	rec, before, want := in.records[i], in.before[i], in.expects(i)
	if want == 0 || before != nil && before.Version == want || before == nil && want == MustBeNew {
		return false, nil
	}
	if err := authorise(ctx, "import", rec.ID, at.ancestorsOf(rec.ID)); err != nil {
		return false, err
	}
	if before == nil {
		return false, refuse("import", rec.ID, stele.NotFound, "record.version-not-registered", "it is not registered, so that its version {expected} can't be changed; look at it again", want)
	}
	if want == MustBeNew {
		want = 0
	}
	if before.Version == want+1 && before.Import != 0 && before.Import == in.o.Import {
		return true, nil
	}
	return false, in.outdated(i)
}

// outdated refuses a record that has another version than the caller has seen.
func (in *intake) outdated(i int) error {
	if in.o.Versions[i] == MustBeNew {
		return refuse("import", in.records[i].ID, stele.Conflict, "record.registered-meanwhile", "it was registered meanwhile, and has version {version}; look at it again", in.before[i].Version)
	}
	return refuse("import", in.records[i].ID, stele.Conflict, "record.version-not-expected", "it has version {version}, not {expected}; look at it again", in.before[i].Version, in.o.Versions[i])
}
