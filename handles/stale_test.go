package handles

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// A change that another one overtakes between its beginning and its commit loses nothing of that, and uses no right
// that it took away.
func TestOvertaken(t *testing.T) {
	f := newFixture(t)
	const ann, ben = "300:20.500.1/ANN", "300:20.500.1/BEN"
	f.register("20.500.1/x", admin(100, hdl.MayAddValue|hdl.MayRemoveAdmin, ann), admin(101, hdl.MayAddValue|hdl.MayRemoveAdmin, ben))
	add := func(index uint32) *Change {
		return &Change{Operation: hdl.AddValue, Handle: "20.500.1/x", Values: []stele.HandleValue{text(index, "DESC", "a")}}
	}
	first, refused := add(1), add(3)
	for _, c := range []*Change{first, refused} {
		if err := f.Begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	f.want("overtaking", f.do(ben, add(2)), hdl.Success)
	who, err := f.ParseIdentity(ann)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(t.Context(), who); err != nil {
		t.Errorf("the overtaken change: %v", err)
	}
	if rec := f.find("20.500.1/x"); at(rec.Values, 1) < 0 || at(rec.Values, 2) < 0 {
		t.Errorf("the record has %v", rec.Values)
	}
	f.want("taking the right away", f.do(ben, &Change{Operation: hdl.RemoveValue, Handle: "20.500.1/x", Indexes: []uint32{100}}), hdl.Success)
	if err := refused.Commit(t.Context(), who); CodeOf(err) != hdl.NotAdministrator {
		t.Errorf("without the right: %v", err)
	}
}
