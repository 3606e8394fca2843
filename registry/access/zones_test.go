package access

import (
	"context"
	"errors"
	"testing"

	"github.com/stele-id/stele"
)

// TestZones finds, changes and unpublishes a zone by its name and by the prefix of its namespace.
func TestZones(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:paradisec"}
		p := stele.Publication{Zone: "paradisec.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 1}
		if _, err := l.AddNamespace(ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Publication: p}); err != nil {
			t.Fatal(err)
		}
		zones := l.Zones()
		defer zones.Close()
		for _, text := range []string{"paradisec.example", "PARADISEC.example.", "urn:paradisec"} {
			if got, err := l.ZoneOwner(ctx, zones, text); err != nil || got != key {
				t.Errorf("%s: %v, %v", text, got, err)
			}
		}
		for _, text := range []string{"", "not a zone"} {
			if _, err := l.ZoneOwner(ctx, zones, text); !errors.Is(err, stele.NotFound) {
				t.Errorf("%s: %v", text, err)
			}
		}
		ns, err := l.SetZone(ctx, zones, "zone", "paradisec.example", func(p *stele.Publication) error { p.Mailbox = "root@example.org"; return nil })
		if err != nil || ns.Publication.Mailbox != "root@example.org" {
			t.Errorf("%+v, %v", ns, err)
		}
		if ns, err := l.PublishedIn(ctx, "Paradisec.example"); err != nil || ns.Key() != key {
			t.Errorf("%+v, %v", ns, err)
		}
		if _, err := l.PublishedIn(ctx, "other.example"); !errors.Is(err, stele.NotFound) {
			t.Error(err)
		}
		if ns, err := l.Unpublish(ctx, zones, "urn:paradisec"); err != nil || !ns.Publication.IsZero() {
			t.Errorf("%+v, %v", ns, err)
		}
		if _, err := l.Unpublish(ctx, zones, "urn:paradisec"); !errors.Is(err, stele.Conflict) {
			t.Errorf("it is not published: %v", err)
		}
		if _, err := l.SetZone(ctx, zones, "zone", "urn:paradisec", func(*stele.Publication) error { return nil }); !errors.Is(err, stele.Conflict) {
			t.Errorf("it is in no zone: %v", err)
		}
	})
}
