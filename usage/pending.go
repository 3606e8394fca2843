package usage

import (
	"bytes"
	"context"
	"hash/maphash"
	"iter"

	"github.com/stele-id/stele"
)

// lister yields cells, see [Store].
type lister func(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error]

// pending is what journals have for the cells of names, and the cells do not have yet.
type pending struct {
	heads map[string][]byte // values of the heads of journals by server
	cells *sorted
	list  []addition
}

// next returns the next addition; nil if there are no more.
func (p *pending) next() *addition {
	if len(p.list) == 0 && p.cells != nil && len(p.cells.order) > 0 {
		p.list = p.cells.take()
	}
	if len(p.list) == 0 {
		return nil
	}
	return &p.list[0]
}

// names yields the cells of names that begin with a prefix and come after another one, in order, with what waits in journals.
func (b *Book) names(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	ctx = asServer(ctx)
	return func(yield func(stele.Cell, error) bool) {
		for more := true; more; {
			p, err := b.pending(ctx, prefix, after)
			if err != nil {
				yield(stele.Cell{}, err)
				return
			}
			if len(p.heads) == 0 {
				for c, err := range b.Registrar.UsageList(ctx, prefix, after) {
					if !yield(c, err) || err != nil {
						return
					}
				}
				return
			}
			if after, more, err = b.together(ctx, p, prefix, after, yield); err != nil {
				yield(stele.Cell{}, err)
				return
			}
		}
	}
}

// together yields cells with what is pending, some at once: they are right if no part of a journal was added to the cells while they were read. It returns the last cell that
// it yielded, and whether it is to go on from there with what is pending then.
func (b *Book) together(ctx context.Context, p *pending, prefix, after string, yield func(stele.Cell, error) bool) (last string, more bool, err error) {
	var batch []stele.Cell
	last = after
	flush := func() (same, more bool, err error) {
		if same, err = b.isSame(ctx, p); err != nil || !same {
			return same, true, err
		}
		for _, c := range batch {
			if !yield(c, nil) {
				return true, false, nil
			}
			last = c.Name
		}
		batch = batch[:0]
		return true, true, nil
	}
	add := func(c stele.Cell) (ok, more bool, err error) {
		if c.Value != nil {
			batch = append(batch, c)
		}
		if len(batch) < cellsAtOnce {
			return true, true, nil
		}
		same, more, err := flush()
		return same && more, more, err
	}
	// before adds the cells that come before one, of which the store has none; "" if there is none.
	before := func(cell string) (ok, more bool, err error) {
		for a := p.next(); a != nil && (cell == "" || a.cell < cell); a = p.next() {
			value, fault := a.add(nil)
			if fault != nil {
				return false, false, fault
			}
			c := stele.Cell{Name: a.cell, Value: value}
			p.list = p.list[1:]
			if ok, more, err := add(c); !ok {
				return false, more, err
			}
		}
		return true, true, nil
	}
	for c, err := range b.Registrar.UsageList(ctx, prefix, after) {
		if err != nil {
			return last, false, err
		}
		if ok, more, err := before(c.Name); !ok {
			return last, more, err
		}
		if a := p.next(); a != nil && a.cell == c.Name {
			if value, fault := a.add(c.Value); fault == nil { // otherwise the caller sees that the cell is damaged
				c.Value = value
			}
			p.list = p.list[1:]
		}
		if ok, more, err := add(c); !ok {
			return last, more, err
		}
	}
	if ok, more, err := before(""); !ok {
		return last, more, err
	}
	same, more, err := flush()
	return last, more && !same, err
}

// pending reads the journals of all servers.
func (b *Book) pending(ctx context.Context, prefix, after string) (*pending, error) {
	list := b.Registrar.UsageList
	for {
		servers, err := journalServers(ctx, list)
		if err != nil {
			return nil, err
		}
		p := &pending{heads: make(map[string][]byte)}
		var r records
		r.forget()
		seed := maphash.MakeSeed()
		for _, server := range servers {
			if err := b.readJournal(ctx, p, server, prefix, after, func(l *journalLine) { r.gather(seed, l) }); err != nil {
				return nil, err
			}
		}
		if same, err := b.isSame(ctx, p); err != nil {
			return nil, err
		} else if same {
			p.cells = r.sort(rolledMonth(b.Registrar.Now()))
			return p, nil
		}
	}
}

// readJournal calls a function for each line that is not in its cell.
func (b *Book) readJournal(ctx context.Context, p *pending, server, prefix, after string, line func(*journalLine)) error {
	seen, err := b.Registrar.UsageCell(ctx, headCells+server)
	if err != nil {
		return err
	}
	head, err := readHead(seen)
	if err != nil {
		return err
	}
	p.heads[server] = seen
	var scratch []byte
	damaged := 0
	for c, err := range b.Registrar.UsageList(ctx, journalCells+server, "") {
		if err != nil {
			return err
		}
		_, number, ok := cutPart(c.Name)
		if !ok || head.has(number) {
			continue
		}
		least := after
		if number <= head.until {
			least = max(least, head.after)
		}
		if err := parsePart(c.Value, func(l *journalLine) {
			if !lacks(l, prefix, least, &scratch) {
				line(l)
			}
		}); err != nil {
			b.damaged(&damaged, c.Name, err)
		}
	}
	return nil
}

// isSame reports whether the journals are in the cells as far as they were.
func (b *Book) isSame(ctx context.Context, p *pending) (bool, error) {
	for server, seen := range p.heads {
		have, err := b.Registrar.UsageCell(ctx, headCells+server)
		if err != nil || !bytes.Equal(have, seen) {
			return false, err
		}
	}
	return true, nil
}
