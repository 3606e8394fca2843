package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	stored "github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/pebble"
)

const (
	callers   = 64
	commitFor = 2 * time.Second // a round of commits
	mintFor   = time.Second     // a round of names
	rounds    = 5
)

// minterBench is a registrar over a new registry on the disk, with a namespace each for IBIs
// at r = 1 microsecond and for PILIN's handles.
type minterBench struct {
	*registrar.Registrar
	store      *pebble.Store
	admin      context.Context
	ibi, pilin stele.NamespaceKey
}

func (r *registryBench) openMinters(ctx context.Context, name string) (d *minterBench, err error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return nil, err
	}
	store, err := pebble.Open(ctx, filepath.Join(r.work, name), pebble.Options{Now: time.Now})
	if err != nil {
		return nil, err
	}
	d = &minterBench{store: store, admin: auth.With(ctx, auth.Local()), Registrar: registrar.New(store, schemes, registrar.Options{Now: time.Now})}
	d.ibi, err = d.add("sid.inpe.br/mtc-m18", stele.Minter{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.34.243", IPPort: 800, Granularity: "1us"})
	if err == nil {
		d.pilin, err = d.add("102.100.272/", stele.Minter{Kind: stele.MinterPILIN})
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return d, nil
}

func (d *minterBench) add(prefix string, minter stele.Minter) (stele.NamespaceKey, error) {
	key, err := d.ParsePrefix(prefix)
	if err == nil {
		_, err = d.AddNamespace(d.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: minter})
	}
	return key, err
}

// together calls do from many goroutines for a while, and returns how often a second.
func together(goroutines int, during time.Duration, do func() error) (float64, error) {
	var n atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	begin := time.Now()
	for range goroutines {
		wg.Go(func() {
			for time.Since(begin) < during && failed.Load() == nil {
				if err := do(); err != nil {
					failed.Store(&err)
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(n.Load()) / time.Since(begin).Seconds(), nil
}

// registers compares a new name with its record, durable, with a synced commit of
// Pebble's that has as many keys and bytes, both from many goroutines at once.
func (r *registryBench) registers(ctx context.Context, w *tabwriter.Writer) (err error) {
	d, err := r.openMinters(ctx, "register")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	o := ourSettings()
	o.Logger = quiet{}
	db, err := pebbledb.Open(filepath.Join(r.work, "commits"), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var n atomic.Uint64
	last, err := d.register(n.Add(1))
	if err != nil {
		return err
	}
	writes, err := keysOf(last)
	if err != nil {
		return err
	}
	var ours, peer, ratios []float64
	for i := range rounds {
		progress("registering, round %d of %d", i+1, rounds)
		a, err := together(callers, commitFor, func() error { _, err := d.register(n.Add(1)); return err })
		if err != nil {
			return err
		}
		b, err := together(callers, commitFor, func() error { return commitBare(db, writes, n.Add(1)) })
		if err != nil {
			return err
		}
		ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, a/b)
	}
	fmt.Fprintf(w, "mint and register, %d goroutines : bare synced commits\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n",
		callers, median(ours), median(peer), median(ratios))
	return nil
}

// register makes a name for the n-th record.
func (d *minterBench) register(n uint64) (*stele.Record, error) {
	return d.MintAndRegister(d.admin, &stele.Record{
		Targets:  []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://archive.example.org/items/%010x/view", n), Order: stele.DefaultOrder, Preference: stele.DefaultPreference}},
		Metadata: stele.Metadata{stele.Who: "Almeida, Castro", stele.What: fmt.Sprintf("On the rivers and bridges of Amazonia, volume %d", n), stele.When: "1987"},
	}, d.ibi)
}

// write is a key with its value, in a bare commit.
type write struct{ key, value []byte }

// keysOf returns what must be written for a record: it under its name, its name under
// each alias, and the ways back from its target, its host and the change's number.
func keysOf(rec *stele.Record) ([]write, error) {
	body, err := stored.MarshalRecord(rec)
	if err != nil {
		return nil, err
	}
	id := []byte(rec.ID.String())
	list := []write{{id, body}, {fmt.Appendf(nil, "%08d", 0), id}}
	for _, alias := range rec.Aliases {
		list = append(list, write{[]byte(alias.String()), id})
	}
	for _, t := range rec.Targets {
		list = append(list, write{append([]byte(t.URL), id...), nil}, write{append([]byte(t.Host()), id...), nil})
	}
	return list, nil
}

// commitBare commits the writes, with a number before each key so that it is another
// one each time.
func commitBare(db *pebbledb.DB, writes []write, n uint64) error {
	batch := db.NewBatch()
	defer batch.Close()
	var key []byte
	for _, w := range writes {
		key = append(binary.BigEndian.AppendUint64(key[:0], n*0x9e3779b97f4a7c15), w.key...)
		if err := batch.Set(key, w.value, nil); err != nil {
			return err
		}
	}
	return batch.Commit(pebbledb.Sync)
}

// mints tells how many names a second the registrar makes, each of them durable
// before it leaves, and compares one name a call with a counter that is committed for each caller.
func (r *registryBench) mints(ctx context.Context, w *tabwriter.Writer) (err error) {
	d, err := r.openMinters(ctx, "mint")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	for _, f := range []struct {
		figure     string
		key        stele.NamespaceKey
		goroutines int
		batch      int
		during     time.Duration
		wanted     string
	}{
		{"IBIs at 1us, 1000 a call", d.ibi, 1, 1000, mintFor, "at least 500000/s"},
		{"IBIs at 1us, 10000 a call", d.ibi, 1, 10_000, mintFor, "at least 500000/s"},
		{"IBIs at 1us, 1000 a call, 64 goroutines", d.ibi, callers, 1000, mintFor, "at least 500000/s"},
		{"handles by PILIN, 1 a call, 64 goroutines", d.pilin, callers, 1, 2 * mintFor, "at least 990/s"},
		{"handles by PILIN, 100 a call", d.pilin, 1, 100, 2 * mintFor, "at least 990/s"},
	} {
		progress("%s", f.figure)
		var rates []float64
		for range rounds {
			rate, err := together(f.goroutines, f.during, func() error {
				_, err := d.Mint(d.admin, f.key, f.batch)
				return err
			})
			if err != nil {
				return err
			}
			rates = append(rates, rate*float64(f.batch))
		}
		fmt.Fprintf(w, "%s\t%.0f/s\t\t\t\t%s\n", f.figure, median(rates), f.wanted)
	}
	return r.mintSingly(ctx, w, d)
}

// mintSingly compares one name a call with a counter that is committed before each caller gets its number.
func (r *registryBench) mintSingly(ctx context.Context, w *tabwriter.Writer, d *minterBench) (err error) {
	o := ourSettings()
	o.Logger = quiet{}
	db, err := pebbledb.Open(filepath.Join(r.work, "counter"), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := newGroupCounter(db)
	defer c.stop()
	var ours, peer, ratios []float64
	for i := range rounds {
		progress("minting one name a call, round %d of %d", i+1, rounds)
		a, err := together(callers, mintFor, func() error { _, err := d.Mint(d.admin, d.ibi, 1); return err })
		if err != nil {
			return err
		}
		b, err := together(callers, mintFor, c.next)
		if err != nil {
			return err
		}
		ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, a/b)
	}
	fmt.Fprintf(w, "IBIs at 1us, 1 a call, %d goroutines : bare group commits of a counter\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n",
		callers, median(ours), median(peer), median(ratios))
	return nil
}

// groupCounter counts callers. One goroutine takes all that wait, and commits the counter once for them.
type groupCounter struct {
	db    *pebbledb.DB
	queue chan chan error
	ended sync.WaitGroup
}

func newGroupCounter(db *pebbledb.DB) *groupCounter {
	c := &groupCounter{db: db, queue: make(chan chan error, callers)}
	c.ended.Go(c.commit)
	return c
}

func (c *groupCounter) stop() { close(c.queue); c.ended.Wait() }

// next returns when the number of its caller is on the disk.
func (c *groupCounter) next() error {
	done := make(chan error, 1)
	c.queue <- done
	return <-done
}

func (c *groupCounter) commit() {
	key, n := []byte("counter"), uint64(0)
	var waiting []chan error
	for first := range c.queue {
		waiting = append(waiting[:0], first)
		for more := true; more; {
			select {
			case next, ok := <-c.queue:
				if more = ok; ok {
					waiting = append(waiting, next)
				}
			default:
				more = false
			}
		}
		n += uint64(len(waiting))
		err := c.db.Set(key, binary.BigEndian.AppendUint64(nil, n), pebbledb.Sync)
		for _, done := range waiting {
			done <- err
		}
	}
}
