package transparency

import (
	"context"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/stele-id/stele"
)

// batchLeaves is how many changes are logged with one commit, at most: less than a megabyte of cells.
const batchLeaves = 4 * blockLeaves

// entry is a change that becomes a leaf.
type entry struct {
	change stele.Change
	record *stele.Record // that it made; nil if it was not kept, or is erased, or a namespace changed
	space  *stele.Namespace
	listed bool
	seed   seed
	key    Key // of the blinded name

	leaf  Leaf
	kept  kept
	place place
	err   error
}

// append logs the next batch of changes.
func (l *Log) append(ctx context.Context, p *position, last uint64) error {
	if p.Size > 0 && p.Mark == (mark{}) {
		return damaged(stateCell)
	}
	list, err := l.entries(ctx, p, min(last, p.Size+batchLeaves))
	if err != nil {
		return err
	}
	if err := l.content(ctx, list); err != nil {
		return err
	}
	if err := l.secrets(ctx, p, list); err != nil {
		return err
	}
	if err := eachOf(list, func(e *entry) { e.make() }); err != nil {
		return err
	}
	next := *p
	next.edge = p.edge.clone()
	leaves := make([]kept, len(list))
	places := make([]place, len(list))
	for i := range list {
		leaves[i], places[i] = list[i].kept, list[i].place
	}
	changes := next.edge.add(leaves)
	next.Size = next.edge.size
	next.Mark = markOf(&list[len(list)-1].change)
	next.tail = append(p.tail[:len(p.tail):len(p.tail)], places...)
	if err := l.commit(ctx, p, &next, changes); err != nil {
		return err
	}
	l.names.learn(list)
	return nil
}

// entries reads changes, and which names are listed.
func (l *Log) entries(ctx context.Context, p *position, last uint64) ([]entry, error) {
	listed, err := l.o.Listed(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]entry, 0, last-p.Size)
	marked := p.Size == 0
	for c, err := range l.o.Source.Changes(ctx, max(p.Size, 1)-1) {
		if err != nil {
			return nil, err
		}
		if !marked {
			if markOf(&c) != p.Mark {
				return nil, otherFeed()
			}
			marked = true
			continue
		}
		e := entry{change: c}
		if c.ID.IsValid() {
			e.listed = listed.ListsID(c.ID)
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
	if uint64(len(list)) != last-p.Size {
		return nil, otherFeed()
	}
	return list, nil
}

// content reads what the changes made.
func (l *Log) content(ctx context.Context, list []entry) error {
	ids := make([]stele.ID, 0, len(list))
	at := make([]int, 0, len(list))
	for i := range list {
		e := &list[i]
		if e.change.ID.IsValid() {
			ids, at = append(ids, e.change.ID), append(at, i)
			continue
		}
		var err error
		if e.space, err = l.namespaceVersion(ctx, e.change.Namespace, e.change.Version); err != nil {
			return err
		}
	}
	return l.records(ctx, list, ids, at)
}

// records reads the versions of records that changes made.
func (l *Log) records(ctx context.Context, list []entry, ids []stele.ID, at []int) error {
	many, ok := l.o.Source.(stele.Gatherer)
	const part = 1024
	for len(ids) > 0 {
		n := min(part, len(ids))
		var current []*stele.Record
		var err error
		if ok {
			if current, err = many.Gather(ctx, ids[:n]); err != nil {
				return err
			}
		}
		for i, id := range ids[:n] {
			var now *stele.Record
			if ok {
				now = current[i]
			} else if now, err = l.o.Source.Record(ctx, id); err != nil && stele.KindOf(err) != stele.NotFound {
				return err
			}
			if list[at[i]].record, err = l.recordVersion(ctx, now, id, list[at[i]].change.Version); err != nil {
				return err
			}
		}
		ids, at = ids[n:], at[n:]
	}
	return nil
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

// namespaceVersion returns a version of a namespace; nil if it was not kept.
func (l *Log) namespaceVersion(ctx context.Context, key stele.NamespaceKey, version uint64) (*stele.Namespace, error) {
	for ns, err := range l.o.Source.NamespaceHistory(ctx, key) {
		if err != nil {
			return nil, err
		}
		if ns.Version <= version {
			if ns.Version == version {
				return ns, nil
			}
			break
		}
	}
	return nil, nil
}

// secrets gives each entry its seed, and the key of its blinded name.
func (l *Log) secrets(ctx context.Context, p *position, list []entry) error {
	random := make([]byte, len(list)*len(seed{}))
	if _, err := io.ReadFull(l.o.Random, random); err != nil {
		return &stele.Error{Op: opLog, Kind: stele.Unavailable, Err: err}
	}
	var fresh map[subjectKey]Key // of names whose first version is in the batch
	if slices.ContainsFunc(list, func(e entry) bool { return e.change.Version > 1 }) {
		fresh = map[subjectKey]Key{}
	}
	for i := range list {
		e := &list[i]
		copy(e.seed[:], random[i*len(seed{}):])
		if e.change.Version > 1 && e.listed {
			continue
		}
		kind, name := subject(&e.change)
		var err error
		if e.change.Version > 1 {
			e.key, err = l.nameKey(ctx, p, fresh, kind, name)
		} else if e.key = e.seed.nameKey(); fresh != nil {
			fresh[subjectKey{kind, name}] = e.key
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// make makes the leaf.
func (e *entry) make() {
	kind, name := subject(&e.change)
	e.place = place{placeHash(kind, name, e.change.Version), e.change.Seq - 1}
	e.leaf = Leaf{Kind: kind, Name: name, Version: e.change.Version, At: e.change.At}
	if e.listed {
		e.kept.flags |= flagListed
	} else {
		e.leaf.Name, e.leaf.Blind = "", Blind(e.key, kind, name)
	}
	if d, ok := e.documents(); ok {
		e.kept.flags |= flagNoted
		e.leaf.digest(&e.seed, &d)
	}
	e.kept.seed, e.kept.hash = e.seed, e.leaf.Hash()
}

// digest fills in the digests.
func (l *Leaf) digest(s *seed, d *documents) {
	l.Form = leafForm
	l.Public, l.Full = Digest(s.publicSalt(), d.public), Digest(s.fullSalt(), d.full)
}

// documents returns the two documents of the version. False if there are none: the version was not kept, or was
// erased, or has a text that is not UTF-8, which an earlier program may have let in.
func (e *entry) documents() (d documents, ok bool) {
	var err error
	switch {
	case e.record != nil:
		d, err = recordDocuments(e.record)
	case e.space != nil:
		d, err = namespaceDocuments(e.space)
	default:
		return d, false
	}
	return d, err == nil
}

// eachOf calls do for each entry, by several goroutines.
func eachOf(list []entry, do func(*entry)) error {
	workers := min(runtime.GOMAXPROCS(0), 8, (len(list)+63)/64)
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := w * len(list) / workers; i < (w+1)*len(list)/workers; i++ {
				do(&list[i])
			}
		})
	}
	work.Wait()
	for i := range list {
		if list[i].err != nil {
			return list[i].err
		}
	}
	return nil
}
