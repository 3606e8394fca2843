package main

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// How much of a registry is committed at once: a commit is all or nothing, and what an
// interrupt may cost.
const (
	copyChanges = 5000
	copyBytes   = 8 << 20
)

// copier makes a store what another one is. All that it needs to go on is in the two of
// them: how many changes the copy has tells where it was.
type copier struct {
	from, to           stele.Store
	fromPlace, toPlace place
	now                func() time.Time
	most               int // how many changes are committed at once

	follow func(what, unit string, total int64, bytes func() int64) *progress

	seal string // the reason
	last uint64 // the last change there is, once from is sealed
	done atomic.Int64
}

// run copies, compares, and makes the copy a registry.
func (c *copier) run(ctx context.Context) (report copied, err error) {
	report = copied{From: c.fromPlace.String(), To: c.toPlace.String()}
	if report.Resumed, err = c.begin(ctx); err != nil {
		return report, err
	}
	report.Seal = c.seal
	if err := c.copyGenerations(ctx); err != nil {
		return report, err
	}
	if err := c.replay(ctx, report.Resumed); err != nil {
		return report, err
	}
	if err := c.copyZones(ctx); err != nil {
		return report, err
	}
	if err := c.copyMinters(ctx); err != nil {
		return report, err
	}
	if err := c.copyCells(ctx); err != nil {
		return report, err
	}
	if err := c.copyTrail(ctx); err != nil {
		return report, err
	}
	if report.tallies, err = c.compare(ctx); err != nil {
		return report, err
	}
	return report, c.finish(ctx)
}

// begin seals the one store and marks the other, if both may be. It returns how many
// changes were copied before.
func (c *copier) begin(ctx context.Context) (already uint64, err error) {
	if err := refuseUnfinished(ctx, c.from, c.fromPlace); err != nil {
		return 0, err
	}
	mark, err := c.look(ctx)
	if err != nil {
		return 0, err
	}
	if mark != nil {
		// Before anything is sealed: this may be another registry.
		if already, err = c.resume(ctx, mark); err != nil {
			return 0, err
		}
	}
	if err := c.sealSource(ctx, mark); err != nil {
		return 0, err
	}
	if c.last, err = c.from.LastChange(ctx); err != nil {
		return 0, err
	}
	if mark == nil {
		return 0, setCopyMark(ctx, c.to, &copyMark{From: c.fromPlace.String(), Seal: c.seal, Began: c.now().UTC()})
	}
	return already, nil
}

// resume makes sure that an unfinished copy is one of this registry, and returns how many
// changes it has.
func (c *copier) resume(ctx context.Context, mark *copyMark) (already uint64, err error) {
	if mark.Backup {
		return 0, refuse("copy", stele.Conflict, "%s has what a restore left that was not finished; copy into an empty place", c.toPlace)
	}
	if already, err = c.to.LastChange(ctx); err != nil {
		return 0, err
	}
	if err := c.compareFeeds(ctx, already, func(stele.Change) {}); err != nil {
		return 0, refuse("copy", stele.Conflict, "%s is an unfinished copy, of %s as it seems, and not of this registry (%w); copy into an empty place", c.toPlace, mark.From, bare(err))
	}
	return already, nil
}

// look makes sure that the copy is empty, or an unfinished one, whose mark it returns.
func (c *copier) look(ctx context.Context) (*copyMark, error) {
	reason, err := c.to.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return nil, refuse("copy", stele.Conflict, "%s is sealed itself (%s); copy into an empty place", c.toPlace, reason)
	}
	mark, err := readCopyMark(ctx, c.to)
	if err != nil || mark != nil {
		return mark, err
	}
	last, err := c.to.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	_, trail, err := c.to.AuditRange(ctx)
	if err != nil {
		return nil, err
	}
	more := last > 0 || trail > 0
	for _, err := range c.to.MinterStates(ctx) {
		if err != nil {
			return nil, err
		}
		more = true
		break
	}
	for _, err := range c.to.Cells(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		more = true
		break
	}
	if more {
		return nil, refuse("copy", stele.Conflict, "%s has a registry already, with %d changes, which is no unfinished copy; copy into an empty place", c.toPlace, last)
	}
	return nil, nil
}

// sealSource seals the store that is copied. It may be sealed already, for this copy.
func (c *copier) sealSource(ctx context.Context, mark *copyMark) error {
	have, err := c.from.Sealed(ctx)
	if err != nil {
		return err
	}
	c.seal = "it moved to " + c.toPlace.absolute() + "; write there"
	if len(c.seal) > stele.MaxSeal {
		c.seal = c.seal[:stele.MaxSeal]
	}
	switch {
	case have == "":
		return c.from.Seal(ctx, c.seal)
	case have == c.seal || mark != nil && have == mark.Seal:
		c.seal = have
		return nil
	}
	return refuse("copy", stele.Conflict, "%s is sealed for another reason (%s); go on with that, or give it up and take the seal away: stele store unseal %s", c.fromPlace, have, c.fromPlace.flag())
}

// absolute names the place so that it can be found from elsewhere.
func (l place) absolute() string {
	if l.url == "" {
		if full, err := filepath.Abs(l.folder); err == nil {
			return full
		}
	}
	return l.String()
}

// replay makes the changes after one again.
func (c *copier) replay(ctx context.Context, after uint64) error {
	c.done.Store(int64(after))
	bar := c.follow("copy", "changes", int64(c.last), c.done.Load)
	defer bar.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	portions := make(chan portion, 1)
	go func() { // reads while the one before is written
		defer close(portions)
		for after < c.last {
			next := c.read(ctx, after)
			after += next.changes
			select {
			case portions <- next:
			case <-ctx.Done():
				return
			}
			if next.err != nil {
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range portions { // the reader has ended when nobody uses the store
		}
	}()
	for next := range portions {
		if next.err != nil {
			return next.err
		}
		for _, commit := range next.commits {
			if err := c.to.Apply(ctx, commit); err != nil {
				return err
			}
			n := len(commit.Replay)
			c.done.Add(int64(n))
			bar.add(n)
		}
	}
	return ctx.Err()
}
