package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/pebble"
)

// asked is how many names are asked for in turn. Their blocks are more than what is
// kept in memory, so that asking again does not make it easier.
const asked = 200_000

// lookUps compares the way from an identifier to its target with a Get of the same
// record from a Pebble database that has nothing else, under its plain name. Once it
// has the settings of our store, which shows what we add to it, and once those that
// Pebble has by itself.
func (r *registryBench) lookUps(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.fill(ctx); err != nil {
		return err
	}
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return err
	}
	store, err := pebble.Open(ctx, r.filled, pebble.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	reads := resolver.New(store, schemes, resolver.Options{Now: time.Now, Random: rand.IntN})
	ids, keys, err := pick(r.records)
	if err != nil {
		return err
	}
	for _, bare := range []struct {
		name, wanted string
		options      *pebbledb.Options
	}{
		{"bare Get, our settings", "at most 3", ourSettings()},
		{"bare Get, Pebble's settings", "(for information)", &pebbledb.Options{}},
	} {
		if err := r.lookUp(ctx, w, reads, schemes, ids, keys, bare.options, bare.name, bare.wanted); err != nil {
			return err
		}
	}
	return nil
}

// pick returns names at random among n, and their texts.
func pick(n int) (ids []stele.ID, keys [][]byte, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	for range asked {
		id, err := benchID(random.IntN(n))
		if err != nil {
			return nil, nil, err
		}
		ids, keys = append(ids, id), append(keys, []byte(id.String()))
	}
	return ids, keys, nil
}

func (r *registryBench) lookUp(ctx context.Context, w *tabwriter.Writer, reads *resolver.Resolver, schemes *stele.Schemes, ids []stele.ID, keys [][]byte, o *pebbledb.Options, name, wanted string) (err error) {
	folder := filepath.Join(r.work, "bare")
	o.Logger = quiet{}
	o.MemTableSize = 32 << 20 // to be filled sooner
	o.Cache = pebbledb.NewCache(pebble.DefaultCacheSize)
	defer o.Cache.Unref()
	db, err := pebbledb.Open(folder, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), os.RemoveAll(folder)) }()
	progress("filling a database of Pebble's with %d records", r.records)
	if err := fillBare(ctx, db, schemes, r.records); err != nil {
		return err
	}
	settle(ctx)
	var wrong error
	i, j := 0, 0
	ours := func() {
		i = (i + 1) % len(ids)
		if res, err := reads.Resolve(ctx, resolver.Request{ID: ids[i]}); err != nil || res.URL == "" {
			wrong = fmt.Errorf("%s leads to %q: %w", ids[i], res.URL, err)
		}
	}
	peer := func() {
		j = (j + 1) % len(keys)
		value, closer, err := db.Get(keys[j])
		if err != nil || len(value) == 0 {
			wrong = fmt.Errorf("%s has %d bytes: %w", keys[j], len(value), err)
			return
		}
		_ = closer.Close() // it has no error to return
	}
	row(w, fmt.Sprintf("look-up among %d : %s", r.records, name), ours, peer, wanted)
	return wrong
}

// quiet is a logger that says nothing: of what Pebble tells, errors are returned too.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	progress(format, args...)
	os.Exit(1)
}

// ourSettings are those of store/pebble that matter for reading.
func ourSettings() *pebbledb.Options {
	const tableSize = 64 << 20
	o := &pebbledb.Options{FormatMajorVersion: pebbledb.FormatTableFormatV6, LBaseMaxBytes: 2 << 30}
	for i := range o.TargetFileSizes[1:] {
		o.TargetFileSizes[i+1] = tableSize
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 4 << 10
		o.Levels[i].IndexBlockSize = tableSize
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return block.FastestCompression }
	}
	return o
}

// fillBare writes n records under their names. It does so in the order of names, which
// is fastest.
func fillBare(ctx context.Context, db *pebbledb.DB, schemes *stele.Schemes, n int) error {
	const group = 1000
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(mix(a), mix(b)) })
	var text []byte
	for from := 0; from < n; from += group {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch := db.NewBatch()
		for _, i := range order[from:min(n, from+group)] {
			text = appendRecord(text[:0], i)
			rec, err := document.DecodeRecord(schemes, text)
			if err != nil {
				return err
			}
			body, err := binary.MarshalRecord(rec)
			if err != nil {
				return err
			}
			if err := batch.Set([]byte(rec.ID.String()), body, nil); err != nil {
				return err
			}
		}
		if err := batch.Commit(pebbledb.NoSync); err != nil {
			return err
		}
	}
	if err := db.Flush(); err != nil {
		return err
	}
	return db.Compact(ctx, []byte{0}, []byte{0xff}, true)
}

// settle waits until nothing is done in the background, for a minute at most.
func settle(ctx context.Context) {
	for range 60 {
		before := cpu()
		time.Sleep(time.Second)
		if cpu()-before < 50*time.Millisecond || ctx.Err() != nil {
			return
		}
	}
}
