package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

const (
	checkedAtOnce = 2000    // cells in a commit
	checkedPart   = million // names in memory
	dueRounds     = 50
	dueSpan       = 10 * time.Minute // what a server reads at once
)

// checked measures what the link checker keeps of names that work, and how long it takes to find what is due next among them.
func (r *registryBench) checked(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	folder := filepath.Join(r.work, "checked")
	store, err := pebble.Open(ctx, folder, pebble.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return err
	}
	var cells atomic.Int64
	reg := registrar.New(countingCells{store, &cells}, schemes, registrar.Options{Now: time.Now})
	now := time.Now().UTC()
	if err := r.fillChecked(ctx, reg, now); err != nil {
		return err
	}
	if err := store.Compact(ctx); err != nil {
		return err
	}
	size, err := settledSize(ctx, folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "checked names, %d: bytes each\t%.1f\t\t\t\tat most 120\n", r.records, float64(size)/float64(r.records))

	checker := check.New(check.Options{Registrar: reg, Store: store, Now: time.Now})
	var each []float64
	found := 0
	cells.Store(0)
	for i := range dueRounds {
		from := now.Add(time.Duration(i) * 13 * time.Hour)
		began := time.Now()
		n, err := checker.CountDue(ctx, from, from.Add(dueSpan))
		if err != nil {
			return err
		}
		each = append(each, float64(time.Since(began).Microseconds())/1000)
		found += n
	}
	fmt.Fprintf(w, "what is due in %s among %d checked names (%d, in %d cells)\t%.2f ms\t\t\t\tno scan\n", dueSpan, r.records, found/dueRounds, cells.Load()/dueRounds, median(each))
	return nil
}

// settledSize is what the tables of a store take when it has removed those that were merged into others, which it does slowly.
func settledSize(ctx context.Context, folder string) (size int64, err error) {
	for before := int64(-1); size != before; {
		before = size
		if size, err = disk.FolderSize(folder, ".sst"); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(5 * time.Second):
		}
	}
	return size, nil
}

// countingCells is a store that counts the cells that are listed.
type countingCells struct {
	stele.Store
	read *atomic.Int64
}

func (s countingCells) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		for c, err := range s.Store.Cells(ctx, prefix, after) {
			if s.read.Add(1); !yield(c, err) {
				return
			}
		}
	}
}

// fillChecked keeps what is known of names that work, a part of the turn after the other, so that a part fits into memory.
func (r *registryBench) fillChecked(ctx context.Context, reg *registrar.Registrar, now time.Time) error {
	ctx = auth.With(ctx, auth.Local())
	progress("keeping what is known of %d names", r.records)
	parts := 1 + r.records/checkedPart
	of := make([]uint16, r.records) // the part of each name: to make ten million names for each part again would take longer than all the rest
	for n := range r.records {
		id, err := benchID(n)
		if err != nil {
			return err
		}
		of[n] = uint16(check.Part(id, parts))
	}
	low := ""
	for part := range parts {
		var list []check.Known
		for n := range r.records {
			if int(of[n]) != part {
				continue
			}
			id, err := benchID(n)
			if err != nil {
				return err
			}
			h, sum := mix(n), sha256.Sum256([]byte(id.String()))
			list = append(list, check.Known{ID: id, Status: links.Status{URL: h, State: links.OK, Cause: links.Answered, Code: 200, Since: now, Checked: now, Good: now, Next: now.Add(time.Duration(h % uint64(links.Turn))),
				Print: links.Print{Title: uint32(h), Text: h * 7, Type: 77, Length: int64(h % 1_000_000), Tag: fmt.Sprintf(`"%010x%04x"`, mix(n+r.records), mix(n+2*r.records)&0xffff), Digest: [16]byte(sum[:])}}})
		}
		var cells []stele.Cell
		cells, low = check.StateCells(list, low, part == parts-1)
		for some := range slices.Chunk(cells, checkedAtOnce) {
			var changes []stele.CellChange
			for _, c := range some {
				changes = append(changes, stele.CellChange{Name: c.Name, After: c.Value})
			}
			if err := reg.KeepChecks(ctx, changes...); err != nil {
				return err
			}
		}
	}
	return nil
}
