package usage

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// tidy adds up the days of months that are old, and removes old names that lead nowhere: once a day, and the first once a
// month. Several servers may do so at once.
func (k *keeper) tidy(ctx context.Context, now time.Time) error {
	today := now.UTC().Format(time.DateOnly)
	if k.rolled == today {
		return nil
	}
	ctx = asServer(ctx)
	if err := k.removeFailed(ctx, dayOf(now.Unix())-keepFailed); err != nil {
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
	k.rolled = today
	return nil
}

// change changes cells. That another server was faster is not an error: it did the same.
func (k *keeper) change(ctx context.Context, changes ...stele.CellChange) error {
	if len(changes) == 0 {
		return nil
	}
	err := k.store.KeepUsage(ctx, changes...)
	if stele.KindOf(err) == stele.Conflict && err != nil {
		return nil
	}
	return err
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
		full, _, err := cutText(text, c.Value)
		if err != nil {
			return err
		}
		sum, err := sumMonth(full, c.Value)
		if err != nil {
			return err
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

// removeFailed removes the names that lead nowhere of days before one.
func (k *keeper) removeFailed(ctx context.Context, before int32) error {
	var changes []stele.CellChange
	for c, err := range k.store.UsageList(ctx, failedCells, "") {
		if err != nil {
			return err
		}
		_, _, rest, ok := cutCell(c.Name[len(failedCells):], 4)
		if ok && dayIn(rest) >= before {
			continue
		}
		if changes = append(changes, stele.CellChange{Name: c.Name, Before: c.Value}); len(changes) == cellsAtOnce {
			break
		}
	}
	return k.change(ctx, changes...)
}

// dayIn returns the day at the end of a cell's name.
func dayIn(rest string) int32 {
	return int32(rest[0])<<24 | int32(rest[1])<<16 | int32(rest[2])<<8 | int32(rest[3])
}
