package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/stele-id/stele"
)

// streamStill is how long nothing may come of what takes a server long. It tells every
// few seconds that it goes on.
const streamStill = 2 * time.Minute

// Inspection says who is told what Check finds. A function that is nil is not called.
type Inspection struct {
	Problem  func(text string)  // of what is wrong
	Note     func(text string)  // of names that would not be accepted today
	Progress func(done float64) // of the part that is done, from 0 to 1
}

func (i Inspection) problem(text string) {
	if i.Problem != nil {
		i.Problem(text)
	}
}

func (i Inspection) note(text string) {
	if i.Note != nil {
		i.Note(text)
	}
}

// Check makes the server check its registry, and tells what it finds. The server does not
// say how far it is, so Progress is not called. Check returns how many changes the registry has. Only an administrator may.
func (r *Registry) Check(ctx context.Context, tell Inspection) (changes uint64, err error) {
	const op = "verify"
	s, err := r.open(ctx, &ask{method: http.MethodPost, path: "verify", again: true}, nil, streamStill)
	if err != nil {
		return 0, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return 0, err
		}
		var line struct {
			Problem string `json:"problem"`
			Note    string `json:"note"`
			Done    bool   `json:"done"`
			Changes uint64 `json:"changes"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return 0, unread(err)
		}
		if line.Problem != "" {
			tell.problem(legible(line.Problem))
		}
		if line.Note != "" {
			tell.note(legible(line.Note))
		}
		if line.Done {
			return line.Changes, nil
		}
	}
	return 0, refuse(op, stele.ID{}, stele.Unavailable, "the answer was cut off, so not all was looked at; try again")
}

// LastChange returns the number of the last change. Only an administrator may ask.
func (r *Registry) LastChange(ctx context.Context) (uint64, error) {
	p, err := r.Position(ctx)
	return p.Change, err
}

// Position returns the number of the last change and its generation. Only an
// administrator may ask.
func (r *Registry) Position(ctx context.Context) (p stele.Position, err error) {
	q := &ask{method: http.MethodGet, path: "changes", again: true, query: url.Values{"limit": {"1"}}}
	a, err := r.call(ctx, q)
	if err != nil {
		return p, under("list changes", stele.ID{}, err)
	}
	var page struct {
		Last       uint64 `json:"last"`
		Generation string `json:"generation"`
	}
	if err := a.decode(&page); err != nil {
		return p, err
	}
	p.Change = page.Last
	if page.Generation != "" { // a server of an earlier version has none
		if p.Generation, err = stele.ParseGenerationID(page.Generation); err != nil {
			return p, unread(err)
		}
	}
	return p, nil
}
