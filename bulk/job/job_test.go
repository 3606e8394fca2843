package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// failing is a store whose process dies, as it were, before or after one of its commits.
type failing struct {
	stele.Store
	unread atomic.Pointer[string] // the name of a cell that can't be read; nil if all can
	left   atomic.Int64           // commits until then
	late   bool                   // it dies after the commit
}

var errDied = errors.New("the power is off")

// dies reports whether the process ends with this commit, and whether it was dead before.
func (f *failing) dies() (now, before bool) {
	if f.left.Load() == never {
		return false, false
	}
	left := f.left.Add(-1)
	return left == -1, left < -1
}

// never is the number of commits of a process that does not die.
const never = 1 << 40

func (f *failing) Cell(ctx context.Context, name string) ([]byte, error) {
	if unread := f.unread.Load(); unread != nil && *unread == name {
		return nil, stele.Errorf("read", stele.ID{}, stele.Unavailable, "x.y", "the disk is slow")
	}
	return f.Store.Cell(ctx, name)
}

func (f *failing) Apply(ctx context.Context, c *stele.Commit) error {
	now, before := f.dies()
	if now && f.late {
		_ = f.Store.Apply(ctx, c) // the caller never knows
	}
	if now || before {
		return errDied
	}
	return f.Store.Apply(ctx, c)
}

func (f *failing) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, entries ...*stele.AuditEntry) ([]error, error) {
	now, before := f.dies()
	if now && f.late {
		_, _ = f.Store.Ingest(ctx, records, count, touch, state, entries...)
	}
	if now || before {
		return nil, errDied
	}
	return f.Store.Ingest(ctx, records, count, touch, state, entries...)
}

type place struct {
	board     *Board
	runner    *Runner
	registrar *registrar.Registrar
	store     *failing
	user      context.Context
	now       *atomic.Int64
}

