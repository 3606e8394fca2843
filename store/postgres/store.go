// Package postgres keeps a registry in PostgreSQL, for several servers at once: the store
// for a load that one machine can't serve. It keeps all that [stele.Store] asks for. What
// many processes write is decided by the database's transactions alone: they need not
// know of each other. It never replicates and never fails over by itself: PostgreSQL and
// the software that manages it do.
//
//   - schema.go has all tables and keys that are kept, and the steps that make them;
//     migrate.go takes the steps.
//   - commit.go has the goroutines that write. Each takes what is queued as one group, so
//     that many commits share a transaction; check.go decides which of them hold, load.go
//     and write.go are its statements, and outcome.go finds out what became of a
//     transaction when the connection broke.
//   - ingest.go writes many new records, by COPY.
//   - read.go and list.go read: one statement for what is looked up, one snapshot for what
//     is listed. connect.go and ask.go are about which server is asked, and how long for.
//
// All SQL is of the kind that CockroachDB and YugabyteDB have too, which a test checks;
// neither was run.
//
// # Which server is read
//
// Writes go to the server that takes them, the primary, whichever host of the URL that is.
// Reads go there too and see every write that was acknowledged before. While it is
// unavailable they go to any host of the URL that answers, a standby, until it is back;
// Lagging says so. What a standby has may be older than what was acknowledged, by as much
// as it lags behind (nothing at all with synchronous_commit = remote_apply).
package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// Options say how a store is opened. Only Now must be given.
type Options struct {
	// Now is the clock: the time of entries in the change feed, and since when the
	// primary is unavailable.
	Now func() time.Time

	// Log is told when the primary is lost and found again. Nothing is logged if it is
	// nil.
	Log *slog.Logger

	// Wait is how long a read or write waits for a database that does not answer, or
	// for a free connection, before it is Unavailable; DefaultWait if 0.
	Wait time.Duration

	// Connections is how many connections to the primary there are at most for reading;
	// DefaultConnections if 0. A few more are for writing.
	Connections int

	// Brief says that the store is opened for a moment: it has few connections, and does
	// not wait for a server that is not there when it is opened.
	Brief bool

	schema numbers // of the program; ours if zero
}

// What Options are if they do not say.
const (
	DefaultWait        = 10 * time.Second
	DefaultConnections = 16
	briefConnections   = 4
)

const (
	queueSize  = 1024 // how many commits wait for their turn; more callers wait to get in
	committers = 2    // one gathers and sends while the other waits for the disk
	ingesters  = 1    // ingests that are written at once
)

// Store is a registry in a database. It is made by Open.
type Store struct {
	o      Options
	reads  *pgxpool.Pool // to the primary
	writes *pgxpool.Pool // to the primary
	others *pgxpool.Pool // to any host that answers, while the primary is unavailable

	listing   chan struct{} // holds one value for each iterator
	ingesting chan *writer  // has the free writers for ingests
	writers   []*writer     // of the committers
	queue     chan *request // to the committers
	queueing  sync.RWMutex  // held for reading while a caller puts something there, or ingests

	closing   context.Context
	close     context.CancelFunc
	workers   sync.WaitGroup
	closeOnce sync.Once
	applied   atomic.Uint64
	tally     stele.CommitTally
	lag       lag
}

var (
	_ stele.Store      = (*Store)(nil)
	_ stele.Replicated = (*Store)(nil)
	_ stele.Shared     = (*Store)(nil)
	_ stele.Schematic  = (*Store)(nil)
)

// Open opens the store in the database that a URL names, such as
// postgres://user:password@host1,host2/database. Parameters of the URL are those of
// PostgreSQL's own programs; search_path names the schema of the tables, stele if it is
// missing. NotFound if there is no such database, or no tables in it; Invalid if a later
// program made them, an earlier one did, or the database refuses the user; Unavailable
// if no server answers.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	c, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		o:         o,
		listing:   make(chan struct{}, max(1, o.Connections*3/4)),
		ingesting: make(chan *writer, ingesters),
		queue:     make(chan *request, queueSize),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	if err := s.connect(ctx, c); err != nil {
		s.close()
		return nil, err
	}
	for range ingesters {
		s.ingesting <- newWriter()
	}
	for range committers {
		w := newWriter()
		s.writers = append(s.writers, w)
		s.workers.Go(func() { s.commit(w) })
	}
	return s, nil
}

