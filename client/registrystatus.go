package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stele-id/stele"
)

// Status is how a server is.
type Status struct {
	Version    string    `json:"version"`    // of its program
	Now        time.Time `json:"now"`        // by its clock
	Ready      bool      `json:"ready"`      // its registry can be written
	Why        string    `json:"why"`        // it can't
	Changes    uint64    `json:"changes"`    // that the registry has
	LastChange time.Time `json:"lastChange"` // the zero time if there is none
	Shut       []string  `json:"shut"`       // namespaces that make no names until their counters are set ahead
	Disk       *struct {
		Free  uint64 `json:"free"`
		Total uint64 `json:"total"`
	} `json:"disk"` // nil if it is not known
}

// Status asks the server how it is. Only an administrator may.
func (r *Registry) Status(ctx context.Context) (s Status, err error) {
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: "status", again: true})
	if err != nil {
		return s, under("ask for the status", stele.ID{}, err)
	}
	if err := json.Unmarshal(a.body, &s); err != nil {
		return s, unread(err)
	}
	s.Why = legible(s.Why)
	return s, nil
}
