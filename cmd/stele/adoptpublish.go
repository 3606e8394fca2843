package main

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
)

// mayPublish reports whether a namespace that was adopted can be published as the giver published it: it is open here, and the giver has a zone of it.
func mayPublish(s *registrar.AdoptedSpace) bool { return !s.Reading && s.Publication.Zone != "" }

// publishAdopted publishes namespaces that are open here in the zones in which the giver published them, cut into parts as there. Name servers, keys and mailboxes are not taken over. One
// that is published here stays as it is, so that the step can be repeated.
func (p *program) publishAdopted(ctx context.Context, r *registry.Registry, i *bundle.Inheritance) error {
	l := access.NewLocal(r, p.now, r.Place().String())
	zones := l.Zones()
	defer zones.Close()
	for n := range i.Spaces {
		s := &i.Spaces[n]
		if !mayPublish(s) {
			continue
		}
		ns, err := l.SetNamespace(ctx, s.Key, 0, func(ns *stele.Namespace) error {
			if !ns.Publication.IsZero() {
				return nil
			}
			ns.Publication = s.Publication
			return judged(ctx, zones, ns)
		})
		if err != nil {
			return err
		}
		list, err := zones.Advise(ctx, ns.Publication.Zone)
		if err != nil {
			return err
		}
		for _, problem := range list {
			fmt.Fprintf(p.stderr, "stele: %s: %s\n", ns.Publication.Zone, printable(problem.Text))
		}
	}
	return nil
}
