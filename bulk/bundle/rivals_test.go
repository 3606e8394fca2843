package bundle

import (
	"bytes"
	"context"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

const rivalOrigin = "first.example.org/.log" // which silentGiver names, too

// asks returns what asks another heir, as if it were at the address that the bundle names.
func (h *house) asks(rival *house, sure bool) *giver.Others {
	return &giver.Others{Sure: sure, Ask: func(ctx context.Context, address string, key stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error) {
		if address != "https://first.example.org/" && address != "https://heir.example.org/" {
			h.Errorf("an heir is asked at %s", address)
		}
		list, err := rival.r.HandOvers(ctx, key)
		said := make(map[stele.NamespaceKey]*apijson.NamespaceHandOver)
		for _, ns := range list {
			d := apijson.HandOverOf(ns, rival.keys.Origin)
			said[ns.Key()] = &d
		}
		return said, err
	}}
}

// rivals returns two heirs of a giver.
func rivals(t *testing.T) (h, rival *house) {
	h, rival = later(t, 200), later(t, 200)
	rival.keys = &transparency.Keys{Origin: rivalOrigin, List: rival.keys.List}
	return h, rival
}

// Of two heirs of a silent giver one takes the names over, and neither says that the giver has ended if both have.
func TestRivals(t *testing.T) {
	g, data := silentGiver(t, silentDays)
	h, rival := rivals(t)
	takes := func(h, other *house, sure bool) error {
		a := h.silently(g, silentDays)
		a.Others = h.asks(other, sure).Confirm
		_, err := a.Run(h.ctx, bytes.NewReader(data))
		return err
	}
	_, err := rival.adoption(g).Run(rival.ctx, bytes.NewReader(data)) // for reading
	rival.must(err)
	h.must(takes(h, rival, false))
	rival.code("adopt.heir-took-over", takes(rival, h, false))
	rival.code("adopt.heir-took-over", takes(rival, h, true))
	ns, err := rival.r.Namespace(rival.ctx, h.key("ark:12345"))
	if rival.must(err); !ns.IsRead() {
		t.Errorf("the namespace is %+v", ns)
	}

	// Without having asked, the other one takes them over all the same.
	_, err = rival.silently(g, silentDays).Run(rival.ctx, bytes.NewReader(data))
	rival.must(err)
	for _, key := range []string{"ark:12345", "ark:99999"} {
		_, err = h.r.EndGiver(h.ctx, h.key(key), true, func(ctx context.Context, from string, spaces []registrar.AdoptedSpace) error {
			return h.asks(rival, true).Confirm(ctx, from, spaces)
		})
		h.code("adopt.heir-took-over", err)
	}
	_, err = h.r.Mint(h.ctx, h.key("ark:99999"), 1)
	h.code("mint.namespace-silent", err)
	_, err = h.r.SetNamespace(h.ctx, h.key("ark:12345"), 0, func(ns *stele.Namespace) error { ns.Heirs = nil; return nil })
	h.code("silence.heir-stays", err)
	_, err = h.r.SetNamespace(h.ctx, h.key("ark:12345"), 0, func(ns *stele.Namespace) error {
		ns.Heirs = append(ns.Heirs, stele.Heir{Registry: "third.example.org/.log", Address: "https://third.example.org/", Days: 30})
		return nil
	})
	h.must(err)
}

// Two heirs that take the names over at the same time see each other, and neither does.
func TestRivalsAtOnce(t *testing.T) {
	g, data := silentGiver(t, silentDays)
	h, rival := rivals(t)
	inner := rival.silently(g, silentDays)
	inner.Others = rival.asks(h, false).Confirm
	a, times := h.silently(g, silentDays), 0
	a.Others = func(ctx context.Context, from string, spaces []registrar.AdoptedSpace) error {
		if times++; times == 2 { // before it opens them
			_, err := inner.Run(rival.ctx, bytes.NewReader(data))
			rival.code("adopt.heir-takes-over", err)
			inner.Others = nil
			_, err = inner.Run(rival.ctx, bytes.NewReader(data))
			rival.must(err)
		}
		return h.asks(rival, false).Confirm(ctx, from, spaces)
	}
	_, err := a.Run(h.ctx, bytes.NewReader(data))
	h.code("adopt.heir-took-over", err)
	if ns, err := h.r.Namespace(h.ctx, h.key("ark:12345")); err != nil || !ns.IsRead() || times != 2 {
		t.Errorf("the namespace is %+v, %v; heirs are asked %d times", ns, err, times)
	}
}
