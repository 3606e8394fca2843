package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

// pair is two stores over one database, as two servers have them: each call is answered by
// one or the other.
type pair struct {
	stores [2]*Store
	turn   atomic.Uint32
}

var _ stele.Store = (*pair)(nil)

func (p *pair) any() *Store { return p.stores[p.turn.Add(1)%2] }

func (p *pair) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	return p.any().Record(ctx, name)
}

func (p *pair) Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (*stele.Record, stele.Prefix, error) {
	return p.any().Longest(ctx, name, cuts)
}

func (p *pair) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (*stele.Record, stele.Prefix, error) {
	return p.any().First(ctx, candidates)
}

func (p *pair) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return p.any().History(ctx, id)
}

func (p *pair) HistoryBefore(ctx context.Context, id stele.ID, version uint64) iter.Seq2[*stele.Record, error] {
	return p.any().HistoryBefore(ctx, id, version)
}

func (p *pair) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	return p.any().Version(ctx, id, version)
}

func (p *pair) VersionAt(ctx context.Context, id stele.ID, at time.Time) (*stele.Record, error) {
	return p.any().VersionAt(ctx, id, at)
}

func (p *pair) Withholding(ctx context.Context) iter.Seq2[stele.ID, error] {
	return p.any().Withholding(ctx)
}

func (p *pair) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return p.any().NamespaceHistory(ctx, key)
}

func (p *pair) Purge(ctx context.Context) error { return p.any().Purge(ctx) }

func (p *pair) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return p.any().Scan(ctx, scheme, prefix, after)
}

func (p *pair) Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
	return p.any().Pointing(ctx, at, after)
}

func (p *pair) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return p.any().Changes(ctx, after)
}
func (p *pair) LastChange(ctx context.Context) (uint64, error)       { return p.any().LastChange(ctx) }
func (p *pair) Position(ctx context.Context) (stele.Position, error) { return p.any().Position(ctx) }
func (p *pair) Generations(ctx context.Context) (stele.Generations, error) {
	return p.any().Generations(ctx)
}

func (p *pair) SetGenerations(ctx context.Context, present stele.GenerationID, list stele.Generations) error {
	return p.any().SetGenerations(ctx, present, list)
}

func (p *pair) Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	return p.any().Namespace(ctx, key)
}

func (p *pair) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return p.any().Namespaces(ctx)
}

func (p *pair) MinterState(ctx context.Context, name string) ([]byte, error) {
	return p.any().MinterState(ctx, name)
}

func (p *pair) MinterStates(ctx context.Context) iter.Seq2[stele.MinterState, error] {
	return p.any().MinterStates(ctx)
}
func (p *pair) Cell(ctx context.Context, name string) ([]byte, error) { return p.any().Cell(ctx, name) }
func (p *pair) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return p.any().Cells(ctx, prefix, after)
}

func (p *pair) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	return p.any().Count(ctx, key)
}
func (p *pair) Apply(ctx context.Context, c *stele.Commit) error { return p.any().Apply(ctx, c) }
func (p *pair) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	return p.any().Ingest(ctx, records, count, touch, state, models...)
}
func (p *pair) ZoneState(ctx context.Context, zone string) (stele.ZoneState, error) {
	return p.any().ZoneState(ctx, zone)
}

func (p *pair) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return p.any().ZoneStates(ctx)
}

func (p *pair) ZoneChanges(ctx context.Context, zone string, after uint64) iter.Seq2[stele.Change, error] {
	return p.any().ZoneChanges(ctx, zone, after)
}
func (p *pair) Seal(ctx context.Context, reason string) error   { return p.any().Seal(ctx, reason) }
func (p *pair) Sealed(ctx context.Context) (string, error)      { return p.any().Sealed(ctx) }
func (p *pair) Ready(ctx context.Context) error                 { return p.any().Ready(ctx) }
func (p *pair) Backup(ctx context.Context, folder string) error { return p.any().Backup(ctx, folder) }
func (p *pair) Verify(ctx context.Context, report func(*stele.Message)) error {
	return p.any().Verify(ctx, report)
}
func (p *pair) Close() error { return errors.Join(p.stores[0].Close(), p.stores[1].Close()) }

