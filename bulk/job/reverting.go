package job

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// Preview of a revert, before anything is written.
type Preview struct {
	Withdrawn, Reverted, Left int
	Rules, RulesLeft          int                    // namespaces that get their former rules, and those whose rules were changed since
	First                     []registrar.RevertStep // some of those that are left, and then others
}

// firstSteps is how many records a preview names.
const firstSteps = 20

// PreviewRevert finds out what undoing a job would do.
func (b *Board) PreviewRevert(ctx context.Context, id string) (Job, Preview, error) {
	j, err := b.Get(ctx, id)
	if err != nil {
		return j, Preview{}, err
	}
	if !j.MayUndo() {
		return j, Preview{}, refuse(stele.Conflict, "job.not-undoable", "this job can't be undone: it has not ended, it changed nothing, or it was undone already")
	}
	var p Preview
	err = b.look(ctx, func(ctx context.Context) error { return b.previewRevert(ctx, &j, &p) })
	return j, p, err
}

func (b *Board) previewRevert(ctx context.Context, j *Job, p *Preview) error {
	var others []registrar.RevertStep
	result, err := b.o.Registrar.RevertImport(ctx, j.Import, registrar.RevertOptions{DryRun: true}, func(step registrar.RevertStep) error {
		switch {
		case step.Status == registrar.RevertLeft && len(p.First) < firstSteps:
			p.First = append(p.First, step)
		case len(others) < firstSteps:
			others = append(others, step)
		}
		return ctx.Err()
	})
	p.Withdrawn, p.Reverted, p.Left = result.Withdrawn, result.Reverted, result.Left
	p.First = append(p.First, others...)
	p.First = p.First[:min(len(p.First), firstSteps)]
	if err != nil {
		return err
	}
	return b.previewRules(ctx, j, p)
}

// renewing is a context whose user is judged anew while a call of the registrar that takes long uses
// it.
type renewing struct {
	context.Context
	now atomic.Pointer[context.Context] // with the rights that the user has now
}

func (w *working) renewing(ctx context.Context) (*renewing, error) {
	r := &renewing{Context: ctx}
	return r, r.renew(w)
}

// renew judges the user anew. It returns an error if they may not do anything any more.
func (r *renewing) renew(w *working) error {
	user, err := w.asUser(r.Context)
	if err == nil {
		r.now.Store(&user)
	}
	return err
}

// Value returns a value of the context, such as the user.
func (r *renewing) Value(key any) any { return (*r.now.Load()).Value(key) }

// toldOf names what an outcome is of: a record and a namespace may have the same name.
func toldOf(o *Outcome) string { return strconv.FormatBool(o.Space) + " " + o.ID }

// revert undoes what another job did. The registrar keeps how far it is. A server that died may have
// undone records that are not in the outcomes of the job, so the registrar tells of them again.
func (w *working) revert(ctx context.Context) error {
	user, err := w.renewing(ctx)
	if err != nil {
		return err
	}
	of, err := w.Board.Get(user, w.job.Of)
	if err != nil {
		return err
	}
	told := make(map[string]Kind)
	if w.resumed {
		if err := w.Board.Outcomes(ctx, &w.job, func(o Outcome) bool {
			told[toldOf(&o)] = o.Kind
			return true
		}); err != nil {
			return err
		}
	}
	var steps []Outcome
	flush := func() error {
		if len(steps) == 0 {
			return nil
		}
		counts := w.job.Counts
		for _, o := range steps {
			counts.add(o.Kind)
			if told[toldOf(&o)] == Refused { // before; it is counted once
				counts.Refused--
			}
		}
		c, err := change(partName(w.job.ID, w.job.Parts), nil, &part{Rows: steps})
		if err != nil {
			return err
		}
		done := len(steps)
		steps = nil
		if err := w.save(ctx, func(j *Job) {
			j.Done, j.Parts, j.Counts = j.Done+done, j.Parts+1, counts
			j.Total = max(j.Total, j.Done)
		}, c); err != nil {
			return err
		}
		if w.job.Cancel {
			return errCancelled
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return user.renew(w)
	}
	add := func(o Outcome) error {
		if steps = append(steps, o); len(steps) < partRows {
			return nil
		}
		return flush()
	}
	result, err := w.Board.o.Registrar.RevertImport(user, of.Import, registrar.RevertOptions{Retell: w.resumed}, func(step registrar.RevertStep) error {
		// What an earlier attempt had to leave may be undone by this one.
		if kind := told[toldOf(&Outcome{ID: step.ID.String()})]; kind == Changed || kind == Refused && step.Status == registrar.RevertLeft {
			return ctx.Err()
		}
		o := Outcome{ID: step.ID.String(), Kind: Changed}
		if step.Status == registrar.RevertLeft {
			o.Kind, o.Problems = Refused, []Problem{problemOf("", step.Err)}
		}
		return add(o)
	})
	if err == nil {
		err = w.revertRules(user, of.ID, func(o Outcome) error {
			if told[toldOf(&o)] == o.Kind {
				return ctx.Err()
			}
			return add(o)
		})
	}
	if err == nil {
		err = flush()
	}
	if result.Number != 0 && w.job.Import == 0 {
		if saved := w.save(context.WithoutCancel(ctx), func(j *Job) { j.Import = result.Number }); saved != nil && err == nil {
			err = saved
		}
	}
	return err
}
