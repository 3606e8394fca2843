package minting

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// Registration is what is to be registered under new names.
type Registration interface {
	// Check judges the registration before it has names, so that no name is used up for a
	// record that can't be registered.
	Check(ctx context.Context) error

	// Commit returns the commit that registers the records of labels, in their order. An
	// error if the caller may not register one, or if one is not valid.
	Commit(ctx context.Context, labels []Label) (*stele.Commit, error)

	// Records returns the records as they were registered under labels at that time.
	Records(labels []Label, at time.Time) []*stele.Record
}

// Register makes a new name in the namespace of the pool that is free first, and registers
// a record under it, in one commit. It returns the record as it was committed.
func (ms *Minters) Register(ctx context.Context, op string, pool []stele.NamespaceKey, reg Registration) (Label, *stele.Record, error) {
	if err := reg.Check(ctx); err != nil {
		return Label{}, nil, err
	}
	return ms.register(ctx, op, pool, reg)
}

// register is Register for a registration that was checked.
func (ms *Minters) register(ctx context.Context, op string, pool []stele.NamespaceKey, reg Registration) (Label, *stele.Record, error) {
	arrived, conflicts := ms.o.Now(), 0
	for attempt := 1; ; attempt++ {
		label, done, err := ms.registerOne(ctx, op, pool, arrived, attempt > 1, &conflicts, reg)
		if done != nil || err != nil && !another(ctx, pool, err, attempt) {
			return label, done, err
		}
	}
}

// registerOne takes one name for a record and commits both. It returns nil if the
// name can't be used, and another one should be tried.
func (ms *Minters) registerOne(ctx context.Context, op string, pool []stele.NamespaceKey, arrived time.Time, back bool, conflicts *int, reg Registration) (Label, *stele.Record, error) {
	m, p, err := ms.enter(pool, back)
	if err != nil {
		return Label{}, nil, err
	}
	if err := p.wait(ctx); err != nil {
		return Label{}, nil, err
	}
	inTurn := true
	leave := func() {
		if inTurn {
			m.queue.leave()
		}
		inTurn = false
	}
	defer leave()
	src, x, reserve, err := m.take(ctx, arrived, true)
	if err != nil {
		return Label{}, nil, err
	}
	made := src.maker()
	if reserve == nil {
		leave() // the name is durable: other callers need not wait for this record
	}
	label, c, err := m.fill(ctx, made, x, reg)
	if c == nil || err != nil {
		if reserve != nil && c == nil && err == nil {
			src.skip(x)
		}
		return Label{}, nil, err
	}
	if reserve != nil {
		c.Minters, c.Cells = reserve.Minters, append(slices.Clip(c.Cells), reserve.Cells...)
	}
	err = ms.registry.Apply(ctx, op, c)
	switch {
	case err == nil:
		if reserve != nil {
			m.settle(ctx, src)
		}
		return label, c.Records[0], nil
	case reserve != nil:
		src.forget()
	}
	if stele.KindOf(err) != stele.Conflict {
		return Label{}, nil, err
	}
	return Label{}, nil, m.conflict(ctx, err, conflicts, reserve != nil, src, x, label, c.Records[0])
}

// fill makes the label of a draw, and the commit that registers a record under it. The
// commit is nil if the label must not be used.
func (m *minter) fill(ctx context.Context, made maker, x draw, reg Registration) (Label, *stele.Commit, error) {
	label, err := made.label(x)
	if err != nil || !label.ID.IsValid() {
		return label, nil, stele.AsError("mint", err)
	}
	v, err := m.registry.View(ctx)
	if err != nil {
		return label, nil, err
	}
	if ok, err := m.owns(v.Tree, made, label); !ok {
		return label, nil, err
	}
	c, err := reg.Commit(ctx, []Label{label})
	return label, c, err
}

// conflict finds out why the commit of a record conflicted with another commit. It returns
// nil if another attempt is worth while.
func (m *minter) conflict(ctx context.Context, err error, conflicts *int, reserved bool, src source, x draw, label Label, rec *stele.Record) error {
	taken, terr := m.isTaken(ctx, label)
	switch {
	case terr != nil:
		return terr
	case taken:
		if reserved {
			src.skip(x)
		}
		return nil
	case reserved: // another process took names here or changed a namespace, unless it is an alias
		for _, alias := range rec.Aliases {
			if slices.Contains(label.Aliases, alias) {
				continue
			}
			if _, rerr := m.registry.LookUp(ctx, "mint", alias); rerr == nil {
				return err
			}
		}
		if *conflicts++; !m.registry.Retry(ctx, err, *conflicts) {
			return err
		}
		return m.registry.Refresh(ctx)
	}
	return err
}
