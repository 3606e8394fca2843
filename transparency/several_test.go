package transparency

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/pebble"
)

// ingest registers many names at once.
func (h *house) ingest(prefix string, count int) {
	h.Helper()
	for n := 0; n < count; n += 4000 {
		var list []*stele.Record
		for i := range min(4000, count-n) {
			at := h.clock()
			list = append(list, &stele.Record{
				ID: h.id(fmt.Sprintf("%s%d", prefix, n+i)), State: stele.Active, Version: 1, Created: at, Modified: at,
				Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + strconv.Itoa(i), Order: 100, Preference: 10}},
			})
		}
		errs, err := h.store.Ingest(h.ctx, list, func(stele.ID) (k stele.NamespaceKey, quota uint64) { return k, 0 }, nil, nil)
		h.must(err)
		for _, err := range errs {
			h.must(err)
		}
	}
}

// live makes one change of a random kind. Changes that the registry refuses are part of a life, too.
func (h *house) live(rnd *rand.Rand, r *registrar.Registrar) {
	space := []string{"ark:12345", "ark:99999"}[rnd.IntN(2)]
	id := h.id(fmt.Sprintf("%s/n%d", space, rnd.IntN(40)))
	var err error
	switch rnd.IntN(12) {
	case 0:
		_, err = r.Withdraw(h.ctx, id, 0, "it is over", stele.ID{})
	case 1:
		_, err = r.Reinstate(h.ctx, id, 0)
	case 2:
		if rnd.IntN(4) == 0 {
			_, err = r.Redact(h.ctx, id, 0, "a court order")
		}
	case 3:
		_, err = r.Disavow(h.ctx, id, 0, 1, 1, "it was wrong")
	case 4:
		_, err = r.SetNamespace(h.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: space}, 0, func(n *stele.Namespace) error {
			n.Title, n.Listed = fmt.Sprint("Namen ", rnd.Uint32()), rnd.IntN(2) == 0
			return nil
		})
	case 5, 6, 7:
		_, err = r.Update(h.ctx, id, 0, func(rec *stele.Record) error {
			rec.Metadata = stele.Metadata{"what": fmt.Sprint(rnd.Uint32())}
			rec.Readers = nil
			if rnd.IntN(4) == 0 {
				rec.Readers = []string{"anna"}
			}
			return nil
		})
	default:
		_, err = r.Register(h.ctx, &stele.Record{ID: id, State: []stele.State{stele.Active, stele.Reserved}[rnd.IntN(2)], Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10}}})
	}
	if kind := stele.KindOf(err); err != nil && (kind == stele.Internal || kind == stele.Unavailable) {
		h.Error(err)
	}
}

