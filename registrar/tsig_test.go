package registrar

import (
	"errors"
	"testing"

	"github.com/stele-id/stele"
)

func TestTSIGKeys(t *testing.T) {
	told := 0
	f := newFixture(t, func(o *Options) { o.OnNamespaces = func() { told++ } })
	f.space("urn:one", owner("ann"), published("one.example."))
	told = 0
	set := func(value string) func([]byte) ([]byte, error) {
		return func(before []byte) ([]byte, error) { return append(before, value...), nil }
	}
	for _, value := range []string{"a", "b"} {
		if err := f.SetTSIGKey(f.admin, "k.example.", set(value)); err != nil {
			t.Fatal(err)
		}
	}
	if told != 2 {
		t.Errorf("the name server was told %d times", told)
	}
	cells := must(f.TSIGKeys(f.admin))(t)
	if len(cells) != 1 || cells[0].Name != "tsig k.example." || string(cells[0].Value) != "ab" {
		t.Errorf("got %v", cells)
	}
	wrong := errors.New("no")
	if err := f.SetTSIGKey(f.admin, "k.example.", func([]byte) ([]byte, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}

	// A key opens every zone that names it, so owners of namespaces do not have them.
	for who, want := range map[string]stele.Kind{"": stele.Unauthenticated, "ann": stele.Forbidden} {
		if err := f.SetTSIGKey(as(who), "k.example.", set("c")); !errors.Is(err, want) {
			t.Errorf("%q sets a key: %v", who, err)
		}
		if _, err := f.TSIGKeys(as(who)); !errors.Is(err, want) {
			t.Errorf("%q reads keys: %v", who, err)
		}
	}
	for _, name := range []string{"", ".", "k.example", "K.example.", "k k.", "k..example.", ".example.", "k\n."} {
		if err := f.SetTSIGKey(f.admin, name, set("c")); !errors.Is(err, stele.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
