package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

const (
	checkedAtOnce = 5000 // cells in a commit
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
	reg := registrar.New(store, schemes, registrar.Options{Now: time.Now})
	now := time.Now().UTC()
	if err := r.fillChecked(ctx, reg, now); err != nil {
		return err
	}
	if err := store.Compact(ctx); err != nil {
		return err
	}
	size, err := tableBytes(folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "checked names, %d: bytes each\t%.1f\t\t\t\tat most 120\n", r.records, float64(size)/float64(r.records))

	checker := check.New(check.Options{Registrar: reg, Store: store, Now: time.Now})
	var each []float64
	found := 0
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
	fmt.Fprintf(w, "what is due in %s among %d checked names (%d)\t%.2f ms\t\t\t\tno scan\n", dueSpan, r.records, found/dueRounds, median(each))
	return nil
}

// fillChecked keeps what is known of names that work.
func (r *registryBench) fillChecked(ctx context.Context, reg *registrar.Registrar, now time.Time) error {
	ctx = auth.With(ctx, auth.Local())
	progress("keeping what is known of %d names", r.records)
	for from := 0; from < r.records; from += checkedAtOnce {
		var changes []stele.CellChange
		for n := from; n < min(from+checkedAtOnce, r.records); n++ {
			id, err := benchID(n)
			if err != nil {
				return err
			}
			h := mix(n)
			s := links.Status{URL: h, State: links.OK, Cause: links.Answered, Code: 200, Since: now, Checked: now, Good: now, Next: now.Add(time.Duration(h % uint64(links.Turn))),
				Print: links.Print{Title: uint32(h), Text: h * 7, Type: 77, Length: int64(h % 1_000_000), Digest: [16]byte{byte(h), byte(h >> 8), byte(h >> 16), byte(h >> 24), byte(h >> 32), byte(h >> 40), byte(n), byte(n >> 8)}}}
			c := check.StateCell(id, 0, &s)
			changes = append(changes, stele.CellChange{Name: c.Name, After: c.Value})
		}
		slices.SortFunc(changes, func(a, b stele.CellChange) int { return strings.Compare(a.Name, b.Name) })
		if err := reg.KeepChecks(ctx, changes...); err != nil {
			return err
		}
	}
	return nil
}

// tableBytes returns the bytes of the tables in a folder.
func tableBytes(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
