package registrar

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// A namespace whose minter comes from elsewhere says in its line how far that is.
func TestProgressLine(t *testing.T) {
	f := newFixture(t)
	ns := &stele.Namespace{Scheme: "ark", Prefix: "ark:13030/f5", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".rd", Order: stele.OrderNOID}}
	p := Progress{Given: 2, Counters: "1,0,0,1,0,0,0,0,0,0"}
	text := AppendNamespaceProgress(nil, ns, p)
	if want := `,"progress":{"given":2,"counters":"1,0,0,1,0,0,0,0,0,0"}}` + "\n"; !strings.HasSuffix(string(text), want) {
		t.Errorf("%s", text)
	}
	l, err := ParseLine(f.schemes, text)
	if err != nil || l.Progress != p || !l.Namespace.Equal(ns) {
		t.Errorf("%+v, %v", l, err)
	}
	l, err = ParseLine(f.schemes, AppendNamespaceLine(nil, ns))
	if err != nil || l.Progress != (Progress{}) {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{
		`{"namespace":{"scheme":"ark","prefix":"ark:13030"},"progress":{"given":-1}}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:13030"},"progress":{"taken":1}}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:13030"},"progress":7}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:13030"},"progress":{"given":1},"more":1}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:13030"},"progress":{"given":1}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:13030"},"counters":"1"}`,
	} {
		if _, err := ParseLine(f.schemes, []byte(bad)); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// Only an administrator brings a minter; damaged counters are refused, and then nothing is written.
	if err := f.IngestNamespace(f.admin, ns, ImportOptions{Progress: Progress{Given: 3, Counters: p.Counters}}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("wrong counters: %v", err)
	}
	if _, err := f.Namespace(f.admin, ns.Key()); stele.KindOf(err) != stele.NotFound {
		t.Errorf("after wrong counters: %v", err)
	}
	if err := f.IngestNamespace(f.admin, ns, ImportOptions{Progress: p}); err != nil {
		t.Fatal(err)
	}
	if s, err := f.MinterStatus(f.admin, ns.Key()); err != nil || s.Given != 2 || !s.Shut {
		t.Errorf("%+v, %v", s, err)
	}
	// A later dump of the same minter sets it ahead; an earlier one changes nothing.
	later := Progress{Given: 3, Counters: "1,0,0,1,0,0,0,0,1,0"}
	if err := f.IngestNamespace(f.admin, ns, ImportOptions{Progress: later}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []Progress{p, later} {
		if err := f.IngestNamespace(f.admin, ns, ImportOptions{Progress: at}); err != ErrUnchanged {
			t.Errorf("%+v again: %v", at, err)
		}
	}
	if s, err := f.MinterStatus(f.admin, ns.Key()); err != nil || s.Given != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	// So does one that comes with another setting.
	owned := *ns
	owned.Owner, p = "ann", Progress{Given: 4, Counters: "1,0,0,1,0,0,0,1,1,0"}
	if err := f.IngestNamespace(as("ann"), &owned, ImportOptions{Update: true, Progress: p}); stele.KindOf(err) == stele.Internal || err == nil {
		t.Errorf("by a user: %v", err)
	}
	if err := f.IngestNamespace(f.admin, &owned, ImportOptions{Update: true, Progress: p}); err != nil {
		t.Fatal(err)
	}
	if s, err := f.MinterStatus(f.admin, ns.Key()); err != nil || s.Given != 4 || !s.Shut {
		t.Errorf("%+v, %v", s, err)
	}
	if have, err := f.Namespace(f.admin, ns.Key()); err != nil || have.Owner != "ann" {
		t.Errorf("%+v, %v", have, err)
	}
}
