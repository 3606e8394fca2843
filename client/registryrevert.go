package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// BeginImport gives an import a number.
func (r *Registry) BeginImport(ctx context.Context, label string) (uint64, error) {
	body, err := json.Marshal(map[string]string{"label": label})
	if err != nil {
		return 0, tell("import", err)
	}
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: "imports", media: jsonType, body: body, again: true})
	if err != nil {
		return 0, under("import", stele.ID{}, err)
	}
	var made registrar.Import
	err = a.decode(&made)
	return made.Number, err
}

// NoteImport does nothing: the server counts by itself what becomes of the records of an
// import.
func (r *Registry) NoteImport(context.Context, uint64, registrar.ImportCounts) error { return nil }

// Imports yields the imports with a number above the given one, the oldest first.
func (r *Registry) Imports(ctx context.Context, after uint64) iter.Seq2[registrar.Import, error] {
	return func(yield func(registrar.Import, error) bool) {
		for {
			a, err := r.call(ctx, &ask{method: http.MethodGet, path: "imports", again: true,
				query: url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(pageSize)}}})
			var page struct {
				Items []registrar.Import `json:"items"`
				Next  uint64             `json:"next"`
			}
			if err == nil {
				err = a.decode(&page)
			}
			if err != nil {
				yield(registrar.Import{}, under("import", stele.ID{}, err))
				return
			}
			for _, i := range page.Items {
				if i.Label, i.By = legible(i.Label), legible(i.By); !yield(i, nil) {
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

// Revert gives a record the contents of an earlier version.
func (r *Registry) Revert(ctx context.Context, name stele.ID, ifVersion, to uint64) (*stele.Record, error) {
	// To revert it again to the same version changes nothing.
	return r.revise(ctx, "revert", name, ifVersion, map[string]uint64{"to": to}, ifVersion == 0)
}

// RevertImport undoes an import; see [registrar.Registrar.RevertImport]. It is not sent
// again by itself when it was cut off: what was told then would be told twice.
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
		var line struct {
			ID, Status, Why           string
			To, Number                uint64
			Done                      bool
			Withdrawn, Reverted, Left int
			Problem                   *problem
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return result, unread(err)
		}
		switch {
		case line.Problem != nil:
			return result, under(op, stele.ID{}, line.Problem.err(r.o.Schemes, line.Problem.Status))
		case line.Done:
			return registrar.RevertResult{Number: line.Number, Withdrawn: line.Withdrawn, Reverted: line.Reverted, Left: line.Left}, nil
		}
		step := registrar.RevertStep{Status: line.Status, To: line.To, Why: legible(line.Why)}
		if step.ID, err = r.o.Schemes.Parse(line.ID); err != nil {
			return result, unread(fmt.Errorf("%.60q is not an identifier", line.ID))
		}
		if err := told(step); err != nil {
			return result, err
		}
	}
	return result, refuse(op, stele.ID{}, stele.Unavailable, "the answer was cut off; give the same command again to go on")
}
