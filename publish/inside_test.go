package publish_test

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
)

// TestZonesInsideSegments checks that a namespace that ends inside a part of names has a
// zone of its own. Its names are in that zone and not in the one of the namespace above it,
// whose rules lead there.
func TestZonesInsideSegments(t *testing.T) {
	for _, tt := range []struct {
		outer, inner string
		in, out      [2]string // a name and its owner, of the inner zone and of the outer one
		wrong        string    // the owner that the inner name would have in the outer zone
	}{
		{"ark:13030", "ark:13030/qt",
			[2]string{"ark:13030/qt8n91c81t", "8n91c81t.inner.example."}, [2]string{"ark:13030/q8", "q8.outer.example."}, "qt8n91c81t.outer.example."},
		{"ark:13030/q", "ark:13030/qt",
			[2]string{"ark:13030/qt8n91c81t", "8n91c81t.inner.example."}, [2]string{"ark:13030/qs8", "s8.outer.example."}, "t8n91c81t.outer.example."},
		{"https://purl.example.org/obo/", "https://purl.example.org/obo/HP_",
			[2]string{"https://purl.example.org/obo/HP_0000001", "0000001.inner.example."}, [2]string{"https://purl.example.org/obo/HPX", "hpx.outer.example."}, "hp_0000001.outer.example."},
	} {
		t.Run(tt.inner, func(t *testing.T) {
			p := publishtest.New(t)
			p.Publish(tt.outer, "outer.example.", "/", 1)
			p.Register(tt.in[0], "https://example.org/in")
			p.Register(tt.out[0], "https://example.org/out")
			if got := rulesAt(p, tt.wrong); len(got) == 0 {
				t.Error("the name is not in the zone of the only namespace")
			}
			p.Namespace(tt.inner, func(*stele.Namespace) {}) // it says nothing of zones
			if got := rulesAt(p, tt.wrong); len(got) == 0 {
				t.Error("the name is not in the zone of the namespace above")
			}
			p.Publish(tt.inner, "inner.example.", "/", 1)
			if got := rulesAt(p, tt.wrong); len(got) != 0 {
				t.Errorf("the name is in the outer zone: %q", got)
			}
			for _, name := range [][2]string{tt.in, tt.out} {
				if len(rulesAt(p, name[1])) == 0 {
					t.Errorf("%s is not at %s", name[0], name[1])
				}
			}
			for name, want := range map[string]string{tt.in[0]: "RES:https https://example.org/in", tt.out[0]: "RES:https https://example.org/out"} {
				if got := walkURI(p, "outer.example.", name); got != want {
					t.Errorf("%s: %s", name, got)
				}
			}
			// A change touches the zone that the name is in, and no other.
			outer, inner := p.Serial("outer.example."), p.Serial("inner.example.")
			p.Register(tt.in[0]+"2", "https://example.org/in2")
			if p.Serial("outer.example.") != outer || !stele.SerialAfter(p.Serial("inner.example."), inner) {
				t.Errorf("serials were %d and %d, and are %d and %d", outer, inner, p.Serial("outer.example."), p.Serial("inner.example."))
			}
			inner = p.Serial("inner.example.")
			p.Register(tt.out[0]+"2", "https://example.org/out2")
			if p.Serial("inner.example.") != inner || !stele.SerialAfter(p.Serial("outer.example."), outer) {
				t.Error("a name of the outer zone does not touch that alone")
			}
		})
	}
}
