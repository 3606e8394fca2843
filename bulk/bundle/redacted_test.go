package bundle

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// A record that the giver has redacted, before the heir adopted it or after, stays provable as an entry at both registries, and its
// content is neither in their bundles nor in the heir's registry.
func TestRedactedByGiver(t *testing.T) {
	g, h := newGiver(t, 30), newHeir(t)
	for range 2 {
		g.put("ark:99999/later", func(r *stele.Record) { r.Metadata["who"] = "Linus Later" })
	}
	first := g.bundle(g.job(givenPrefixes...))
	h.adopt(g, first)
	if !bytes.Contains(first, []byte("Linus")) || bytes.Contains(first, []byte("Erasmus")) {
		t.Fatal("the first bundle is not what the test needs")
	}
	_, err := g.r.Redact(g.ctx, g.id("ark:99999/later"), 0, "a court order")
	g.must(err)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	h.adopt(g, data)
	own := h.bundle(h.job(givenPrefixes...))
	h.check(own)
	for _, word := range []string{"Linus", "Erasmus"} {
		if bytes.Contains(data, []byte(word)) || bytes.Contains(own, []byte(word)) {
			t.Errorf("a bundle has %s", word)
		}
		for rec, err := range h.store.Scan(h.ctx, "ark", "ark:99999", "") {
			h.must(err)
			for v, err := range h.store.History(h.ctx, rec.ID) {
				h.must(err)
				if bytes.Contains(fmt.Append(nil, v.Metadata), []byte(word)) {
					t.Errorf("version %d of %s has %s", v.Version, rec.ID, word)
				}
			}
		}
	}
	for _, at := range []*house{g, h} {
		at.cleanly()
		for name, last := range map[string]uint64{"ark:99999/erased": 4, "ark:99999/later": 3} {
			for version := uint64(1); version <= last; version++ {
				p, err := at.log.Prove(at.ctx, transparency.Wanted{ID: at.id(name), Version: version})
				at.must(err)
				shown, err := p.Check(at.keys.Public())
				at.must(err)
				if shown.Name != name || shown.Leaf.Version != version || (p.Document != nil) != (version == last) {
					t.Errorf("%s proves version %d of %s, document: %v", at.keys.Origin, shown.Leaf.Version, shown.Name, p.Document != nil)
				}
			}
		}
	}
}
