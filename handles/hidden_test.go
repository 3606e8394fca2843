package handles

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// TestHidden: a record that is for some readers only and one that is not there answer with the same codes, to clients that
// claim an identity and to clients that have proved one that the record does not name.
func TestHidden(t *testing.T) {
	f := newFixture(t)
	f.register("0.NA/20.500.1", admin(100, hdl.MayAddHandle, "300:20.500.1/MAKER"))
	if _, err := f.r.Register(f.admin, &stele.Record{ID: f.id("20.500.1/HIDDEN"), Readers: []string{"user:ann"},
		Values: []stele.HandleValue{text(1, "URL", "https://example.org/1"), admin(100, hdl.MayModifyValue|hdl.MayDeleteHandle, ann)}}); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(handle string) *Change{
		"create": func(h string) *Change {
			return &Change{Operation: hdl.CreateHandle, Handle: h, Values: []stele.HandleValue{text(1, "URL", "https://example.org/2")}}
		},
		"overwrite": func(h string) *Change {
			return &Change{Operation: hdl.CreateHandle, Handle: h, Overwrite: true, Values: []stele.HandleValue{text(1, "URL", "https://example.org/2")}}
		},
		"delete": func(h string) *Change { return &Change{Operation: hdl.DeleteHandle, Handle: h} },
		"add": func(h string) *Change {
			return &Change{Operation: hdl.AddValue, Handle: h, Values: []stele.HandleValue{text(1, "URL", "https://example.org/2")}}
		},
		"modify": func(h string) *Change {
			return &Change{Operation: hdl.ModifyValue, Handle: h, Values: []stele.HandleValue{text(1, "URL", "https://example.org/2")}}
		},
		"modify another": func(h string) *Change {
			return &Change{Operation: hdl.ModifyValue, Handle: h, Values: []stele.HandleValue{text(9, "URL", "https://example.org/2")}}
		},
		"remove": func(h string) *Change { return &Change{Operation: hdl.RemoveValue, Handle: h, Indexes: []uint32{1}} },
	}
	code := func(err error) hdl.ResponseCode {
		if err == nil {
			return hdl.Success
		}
		return CodeOf(err)
	}
	for name, make := range changes {
		for _, who := range []string{ann, "300:20.500.1/EVE", "300:20.500.1/MAKER"} {
			identity, err := f.ParseIdentity(who)
			if err != nil {
				t.Fatal(err)
			}
			var begun, claimed, proved [2]hdl.ResponseCode
			for i, handle := range []string{"20.500.1/HIDDEN", "20.500.1/NOTHING"} {
				c := make(handle)
				begun[i] = code(f.Begin(t.Context(), c))
				claimed[i] = code(c.Claim(t.Context(), identity))
				proved[i] = code(c.Authorise(t.Context(), identity))
			}
			if begun[0] != begun[1] || claimed[0] != claimed[1] {
				t.Errorf("%s by %s: before the proof the codes are %d and %d, then %d and %d", name, who, begun[0], begun[1], claimed[0], claimed[1])
			}
			if who == "300:20.500.1/EVE" && proved[0] != proved[1] {
				t.Errorf("%s by %s: after the proof the codes are %d and %d", name, who, proved[0], proved[1])
			}
		}
	}
	f.want("a name that is taken", f.do("300:20.500.1/MAKER", changes["create"]("20.500.1/HIDDEN")), hdl.HandleExists)
	f.want("the administrator modifies", f.do(ann, changes["modify"]("20.500.1/HIDDEN")), hdl.Success)
	f.want("the administrator deletes", f.do(ann, changes["delete"]("20.500.1/HIDDEN")), hdl.Success)
	f.want("a name that is free", f.do("300:20.500.1/MAKER", changes["create"]("20.500.1/FREE")), hdl.Success)
}