// Several servers over one store write one log, which is sound, and whose checkpoints are beginnings of it.
func TestSeveralServersWriteOneLog(t *testing.T) {
	for name, open := range map[string]func(now func() time.Time) stele.Store{
		"mem": func(now func() time.Time) stele.Store { return mem.New(now) },
		"pebble": func(now func() time.Time) stele.Store {
			s, err := pebble.Open(t.Context(), t.TempDir(), pebble.Options{Now: now, Reserve: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, open)
			names := blockLeaves
			if name == "pebble" {
				names *= 9 // so that runs of the index are merged and removed under way
			}
			h.ingest("ark:12345/i", names)
			const servers = 4
			var work sync.WaitGroup
			signed := make([][]string, servers)
			for i := range servers {
				r, log := h.server(nil)
				work.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(i), 1))
					for range 12 {
						h.live(rnd, r)
						if err := log.CatchUp(h.ctx, nil); err != nil {
							t.Error(err)
						}
						p, err := log.Sign(h.ctx, h.keys)
						if err != nil {
							t.Error(err)
						}
						signed[i] = append(signed[i], p.Note)
						if _, err := log.Prove(h.ctx, Wanted{ID: h.id(fmt.Sprintf("ark:12345/i%d", rnd.IntN(names))), Version: 1}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			work.Wait()
			h.catchUp()
			h.wantSound()
			h.wantBeginnings(signed)
		})
	}
}

// A server that read the state of the log before another one added leaves reads tiles with more leaves. It goes on from the new state.
func TestOvertakenBetweenStateAndTile(t *testing.T) {
	h := newHouse(t, nil)
	h.put("ark:12345/a", "https://example.org/1")
	h.catchUp()
	r, _ := h.server(nil)
	late := &interrupted{Keeper: r, at: "log tile 0", then: h.catchUp}
	log := New(Options{
		Source: h.store, Cells: late, Random: crand.Reader, Now: h.clock, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (Listed, error) { return r.Public(ctx) },
	})
	h.put("ark:12345/a", "https://example.org/2")
	h.must(log.CatchUp(h.ctx, nil))
	if late.then != nil {
		t.Fatal("no tile was read")
	}
	h.wantSound()
}

// interrupted does something before it reads the first cell whose name begins so.
type interrupted struct {
	Keeper
	at   string
	then func()
}

func (k *interrupted) LogCell(ctx context.Context, name string) ([]byte, error) {
	if then := k.then; then != nil && strings.HasPrefix(name, k.at) {
		k.then = nil
		then()
	}
	return k.Keeper.LogCell(ctx, name)
}

// wantBeginnings makes sure that each checkpoint is one of the log.
func (h *house) wantBeginnings(signed [][]string) {
	h.Helper()
	status, err := h.log.Status(h.ctx)
	h.must(err)
	root, err := tlog.TreeHash(int64(status.Size), newHashReader(h.ctx, h.r))
	h.must(err)
	sizes := map[uint64]bool{}
	for _, list := range signed {
		for _, note := range list {
			c, _, err := OpenCheckpoint([]byte(note), h.keys.Public())
			h.must(err)
			if sizes[c.Size] = true; c.Size == status.Size {
				continue
			}
			proof, err := h.log.ProveGrowth(h.ctx, c.Size, status.Size)
			h.must(err)
			if err := tlog.CheckTree(proof, int64(status.Size), root, int64(c.Size), c.Root); err != nil {
				h.Errorf("the checkpoint of size %d is not one of the log of size %d: %v", c.Size, status.Size, err)
			}
		}
	}
	if len(sizes) < 8 {
		h.Errorf("checkpoints of only %d sizes", len(sizes))
	}
}

// Commits of the log that fail, before or after they are made, leave a log that goes on.
func TestLogAfterFailures(t *testing.T) {
	h := newHouse(t, nil)
	rnd := rand.New(rand.NewPCG(9, 9))
	rate := 0
	r, log := h.server(func() (before, after bool) {
		hit := rate > 0 && rnd.IntN(rate) == 0
		return hit && rnd.IntN(2) == 0, hit
	})
	h.r, h.log = r, log
	failed := 0
	for round := range 30 {
		if round%3 == 2 {
			rate = 0
			h.ingest(fmt.Sprintf("ark:99999/i%dx", round), blockLeaves-100)
		}
		for range 10 {
			h.live(rnd, r)
		}
		rate = 2 + round%3
		for range 3 {
			if err := log.CatchUp(h.ctx, nil); err != nil {
				failed++
			}
			if _, err := log.Sign(h.ctx, h.keys); err != nil {
				failed++
			}
		}
		rate = 0
	}
	if failed < 20 {
		t.Errorf("only %d failures", failed)
	}
	h.catchUp()
	h.wantSound()
	cells := 0
	for c, err := range r.LogList(h.ctx, Cells+"index", "") {
		h.must(err)
		_ = c
		cells++
	}
	p, err := log.load(h.ctx)
	h.must(err)
	want := 0
	for _, one := range runsOf(p.Indexed) {
		want += 1 << parts(one.Level)
	}
	if p.Indexed < runsAbove || cells != want {
		t.Errorf("%d blocks are indexed with %d cells, want %d", p.Indexed, cells, want)
	}
}
