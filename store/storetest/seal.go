package storetest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

func (s *session) sealed() string {
	s.Helper()
	reason, err := s.Sealed(s.ctx)
	if err != nil {
		s.Fatalf("Sealed: %v", err)
	}
	return reason
}

func (s *session) seal(reason string) {
	s.Helper()
	if err := s.Seal(s.ctx, reason); err != nil {
		s.Fatalf("Seal(%.80q): %v", reason, err)
	}
	if got := s.sealed(); got != reason {
		s.Errorf("Sealed = %.80q after Seal(%.80q)", got, reason)
	}
}

// checkSeal: a sealed store is read as before, and takes no write of any kind, until
// the seal is removed.
func checkSeal(s *session) {
	s.fill()
	if got := s.sealed(); got != "" {
		s.Errorf("a store that nobody sealed is sealed: %q", got)
	}
	s.seal("moved to another place")
	s.wantSealed("moved to another place")
	s.seal("moved to \"a third\"")
	longest := strings.Repeat("é", stele.MaxSeal/2)
	s.seal(longest)
	s.wantKind("Seal with a reason that is too long", s.Seal(s.ctx, longest+"x"), stele.Invalid)
	s.wantSealed(longest)

	folder := filepath.Join(s.test.TempDir(), "backup")
	if err := s.Backup(s.ctx, folder); err != nil {
		s.Fatalf("Backup: %v", err)
	}
	s.verify()
	last := s.lastChange()
	if s.h.Durable {
		s.reopen()
		s.wantSealed(longest)
	}
	s.seal("")
	s.seal("") // again
	s.goOn(last)
	if err := s.Ready(s.ctx); err != nil {
		s.Errorf("Ready without seal: %v", err)
	}
	if s.h.Durable {
		s.reopen()
		if got := s.sealed(); got != "" {
			s.Errorf("the seal that was taken away is back: %q", got)
		}
	}
	b := s.other(folder)
	defer b.end()
	b.wantSealed(longest)
	b.seal("")
	b.goOn(last)
}

// wantSealed tries to write in every way there is.
func (s *session) wantSealed(reason string) {
	s.Helper()
	before := s.image()
	a, err := s.Record(s.ctx, s.ark("a"))
	if err != nil {
		s.Fatalf("Record: %v", err)
	}
	refused := func(what string, err error) {
		s.Helper()
		s.wantKind(what+" when the store is sealed", err, stele.Conflict)
		if err != nil && (!errors.Is(err, stele.ErrSealed) || !strings.Contains(err.Error(), reason)) {
			s.Errorf("%s when the store is sealed: the error is not ErrSealed, or does not have the reason: %v", what, err)
		}
	}
	for what, c := range map[string]*stele.Commit{
		"a new record":       records(first(s.ark("sealed"))),
		"a new version":      records(next(a, "sealed")),
		"a namespace":        {Namespaces: []*stele.Namespace{space("urn", "")}},
		"a minter":           {Minters: []stele.MinterState{{Name: "sealed", After: []byte{1}}}},
		"a cell":             cell("sealed", nil, []byte{1}),
		"a cell that goes":   cell("empty", []byte{}, nil),
		"many new records":   records(s.numbered("sealed%d", 100)...),
		"a replayed record":  {Records: []*stele.Record{first(s.ark("sealed"))}, Replay: []stele.Change{{Seq: s.lastChange() + 1, ID: s.ark("sealed"), Version: 1, At: spring}}},
		"what has a counter": {Records: []*stele.Record{first(s.ark("sealed"))}, Counter: countFor(stele.NamespaceKey{Scheme: "ark"}, 0)},
	} {
		refused(what, s.Apply(s.ctx, c))
	}
	_, err = s.Ingest(s.ctx, s.numbered("ingested%d", 100), nil, nil, nil)
	refused("Ingest", err)
	refused("Ready", s.Ready(s.ctx))
	s.wantImage("the store is sealed, and something was written", before)
}

// checkSealLoad: once Seal has returned nothing more is written, and all that was
// acknowledged is there, before and after.
func checkSealLoad(s *session) {
	var mu sync.Mutex
	var acknowledged []stele.ID
	var commits atomic.Int32
	var over atomic.Bool
	busy := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(busy) })
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			defer goOn()
			for j := 0; ; j++ {
				late := over.Load()
				r := first(s.ark(fmt.Sprintf("w%d-%d", i, j)))
				var err error
				if i%4 == 0 { // what is not in the feed must not slip through either
					err = s.Apply(s.ctx, &stele.Commit{Minters: []stele.MinterState{{Name: r.ID.String(), After: []byte{1}}}})
				} else if err = s.commit(s.ctx, j, r); err == nil {
					mu.Lock()
					acknowledged = append(acknowledged, r.ID)
					mu.Unlock()
				}
				if err != nil {
					s.wantKind("a commit while the store is sealed", err, stele.Conflict)
					return
				}
				if late {
					s.Errorf("a commit that began after Seal had returned was acknowledged")
					return
				}
				if commits.Add(1) == 256 {
					goOn()
				}
			}
		})
	}
	<-busy
	s.seal("moved")
	over.Store(true)
	sealed := s.image()
	all.Wait()
	s.wantImage("something was written after Seal had returned", sealed)
	for _, id := range acknowledged {
		s.want(id, first(id))
	}
	if n := s.lastChange(); n != uint64(len(acknowledged)) {
		s.Errorf("%d records were acknowledged, and the feed has %d", len(acknowledged), n)
	}
}
