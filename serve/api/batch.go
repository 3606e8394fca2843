package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/api/openapi"
)

// maxRecords is how many records a batch has at most.
const maxRecords = 1000

var updateParameter = parameter{name: "update", kind: flagKind, usual: "false", about: "records that are registered already take over what is sent, as a new version; without it they are refused if they say something else. What is sent is a merge patch (RFC 7396): a member that is not there stays as it is, null removes one, a list is replaced as a whole. url, and target, are merged with the first target of that service"}

var replaceParameter = parameter{name: "replace", kind: flagKind, usual: "false", about: "with update: what is sent says everything, and what it leaves out is removed, except names and signatures"}

func (h *Handler) batchOperations() []operation {
	return []operation{{
		name: "putRecords", method: http.MethodPost, path: "records", group: "Many records",
		summary: "Register many records at a time",
		about: "A record that can't be registered does not keep the others from it. A record that is registered already just like that is passed over, so a batch may be sent again when no answer came. " +
			"They may be in any state: a withdrawn one brings its tombstone.",
		asks: editor, scope: auth.ScopeWrite,
		query: []parameter{updateParameter, replaceParameter},
		body: &body{media: []string{apijson.JSON, apijson.Lines}, limit: maxBatch, value: []openapi.RecordInput{},
			about:   fmt.Sprintf("A list of up to %d records, or one a line. What the system keeps (version, created, modified, by, redacted) is not believed.", maxRecords),
			example: `[{"id":"ark:12345/x1","url":"https://example.org/1"},{"id":"ark:12345/x2","url":"https://example.org/2"}]`},
		answers: []answer{{status: 200, about: "What became of each record.", value: apijson.Batch{}}},
		serve:   h.putRecords,
	}}
}

// putRecords registers a batch.
func (h *Handler) putRecords(c *call) error {
	data, err := c.bytes()
	if err != nil {
		return err
	}
	var texts [][]byte
	if c.media == apijson.Lines {
		texts = splitLines(data)
	} else if texts, err = document.SplitList(data); err != nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Err: err}}}
	}
	if len(texts) > maxRecords {
		return refusef(http.StatusRequestEntityTooLarge, "request.records-too-many", "there are {records} records; {limit} are the most at a time: send several batches, or import them", len(texts), maxRecords)
	}
	rows := make([]bulk.Row, len(texts))
	merges := c.flag("update") && !c.flag("replace")
	inParallel(len(rows), func(i int) { readRecord(&rows[i], h.o.Schemes, texts[i], merges) })
	c.charge(len(rows))
	var good []*bulk.Row
	for i := range rows {
		if rows[i].Err == nil {
			good = append(good, &rows[i])
		}
	}
	if err := bulk.Ingest(c.ctx, h.o.Registrar, good, registrar.ImportOptions{Update: c.flag("update")}); err != nil {
		return err
	}
	return c.replyJSON(http.StatusOK, batchAnswer(rows))
}

// readRecord reads the record of a row. It leaves a record that is to be merged with the
// registered one to be validated after the merge.
func readRecord(r *bulk.Row, schemes *stele.Schemes, text []byte, merges bool) {
	if merges {
		r.Patch = text
		r.Record, r.Err = registrar.Patch(schemes, nil, text)
	} else {
		r.Record, r.Err = document.DecodeRecord(schemes, text)
	}
}

// statusOf returns what became of a row.
func statusOf(r *bulk.Row) string {
	switch {
	case r.Unchanged():
		return apijson.StatusUnchanged
	case r.Err != nil:
		return apijson.StatusRefused
	case r.Record != nil && r.Record.Version > 1 && r.Earlier == nil:
		return apijson.StatusUpdated
	}
	return apijson.StatusCreated
}

// appendRow appends what became of a row, as the members of an [apijson.Item].
func appendRow(b []byte, r *bulk.Row) []byte {
	var id stele.ID
	if r.Record != nil {
		id = r.Record.ID
	} else if e, ok := errors.AsType[*stele.Error](r.Err); ok {
		id = e.ID
	}
	if id.IsValid() {
		b = append(appendQuoted(append(b, `"id":`...), id.String()), ',')
	}
	b = append(append(append(b, `"status":"`...), statusOf(r)...), '"')
	switch {
	case r.Rejected():
		problem, _ := json.Marshal(problemOf(r.Err)) // it is made of texts and numbers
		b = append(append(b, `,"problem":`...), problem...)
	case r.Record != nil:
		b = strconv.AppendUint(append(b, `,"version":`...), r.Record.Version, 10)
		if len(r.Earlier) > 0 {
			b = strconv.AppendInt(append(b, `,"earlier":`...), int64(len(r.Earlier)), 10)
		}
	}
	for i, f := range r.Changes {
		if b = append(b, ','); i == 0 {
			b = append(b, `"changes":[`...)
		}
		change, _ := json.Marshal(apijson.FieldChange(f)) // it is made of texts
		if b = append(b, change...); i == len(r.Changes)-1 {
			b = append(b, ']')
		}
	}
	return b
}

// batchAnswer returns what became of a batch, as a apijson.Batch in JSON.
func batchAnswer(rows []bulk.Row) []byte {
	var n apijson.Counts
	items := make([]byte, 0, 60*len(rows))
	for i := range rows {
		n.Count(statusOf(&rows[i]))
		if i > 0 {
			items = append(items, ',')
		}
		items = append(appendRow(append(items, '{'), &rows[i]), '}')
	}
	b := fmt.Appendf(nil, `{"created":%d,"updated":%d,"unchanged":%d,"refused":%d,"items":[`, n.Created, n.Updated, n.Unchanged, n.Refused)
	return append(append(b, items...), `]}`...)
}

// inParallel calls do with all numbers below n, on all processors if they are many.
func inParallel(n int, do func(i int)) {
	const few = 64
	workers := min(runtime.GOMAXPROCS(0), n/few+1)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// splitLines returns the lines of a text that have something in them.
func splitLines(data []byte) (texts [][]byte) {
	for text := range bytes.Lines(data) {
		if text = bytes.TrimSpace(text); len(text) > 0 {
			texts = append(texts, text)
		}
	}
	return texts
}
