package registry

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	storecopy "github.com/stele-id/stele/store/copy"
)

// Status is where a registry is kept, and how that is.
type Status struct {
	Kind       string     `json:"kind"`
	Place      string     `json:"place"`
	Schema     uint64     `json:"schema"`
	Changes    uint64     `json:"changes"`
	LastChange *time.Time `json:"lastChange,omitempty"`
	Namespaces uint64     `json:"namespaces"`
	Records    *uint64    `json:"records,omitempty"`
	Sealed     string     `json:"sealed,omitempty"`
	CopyOf     string     `json:"unfinishedCopyOf,omitempty"`
	Lagging    *time.Time `json:"laggingSince,omitempty"`

	Generation GenerationStatus `json:"generation"`
}

// GenerationStatus is the present generation of a registry.
type GenerationStatus struct {
	ID       string    `json:"id"`
	Number   uint64    `json:"number"`
	Began    time.Time `json:"began"`
	Restored string    `json:"restored,omitempty"` // the last change of the backup
	Replaced string    `json:"replaced,omitempty"` // the last change of the registry that was there
}

func newGenerationStatus(g stele.Generation) GenerationStatus {
	s := GenerationStatus{ID: g.ID.String(), Number: g.Number, Began: g.Began.UTC()}
	if g.Restored != (stele.Position{}) {
		s.Restored = g.Restored.String()
	}
	if g.Replaced != (stele.Position{}) {
		s.Replaced = g.Replaced.String()
	}
	return s
}

// Status asks the store of a registry that is at a place. With count it counts the records
// too, for which it reads all changes.
func (at Place) Status(ctx context.Context, s stele.Store, count bool) (status Status, err error) {
	status = Status{Kind: at.Kind(), Place: at.String()}
	if v, ok := s.(stele.Schematic); ok {
		status.Schema = v.SchemaVersion()
	}
	if l, ok := s.(stele.Replicated); ok {
		if since, yes := l.Lagging(); yes {
			status.Lagging = &since
		}
	}
	if status.Changes, err = s.LastChange(ctx); err != nil {
		return status, err
	}
	if status.Sealed, err = s.Sealed(ctx); err != nil {
		return status, err
	}
	generations, err := s.Generations(ctx)
	if err != nil {
		return status, err
	}
	status.Generation = newGenerationStatus(generations.Last())
	mark, err := storecopy.ReadMark(ctx, s)
	if err != nil {
		return status, err
	}
	if mark != nil {
		status.CopyOf = mark.From
	}
	for _, err := range s.Namespaces(ctx) {
		if err != nil {
			return status, err
		}
		status.Namespaces++
	}
	from := status.Changes - min(status.Changes, 1)
	if count {
		from, status.Records = 0, new(uint64)
	}
	for change, err := range s.Changes(ctx, from) {
		if err != nil {
			return status, err
		}
		at := change.At.UTC()
		status.LastChange = &at
		if count && change.Version == 1 && change.ID.IsValid() {
			*status.Records++
		}
	}
	return status, nil
}
