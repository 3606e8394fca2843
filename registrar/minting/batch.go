package minting

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// MaxBatch is how many names a [Request] asks for at most.
const MaxBatch = 1000

// maxAttempts is how often a batch is tried again when names of it are registered meanwhile.
const maxAttempts = 100

// Request asks for a batch of names.
type Request struct {
	Op    string // "mint", or what else the caller does
	Pool  []stele.NamespaceKey
	Count int       // 1 to MaxBatch
	Time  time.Time // of the request, and of the records that are registered

	Registration Registration // what is registered under the names; nil if nothing is

	Key       *IdempotencyKey // nil if the request is not repeated
	Principal string          // the sender of the request; each principal has its own keys
}

// Batch is the answer to a [Request].
type Batch struct {
	Labels   []Label
	Records  []*stele.Record // registered under the labels, in their order; nil if none was asked for
	Replayed bool            // they were made for an earlier request with the same key
}

// or returns what b points to, or else the error.
func (b *Batch) or(err error) (Batch, error) {
	if b == nil {
		return Batch{}, err
	}
	return *b, err
}

// MintBatch makes new names as [Minters.Mint] does, and registers records under them if the
// request says so. It makes all or nothing: the records are committed together, and with
// them the answer to a request that is repeated. So a crash leaves all of it or none, and a
// key never has two answers, however many requests with it come at the same time: the later
// ones wait for the answer to the first.
//
// Conflict, as [ErrKeyReused], if the key was used for another request; Exhausted if the
// principal has used too many keys. An answer is kept until [Minters.ExpireKeys].
func (ms *Minters) MintBatch(ctx context.Context, q Request) (Batch, error) {
	b := &batch{Minters: ms, Request: q}
	if q.Key == nil {
		return b.run(ctx)
	}
	if err := q.Key.validate(); err != nil {
		return Batch{}, err
	}
	b.cell = requestName(q.Principal, q.Key.Key)
	done, err := ms.requests.enter(ctx, b.cell)
	if err != nil {
		return Batch{}, err
	}
	defer done()
	if found, err := b.recall(ctx); found != nil || err != nil {
		return found.or(err)
	}
	if err := ms.mayUseKey(ctx, q.Principal); err != nil {
		return Batch{}, err
	}
	made, err := b.run(ctx)
	switch {
	case err == nil:
		ms.requests.add(q.Principal, 1)
	case stele.KindOf(err) == stele.Conflict: // another process was faster, perhaps
		if found, rerr := b.recall(ctx); found != nil || rerr != nil {
			return found.or(rerr)
		}
	}
	return made, err
}

// batch is a MintBatch under way.
type batch struct {
	*Minters
	Request
	cell string // where the answer is kept
}

// run makes names, and commits what is to be registered under them and what is kept of
// the request. A name that is registered by others meanwhile is replaced by another one.
func (b *batch) run(ctx context.Context) (Batch, error) {
	if b.Registration != nil {
		if err := b.Registration.Check(ctx); err != nil {
			return Batch{}, err
		}
		if b.Key == nil && b.Count == 1 { // one commit where this takes two
			label, rec, err := b.register(ctx, b.Op, b.Pool, b.Registration)
			if err != nil {
				return Batch{}, err
			}
			return Batch{Labels: []Label{label}, Records: []*stele.Record{rec}}, nil
		}
	}
	if err := b.enough(ctx); err != nil {
		return Batch{}, err
	}
	var labels []Label
	for attempt := 1; ; attempt++ {
		more, err := b.Mint(ctx, b.Pool, b.Count-len(labels))
		if err != nil {
			return Batch{}, err
		}
		made := Batch{Labels: append(labels, more...)}
		err = b.commit(ctx, &made)
		if err == nil || stele.KindOf(err) != stele.Conflict || attempt == maxAttempts {
			return made, err
		}
		have := len(made.Labels)
		var kerr error
		if labels, kerr = b.free(ctx, made.Labels); kerr != nil {
			return Batch{}, kerr
		}
		if len(labels) == have { // the conflict has another reason
			return Batch{}, err
		}
	}
}

