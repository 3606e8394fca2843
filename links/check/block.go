package check

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
)

// What is known of targets stands in blocks: cells with the states of some targets each, since a row of a database takes about 100 bytes beside
// what it has. A target has a place: the part of the turn in which it is due, and its key. A block has all places from its low bound, which
// it keeps, to its high bound, which is its name, so that the block of a place is the first one whose name comes after it. The last one is named
// lastBlock. A block that grows too large is cut: all but the last part get new names, in the same commit. So every change of what is at a place changes
// the block that had the place before, and of two writers the second one is refused and tries again.
const lastBlock = "~" // comes after all places

// maxBlock is how many bytes a block has at most, unless it has one target: a larger row is stored in another way by PostgreSQL.
const maxBlock = 1600

// blockForm is the number of the stored form of a block. Later versions of this program may have others, up to lastForm: what they wrote is refused, and stays as it
// is. A block that begins with another byte is damaged.
const (
	blockForm = 1
	lastForm  = 31
)

// isLater reports whether a later version of this program wrote a block.
func isLater(b []byte) bool { return len(b) > 0 && b[0] > blockForm && b[0] <= lastForm }

func errLater() error {
	return stele.Errorf("check links", stele.ID{}, stele.Unavailable, "links.later-form", "a later version of this program keeps what is known of links; use that version on all servers")
}

// place returns where the state of a target stands.
func (k key) place() string {
	return fmt.Sprintf("%04x%s", slotOf(time.Unix(k.turn(), 0)), k)
}

// state is what is known of a target, as it is stored.
type state struct {
	place string
	value []byte
}

// key returns the target.
func (s *state) key() key { return key(s.place[min(4, len(s.place)):]) }

// block is a block that is read, and perhaps changed.
type block struct {
	name   string // of the cell
	before []byte // its value; nil: there is none
	low    string
	states []state // by place
	dirty  bool
	gone   bool // the next one has its places
}

// split returns the part of the turn and the key of a place: those that follow each other have the beginnings of both in common.
func split(place string) (part, key string) {
	n := min(4, len(place))
	return place[:n], place[n:]
}

// shared returns how many bytes two texts have in common at their beginnings.
func shared(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// appendPlace appends a place as what it has beyond another one.
func appendPlace(b []byte, before, place string) []byte {
	part, key := split(place)
	partBefore, keyBefore := split(before)
	n, m := shared(partBefore, part), shared(keyBefore, key)
	b = append(append(b, byte(n<<4|len(part)-n)), part[n:]...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m)), uint64(len(key)-m))
	return append(b, key[m:]...)
}

// appendBlock appends the stored form of a block.
func appendBlock(b []byte, low string, states []state) []byte {
	b = appendPlace(append(b, blockForm), "", low)
	last := low
	for i := range states {
		b = appendPlace(b, last, states[i].place)
		b = append(binary.AppendUvarint(b, uint64(len(states[i].value))), states[i].value...)
		last = states[i].place
	}
	return b
}

// readBlock reads the stored form of a block. What comes before damage is returned too.
func readBlock(b []byte) (low string, states []state, ok bool) {
	if len(b) == 0 || b[0] != blockForm {
		return "", nil, false
	}
	b = b[1:]
	number := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > stele.MaxCell {
			b = nil
			return -1
		}
		b = b[size:]
		return int(n)
	}
	take := func(before string, shared, rest int) (string, bool) {
		if shared < 0 || shared > len(before) || rest < 0 || rest > len(b) {
			return "", false
		}
		t := before[:shared] + string(b[:rest])
		b = b[rest:]
		return t, len(t) <= stele.MaxCellName
	}
	text := func(before string) (string, bool) {
		if len(b) == 0 {
			return "", false
		}
		partBefore, keyBefore := split(before)
		head := b[0]
		b = b[1:]
		part, ok := take(partBefore, int(head>>4), int(head&0xf))
		if !ok {
			return "", false
		}
		key, ok := take(keyBefore, number(), number())
		return part + key, ok && (len(part) == 4 || key == "")
	}
	if low, ok = text(""); !ok {
		return "", nil, false
	}
	for last := low; len(b) > 0; {
		place, ok := text(last)
		size := number()
		if !ok || size < 0 || size > len(b) || len(states) > 0 && place <= last || place < low {
			return low, states, false
		}
		states = append(states, state{place, slices.Clone(b[:size])})
		b, last = b[size:], place
	}
	return low, states, true
}

// has reports whether a place is one of the block.
func (bl *block) has(place string) bool {
	return bl.low <= place && place < strings.TrimPrefix(bl.name, blockCells)
}

// find returns where the state of a place is, or would be.
func (bl *block) find(place string) (int, bool) {
	return slices.BinarySearchFunc(bl.states, place, func(s state, p string) int { return strings.Compare(s.place, p) })
}

