package registrar

import (
	"errors"
	"testing"

	"github.com/stele-id/stele"
)

// published publishes a namespace in a zone.
func published(zone string) func(*stele.Namespace) {
	return func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: zone, Layout: stele.LayoutNames, Separator: ":", Parts: 1}
	}
}

func TestZoneKeys(t *testing.T) {
	told := 0
	f := newFixture(t, func(o *Options) { o.OnNamespaces = func() { told++ } })
	key := f.space("urn:one", owner("ann"), published("one.example."))
	f.space("urn:two", owner("bob"), published("two.example."))
	add := func(cells []stele.Cell) ([]stele.CellChange, error) {
		if len(cells) > 0 {
			return nil, nil
		}
		return []stele.CellChange{{Name: "zonekey one.example. 00001", After: []byte("secret")}}, nil
	}
	before := must(f.store.LastChange(f.admin))(t)
	told = 0
	for range 2 { // the second time nothing changes
		if err := f.SetZoneKeys(as("ann"), key, add); err != nil {
			t.Fatal(err)
		}
	}
	if after := must(f.store.LastChange(f.admin))(t); after != before+1 || told != 1 {
		t.Errorf("%d changes, and %d were told", after-before, told)
	}
	ns := must(f.Namespace(f.admin, key))(t)
	if ns.Version != 2 || ns.By != "ann" || ns.Publication.Zone != "one.example." {
		t.Errorf("got %+v", ns)
	}
	cells := must(f.ZoneKeys(as("ann"), key))(t)
	if len(cells) != 1 || string(cells[0].Value) != "secret" {
		t.Errorf("got %v", cells)
	}
}

// Only a principal that may change the settings of a namespace may manage its zone
// keys.
func TestZoneKeysAreForOwners(t *testing.T) {
	f := newFixture(t)
	key := f.space("urn:one", owner("ann"), published("one.example."), func(ns *stele.Namespace) {
		ns.Grants = []stele.Grant{{To: "user:eve", Role: stele.RoleEditor}}
	})
	bare := f.space("urn:bare", owner("ann"))
	change := func([]stele.Cell) ([]stele.CellChange, error) {
		return []stele.CellChange{{Name: "zonekey one.example. 1", After: []byte("x")}}, nil
	}
	for _, test := range []struct {
		who  string
		key  stele.NamespaceKey
		want stele.Kind
	}{
		{"", key, stele.Unauthenticated},
		{"bob", key, stele.NotFound},
		{"eve", key, stele.Forbidden},
		{"ann", bare, stele.Conflict},
		{"ann", stele.NamespaceKey{Scheme: "urn", Prefix: "urn:none"}, stele.NotFound},
	} {
		if err := f.SetZoneKeys(as(test.who), test.key, change); !errors.Is(err, test.want) {
			t.Errorf("%q sets keys of %s: %v, want %v", test.who, test.key, err, test.want)
		}
		if _, err := f.ZoneKeys(as(test.who), test.key); !errors.Is(err, test.want) {
			t.Errorf("%q reads keys of %s: %v, want %v", test.who, test.key, err, test.want)
		}
	}
}

// Nothing but keys of that zone is written.
func TestZoneKeyNames(t *testing.T) {
	f := newFixture(t)
	key := f.space("urn:one", published("one.example."))
	for _, name := range []string{"zonekey two.example. 1", "zonekey one.example. ", "zonekey one.example. 1 2", "user ann", ""} {
		err := f.SetZoneKeys(f.admin, key, func([]stele.Cell) ([]stele.CellChange, error) {
			return []stele.CellChange{{Name: name, After: []byte("x")}}, nil
		})
		if !errors.Is(err, stele.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	wrong := errors.New("no")
	if err := f.SetZoneKeys(f.admin, key, func([]stele.Cell) ([]stele.CellChange, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}
