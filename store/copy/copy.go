// Package copy moves a registry from one store to another: every version of every record
// and namespace under its number in the change feed, minters, cells, zones, generations and
// the audit trail.
//
// The source is sealed first, so that no name can be issued in both places. The target is
// marked as unfinished until both were compared and no difference was found; a registry is
// not opened while it has the mark. A copy that was interrupted continues where it was.
package copy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// How much of a registry is committed at once. A commit is all or nothing, so an interrupt
// loses at most this much work.
const (
	commitChanges = 5000
	commitBytes   = 8 << 20
)

// Place names a store in messages. It has no passwords.
type Place struct {
	Name     string // as the user named it
	Absolute string // so that it can be found from elsewhere
	Flag     string // the part of a command line that names it
}

func (p Place) String() string { return p.Name }

// Progress shows how far the copy is.
type Progress interface {
	Add(n int) // n more units are done
	End()
}

// Report says what was copied.
type Report struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Seal    string `json:"seal"` // of From
	Resumed uint64 `json:"resumed,omitempty"`
	Tallies
}

// Copier makes a store equal to another one. All that it needs to continue is in the
// two stores: the number of changes in the target tells where an earlier run ended.
type Copier struct {
	From, To           stele.Store
	FromPlace, ToPlace Place
	Now                func() time.Time

	// Entry names the principal that copies (By, System, Via), for the entry about the
	// copy in the target's audit trail.
	Entry stele.AuditEntry

	// Progress starts to show a phase of the work, of which done tells how many of total
	// are done. Nothing is shown if it is nil.
	Progress func(phase, unit string, total int64, done func() int64) Progress

	AtOnce int // changes in a commit; 0: the default

	seal string // the reason
	last uint64 // the last change there is, once the source is sealed
	done atomic.Int64
}

// silent is the Progress of a Copier that has none.
type silent struct{}

func (silent) Add(int) {}
func (silent) End()    {}

func (c *Copier) follow(phase, unit string, total int64) Progress {
	if c.Progress == nil {
		return silent{}
	}
	return c.Progress(phase, unit, total, c.done.Load)
}

func fail(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "copy", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Run copies, compares, and makes the target a registry.
func (c *Copier) Run(ctx context.Context) (report Report, err error) {
	if c.AtOnce == 0 {
		c.AtOnce = commitChanges
	}
	report = Report{From: c.FromPlace.String(), To: c.ToPlace.String()}
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
	for _, part := range []func(context.Context) error{c.copyZones, c.copyMinters, c.copyCells, c.copyTrail} {
		if err := part(ctx); err != nil {
			return report, err
		}
	}
	if report.Tallies, err = c.compare(ctx); err != nil {
		return report, err
	}
	return report, c.finish(ctx)
}

// begin seals the one store and marks the other, if both may be. It returns how many
// changes were copied before.
func (c *Copier) begin(ctx context.Context) (already uint64, err error) {
	if err := RefuseUnfinished(ctx, c.From, c.FromPlace); err != nil {
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
	if c.last, err = c.From.LastChange(ctx); err != nil {
		return 0, err
	}
	if mark == nil {
		return 0, setMark(ctx, c.To, &Mark{From: c.FromPlace.String(), Seal: c.seal, Began: c.Now().UTC()})
	}
	return already, nil
}

// resume makes sure that an unfinished copy is one of this registry, and returns how many
// changes it has.
func (c *Copier) resume(ctx context.Context, mark *Mark) (already uint64, err error) {
	if mark.Backup {
		return 0, fail(stele.Conflict, "copy.into-unfinished-restore", "{copy} has what a restore left that was not finished; copy into an empty place", c.ToPlace)
	}
	if already, err = c.To.LastChange(ctx); err != nil {
		return 0, err
	}
	if err := c.compareFeeds(ctx, already, func(stele.Change) {}); err != nil {
		return 0, fail(stele.Conflict, "copy.of-other-registry", "{copy} is an unfinished copy, of {source} as it seems, and not of this registry ({cause}); copy into an empty place", c.ToPlace, mark.From, stele.Reason(err))
	}
	return already, nil
}

// look makes sure that the copy is empty, or an unfinished one, whose mark it returns.
func (c *Copier) look(ctx context.Context) (*Mark, error) {
	sealed, err := c.To.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	if sealed != "" {
		return nil, fail(stele.Conflict, "copy.into-sealed", "{copy} is sealed itself ({reason}); copy into an empty place", c.ToPlace, sealed)
	}
	mark, err := ReadMark(ctx, c.To)
	if err != nil || mark != nil {
		return mark, err
	}
	last, err := c.To.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	_, trail, err := c.To.AuditRange(ctx)
	if err != nil {
		return nil, err
	}
	more := last > 0 || trail > 0
	for _, err := range c.To.MinterStates(ctx) {
		if err != nil {
			return nil, err
		}
		more = true
		break
	}
	for _, err := range c.To.Cells(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		more = true
		break
	}
	if more {
		return nil, fail(stele.Conflict, "copy.into-registry", "{copy} has a registry already, with {changes} changes, which is not an unfinished copy; copy into an empty place", c.ToPlace, last)
	}
	return nil, nil
}

// sealSource seals the store that is copied. It may be sealed already, for this copy.
func (c *Copier) sealSource(ctx context.Context, mark *Mark) error {
	have, err := c.From.Sealed(ctx)
	if err != nil {
		return err
	}
	c.seal = "it moved to " + c.ToPlace.Absolute + "; write there"
	if len(c.seal) > stele.MaxSeal {
		c.seal = c.seal[:stele.MaxSeal]
	}
	switch {
	case have == "":
		return c.From.Seal(ctx, c.seal)
	case have == c.seal || mark != nil && have == mark.Seal:
		c.seal = have
		return nil
	}
	return fail(stele.Conflict, "copy.source-sealed-otherwise", "{source} is sealed for another reason ({reason}); go on with that, or give it up and take the seal away: stele store unseal {place}", c.FromPlace, have, c.FromPlace.Flag)
}

// replay makes the changes after one again.
func (c *Copier) replay(ctx context.Context, after uint64) error {
	c.done.Store(int64(after))
	bar := c.follow("copy", "changes", int64(c.last))
	defer bar.End()
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
		for range portions { // the reader ends before replay returns
		}
	}()
	for next := range portions {
		if next.err != nil {
			return next.err
		}
		for _, commit := range next.commits {
			if err := c.To.Apply(ctx, commit); err != nil {
				return err
			}
			n := len(commit.Replay)
			c.done.Add(int64(n))
			bar.Add(n)
		}
	}
	return ctx.Err()
}