// locate reads the block of a place; one without a value if there is none yet. It looks near the place first, so that a store need not read many.
func (c *Checker) locate(ctx context.Context, place string) (*block, error) {
	for range keepTries {
		bl := &block{name: blockCells + lastBlock}
		for n := min(4, len(place)); n >= 0 && bl.before == nil; n-- {
			for cell, err := range c.o.Registrar.CheckList(asServer(ctx), blockCells+place[:n], blockCells+place) {
				if err != nil {
					return nil, err
				}
				bl.name, bl.before = cell.Name, cell.Value
				break
			}
		}
		if bl.before == nil {
			return bl, nil
		}
		if isLater(bl.before) {
			return nil, errLater()
		}
		ok := false
		if bl.low, bl.states, ok = readBlock(bl.before); !ok {
			c.logDamaged(bl.name)
			bl.dirty = true // it is written anew, with what can be read
			var err error
			bl.low, err = c.lowOf(ctx, bl.name)
			return bl, err
		}
		if bl.has(place) {
			return bl, nil
		} // another server cut the block meanwhile
	}
	return nil, stele.Errorf("check links", stele.ID{}, stele.Conflict, "links.blocks-change", "what is known of links changes too often at the moment; try again")
}

// lowOf returns the low bound of a block that is damaged: the high one of the block before.
func (c *Checker) lowOf(ctx context.Context, name string) (low string, err error) {
	for cell, err := range c.o.Registrar.CheckList(asServer(ctx), blockCells, "") {
		if err != nil || cell.Name >= name {
			return low, err
		}
		low = strings.TrimPrefix(cell.Name, blockCells)
	}
	return low, nil
}

// block returns the block of a place for a change.
func (b *batch) block(ctx context.Context, place string) (*block, error) {
	for _, bl := range b.blocks {
		if !bl.gone && bl.has(place) {
			return bl, nil
		}
	}
	bl, err := b.c.locate(ctx, place)
	if err != nil {
		return nil, err
	}
	if known := b.blocks[bl.name]; known != nil {
		return known, nil
	}
	if bl.dirty {
		b.damaged = true
	}
	b.blocks[bl.name] = bl
	return bl, nil
}

// state returns the value that is kept of a target; nil if there is none. What was kept by an earlier version, in a cell of its own, counts until it
// is converted.
func (b *batch) state(ctx context.Context, k key) ([]byte, error) {
	bl, err := b.block(ctx, k.place())
	if err != nil {
		return nil, err
	}
	if i, ok := bl.find(k.place()); ok {
		return bl.states[i].value, nil
	}
	return b.read(ctx, k.state())
}

// setState keeps what is known of a target; nil removes it.
func (b *batch) setState(ctx context.Context, k key, value []byte) error {
	if err := b.set(ctx, k.state(), nil); err != nil {
		return err
	}
	bl, err := b.block(ctx, k.place())
	if err != nil {
		return err
	}
	i, ok := bl.find(k.place())
	switch {
	case value == nil && !ok:
		return nil
	case value == nil:
		bl.states = slices.Delete(bl.states, i, i+1)
	case ok:
		bl.states[i].value = value
	default:
		bl.states = slices.Insert(bl.states, i, state{k.place(), value})
	}
	bl.dirty = true
	return nil
}

// cut cuts states into parts that a block can have.
func cut(states []state) (parts [][]state) {
	size := len(appendBlock(nil, "", states))
	if size <= maxBlock || len(states) < 2 {
		return [][]state{states}
	}
	n := max(2, (size*4/3+maxBlock-1)/maxBlock)
	n = min(n, len(states))
	for i := range n {
		parts = append(parts, states[i*len(states)/n:(i+1)*len(states)/n])
	}
	return parts
}

// cells returns the cells of a block, cut if it is too large.
func (bl *block) cells() (list []stele.Cell) {
	low := bl.low
	parts := cut(bl.states)
	for i, part := range parts {
		name := strings.TrimPrefix(bl.name, blockCells)
		if i < len(parts)-1 {
			name = part[len(part)-1].place + "!" // which comes after the last place of the part, and before all others
		}
		list = append(list, stele.Cell{Name: blockCells + name, Value: appendBlock(nil, low, part)})
		low = name
	}
	return list
}

