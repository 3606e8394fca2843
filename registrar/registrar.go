// Package registrar is the write path, and the only writer: every change of the registry
// passes here. It checks the rights of the caller, judges what is to be written, and commits
// it with its history in one transaction. Package minting makes new names for it.
//
// It never answers the public (that is package resolver), knows neither a concrete
// store nor a concrete scheme, deletes nothing and never detaches a name from its
// record. The context carries the caller; see package auth.
package registrar

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/trace"
)

// Options are what a Registrar needs to know of the place where it works. All but
// the clock have defaults.
type Options struct {
	// Now is the clock. It must be set.
	Now func() time.Time

	// Log gets what an operator should look into. Nothing is logged if it is nil.
	Log *slog.Logger

	// OnCommit is called with the records that a commit wrote, or may have
	// written, before the write is acknowledged: the resolver's Invalidate. It must
	// not change them.
	OnCommit func(records ...*stele.Record)

	// OnIngest is called with the new records that an import has written, before OnCommit: the
	// Offer of the search index and of the transparency log. They do not change any more.
	OnIngest func(records []*stele.Record)

	// OnErase is called before the versions of a record up to one are erased, and returns the cells that change with the same commit: the
	// transparency log's Erase. It may be nil.
	OnErase func(ctx context.Context, id stele.ID, upTo uint64) ([]stele.CellChange, error)

	// OnNamespaces is called in the same way after a commit of a namespace: the
	// resolver's InvalidateNamespaces.
	OnNamespaces func()

	// OnAccess is called in the same way after a commit of a user or a token: the
	// Forget of an [auth.Directory].
	OnAccess func()

	// Wait is how long a caller waits for a clock that is earlier than the last date
	// that was issued; 5 s if 0. The wait in the queue is not part of it.
	Wait time.Duration

	// Ahead is how far into the future dates are reserved in one commit, where the
	// granularity is less than a second; 50 ms if 0. A crash skips so much at most, and
	// of several processes that take dates of one prefix each waits so long for the
	// others.
	Ahead time.Duration

	// Shared says that other processes write to the store, and that it may be unavailable
	// while this one runs. Names of templates are looked up when they are reserved then, so
	// that they can be issued without the store.
	Shared bool

	// CatchUp returns when all parts of this process that keep something in memory were told what other processes had committed before
	// the call. It calls Reload. Nil: no other process writes.
	CatchUp func(context.Context) error

	// Lagging reports whether what is read from the store at present may be older than what
	// was read before, and since when, or when that was so last. The registrar does not
	// answer NotFound then. It may be nil.
	Lagging func() (since time.Time, yes bool)

	// Secrets are the keys that encrypt secrets, such as the private keys of zones. Without
	// them the registrar writes no secrets.
	Secrets *secret.Ring

	// Notify and Transfer say which addresses the secondaries of zones may have; nil if
	// it is not decided here. Administrators are bound by them too.
	Notify, Transfer *outbound.Rule

	// QueueSize is how many callers may wait for names of one namespace; 10,000 if
	// 0.
	QueueSize int

	// BlockSize is how many names of a template are reserved in one commit; 1000
	// if 0. A crash skips so many at most.
	BlockSize int

	// Rand gives the random bits of UUIDs, tokens and the seeds of templates, to several goroutines at once;
	// crypto/rand's Reader if nil.
	Rand io.Reader
}

// Registrar writes to a store. It is used by many goroutines at once.
type Registrar struct {
	store   stele.Store
	schemes *stele.Schemes
	o       Options

	// Namespaces are few, and each write asks for some: they are kept in memory.
	namespaceTree atomic.Pointer[namespaceTree] // nil: to be read
	changes       chan struct{}                 // holds one value while a caller changes namespaces

	minters *minting.Minters
	hasher  *password.Hasher
	tally   tally // of what is counted instead of audited one by one

	preferred auth.Parsed[auth.Preferences]
}

