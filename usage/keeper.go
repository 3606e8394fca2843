package usage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Store keeps figures: a [registrar.Registrar].
type Store interface {
	UsageCell(ctx context.Context, name string) ([]byte, error)
	// UsageValues returns many cells, in the order of their names; nil for one that is not there.
	UsageValues(ctx context.Context, names []string) ([][]byte, error)
	UsageList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error]
	// KeepUsage changes cells, all or none. Conflict if one does not have the value that the change expects.
	KeepUsage(ctx context.Context, changes ...stele.CellChange) error
}

// Limits on commits.
const (
	cellsAtOnce = 1000    // in a commit
	maxTries    = 5       // of a commit that others get ahead of
	maxLeft     = 300_000 // additions that wait while the registry can't be written
)

// addition is what is to be added to a cell.
type addition struct {
	cell string
	adder
	with []addition // are made in the same commit; most have none
}

// adder adds to the value of a cell.
type adder interface {
	// add returns the next value from the one that the cell has; nil is none. It may be called more than once, and
	// does not change the value.
	add(value []byte) ([]byte, error)
}

// addFunc is an adder.
type addFunc func(value []byte) ([]byte, error)

func (f addFunc) add(value []byte) ([]byte, error) { return f(value) }

// keeper adds to cells. Several servers may add to the same ones: a commit that another server got ahead of is made again from
// what is there by then. Each commit has the number of the server's commit in a cell of its own, so that the server
// finds out whether a commit was made whose outcome it was not told.
type keeper struct {
	store  Store
	log    *slog.Logger
	mark   string // the cell with the number of the last commit
	number uint64
	known  *knownCells // values of cells
	unsure []addition  // of the commit with the next number, whose outcome is not known
	doubts []leftOut   // additions that this commit leaves out
	left   []addition  // that could not be written
	marked []byte      // value of the cell mark
	lost   uint64      // additions for which there was no room
	rolled string      // the day on which old figures were looked after
	stuck  time.Time   // when that failed
	server string      // whose the mark and the journal are
	parts  uint64      // number of the last part of the journal
	folds  folds

	between func() // is called between commits; may be nil
}

func newKeeper(store Store, log *slog.Logger) *keeper {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // it never fails, see crypto/rand
	server := hex.EncodeToString(random)
	return &keeper{store: store, log: log, server: server, mark: markCells + server, known: newKnownCells()}
}

func asServer(ctx context.Context) context.Context { return auth.With(ctx, auth.Local()) }

// keep makes additions, and those that were left before. It returns how many are left.
func (k *keeper) keep(ctx context.Context, now time.Time, list []addition) (left int, err error) {
	ctx = asServer(ctx)
	if err := k.settle(ctx, now); err != nil {
		k.leave(list)
		return k.waiting(), err
	}
	// In this order no two servers wait for each other. What is collected has a cell once; what was left comes before it.
	// Most are sorted already, see collect.
	byCell := func(a, b addition) int { return strings.Compare(a.cell, b.cell) }
	if slices.SortFunc(list, byCell); len(k.left) > 0 {
		list = append(k.left, list...)
		k.left = nil
		slices.SortStableFunc(list, byCell)
	}
	for len(list) > 0 {
		n := chunk(list)
		if err = k.commit(ctx, now, list[:n]); err != nil {
			if k.unsure != nil {
				list = list[n:]
			}
			break
		}
		if list = list[n:]; len(list) > 0 && k.between != nil {
			k.between()
		}
	}
	k.leave(list)
	return k.waiting(), err
}

// waiting returns how many figures could not be written.
func (k *keeper) waiting() int { return weigh(k.left) + weigh(k.unsure) }

// leave keeps additions for the next time.
func (k *keeper) leave(list []addition) {
	have := weigh(k.left)
	for i := range list {
		if have += list[i].weight(); have > maxLeft {
			k.lost += uint64(weigh(list[i:]))
			return
		}
		k.left = append(k.left, list[i])
	}
}

// nextPart returns the cell of the next part of the journal.
func (k *keeper) nextPart() string {
	k.parts++
	return partCell(k.server, k.parts)
}

// chunk returns how many of the additions, which are sorted, are made with one commit. All of a cell are.
func chunk(list []addition) int {
	n := min(len(list), cellsAtOnce)
	parts := 0
	for i := range list[:n] {
		if _, ok := list[i].adder.(*journalPart); !ok {
			continue
		}
		if parts++; parts == partsAtOnce {
			return i + 1
		}
	}
	for n < len(list) && list[n].cell == list[n-1].cell {
		n++
	}
	return n
}

// settle finds out what became of the commit whose outcome is not known. It may still be under way, so to read the mark is not enough: settle
// changes it. Then the commit, which expects the former mark, can't be made any more. Only this server writes its
// mark: if it is another one by now, the commit was made, or an earlier attempt to settle.
func (k *keeper) settle(ctx context.Context, now time.Time) error {
	if k.unsure == nil {
		return nil
	}
	mark := newMark(k.number+2, now)
	err := k.store.KeepUsage(ctx, stele.CellChange{Name: k.mark, Before: k.marked, After: mark})
	switch {
	case err == nil:
		k.marked = mark
	case stele.KindOf(err) == stele.Conflict:
		have, err := k.store.UsageCell(ctx, k.mark)
		if err != nil {
			return err
		}
		k.marked = have
	default:
		return err
	}
	if number := markNumber(k.marked); number == k.number+1 {
		k.number++
		k.tell(k.doubts)
	} else {
		k.number += 2
		k.left = append(k.unsure, k.left...)
	}
	k.unsure, k.doubts = nil, nil
	k.known.clear()
	return nil
}

