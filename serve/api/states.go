package api

import (
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/serve/api/openapi"
)

func (h *Handler) stateOperations() []operation {
	const group = "Records"
	record := answer{status: 200, about: "The record as it is now.", value: openapi.Record{}, headers: []parameter{entityTag}}
	return []operation{{
		name: "withdrawRecord", method: http.MethodPost, path: "withdraw/{id}", group: group, tail: identifier,
		summary: "Withdraw a record",
		about:   "It answers with a tombstone from now on. Of a record that is withdrawn already, reason and replacement are changed. One that is reserved can't be withdrawn.",
		asks:    editor, scope: auth.ScopeWrite, headers: []parameter{ifMatch, ifNoneMatch},
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Withdrawal{}, example: `{"reason":"Published by mistake"}`},
		answers: []answer{record},
		fails:   []int{404, 409, 412},
		serve: func(c *call) error {
			var want apijson.Withdrawal
			if err := c.decode(&want); err != nil {
				return err
			}
			return h.withdraw(c, want.Reason, want.Replacement)
		},
	}, {
		name: "reinstateRecord", method: http.MethodPost, path: "reinstate/{id}", group: group, tail: identifier,
		summary: "Make a withdrawn record active again",
		asks:    editor, scope: auth.ScopeWrite, headers: []parameter{ifMatch, ifNoneMatch},
		answers: []answer{record},
		fails:   []int{404, 409, 412},
		serve: func(c *call) error {
			return h.revise(c, func(id stele.ID, version uint64) (*stele.Record, error) {
				return h.o.Registrar.Reinstate(c.ctx, id, version)
			})
		},
	}, {
		name: "redactRecord", method: http.MethodPost, path: "redact/{id}", group: group, tail: identifier,
		summary: "Remove the content of a record, by a legal order",
		about:   "Targets, metadata and the rest are removed, and the record is withdrawn. Of all earlier versions only that they were there, when and by whom is kept. Its names stay. The bytes leave the files when the store is compacted.",
		asks:    administrator, scope: auth.ScopeAdmin, headers: []parameter{ifMatch, ifNoneMatch},
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Redaction{}, example: `{"reason":"Removed by order of a court"}`},
		answers: []answer{record},
		fails:   []int{404, 409, 412},
		serve: func(c *call) error {
			var want apijson.Redaction
			if err := c.decode(&want); err != nil {
				return err
			}
			return h.revise(c, func(id stele.ID, version uint64) (*stele.Record, error) {
				return h.o.Registrar.Redact(c.ctx, id, version, want.Reason)
			})
		},
	}, {
		name: "disavowVersions", method: http.MethodPost, path: "disavow/{id}", group: group, tail: identifier,
		summary: "Disavow earlier versions of a record",
		about:   "A new version says that they are not to be used, and why. Their mementos answer with 410 and the reason, and their content is shown only to those who may change the record. That they were there stays, and nothing takes it back. The current version can't be disavowed: change it first.",
		asks:    owner, scope: auth.ScopeAdmin, headers: []parameter{ifMatch, ifNoneMatch},
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Disavow{}, example: `{"first":3,"reason":"The account of an editor was stolen"}`},
		answers: []answer{record},
		fails:   []int{404, 409, 412},
		serve: func(c *call) error {
			var want apijson.Disavow
			if err := c.decode(&want); err != nil {
				return err
			}
			return h.revise(c, func(id stele.ID, version uint64) (*stele.Record, error) {
				return h.o.Registrar.Disavow(c.ctx, id, version, want.First, max(want.First, want.Last), want.Reason)
			})
		},
	}, {
		name: "compact", method: http.MethodPost, path: "compact", group: "Registry",
		summary: "Remove redacted content from the files of the store",
		about:   "After a redaction. It may take as long as writing the whole store anew; long answers that are under way may end early, and writes wait. PostgreSQL locks its tables meanwhile. Backups, and the log and archives of a database, are not touched.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 204, about: "No file of the store, or of the search index, holds what was erased."}},
		serve: func(c *call) error {
			if err := h.o.Registrar.Witness(c.ctx, "compact", "", ""); err != nil {
				return err
			}
			if err := h.o.Store.Purge(c.ctx); err != nil {
				return err
			}
			if h.o.Search != nil {
				if err := h.o.Search.Index.Erase(c.ctx); err != nil {
					return err
				}
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}}
}

// deleteRecord withdraws a record, with the reason in the query.
func (h *Handler) deleteRecord(c *call) error {
	return h.withdraw(c, c.text("reason"), c.text("replacement"))
}

func (h *Handler) withdraw(c *call, reason, replacement string) error {
	var instead stele.ID
	if replacement != "" {
		var err error
		if instead, err = h.o.Schemes.Parse(replacement); err != nil {
			return amiss(c, "replacement", err)
		}
	}
	return h.revise(c, func(id stele.ID, version uint64) (*stele.Record, error) {
		return h.o.Registrar.Withdraw(c.ctx, id, version, reason, instead)
	})
}

// revise changes the state of the record in the path, if it has the version that the request
// supposes; 0 if the request supposes none. If it supposes one of several versions, and
// another request changes the record to another of them meanwhile, revise tries again.
func (h *Handler) revise(c *call, change func(id stele.ID, version uint64) (*stele.Record, error)) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	on, err := c.conditions()
	if err != nil {
		return err
	}
	for {
		version := uint64(0)
		if on.isSaid() {
			have, err := h.o.Registrar.Get(c.ctx, id)
			if err != nil {
				return err
			}
			if err := on.hold(c.op.name, id, have.Version); err != nil {
				return err
			}
			version = have.Version
		}
		next, err := change(id, version)
		if err == nil {
			return c.replyRecord(http.StatusOK, next)
		}
		if version == 0 || stele.KindOf(err) != stele.Conflict {
			return err
		}
		have, again := h.o.Registrar.Get(c.ctx, id)
		if again != nil || have.Version == version {
			return err // it is another conflict
		}
	}
}
