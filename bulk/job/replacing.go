package job

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// ReplacePreview is what a replacement would do.
type ReplacePreview struct {
	Count   int // records with such targets
	Refused int // that can't be changed
	Samples []bulk.Replaced
}

// sampleRecords is how many records a preview of a replacement shows, and MaxReplaced how many a
// job changes.
const (
	sampleRecords = 20
	MaxReplaced   = 1_000_000
)

// replacer returns what does a replacement.
func (b *Board) replacer(r bulk.Replacement) *bulk.Replacer {
	return &bulk.Replacer{Replacement: r, Registrar: b.o.Registrar, Schemes: b.o.Schemes}
}

// PreviewReplace finds out what a replacement would do: it judges every record.
func (b *Board) PreviewReplace(ctx context.Context, r bulk.Replacement) (ReplacePreview, error) {
	var v ReplacePreview
	if _, err := identify(ctx); err != nil {
		return v, err
	}
	err := b.look(ctx, func(ctx context.Context) error { return b.previewReplace(ctx, r, &v) })
	return v, err
}

func (b *Board) previewReplace(ctx context.Context, r bulk.Replacement, v *ReplacePreview) error {
	after, replacer := stele.ID{}, b.replacer(r)
	for {
		list, err := replacer.Part(ctx, after, partRows)
		if err != nil || len(list) == 0 {
			return err
		}
		after = list[len(list)-1].ID
		judged, err := replacer.Write(ctx, list, 0)
		if err != nil {
			return err
		}
		for _, one := range judged {
			v.Count++
			if one.IsRefused() {
				v.Refused++
			} else if one.Err = nil; len(v.Samples) >= sampleRecords {
				continue
			}
			if len(v.Samples) < 2*sampleRecords {
				v.Samples = append(v.Samples, one)
			}
		}
		if v.Count >= MaxReplaced {
			return refuse(stele.Invalid, "replace.too-many", "more than {most} records would change; choose a namespace", MaxReplaced)
		}
	}
}

// StartReplace makes a job of a replacement. Once is the ID that the job gets, from [Board.NewID], so
// that a form that is sent twice starts one job: the second time is a Conflict. If it is not an ID,
// the job gets another one.
func (b *Board) StartReplace(ctx context.Context, once string, r bulk.Replacement, records int) (Job, error) {
	j := Job{Task: Replace, Label: r.Label(), Total: records, Replace: &r}
	if isID(once) {
		j.ID = once
	}
	err := b.begin(ctx, &j)
	return j, err
}

// replace gives targets their new beginnings.
func (w *working) replace(ctx context.Context) error {
	replacer := w.Board.replacer(*w.job.Replace)
	for {
		user, err := w.asUser(ctx)
		if err != nil {
			return err
		}
		after := stele.ID{}
		if w.job.After != "" {
			if after, err = w.Board.o.Schemes.Parse(w.job.After); err != nil {
				return err
			}
		}
		list, err := replacer.Part(user, after, partRows)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := w.replacePart(ctx, replacer, list); err != nil {
			return err
		}
	}
}

// replacePart changes some records, except those that an earlier attempt has changed: the new
// beginning may begin with the old one.
func (w *working) replacePart(ctx context.Context, replacer *bulk.Replacer, list []*stele.Record) error {
	user, err := w.beginPart(ctx)
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
			if done, err = replacer.Changed(user, rec.ID, w.job.Import); err != nil {
				return err
			}
		}
		if done {
			add(Outcome{ID: rec.ID.String(), Kind: Changed})
		} else {
			todo = append(todo, rec)
		}
	}
	if err := w.holds(); err != nil {
		return err
	}
	written, err := replacer.Write(user, todo, w.job.Import)
	if err != nil {
		return err
	}
	w.resumed = false
	for _, one := range written {
		o := Outcome{ID: one.ID.String(), Kind: Changed}
		switch {
		case one.IsRefused():
			o.Kind, o.Problems = Refused, problemsOf(one.Err)
		case one.Err != nil:
			o.Kind = Unchanged
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
