package registrar

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar/minting"
)

// maxBatchBytes is how many bytes the records of one batch may have together.
const maxBatchBytes = 8 << 20

// Mint makes n new names in a namespace; see [minting.Minters.Mint].
func (r *Registrar) Mint(ctx context.Context, key stele.NamespaceKey, n int) ([]minting.Label, error) {
	return r.MintPool(ctx, []stele.NamespaceKey{key}, n)
}

// MintPool makes n new names, each in the namespace of the pool that is free first; see
// [minting.Minters.Mint]. The caller needs the right to mint in all of them.
func (r *Registrar) MintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]minting.Label, error) {
	if err := r.mayMint(ctx, pool); err != nil {
		return nil, err
	}
	labels, err := r.minters.Mint(ctx, pool, n)
	r.minted(ctx, pool, len(labels))
	return labels, err
}

// MintAndRegister makes a new name in the namespace of the pool that is free first,
// and registers the record under it, in one commit. The record comes without an
// identifier; aliases that it has stay, and those of the label join them.
func (r *Registrar) MintAndRegister(ctx context.Context, record *stele.Record, pool ...stele.NamespaceKey) (*stele.Record, error) {
	const op = "mint and register"
	if record.ID.IsValid() {
		return nil, refuse(op, record.ID, stele.Invalid, "mint.record-has-identifier", "the record has an identifier; register it, or leave the identifier out")
	}
	if err := r.mayMint(ctx, pool); err != nil {
		return nil, err
	}
	first, err := r.begin(ctx, op, record)
	if err != nil {
		return nil, err
	}
	_, done, err := r.minters.Register(ctx, op, pool, &registration{r, op, pool, first, nil})
	if err != nil {
		return nil, err
	}
	return clone(done), nil // others may keep what was committed
}

// MintBatch makes n new names as [Registrar.MintPool] does, and registers a record like
// the given one under each, unless that is nil. It makes all or nothing; see
// [minting.Minters.MintBatch]. With an idempotency key, which may be nil, a request that is
// repeated gets the same answer, until [Registrar.ExpireIdempotencyKeys].
func (r *Registrar) MintBatch(ctx context.Context, key *minting.IdempotencyKey, pool []stele.NamespaceKey, n int, record *stele.Record) (minting.Batch, error) {
	q := minting.Request{Op: "mint", Pool: pool, Count: n, Time: r.now(), Key: key, Principal: auth.From(ctx).Name}
	if n < 1 || n > minting.MaxBatch {
		return minting.Batch{}, refuse(q.Op, stele.ID{}, stele.Invalid, "mint.count-out-of-range", "{count} names are asked for; ask for 1 to {most} at a time", n, minting.MaxBatch)
	}
	if record == nil {
		if err := r.mayMint(ctx, pool); err != nil {
			return minting.Batch{}, err
		}
		made, err := r.minters.MintBatch(ctx, q)
		if err == nil && !made.Replayed {
			r.minted(ctx, pool, n)
		}
		return made, err
	}
	q.Op = "mint and register"
	return r.mintWith(ctx, q, record)
}

// mintWith makes names and registers a record under each, with changes of cells in the same commit.
func (r *Registrar) mintWith(ctx context.Context, q minting.Request, record *stele.Record, cells ...stele.CellChange) (minting.Batch, error) {
	if err := r.mayMint(ctx, q.Pool); err != nil {
		return minting.Batch{}, err
	}
	first, err := r.beginBatch(ctx, q.Op, q.Count, record)
	if err != nil {
		return minting.Batch{}, err
	}
	q.Time, q.Registration = first.Created, &registration{r, q.Op, q.Pool, first, cells}
	made, err := r.minters.MintBatch(ctx, q)
	for i, rec := range made.Records { // others may keep what was committed
		made.Records[i] = clone(rec)
	}
	return made, err
}

