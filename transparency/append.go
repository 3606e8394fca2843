package transparency

import (
	"context"
	"io"
	"slices"

	"github.com/stele-id/stele"
)

const (
	// batchLeaves is how many changes are logged with one commit, at most: about a megabyte of cells.
	batchLeaves = 4 * blockLeaves

	// maxOffered bounds the records that wait to be logged, in bytes as a store has them.
	maxOffered = 64 << 20
)

// entry is a change that becomes a leaf.
type entry struct {
	change  stele.Change
	record  *stele.Record // that it made; nil if it was not kept, or is erased, or a namespace changed
	offered bool          // the record was not read from the store
	space   *stele.Namespace
	listed  bool
	seed    seed
	key     Key // of the blinded name

	leaf  Leaf
	kept  kept
	place place
}

// batch is changes that are logged with one commit.
type batch struct {
	list []entry
	err  error
}

// append logs all changes up to one. The feed is read ahead while leaves are made and committed.
func (l *Log) append(ctx context.Context, p *position, last uint64, progress func(*position)) error {
	if p.Size > 0 && p.Mark == (mark{}) {
		return damaged(stateCell)
	}
	reading, stop := context.WithCancel(ctx)
	batches, used := make(chan batch), make(chan []entry, 2)
	go func() {
		defer close(batches)
		l.readAhead(reading, p.Size, p.Mark, last, batches, used)
	}()
	defer func() {
		stop()
		for range batches { // until the goroutine has ended
		}
	}()
	for b := range batches {
		if b.err != nil {
			return b.err
		}
		next, err := l.appendBatch(ctx, p, b.list)
		if err != nil {
			return err
		}
		if p, err = l.tidy(ctx, next); err != nil {
			return err
		}
		progress(p)
		clear(b.list)
		select {
		case used <- b.list:
		default:
		}
	}
	return ctx.Err()
}

