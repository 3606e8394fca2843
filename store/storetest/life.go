package storetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// checkClose: after Close, everything is Unavailable, and Close is harmless.
func checkClose(s *session) {
	s.something()
	if err := s.Close(); err != nil {
		s.Errorf("Close: %v", err)
	}
	for _, c := range s.calls() {
		s.wantKind(c.name+" after Close", c.do(s.ctx), stele.Unavailable)
	}
	if err := s.Close(); err != nil {
		s.Errorf("Close again: %v", err)
	}
	s.Store = s.h.Open(s.test, s.folder)
}

// checkCloseLoad: Close while others read and write. They succeed, or fail with
// Unavailable; what was acknowledged is there, if the store is durable.
func checkCloseLoad(s *session) {
	s.ingest(s.numbered("old%d", 500), nil, nil)
	var acknowledged sync.Map
	var commits atomic.Int32
	busy := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(busy) })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			defer goOn()
			for j := 0; ; j++ {
				r := first(s.ark(fmt.Sprintf("w%d-%d", i, j)))
				if err := s.commit(s.ctx, j, r); err != nil {
					s.wantKind("a commit while the store closes", err, stele.Unavailable)
					return
				}
				acknowledged.Store(r.ID, r)
				if commits.Add(1) == 64 {
					goOn()
				}
			}
		})
		all.Go(func() {
			for {
				if err := failure(s.Scan(s.ctx, "ark", "", "")); err != nil {
					s.wantKind("a scan while the store closes", err, stele.Unavailable)
					return
				}
			}
		})
	}
	<-busy
	if err := s.Close(); err != nil {
		s.Errorf("Close under load: %v", err)
	}
	all.Wait()
	s.Store = s.h.Open(s.test, s.folder)
	if s.h.Durable {
		for id, r := range acknowledged.Range {
			s.want(id.(stele.ID), r.(*stele.Record))
		}
	}
}

// checkDurable: everything is there after reopening, and the store continues where it
// was.
func checkDurable(s *session) {
	s.fill()
	before := s.image()
	last := s.lastChange()
	for range 2 {
		s.reopen()
		s.wantImage("the store lost something when it was opened again", before)
	}
	s.goOn(last)
	before = s.image()
	s.reopen()
	s.wantImage("the store lost something when it was opened a third time", before)
}

// The records that fill ingests are more than a generation of recent names of store/pebble has
// in its tests, and few enough that a check can read all of them many times.
const (
	ingested = 60
	filled   = 2 + 2*5 + ingested // what fill counts, with the aliases
)

// fill makes a small registry with everything in it.
func (s *session) fill() {
	s.Helper()
	s.something()
	a, err := s.Record(s.ctx, s.ark("a"))
	if err != nil {
		s.Fatalf("Record: %v", err)
	}
	key := stele.NamespaceKey{Scheme: "ark"}
	for i := range 5 {
		a = next(a, fmt.Sprint("version ", i), s.id("hdl", fmt.Sprint("10.1000/", i)))
		s.apply(&stele.Commit{
			Records: []*stele.Record{a, first(s.ark(fmt.Sprint("n", i)))},
			Counter: countFor(key, 0),
		})
	}
	s.ingest(s.numbered("i%d", ingested), countFor(key, 0), &stele.MinterState{Name: "m", Before: []byte{1}, After: []byte{2}})
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{nextNamespace(space("ark", ""), "second"), space("hdl", "10.1000/")}})
	s.apply(cells(stele.CellChange{Name: "c", Before: []byte{1}, After: []byte{2}}, stele.CellChange{Name: "short", Before: []byte{1}}))
	s.wantCount(key, filled)
}

