package registrar

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// MintAndRegister makes a new name in the namespace of the pool that is free first,
// and registers the record under it, in one commit. The record comes without an
// identifier; aliases that it has stay, and those of the label join them.
func (r *Registrar) MintAndRegister(ctx context.Context, record *stele.Record, pool ...stele.NamespaceKey) (*stele.Record, error) {
	const op = "mint and register"
	if record.ID.IsValid() {
		return nil, refuse(op, record.ID, stele.Invalid, "the record has an identifier; register it, or leave the identifier out")
	}
	if err := r.mayMint(ctx, pool); err != nil {
		return nil, err
	}
	first, err := r.begin(ctx, op, record)
	if err != nil {
		return nil, err
	}
	if err := r.rehearse(ctx, op, pool, first); err != nil {
		return nil, err
	}
	arrived, conflicts := r.o.Now(), 0
	for attempt := 1; ; attempt++ {
		done, err := r.mintInto(ctx, op, pool, arrived, attempt > 1, &conflicts, first)
		if done != nil || err != nil && !r.another(ctx, pool, err, attempt) {
			return done, err
		}
	}
}

// rehearse judges a record before it has a name, so that none is used up for one
// that can't be registered.
func (r *Registrar) rehearse(ctx context.Context, op string, pool []stele.NamespaceKey, first *stele.Record) error {
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	next := *first
	for _, key := range pool {
		sp := s.Get(key)
		next.ID = sp.Below()
		problems, err := problemsOf(next.Validate())
		if err != nil {
			return tell(op, err)
		}
		j := judge{r, s.lookup(), problems}
		j.partial(nil, &next)
		j.destinationsIn(sp, &next)
		if len(j.problems) > 0 {
			return &stele.Error{Op: op, Kind: stele.Invalid, Err: j.problems}
		}
	}
	return nil
}

// mintInto takes one name for a record and commits both. It returns nil if the
// name can't be used, and another one should be tried.
func (r *Registrar) mintInto(ctx context.Context, op string, pool []stele.NamespaceKey, arrived time.Time, back bool, conflicts *int, first *stele.Record) (*stele.Record, error) {
	d, p, err := r.enter(pool, back)
	if err != nil {
		return nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	inTurn := true
	leave := func() {
		if inTurn {
			d.room.leave()
		}
		inTurn = false
	}
	defer leave()
	src, x, reserve, err := d.take(ctx, arrived, true)
	if err != nil {
		return nil, err
	}
	made := src.maker()
	if reserve == nil {
		leave() // the name is durable: others need not wait for this record
	}
	next, c, err := d.fill(ctx, op, made, x, first)
	if next == nil || err != nil {
		if reserve != nil && next == nil && err == nil {
			src.skip(x)
		}
		return nil, err
	}
	if reserve != nil {
		c.Minters, c.Cells = reserve.Minters, reserve.Cells
	}
	err = r.apply(ctx, op, c)
	switch {
	case err == nil:
		if reserve != nil {
			d.settle(ctx, src)
		}
		return next, nil
	case reserve != nil:
		src.forget()
	}
	if stele.KindOf(err) != stele.Conflict {
		return nil, err
	}
	return nil, d.conflict(ctx, err, conflicts, reserve != nil, src, x, next, first)
}

// fill makes the label of a draw, and of it and the record the commit. The record
// is nil if the label must not be used.
func (d *desk) fill(ctx context.Context, op string, made maker, x draw, first *stele.Record) (*stele.Record, *stele.Commit, error) {
	label, err := made.label(x)
	if err != nil || !label.ID.IsValid() {
		return nil, nil, tell("mint", err)
	}
	s, err := d.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	at := s.lookup()
	if ok, err := d.owns(at, made, label); !ok {
		return nil, nil, err
	}
	next := clone(first)
	next.ID = label.ID
	next.Aliases = append(slices.Clip(label.Aliases), next.Aliases...)
	if err := d.admit(whileMinting(ctx), op, at, nil, next); err != nil {
		return nil, nil, err
	}
	return next, &stele.Commit{Records: []*stele.Record{next}, Counter: at.counter}, nil
}

// conflict finds out why a commit met another one. It returns nil if it is worth
// trying again.
func (d *desk) conflict(ctx context.Context, err error, conflicts *int, reserved bool, src source, x draw, next, first *stele.Record) error {
	label := Label{ID: next.ID, Aliases: next.Aliases[:len(next.Aliases)-len(first.Aliases)]}
	taken, terr := d.taken(ctx, label)
	switch {
	case terr != nil:
		return terr
	case taken:
		if reserved {
			src.skip(x)
		}
		return nil
	case reserved: // another process took names here or changed a namespace, unless it is an alias
		for _, alias := range first.Aliases {
			if _, rerr := d.store.Record(ctx, alias); rerr == nil {
				return err
			}
		}
		if *conflicts++; !d.again(ctx, err, *conflicts) {
			return err
		}
		return d.catchUp(ctx)
	}
	return err
}

// whileMinting returns a context in which the caller registers a record under a name that
// was just made for it: a token with the scope mint may be used for that.
func whileMinting(ctx context.Context) context.Context {
	return auth.With(ctx, auth.From(ctx).Minting())
}
