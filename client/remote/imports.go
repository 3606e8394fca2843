package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// importTimeout is how long a chunk may take: a slow line, a server that is busy.
const importTimeout = 15 * time.Minute

// importName returns the name under which the server keeps the bookmark of an import. It
// is a hash, because a file's path is private and may be longer than the server allows.
func importName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("client %x", sum[:16])
}

// Bookmark returns how far the import of that name is, or nil if it never began.
func (r *Registry) Bookmark(ctx context.Context, name string) ([]byte, error) {
	var mark apijson.Import
	err := r.fetch(ctx, "import", &ask{method: http.MethodGet, path: pathOf("import", importName(name)), again: true}, &mark)
	if err != nil || mark.Bookmark == "" {
		return nil, err
	}
	return []byte(mark.Bookmark), nil
}

// Ingest imports a chunk of records, and returns an error or nil for each, in their order.
// It sends a chunk again if the answer is lost: the server then reports the records that
// it has written as unchanged.
func (r *Registry) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	var text []byte
	for i, rec := range records {
		if o.Versions != nil {
			rec.Version = o.Versions[i] // which its line, if there is one, has too
		}
		if o.Lines != nil {
			text = append(text, bytes.TrimSpace(o.Lines[i])...)
		} else {
			text = document.AppendRecord(text, rec)
		}
		if o.Earlier != nil && o.Keep { // without, the server would count them, and leave them out
			text = document.AppendEarlier(text, o.Earlier[i])
		}
		if o.Fixed != nil {
			text = registrar.AppendFixedData(text, o.Fixed[i])
		}
		text = append(text, '\n')
	}
	lines, err := r.ingest(ctx, text, o)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(records))
	for i, rec := range records {
		line, ok := lines[i+1]
		if !ok {
			return nil, unread(stele.Messagef("api.answer-misses-record", "it does not say what became of {id}", rec.ID))
		}
		if errs[i] = r.outcome(&line); errs[i] == nil || errors.Is(errs[i], registrar.ErrUnchanged) {
			rec.Version = line.Version
		}
		if o.Earlier != nil && (errs[i] != nil || line.Earlier == 0) {
			o.Earlier[i] = nil
		}
		if o.Changed != nil && errs[i] == nil && len(line.Changes) > 0 {
			fields := make([]registrar.FieldChange, len(line.Changes))
			for k, c := range line.Changes {
				fields[k] = registrar.FieldChange(c)
			}
			o.Changed(i, fields)
		}
	}
	return errs, nil
}

// IngestNamespace imports a namespace from another registry.
func (r *Registry) IngestNamespace(ctx context.Context, ns *stele.Namespace, o registrar.ImportOptions) error {
	o.Name, o.Bookmark = "", nil
	lines, err := r.ingest(ctx, registrar.AppendNamespaceProgress(nil, ns, o.Progress), o)
	if err != nil {
		return err
	}
	line, ok := lines[1]
	if !ok {
		return unread(stele.Messagef("api.answer-misses-namespace", "it does not say what became of the namespace {namespace}", ns.Key()))
	}
	return r.outcome(&line)
}

// outcome returns the result of a line.
func (r *Registry) outcome(l *apijson.Imported) error {
	switch {
	case l.Status == apijson.StatusUnchanged:
		return registrar.ErrUnchanged
	case l.Problem != nil:
		return under("import", stele.ID{}, r.problem(l.Problem, l.Problem.Status))
	case l.Status == apijson.StatusRefused:
		return refuse("import", stele.ID{}, stele.Invalid, "api.reason-missing", "the server does not say why")
	}
	return nil
}

// ingest sends lines, and returns the result of each by its number, from 1.
func (r *Registry) ingest(ctx context.Context, text []byte, o registrar.ImportOptions) (lines map[int]apijson.Imported, err error) {
	q := &ask{
		method: http.MethodPost, path: "import", media: apijson.Lines, body: text, again: !o.OnlyAfter, timeout: importTimeout, // a repeated request would find its own bookmark
		query: url.Values{
			"each": {"true"}, "update": {strconv.FormatBool(o.Update)}, "replace": {strconv.FormatBool(o.Lines == nil)}, "keep": {strconv.FormatBool(o.Keep)}, "dry-run": {strconv.FormatBool(o.DryRun)},
		},
	}
	if o.Import != 0 {
		q.query.Set("import", strconv.FormatUint(o.Import, 10))
	}
	if len(o.KeepTypes) > 0 {
		q.query.Set("keep-types", strings.Join(o.KeepTypes, ","))
	}
	if o.Secrets {
		if !r.private {
			return nil, refuse("import", stele.ID{}, stele.Forbidden, "import.secrets-not-sent", "secrets would be sent in clear to {server}; use https", r.site)
		}
		q.query.Set("secrets", "true")
	}
	if o.Versions != nil {
		q.query.Set("if-version", "true")
	}
	if len(text) == 0 {
		q.body = []byte("\n") // for the bookmark alone
	}
	if o.Name != "" {
		q.query.Set("name", importName(o.Name))
		q.query.Set("bookmark", string(o.Bookmark))
		if o.OnlyAfter {
			q.query.Set("if-bookmark", apijson.BookmarkDigest(o.Held))
		}
	}
	err = r.exchange(ctx, q, func(resp *http.Response) (failed *failure) {
		lines, failed = r.readImported(resp)
		return failed
	})
	if err != nil {
		return nil, under("import", stele.ID{}, err)
	}
	return lines, nil
}

