package handle

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele/handles"
)

// Sessions in which nobody proves anything take no memory; those of one identity, and all together, are bounded, and the
// ones that were not used for the longest time end first.
func TestSessionBounds(t *testing.T) {
	s, err := newSessions(rand.Reader, 250)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	begin := func() *session {
		t.Helper()
		n, err := s.begin(now)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 10_000 {
		if n := begin(); s.find(n.id, now) == nil {
			t.Fatal("a session that was begun is not found")
		}
	}
	if s.count() != 0 {
		t.Errorf("%d sessions are kept of clients that are not known", s.count())
	}
	who := handles.Identity{Handle: "20.500.99999/A", Index: 300}
	var all []*session
	for range maxEach + 5 {
		n := begin()
		s.prove(n, who, "stamp", now)
		all = append(all, n)
	}
	if s.count() != maxEach {
		t.Errorf("%d sessions are kept of one identity", s.count())
	}
	if old := s.find(all[4].id, now); old == nil || old.known {
		t.Errorf("the oldest is %+v", old)
	}
	if kept := s.find(all[5].id, now); kept == nil || !kept.known || kept.who != who {
		t.Errorf("a newer one is %+v", kept)
	}
	for i := range 300 {
		s.prove(begin(), handles.Identity{Handle: fmt.Sprint("20.500.99999/", i)}, "stamp", now)
	}
	if s.count() != 250 || len(s.each) != 250 {
		t.Errorf("%d sessions are kept, of %d identities", s.count(), len(s.each))
	}
	now = now.Add(sessionIdle)
	s.prove(begin(), who, "stamp", now)
	if s.count() != 1 || s.order.Len() != 1 || len(s.each) != 1 {
		t.Errorf("%d sessions are kept after half an hour, in order %d, of %d identities", s.count(), s.order.Len(), len(s.each))
	}
}

// A session that was ended is not found again, and nobody can prove anything in it.
func TestSessionEnded(t *testing.T) {
	s, err := newSessions(rand.Reader, 10)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	n, err := s.begin(now)
	if err != nil {
		t.Fatal(err)
	}
	who := handles.Identity{Handle: "20.500.99999/A", Index: 300}
	s.prove(n, who, "stamp", now)
	s.end(n, now)
	if found := s.find(n.id, now); found != nil {
		t.Errorf("found %+v", found)
	}
	if s.prove(n, who, "stamp", now); n.known {
		t.Error("somebody is known in it")
	}
	other, err := newSessions(rand.Reader, 10)
	if err != nil {
		t.Fatal(err)
	}
	if n, err = other.begin(now); err != nil || s.find(n.id, now) != nil {
		t.Errorf("a session of another server is found: %v", err)
	}
}
