package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// UsageLogs takes log files of other servers in pieces, and counts them: [usage.Uploads].
type UsageLogs interface {
	Begin() (id string, err error)
	Add(id string, at int64, piece []byte) (size int64, err error)
	Has(id string, size int64) error
	Count(ctx context.Context, id string, o apijson.UsageLogOptions, progress func(lines int)) (*apijson.UsageLogSummary, error)
	Drop(id string) error
}

// maxPiece is how many bytes of a log file a request has at most.
const maxPiece = 4 << 20

func (h *Handler) usageLogOperations() []operation {
	id := parameter{name: "id", max: 100, about: "what the server calls the file", example: "6f1c0a5d"}
	return []operation{{
		name: "beginUsageLog", method: http.MethodPost, path: "usagelogs", group: "Running the server",
		summary: "Begin to send a log file of another server",
		about:   "A log file has names of many namespaces, so it is for administrators. The server keeps it until it is counted, for an hour after the last piece at most, and not after a restart.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 201, about: "The file, which is empty.", value: apijson.UsageLog{}}},
		fails:   []int{503},
		serve:   h.beginUsageLog,
	}, {
		name: "addUsageLog", method: http.MethodPut, path: "usagelogs/{id}", group: "Running the server", tail: id,
		summary: "Send a piece of a log file",
		about:   "Pieces come in their order. A piece that the server has already is not added again, so the request can be repeated.",
		asks:    administrator, scope: auth.ScopeAdmin,
		query:   []parameter{{name: "at", kind: numberKind, required: true, max: 1 << 40, about: "at which byte of the file the piece begins", example: "0"}},
		body:    &body{media: []string{bytesType}, limit: maxPiece, about: "Bytes of the file, as text that is not compressed.", example: "192.0.2.1 - - [02/Mar/2026:10:01:00 +0000] \"GET /ark:12345/x1 HTTP/1.1\" 302 0 \"-\" \"curl/8.14.1\"\n"},
		answers: []answer{{status: 200, about: "The file as far as it is there.", value: apijson.UsageLog{}}},
		fails:   []int{404, 409},
		serve:   h.addUsageLog,
	}, {
		name: "countUsageLog", method: http.MethodPost, path: "usagelogs/{id}", group: "Running the server", tail: id,
		summary: "Count a log file that was sent",
		about: "By the rules and the code by which the server counts its own answers. What was counted of the file before, also by the command stele usage import, does not count again. " +
			"The answer has lines that tell how many lines were read, and one at its end. If it is cut off, send the file again: nothing is counted twice.",
		asks: administrator, scope: auth.ScopeAdmin,
		body: &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.UsageLogOptions{}, example: `{"name":"access.log","size":95,"format":"combined"}`},
		answers: []answer{{status: 200, about: "How far it is, and at the end what became of the lines.", value: apijson.UsageLogCounted{}, media: apijson.Lines, lines: true,
			example: `{"done":true,"summary":{"file":"access.log","lines":1,"counted":1,"doubles":0,"robots":0,"failures":0,"unknown":0,"notNames":0,"notCounted":0,"unreadable":0}}`}},
		fails: []int{404, 409},
		serve: h.countUsageLog,
	}, {
		name: "dropUsageLog", method: http.MethodDelete, path: "usagelogs/{id}", group: "Running the server", tail: id,
		summary: "Forget a log file that was sent",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 204, about: "It is forgotten."}},
		fails:   []int{404, 409},
		serve: func(c *call) error {
			logs, err := h.usageLogs(c)
			if err != nil {
				return err
			}
			if err := logs.Drop(c.tail); err != nil {
				return err
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}}
}

const bytesType = "application/octet-stream"

// usageLogs returns what takes log files.
func (h *Handler) usageLogs(c *call) (UsageLogs, error) {
	if h.o.UsageLogs == nil {
		return nil, &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: stele.Messagef("usage.not-counted-here", "this server does not count use, see its setting usage")}
	}
	return h.o.UsageLogs, nil
}

// beginUsageLog begins a file.
func (h *Handler) beginUsageLog(c *call) error {
	logs, err := h.usageLogs(c)
	if err != nil {
		return err
	}
	id, err := logs.Begin()
	if err != nil {
		return err
	}
	return c.reply(http.StatusCreated, apijson.UsageLog{ID: id})
}

// addUsageLog adds a piece.
func (h *Handler) addUsageLog(c *call) error {
	logs, err := h.usageLogs(c)
	if err != nil {
		return err
	}
	piece, err := c.bytes()
	if err != nil {
		return err
	}
	size, err := logs.Add(c.tail, int64(c.number("at")), piece)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, apijson.UsageLog{ID: c.tail, Size: size})
}

// countUsageLog counts a file.
func (h *Handler) countUsageLog(c *call) error {
	logs, err := h.usageLogs(c)
	if err != nil {
		return err
	}
	var o apijson.UsageLogOptions
	if err := c.decode(&o); err != nil {
		return err
	}
	if o.Format != "" && o.Format != "combined" && o.Format != "common" {
		return invalidf("usage.log-format-unknown", `the format of the log file is "{format}"; there are combined and common`, o.Format)
	}
	if err := logs.Has(c.tail, o.Size); err != nil {
		return err
	}
	if err := h.o.Registrar.Witness(c.ctx, "count log", "", "begin"); err != nil {
		return err
	}
	out := c.stream(apijson.Lines)
	var last apijson.UsageLogCounted
	err = c.attend(out, func(ctx context.Context, tell func(line any)) (err error) {
		lines := 0
		last.Summary, err = logs.Count(ctx, c.tail, o, func(n int) {
			if lines += n; lines >= readEvery {
				tell(apijson.UsageLogCounted{Lines: lines})
				lines = 0
			}
		})
		return err
	})
	if last.Done = true; err != nil { // the client has its answer already, so the reason comes as a line of it
		problem := problemOf(err)
		last = apijson.UsageLogCounted{Problem: &problem}
	}
	if lerr := out.line(last); lerr != nil && err == nil {
		return lerr
	}
	if ferr := out.flush(); err == nil {
		return ferr
	}
	return err
}
