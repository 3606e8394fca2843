package api

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/api/openapi"
)

// identifier is the parameter in the path of what names a record.
var identifier = parameter{name: "id", about: "The identifier or an alias, in any spelling, percent-encoded once; its slashes may stay", example: "ark:12345/x1"}

func (h *Handler) recordOperations() []operation {
	const group = "Records"
	record := answer{status: 200, about: "The record as it is now.", value: openapi.Record{}, headers: []parameter{entityTag}}
	input := &body{media: []string{apijson.JSON}, limit: maxBody, value: openapi.RecordInput{}, example: `{"id":"ark:12345/x1","url":"https://example.org/1","metadata":{"what":"A thing"}}`,
		about: "The record. What the system keeps (version, created, modified, by, redacted) is not believed. Without an id it is that of the path."}
	return []operation{{
		name: "getRecord", method: http.MethodGet, path: "records/{id}", group: group, tail: identifier,
		summary: "Show a record",
		about: "Everybody sees what is neither reserved nor restricted, without who may see it, who changed it, and handle values that are not for the public; of a withdrawn record, its tombstone. " +
			"A user with a role in its namespace sees all of it. To all others it does not exist.",
		asks: anyone, scope: auth.ScopeRead,
		query: []parameter{
			{name: "version", kind: numberKind, min: 1, about: "this version instead of the last one", example: "1"},
			{name: "at", kind: momentKind, about: "the version that was current then", example: "2030-01-01T00:00:00Z"},
		},
		headers: []parameter{ifMatch, ifNoneMatch},
		answers: []answer{record, {status: 304, about: "It has one of the tags in If-None-Match.", headers: []parameter{entityTag}}},
		fails:   []int{404, 412},
		gathers: true,
		serve:   h.getRecord,
	}, {
		name: "putRecord", method: http.MethodPut, path: "records/{id}", group: group, tail: identifier,
		summary: "Register a record, or replace what one says",
		about: "With If-None-Match: * it is registered only if there is none; with If-Match it is replaced only if it has that version. Without either it is registered if there is none, and otherwise nothing is done. " +
			"No name is ever detached from a record, so all its aliases must be among the new ones.",
		asks: editor, scope: auth.ScopeWrite, headers: []parameter{ifMatch, ifNoneMatch}, body: input,
		answers: []answer{record, {status: 201, about: "The record was registered.", value: openapi.Record{}, headers: []parameter{entityTag, location}}},
		fails:   []int{404, 409, 410, 412, 428},
		serve:   h.putRecord,
	}, {
		name: "patchRecord", method: http.MethodPatch, path: "records/{id}", group: group, tail: identifier,
		summary: "Change some of what a record says",
		about:   "A merge patch (RFC 7396) of the record as getRecord shows it: a field that is null is removed, a list is replaced as a whole.",
		asks:    editor, scope: auth.ScopeWrite, headers: []parameter{ifMatch, ifNoneMatch},
		body:    &body{media: []string{apijson.MergePatch}, limit: maxBody, value: openapi.RecordPatch{}, example: `{"metadata":{"what":"Another thing"}}`},
		answers: []answer{record},
		fails:   []int{404, 409, 410, 412},
		serve:   h.patchRecord,
	}, {
		name: "deleteRecord", method: http.MethodDelete, path: "records/{id}", group: group, tail: identifier,
		summary: "Withdraw a record",
		about:   "Nothing is ever deleted: it answers with a tombstone from now on, and its history stays. See withdrawRecord.",
		asks:    editor, scope: auth.ScopeWrite, headers: []parameter{ifMatch, ifNoneMatch},
		query: []parameter{
			{name: "reason", required: true, min: 1, max: stele.MaxProse, about: "why, for readers who look for it", example: "Published by mistake"},
			{name: "replacement", about: "the identifier of what to use instead"},
		},
		answers: []answer{record},
		fails:   []int{404, 409, 412},
		serve:   h.deleteRecord,
	}}
}

// getRecord shows a record.
func (h *Handler) getRecord(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	on, err := c.conditions()
	if err != nil {
		return err
	}
	rec, err := h.find(c, id)
	if err != nil {
		return h.meant(c, id, err)
	}
	if err := on.holdMatch(c.op.name, id, rec.Version); err != nil {
		return err
	}
	if on.isKnown(rec.Version) {
		c.w.Header().Set("ETag", c.h.tagOf(rec.Version))
		c.replyEmpty(http.StatusNotModified)
		return nil
	}
	if rec, err = h.visible(c, rec); err != nil {
		return err
	}
	return c.replyRecord(http.StatusOK, rec)
}

