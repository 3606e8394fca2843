package usage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// tidyPause is how long after a failure old figures are looked after again: to look at all of them takes long.
const tidyPause = time.Hour

// Tidy looks after old figures until the context ends, for a server that does not count. Names that lead nowhere must not
// stay because counting was switched off.
func Tidy(ctx context.Context, store Store, now func() time.Time, log *slog.Logger) {
	k := newKeeper(store, log)
	ticks := time.NewTicker(tidyPause)
	defer ticks.Stop()
	for {
		k.tidy(ctx, now())
		k.foldAll(ctx, now())
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// tidy looks after old figures, once a day. Several servers may do so at once.
func (k *keeper) tidy(ctx context.Context, now time.Time) {
	today := now.UTC().Format(time.DateOnly)
	if since := now.Sub(k.stuck); k.rolled == today || since >= 0 && since < tidyPause {
		return
	}
	if err := k.tidyAll(ctx, now); err != nil {
		k.stuck = now
		if ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
			k.log.Warn("old figures of use can't be added up; it is tried again", "error", err.Error())
		}
		return
	}
	k.rolled = today
}

// tidyAll removes old names that lead nowhere and, once a month, adds up the days of months that are old.
func (k *keeper) tidyAll(ctx context.Context, now time.Time) error {
	ctx = asServer(ctx)
	if err := k.tidyFailed(ctx, dayOf(now.Unix())); err != nil {
		return err
	}
	if begin, err := k.store.UsageCell(ctx, beginCell); err != nil || begin == nil {
		return err
	}
	have, err := k.store.UsageCell(ctx, rolledCell)
	if err != nil {
		return err
	}
	month := rolledMonth(now)
	if done, err := strconv.Atoi(string(have)); err != nil || done < month {
		for _, kind := range []string{recordCells, spaceCells} {
			if err := k.sumMonths(ctx, kind, month); err != nil {
				return err
			}
		}
		if err := k.change(ctx, stele.CellChange{Name: rolledCell, Before: have, After: []byte(strconv.Itoa(month))}); err != nil {
			return err
		}
	}
	return nil
}

// change changes cells. That another server was faster with one is not an error: it did the same, and the others are
// changed one by one.
func (k *keeper) change(ctx context.Context, changes ...stele.CellChange) error {
	if len(changes) == 0 {
		return nil
	}
	err := k.store.KeepUsage(ctx, changes...)
	if err == nil || stele.KindOf(err) != stele.Conflict {
		return err
	}
	if len(changes) > 1 {
		for _, c := range changes {
			if err := k.change(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// sumMonths adds up the days of all months up to one.
func (k *keeper) sumMonths(ctx context.Context, kind string, last int) error {
	var changes []stele.CellChange
	flush := func() error {
		part := changes
		if changes = nil; len(part) == 0 {
			return nil
		}
		return k.store.KeepUsage(ctx, part...) // after a conflict it is tried again
	}
	for c, err := range k.store.UsageList(ctx, kind, "") {
		if err != nil {
			return err
		}
		_, text, rest, ok := cutCell(c.Name[len(kind):], 2)
		if !ok || monthOf(rest) > last {
			continue
		}
		sum, err := sumMonth(text, c.Value)
		if err != nil {
			k.skip(c.Name, err)
			continue
		}
		if bytes.Equal(sum, c.Value) {
			continue
		}
		if changes = append(changes, stele.CellChange{Name: c.Name, Before: c.Value, After: sum}); len(changes) == cellsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// tidyFailed removes the names that lead nowhere of days that are long past, and of all days before this one those that were typed
// once only: they may be anything.
func (k *keeper) tidyFailed(ctx context.Context, today int32) error {
	var changes []stele.CellChange
	for c, err := range k.store.UsageList(ctx, failedCells, "") {
		if err != nil {
			return err
		}
		next := stele.CellChange{Name: c.Name, Before: c.Value}
		_, text, rest, ok := cutCell(c.Name[len(failedCells):], 4)
		if ok && dayIn(rest) >= today-keepFailed {
			if dayIn(rest) >= today {
				continue
			}
			if next.After, err = withoutRare(text, c.Value); err != nil {
				k.skip(c.Name, err)
				continue
			}
		}
		if bytes.Equal(next.After, next.Before) {
			continue
		}
		if changes = append(changes, next); len(changes) == cellsAtOnce {
			if err := k.change(ctx, changes...); err != nil {
				return err
			}
			changes = nil
		}
	}
	return k.change(ctx, changes...)
}

// withoutRare returns the stored form of texts without those that were counted once; nil if none is left.
func withoutRare(text string, value []byte) ([]byte, error) {
	full, rest, err := cutText(text, value)
	if err != nil {
		return nil, err
	}
	list, err := parseTexts(rest)
	if err != nil {
		return nil, err
	}
	if list = slices.DeleteFunc(list, func(t Tally) bool { return t.Count < 2 }); len(list) == 0 {
		return nil, nil
	}
	return withText(full, appendTexts(nil, list)), nil
}

// dayIn returns the day at the end of a cell's name.
func dayIn(rest string) int32 {
	return int32(rest[0])<<24 | int32(rest[1])<<16 | int32(rest[2])<<8 | int32(rest[3])
}
