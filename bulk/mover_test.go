package bulk_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
)

// TestMove: targets get their new addresses if they still have those that were checked, no record is written twice, and all can
// be reverted.
func TestMove(t *testing.T) {
	const records = 1200
	s := newReplaceSite(t, records)
	var moves []bulk.Move
	for i := range records {
		moves = append(moves, bulk.Move{ID: s.id(i).String(), Old: fmt.Sprintf("https://example.org/%d", i), New: fmt.Sprintf("https://example.org/new/%d", i)})
	}
	if _, err := s.r.Update(s.ctx, s.id(7), 0, func(r *stele.Record) error { r.Targets[0].URL = "https://example.org/mine/7"; return nil }); err != nil {
		t.Fatal(err)
	}
	mover := &bulk.Mover{Registrar: s.r, Schemes: s.schemes}
	refused := ""
	judged, err := mover.Judge(s.ctx, moves, func(one bulk.Replaced) error {
		if one.IsRefused() {
			refused += one.ID.String()
		}
		return nil
	})
	if err != nil || judged.Changed != records-1 || judged.Refused != 1 || refused != s.id(7).String() || s.count("https://example.org/new/") != 0 {
		t.Fatalf("%+v %v, refused %s", judged, err, refused)
	}
	if judged.Digest != bulk.Digest(moves) {
		t.Errorf("the digest is %q", judged.Digest)
	}
	other := slices.Clone(moves) // as many, and one of them leads elsewhere
	other[3].New = "https://evil.example.org/3"
	if _, err := mover.Run(s.ctx, "example.org", other, judged.Digest, quiet); !errors.Is(err, stele.Conflict) || s.count("https://example.org/new/") != 0 {
		t.Fatalf("others than were seen: %v", err)
	}
	errCut, told := errors.New("cut off"), 0
	if _, err := mover.Run(s.ctx, "example.org", moves, judged.Digest, func(bulk.Replaced) error {
		if told++; told == 500 {
			return errCut
		}
		return nil
	}); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	done := s.count("https://example.org/new/")
	if done == 0 || done == records-1 {
		t.Fatalf("%d records were changed by the first attempt", done)
	}
	// Again: what was moved is not what was checked any more.
	counts, err := mover.Run(s.ctx, "example.org", moves, judged.Digest, quiet)
	if err != nil || counts.Changed != records-1-done || s.count("https://example.org/new/") != records-1 {
		t.Fatalf("%+v %v", counts, err)
	}
	// The same part of a job, written again by another attempt, is done already, also if an editor was there meanwhile.
	last := moves[records-1:]
	if _, err := s.r.Update(s.ctx, s.id(records-1), 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{stele.What: "Edited"}; return nil }); err != nil {
		t.Fatal(err)
	}
	again, err := mover.Write(s.ctx, last, counts.Import)
	if err != nil || len(again) != 1 || again[0].Err != nil {
		t.Errorf("again: %+v %v", again, err)
	}
	if rec, err := s.r.Get(s.ctx, s.id(records-1)); err != nil || rec.Version != 3 {
		t.Errorf("got %+v, %v", rec, err)
	}
}

// TestMoveTakenBack: what an earlier attempt wrote, and a user took back, is not written again.
func TestMoveTakenBack(t *testing.T) {
	s := newReplaceSite(t, 2)
	moves := []bulk.Move{{ID: s.id(0).String(), Old: "https://example.org/0", New: "https://example.org/new/0"}, {ID: s.id(1).String(), Old: "https://example.org/1", New: "https://example.org/new/1"}}
	mover := &bulk.Mover{Registrar: s.r, Schemes: s.schemes}
	counts, err := mover.Run(s.ctx, "example.org", moves[:1], bulk.Digest(moves[:1]), quiet)
	if err != nil || counts.Changed != 1 {
		t.Fatalf("%+v %v", counts, err)
	}
	if _, err := s.r.Update(s.ctx, s.id(0), 0, func(r *stele.Record) error { r.Targets[0].URL = "https://example.org/0"; return nil }); err != nil {
		t.Fatal(err)
	}
	mover.Resumed = true
	if done, err := mover.Write(s.ctx, moves, counts.Import); err != nil || len(done) != 2 || done[0].Err != nil || done[1].Err != nil {
		t.Fatalf("%+v %v", done, err)
	}
	for i, want := range []string{"https://example.org/0", "https://example.org/new/1"} {
		if rec, err := s.r.Get(s.ctx, s.id(i)); err != nil || rec.Targets[0].URL != want {
			t.Errorf("%d leads to %+v, want %s; %v", i, rec, want, err)
		}
	}
}