// beginBatch returns the first version of a record that is to be registered n times.
func (r *Registrar) beginBatch(ctx context.Context, op string, n int, record *stele.Record) (*stele.Record, error) {
	switch {
	case record.ID.IsValid():
		return nil, refuse(op, record.ID, stele.Invalid, "mint.record-has-identifier", "the record has an identifier; register it, or leave the identifier out")
	case n > 1 && len(record.Aliases) > 0:
		return nil, refuse(op, stele.ID{}, stele.Invalid, "mint.alias-for-several-records", "{count} records can't all have the alias {alias}; leave it out, or ask for one record", n, record.Aliases[0])
	}
	first, err := r.begin(ctx, op, record)
	if err != nil {
		return nil, err
	}
	if size := len(document.AppendRecord(nil, record)); size*n > maxBatchBytes {
		return nil, refuse(op, stele.ID{}, stele.Invalid, "mint.batch-too-large", "{count} records of {size} bytes are more than {most} bytes; ask for fewer at a time", n, size, maxBatchBytes)
	}
	return first, nil
}

// ExpireIdempotencyKeys removes the answers to requests before that time, at most so many, and
// returns how many it removed; see [minting.Minters.ExpireKeys]. It is housekeeping of the
// server and needs no rights.
func (r *Registrar) ExpireIdempotencyKeys(ctx context.Context, before time.Time, most int) (int, error) {
	return r.minters.ExpireKeys(ctx, before, most)
}

