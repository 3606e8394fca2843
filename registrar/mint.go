package registrar

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Label is a new name: an identifier, and the aliases that come with it. An IBI
// server with a host name and an IP address makes a repository name and an IBIp of
// one date.
type Label struct {
	ID      stele.ID
	Aliases []stele.ID
}

// names yields all names of a label, its identifier first.
func (l Label) names(yield func(stele.ID) bool) {
	if !yield(l.ID) {
		return
	}
	for _, alias := range l.Aliases {
		if !yield(alias) {
			return
		}
	}
}

// Mint makes n new names in a namespace. Callers are served in order of arrival.
// No name is ever given twice, and none that is registered (or, of a store that is away,
// was when it was reserved; see [Options.Shared]). If an error ends it
// early, the names made before come with the error; they are given, whether the
// caller uses them or not.
//
// Exhausted if too many callers wait or the names are used up, Unavailable if the
// clock is behind the last date issued, or if the context ends.
func (r *Registrar) Mint(ctx context.Context, key stele.NamespaceKey, n int) ([]Label, error) {
	return r.MintPool(ctx, []stele.NamespaceKey{key}, n)
}

// MintPool makes n new names as Mint does, each in the namespace of the pool that
// is free first: the spatial distributor of the IBI report. So ten servers with
// one date a second make ten names a second.
func (r *Registrar) MintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]Label, error) {
	labels, err := r.mintPool(ctx, pool, n)
	r.minted(ctx, pool, len(labels))
	return labels, err
}

// mintPool is MintPool for a caller that counts the names, or registers them.
func (r *Registrar) mintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]Label, error) {
	if err := r.mayMint(ctx, pool); err != nil {
		return nil, err
	}
	labels := make([]Label, 0, min(max(n, 0), 10_000))
	draws := make([]draw, 0, min(max(n, 0), 1000))
	arrived, turns := r.o.Now(), 0
	for len(labels) < n {
		d, made, err := r.draw(ctx, pool, arrived, turns > 0, n-len(labels), &draws)
		var kerr error
		if labels, kerr = d.keepAll(ctx, made, draws, labels); kerr != nil {
			return labels, kerr
		}
		if turns++; err != nil && !r.another(ctx, pool, err, turns) {
			return labels, err
		}
	}
	return labels, nil
}

// another reports whether another namespace of the pool may have a name where one
// has none now.
func (r *Registrar) another(ctx context.Context, pool []stele.NamespaceKey, err error, turns int) bool {
	return turns < len(pool) && stele.KindOf(err) == stele.Unavailable && ctx.Err() == nil
}

// mayMint makes sure that whoever acts may write in all namespaces of a pool.
func (r *Registrar) mayMint(ctx context.Context, pool []stele.NamespaceKey) error {
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	if len(pool) == 0 {
		return refuse("mint", stele.ID{}, stele.Invalid, "there is no namespace to make names in; give one")
	}
	for _, key := range pool {
		sp := s.Get(key)
		if sp == nil {
			return refuse("mint", stele.ID{}, stele.NotFound, "there is no namespace %s; add it first", key)
		}
		if who, chain := auth.From(ctx), s.Chain(sp); !auth.MayMint(who, chain...) {
			return forbid("mint", stele.ID{}, who, chain[0])
		}
		if sp.Minter.Kind == stele.NoMinter {
			return refuse("mint", stele.ID{}, stele.Invalid, "the namespace %s has no minter; set one", key)
		}
	}
	return nil
}

// enter takes a place at the desk that is free first. If the room there is full
// another will do.
func (r *Registrar) enter(pool []stele.NamespaceKey, back bool) (*desk, place, error) {
	if len(pool) == 1 {
		d := r.desk(pool[0])
		p, err := d.room.join(back)
		return d, p, err
	}
	// One pool at a time, or two callers would choose the same desk.
	r.pools.Lock()
	defer r.pools.Unlock()
	type choice struct {
		*desk
		free time.Time
	}
	now := r.o.Now()
	choices := make([]choice, len(pool))
	for i, key := range pool {
		d := r.desk(key)
		choices[i] = choice{d, now}
		step := time.Duration(0)
		if w := d.work.Load(); w != nil {
			step = w.source.step()
			if free := w.source.free(); free.After(now) {
				choices[i].free = free
			}
		}
		// Who waits there counts from now on, however long the desk had nothing to do;
		// and also where nobody waits for a time.
		choices[i].free = choices[i].free.Add(max(step, 1) * time.Duration(d.room.inside()))
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return a.free.Compare(b.free) })
	var full error
	for _, c := range choices {
		p, err := c.room.join(back)
		if err == nil {
			return c.desk, p, nil
		}
		full = err
	}
	return nil, place{}, full
}

// draw takes some names, n at most, into draws, in one turn at one desk. What is
// in draws may leave, even if there is an error.
func (r *Registrar) draw(ctx context.Context, pool []stele.NamespaceKey, arrived time.Time, back bool, n int, draws *[]draw) (*desk, maker, error) {
	*draws = (*draws)[:0]
	d, p, err := r.enter(pool, back)
	if err != nil {
		return nil, nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, nil, err
	}
	defer d.room.leave()
	var made maker
	conflicts := 0
	for len(*draws) < n {
		// Who has names already makes something of them before waiting for more.
		src, x, reserve, err := d.take(ctx, arrived, len(*draws) == 0)
		if err == errEarly {
			return d, made, nil
		}
		if err != nil {
			return d, made, err
		}
		if made != nil && made != src.maker() {
			// The settings changed: what was taken before is made by the old ones.
			src.skip(x)
			return d, made, nil
		}
		if reserve != nil {
			err := r.apply(ctx, "mint", reserve)
			if err != nil {
				src.forget()
				// Another process took names here, or changed a namespace.
				if conflicts++; !r.again(ctx, err, conflicts) {
					return d, made, err
				}
				if err := r.catchUp(ctx); err != nil {
					return d, made, err
				}
				continue
			}
			d.settle(ctx, src)
		}
		made = src.maker()
		*draws = append(*draws, x)
		if len(*draws) >= src.burst() || len(pool) > 1 {
			return d, made, nil
		}
	}
	return d, made, nil
}