// TestMovePartial: to a target to which something is appended no other address is given unseen.
func TestMovePartial(t *testing.T) {
	s := newReplaceSite(t, 1)
	if _, err := s.r.Update(s.ctx, s.id(0), 0, func(r *stele.Record) error { r.Targets[0].Partial = true; return nil }); err != nil {
		t.Fatal(err)
	}
	moves := []bulk.Move{{ID: s.id(0).String(), Old: "https://example.org/0", New: "https://example.org/new/0"}}
	counts, err := (&bulk.Mover{Registrar: s.r, Schemes: s.schemes}).Judge(s.ctx, moves, quiet)
	if err != nil || counts.Changed != 0 || counts.Refused != 1 {
		t.Errorf("%+v %v", counts, err)
	}
}

// TestCutMoves: the moves of a record stay together.
func TestCutMoves(t *testing.T) {
	moves := []bulk.Move{{ID: "a"}, {ID: "b"}, {ID: "b", Target: 1}, {ID: "b", Target: 2}, {ID: "c"}}
	if got := fmt.Sprint(bulk.Cut(moves, 2)); got != "[[{a 0  } {b 0  } {b 1  } {b 2  }] [{c 0  }]]" {
		t.Errorf("got %s", got)
	}
}

// TestMovesOfNoHost: all that has moved anywhere is not accepted at once.
func TestMovesOfNoHost(t *testing.T) {
	if _, _, err := bulk.Moves("", func(string) iter.Seq2[apijson.LinkFinding, error] { return nil }); stele.KindOf(err) != stele.Invalid {
		t.Errorf("without a host: %v", err)
	}
}

// TestMovesAreBounded: not all findings of a namespace are read for those of a host.
func TestMovesAreBounded(t *testing.T) {
	moves, more, err := bulk.Moves("old.example.org", func(string) iter.Seq2[apijson.LinkFinding, error] {
		return func(yield func(apijson.LinkFinding, error) bool) {
			if yield(apijson.LinkFinding{ID: "ark:12345/x1", URL: "https://old.example.org/1", State: "moved", Final: "https://new.example.org/1"}, nil) {
				yield(apijson.LinkFinding{ID: "ark:12345/x2"}, apijson.ErrLinksCut)
			}
		}
	})
	if err != nil || !more || len(moves) != 1 || bulk.MovedAt("old.example.org").Most == 0 {
		t.Errorf("%v %v %v", moves, more, err)
	}
}

// TestMovesGoOn: findings that are not moves of the host do not hide those that follow, however many there are.
func TestMovesGoOn(t *testing.T) {
	const parts = 4
	var asked []string
	findings := func(from int) func(after string) iter.Seq2[apijson.LinkFinding, error] {
		return func(after string) iter.Seq2[apijson.LinkFinding, error] {
			asked = append(asked, after)
			part := len(asked)
			return func(yield func(apijson.LinkFinding, error) bool) {
				if part >= from && !yield(apijson.LinkFinding{ID: fmt.Sprint("ark:12345/m", part), State: "moved", URL: "https://old.example.org/", Final: "https://new.example.org/"}, nil) {
					return
				}
				yield(apijson.LinkFinding{ID: fmt.Sprint("ark:12345/p", part), Target: 1}, apijson.ErrLinksCut)
			}
		}
	}
	moves, more, err := bulk.Moves("old.example.org", findings(parts))
	if want := []string{"", "ark:12345/p1\t1", "ark:12345/p2\t1", "ark:12345/p3\t1"}; err != nil || len(moves) != 1 || moves[0].ID != "ark:12345/m4" || !more || !slices.Equal(asked, want) {
		t.Errorf("%v, %t, %v after %q", moves, more, err, asked)
	}
	asked = nil
	if moves, more, err := bulk.FirstMoves("old.example.org", findings(parts)); err != nil || len(moves) > 0 || !more || len(asked) != 1 {
		t.Errorf("a page: %v, %t, %v after %d parts", moves, more, err, len(asked))
	}
	asked = nil
	if moves, more, err := bulk.Moves("old.example.org", findings(1000)); err != nil || len(moves) > 0 || !more || len(asked) > 100 {
		t.Errorf("%v, %t, %v after %d parts", moves, more, err, len(asked))
	}
}
