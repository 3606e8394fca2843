package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// together runs work n times at once and waits for all.
func together(n int, work func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { work(i) })
	}
	all.Wait()
}

// writers is how many goroutines write at once.
const writers = 64

// checkWriters: of many writers that commit the same version, one wins.
func checkWriters(s *session) {
	r := first(s.ark("a"), s.ark("alias"))
	const rounds = 8
	for round := range rounds {
		var mu sync.Mutex
		var won []*stele.Record
		together(writers, func(i int) {
			mine := *r
			mine.By = fmt.Sprint("writer ", i)
			switch err := s.Apply(s.ctx, records(&mine)); {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				won = append(won, &mine)
			default:
				s.wantKind("a writer who lost", err, stele.Conflict)
			}
		})
		if len(won) != 1 {
			s.Fatalf("round %d: version %d was committed %d times", round, r.Version, len(won))
		}
		s.want(s.ark("alias"), won[0])
		r = next(won[0], fmt.Sprint("round ", round))
	}
	if got := s.history(r.ID); len(got) != rounds {
		s.Errorf("History has %d versions after %d rounds", len(got), rounds)
	}
	// The same for a name: many new records want one alias, by Apply and by Ingest.
	for round := range rounds {
		var won atomic.Int32
		prefix := fmt.Sprintf("b%d/", round)
		together(writers, func(i int) {
			r := first(s.ark(fmt.Sprint(prefix, i)), s.ark(fmt.Sprint("wanted ", round)))
			if err := s.commit(s.ctx, i, r); err == nil {
				won.Add(1)
			} else {
				s.wantKind("a record whose alias is taken", err, stele.Conflict)
			}
		})
		if n := len(s.scan("ark", s.ark(prefix).String(), "")); won.Load() != 1 || n != 1 {
			s.Errorf("%d records got the same alias, %d are there", won.Load(), n)
		}
	}
	// And for a minter: its states form one chain.
	var issued atomic.Int32
	together(writers, func(int) {
		if err := s.Apply(s.ctx, &stele.Commit{Minters: []stele.MinterState{{Name: "m", After: []byte{1}}}}); err == nil {
			issued.Add(1)
		} else {
			s.wantKind("a minter who lost", err, stele.Conflict)
		}
	})
	if issued.Load() != 1 {
		s.Errorf("%d minters began from nothing", issued.Load())
	}
}

// checkQuotaLoad: exactly as many records as the quota allows, however many try,
// and however.
func checkQuotaLoad(s *session) {
	const quota = 50
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/"}
	var accepted atomic.Int32
	together(16, func(i int) {
		for j := range 5 {
			// Each name is tried twice: the one that loses must not count.
			id := s.ark(fmt.Sprintf("%d-%d", i/2, j))
			err := s.Apply(s.ctx, &stele.Commit{Records: []*stele.Record{first(id)}, Counter: countFor(key, quota)})
			if err == nil {
				accepted.Add(1)
			} else {
				s.wantKind("a record that is refused", err, stele.Conflict, stele.Exhausted)
			}
			list := []*stele.Record{first(s.ark(fmt.Sprintf("%d-%d i", i, j)))}
			errs, err := s.Ingest(s.ctx, list, countFor(key, quota), nil, nil)
			if err == nil && len(errs) == 1 && errs[0] == nil {
				accepted.Add(1)
			} else if err == nil && len(errs) == 1 {
				s.wantKind("an ingested record that is refused", errs[0], stele.Exhausted)
			} else {
				s.wantKind("an ingest that is refused", err, stele.Exhausted)
			}
		}
	})
	if n := len(s.scan("ark", "", "")); accepted.Load() != quota || n != quota {
		s.Errorf("%d records were accepted and %d are there; the quota is %d", accepted.Load(), n, quota)
	}
	s.wantCount(key, quota)
}

// checkChangesLoad: readers that follow the feed while others write see each number
// once, in order, and no change appears before their position.
func checkChangesLoad(s *session) {
	const each = 12
	done := make(chan struct{})
	var followers sync.WaitGroup
	feeds := make([][]stele.Change, 3)
	for i := range feeds {
		followers.Go(func() { feeds[i] = s.follow(done) })
	}
	var committed atomic.Uint64
	together(12, func(i int) {
		r := first(s.ark(fmt.Sprint("w", i)))
		for j := range each {
			var err error
			n := 1
			switch j % 3 {
			case 0: // several records in one commit
				n = 2
				err = s.Apply(s.ctx, records(r, first(s.ark(fmt.Sprintf("w%d-%d", i, j)))))
				r = next(r, "x")
			case 1:
				err = s.Apply(s.ctx, records(r))
				r = next(r, "y")
			default:
				n = 3
				var errs []error
				errs, err = s.Ingest(s.ctx, s.numbered(fmt.Sprintf("i%d-%d-%%d", i, j), 3), nil, nil, nil)
				if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
					s.Errorf("Ingest: %v", errs)
				}
			}
			if err != nil {
				s.Errorf("a commit under load: %v", err)
				return
			}
			committed.Add(uint64(n))
		}
	})
	close(done)
	followers.Wait()
	feed := s.changes(0)
	if uint64(len(feed)) != committed.Load() || s.lastChange() != committed.Load() {
		s.Errorf("%d changes were committed; the feed has %d and the last is %d", committed.Load(), len(feed), s.lastChange())
	}
	seen := make(map[string]bool)
	for i, c := range feed {
		if c.Seq != uint64(i)+1 {
			s.Fatalf("the feed's entry %d has the number %d", i+1, c.Seq)
		}
		what := fmt.Sprintf("%q %d", c.ID, c.Version)
		if seen[what] {
			s.Errorf("%s is in the feed twice", what)
		}
		seen[what] = true
	}
	for _, f := range feeds {
		if fmt.Sprint(f) != fmt.Sprint(feed) {
			s.Errorf("a follower saw %d changes, not the %d that there are", len(f), len(feed))
		}
	}
}