// mayMint makes sure that the caller may mint in all namespaces of a pool.
func (r *Registrar) mayMint(ctx context.Context, pool []stele.NamespaceKey) error {
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	if len(pool) == 0 {
		return refuse("mint", stele.ID{}, stele.Invalid, "mint.no-namespace-given", "there is no namespace to make names in; give one")
	}
	for _, key := range pool {
		sp := s.Get(key)
		if sp == nil {
			return refuse("mint", stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
		}
		if who, ancestors := auth.From(ctx), s.Ancestors(sp); !auth.MayMint(who, ancestors...) {
			return forbidWriting("mint", stele.ID{}, who, ancestors)
		}
		if sp.Minter.Kind == stele.NoMinter {
			return refuse("mint", stele.ID{}, stele.Invalid, "namespace.no-minter", "the namespace {namespace} has no minter; set one", key)
		}
	}
	return nil
}

// registration is a record that is to be registered under new names: a
// [minting.Registration].
type registration struct {
	r     *Registrar
	op    string
	pool  []stele.NamespaceKey
	first *stele.Record // without an identifier
	cells []stele.CellChange
}

// Check judges the record before it has a name.
func (n *registration) Check(ctx context.Context) error {
	s, err := n.r.view(ctx)
	if err != nil {
		return err
	}
	next := *n.first
	for _, key := range n.pool {
		sp := s.Get(key)
		if sp == nil {
			return refuse(n.op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
		}
		next.ID = sp.Below()
		problems, err := problemsOf(next.Validate())
		if err != nil {
			return tell(n.op, err)
		}
		j := judge{n.r, s.lookup(), problems}
		j.partial(nil, &next)
		j.destinationsIn(sp, &next)
		if len(j.problems) > 0 {
			return &stele.Error{Op: n.op, Kind: stele.Invalid, Err: j.problems}
		}
	}
	return nil
}

// Commit returns the commit that registers the records of labels. A token with the scope
// mint suffices for that.
func (n *registration) Commit(ctx context.Context, labels []minting.Label) (*stele.Commit, error) {
	s, err := n.r.view(ctx)
	if err != nil {
		return nil, err
	}
	ctx = auth.With(ctx, auth.From(ctx).Minting())
	c := &stele.Commit{Records: n.Records(labels, n.first.Created), Cells: n.cells, Counter: s.counter}
	for _, rec := range c.Records {
		at := s.lookup()
		if err := n.r.admit(ctx, n.op, at, nil, rec); err != nil {
			return nil, err
		}
		if len(c.Records) == 1 {
			c.Counter = at.counter
		}
	}
	return c, nil
}

// Records returns the records of labels, as they are registered at that time.
func (n *registration) Records(labels []minting.Label, at time.Time) []*stele.Record {
	list := make([]*stele.Record, len(labels))
	for i, label := range labels {
		rec := clone(n.first)
		rec.ID = label.ID
		rec.Aliases = append(slices.Clip(label.Aliases), rec.Aliases...)
		rec.Created, rec.Modified = at, at
		list[i] = rec
	}
	return list
}

// MinterStatus returns how far the minter of a namespace is.
func (r *Registrar) MinterStatus(ctx context.Context, key stele.NamespaceKey) (minting.Status, error) {
	ns, err := r.Namespace(ctx, key)
	if err != nil {
		return minting.Status{}, err
	}
	return r.minters.Status(ctx, ns)
}

// MinterProgress returns how far the minter of a namespace is, for an export: a registry that imports it makes no name
// that was made here.
func (r *Registrar) MinterProgress(ctx context.Context, ns *stele.Namespace) (Progress, error) {
	if _, err := r.Namespace(ctx, ns.Key()); err != nil {
		return Progress{}, err
	}
	return r.minters.Progress(ctx, ns)
}

// SkipCounter sets the counter of a namespace's template ahead; see [minting.Minters.Skip].
// Only an administrator may.
func (r *Registrar) SkipCounter(ctx context.Context, key stele.NamespaceKey, to uint64) error {
	const op = "skip counter"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	ns, err := r.Namespace(ctx, key)
	if err != nil {
		return err
	}
	if ns.IsSealed() { // the heir goes on from the position that the bundle has
		return sealed(op, stele.ID{}, ns)
	}
	return r.minters.Skip(ctx, op, ns, to)
}

// ShutTemplate shuts a template of a prefix whose names another registry may have
// given, until an administrator skips its counter ahead; see [Registrar.SkipCounter].
// If it is known how far the template is there, it continues from there. It is for
// namespaces that come from elsewhere, and is called before they are added. Only an
// administrator may.
func (r *Registrar) ShutTemplate(ctx context.Context, key stele.NamespaceKey, m stele.Minter, p minting.Progress) error {
	const op = "shut template"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	return r.minters.ShutTemplate(ctx, op, key, m, p)
}

// AfterRestore makes minters safe whose states came from a backup; see [minting.Restored]. It ends
// all sessions and one-time links: one that the backup has may have ended since, and removes jobs. It is to be called before the restored store is used, and may be called again. Only an
// administrator may.
//
// It can't know of a namespace that was added after the backup. If one with a
// template is added again, skip its counter before its first name is made.
func (r *Registrar) AfterRestore(ctx context.Context) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	now, err := mint.DateOf(r.o.Now())
	if err != nil {
		return refuse(op, stele.ID{}, stele.Unavailable, "mint.clock-wrong", "the clock is wrong: {cause}; set it", err)
	}
	changed, err := minting.Restored(op, now, r.store.MinterStates(ctx), r.store.Namespaces(ctx))
	if err != nil {
		return err
	}
	if err := r.applyMinters(ctx, op, changed); err != nil {
		return err
	}
	if err := r.endWork(ctx); err != nil {
		return err
	}
	return r.endVisits(ctx, op)
}

// AdvanceMinters makes minters continue after those of another store, such as the one that a
// backup replaces; see [minting.Minters.Advance]. Only an administrator may, before names are
// made.
func (r *Registrar) AdvanceMinters(ctx context.Context, others iter.Seq2[stele.MinterState, error]) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	changed, err := r.minters.Advance(ctx, op, others)
	if err != nil {
		return err
	}
	return r.applyMinters(ctx, op, changed)
}

// applyMinters commits states of minters, if there are any.
func (r *Registrar) applyMinters(ctx context.Context, op string, states []stele.MinterState) error {
	if len(states) == 0 {
		return nil
	}
	return r.apply(ctx, op, &stele.Commit{Minters: states})
}