// readAhead sends the changes after a size of the log, in batches. The memory of those that were used is used again.
func (l *Log) readAhead(ctx context.Context, size uint64, before mark, last uint64, batches chan<- batch, used <-chan []entry) {
	for size < last {
		var list []entry
		select {
		case list = <-used:
		default:
		}
		// A batch ends where a block does, so that the tiles and the run of the block are written once.
		end := min(last, (size/batchLeaves+1)*batchLeaves)
		list, err := l.entries(ctx, list[:0], size, before, end)
		l.offers.Settle()
		if err == nil {
			size, before = end, markOf(&list[len(list)-1].change)
		}
		select {
		case batches <- batch{list, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// appendBatch logs a batch of changes.
func (l *Log) appendBatch(ctx context.Context, p *position, list []entry) (*position, error) {
	fresh, err := l.secrets(ctx, p, list)
	if err != nil {
		return nil, err
	}
	err = l.makeAll(ctx, list, func(e *entry) error { return l.conceal(ctx, p, fresh, e) })
	if err != nil {
		return nil, err
	}
	next := *p
	next.edge = p.edge.clone()
	leaves := make([]kept, len(list))
	for i := range list {
		leaves[i] = list[i].kept
	}
	changes := next.edge.add(leaves)
	next.Size = next.edge.size
	next.Mark = markOf(&list[len(list)-1].change)
	next.tail = slices.Grow(slices.Clip(p.tail), len(list))
	for i := range list {
		next.tail = append(next.tail, list[i].place)
	}
	runs, err := l.addRuns(ctx, &next)
	if err != nil {
		return nil, err
	}
	if err := l.commit(ctx, p, &next, append(changes, runs...)); err != nil {
		return nil, err
	}
	l.names.learn(list)
	return &next, nil
}

// entries reads the changes after a size of the log up to the last one, and which names are listed. Before them the feed must have the
// change that the log ends with.
func (l *Log) entries(ctx context.Context, list []entry, size uint64, before mark, last uint64) ([]entry, error) {
	listed, err := l.o.Listed(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.Grow(list, int(last-size))
	marked := size == 0
	for c, err := range l.o.Source.Changes(ctx, max(size, 1)-1) {
		if err != nil {
			return nil, err
		}
		if !marked {
			if markOf(&c) != before {
				return nil, otherFeed()
			}
			marked = true
			continue
		}
		e := entry{change: c}
		if c.ID.IsValid() {
			e.listed = listed.ListsID(c.ID)
			e.record = l.offers.Of(&c)
			e.offered = e.record != nil
		} else {
			e.listed = listed.ListsNamespace(c.Namespace)
		}
		if _, name := subject(&c); len(name) > maxLeafName {
			e.listed = false
		}
		if list = append(list, e); c.Seq == last {
			break
		}
	}
	if uint64(len(list)) != last-size {
		return nil, otherFeed()
	}
	return list, nil
}

// content reads what the changes made.
func (l *Log) content(ctx context.Context, list []entry) error {
	var ids []stele.ID
	var at []int
	var spaces map[stele.NamespaceKey][]*entry
	for i := range list {
		e := &list[i]
		switch {
		case e.record != nil:
		case e.change.ID.IsValid():
			ids, at = append(ids, e.change.ID), append(at, i)
		default:
			if spaces == nil {
				spaces = map[stele.NamespaceKey][]*entry{}
			}
			spaces[e.change.Namespace] = append(spaces[e.change.Namespace], e)
		}
	}
	for key, entries := range spaces {
		if err := l.namespaceVersions(ctx, key, entries); err != nil {
			return err
		}
	}
	return l.records(ctx, list, ids, at)
}

// records reads the versions of records that changes made. The current version of each record is read once for all its changes: it may
// have a megabyte, and a thousand versions before it.
func (l *Log) records(ctx context.Context, list []entry, ids []stele.ID, at []int) error {
	const part = 1024
	for len(ids) > 0 {
		n := min(part, len(ids))
		current, err := l.current(ctx, ids[:n])
		if err != nil {
			return err
		}
		for i, id := range ids[:n] {
			if list[at[i]].record, err = l.recordVersion(ctx, current[id], id, list[at[i]].change.Version); err != nil {
				return err
			}
		}
		ids, at = ids[n:], at[n:]
	}
	return nil
}

// current returns the current versions of records.
func (l *Log) current(ctx context.Context, ids []stele.ID) (map[stele.ID]*stele.Record, error) {
	current := make(map[stele.ID]*stele.Record, len(ids))
	once := make([]stele.ID, 0, len(ids))
	for _, id := range ids {
		if _, ok := current[id]; !ok {
			current[id], once = nil, append(once, id)
		}
	}
	if many, ok := l.o.Source.(stele.Gatherer); ok {
		records, err := many.Gather(ctx, once)
		for i, rec := range records {
			current[once[i]] = rec
		}
		return current, err
	}
	for _, id := range once {
		rec, err := l.o.Source.Record(ctx, id)
		if err != nil && stele.KindOf(err) != stele.NotFound {
			return nil, err
		}
		current[id] = rec
	}
	return current, nil
}

// recordVersion returns a version of a record, given the current one; nil if it was erased.
func (l *Log) recordVersion(ctx context.Context, current *stele.Record, id stele.ID, version uint64) (*stele.Record, error) {
	if current == nil || current.ID != id || current.Version < version {
		return nil, &stele.Error{Op: opLog, ID: id, Kind: stele.Unavailable, Err: stele.Messagef("log.record-earlier-than-feed", "a record that the log reads is earlier than its change; trying again")}
	}
	switch {
	case current.Withheld.Erased >= version:
		return nil, nil
	case current.Version == version:
		return current, nil
	}
	rec, err := l.o.Source.Version(ctx, id, version)
	if err != nil {
		return nil, err
	}
	if rec.Redacted { // it may have been erased since the current version was read
		if current, err = l.o.Source.Record(ctx, id); err != nil {
			return nil, err
		}
		if current.Withheld.Erased >= version {
			return nil, nil
		}
	}
	return rec, nil
}

// namespaceVersions reads the versions of a namespace that changes made, which come in their order; it leaves out those that were not kept. The history,
// which begins with the last version, is read once for all of them: a namespace may have changed many times.
func (l *Log) namespaceVersions(ctx context.Context, key stele.NamespaceKey, list []*entry) error {
	for ns, err := range l.o.Source.NamespaceHistory(ctx, key) {
		if err != nil {
			return err
		}
		for len(list) > 0 && list[len(list)-1].change.Version > ns.Version { // it was not kept
			list = list[:len(list)-1]
		}
		if len(list) == 0 {
			break
		}
		if e := list[len(list)-1]; e.change.Version == ns.Version {
			e.space = ns
			list = list[:len(list)-1]
		}
	}
	return nil
}

// secrets gives each entry its seed, and the key of its blinded name. It returns the keys of names whose first version is in the batch, if
// the batch has later ones of any name.
func (l *Log) secrets(ctx context.Context, p *position, list []entry) (fresh map[subjectKey]Key, err error) {
	random := make([]byte, len(list)*len(seed{}))
	if _, err := io.ReadFull(l.o.Random, random); err != nil {
		return nil, &stele.Error{Op: opLog, Kind: stele.Unavailable, Err: err}
	}
	if slices.ContainsFunc(list, func(e entry) bool { return e.change.Version > 1 }) {
		fresh = map[subjectKey]Key{}
	}
	for i := range list {
		e := &list[i]
		copy(e.seed[:], random[i*len(seed{}):])
		if fresh != nil && e.change.Version == 1 {
			kind, name := subject(&e.change)
			fresh[subjectKey{kind, name}] = e.seed.nameKey()
		}
		if e.listed {
			continue
		}
		if err := l.setKey(ctx, p, fresh, e); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// setKey gives an entry the key of its blinded name.
func (l *Log) setKey(ctx context.Context, p *position, fresh map[subjectKey]Key, e *entry) (err error) {
	if e.change.Version == 1 {
		e.key = e.seed.nameKey()
		return nil
	}
	kind, name := subject(&e.change)
	e.key, err = l.nameKey(ctx, p, fresh, kind, name)
	return err
}

// conceal blinds the name of a record that the public does not see in this version, although its namespace is listed: a reserved name, or one
// that is restricted to some readers. Of a version that was erased before it was logged that is not known, and its name is blinded too.
func (l *Log) conceal(ctx context.Context, p *position, fresh map[subjectKey]Key, e *entry) error {
	if !e.listed || !e.change.ID.IsValid() || e.record != nil && e.record.State != stele.Reserved && e.record.IsPublic() {
		return nil
	}
	e.listed = false
	return l.setKey(ctx, p, fresh, e)
}