// enough makes sure that a template has so many names left, so that no name is used up for
// a request that can't have all.
func (b *batch) enough(ctx context.Context) error {
	if len(b.Pool) > 1 {
		return nil // another namespace may have more
	}
	left, bounded, err := b.minter(b.Pool[0]).left(ctx)
	// If none is left at all, Mint returns the error.
	if err != nil || !bounded || left == 0 || uint64(b.Count) <= left {
		return err
	}
	return stele.Errorf(b.Op, stele.ID{}, stele.Exhausted, "mint.template-has-too-few-left", "{count} names are asked for, and the template of {namespace} has {left} left; ask for fewer, or set another template", b.Count, b.Pool[0], left)
}

// commit commits all that was made.
func (b *batch) commit(ctx context.Context, made *Batch) error {
	c := &stele.Commit{}
	if b.Registration != nil {
		var err error
		if c, err = b.Registration.Commit(ctx, made.Labels); err != nil {
			return err
		}
	}
	if b.Key != nil {
		now, err := b.store.Position(ctx)
		if err != nil {
			return stele.AsError(b.Op, err)
		}
		kept := request{b.Key.Digest, b.Time, made.Labels, now.Generation}.bytes()
		if len(kept) > stele.MaxCell {
			return stele.Errorf(b.Op, stele.ID{}, stele.Invalid, "mint.names-too-large-to-keep", "the names have {bytes} bytes, more than can be kept of a request; ask for fewer at a time", len(kept))
		}
		c.Cells = append(slices.Clip(c.Cells), stele.CellChange{Name: b.cell, After: kept})
	}
	if c.Records == nil && c.Cells == nil {
		return nil
	}
	if err := b.registry.Apply(ctx, b.Op, c); err != nil {
		return err
	}
	made.Records = c.Records
	return nil
}

// free returns the labels of which no name is registered.
func (b *batch) free(ctx context.Context, labels []Label) (free []Label, err error) {
	for _, label := range labels {
		taken, err := b.isTaken(ctx, label)
		if err != nil {
			return nil, err
		}
		if !taken {
			free = append(free, label)
		}
	}
	return free, nil
}

// recall returns the answer to an earlier request with the same key; nil if
// there was none. Its records are as they were then: the request has their content, and the
// answer their names and time.
func (b *batch) recall(ctx context.Context) (*Batch, error) {
	data, err := b.store.Cell(ctx, b.cell)
	if err != nil {
		return nil, stele.AsError(b.Op, err)
	}
	if data == nil {
		return nil, nil
	}
	kept, err := readRequest(data)
	if err != nil {
		return nil, err
	}
	if kept.digest != b.Key.Digest {
		return nil, stele.Errorf(b.Op, stele.ID{}, stele.Conflict, "", `"{key}": {cause}`, b.Key.Key, ErrKeyReused)
	}
	generations, err := b.store.Generations(ctx)
	if err != nil {
		return nil, stele.AsError(b.Op, err)
	}
	if err := generations.Judge("the idempotency key", stele.Position{Generation: kept.generation, Change: 1}); err != nil {
		return nil, stele.AsError(b.Op, err)
	}
	found := &Batch{Labels: kept.labels, Replayed: true}
	if b.Registration != nil {
		found.Records = b.Registration.Records(kept.labels, kept.at)
	}
	return found, nil
}

// left returns how many names the minter's template has, if it is bounded. Some of
// them may be registered already.
func (m *minter) left(ctx context.Context) (n uint64, bounded bool, err error) {
	p, err := m.queue.join(false)
	if err != nil {
		return 0, false, err
	}
	if err := p.wait(ctx); err != nil {
		return 0, false, err
	}
	defer m.queue.leave()
	v, err := m.registry.View(ctx)
	if err != nil {
		return 0, false, err
	}
	src, err := m.open(ctx, v)
	c, ok := src.(*counter)
	if !ok || err != nil { // Mint returns the error
		return 0, false, nil
	}
	total, bounded := c.template.total()
	return total - min(total, c.count), bounded, nil
}
