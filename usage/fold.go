package usage

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// When the parts of a journal are added to the cells of their names, and how many at once.
const (
	foldAfter = 20      // intervals
	foldParts = 64      // parts of one's own journal, if they come before that
	foldNames = 1 << 19 // names in memory
	foldTexts = 1 << 26 // bytes of these
	foldSteps = 16      // commits between two looks at hits that wait
)

// folds are the journals that are to be added to the cells of names.
type folds struct {
	looked time.Time // when they were looked for; zero: they were not
	parts  uint64    // number of the last part of one's own journal then
	queue  []string  // their servers
	now    *fold     // nil: the next of the queue
}

// fold adds parts of the journal of a server to the cells of names, in the order of these. Each commit sets in the head of the journal
// up to which cell it is made, on the condition that the head is as it was: the server
// that goes on after a crash, this one or another, adds nothing twice and leaves nothing out. Two servers that fold the same journal do no harm: one is refused.
type fold struct {
	server string
	seen   []byte // value of the head
	until  uint64 // the last part
	cells  *sorted
	more   bool // parts are left for the next fold
}

// journalHead says how far a journal is in the cells of names. Its cell has the number of a part, a time, and the name of a cell:
// the parts up to that number are in the cells up to that name, or in all if there is none.
type journalHead struct {
	until uint64
	at    time.Time
	after string // "": all
}

func (h *journalHead) value() []byte {
	return []byte(strconv.FormatUint(h.until, 10) + " " + h.at.UTC().Format(time.RFC3339) + " " + h.after)
}

// readHead reads the value of a head; nil is that of a journal of which nothing was folded.
func readHead(value []byte) (h journalHead, err error) {
	if value == nil {
		return h, nil
	}
	number, rest, _ := strings.Cut(string(value), " ")
	at, after, ok := strings.Cut(rest, " ")
	if h.until, err = strconv.ParseUint(number, 10, 64); err != nil || !ok {
		return h, errDamaged()
	}
	if h.at, err = time.Parse(time.RFC3339, at); err != nil {
		return h, errDamaged()
	}
	h.after = after
	return h, nil
}

// has reports whether a part is in all cells.
func (h *journalHead) has(part uint64) bool { return h.after == "" && part <= h.until }

// journalServers returns the servers that have journals. It reads the first part of each.
func journalServers(ctx context.Context, list lister) (servers []string, err error) {
	for after := ""; ; {
		found := false
		for c, err := range list(ctx, journalCells, after) {
			if err != nil {
				return nil, err
			}
			server, _, ok := cutPart(c.Name)
			if after, found = c.Name, true; ok {
				servers = append(servers, server)
				after = partCell(server, math.MaxUint64)
			}
			break
		}
		if !found {
			return servers, nil
		}
	}
}

// look looks for journals that are to be folded, if it is time: the own one, and those of servers that have ended. Of a server without a mark, or with one that
// was not changed in the time of two folds, it is taken that it has. If it has not, that does no harm.
func (k *keeper) look(ctx context.Context, now time.Time, every time.Duration) {
	f := &k.folds
	if past := now.Sub(f.looked); !f.looked.IsZero() && 0 <= past && past < every && k.parts-f.parts < foldParts {
		return
	}
	if f.now != nil || len(f.queue) > 0 {
		return
	}
	f.looked, f.parts = now, k.parts
	ctx = asServer(ctx)
	servers, err := journalServers(ctx, k.store.UsageList)
	if err != nil {
		return // it is tried again
	}
	for _, server := range servers {
		if server != k.server {
			mark, err := k.store.UsageCell(ctx, markCells+server)
			if err != nil || mark != nil && now.Sub(markTime(mark)) < 2*every+time.Minute {
				continue
			}
		}
		f.queue = append(f.queue, server)
	}
}

// fold makes some commits of those that are to be made.
func (k *keeper) fold(ctx context.Context, now time.Time, commits int) (err error) {
	f := &k.folds
	ctx = asServer(ctx)
	for ; commits > 0; commits-- {
		if f.now == nil {
			if len(f.queue) == 0 {
				return nil
			}
			server := f.queue[0]
			f.queue = f.queue[1:]
			if f.now, err = k.beginFold(ctx, now, server); err != nil {
				return err
			}
			continue
		}
		done, err := k.step(ctx, now, f.now)
		if done && err == nil && f.now.more {
			f.queue = append([]string{f.now.server}, f.queue...)
		}
		if done || err != nil {
			f.now = nil
		}
		if err != nil {
			k.known.clear() // what cells have now is not known
			return err
		}
	}
	return nil
}

// foldAll folds the journals of servers that have ended, for a server that does not count.
func (k *keeper) foldAll(ctx context.Context, now time.Time) {
	k.look(ctx, now, 0)
	for k.folds.now != nil || len(k.folds.queue) > 0 {
		if err := k.fold(ctx, now, foldSteps); err != nil {
			if ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
				k.log.Warn("figures of use can't be added up; it is tried again", "error", err.Error())
			}
			k.folds = folds{}
			return
		}
	}
}

