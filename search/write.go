package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// commit writes a part of a job, together with the position after it.
func (x *Index) commit(j *job, p part) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return refuse(stele.Unavailable, "search.index-closed", "the search index is closed")
	}
	if b := x.broken.Load(); b != nil {
		return b.why
	}
	w := &writing{index: x, before: x.at.Load(), dead: make(map[uint32][]uint16)}
	w.after = *w.before
	w.after.mark = p.end
	var err error
	switch {
	case j.space.Prefix != "":
		err = w.space(j.space)
	case p.built != nil && len(p.built.docs) >= x.tables:
		err = w.tables(p.built)
	default:
		err = w.batch(p.built)
	}
	if err != nil {
		return err
	}
	x.unflushed = true
	x.spaces.Store(j.spaces)
	x.at.Store(&w.after)
	return nil
}

// writing is a commit under way.
type writing struct {
	index  *Index
	before *position
	after  position
	dead   map[uint32][]uint16 // by block
}

// bury finds the documents that those of a part replace.
func (w *writing) bury(b *builder) error {
	w.after.documents += uint64(len(b.docs))
	var key []byte
	for i := range b.docs {
		d := &b.docs[i]
		if d.first {
			continue
		}
		key = appendName(append(key[:0], familyName), d.id.Scheme(), d.id.String())
		value, err := w.index.value(key)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		old, n := binary.Uvarint(value)
		if n <= 0 {
			return errDamaged
		}
		w.dead[uint32(old>>blockBits)] = append(w.dead[uint32(old>>blockBits)], uint16(old))
		w.after.dead++
	}
	return nil
}

// writeDead calls add with the dead documents by block, in order.
func (w *writing) writeDead(add func(key, value []byte) error) error {
	blocks := make([]uint32, 0, len(w.dead))
	for block := range w.dead {
		blocks = append(blocks, block)
	}
	slices.Sort(blocks)
	for _, block := range blocks {
		list := w.dead[block]
		slices.Sort(list)
		if err := add(appendBlock(nil, familyDead, block), appendSet(nil, list)); err != nil {
			return err
		}
	}
	return nil
}

// batch writes a small part.
func (w *writing) batch(b *builder) error {
	batch := w.index.db.NewBatch()
	defer batch.Close()
	merge := func(key, value []byte) error { return batch.Merge(key, value, nil) }
	if b != nil {
		if err := w.bury(b); err != nil {
			return err
		}
		if err := errors.Join(b.write(false, merge), w.writeDead(merge)); err != nil {
			return err
		}
		for i := range b.docs {
			d := &b.docs[i]
			if err := batch.Set(appendName([]byte{familyName}, d.id.Scheme(), d.id.String()), binary.AppendUvarint(nil, d.number), nil); err != nil {
				return err
			}
		}
	}
	if err := batch.Set(keyPosition, w.after.append(nil), nil); err != nil {
		return err
	}
	return batch.Commit(pebble.NoSync)
}

// space makes the prefix of a namespace a term of all documents whose names begin with it.
func (w *writing) space(key stele.NamespaceKey) error {
	from := appendName([]byte{familyName}, key.Scheme, key.Prefix)
	it, err := w.index.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: upper(from)})
	if err != nil {
		return err
	}
	found := make(map[uint32][]uint16)
	for ok := it.First(); ok; ok = it.Next() {
		number, n := binary.Uvarint(it.Value())
		if n <= 0 {
			return errors.Join(errDamaged, it.Close())
		}
		found[uint32(number>>blockBits)] = append(found[uint32(number>>blockBits)], uint16(number))
	}
	if err := it.Close(); err != nil {
		return err
	}
	batch := w.index.db.NewBatch()
	defer batch.Close()
	for block, list := range found {
		slices.Sort(list)
		at := appendFilter(appendBlock(nil, familyBlock, block), filterPrefix, key.Scheme+"\x00"+key.Prefix)
		if err := batch.Merge(at, appendSet(nil, list), nil); err != nil {
			return err
		}
	}
	err = errors.Join(batch.Set(appendName([]byte{familySpace}, key.Scheme, key.Prefix), nil, nil), batch.Set(keyPosition, w.after.append(nil), nil))
	if err != nil {
		return err
	}
	return batch.Commit(pebble.NoSync)
}

// tables writes a large part as sorted tables, one for each family, so that each covers no more
// keys than it must: those of a new block overlap no other, and Pebble never merges them.
// Pebble takes in all of them or none.
func (w *writing) tables(b *builder) error {
	if err := w.bury(b); err != nil {
		return err
	}
	x := w.index
	folder := x.fs.PathJoin(x.o.Folder, "tables")
	if err := x.fs.RemoveAll(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := x.fs.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	isNew := w.before.mark.Seq == 0 || uint32(w.before.mark.Seq>>blockBits) < b.block
	var paths []string
	var errs [4]error
	var work sync.WaitGroup
	table := func(i int, fill func(t *sstable.Writer) error) {
		path := x.fs.PathJoin(folder, fmt.Sprintf("%d.sst", i))
		paths = append(paths, path)
		work.Go(func() { errs[i] = x.writeTable(path, fill) })
	}
	table(0, func(t *sstable.Writer) error { return t.Set(keyPosition, w.after.append(nil)) })
	table(1, func(t *sstable.Writer) error { return writeNames(t, b.docs) })
	table(2, func(t *sstable.Writer) error {
		if isNew {
			return b.write(true, t.Set)
		}
		return b.write(false, t.Merge)
	})
	if len(w.dead) > 0 {
		table(3, func(t *sstable.Writer) error { return w.writeDead(t.Merge) })
	}
	work.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return x.db.Ingest(context.Background(), paths)
}

// writeNames writes the documents by name.
func writeNames(t *sstable.Writer, docs []document) error {
	var key, value []byte
	for _, i := range byName(docs) {
		d := &docs[i]
		key = appendName(append(key[:0], familyName), d.id.Scheme(), d.id.String())
		value = binary.AppendUvarint(value[:0], d.number)
		if err := t.Set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// byName returns the places of documents in the order of their names. The names of a part begin
// alike as a rule, so the bytes after that are their heads.
func byName(docs []document) []uint32 {
	alike := 0
	if len(docs) > 0 {
		alike = commonPrefix(docs)
	}
	s := sorter{items: make([]headed, len(docs))}
	for i := range docs {
		s.items[i].n = uint32(i)
		if alike >= 0 {
			s.items[i].head = headOf(docs[i].id.String()[alike:])
		}
	}
	return s.sort(make([]uint32, 0, len(docs)), func(a, b uint32) int { return docs[a].id.Compare(docs[b].id) })
}

// commonPrefix returns with how many bytes all names begin alike; -1 if they have several schemes.
func commonPrefix(docs []document) int {
	scheme, alike := docs[0].id.Scheme(), docs[0].id.String()
	for i := range docs {
		if docs[i].id.Scheme() != scheme {
			return -1
		}
		text := docs[i].id.String()
		n := 0
		for n < len(alike) && n < len(text) && alike[n] == text[n] {
			n++
		}
		alike = alike[:n]
	}
	return len(alike)
}

// writeTable writes one table.
func (x *Index) writeTable(path string, fill func(*sstable.Writer) error) error {
	f, err := x.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	t := sstable.NewWriter(objstorageprovider.NewFileWritable(f), x.pebbleOptions().MakeWriterOptions(6, pebbleFormat.MaxTableFormat()))
	return errors.Join(fill(t), t.Close())
}
