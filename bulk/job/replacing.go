package job

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// Replacement gives targets another beginning, in one namespace and those below it or in all that
// the user may change.
type Replacement struct {
	bulk.Replacement
	Namespace string `json:"namespace,omitempty"` // key as a text; "" for all
}

// Sample is what a replacement would do to a record.
type Sample struct {
	ID       stele.ID
	Title    string
	Old, New string // the first URL that changes
	Err      error  // why the record can't be changed
}

// ReplacePreview is what a replacement would do.
type ReplacePreview struct {
	Count   int // records with such targets
	Refused int // that can't be changed
	Samples []Sample
}

// sampleRecords is how many records a preview of a replacement shows, and MaxReplaced how many a
// job changes.
const (
	sampleRecords = 20
	MaxReplaced   = 1_000_000
)

// inside returns what tells whether a name is in the namespace of a replacement.
func (b *Board) inside(ctx context.Context, p *Replacement) (func(stele.ID) bool, error) {
	if p.Namespace == "" {
		return nil, nil
	}
	ns, err := b.namespace(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	return func(id stele.ID) bool {
		return id.Scheme() == ns.Scheme && b.o.Schemes.IsWithin(id, ns.Prefix)
	}, nil
}

// PreviewReplace finds out what a replacement would do: it judges every record.
func (b *Board) PreviewReplace(ctx context.Context, p *Replacement) (ReplacePreview, error) {
	var v ReplacePreview
	if _, err := identify(ctx); err != nil {
		return v, err
	}
	in, err := b.inside(ctx, p)
	if err != nil {
		return v, err
	}
	err = b.look(ctx, func(ctx context.Context) error { return b.previewReplace(ctx, p, in, &v) })
	return v, err
}

func (b *Board) previewReplace(ctx context.Context, p *Replacement, in func(stele.ID) bool, v *ReplacePreview) error {
	var list []*stele.Record
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, _, err := p.Rows(b.o.Schemes, list)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := bulk.Ingest(ctx, b.o.Registrar, rows, registrar.ImportOptions{DryRun: true, Update: true}); err != nil {
			return err
		}
		for i, row := range rows {
			v.Count++
			if row.Rejected() {
				v.Refused++
			} else if row.Err = nil; len(v.Samples) >= sampleRecords {
				continue
			}
			if len(v.Samples) < 2*sampleRecords {
				v.Samples = append(v.Samples, p.sample(list[i], row.Err))
			}
		}
		list = nil
		return nil
	}
	for rec, err := range p.Matches(ctx, b.o.Registrar, stele.ID{}, in) {
		if err != nil {
			return err
		}
		if list = append(list, rec); len(list) == partRows {
			if err := flush(); err != nil {
				return err
			}
		}
		if v.Count >= MaxReplaced {
			return refuse(stele.Invalid, "replace.too-many", "more than {most} records would change; choose a namespace", MaxReplaced)
		}
	}
	return flush()
}

func (p *Replacement) sample(rec *stele.Record, err error) Sample {
	s := Sample{ID: rec.ID, Title: rec.Metadata[stele.What], Err: err}
	for _, t := range rec.Targets {
		if next, ok := p.URL(t.URL); ok {
			s.Old, s.New = t.URL, next
			break
		}
	}
	return s
}

// StartReplace makes a job of a replacement. Once is the ID that the job gets, from [Board.NewID], so
// that a form that is sent twice starts one job: the second time is a Conflict. If it is not an ID,
// the job gets another one.
func (b *Board) StartReplace(ctx context.Context, once string, p Replacement, records int) (Job, error) {
	j := Job{Task: Replace, Label: p.From + " → " + p.To, Total: records, Replace: &p}
	j.Label = strings.ToValidUTF8(j.Label[:min(len(j.Label), registrar.MaxLabel)], "")
	if isID(once) {
		j.ID = once
	}
	err := b.begin(ctx, &j)
	return j, err
}

// replace gives targets their new beginnings.
func (w *working) replace(ctx context.Context) error {
	user, err := w.asUser(ctx)
	if err != nil {
		return err
	}
	in, err := w.Board.inside(user, w.job.Replace)
	if err != nil {
		return err
	}
	for {
		after := stele.ID{}
		if w.job.After != "" {
			if after, err = w.Board.o.Schemes.Parse(w.job.After); err != nil {
				return err
			}
		}
		var list []*stele.Record
		for rec, err := range w.job.Replace.Matches(user, w.Board.o.Registrar, after, in) {
			if err != nil {
				return err
			}
			if list = append(list, rec); len(list) == partRows {
				break
			}
		}
		if len(list) == 0 {
			return nil
		}
		if err := w.replacePart(ctx, list); err != nil {
			return err
		}
		if user, err = w.asUser(ctx); err != nil {
			return err
		}
	}
}

// replacePart changes some records, except those that an earlier attempt has changed: the new
// beginning may begin with the old one.
func (w *working) replacePart(ctx context.Context, list []*stele.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.job.Cancel {
		return errCancelled
	}
	user, err := w.begin(ctx)
	if err != nil {
		return err
	}
	var todo []*stele.Record
	counts := w.job.Counts
	p := part{}
	add := func(o Outcome) {
		counts.add(o.Kind)
		p.Rows = append(p.Rows, o)
	}
	for _, rec := range list {
		done := rec.Import == w.job.Import
		if w.resumed && !done {
			mine, err := w.written(user, rec.ID)
			if err != nil {
				return err
			}
			done = mine.last != 0
		}
		if done {
			add(Outcome{ID: rec.ID.String(), Kind: Changed})
		} else {
			todo = append(todo, rec)
		}
	}
	rows, versions, err := w.job.Replace.Rows(w.Board.o.Schemes, todo)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		if err := w.holds(); err != nil {
			return err
		}
		if err := bulk.Ingest(user, w.Board.o.Registrar, rows, registrar.ImportOptions{Update: true, Import: w.job.Import, Versions: versions}); err != nil {
			return err
		}
	}
	w.resumed = false
	for i, row := range rows {
		o := Outcome{ID: todo[i].ID.String(), Kind: Changed}
		switch {
		case row.Unchanged():
			o.Kind = Unchanged
		case row.Err != nil:
			o.Kind, o.Problems = Refused, problemsOf(row.Err)
		}
		add(o)
	}
	c, err := change(partName(w.job.ID, w.job.Parts), nil, &p)
	if err != nil {
		return err
	}
	return w.save(ctx, func(j *Job) {
		j.Done, j.Parts, j.Counts, j.After = j.Done+len(list), j.Parts+1, counts, list[len(list)-1].ID.String()
		j.Total = max(j.Total, j.Done)
	}, c)
}
