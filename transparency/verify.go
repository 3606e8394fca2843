package transparency

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/fault"
)

// Verify checks the log against the registry: that each leaf is what the feed and the versions give, that the tiles have the
// hashes of those below, that each leaf is found by its name, and that the last checkpoint is that of the log. It calls report
// for each that is not so. Changes that the log has not come to yet are not a problem.
func (l *Log) Verify(ctx context.Context, report func(*stele.Message)) error {
	return l.VerifyProgress(ctx, report, func(float64) {})
}

// VerifyProgress is Verify for a caller that shows progress: progress is called now and then with the part of the work that is done, from 0
// to 1.
func (l *Log) VerifyProgress(ctx context.Context, report func(*stele.Message), progress func(done float64)) error {
	p, err := l.load(ctx)
	if err != nil {
		if stele.KindOf(err) != stele.Internal {
			return err
		}
		report(stele.Messagef("log.state-damaged", "The log can't be read: {cause}.", err))
		return nil
	}
	if p.Size == 0 {
		return nil
	}
	if err := l.checkMark(ctx, p); err != nil {
		if stele.KindOf(err) != stele.Internal {
			return err
		}
		report(stele.Messagef("log.feed-other-than-log", "The log does not belong to this change feed: change {change} is another one.", p.Size))
		return nil
	}
	if err := l.verifyLeaves(ctx, p, report, progress); err != nil {
		return err
	}
	return l.verifyTiles(ctx, p, report)
}

// groupTiles is how many tiles of leaves are checked together: the index has some leaves of each in one cell.
const groupTiles = 32

// verifyLeaves checks the leaves, on all processors.
func (l *Log) verifyLeaves(ctx context.Context, p *position, report func(*stele.Message), progress func(done float64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tiles := (p.Size + tileWidth - 1) / tileWidth
	var mu sync.Mutex // around what follows
	var next uint64   // tile
	var failed error
	tell := func(m *stele.Message) {
		mu.Lock()
		defer mu.Unlock()
		report(m)
	}
	take := func(err error) (first uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil && failed == nil {
			failed = err
			cancel()
		}
		if failed != nil || next >= tiles {
			return 0, false
		}
		first, next = next, next+groupTiles
		progress(float64(first) / float64(tiles))
		return first, true
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var err error
			for first, ok := take(nil); ok; first, ok = take(err) {
				err = l.tryGroup(ctx, p, first, min(first+groupTiles, tiles), tell)
			}
		})
	}
	workers.Wait()
	return failed
}

// tryGroup is verifyGroup, with an error in place of a panic.
func (l *Log) tryGroup(ctx context.Context, p *position, from, end uint64, report func(*stele.Message)) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fault.Error("verify", panicked)
		}
	}()
	return l.verifyGroup(ctx, p, from, end, report)
}

// verifyGroup checks the leaves of some tiles that follow each other, from one to before another.
func (l *Log) verifyGroup(ctx context.Context, p *position, from, end uint64, report func(*stele.Message)) error {
	var list []entry // that are to be found in one run of the index
	var first uint64 // leaf of them
	for n := from; n < end; n++ {
		leaf := n * tileWidth
		part, err := l.verifyTile(ctx, p, leaf, int(min(p.Size-leaf, tileWidth)), report)
		if err != nil && stele.KindOf(err) == stele.NotFound {
			report(stele.Messagef("log.tile-damaged", "The log lacks leaves: the cell {cell} is missing, damaged or too short.", tileCell(0, n)))
			part, err = nil, nil
		}
		if err != nil {
			return err
		}
		if len(list) == 0 {
			first = leaf
		}
		list = append(list, part...)
		if n+1 < end && len(part) == tileWidth && sameRun(p, first, leaf+tileWidth) {
			continue
		}
		if err := l.verifyIndex(ctx, p, first, list, report); err != nil {
			return err
		}
		list = nil
	}
	return nil
}

