package transparency

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stele-id/stele"
)

// Erase returns the changes of cells that belong to the commit that erases the versions of a record up to one: of each leaf its
// text is kept, with its digests, and its seed is removed, so that nothing proves any more what the content was. The leaves
// stay. If the log has not come to them yet, Erase lets it catch up.
func (l *Log) Erase(ctx context.Context, id stele.ID, upTo uint64) ([]stele.CellChange, error) {
	if err := l.CatchUp(ctx, nil); err != nil {
		return nil, err
	}
	p, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	m := l.makers.Get().(*maker)
	defer l.makers.Put(m)
	tiles := map[string][]byte{} // as they are
	var cells, after []stele.CellChange
	for version := uint64(1); version <= upTo; version++ {
		leaf, c, err := l.find(ctx, p, KindRecord, id.String(), version)
		if err != nil {
			return nil, err
		}
		name := tileCell(0, leaf/tileWidth)
		if tiles[name] == nil {
			value, err := l.o.Cells.LogCell(ctx, name)
			if err != nil {
				return nil, err
			}
			if leavesIn(value) <= int(leaf%tileWidth) {
				return nil, damaged(name)
			}
			tiles[name] = value
			after = append(after, stele.CellChange{Name: name, Before: value, After: slices.Clone(value)})
		}
		at := slices.IndexFunc(after, func(c stele.CellChange) bool { return c.Name == name })
		k := readKept(after[at].After, int(leaf%tileWidth))
		if k.flags&flagErased != 0 {
			continue
		}
		list := []entry{{change: c, kept: k}}
		if err := l.content(ctx, list); err != nil {
			return nil, err
		}
		e := &list[0]
		if err := l.again(ctx, p, m, e, leaf); err != nil {
			return nil, err
		}
		was := erased{Leaf: string(e.leaf.Append(nil)), Key: e.key}
		if version == 1 {
			was.Key = k.seed.nameKey()
		}
		text, err := json.Marshal(was)
		if err != nil {
			return nil, err
		}
		cells = append(cells, stele.CellChange{Name: erasedCell(leaf), After: text})
		appendKept(after[at].After[:1+int(leaf%tileWidth)*leafSize], &kept{flags: k.flags | flagErased, hash: k.hash})
	}
	return append(cells, after...), nil
}