// find returns the version of a record that is asked for.
func (h *Handler) find(c *call, id stele.ID) (*stele.Record, error) {
	version, at := c.number("version"), c.moment("at")
	switch {
	case version != 0 && !at.IsZero():
		return nil, invalidf("request.version-and-at-given", "version and at are both given; keep one")
	case !at.IsZero():
		return h.o.Registrar.At(c.ctx, id, at)
	case version == 0:
		return h.o.Registrar.Get(c.ctx, id)
	}
	return h.o.Registrar.Version(c.ctx, id, version)
}

// meant adds similar names to the error of a name that is not found, if its check character
// shows that it was mistyped.
func (h *Handler) meant(c *call, id stele.ID, err error) error {
	if h.o.Resolver == nil || !errors.Is(err, stele.NotFound) {
		return err
	}
	_, unknown := h.o.Resolver.Resolve(c.ctx, resolver.Request{ID: id})
	if e, ok := errors.AsType[*resolver.UnknownError](unknown); ok && e.Mistyped {
		return &stele.Error{Op: "show", ID: id, Kind: stele.NotFound, Err: e}
	}
	return err
}

// putRecord registers a record, or replaces the contents of a registered one.
func (h *Handler) putRecord(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	on, err := c.conditions()
	if err != nil {
		return err
	}
	have, err := h.o.Registrar.Get(c.ctx, id)
	if err != nil && !errors.Is(err, stele.NotFound) {
		return err
	}
	if err != nil {
		return h.register(c, id, on)
	}
	if !on.isSaid() {
		return on.unconditional(c.op.name, id, have.Version)
	}
	rec, err := c.record(have.ID)
	if err != nil {
		return err
	}
	if rec.ID != have.ID {
		return otherID(c, rec.ID, have.ID)
	}
	next, err := h.o.Registrar.Update(c.ctx, id, 0, func(next *stele.Record) error {
		if err := on.hold(c.op.name, id, next.Version); err != nil {
			return err
		}
		replace(next, rec)
		return nil
	})
	if err != nil {
		return err
	}
	return c.replyRecord(http.StatusOK, next)
}

// register registers the record in the body.
func (h *Handler) register(c *call, id stele.ID, on conditions) error {
	if err := on.holdNothing(c.op.name, id); err != nil {
		return err
	}
	rec, err := c.record(id)
	if err != nil {
		return err
	}
	if rec.ID != id {
		return otherID(c, rec.ID, id)
	}
	made, err := h.o.Registrar.Register(c.ctx, rec)
	if err != nil {
		if have, _ := h.o.Registrar.Get(c.ctx, id); have != nil && stele.KindOf(err) == stele.Conflict {
			// Another request registered it first.
			if !on.isSaid() {
				return on.unconditional(c.op.name, id, have.Version)
			}
			return failed(c.op.name, id, "precondition.record-registered-meanwhile", "it was registered meanwhile, with version {version}", have.Version)
		}
		return err
	}
	c.w.Header().Set("Location", Root+"/records/"+escaped(id.String()))
	return c.replyRecord(http.StatusCreated, made)
}

// otherID says that path and body name different things.
func otherID(c *call, got, want stele.ID) error {
	return &stele.Error{Op: c.op.name, ID: want, Kind: stele.Invalid, Err: stele.Problems{{Path: "id",
		Err: stele.Messagef("request.identifier-differs-from-path", "the path leads to {expected}, and this is {given}; make them the same, or leave it out", want, got)}}}
}

// replace gives a record all that people say of another.
func replace(next, by *stele.Record) {
	next.Spelling, next.Aliases, next.State, next.Tombstone = by.Spelling, by.Aliases, by.State, by.Tombstone
	next.Targets, next.Metadata, next.Persistence = by.Targets, by.Metadata, by.Persistence
	next.Values, next.Readers, next.Signatures = by.Values, by.Readers, by.Signatures
}

// patchRecord changes some of what a record says.
func (h *Handler) patchRecord(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	on, err := c.conditions()
	if err != nil {
		return err
	}
	patch, err := c.readPatch()
	if err != nil {
		return err
	}
	next, err := h.o.Registrar.Update(c.ctx, id, 0, func(next *stele.Record) error {
		if err := on.hold(c.op.name, id, next.Version); err != nil {
			return err
		}
		patched, err := document.ApplyPatch(document.AppendRecord(nil, next), patch)
		if err != nil {
			return err
		}
		rec, err := document.DecodeRecord(h.o.Schemes, patched)
		if err != nil {
			return err
		}
		if rec.ID != next.ID {
			return otherID(c, rec.ID, next.ID)
		}
		replace(next, rec)
		return nil
	})
	if err != nil {
		return err
	}
	return c.replyRecord(http.StatusOK, next)
}

// escaped returns a text as it stands in a path, with its slashes and colons: what
// [call.route] reads back.
func escaped(text string) string {
	parts := strings.Split(text, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

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
