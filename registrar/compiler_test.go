package registrar

import (
	"errors"
	"testing"

	"github.com/stele-id/stele"
)

// What makes zones is noted, and when it is another one the zones are new.
func TestNoteCompiler(t *testing.T) {
	f := newFixture(t)
	key := f.space("urn:one", owner("ann"), published("one.example."))
	other := f.space("urn:two", owner("ann"))
	for i, test := range []struct {
		name          string
		version, step uint64
	}{{"1", 1, 0}, {"1", 1, 0}, {"2", 2, 1}, {"2", 2, 0}, {"1", 3, 1}} {
		before := must(f.store.LastChange(f.admin))(t)
		if err := f.NoteCompiler(f.admin, test.name); err != nil {
			t.Fatal(err)
		}
		after := must(f.store.LastChange(f.admin))(t)
		ns := must(f.Namespace(f.admin, key))(t)
		if after-before != test.step || ns.Version != test.version || ns.Publication.Zone != "one.example." {
			t.Errorf("%d: %d changes, %+v", i, after-before, ns)
		}
	}
	if ns := must(f.Namespace(f.admin, other))(t); ns.Version != 1 {
		t.Errorf("what is not published: %+v", ns)
	}
	if err := f.NoteCompiler(as("ann"), "3"); !errors.Is(err, stele.Forbidden) {
		t.Error(err)
	}
}
