package urn

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
)

// Explain tells the parts of a URN; see [stele.Scheme].
func (s *Scheme) Explain(text string) (stele.Explanation, error) {
	var r reading
	if err := s.read(text, &r); err != nil {
		return stele.Explanation{}, err
	}
	x := stele.Explanation{
		ID:   r.id,
		Form: r.ns.form,
		Parts: stele.Parts{
			{Name: "nid", Value: r.nid, Note: r.ns.title},
			{Name: "nss", Value: r.nss},
		},
		Spellings: s.Spellings(r.id),
	}
	x.Parts = append(x.Parts, r.urn.Components()...)
	if r.ns.explain != nil {
		r.ns.explain(r.nss, &x)
	}
	if strings.HasPrefix(r.nid, "x-") {
		x.Warnings = append(x.Warnings, fmt.Sprintf("The namespace %q is registered nowhere: others can use the same names for other things.", r.nid))
	}
	x.Warnings = append(x.Warnings, r.urn.Warnings()...)
	return x, nil
}

// Spellings returns the other ways to write id. A resolver's URL is one only
// where all clients use the same resolver.
func (s *Scheme) Spellings(id stele.ID) []stele.Spelling {
	nid, nss, ok := cutID(id.String())
	if !ok {
		return nil
	}
	if ns := s.namespace(nid); ns.spellings != nil {
		return ns.spellings(nss)
	}
	return nil
}
