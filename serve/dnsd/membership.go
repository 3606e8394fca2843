package dnsd

import "github.com/stele-id/stele"

// membership tells which identifiers are published in a zone. It is asked of every name
// of a zone that is sent.
type membership struct {
	zone *zone
	look func(stele.Prefix) bool // isAbove
	held bool
}

func (z *zone) membership() *membership {
	m := &membership{zone: z}
	m.look = m.isAbove
	return m
}

// has reports whether the zone is the zoneOf an identifier.
func (m *membership) has(id stele.ID) bool {
	z := m.zone
	switch {
	case !z.alone:
		return z.set.zoneOf(id) == z
	case id.Scheme() != z.ns.Scheme || z.ns.Publication.Layout == stele.LayoutRoot:
		return false
	case id.String() == z.ns.Prefix || z.ns.Prefix == "":
		return true
	}
	m.held = false
	z.set.schemes.Parents(id)(m.look)
	return m.held
}

// isAbove looks at the names above one, of which the longest comes first, until they are
// too short.
func (m *membership) isAbove(p stele.Prefix) (more bool) {
	prefix := m.zone.ns.Prefix
	m.held = p.String() == prefix
	return len(p.String()) > len(prefix)
}
