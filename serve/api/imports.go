package api

import (
	"net/http"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/api/openapi"
)

func (h *Handler) importsOperations() []operation {
	const group = "Many records"
	number := parameter{name: "number", about: "The number of an import", example: "1"}
	info := answer{status: 200, about: "What is kept of it.", value: apijson.ImportInfo{}}
	return []operation{{
		name: "listImports", method: http.MethodGet, path: "imports", group: group,
		summary: "List imports",
		about:   "Administrators see all, others their own, the oldest first.",
		asks:    known, scope: auth.ScopeWrite,
		query:   []parameter{{name: "after", kind: numberKind, usual: "0", about: "only imports with a number above this one"}, limitParameter},
		answers: []answer{{status: 200, about: "Imports by their numbers.", value: apijson.ImportPage{}}},
		serve:   h.listImports,
	}, {
		name: "beginImport", method: http.MethodPost, path: "imports", group: group,
		summary: "Give an import a number",
		about:   "For imports of several requests: send the number with each of them, as import. An import of one request gets its number by itself. It takes a role that may write, in any namespace.",
		asks:    known, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.ImportInput{}, example: `{"label":"maps.csv"}`},
		answers: []answer{{status: 201, about: "The import.", value: apijson.ImportInfo{}}},
		serve:   h.beginImport,
	}, {
		name: "showImport", method: http.MethodGet, path: "imports/{number}", group: group, tail: number,
		summary: "Show what is kept of an import",
		asks:    known, scope: auth.ScopeWrite,
		answers: []answer{info},
		fails:   []int{404},
		serve: func(c *call) error {
			n, err := c.importNumber()
			if err != nil {
				return err
			}
			i, err := h.o.Registrar.Import(c.ctx, n)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, importInfo(i))
		},
	}, {
		name: "revertImport", method: http.MethodPost, path: "revert-import/{number}", group: group,
		tail:    parameter{name: "number", about: number.about, example: "123456"},
		summary: "Revert an import",
		about: "Names that the import made are withdrawn, records that it changed get their former contents as a new version, and those that were changed since are left and told. " +
			"A revert that was cut off goes on when the request comes again. One's own imports, or any as an administrator.",
		asks: known, scope: auth.ScopeWrite,
		query: []parameter{
			{name: "dry-run", kind: flagKind, usual: "false", about: "tell what would be done, and do nothing"},
			{name: "reason", min: 1, max: stele.MaxProse, about: "why, for the tombstones of names that the import made"},
		},
		answers: []answer{{status: 200, about: "What became of each record, and at the end of all.", value: apijson.Reverted{}, media: apijson.Lines, lines: true}},
		fails:   []int{404, 409},
		serve:   h.revertImport,
	}, {
		name: "revertRecord", method: http.MethodPost, path: "revert/{id}", group: "Records", tail: identifier,
		summary: "Give a record the contents of an earlier version",
		about:   "It becomes a new version, with the names that it has now. A version whose contents were removed by a legal order does not come back.",
		asks:    editor, scope: auth.ScopeWrite, headers: []parameter{ifMatch, ifNoneMatch},
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.RevertInput{}, example: `{"to":1}`},
		answers: []answer{{status: 200, about: "The record as it is now.", value: openapi.Record{}, headers: []parameter{entityTag}}},
		fails:   []int{404, 409, 412},
		serve: func(c *call) error {
			var want apijson.RevertInput
			if err := c.decode(&want); err != nil {
				return err
			}
			if want.To == 0 {
				return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Path: "to", Err: errNoVersion}}}
			}
			return h.revise(c, func(id stele.ID, version uint64) (*stele.Record, error) {
				return h.o.Registrar.Revert(c.ctx, id, version, want.To)
			})
		},
	}}
}

var errNoVersion = stele.Messagef("request.version-not-a-number", "should be the number of a version, from 1")

// importNumber reads the number in the path.
func (c *call) importNumber() (uint64, error) {
	n, err := strconv.ParseUint(c.tail, 10, 64)
	if err != nil || n == 0 {
		return 0, &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("import.number-unknown", `there is no import "{number}"; imports have numbers, from 1`, c.tail)}
	}
	return n, nil
}

func importInfo(i registrar.Import) apijson.ImportInfo {
	return apijson.ImportInfo{
		Number: i.Number, Label: i.Label, By: i.By, Began: i.Began, Ended: i.Ended,
		Created: i.Created, Updated: i.Updated, Unchanged: i.Unchanged, Refused: i.Refused,
		Reverts: i.Reverts, Reverted: i.Reverted,
	}
}

// listImports lists imports.
func (h *Handler) listImports(c *call) error {
	page := apijson.ImportPage{Items: []apijson.ImportInfo{}}
	limit := int(c.number("limit"))
	for i, err := range h.o.Registrar.Imports(c.ctx, c.number("after")) {
		if err != nil {
			return err
		}
		if len(page.Items) == limit {
			page.Next = page.Items[limit-1].Number
			break
		}
		page.Items = append(page.Items, importInfo(i))
	}
	return c.reply(http.StatusOK, page)
}

// beginImport gives an import a number.
func (h *Handler) beginImport(c *call) error {
	var want apijson.ImportInput
	if err := c.decode(&want); err != nil {
		return err
	}
	n, err := h.o.Registrar.BeginImport(c.ctx, want.Label)
	if err != nil {
		return err
	}
	return c.reply(http.StatusCreated, apijson.ImportInfo{Number: n, Label: want.Label})
}

// revertImport reverts an import.
func (h *Handler) revertImport(c *call) error {
	n, err := c.importNumber()
	if err != nil {
		return err
	}
	ctx, stop := c.running()
	defer stop()
	var out *stream // nil until the answer begins
	tell := func(line apijson.Reverted) error {
		if out == nil {
			out = c.stream(apijson.Lines)
		}
		return out.line(line)
	}
	count := 0
	result, err := h.o.Registrar.RevertImport(ctx, n, registrar.RevertOptions{DryRun: c.flag("dry-run"), Reason: c.text("reason")}, func(step registrar.RevertStep) error {
		if count++; count%exportPace == 0 {
			if err := c.pace(exportPace); err != nil {
				return err
			}
		}
		return tell(apijson.Reverted{ID: step.ID.String(), Status: step.Status, To: step.To, Why: step.Why})
	})
	if err != nil {
		if out != nil {
			problem := problemOf(err)
			_ = out.line(apijson.Reverted{Problem: &problem})
			_ = out.flush()
		}
		return err
	}
	if err := tell(apijson.Reverted{Done: true, Number: result.Number, Withdrawn: result.Withdrawn, Reverted: result.Reverted, Left: result.Left}); err != nil {
		return err
	}
	return out.flush()
}