func (o Options) complete() (Options, error) {
	if o.Now == nil {
		return o, refuse("open", stele.ID{}, stele.Invalid, "store.clock-missing", "a store needs a clock; give one")
	}
	if o.schema == (numbers{}) {
		o.schema = ours
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
		if o.Brief {
			o.Connections = briefConnections
		}
	}
	return o, nil
}

// connect makes the pools and looks at the tables, on the primary or, if it is
// unavailable, on another host.
func (s *Store) connect(ctx context.Context, c *pgxpool.Config) (err error) {
	pools := []func() (*pgxpool.Pool, error){
		func() (*pgxpool.Pool, error) { return primary(ctx, c, s.o.Connections, nil) },
		func() (*pgxpool.Pool, error) { return primary(ctx, c, committers+ingesters+1, s.writing()) },
		func() (*pgxpool.Pool, error) { return anyHost(ctx, c, s.o.Connections) },
	}
	for i, into := range []**pgxpool.Pool{&s.reads, &s.writes, &s.others} {
		if *into, err = pools[i](); err != nil {
			s.disconnect()
			return explain("open", err)
		}
	}
	if err := s.greet(ctx); err != nil {
		s.disconnect()
		s.workers.Wait()
		return err
	}
	return nil
}

// maxIdle is how long the server lets a transaction wait for this process, at least.
const maxIdle = 10 * time.Second

// writing are settings of connections that write. A transaction locks the row that every
// other needs: so it does not wait for ever, and others do not wait for it if this process
// loses its connection. A statement's time is not limited: that would end a commit's wait
// for the synchronous standby.
func (s *Store) writing() map[string]string {
	return map[string]string{
		"lock_timeout":                        milliseconds(s.o.Wait),
		"idle_in_transaction_session_timeout": milliseconds(max(s.o.Wait, maxIdle)),
	}
}

// greet finds a server, and the tables of a registry on it.
func (s *Store) greet(ctx context.Context) error {
	whole, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer cancel()
	for pause := (pause{}); ; {
		first := checkVersion(whole, s.o, s.reads)
		if first == nil || !isAway(first) || codeOf(first) == codeTooMany {
			return greeting(ctx, first)
		}
		if err := checkVersion(whole, s.o, s.others); err == nil {
			s.lose(first)
			return nil
		} else if !isAway(err) {
			return greeting(ctx, err)
		}
		if s.o.Brief || !pause.sleep(whole) {
			return greeting(ctx, first)
		}
	}
}

func greeting(ctx context.Context, err error) error {
	if _, own := asOwn(err); err == nil || own {
		return err
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return explain("open", err)
}

// Applied returns the number of the newest change that this process has committed; 0 if
// there is none. A commit is in it before Apply or Ingest returns.
func (s *Store) Applied() uint64 { return s.applied.Load() }

// Rewind says that another registry, which was restored from a backup, replaced the one
// that this process wrote to: what [Store.Applied] returns is at most its last change.
func (s *Store) Rewind(last uint64) {
	for have := s.applied.Load(); have > last && !s.applied.CompareAndSwap(have, last); have = s.applied.Load() {
	}
}

// apply notes that this process committed up to a change.
func (s *Store) apply(last uint64) {
	for have := s.applied.Load(); have < last && !s.applied.CompareAndSwap(have, last); have = s.applied.Load() {
	}
}

func (s *Store) isClosed() bool { return s.closing.Err() != nil }

// Close implements [stele.Store]. Commits in the queue and ingests under way are finished.
// Reads under way end with an error of kind Unavailable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.lag.mu.Lock() // no goroutine starts to probe the primary from now on
		s.close()
		s.lag.mu.Unlock()
		s.queueing.Lock() // no caller is putting something in the queue any more
		close(s.queue)
		s.queueing.Unlock()
		s.workers.Wait()
		s.leave()
		// An iterator that is under way has a connection until it ends.
		done := make(chan struct{})
		go func() {
			s.disconnect()
			close(done)
		}()
		t := time.NewTimer(s.o.Wait)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		}
	})
	return nil
}

func (s *Store) disconnect() {
	s.close()
	for _, p := range []*pgxpool.Pool{s.reads, s.writes, s.others} {
		if p != nil {
			p.Close()
		}
	}
}
