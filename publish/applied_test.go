package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// TestAppliedForgets has records noted once more after they were met in the feed, as its
// follower does: they are not kept, and no record that is not met yet is forgotten.
func TestAppliedForgets(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, store := auth.With(t.Context(), auth.Local()), mem.New(time.Now)
	registers := registrar.New(store, schemes, registrar.Options{Now: time.Now})
	register := func(name string) *stele.Record {
		t.Helper()
		id, err := schemes.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := registers.Register(ctx, &stele.Record{ID: id, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var a applied
	if _, err := a.begin(ctx, store); err != nil {
		t.Fatal(err)
	}
	look := func(want uint64) {
		t.Helper()
		if got, err := a.look(ctx, store); err != nil || got != want {
			t.Fatalf("known up to %d, %v; want %d", got, err, want)
		}
	}
	last := a.upTo
	var missing *stele.Record
	for i := range 200 {
		r := register(fmt.Sprintf("urn:paradisec:n%d", i))
		switch {
		case missing == nil: // its writer is slower than that of the next one
			missing = r
			look(last)
			continue
		case i%2 == 1:
			a.note(r)
			look(last)
			a.note(missing)
		}
		last += 2
		look(last)
		for _, again := range []*stele.Record{missing, r} { // by the follower
			a.note(again)
		}
		missing = nil
		if n := len(a.done) + len(a.older); n > 4 {
			t.Fatalf("%d records are kept", n)
		}
	}
	slow := register("urn:paradisec:slow")
	for i := range 5 {
		a.note(register(fmt.Sprintf("urn:paradisec:m%d", i)))
		look(last) // until that one is known, none of those after it may be forgotten
	}
	a.note(slow)
	for range 2 {
		look(last + 6)
	}
	if n := len(a.done) + len(a.older); n > 0 {
		t.Errorf("%d records are kept for ever", n)
	}
}
