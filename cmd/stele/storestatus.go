package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/card"
	storecopy "github.com/stele-id/stele/store/copy"
)

func (p *program) storeStatusCommand() *cobra.Command {
	count := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say where the registry is kept, and how that is",
		Long: `Status prints what keeps the registry, how many changes it has, whether it is sealed or
an unfinished copy, and of a database whether its primary answers.`,
		Example: "  stele store status\n  stele store status --store postgres://stele@db1,db2/stele --count --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inStore(cmd, func(ctx context.Context, s stele.Store) error {
				status, err := p.readStatus(ctx, s, count)
				if err != nil {
					return err
				}
				return p.printStatus(status)
			})
		},
	}
	cmd.Flags().BoolVar(&count, "count", false, "count the records too, which takes a while")
	return neverFiles(cmd)
}

// storeStatus is what status prints.
type storeStatus struct {
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

	Generation generationStatus `json:"generation"`
}

// generationStatus is what is printed of the present generation.
type generationStatus struct {
	ID       string    `json:"id"`
	Number   uint64    `json:"number"`
	Began    time.Time `json:"began"`
	Restored string    `json:"restored,omitempty"` // the last change of the backup
	Replaced string    `json:"replaced,omitempty"` // the last change of the registry that was there
}

func newGenerationStatus(g stele.Generation) generationStatus {
	s := generationStatus{ID: g.ID.String(), Number: g.Number, Began: g.Began.UTC()}
	if g.Restored != (stele.Position{}) {
		s.Restored = g.Restored.String()
	}
	if g.Replaced != (stele.Position{}) {
		s.Replaced = g.Replaced.String()
	}
	return s
}

// readStatus asks the store.
func (p *program) readStatus(ctx context.Context, s stele.Store, count bool) (status storeStatus, err error) {
	status = storeStatus{Kind: p.place().Kind(), Place: p.place().String()}
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

// printStatus prints it.
func (p *program) printStatus(s storeStatus) error {
	if p.json {
		return p.printObject(s)
	}
	var b strings.Builder
	card.Rows(&b, "kind", s.Kind)
	card.Rows(&b, "place", s.Place)
	card.Rows(&b, "schema", fmt.Sprint(s.Schema))
	changes := grouped(int64(s.Changes))
	if s.LastChange != nil {
		changes += ", the last at " + s.LastChange.Format(time.RFC3339)
	}
	card.Rows(&b, "changes", changes)
	since := "from " // the beginning of the registry
	if s.Generation.Restored != "" {
		since = "restored at "
	}
	card.Rows(&b, "generation", fmt.Sprintf("%d, %s%s (%s)", s.Generation.Number, since, s.Generation.Began.Format(time.RFC3339), s.Generation.ID))
	card.Rows(&b, "namespaces", grouped(int64(s.Namespaces)))
	if s.Records != nil {
		card.Rows(&b, "records", grouped(int64(*s.Records)))
	}
	if s.Sealed != "" {
		card.Rows(&b, "sealed", s.Sealed)
	}
	if s.CopyOf != "" {
		card.Rows(&b, "unfinished", "this is a copy of "+s.CopyOf+" that is not finished")
	}
	if s.Lagging != nil {
		card.Rows(&b, "primary", "away since "+s.Lagging.UTC().Format(time.RFC3339)+"; a standby is read, which may be behind")
	}
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}
