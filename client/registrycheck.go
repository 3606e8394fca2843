package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// CheckRules makes the server check a namespace, as [registrar.Registrar.CheckRules]
// does.
func (r *Registry) CheckRules(ctx context.Context, key stele.NamespaceKey, progress func(read int)) iter.Seq2[registrar.Breach, error] {
	const op = "check namespace"
	return func(yield func(registrar.Breach, error) bool) {
		s, err := r.open(ctx, &ask{method: http.MethodPost, path: pathOf("check", key.String()), again: true}, nil, streamStill)
		if err != nil {
			yield(registrar.Breach{}, under(op, stele.ID{}, err))
			return
		}
		defer s.Close()
		for text, err := range textLines(s) {
			if err != nil {
				yield(registrar.Breach{}, err)
				return
			}
			var line struct {
				ID       string  `json:"id"`
				Version  uint64  `json:"version"`
				Problems []fault `json:"problems"`
				Read     int     `json:"read"`
				Done     bool    `json:"done"`
			}
			if err := json.Unmarshal(text, &line); err != nil {
				yield(registrar.Breach{}, unread(err))
				return
			}
			if line.Read > 0 && progress != nil {
				progress(line.Read)
			}
			if line.Done {
				return
			}
			if line.ID == "" {
				continue
			}
			id, err := r.o.Schemes.Parse(line.ID)
			if err != nil {
				yield(registrar.Breach{}, unread(err))
				return
			}
			if !yield(registrar.Breach{ID: id, Version: line.Version, Problems: problemsOf(line.Problems)}, nil) {
				return
			}
		}
		yield(registrar.Breach{}, refuse(op, stele.ID{}, stele.Unavailable, "the answer was cut off, so not all records were read; try again"))
	}
}
