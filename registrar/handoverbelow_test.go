package registrar

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele"
)

// What is handed over is a namespace and what is below it, also if a name right below another namespace is the one whose prefix is handed over.
func TestHandOverAbove(t *testing.T) {
	for given, above := range map[string]string{
		"ark:12345/x":   "ark:12345/",
		"ark:12345/x5x": "ark:12345/x5",
		"urn:example:x": "urn:example",
		"20.500.1/X":    "20.500.1/",
	} {
		t.Run(given, func(t *testing.T) {
			f := newFixture(t)
			stays, goes := f.space(above), f.space(given)
			list := must(f.OfferNamespace(f.admin, goes, testHeir, testAddress))(t)
			if len(list) != 1 || list[0].Key() != goes {
				t.Errorf("%d namespaces are offered", len(list))
			}
			must(f.SealNamespace(f.admin, goes))(t)
			if ns := must(f.Namespace(f.admin, stays))(t); ns.HandOver.State != stele.NotHandedOver {
				t.Errorf("%s is %s: it was handed over with one that is below it", stays, ns.HandOver.State)
			}
			if shown := must(f.HandOvers(f.admin, goes))(t); len(shown) != 1 {
				t.Errorf("%d namespaces are shown", len(shown))
			}
		})
	}
}

// Any client may ask how far a namespace is handed over. What that takes does not grow with how many others there are.
func TestHandOversOfMany(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/")
	f.space("ark:12345/x5")
	for n := range 300 {
		f.space(fmt.Sprintf("ark:%d/", 20000+n))
	}
	s := must(f.view(f.admin))(t)
	if list := s.below(key); len(list) != 2 {
		t.Fatalf("%v", list)
	}
	if n := testing.AllocsPerRun(10, func() { s.below(key) }); n > 50 {
		t.Errorf("%v allocations: it reads all namespaces", n)
	}
}

// The owner of a namespace does not own the prefix above it, if that is in no namespace, by any spelling of the owner's own prefix.
func TestPrefixAboveOwn(t *testing.T) {
	for _, own := range []string{"ark:12345/x5", "ark:12345/x"} {
		t.Run(own, func(t *testing.T) {
			f := newFixture(t)
			f.space(own, owner("ana"))
			_, err := f.Bundling(as("ana"), f.key("ark:12345/"))
			want(t, err, stele.Forbidden)
			must(f.Bundling(as("ana"), f.key(own)))(t)
			for _, err = range f.Scan(as("ana"), f.key("ark:12345/"), "") {
				break
			}
			if err == nil {
				t.Error("all names below the prefix are listed")
			}
		})
	}
}
