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
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// maxRecords is how many records a batch has at most.
const maxRecords = 1000

// batchDocument is what became of a batch.
type batchDocument struct {
	countsDocument
	Items []itemDocument `json:"items" doc:"What became of each record, in the order in which they came."`
}

// countsDocument is how many records were what.
type countsDocument struct {
	Created   int `json:"created" doc:"Records that are new."`
	Updated   int `json:"updated" doc:"Records that have a new version."`
	Unchanged int `json:"unchanged" doc:"Records that were registered like this already."`
	Refused   int `json:"refused" doc:"Records of which nothing was written."`
}

// itemDocument is what became of a record.
type itemDocument struct {
	ID      string           `json:"id,omitempty" doc:"The identifier, if it could be read."`
	Status  string           `json:"status" enum:"created,updated,unchanged,refused"`
	Version uint64           `json:"version,omitempty" doc:"The version that it has now, unless it was refused."`
	Problem *problemDocument `json:"problem,omitempty" doc:"Why it was refused."`
}

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
		body: &body{media: []string{jsonType, linesType}, limit: maxBatch, value: []recordInput{},
			about:   fmt.Sprintf("A list of up to %d records, or one a line. What the system keeps (version, created, modified, by, redacted) is not believed.", maxRecords),
			example: `[{"id":"ark:12345/x1","url":"https://example.org/1"},{"id":"ark:12345/x2","url":"https://example.org/2"}]`},
		answers: []answer{{status: 200, about: "What became of each record.", value: batchDocument{}}},
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
	if c.media == linesType {
		texts = splitLines(data)
	} else if texts, err = splitList(data); err != nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Err: err}}}
	}
	if len(texts) > maxRecords {
		return refusef(http.StatusRequestEntityTooLarge, "there are %d records; %d are the most at a time: send several batches, or import them", len(texts), maxRecords)
	}
	rows := make([]row, len(texts))
	merges := c.flag("update") && !c.flag("replace")
	inParallel(len(rows), func(i int) { rows[i].readRecord(h.o.Schemes, texts[i], merges) })
	c.charge(len(rows))
	if err := ingestRows(c, rows, registrar.ImportOptions{Update: c.flag("update")}, merges); err != nil {
		return err
	}
	return c.replyJSON(http.StatusOK, batchAnswer(rows))
}

// row is a record or a namespace of many, and what became of it.
type row struct {
	line      int
	record    *stele.Record
	namespace *stele.Namespace
	text      []byte // as it was sent, if that is merged with what is registered
	changes   []registrar.FieldChange
	err       error
}

// readRecord reads the record of a row. It leaves a record that is to be merged with the
// registered one to be validated after the merge.
func (r *row) readRecord(schemes *stele.Schemes, text []byte, merges bool) {
	if merges {
		r.text = text
		r.record, r.err = registrar.Patch(schemes, nil, text)
	} else {
		r.record, r.err = document.DecodeRecord(schemes, text)
	}
}

// ingestRows hands the records that could be read to the registrar. An error means that the
// registrar does not know what became of them.
func ingestRows(c *call, rows []row, o registrar.ImportOptions, merges bool) error {
	records := make([]*stele.Record, 0, len(rows))
	places := make([]int, 0, len(rows))
	for i := range rows {
		if rows[i].err == nil && rows[i].record != nil {
			records, places = append(records, rows[i].record), append(places, i)
			if merges {
				o.Lines = append(o.Lines, rows[i].text)
			}
		}
	}
	if o.DryRun {
		o.Changed = func(k int, fields []registrar.FieldChange) { rows[places[k]].changes = fields }
	}
	errs, err := c.h.o.Registrar.Ingest(c.ctx, records, o)
	if err != nil {
		return err
	}
	for k, i := range places {
		rows[i].err = errs[k]
	}
	return nil
}

// The outcomes of a record.
const (
	created   = "created"
	updated   = "updated"
	unchanged = "unchanged"
	refused   = "refused"
)

// status returns what became of a row.
func (r *row) status() string {
	switch {
	case errors.Is(r.err, registrar.ErrUnchanged):
		return unchanged
	case r.err != nil:
		return refused
	case r.record != nil && r.record.Version > 1:
		return updated
	}
	return created
}

// count counts a row.
func (n *countsDocument) count(status string) {
	switch status {
	case created:
		n.Created++
	case updated:
		n.Updated++
	case unchanged:
		n.Unchanged++
	case refused:
		n.Refused++
	}
}

// appendTo appends what became of a row, as the members of an itemDocument.
func (r *row) appendTo(b []byte, status string) []byte {
	var id stele.ID
	if r.record != nil {
		id = r.record.ID
	} else if e, ok := errors.AsType[*stele.Error](r.err); ok {
		id = e.ID
	}
	if id.IsValid() {
		b = append(appendQuoted(append(b, `"id":`...), id.String()), ',')
	}
	b = append(append(append(b, `"status":"`...), status...), '"')
	switch {
	case status == refused:
		problem, _ := json.Marshal(problemOf(r.err)) // it is made of texts and numbers
		b = append(append(b, `,"problem":`...), problem...)
	case r.record != nil:
		b = strconv.AppendUint(append(b, `,"version":`...), r.record.Version, 10)
	}
	for i, f := range r.changes {
		if b = append(b, ','); i == 0 {
			b = append(b, `"changes":[`...)
		}
		change, _ := json.Marshal(fieldChangeDocument(f)) // it is made of texts
		if b = append(b, change...); i == len(r.changes)-1 {
			b = append(b, ']')
		}
	}
	return b
}

// batchAnswer returns what became of a batch, as a batchDocument in JSON.
func batchAnswer(rows []row) []byte {
	var n countsDocument
	items := make([]byte, 0, 60*len(rows))
	for i := range rows {
		status := rows[i].status()
		n.count(status)
		if i > 0 {
			items = append(items, ',')
		}
		items = append(rows[i].appendTo(append(items, '{'), status), '}')
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

var errNoList = errors.New("should be a list of records: [{...},{...}]")

// splitList returns the items of a list in JSON, without reading them: the caller, who reads
// them, finds out whether they are JSON. It looks only for where each ends.
func splitList(data []byte) (texts [][]byte, err error) {
	data = bytes.Trim(data, " \t\r\n")
	if len(data) < 2 || data[0] != '[' || data[len(data)-1] != ']' {
		return nil, errNoList
	}
	data = bytes.TrimLeft(data[1:], " \t\r\n")
	if len(data) == 1 {
		return nil, nil
	}
	for {
		n := itemEnd(data)
		if n == len(data) || data[n] == '}' {
			return nil, errNoList
		}
		text := bytes.TrimRight(data[:n], " \t\r\n")
		if len(text) == 0 {
			return nil, fmt.Errorf("item %d of the list is empty; leave one comma out", len(texts))
		}
		texts = append(texts, text)
		last := data[n] == ']'
		data = bytes.TrimLeft(data[n+1:], " \t\r\n")
		switch {
		case last && len(data) > 0:
			return nil, errors.New("something follows the list; send one list alone")
		case last:
			return texts, nil
		}
	}
}

// itemEnd returns where the comma or the bracket stands that ends the first item; all
// of data if there is none.
func itemEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(data)
}
