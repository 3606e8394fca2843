// Package minting makes new names and never issues one twice, whatever crashes and however
// many processes share a store. It has the queue of each namespace, the reservations of
// dates and counters, the templates, the idempotency keys of requests that may be repeated,
// and what keeps minters safe after a restore.
//
// Package registrar imports minting, and minting does not import registrar. Minting knows
// neither rights nor the rules for records; it reads the store ([Reader], which has no
// method that writes) and hands every commit to the registrar ([Registry]). So the registrar
// stays the only writer. The other direction would need more: the registrar asks minting
// about settings, claims, states and check characters in a dozen places, whereas minting
// needs the few methods of Registry.
//
// What makes sure that no name is issued twice:
//
//   - A reservation of dates or numbers is committed before the first of them is used; a
//     crash skips the rest.
//   - It is committed only if the state of the minter is what this process has seen. So
//     reserved dates and numbers belong to one process, and the others skip what it leaves
//     unused.
//   - It is committed only if no namespace has changed either (View.Unchanged): another
//     template of the prefix, or a namespace below it, may make the same names.
//
// What was reserved before a namespace changed may be issued after that, by a process that
// does not know of the change yet. It is in the minter's state, which the minters of other
// templates read when they begin: they leave those names out.
package minting

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
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

// Reader is the part of a [stele.Store] that minting reads.
type Reader interface {
	MinterState(ctx context.Context, name string) ([]byte, error)
	Cell(ctx context.Context, name string) ([]byte, error)
	Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error]
	Position(ctx context.Context) (stele.Position, error)
	Generations(ctx context.Context) (stele.Generations, error)
}

// Registry is what minting needs of the registrar. Several goroutines use it at the same
// time.
type Registry interface {
	// View returns the namespaces as this process knows them.
	View(ctx context.Context) (View, error)

	// Reload makes the next View read the namespaces from the store.
	Reload(ctx context.Context) error

	// Refresh is Reload if another process has changed a namespace.
	Refresh(ctx context.Context) error

	// Apply commits. The error does not tell the caller of records that it may not read.
	Apply(ctx context.Context, op string, c *stele.Commit) error

	// Retry reports whether a commit that failed with err is worth another attempt: it
	// conflicted with another commit, and not too often. It pauses before it returns true.
	Retry(ctx context.Context, err error, attempt int) bool

	// LookUp returns the record that has a name. NotFound if there is none, Unavailable if
	// that is not known because a standby that may be outdated was read.
	LookUp(ctx context.Context, op string, name stele.ID) (*stele.Record, error)

	// AreFree reports whether no record has one of the names. All are looked up in one call,
	// which a store answers several times as fast as one call for each. Unavailable as for
	// LookUp.
	AreFree(ctx context.Context, op string, names iter.Seq[stele.ID]) (bool, error)
}

// View is all namespaces at one time.
type View struct {
	*namespaces.Tree

	// Unchanged is the condition of a commit that no namespace has changed since.
	Unchanged stele.CellChange

	// Replaced is closed when another View takes the place of this one.
	Replaced <-chan struct{}
}

// Options are settings of all minters. All must be set.
type Options struct {
	Now       func() time.Time
	Log       *slog.Logger
	Rand      io.Reader     // random bits of UUIDs, for several goroutines at the same time
	Wait      time.Duration // how long a caller waits for a clock that is earlier than the last date issued
	Ahead     time.Duration // how far into the future dates are reserved in one commit
	Shared    bool          // other processes write to the store, and it may be unavailable
	QueueSize int           // how many callers may wait for names of one namespace
	BlockSize int           // how many names of a template are reserved in one commit
}

// Minters makes names in the namespaces of a registry. Many goroutines use it at the same
// time.
type Minters struct {
	store    Reader
	registry Registry
	schemes  *stele.Schemes
	o        Options

	mu    sync.Mutex
	byKey map[stele.NamespaceKey]*minter
	pools sync.Mutex // held while a caller with a pool chooses a minter

	requests requests // with idempotency keys
}

// New returns minters for a registry.
func New(store Reader, registry Registry, schemes *stele.Schemes, o Options) *Minters {
	return &Minters{store: store, registry: registry, schemes: schemes, o: o, byKey: make(map[stele.NamespaceKey]*minter)}
}

// minter returns the minter of a namespace.
func (ms *Minters) minter(key stele.NamespaceKey) *minter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.byKey[key]
	if m == nil {
		m = &minter{Minters: ms, key: key, queue: queue{size: ms.o.QueueSize}}
		ms.byKey[key] = m
	}
	return m
}