// server starts a server on a store.
func server(t *testing.T, store stele.Store, now *atomic.Int64) *place {
	t.Helper()
	clock := func() time.Time { return time.Unix(now.Load(), 0) }
	schemes, err := all.New(all.Config{Now: clock, PURLHosts: []string{"w3id.org"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{store: &failing{Store: store}, now: now}
	p.store.left.Store(never)
	directory := auth.NewDirectory(p.store, clock)
	p.registrar = registrar.New(p.store, schemes, registrar.Options{Now: clock, OnAccess: directory.Forget})
	p.board = NewBoard(Options{Registrar: p.registrar, Schemes: schemes, Now: clock})
	p.runner = &Runner{Board: p.board, Directory: directory, Log: slog.New(slog.DiscardHandler)}
	p.user = auth.With(t.Context(), auth.Principal{Name: "ed"})
	return p
}

// TestJobGoesOn ends the process of a job before and after each of its commits, and lets another
// server go on. In the end each row has one name, one version, and is counted once.
func TestJobGoesOn(t *testing.T) {
	const rows = 2*partRows + 10
	for _, late := range []bool{false, true} {
		for step := 0; ; step++ {
			now := new(atomic.Int64)
			now.Store(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC).Unix())
			store := mem.New(func() time.Time { return time.Unix(now.Load(), 0) })
			first := server(t, store, now)
			setUp(t, first)
			job := startSheet(t, first, rows)
			first.store.late = late
			first.store.left.Store(int64(step))
			err := first.runner.work(t.Context(), job.ID)
			ended := err == nil && first.store.left.Load() >= 0

			second := server(t, store, now)
			if err := second.runner.work(t.Context(), job.ID); err != nil {
				t.Fatal(err)
			}
			now.Add(int64(DefaultLease/time.Second) + 1)
			if err := second.runner.work(t.Context(), job.ID); err != nil {
				t.Fatal(err)
			}
			check(t, second, job.ID, rows, fmt.Sprintf("late=%v step=%d", late, step))
			if ended {
				t.Logf("%d commits", step)
				break
			}
			if step > 100 {
				t.Fatal("the job never ends by itself")
			}
		}
	}
}

func setUp(t *testing.T, p *place) {
	t.Helper()
	admin := auth.With(t.Context(), auth.Local())
	if _, err := p.registrar.AddUser(admin, auth.User{Name: "ed"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.registrar.AddNamespace(admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "ed", Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".reeddk"}}); err != nil {
		t.Fatal(err)
	}
}

// startSheet starts a job of rows: of three, one has a name and two get one; every tenth is wrong.
func startSheet(t *testing.T, p *place, rows int) Job {
	t.Helper()
	var text strings.Builder
	text.WriteString("id,url\n")
	for i := range rows {
		switch {
		case i%10 == 7:
			fmt.Fprintf(&text, ",nonsense %d\n", i)
		case i%3 == 0:
			fmt.Fprintf(&text, "ark:12345/x5own%d,https://example.org/%d\n", i, i)
		default:
			fmt.Fprintf(&text, ",https://example.org/%d\n", i)
		}
	}
	u, err := p.board.Upload(p.user, "a.csv", Settings{Encoding: bulk.Auto, Namespace: "ark:12345/x5", Update: true}, strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	job, err := p.board.Start(p.user, &u, rows)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// check makes sure that a job did all it should, once.
func check(t *testing.T, p *place, id string, rows int, when string) {
	t.Helper()
	job, err := p.board.Get(p.user, id)
	if err != nil {
		t.Fatal(err)
	}
	wrong := (rows + 2) / 10
	if want := (Counts{New: rows - wrong, Refused: wrong}); job.State != Done || job.Done != rows || job.Counts != want {
		t.Errorf("%s: the job is %+v, want %+v", when, job, want)
	}
	seen := make(map[string]bool)
	urls := make(map[string]bool)
	n := 0
	if err := p.board.Outcomes(p.user, &job, func(o Outcome) bool {
		if n++; o.Kind == New && (o.ID == "" || seen[o.ID]) || o.Line != n+1 {
			t.Errorf("%s: %+v", when, o)
		}
		seen[o.ID] = true
		return true
	}); err != nil || n != rows {
		t.Errorf("%s: %d outcomes, %v", when, n, err)
	}
	records := 0
	for rec, err := range p.registrar.Scan(p.user, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "") {
		if err != nil {
			t.Fatal(err)
		}
		if records++; rec.Version != 1 || rec.Import != job.Import || !seen[rec.ID.String()] || urls[rec.Targets[0].URL] {
			t.Errorf("%s: %+v", when, rec)
		}
		urls[rec.Targets[0].URL] = true
	}
	if records != rows-wrong {
		t.Errorf("%s: %d records, want %d", when, records, rows-wrong)
	}
	for range p.registrar.WorkList(asServer(p.user), leaseCells, "") {
		t.Errorf("%s: a lease stays", when)
	}
}

// TestOneServerWorks: a job that a server works on is not taken by another until the lease expires.
func TestOneServerWorks(t *testing.T) {
	now := new(atomic.Int64)
	now.Store(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC).Unix())
	store := mem.New(func() time.Time { return time.Unix(now.Load(), 0) })
	a, b := server(t, store, now), server(t, store, now)
	setUp(t, a)
	job := startSheet(t, a, 20)
	held := &working{Runner: a.runner}
	if ok, err := held.claim(t.Context(), job.ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	other := &working{Runner: b.runner}
	if ok, err := other.claim(t.Context(), job.ID); ok || err != nil {
		t.Fatal("two servers work on a job", err)
	}
	changes, err := store.LastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now.Add(int64(DefaultLease / time.Second))
	if ok, err := other.claim(t.Context(), job.ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := held.save(t.Context(), func(j *Job) { j.Done = 1000 }); !errors.Is(err, errLost) {
		t.Errorf("a server without the lease writes progress: %v", err)
	}
	if err := held.run(t.Context()); !errors.Is(err, errLost) { // it was suspended, and goes on
		t.Errorf("a server without the lease works: %v", err)
	}
	if n, err := store.LastChange(t.Context()); err != nil || n != changes {
		t.Errorf("a server without the lease writes %d changes, %v", n-changes, err)
	}
	if err := other.end(t.Context(), other.run(t.Context())); err != nil {
		t.Fatal(err)
	}
	check(t, b, job.ID, 20, "after another server took over")

	// Cancelled before it begins, it does nothing; a disabled user's job fails.
	job = startSheet(t, a, 20)
	if err := b.board.Cancel(b.user, job.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.runner.work(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if j, err := a.board.Get(a.user, job.ID); err != nil || j.State != Cancelled || j.Done != 0 {
		t.Errorf("got %+v, %v", j, err)
	}
	job = startSheet(t, a, 20)
	if _, err := a.registrar.SetUser(auth.With(t.Context(), auth.Local()), "ed", func(u *auth.User) error { u.Disabled = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := a.runner.work(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if j, err := a.board.Get(a.user, job.ID); err != nil || j.State != Failed || j.Done != 0 || j.Problem == nil {
		t.Errorf("got %+v, %v", j, err)
	}
	now.Add(int64((Life + time.Hour) / time.Second))
	for range 2 {
		if err := a.board.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for c := range a.registrar.WorkList(asServer(t.Context()), registrar.WorkCells, "") {
		t.Errorf("the cell %s stays", c.Name)
	}
}