// newMark returns the value of the mark with a number.
func newMark(number uint64, now time.Time) []byte {
	return []byte(strconv.FormatUint(number, 10) + " " + now.UTC().Format(time.RFC3339))
}

// markNumber returns the number of a mark; 0 if there is none.
func markNumber(mark []byte) uint64 {
	text, _, _ := strings.Cut(string(mark), " ")
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

// commit makes additions, all or none.
func (k *keeper) commit(ctx context.Context, now time.Time, list []addition) error {
	for try := 1; ; try++ {
		changes, damaged, err := k.changes(ctx, list)
		if err != nil {
			return err
		}
		mark := newMark(k.number+1, now)
		changes = append(changes, stele.CellChange{Name: k.mark, Before: k.marked, After: mark})
		err = k.store.KeepUsage(ctx, changes...)
		switch kind := stele.KindOf(err); {
		case err == nil:
			k.number++
			k.marked = mark
			k.remember(changes[:len(changes)-1])
			k.tell(damaged)
			return nil
		case errors.Is(err, stele.ErrSealed), kind == stele.Invalid, kind == stele.Forbidden, kind == stele.Exhausted:
			return err
		case kind == stele.Conflict: // another server was faster
			k.known.clear()
			have, fault := k.store.UsageCell(ctx, k.mark)
			if fault != nil {
				k.unsure, k.doubts = slices.Clone(list), damaged
				return fault
			}
			k.marked = have
			if markNumber(have) == k.number+1 { // a store that tried twice had made it
				k.number++
				k.tell(damaged)
				return nil
			}
			if try == maxTries {
				return err
			}
		default:
			k.unsure, k.doubts = slices.Clone(list), damaged
			return err
		}
	}
}

// leftOut is an addition that can't be made, because its cell is damaged.
type leftOut struct {
	cell string
	err  error
}

// changes returns what additions do to their cells, and which of them it leaves out.
func (k *keeper) changes(ctx context.Context, list []addition) (changes []stele.CellChange, damaged []leftOut, err error) {
	changes = make([]stele.CellChange, 0, len(list)+1) // the mark has room
	var missing []string                               // cells that are not known
	for i := range list {
		if i > 0 && list[i].cell == list[i-1].cell {
			continue
		}
		before, ok := k.known.find(list[i].cell)
		if !ok {
			missing = append(missing, list[i].cell)
		}
		changes = append(changes, stele.CellChange{Name: list[i].cell, Before: before, After: before})
	}
	if err := k.fetch(ctx, changes, missing); err != nil {
		return nil, nil, err
	}
	at := -1
	for i := range list {
		a := &list[i]
		if i == 0 || a.cell != list[i-1].cell {
			at++
		}
		c := &changes[at]
		next, err := a.add(c.After)
		if err != nil { // the others need not wait until the cell is mended
			damaged = append(damaged, leftOut{a.cell, err})
			continue
		}
		c.After = next
	}
	return slices.DeleteFunc(changes, func(c stele.CellChange) bool { return c.Before == nil && c.After == nil }), damaged, nil
}

// fetch reads cells that are not known, in the order of the changes, all at once: one by one they cost several times as much, and with a
// database a round trip each.
func (k *keeper) fetch(ctx context.Context, changes []stele.CellChange, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	values, err := k.store.UsageValues(ctx, missing)
	if err != nil {
		return err
	}
	at := 0
	for i := range changes {
		if at < len(missing) && changes[i].Name == missing[at] {
			changes[i].Before, changes[i].After = values[at], values[at]
			at++
		}
	}
	return nil
}

// tell tells the operator what a commit left out. It is called once for a commit, however often that was tried.
func (k *keeper) tell(damaged []leftOut) {
	k.lost += uint64(len(damaged))
	for _, d := range damaged {
		k.skip(d.cell, d.err)
	}
}

// skip tells the operator that a cell can't be read.
func (k *keeper) skip(cell string, err error) {
	k.log.Error("figures of use are left out", "cell", strconv.Quote(cell), "error", err.Error())
}

func (k *keeper) remember(changes []stele.CellChange) {
	for i := range changes {
		k.known.put(changes[i].Name, changes[i].After)
	}
}

// keepMarks is how long the mark of a server that ended without removing it is kept, and the head of a journal that has no parts.
const keepMarks = 48 * time.Hour

// markTime returns when a mark was written; zero if it can't be read.
func markTime(mark []byte) time.Time {
	_, text, _ := strings.Cut(string(mark), " ")
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// forgetMarks removes the marks of servers that ended without doing so, and the heads of their journals, after two days.
func (k *keeper) forgetMarks(ctx context.Context, now time.Time) {
	ctx = asServer(ctx)
	var old []stele.CellChange
	for c, err := range k.store.UsageList(ctx, markCells, "") {
		if err != nil {
			return // it is tried with the next start
		}
		if now.Sub(markTime(c.Value)) > keepMarks {
			old = append(old, stele.CellChange{Name: c.Name, Before: c.Value})
		}
	}
	heads, err := k.oldHeads(ctx, now)
	if err != nil {
		return
	}
	old = append(old, heads...)
	for part := range slices.Chunk(old, cellsAtOnce) {
		_ = k.store.KeepUsage(ctx, part...) // another server may have done it
	}
}

// end removes the mark of this server.
func (k *keeper) end(ctx context.Context) {
	if k.marked != nil && k.unsure == nil {
		_ = k.store.KeepUsage(asServer(ctx), stele.CellChange{Name: k.mark, Before: k.marked}) // it does no harm if it stays
	}
}
