package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// Faulty is a store whose commits fail as Fault says: it returns whether the
// commit is made all the same, and the error that the caller gets.
type Faulty struct {
	stele.Store
	Fault func(*stele.Commit) (made bool, err error)
}

// Apply commits, or fails.
func (f *Faulty) Apply(ctx context.Context, c *stele.Commit) error {
	made, fault := f.Fault(c)
	if !made {
		return fault
	}
	if err := f.Store.Apply(ctx, c); err != nil {
		return err
	}
	return fault
}

// Ingest imports records, or fails.
func (f *Faulty) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	made, fault := f.Fault(&stele.Commit{Records: records})
	if !made {
		return nil, fault
	}
	errs, err := f.Store.Ingest(ctx, records, count, touch, state, models...)
	if err == nil && fault != nil {
		return nil, fault
	}
	return errs, err
}

// Dying returns a Fault that makes some commits fail, of which some are made
// nevertheless, and after so many makes all fail: the process is dead.
func Dying(commits int64) func(*stele.Commit) (bool, error) {
	var n atomic.Int64
	return func(*stele.Commit) (bool, error) {
		switch i := n.Add(1); {
		case i > commits:
			return false, Unavailable("the process is dead")
		case i == commits:
			return rand.N(2) == 0, Unavailable("the process dies")
		case rand.N(10) == 0:
			return rand.N(2) == 0, Unavailable("the disk hesitates")
		}
		return true, nil
	}
}

// Unavailable returns the error of a commit for which it is not known whether it was made.
func Unavailable(why string) error {
	return &stele.Error{Op: "commit", Kind: stele.Unavailable, Err: errors.New(why)}
}