// goOn checks that a store which was filled is one that can be used: its rules
// hold, and its numbers go on after the last.
func (s *session) goOn(last uint64) {
	s.Helper()
	a, err := s.Record(s.ctx, s.ark("alias"))
	if err != nil {
		s.Fatalf("Record: %v", err)
	}
	key := stele.NamespaceKey{Scheme: "ark"}
	s.refuse("a name that is taken", records(first(s.id("hdl", "10.1000/3"))), stele.Conflict)
	s.refuse("a version that is there", records(a), stele.Conflict)
	s.refuse("a minter's old state", &stele.Commit{Minters: []stele.MinterState{{Name: "m", Before: []byte{1}, After: []byte{9}}}}, stele.Conflict)
	s.refuse("a cell's old value", cell("c", []byte{1}, []byte{9}), stele.Conflict)
	s.refuse("a cell that was removed", cell("short", []byte{1}, []byte{9}), stele.Conflict)
	s.refuse("a full namespace", &stele.Commit{
		Records: []*stele.Record{first(s.ark("more"))}, Counter: countFor(key, filled),
	}, stele.Exhausted)
	s.apply(&stele.Commit{
		Records: []*stele.Record{next(a, "after that")}, Minters: []stele.MinterState{{Name: "m", Before: []byte{2}, After: []byte{3}}},
		Cells: []stele.CellChange{{Name: "c", Before: []byte{2}}, {Name: "short", After: []byte{3}}},
	})
	s.ingest([]*stele.Record{first(s.ark("more"))}, countFor(key, filled+1), nil)
	got := s.changes(last)
	if len(got) != 2 || got[0].Seq != last+1 || got[0].ID != a.ID || got[1].Seq != last+2 {
		s.Errorf("after change %d come %v", last, got)
	}
	s.wantMinter("empty", []byte{})
	s.wantCell("empty", []byte{})
	s.wantCell("c", nil)
	s.wantCell("short", []byte{3})
}

// checkBackup: a backup is the store as it was, and a store.
func checkBackup(s *session) {
	s.fill()
	before, last := s.image(), s.lastChange()
	folder := filepath.Join(s.test.TempDir(), "backup")
	if err := s.Backup(s.ctx, folder); err != nil {
		s.Fatalf("Backup: %v", err)
	}
	s.goOn(last) // the backup knows nothing of this
	if err := s.Backup(s.ctx, folder); err == nil {
		s.Errorf("a second backup to the same folder was not refused")
	}
	b := s.other(folder)
	defer b.end()
	b.wantImage("the backup is not what the store was", before)
	b.verify()
	b.goOn(last)
}

// checkBackupLoad: a backup that is made while others write is one state of the
// store, and has all that was acknowledged before it began.
func checkBackupLoad(s *session) {
	var mu sync.Mutex
	var acknowledged []stele.ID
	ctx, stop := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	defer func() { stop(); all.Wait() }()
	busy := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(busy) })
	var commits atomic.Int32
	for i := range 8 {
		all.Go(func() {
			defer goOn()
			for j := 0; ctx.Err() == nil; j++ {
				x, y := s.ark(fmt.Sprintf("x%d-%d", i, j)), s.ark(fmt.Sprintf("y%d-%d", i, j))
				err := s.commit(ctx, j, first(x, s.id("hdl", x.String())), first(y))
				if errors.Is(err, context.Canceled) {
					return
				} else if err != nil {
					s.Errorf("a commit under load: %v", err)
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, x, y)
				mu.Unlock()
				if commits.Add(1) == 64 {
					goOn()
				}
			}
		})
	}
	<-busy
	for range 2 {
		mu.Lock()
		must := append([]stele.ID(nil), acknowledged...)
		mu.Unlock()
		folder := filepath.Join(s.test.TempDir(), "backup")
		if err := s.Backup(s.ctx, folder); err != nil {
			s.Fatalf("Backup: %v", err)
		}
		s.wantBackup(folder, must)
	}
}

// wantBackup opens a backup and checks that it has these records, that it is one
// state, and that the feed of the store begins with its feed.
func (s *session) wantBackup(folder string, must []stele.ID) {
	s.Helper()
	b := s.other(folder)
	defer b.end()
	for _, id := range must {
		if _, err := b.Record(s.ctx, id); err != nil {
			s.Errorf("the backup lacks %q, which was acknowledged before: %v", id, err)
			break
		}
	}
	feed, whole := b.changes(0), s.changes(0)
	list := b.scan("ark", "", "")
	if len(feed) > len(whole) || len(feed) != len(list) || len(list)%2 != 0 {
		s.Fatalf("the backup has %d changes and %d records; the store has %d changes, and two records a commit", len(feed), len(list), len(whole))
	}
	for i, c := range feed {
		if c.Seq != whole[i].Seq || c.ID != whole[i].ID || c.Version != whole[i].Version || !c.At.Equal(whole[i].At) {
			s.Fatalf("change %d is %v in the backup and %v in the store", i+1, c, whole[i])
		}
	}
	for _, r := range list {
		if len(r.Aliases) > 0 {
			b.want(r.Aliases[0], r)
		}
	}
}
