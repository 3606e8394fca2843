package postgres

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestScratch: a registry in a schema of its own leaves the one beside it as it is, and is gone
// when it is dropped. One that was there before is never used.
func TestScratch(t *testing.T) {
	url := migrated(t, server)
	s := opened(t, url, Options{})
	if err := s.Apply(t.Context(), commitOf(record1(t, "a"))); err != nil {
		t.Fatal(err)
	}
	o := Options{Now: time.Now}
	at, drop, err := Scratch(t.Context(), url, "scratch_1", o)
	if err != nil {
		t.Fatal(err)
	}
	beside := open(t, at, Options{})
	if n, err := beside.LastChange(t.Context()); n != 0 || err != nil {
		t.Errorf("it has %d changes, %v", n, err)
	}
	if err := beside.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Scratch(t.Context(), url, "scratch_1", o); stele.KindOf(err) != stele.Conflict {
		t.Errorf("a schema that exists: %v", err)
	}
	if _, _, err := Scratch(t.Context(), url, "stele", o); stele.KindOf(err) != stele.Conflict {
		t.Errorf("the schema of the registry: %v", err)
	}
	if _, _, err := Scratch(t.Context(), "http://example.org/", "scratch_1", o); stele.KindOf(err) != stele.Invalid {
		t.Errorf("what is not a database: %v", err)
	}
	if err := drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), at, Options{Now: time.Now, Brief: true}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("it is there after it was dropped: %v", err)
	}
	if n, err := s.LastChange(t.Context()); n != 1 || err != nil {
		t.Errorf("the registry beside has %d changes, %v", n, err)
	}
}
