package registrar

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonemap"
)

// touch adds to a commit which zones it touches. All commits of the registrar with
// records or namespaces pass here, so that none lacks it, and none writes in a namespace
// that was sealed: the store refuses it if that was sealed since.
func (r *Registrar) touch(ctx context.Context, op string, c *stele.Commit) error {
	if c.Touch != nil || c.Replay != nil || len(c.Records)+len(c.Seen)+len(c.Namespaces) == 0 {
		return nil
	}
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	for _, rec := range c.Records {
		if err := r.open(ctx, op, s, rec); err != nil {
			return err
		}
	}
	for _, seen := range c.Seen { // what is kept of a record is a part of it
		if err := r.open(ctx, op, s, &stele.Record{ID: seen.ID, Version: seen.Version + 1}); err != nil {
			return err
		}
	}
	c.Touch = s.touch()
	if len(c.Namespaces) > 0 {
		c.Touch.Namespaces = s.touchedBy(c)
	}
	return nil
}

// touch says which zones records touch.
func (s *namespaceTree) touch() *stele.Touch {
	t := &stele.Touch{NamespaceVersions: s.versions}
	if s.zoned {
		t.Record = s.zones().OfRecord
	}
	return t
}

// zones returns the zones of the namespaces. They are made when they are asked for first.
func (s *namespaceTree) zones() *zonemap.Zones {
	if z := s.published.Load(); z != nil {
		return z
	}
	z := zonemap.New(s.Tree)
	s.published.Store(z)
	return z
}

// touchedBy returns the zones that the namespaces of a commit touch, and those whose keys
// it changes, which the zones around them have digests of.
func (s *namespaceTree) touchedBy(c *stele.Commit) []string {
	after := s.Tree
	var keys []stele.NamespaceKey
	for _, ns := range c.Namespaces {
		after, _ = after.With(ns) // it was judged before
		keys = append(keys, ns.Key())
	}
	now := zonemap.New(after)
	touched := zonemap.Touched(s.zones(), now, keys...)
	for _, cell := range c.Cells {
		if cell.Name == compilerCell {
			return now.All() // another program makes other zones of the same registry
		}
		rest, ok := strings.CutPrefix(cell.Name, zonekey.CellPrefix)
		if !ok {
			continue
		}
		zone, _, _ := strings.Cut(rest, " ")
		touched = append(touched, zone)
		if around := now.Around(zone); around != "" {
			touched = append(touched, around)
		}
	}
	slices.Sort(touched)
	return slices.Compact(touched)
}