// sameRun reports whether two leaves are in the same run of the index, or both in none.
func sameRun(p *position, a, b uint64) bool {
	r, inRun := runOf(p.Indexed, a)
	s, inOther := runOf(p.Indexed, b)
	return inRun == inOther && r == s
}

// verifyTile checks the leaves of one tile, and returns them.
func (l *Log) verifyTile(ctx context.Context, p *position, first uint64, count int, report func(*stele.Message)) ([]entry, error) {
	list := make([]entry, 0, count)
	for len(list) < count {
		at := first + uint64(len(list))
		part, err := l.part(ctx, at, min(readTogether, count-len(list)))
		if err != nil {
			return nil, err
		}
		err = l.remake(ctx, p, part, at, func(e *entry, leaf uint64) {
			_, name := subject(&e.change)
			report(stele.Messagef("log.leaf-other-than-registry", "Change {change}, version {version} of {name}, is not what the log has of it.", leaf+1, e.change.Version, name))
		})
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// verifyIndex checks that leaves are found, all of which are in one run, or in none.
func (l *Log) verifyIndex(ctx context.Context, p *position, first uint64, list []entry, report func(*stele.Message)) error {
	missing, err := l.notIndexed(ctx, p, first, list)
	for range maxTries {
		if err != nil || missing == nil || !l.overtaken(ctx, p) {
			break
		}
		// The log has grown since it was read, and the run may have been merged with others, and removed.
		if p, err = l.load(ctx); err != nil {
			break
		}
		missing, err = l.notIndexed(ctx, p, first, list)
	}
	for _, leaf := range missing {
		e := &list[leaf-first]
		_, name := subject(&e.change)
		report(stele.Messagef("log.leaf-not-found", "The log does not find change {change}, version {version} of {name}, by its name.", leaf+1, e.change.Version, name))
	}
	return err
}

// notIndexed returns those of the leaves that the index lacks.
func (l *Log) notIndexed(ctx context.Context, p *position, first uint64, list []entry) ([]uint64, error) {
	r, ok := runOf(p.Indexed, first)
	if !ok {
		return nil, nil
	}
	places := make([]place, len(list))
	for i := range list {
		kind, name := subject(&list[i].change)
		places[i] = place{placeHash(kind, name, list[i].change.Version), first + uint64(i)}
	}
	r.sort(places)
	return l.index.lacks(ctx, r, places)
}

// verifyTiles checks the levels above the leaves, and the checkpoint.
func (l *Log) verifyTiles(ctx context.Context, p *position, report func(*stele.Message)) error {
	for level, n := 1, p.Size/tileWidth; n > 0; level, n = level+1, n/tileWidth {
		for i := range n {
			below, err := tileHashes(ctx, l.o.Cells, tileID{level - 1, i})
			if err == nil && len(below) == tileWidth*tlog.HashSize {
				var above []byte
				if above, err = tileHashes(ctx, l.o.Cells, tileID{level, i / tileWidth}); err == nil {
					at := int(i%tileWidth) * tlog.HashSize
					root := rootOf(below)
					if len(above) >= at+tlog.HashSize && string(above[at:at+tlog.HashSize]) == string(root[:]) {
						continue
					}
				}
			}
			if err != nil && stele.KindOf(err) != stele.Internal {
				return err
			}
			report(stele.Messagef("log.tile-not-that-of-level-below", "Tile {tile} of level {level} of the log does not belong to the level below it.", i/tileWidth, level))
		}
	}
	shown, err := l.Published(ctx)
	if err != nil || shown.Note == "" {
		return err
	}
	now, err := l.read(ctx) // after the checkpoint: the log grows, and is signed, while it is verified
	if err != nil {
		return err
	}
	c, err := ParseCheckpoint(shown.Note)
	if err == nil && c.Size <= now.Size {
		root, err := tlog.TreeHash(int64(c.Size), newHashReader(ctx, l.o.Cells))
		if err == nil && root == c.Root {
			return nil
		}
	}
	report(stele.Messagef("log.checkpoint-other-than-log", "The last checkpoint is not one of this log."))
	return nil
}
