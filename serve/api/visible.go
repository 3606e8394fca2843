package api

import (
	"slices"

	"github.com/stele-id/stele"
)

// visible returns a record, which whoever asks may see, as far as they may see it: all
// of it if they have a role in its namespace.
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

// public returns a record as everybody may see it, or everybody whom it names among
// its readers: without who else may, who changed it, and handle values that are not
// for the public; once it is withdrawn, without where it was; and if content was
// removed by a legal order, without content.
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
