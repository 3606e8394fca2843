package minting

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// The n-th name of the original order is not computed from n: it is found by all steps before it. So the
// state of a minter has the subcounters, as they are after the names that it says are given, and a
// process has the steps of the block that it reserved.

const (
	// maxAhead is how far a counter in the original order is set ahead at a time: each step takes some
	// nanoseconds, and the minter issues no names meanwhile.
	maxAhead = 1_000_000_000

	// maxSampled is how far into the original order samples are looked for.
	maxSampled = 100_000

	stepsAtATime = 1 << 20
)

// Subcounters returns where a template in the original order is. An error, of Kind Internal, means
// damage.
func (s TemplateState) Subcounters() (*mint.Subcounters, error) {
	t, err := mint.ParseTemplate(s.Template)
	if err != nil {
		return nil, err
	}
	walk, err := t.Subcounters(s.Seed, int(s.Expand))
	if err != nil {
		return nil, err
	}
	if s.Counters != "" {
		err = walk.Resume(s.Given, []byte(s.Counters))
	} else {
		err = walkTo(context.Background(), "read minter", walk, s.Given)
	}
	if err != nil {
		return nil, &stele.Error{Op: "read minter", Kind: stele.Internal, Err: stele.Reason(err)}
	}
	return walk, nil
}

// walkTo takes all steps up to a count of names.
func walkTo(ctx context.Context, op string, walk *mint.Subcounters, to uint64) error {
	if from := walk.Given(); to > from && to-from > maxAhead {
		return stele.Errorf(op, stele.ID{}, stele.Invalid, "mint.original-skip-too-far", "the counter is at {given}, and goes ahead by {most} at most at a time; give a smaller number, and repeat it", from, maxAhead)
	}
	for n := 1; walk.Given() < to; n++ {
		if _, err := walk.Next(); err != nil {
			return err
		}
		if n%stepsAtATime == 0 && ctx.Err() != nil {
			return stele.AsError(op, ctx.Err())
		}
	}
	return nil
}

// ahead returns the state after so many names.
func (s TemplateState) ahead(ctx context.Context, op string, to uint64) (TemplateState, error) {
	if s.Order == stele.OrderNOID {
		walk, err := s.Subcounters()
		if err != nil {
			return s, err
		}
		if err := walkTo(ctx, op, walk, to); err != nil {
			return s, err
		}
		s.Counters = string(walk.AppendText(nil))
	}
	s.Given = to
	return s, nil
}

// originalBlock is a block of names in the original order that a process has reserved.
type originalBlock struct {
	walk  *mint.Subcounters // after the block
	steps []mint.Step
	from  uint64 // the number of the first step
}

// next returns the block of size names that begins with a number. Names between the blocks were skipped.
func (b *originalBlock) next(from, size uint64) (originalBlock, error) {
	next := originalBlock{walk: b.walk.Clone(), steps: make([]mint.Step, 0, size), from: from}
	if err := walkTo(context.Background(), "mint", next.walk, from); err != nil {
		return next, err
	}
	for range size {
		step, err := next.walk.Next()
		if err != nil && len(next.steps) > 0 {
			break
		} else if err != nil {
			return next, err
		}
		next.steps = append(next.steps, step)
	}
	return next, nil
}

// sample yields the texts of some names from a number on, to show how they look. In the original order it
// begins earlier if the number is large, since all names before would have to be found.
func (s *template) sample(from uint64, n int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var walk *mint.Subcounters
		if s.original != nil {
			walk = s.original.Clone()
			if err := walkTo(context.Background(), "mint", walk, min(from, maxSampled)); err != nil {
				yield("", err)
				return
			}
		}
		for i := range uint64(n) {
			d := draw{number: from + i}
			var err error
			if walk != nil {
				d.step, err = walk.Next()
			}
			text := ""
			if err == nil {
				text, err = s.text(d)
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}