// beginFold reads the journal of a server; nil if there is nothing to do.
func (k *keeper) beginFold(ctx context.Context, now time.Time, server string) (*fold, error) {
	seen, err := k.store.UsageCell(ctx, headCells+server)
	if err != nil {
		return nil, err
	}
	head, err := readHead(seen)
	if err != nil {
		return nil, err
	}
	f := &fold{server: server, seen: seen}
	var r records
	r.forget()
	seed := maphash.MakeSeed()
	var scratch []byte
	rest := false // parts that are in all cells
	for c, err := range k.store.UsageList(ctx, journalCells+server, "") {
		if err != nil {
			return nil, err
		}
		_, number, ok := cutPart(c.Name)
		switch {
		case !ok:
			continue
		case head.has(number):
			rest = true
			continue
		case head.after != "":
			f.more = number > head.until
		default:
			f.more = len(r.list) >= foldNames || len(r.texts) >= foldTexts
		}
		if f.more {
			break
		}
		err = parsePart(c.Value, func(l *journalLine) {
			if !lacks(l, "", head.after, &scratch) {
				r.gather(seed, l)
			}
		})
		if err != nil {
			k.skip(c.Name, err) // it stays, so that it can be mended
			continue
		}
		if f.until = number; k.between != nil {
			k.between()
		}
	}
	if rest {
		if err := k.removeParts(ctx, server, head.until); err != nil {
			return nil, err
		}
	}
	if head.after != "" {
		f.until = head.until
	}
	if f.until == 0 {
		return nil, nil
	}
	f.cells = r.sort(rolledMonth(now))
	return f, nil
}

// step makes the next commit of a fold. It reports whether all are made, or another server makes them.
func (k *keeper) step(ctx context.Context, now time.Time, f *fold) (done bool, err error) {
	list := f.cells.take()
	head := journalHead{until: f.until, at: now}
	if len(f.cells.order) > 0 {
		head.after = list[len(list)-1].cell
	}
	for try := 1; ; try++ {
		changes, damaged, err := k.changes(ctx, list)
		if err != nil {
			return false, err
		}
		n := len(changes)
		next := head.value()
		err = k.store.KeepUsage(ctx, append(changes, stele.CellChange{Name: headCells + f.server, Before: f.seen, After: next})...)
		if err == nil {
			k.remember(changes[:n])
			k.tell(damaged)
			return k.stepped(ctx, f, &head)
		}
		if stele.KindOf(err) != stele.Conflict || try == maxTries {
			return false, err
		}
		k.known.clear() // another server was faster with one of the cells, or with the head
		have, fault := k.store.UsageCell(ctx, headCells+f.server)
		switch {
		case fault != nil:
			return false, fault
		case bytes.Equal(have, next): // a store that tried twice had made it
			return k.stepped(ctx, f, &head)
		case !bytes.Equal(have, f.seen):
			f.more = false // the other server goes on
			return true, nil
		}
	}
}

// stepped goes on after a commit. It reports whether all are made.
func (k *keeper) stepped(ctx context.Context, f *fold, head *journalHead) (done bool, err error) {
	if f.seen = head.value(); k.between != nil {
		k.between()
	}
	if head.after != "" {
		return false, nil
	}
	return true, k.removeParts(ctx, f.server, f.until)
}

// removeParts removes the parts of a journal that are in the cells. One that can't be read stays: it is in none.
func (k *keeper) removeParts(ctx context.Context, server string, until uint64) error {
	var changes []stele.CellChange
	for c, err := range k.store.UsageList(ctx, journalCells+server, "") {
		if err != nil {
			return err
		}
		_, number, ok := cutPart(c.Name)
		if !ok || number > until {
			break
		}
		if parsePart(c.Value, func(*journalLine) {}) != nil {
			continue
		}
		if changes = append(changes, stele.CellChange{Name: c.Name, Before: c.Value}); len(changes) == partsAtOnce {
			if err := k.change(ctx, changes...); err != nil {
				return err
			}
			changes = nil
		}
	}
	return k.change(ctx, changes...)
}

// oldHeads returns what removes the heads of journals that have no parts, after a time: a report that is being made may have seen one.
func (k *keeper) oldHeads(ctx context.Context, now time.Time) (old []stele.CellChange, err error) {
	for c, err := range k.store.UsageList(ctx, headCells, "") {
		if err != nil {
			return nil, err
		}
		head, err := readHead(c.Value)
		if err != nil || head.after != "" || now.Sub(head.at) < keepMarks {
			continue
		}
		parts := false
		for range k.store.UsageList(ctx, journalCells+strings.TrimPrefix(c.Name, headCells), "") {
			parts = true
			break
		}
		if !parts {
			old = append(old, stele.CellChange{Name: c.Name, Before: c.Value})
		}
	}
	return old, nil
}