// follow reads the feed by its cursor until done, and once more.
func (s *session) follow(done <-chan struct{}) (feed []stele.Change) {
	for last := false; ; {
		select {
		case <-done:
			last = true
		default:
		}
		reached, err := s.LastChange(s.ctx)
		if err != nil {
			s.Errorf("LastChange: %v", err)
			return feed
		}
		for c, err := range s.Changes(s.ctx, uint64(len(feed))) {
			if err != nil || c.Seq != uint64(len(feed))+1 {
				s.Errorf("after change %d comes %d, %v", len(feed), c.Seq, err)
				return feed
			}
			feed = append(feed, c)
		}
		if uint64(len(feed)) < reached {
			s.Errorf("the last change was %d, and the feed ends with %d", reached, len(feed))
			return feed
		}
		if last {
			return feed
		}
	}
}

// checkFresh: every reader that begins later sees what is acknowledged, in every way,
// while others write.
func checkFresh(s *session) {
	together(8, func(i int) {
		url := fmt.Sprintf("https://h%d.example/", i)
		key := stele.NamespaceKey{Scheme: "ark", Prefix: fmt.Sprint(i)}
		var before []byte
		for j := range 10 {
			id, alias := s.ark(fmt.Sprintf("%d/%d", i, j)), s.id("hdl", fmt.Sprintf("%d/%d", i, j))
			r := first(id, alias)
			r.Targets = []stele.Target{at(url)}
			after := []byte{byte(rand.N(256)), byte(j)}
			c := &stele.Commit{
				Records: []*stele.Record{r},
				Counter: countFor(key, 0),
				Minters: []stele.MinterState{{Name: fmt.Sprint("m", i), Before: before, After: after}},
				Cells:   []stele.CellChange{{Name: fmt.Sprint("c", i), Before: before, After: after}},
			}
			last, err := s.LastChange(s.ctx)
			if err := s.Apply(s.ctx, c); err != nil {
				s.Errorf("Apply: %v", err)
				return
			}
			if before = after; err != nil {
				s.Errorf("LastChange: %v", err)
			}
			s.want(id, r)
			s.want(alias, r)
			s.wantCount(key, 2*(uint64(j)+1)) // with the alias
			s.wantMinter(fmt.Sprint("m", i), after)
			s.wantCell(fmt.Sprint("c", i), after)
			s.wantLast(fmt.Sprintf("ark:12345/%d/", i), stele.Location{URL: url}, id, j+1)
			s.wantLast(fmt.Sprintf("ark:12345/%d/", i), stele.Location{Host: fmt.Sprintf("h%d.example", i)}, id, j+1)
			changes, err := drain(s, "Changes", s.Changes(s.ctx, last))
			if err != nil || !slices.ContainsFunc(changes, func(c stele.Change) bool { return c.ID == id }) {
				s.Errorf("the feed lacks %q, which is acknowledged: %v", id, err)
			}
			history, err := drain(s, "History", s.History(s.ctx, id))
			if err != nil || len(history) != 1 {
				s.Errorf("History of %q, which is acknowledged, has %d versions, %v", id, len(history), err)
			}
		}
	})
}

// wantLast checks that a scan and a reverse look-up have n records, with id as the
// last.
func (s *session) wantLast(prefix string, l stele.Location, id stele.ID, n int) {
	s.Helper()
	list, err := drain(s, "Scan", s.Scan(s.ctx, id.Scheme(), prefix, ""))
	if err != nil || len(list) != n || list[n-1].ID != id {
		s.Errorf("Scan(%q) has %d records, %v; want %d, up to %q", prefix, len(list), err, n, id)
	}
	ids, err := drain(s, "Pointing", s.Pointing(s.ctx, l, stele.ID{}))
	if err != nil || len(ids) != n || ids[n-1] != id {
		s.Errorf("Pointing(%q) has %d records, %v; want %d, up to %q", l, len(ids), err, n, id)
	}
}