// readImported reads the answer to an import to its end.
func (r *Registry) readImported(resp *http.Response) (map[int]apijson.Imported, *failure) {
	lines, done := make(map[int]apijson.Imported), false
	for text, err := range textLines(resp.Body) {
		if err != nil {
			return nil, &failure{err: err}
		}
		var line apijson.Imported
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, &failure{answered: unread(err)}
		}
		switch {
		case line.Line > 0:
			lines[line.Line] = line
		case line.Problem != nil:
			return nil, &failure{answered: r.problem(line.Problem, line.Problem.Status), status: line.Problem.Status}
		}
		done = line.Done
	}
	if !done {
		return nil, &failure{err: io.ErrUnexpectedEOF}
	}
	return lines, nil
}

// BeginImport registers an import, and returns its number.
func (r *Registry) BeginImport(ctx context.Context, label string) (uint64, error) {
	var made apijson.ImportInfo
	err := r.fetch(ctx, "import", &ask{method: http.MethodPost, path: "imports", document: apijson.ImportInput{Label: label}, again: true}, &made)
	return made.Number, err
}

// NoteImport does nothing: the server counts by itself what becomes of the records of an
// import.
func (r *Registry) NoteImport(context.Context, uint64, registrar.ImportCounts) error { return nil }

// Imports yields the imports with a number above the given one, the oldest first.
func (r *Registry) Imports(ctx context.Context, after uint64) iter.Seq2[registrar.Import, error] {
	return func(yield func(registrar.Import, error) bool) {
		for {
			var page apijson.ImportPage
			err := r.fetch(ctx, "import", &ask{method: http.MethodGet, path: "imports", again: true,
				query: url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(pageSize)}}}, &page)
			if err != nil {
				yield(registrar.Import{}, err)
				return
			}
			for _, i := range page.Items {
				if !yield(importOf(i), nil) {
					return
				}
			}
			if page.Next <= after {
				return
			}
			after = page.Next
		}
	}
}

// importOf returns what the server keeps of an import.
func importOf(i apijson.ImportInfo) registrar.Import {
	return registrar.Import{
		Number: i.Number, Label: apijson.Legible(i.Label), By: apijson.Legible(i.By), Began: i.Began, Ended: i.Ended,
		Created: i.Created, Updated: i.Updated, Unchanged: i.Unchanged, Refused: i.Refused,
		Reverts: i.Reverts, Reverted: i.Reverted,
	}
}

// Revert gives a record the contents of an earlier version.
func (r *Registry) Revert(ctx context.Context, name stele.ID, ifVersion, to uint64) (*stele.Record, error) {
	// To revert it again to the same version changes nothing.
	return r.revise(ctx, "revert", name, ifVersion, apijson.RevertInput{To: to}, ifVersion == 0)
}

// RevertImport undoes an import; see [registrar.Registrar.RevertImport]. It does not send
// the request again when the answer is cut off: told would get the same steps twice.
func (r *Registry) RevertImport(ctx context.Context, number uint64, o registrar.RevertOptions, told func(registrar.RevertStep) error) (result registrar.RevertResult, err error) {
	const op = "revert import"
	q := &ask{method: http.MethodPost, path: pathOf("revert-import", strconv.FormatUint(number, 10)),
		query: url.Values{"dry-run": {strconv.FormatBool(o.DryRun)}}}
	if o.Reason != "" {
		q.query.Set("reason", o.Reason)
	}
	s, err := r.open(ctx, q, nil, streamStill)
	if err != nil {
		return result, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return result, err
		}
		var line apijson.Reverted
		if err := json.Unmarshal(text, &line); err != nil {
			return result, unread(err)
		}
		switch {
		case line.Problem != nil:
			return result, under(op, stele.ID{}, r.problem(line.Problem, line.Problem.Status))
		case line.Done:
			return registrar.RevertResult{Number: line.Number, Withdrawn: line.Withdrawn, Reverted: line.Reverted, Left: line.Left}, nil
		}
		step := registrar.RevertStep{Status: line.Status, To: line.To, Why: apijson.Legible(line.Why)}
		if step.ID, err = r.o.Schemes.Parse(line.ID); err != nil {
			return result, unread(stele.Messagef("api.answer-not-an-identifier", `"{id}" is not an identifier`, line.ID))
		}
		if err := told(step); err != nil {
			return result, err
		}
	}
	return result, refuse(op, stele.ID{}, stele.Unavailable, "import.answer-cut-off", "the answer was cut off; give the same command again to go on")
}
