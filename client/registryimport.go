package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// importTimeout is how long a chunk may take: a slow line, a server that is busy.
const importTimeout = 15 * time.Minute

// importName returns under which name the server knows an import. A file's path is
// nobody else's business, and may be longer than names are.
func importName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("client %x", sum[:16])
}

// Bookmark returns how far the import of that name is; nil if it never began.
func (r *Registry) Bookmark(ctx context.Context, name string) ([]byte, error) {
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: pathOf("import", importName(name)), again: true})
	if err != nil {
		return nil, under("import", stele.ID{}, err)
	}
	var mark struct {
		Bookmark string `json:"bookmark"`
	}
	if err := a.decode(&mark); err != nil || mark.Bookmark == "" {
		return nil, err
	}
	return []byte(mark.Bookmark), nil
}

// Ingest imports a chunk of records. The list has an error for each, in their order. A
// chunk whose answer gets lost is sent again: records that it has written are found
// unchanged then.
func (r *Registry) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	var text []byte
	for i, rec := range records {
		if o.Lines != nil {
			text = append(append(text, bytes.TrimSpace(o.Lines[i])...), '\n')
		} else {
			text = append(rec.AppendJSON(text), '\n')
		}
	}
	lines, err := r.ingest(ctx, text, o)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(records))
	for i, rec := range records {
		line, ok := lines[i+1]
		if !ok {
			return nil, unread(fmt.Errorf("it does not say what became of %s", rec.ID))
		}
		if errs[i] = line.err(r.o.Schemes); errs[i] == nil || errors.Is(errs[i], registrar.ErrUnchanged) {
			rec.Version = line.Version
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
	lines, err := r.ingest(ctx, registrar.AppendNamespaceLine(nil, ns), o)
	if err != nil {
		return err
	}
	line, ok := lines[1]
	if !ok {
		return unread(fmt.Errorf("it does not say what became of the namespace %s", ns.Key()))
	}
	return line.err(r.o.Schemes)
}

// imported is a line of the answer to an import.
type imported struct {
	Line    int      `json:"line"`
	Status  string   `json:"status"`
	Version uint64   `json:"version"`
	Problem *problem `json:"problem"`
	Done    bool     `json:"done"`
	Changes []struct {
		Path string `json:"path"`
		Old  string `json:"old"`
		New  string `json:"new"`
	} `json:"changes"`
}

// err says what became of a line.
func (l *imported) err(schemes *stele.Schemes) error {
	switch {
	case l.Status == "unchanged":
		return registrar.ErrUnchanged
	case l.Problem != nil:
		return under("import", stele.ID{}, l.Problem.err(schemes, l.Problem.Status))
	case l.Status == "refused":
		return refuse("import", stele.ID{}, stele.Invalid, "the server does not say why")
	}
	return nil
}

// ingest sends lines, and returns what became of each, by its number from 1.
func (r *Registry) ingest(ctx context.Context, text []byte, o registrar.ImportOptions) (lines map[int]imported, err error) {
	q := &ask{
		method: http.MethodPost, path: "import", media: linesType, body: text, again: true, timeout: importTimeout,
		query: url.Values{
			"each": {"true"}, "update": {strconv.FormatBool(o.Update)}, "replace": {strconv.FormatBool(o.Lines == nil)}, "keep": {strconv.FormatBool(o.Keep)}, "dry-run": {strconv.FormatBool(o.DryRun)},
		},
	}
	if o.Import != 0 {
		q.query.Set("import", strconv.FormatUint(o.Import, 10))
	}
	if len(text) == 0 {
		q.body = []byte("\n") // for the bookmark alone
	}
	if o.Name != "" {
		q.query.Set("name", importName(o.Name))
		q.query.Set("bookmark", string(o.Bookmark))
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
func (r *Registry) readImported(resp *http.Response) (map[int]imported, *failure) {
	lines, done := make(map[int]imported), false
	for text, err := range textLines(resp.Body) {
		if err != nil {
			return nil, &failure{err: err}
		}
		var line imported
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, &failure{answered: unread(err)}
		}
		switch {
		case line.Line > 0:
			lines[line.Line] = line
		case line.Problem != nil:
			return nil, &failure{answered: line.Problem.err(r.o.Schemes, line.Problem.Status), status: line.Problem.Status}
		}
		done = line.Done
	}
	if !done {
		return nil, &failure{err: io.ErrUnexpectedEOF}
	}
	return lines, nil
}

// maxLine is how many bytes a line of an answer has.
const maxLine = 2 * stele.MaxDocument

// textLines yields the lines of a stream that have something in them. What it yields
// holds until the next. A line without its end is none: the stream was cut off.
func textLines(in io.Reader) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if n := bytes.IndexByte(data, '\n'); n >= 0 {
				return n + 1, data[:n], nil
			}
			return 0, nil, nil
		})
		for lines.Scan() {
			if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 && !yield(text, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