// flushBlocks adds what became of the blocks to the changes of the batch. The places of a block without states become those of the next one.
func (b *batch) flushBlocks(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(b.blocks)) {
		bl := b.blocks[name]
		if !bl.dirty || len(bl.states) > 0 || bl.before == nil || name == blockCells+lastBlock {
			continue
		}
		next, err := b.block(ctx, strings.TrimPrefix(name, blockCells))
		if err != nil {
			return err
		}
		if next.before == nil {
			continue // it is there in no stored state; the block stays, without states
		}
		next.low, next.dirty, bl.gone = bl.low, true, true
	}
	for _, name := range slices.Sorted(maps.Keys(b.blocks)) {
		bl := b.blocks[name]
		switch {
		case !bl.dirty:
		case bl.gone, len(bl.states) == 0 && bl.low == "" && name == blockCells+lastBlock:
			if bl.before != nil {
				b.list = append(b.list, stele.CellChange{Name: name, Before: bl.before})
			}
		default:
			for _, c := range bl.cells() {
				change := stele.CellChange{Name: c.Name, After: c.Value}
				if c.Name == name {
					change.Before = bl.before
				}
				b.list = append(b.list, change)
			}
		}
	}
	if !b.damaged {
		return nil
	}
	// The names of which the state is lost are found by reading their namespaces anew.
	for c, err := range b.c.o.Registrar.CheckList(asServer(ctx), enrolCells, "") {
		if err != nil {
			return err
		}
		if err := b.set(ctx, c.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// states yields what is known of targets with places from one to another, and reads no blocks but theirs. It calls damaged with a place of a block that is damaged.
func (c *Checker) states(ctx context.Context, from, to string, damaged func(place string)) iter.Seq2[state, error] {
	return func(yield func(state, error) bool) {
		before := from // the high bound of the block before: a damaged one begins there, whatever can be read of it
		for cell, err := range c.o.Registrar.CheckList(asServer(ctx), blockCells, blockCells+from) {
			if err != nil {
				yield(state{}, err)
				return
			}
			if isLater(cell.Value) {
				yield(state{}, errLater())
				return
			}
			low, states, ok := readBlock(cell.Value)
			if !ok {
				c.logDamaged(cell.Name)
				damaged(max(before, low))
			}
			before = strings.TrimPrefix(cell.Name, blockCells)
			for _, s := range states {
				if s.place < from {
					continue
				}
				if s.place > to || !yield(s, nil) {
					return
				}
			}
			if strings.TrimPrefix(cell.Name, blockCells) > to {
				return
			}
		}
	}
}

// convertAtOnce is how many states of earlier versions are converted before the next answer is taken.
const convertAtOnce = 5000

// convert puts what an earlier version kept, in a cell for each target, into blocks.
func (w *worker) convert(ctx context.Context) error {
	for done := 0; !w.converted && done < convertAtOnce; done += atOnce {
		var list []stele.Cell
		for cell, err := range w.o.Registrar.CheckList(asServer(ctx), stateCells, "") {
			if err != nil {
				return err
			}
			if list = append(list, cell); len(list) == atOnce {
				break
			}
		}
		w.converted = len(list) == 0
		err := w.keep(ctx, w.lease, func(b *batch) error {
			for _, cell := range list {
				k := parseState(cell.Name)
				if err := b.convert(ctx, k, cell); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) convert(ctx context.Context, k key, cell stele.Cell) error {
	value, err := b.read(ctx, cell.Name)
	if err != nil || value == nil {
		return err
	}
	if _, _, err := k.parse(); err != nil || k.state() != cell.Name {
		b.c.logDamaged(cell.Name)
		return b.set(ctx, cell.Name, nil)
	}
	bl, err := b.block(ctx, k.place())
	if err != nil {
		return err
	}
	if i, ok := bl.find(k.place()); ok { // servers of both versions were at work; what is newer counts
		old, bad := links.ReadStatus(value)
		now, fault := links.ReadStatus(bl.states[i].value)
		if bad != nil || fault == nil && !now.Checked.Before(old.Checked) {
			value = bl.states[i].value
		}
	}
	return b.setState(ctx, k, value)
}

// Known is what is known of a target.
type Known struct {
	ID     stele.ID
	Target int
	Status links.Status
}

// Part returns in which part of a turn a name is due, of so many.
func Part(id stele.ID, parts int) int {
	return slotOf(time.Unix(keyOf(id, 0).turn(), 0)) * parts / slots
}

// StateCells returns the cells in which a server keeps what is known of targets, if there are no others. Where they are made part by part, in the order of
// turns, low is where the part before ended, and last says that no part follows; high is where this one ends.
func StateCells(list []Known, low string, last bool) (cells []stele.Cell, high string) {
	bl := &block{name: blockCells + lastBlock, low: low}
	for i := range list {
		bl.states = append(bl.states, state{keyOf(list[i].ID, list[i].Target).place(), list[i].Status.Append(nil)})
	}
	slices.SortFunc(bl.states, func(a, b state) int { return strings.Compare(a.place, b.place) })
	if n := len(bl.states); !last && n == 0 {
		return nil, low
	} else if !last {
		bl.name = blockCells + bl.states[n-1].place + "!"
	}
	return bl.cells(), strings.TrimPrefix(bl.name, blockCells)
}
