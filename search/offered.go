package search

import (
	"context"

	"github.com/stele-id/stele"
)

// maxOffered bounds the records that wait to be indexed, in bytes as a store has them. In
// memory they take some times as much.
const maxOffered = 96 << 20

// Offer gives the index records that a commit wrote, in the order of their changes. They must be as
// the store has them, and must not be changed any more. The index reads from the store what it was
// not offered, or has no room for. It never waits.
func (x *Index) Offer(records []*stele.Record) { x.offers.Offer(records) }

// KeepUp indexes whole blocks of what is committed, whenever Notify is called, until the context
// ends; it finishes the blocks that are under way. It is for an import: a block that is written at
// once is never merged with other parts. CatchUp indexes the rest.
func (x *Index) KeepUp(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.wake:
		}
		for more := true; more && ctx.Err() == nil; {
			before := x.at.Load()
			if err := x.catchUp(ctx, true); err != nil && ctx.Err() == nil {
				return err
			}
			more = x.at.Load() != before
		}
	}
}
