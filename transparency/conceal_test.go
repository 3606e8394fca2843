package transparency

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// The log shows a name only in versions that the public may see, also in a listed namespace: all may read it.
func TestLogConcealsNames(t *testing.T) {
	h := newHouse(t, nil)
	register := func(name string, state stele.State, readers ...string) {
		_, err := h.r.Register(h.ctx, &stele.Record{ID: h.id(name), State: state, Readers: readers})
		h.must(err)
	}
	update := func(name string, change func(*stele.Record)) {
		_, err := h.r.Update(h.ctx, h.id(name), 0, func(r *stele.Record) error { change(r); return nil })
		h.must(err)
	}
	for _, together := range []bool{true, false} { // in one batch with the first version, and later
		tag := map[bool]string{true: "a", false: "b"}[together]
		next := func() {
			if !together {
				h.catchUp()
			}
		}
		register("ark:12345/open"+tag, stele.Active)
		register("ark:12345/reserved"+tag, stele.Reserved)
		register("ark:12345/restricted"+tag, stele.Active, "user:anna")
		next()
		update("ark:12345/open"+tag, func(r *stele.Record) { r.Readers = []string{"user:anna"} })
		update("ark:12345/reserved"+tag, func(r *stele.Record) { r.State = stele.Active })
		update("ark:12345/restricted"+tag, func(r *stele.Record) { r.Metadata = stele.Metadata{"what": "more"} })
		next()
		update("ark:12345/open"+tag, func(r *stele.Record) { r.Readers = nil })
		h.catchUp()
	}
	h.wantSound()
	want := map[string][]bool{"open": {true, false, true}, "reserved": {false, true}, "restricted": {false, false}}
	shown := map[string][]bool{}
	status, err := h.log.Status(h.ctx)
	h.must(err)
	data, err := h.newLog().Entries(h.ctx, 0, int(status.Size))
	h.must(err)
	list, _ := splitBundle(data)
	for leaf, text := range list {
		l, err := ParseLeaf(text)
		h.must(err)
		c, err := h.log.change(h.ctx, uint64(leaf))
		h.must(err)
		if c.ID.IsValid() {
			name := strings.TrimPrefix(c.ID.String(), "ark:12345/")
			shown[name] = append(shown[name], l.Name != "")
			if strings.Contains(string(text), name) != (l.Name != "") {
				t.Errorf("leaf %d is %s", leaf, text)
			}
		}
	}
	for name, versions := range shown {
		for i, is := range versions {
			if is != want[name[:len(name)-1]][i] {
				t.Errorf("version %d of %s stands in the log: %v", i+1, name, is)
			}
		}
	}
	if len(shown) != 6 {
		t.Errorf("the log has %d names", len(shown))
	}
	// Proofs find them, with the key of the first version.
	for name, versions := range shown {
		for i := range versions {
			if _, err := h.prove("ark:12345/"+name, uint64(i+1), true).Check(h.keys.Public()); err != nil {
				t.Errorf("version %d of %s: %v", i+1, name, err)
			}
		}
	}
}