// TestTwo: two stores over one database are one store to their callers.
func TestTwo(t *testing.T) {
	f := folders{database: server.Database(t)}
	h := storetest.Harness{Durable: true, Open: func(t testing.TB, folder string) stele.Store {
		url := f.url(t, folder)
		return &pair{stores: [2]*Store{open(t, url, Options{}), open(t, url, Options{})}}
	}}
	want := []string{
		"snapshots", "all or nothing", "changes", "quota", "ingest",
		"one writer wins", "one writer of a cell wins", "quota under load", "changes under load",
		"reads see what is acknowledged", "linearizable", "seal under load", "order of changes", "zones", "zones and namespaces", "zones under load", "audit under load", "audit trimmed", "erased versions", "generations",
	}
	found := 0
	for _, c := range storetest.Checks(h) {
		if slices.Contains(want, c.Name) {
			found++
			t.Run(c.Name, func(t *testing.T) { c.Run(t, h) })
		}
	}
	if found != len(want) {
		t.Errorf("the suite has %d of the %d checks %q", found, len(want), want)
	}
}

// TestMinters: servers that count up one minter's state, and try again when they lose,
// issue no number twice and lose none.
func TestMinters(t *testing.T) {
	url := migrated(t, server)
	const servers, each = 3, 20
	var issued sync.Map
	var all sync.WaitGroup
	for range servers {
		s := opened(t, url, Options{})
		for range 2 {
			all.Go(func() {
				for done := 0; done < each; {
					before, err := s.MinterState(t.Context(), "m")
					if err != nil {
						t.Error(err)
						return
					}
					after := fmt.Appendf(nil, "%s.", before)
					r := record1(t, fmt.Sprint("minted", len(after)))
					err = s.Apply(t.Context(), &stele.Commit{
						Records: []*stele.Record{r},
						Minters: []stele.MinterState{{Name: "m", Before: before, After: after}},
					})
					switch {
					case errors.Is(err, stele.Conflict):
						continue
					case err != nil:
						t.Error(err)
						return
					}
					if _, twice := issued.LoadOrStore(len(after), true); twice {
						t.Errorf("number %d was issued twice", len(after))
					}
					applied := s.Applied() // first: others of this process commit in between
					last, err := s.LastChange(t.Context())
					if err != nil || applied == 0 || applied > last {
						t.Errorf("this process applied up to %d, and the last change is %d, %v", applied, last, err)
					}
					done++
				}
			})
		}
	}
	all.Wait()
	for n := 1; n <= servers*2*each; n++ {
		if _, ok := issued.Load(n); !ok {
			t.Errorf("number %d was not issued", n)
		}
	}
	wantSound(t, opened(t, url, Options{}))
}

// record1 makes a first version of a record with a target.
func record1(t testing.TB, text string, aliases ...stele.ID) *stele.Record {
	t.Helper()
	return &stele.Record{
		ID: newID(t, "ark", "ark:12345/"+text), Aliases: aliases, State: stele.Active, Version: 1,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + text}},
	}
}

func newID(t testing.TB, scheme, text string) stele.ID {
	t.Helper()
	id, err := stele.NewID(scheme, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func commitOf(list ...*stele.Record) *stele.Commit { return &stele.Commit{Records: list} }

// wantSound verifies a store.
func wantSound(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Verify(context.Background(), func(problem *stele.Message) { t.Errorf("Verify: %s", problem) }); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func (p *pair) Audit(ctx context.Context, after uint64) iter.Seq2[*stele.AuditEntry, error] {
	return p.any().Audit(ctx, after)
}

func (p *pair) AuditRange(ctx context.Context) (first, last uint64, err error) {
	return p.any().AuditRange(ctx)
}
