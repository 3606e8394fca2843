package job

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// moveCells begins the names of cells with what a job that accepts addresses moves. They are those that the user has seen: what
// the checker finds out meanwhile is not accepted.
const moveCells = registrar.WorkCells + "move "

func moveName(id string, n int) string { return fmt.Sprintf("%s%s %06d", moveCells, id, n) }

func (b *Board) mover() *bulk.Mover {
	return &bulk.Mover{Registrar: b.o.Registrar, Schemes: b.o.Schemes}
}

// PreviewAccept finds out what becomes of records whose targets get the addresses to which they moved.
func (b *Board) PreviewAccept(ctx context.Context, moves []bulk.Move) (v ReplacePreview, err error) {
	if _, err := identify(ctx); err != nil {
		return v, err
	}
	err = b.look(ctx, func(ctx context.Context) error {
		_, err := b.mover().Judge(ctx, moves, func(one bulk.Replaced) error {
			v.Count++
			if one.IsRefused() {
				v.Refused++
			} else if one.Err = nil; len(v.Samples) >= sampleRecords {
				return nil
			}
			if len(v.Samples) < 2*sampleRecords {
				v.Samples = append(v.Samples, one)
			}
			return nil
		})
		return err
	})
	return v, err
}

// StartAccept makes a job that gives targets of records the addresses to which they moved. Once is as in [Board.StartReplace].
func (b *Board) StartAccept(ctx context.Context, once, label string, moves []bulk.Move, records int) (Job, error) {
	if len(moves) > bulk.MaxMoves {
		return Job{}, refuse(stele.Invalid, "links.too-many-moves", "{count} targets are too many at once; {most} are the most", len(moves), bulk.MaxMoves)
	}
	j := Job{Task: Accept, Label: label, Total: records}
	if isID(once) {
		j.ID = once
	}
	var err error
	if j.ID == "" {
		if j.ID, err = b.NewID(); err != nil {
			return Job{}, err
		}
	}
	var also []stele.CellChange
	for i, part := range bulk.Cut(moves, partRows) {
		c, err := change(moveName(j.ID, i), nil, part)
		if err != nil {
			return Job{}, err
		}
		also = append(also, c)
	}
	err = b.begin(ctx, &j, also...)
	return j, err
}

// accept gives targets their new addresses.
func (w *working) accept(ctx context.Context) error {
	for {
		var moves []bulk.Move
		if _, ok, err := w.Board.read(ctx, moveName(w.job.ID, w.job.Parts), &moves); err != nil || !ok {
			return err
		}
		user, err := w.beginPart(ctx)
		if err != nil {
			return err
		}
		if err := w.holds(); err != nil {
			return err
		}
		mover := w.Board.mover()
		mover.Resumed = w.resumed
		done, err := mover.Write(user, moves, w.job.Import)
		if err != nil {
			return err
		}
		w.resumed = false
		counts, p := w.job.Counts, part{}
		for i := range done {
			o := Outcome{ID: done[i].ID.String(), Kind: Changed}
			switch {
			case done[i].IsRefused():
				o.Kind, o.Problems = Refused, problemsOf(done[i].Err)
			case done[i].Err != nil:
				o.Kind = Unchanged
			}
			counts.add(o.Kind)
			p.Rows = append(p.Rows, o)
		}
		c, err := change(partName(w.job.ID, w.job.Parts), nil, &p)
		if err != nil {
			return err
		}
		if err := w.save(ctx, func(j *Job) {
			j.Done, j.Parts, j.Counts = j.Done+len(done), j.Parts+1, counts
			j.Total = max(j.Total, j.Done)
		}, c); err != nil {
			return err
		}
	}
}
