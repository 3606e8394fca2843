// Package registrar is the write path, and the only writer: whoever changes the
// registry does it here. It asks who acts and whether they may, judges what they
// want to write, and commits it with its history in one transaction. It makes new
// names, and none is ever given twice, whatever crashes.
//
// It never answers the public (that is package resolver), knows neither a concrete
// store nor a concrete scheme, deletes nothing and takes no name away from the
// record that has it. Who acts is told by the context; see package auth.
package registrar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/secret"
)

// Options are what a Registrar needs to know of the place where it works. All but
// the clock have defaults.
type Options struct {
	// Now is the clock. It must be set.
	Now func() time.Time

	// Log is told what somebody should look into. Nothing is logged if it is nil.
	Log *slog.Logger

	// OnCommit is called with the records that a commit wrote, or may have
	// written, before the write is acknowledged: the resolver's Invalidate. It must
	// not change them.
	OnCommit func(records ...*stele.Record)

	// OnNamespaces is called in the same way after a commit of a namespace: the
	// resolver's InvalidateNamespaces.
	OnNamespaces func()

	// OnAccess is called in the same way after a commit of a user or a token: the
	// Forget of an [auth.Directory].
	OnAccess func()

	// Wait is how long a caller waits for a clock that is behind the last date
	// that was issued; 5 s if 0. The wait for one's turn is no part of it.
	Wait time.Duration

	// Ahead is how far into the future dates are reserved in one commit, where the
	// granularity is less than a second; 50 ms if 0. A crash skips so much at most, and
	// of several processes that take dates of one prefix each waits so long for the
	// others.
	Ahead time.Duration

	// Shared says that other processes write to the store, and that it may be away while
	// this one goes on. Names of templates are looked up when they are reserved then, so
	// that those which are can be given out without the store.
	Shared bool

	// Lagging says that what is read from the store at present may be older than what was
	// read before, and since when, or when that was so last. Nobody is told then that
	// something is not there. It may be nil.
	Lagging func() (since time.Time, yes bool)

	// Secrets are the keys that encrypt secrets, such as the private keys of zones. Without
	// them nothing is written that is secret.
	Secrets *secret.Ring

	// Notify and Transfer say which addresses the secondaries of zones may have; nil if
	// it is not decided here. Administrators are bound by them too.
	Notify, Transfer *outbound.Rule

	// RoomSize is how many callers may wait for names of one namespace; 10,000 if
	// 0.
	RoomSize int

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
	spaces  atomic.Pointer[spaces] // nil: to be read
	changes chan struct{}          // holds one value while somebody changes spaces

	mu    sync.Mutex
	desks map[stele.NamespaceKey]*desk
	pools sync.Mutex // held while a pool chooses a desk

	requests requests // that may come again
	tally    tally    // of what has no audit entry each
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
	if o.OnAccess == nil {
		o.OnAccess = func() {}
	}
	if o.Wait <= 0 {
		o.Wait = 5 * time.Second
	}
	if o.Ahead <= 0 {
		o.Ahead = ahead
	}
	if o.RoomSize <= 0 {
		o.RoomSize = 10_000
	}
	if o.BlockSize <= 0 {
		o.BlockSize = 1000
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &Registrar{
		store:   store,
		schemes: schemes,
		o:       o,
		changes: make(chan struct{}, 1),
		desks:   make(map[stele.NamespaceKey]*desk),
	}
}

// now returns the time as it is kept: in UTC, and without Go's monotonic clock.
func (r *Registrar) now() time.Time { return r.o.Now().UTC().Round(0) }

// commit commits, with entries for the audit trail. If there is a chance that it did, everybody who keeps copies is
// told before the caller is. Its error may name records that are hidden; see apply.
func (r *Registrar) commit(ctx context.Context, op string, c *stele.Commit) error {
	if err := r.touch(ctx, c); err != nil {
		return tell(op, err)
	}
	entries, err := r.entries(ctx, op, c)
	if err != nil {
		return err
	}
	c.Audit = entries
	err = r.store.Apply(ctx, c)
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
		r.o.Log.Warn("a commit failed", "op", op, "err", err)
	}
	return tell(op, err)
}

// unsure reports whether a commit that failed so may have been made all the same:
// the store knows only of these that it was not.
func unsure(err error) bool {
	switch stele.KindOf(err) {
	case stele.Conflict, stele.Exhausted, stele.Invalid:
		return false
	}
	return true
}

// tell makes sure that an error of the store is one of ours. That the context
// ended is no fault of anybody: the caller may try again.
func tell(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	kind := stele.Internal
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = stele.Unavailable
	}
	return &stele.Error{Op: op, Kind: kind, Err: err}
}

// refuse makes an error.
func refuse(op string, id stele.ID, kind stele.Kind, format string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// sayWho is what the public is told where it may not go.
const sayWho = "say who you are; send a token"

// authorise makes sure that whoever acts may write records in a namespace, which is
// given with its ancestors.
func authorise(ctx context.Context, op string, id stele.ID, chain []*stele.Namespace) error {
	who := auth.From(ctx)
	if auth.MayWrite(who, chain...) {
		return nil
	}
	return forbid(op, id, who, chain[0])
}

// administrate makes sure that an administrator acts.
func administrate(ctx context.Context, op string, id stele.ID) error {
	return administrateBy(ctx, op, id, auth.ScopeAdmin)
}

// administrateBy makes sure that an administrator acts whose token has a scope.
func administrateBy(ctx context.Context, op string, id stele.ID, scope auth.Scope) error {
	who := auth.From(ctx)
	switch {
	case !who.IsKnown():
		return refuse(op, id, stele.Unauthenticated, sayWho)
	case !who.Administers(scope) && who.IsLimited():
		return refuse(op, id, stele.Forbidden, "this needs an administrator's token with the scope %s, not limited to namespaces; use another token", scope)
	case !who.Administers(scope):
		return refuse(op, id, stele.Forbidden, "%q is no administrator; ask one", who.Name)
	}
	return nil
}

func forbid(op string, id stele.ID, who auth.Principal, ns *stele.Namespace) error {
	switch {
	case !who.IsKnown():
		return refuse(op, id, stele.Unauthenticated, sayWho)
	case ns.Prefix == "":
		return refuse(op, id, stele.Forbidden,
			"%q may not write here: no namespace has this name, so only an administrator can; ask for a namespace", who.Name)
	case who.IsLimited():
		return refuse(op, id, stele.Forbidden, "%q may not write in the namespace %s by this token, which is limited; use another one, or ask the namespace's owner or an administrator", who.Name, ns.Key())
	}
	return refuse(op, id, stele.Forbidden, "%q may not write in the namespace %s; ask its owner or an administrator", who.Name, ns.Key())
}

// forbidSettings refuses what takes the role owner.
func forbidSettings(op string, who auth.Principal, ns *stele.Namespace) error {
	if !who.IsKnown() || ns.Prefix == "" {
		return forbid(op, stele.ID{}, who, ns)
	}
	return refuse(op, stele.ID{}, stele.Forbidden,
		"%q may not change settings of the namespace %s, or make one below it; its owners and administrators can", who.Name, ns.Key())
}
