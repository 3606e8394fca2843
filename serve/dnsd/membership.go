package dnsd

import "github.com/stele-id/stele"

// has reports whether the zone is the zoneOf an identifier. It is called for every name of
// a zone that is sent.
func (z *Zone) has(id stele.ID) bool {
	switch {
	case !z.alone:
		return z.set.zoneOf(id) == z
	case id.Scheme() != z.ns.Scheme || z.ns.Publication.Layout == stele.LayoutRoot:
		return false
	}
	return z.ns.Prefix == "" || z.set.schemes.IsWithin(id, z.ns.Prefix)
}
