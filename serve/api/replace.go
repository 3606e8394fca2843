package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
)

func (h *Handler) replaceOperations() []operation {
	return []operation{{
		name: "replaceTargets", method: http.MethodPost, path: "replace", group: "Many records",
		summary: "Replace a host, or the beginning of URLs, in many targets",
		about: "Send it without expect first: the answer says what would change, and nothing is written. Send it with expect then: the number of records that change. " +
			"A record that another user changes meanwhile is refused, and so is one that you may not change. " +
			"What was written has the number of an import, and revertImport undoes it. A replacement that was cut off goes on when the same request comes again; no record is changed twice.",
		asks: known, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Replacement{}, example: `{"from":"old.example.org","to":"new.example.org"}`},
		answers: []answer{{status: 200, about: "What became of each record, and at the end of all.", value: apijson.Replaced{}, media: apijson.Lines, lines: true}},
		fails:   []int{403, 404, 409},
		serve:   h.replaceTargets,
	}}
}

// replaceTargets gives targets another beginning, or tells what that would do.
func (h *Handler) replaceTargets(c *call) error {
	var want apijson.Replacement
	if err := c.decode(&want); err != nil {
		return err
	}
	r, err := bulk.NewReplacement(want.From, want.To, want.Namespace)
	if err != nil {
		return err
	}
	if want.Expect != nil && *want.Expect < 0 {
		return amiss(c, "expect", stele.Messagef("replace.expect-negative", "should be a number of records, from 0"))
	}
	ctx, stop := c.running()
	defer stop()
	answer := &replacing{c: c}
	replacer := &bulk.Replacer{Replacement: r, Registrar: h.o.Registrar, Schemes: h.o.Schemes, Pace: answer.pace, Scanned: answer.scanned}
	var counts bulk.ReplaceCounts
	if want.Expect == nil {
		counts, err = replacer.Judge(ctx, answer.tell)
	} else {
		replacer.Judged = answer.judged
		counts, err = replacer.Run(ctx, *want.Expect, answer.tell)
	}
	return answer.end(counts, err)
}

// replacing is the answer to a replacement.
type replacing struct {
	c   *call
	out *stream // nil until the answer begins
}

// end writes the last line: what became of all, or why it ended before.
func (a *replacing) end(counts bulk.ReplaceCounts, err error) error {
	if err != nil {
		if a.out != nil { // the client has its answer already; so the reason comes as a line of it
			problem := problemOf(err)
			_ = a.line(apijson.Replaced{Problem: &problem})
			_ = a.out.flush()
		}
		return err
	}
	if err := a.line(apijson.Replaced{Done: true, Import: counts.Import, Changed: counts.Changed, Refused: counts.Refused, Digest: counts.Digest}); err != nil {
		return err
	}
	return a.out.flush()
}

// pace waits until the caller may change so many records, and recognises the caller again. The
// connection gets more time: there may be nothing to tell for long.
func (a *replacing) pace(records int) (context.Context, error) {
	a.c.extend(0)
	err := a.c.pace(records)
	return a.c.ctx, err
}

// scanned is the same for records that are only read.
func (a *replacing) scanned(records int) error {
	_, err := a.pace(records)
	return err
}

// quietRecords is how many records are judged before the client is told that there is work going on.
// Until then a problem has a status of its own.
const quietRecords = 10_000

func (a *replacing) judged(records int) error {
	if records < quietRecords {
		return nil
	}
	if err := a.line(apijson.Replaced{Judged: records}); err != nil {
		return err
	}
	return a.out.flush()
}

// tell tells what became of a record.
func (a *replacing) tell(one bulk.Replaced) error {
	line := apijson.Replaced{ID: one.ID.String(), Status: "changed", Title: one.Title, Old: one.Old, New: one.New}
	if one.IsRefused() {
		problem := problemOf(one.Err)
		line.Status, line.Problem = apijson.StatusRefused, &problem
	}
	return a.line(line)
}

func (a *replacing) line(line apijson.Replaced) error {
	if a.out == nil {
		a.out = a.c.stream(apijson.Lines)
	}
	return a.out.line(line)
}