// New returns a registrar that writes to the store.
func New(store stele.Store, schemes *stele.Schemes, o Options) *Registrar {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnCommit == nil {
		o.OnCommit = func(...*stele.Record) {}
	}
	if o.OnNamespaces == nil {
		o.OnNamespaces = func() {}
	}
	if o.CatchUp == nil {
		o.CatchUp = func(context.Context) error { return nil }
	}
	if o.OnAccess == nil {
		o.OnAccess = func() {}
	}
	if o.Wait <= 0 {
		o.Wait = 5 * time.Second
	}
	if o.Ahead <= 0 {
		o.Ahead = minting.DefaultAhead
	}
	if o.QueueSize <= 0 {
		o.QueueSize = 10_000
	}
	if o.BlockSize <= 0 {
		o.BlockSize = 1000
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	r := &Registrar{
		store:   store,
		schemes: schemes,
		o:       o,
		changes: make(chan struct{}, 1),
		hasher:  password.NewHasher(max(runtime.GOMAXPROCS(0)/2, 1), password.Usual(), o.Rand),
	}
	r.minters = minting.New(store, mintingRegistry{r}, schemes, minting.Options{
		Now: o.Now, Log: o.Log, Rand: o.Rand, Wait: o.Wait, Ahead: o.Ahead,
		Shared: o.Shared, QueueSize: o.QueueSize, BlockSize: o.BlockSize,
	})
	return r
}

// now returns the time as it is kept: in UTC, and without Go's monotonic clock.
func (r *Registrar) now() time.Time { return r.o.Now().UTC().Round(0) }

// commit commits, with entries for the audit trail. If it may have succeeded, all parts that
// keep copies are told before the caller is. Its error may name records that are hidden; see
// apply.
func (r *Registrar) commit(ctx context.Context, op string, c *stele.Commit) (err error) {
	ctx, span := trace.Start(ctx, "registrar "+op)
	defer func() { span.End(err) }()
	if err := r.hideSecrets(ctx, op, c); err != nil {
		return err
	}
	touched := c.Touch != nil
	if err := r.touch(ctx, op, c); err != nil {
		return tell(op, err)
	}
	entries, err := r.entries(ctx, op, c)
	if err != nil {
		return err
	}
	c.Audit = entries
	err = r.keep(ctx, c)
	for attempt := 1; !touched && len(c.Namespaces) == 0 && r.fenced(ctx, err) && attempt < maxAttempts; attempt++ {
		c.Touch = nil
		if err = r.touch(ctx, op, c); err == nil {
			err = r.keep(ctx, c)
		}
	}
	if err == nil || unsure(err) {
		if len(c.Records) > 0 {
			r.o.OnCommit(c.Records...)
		}
		if len(c.Namespaces) > 0 {
			r.o.OnNamespaces()
		}
		if changesAccess(c) {
			r.o.OnAccess()
		}
	}
	if err != nil && unsure(err) {
		r.o.Log.WarnContext(ctx, "a commit failed", "op", op, "err", err)
	}
	return tell(op, err)
}

// keep hands a commit to the store.
func (r *Registrar) keep(ctx context.Context, c *stele.Commit) error {
	ctx, span := trace.Start(ctx, "store commit")
	span.Number("stele.records", int64(len(c.Records)))
	err := r.store.Apply(ctx, c)
	span.End(err)
	return err
}

// unsure reports whether a commit that failed with this error may have been made all
// the same: only for the kinds below the store knows that it was not.
func unsure(err error) bool {
	switch stele.KindOf(err) {
	case stele.Conflict, stele.Exhausted, stele.Invalid:
		return false
	}
	return true
}

// tell is [stele.AsError].
func tell(op string, err error) error { return stele.AsError(op, err) }

// refuse is [stele.Errorf].
func refuse(op string, id stele.ID, kind stele.Kind, code, text string, args ...any) error {
	return stele.Errorf(op, id, kind, code, text, args...)
}

// authorise makes sure that the caller may write records in a namespace, which is given
// with its ancestors.
func authorise(ctx context.Context, op string, id stele.ID, ancestors []*stele.Namespace) error {
	who := auth.From(ctx)
	if auth.MayChange(who, id, ancestors...) {
		return nil
	}
	return forbidWriting(op, id, who, ancestors)
}

// forbidWriting refuses what needs the right to write records.
func forbidWriting(op string, id stele.ID, who auth.Principal, ancestors []*stele.Namespace) error {
	if auth.MayPropose(who, ancestors...) {
		return refuse(op, id, stele.Forbidden, "user.may-only-propose", `"{user}" is an editor of the namespace {namespace}, where an owner approves changes; propose this one at the desk`, who.Name, ancestors[0].Key())
	}
	return forbid(op, id, who, ancestors[0])
}

// administrate makes sure that the caller is an administrator.
func administrate(ctx context.Context, op string, id stele.ID) error {
	return administrateBy(ctx, op, id, auth.ScopeAdmin)
}

// administrateBy makes sure that the caller is an administrator whose token has a
// scope.
func administrateBy(ctx context.Context, op string, id stele.ID, scope auth.Scope) error {
	who := auth.From(ctx)
	switch {
	case !who.IsKnown():
		return refuse(op, id, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	case !who.Administers(scope) && who.IsLimited():
		return refuse(op, id, stele.Forbidden, "token.not-of-administrator", "this needs an administrator's token with the scope {scope}, not limited to namespaces; use another token", scope)
	case !who.Administers(scope):
		return refuse(op, id, stele.Forbidden, "user.not-administrator", `"{user}" is not an administrator; ask one`, who.Name)
	}
	return nil
}

func forbid(op string, id stele.ID, who auth.Principal, ns *stele.Namespace) error {
	switch {
	case !who.IsKnown():
		return refuse(op, id, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	case ns.Prefix == "":
		return refuse(op, id, stele.Forbidden,
			"user.may-not-write-outside-namespaces", `"{user}" may not write here: no namespace has this name, so only an administrator can; ask for a namespace`, who.Name)
	case who.IsLimited():
		return refuse(op, id, stele.Forbidden, "token.may-not-write-in-namespace", `"{user}" may not write in the namespace {namespace} by this token, which is limited; use another one, or ask the namespace's owner or an administrator`, who.Name, ns.Key())
	}
	return refuse(op, id, stele.Forbidden, "user.may-not-write-in-namespace", `"{user}" may not write in the namespace {namespace}; ask its owner or an administrator`, who.Name, ns.Key())
}

// forbidSettings refuses what needs the role owner.
func forbidSettings(op string, who auth.Principal, ns *stele.Namespace) error {
	if !who.IsKnown() || ns.Prefix == "" {
		return forbid(op, stele.ID{}, who, ns)
	}
	return refuse(op, stele.ID{}, stele.Forbidden,
		"user.may-not-change-namespace", `"{user}" may not change settings of the namespace {namespace}, or make one below it; its owners and administrators can`, who.Name, ns.Key())
}