// claim makes sure that the prefixes of the minter's names belong to the namespace
// alone, and returns the states of minters that make it so; see [minting.Minters.Claim].
func (r *Registrar) claim(ctx context.Context, op string, s *namespaceTree, before, next *stele.Namespace) ([]stele.MinterState, error) {
	keys, err := minting.DatePrefixes(r.schemes, next)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if err := r.mayClaim(ctx, op, s, next, key); err != nil {
			return nil, err
		}
	}
	return r.minters.Claim(ctx, op, before, next)
}

// mayClaim makes sure that a prefix belongs to no other namespace, and that the caller has the
// role owner there, as for a namespace. Below the namespace itself no role is needed.
func (r *Registrar) mayClaim(ctx context.Context, op string, s *namespaceTree, ns *stele.Namespace, key stele.NamespaceKey) error {
	if other := s.At(key); other != nil && other.Key() != ns.Key() {
		return refuse(op, stele.ID{}, stele.Conflict,
			"minter.prefix-of-other-namespace", "{prefix} belongs to the namespace {namespace}, and to one only; use another host, address or port", key, other.Key())
	}
	_, below, err := namespaces.ReadPrefix(r.schemes, key.Prefix)
	if err != nil {
		return err
	}
	ancestors := s.ancestorsOf(below)
	if namespaces.IsBelow(r.schemes, key.Prefix, ns.Prefix) {
		return nil
	}
	if who := auth.From(ctx); !auth.MayManage(who, ancestors...) {
		return forbidSettings(op, who, ancestors[0])
	}
	return nil
}

// seedTemplate gives a new template a seed; see [minting.Seed].
func (r *Registrar) seedTemplate(before, next *stele.Namespace) error {
	return minting.Seed(r.o.Rand, before, next)
}

// keepSeed leaves a namespace as it is: one that comes from another registry keeps the
// order of its names, also if its seed is 0.
func keepSeed(_, _ *stele.Namespace) error { return nil }

// mintingRegistry is the registry as minters see it: a [minting.Registry].
type mintingRegistry struct{ *Registrar }

// View returns the namespaces as this process knows them.
func (m mintingRegistry) View(ctx context.Context) (minting.View, error) {
	s, err := m.view(ctx)
	if err != nil {
		return minting.View{}, err
	}
	return minting.View{Tree: s.Tree, Unchanged: s.unchanged(), Replaced: s.replaced}, nil
}

// Refresh reads the namespaces again if another process has changed one.
func (m mintingRegistry) Refresh(ctx context.Context) error { return m.catchUp(ctx) }

// Apply commits.
func (m mintingRegistry) Apply(ctx context.Context, op string, c *stele.Commit) error {
	return m.apply(ctx, op, c)
}

// Retry reports whether a commit is worth another attempt.
func (m mintingRegistry) Retry(ctx context.Context, err error, attempt int) bool {
	return m.again(ctx, err, attempt)
}

// LookUp returns the record that has a name.
func (m mintingRegistry) LookUp(ctx context.Context, op string, name stele.ID) (*stele.Record, error) {
	return m.lookUp(ctx, op, name)
}

// AreFree reports whether no record has one of the names.
func (m mintingRegistry) AreFree(ctx context.Context, op string, names iter.Seq[stele.ID]) (bool, error) {
	whole, began := true, m.beginReading()
	var first stele.ID
	_, _, err := m.store.First(ctx, func(yield func(stele.Prefix) bool) {
		for name := range names {
			if !first.IsValid() {
				first = name
			}
			// First takes prefixes, and a name is one of a longer name.
			longer, err := stele.NewID(name.Scheme(), name.String()+"x")
			if whole = whole && err == nil; !whole || !yield(longer.Prefix(len(name.String()))) {
				return
			}
		}
	})
	switch {
	case err == nil || !whole:
		return false, nil
	case errors.Is(err, stele.NotFound):
		if err = m.missing(op, first, began); stele.KindOf(err) == stele.NotFound {
			return true, nil
		}
	}
	return false, tell(op, err)
}
