package api

import (
	"slices"

	"github.com/stele-id/stele"
)

// visible returns a record, which the caller may see, as far as the caller may see it: all of
// it if the caller has a role in its namespace.
func (h *Handler) visible(c *call, rec *stele.Record) (*stele.Record, error) {
	if !c.who.IsKnown() {
		return public(rec), nil
	}
	role, err := h.o.Registrar.RoleIn(c.ctx, stele.NamespaceKey{Scheme: rec.ID.Scheme(), Prefix: rec.ID.String()})
	if err != nil {
		return nil, err
	}
	if role.Includes(stele.RoleReader) {
		return rec, nil
	}
	return public(rec), nil
}

// public returns a record as the public and its readers may see it: without the readers, the
// user who changed it, and handle values that are not public; without targets and values once
// it is withdrawn; and without content if that was removed by a legal order.
func public(rec *stele.Record) *stele.Record {
	p := *rec
	p.Readers, p.By, p.Import = nil, "", 0
	p.Values = slices.DeleteFunc(slices.Clone(rec.Values), func(v stele.HandleValue) bool {
		return v.Permissions&stele.PublicRead == 0
	})
	p.Withheld = rec.Withheld.Clone()
	for i := range p.Withheld.Disavowed {
		p.Withheld.Disavowed[i].By = ""
	}
	if p.State == stele.Withdrawn {
		p.Targets, p.Values = nil, nil
	}
	if p.Redacted {
		p.Spelling, p.Aliases, p.Metadata, p.Persistence = "", nil, nil, stele.Persistence{}
		p.Targets, p.Values, p.Signatures = nil, nil, nil
	}
	return &p
}