// Mint makes n new names, each in the namespace of the pool that is free first: the spatial
// distributor of the IBI report. So ten servers with one date a second make ten names a
// second. Callers are served in order of arrival. Mint issues neither a name that was issued
// before nor one that is registered (or, if the store is unavailable, was registered when it
// was reserved; see [Options].Shared). If an error ends it early, Mint returns the names made
// so far with the error; they are issued, whether the caller uses them or not.
//
// Exhausted if too many callers wait or the names are used up, Unavailable if the
// clock is earlier than the last date issued, or if the context ends.
func (ms *Minters) Mint(ctx context.Context, pool []stele.NamespaceKey, n int) ([]Label, error) {
	labels := make([]Label, 0, min(max(n, 0), 10_000))
	draws := make([]draw, 0, min(max(n, 0), 1000))
	arrived, turns := ms.o.Now(), 0
	for len(labels) < n {
		m, made, err := ms.draw(ctx, pool, arrived, turns > 0, n-len(labels), &draws)
		if len(draws) > 0 {
			var kerr error
			if labels, kerr = m.keepAll(ctx, made, draws, labels); kerr != nil {
				return labels, kerr
			}
		}
		if turns++; err != nil && !another(ctx, pool, err, turns) {
			return labels, err
		}
	}
	return labels, nil
}

// another reports whether another namespace of the pool may have a name where one
// has none now.
func another(ctx context.Context, pool []stele.NamespaceKey, err error, turns int) bool {
	return turns < len(pool) && stele.KindOf(err) == stele.Unavailable && ctx.Err() == nil
}

// enter joins the queue of the minter that is free first. If that queue is full, it joins
// another one.
func (ms *Minters) enter(pool []stele.NamespaceKey, back bool) (*minter, place, error) {
	if len(pool) == 1 {
		m := ms.minter(pool[0])
		p, err := m.queue.join(back)
		return m, p, err
	}
	// One pool at a time, or two callers would choose the same minter.
	ms.pools.Lock()
	defer ms.pools.Unlock()
	type choice struct {
		*minter
		free time.Time
	}
	now := ms.o.Now()
	choices := make([]choice, len(pool))
	for i, key := range pool {
		m := ms.minter(key)
		choices[i] = choice{m, now}
		step := time.Duration(0)
		if w := m.work.Load(); w != nil {
			step = w.source.step()
			if free := w.source.free(); free.After(now) {
				choices[i].free = free
			}
		}
		// Callers that wait there count from now on, however long the minter was idle; and
		// also where names do not wait for a time.
		choices[i].free = choices[i].free.Add(max(step, 1) * time.Duration(m.queue.length()))
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return a.free.Compare(b.free) })
	var full error
	for _, c := range choices {
		p, err := c.queue.join(back)
		if err == nil {
			return c.minter, p, nil
		}
		full = err
	}
	return nil, place{}, full
}

// draw takes some names, n at most, into draws, in one turn at one minter. What is
// in draws may be used, even if there is an error.
func (ms *Minters) draw(ctx context.Context, pool []stele.NamespaceKey, arrived time.Time, back bool, n int, draws *[]draw) (*minter, maker, error) {
	*draws = (*draws)[:0]
	m, p, err := ms.enter(pool, back)
	if err != nil {
		return nil, nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, nil, err
	}
	defer m.queue.leave()
	var made maker
	conflicts := 0
	for len(*draws) < n {
		// A caller that has names makes something of them before it waits for more.
		src, x, reserve, err := m.take(ctx, arrived, len(*draws) == 0)
		if err == errEarly {
			return m, made, nil
		}
		if err != nil {
			return m, made, err
		}
		if made != nil && made != src.maker() {
			// The settings changed: what was taken before is made by the old ones.
			src.skip(x)
			return m, made, nil
		}
		if reserve != nil {
			err := ms.registry.Apply(ctx, "mint", reserve)
			if err != nil {
				src.forget()
				// Another process took names here, or changed a namespace.
				if conflicts++; !ms.registry.Retry(ctx, err, conflicts) {
					return m, made, err
				}
				if err := ms.registry.Refresh(ctx); err != nil {
					return m, made, err
				}
				continue
			}
			m.settle(ctx, src)
		}
		made = src.maker()
		*draws = append(*draws, x)
		if len(*draws) >= src.burst() || len(pool) > 1 {
			return m, made, nil
		}
	}
	return m, made, nil
}
