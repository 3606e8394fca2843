package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// replaceSite is a registry with many records at one host.
type replaceSite struct {
	t       *testing.T
	r       *registrar.Registrar
	schemes *stele.Schemes
	ctx     context.Context
}

func newReplaceSite(t *testing.T, records int) *replaceSite {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := &replaceSite{t, registrar.New(mem.New(time.Now), schemes, registrar.Options{Now: time.Now}), schemes, auth.With(t.Context(), auth.Local())}
	var list []*stele.Record
	for i := range records {
		list = append(list, &stele.Record{ID: s.id(i), State: stele.Active, Targets: []stele.Target{
			{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/%d", i), Order: stele.DefaultOrder, Preference: stele.DefaultPreference},
			{Service: stele.N2C, URL: "https://other.example/1", Order: stele.DefaultOrder, Preference: stele.DefaultPreference},
		}})
	}
	errs, err := s.r.Ingest(s.ctx, list, registrar.ImportOptions{})
	if err = errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *replaceSite) id(i int) stele.ID {
	id, err := s.schemes.Parse(fmt.Sprintf("ark:12345/x%05d", i))
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *replaceSite) replacer(from, to string) *bulk.Replacer {
	s.t.Helper()
	r, err := bulk.NewReplacement(from, to, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return &bulk.Replacer{Replacement: r, Registrar: s.r, Schemes: s.schemes}
}

// count counts the records whose first target has a beginning, and makes sure that others stay.
func (s *replaceSite) count(beginning string) (n int) {
	s.t.Helper()
	for rec, err := range s.r.Scan(s.ctx, stele.NamespaceKey{Scheme: "ark"}, "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(rec.Targets[0].URL, beginning); ok && !strings.Contains(rest, "/") {
			n++
		}
		if rec.Targets[1].URL != "https://other.example/1" {
			s.t.Fatalf("another target of %s changed: %v", rec.ID, rec.Targets)
		}
	}
	return n
}

func quiet(bulk.Replaced) error { return nil }

// TestReplaceAgain: a run that is cut off goes on, and changes no record twice, although the new
// beginning begins with the old one and an editor has changed a record since.
func TestReplaceAgain(t *testing.T) {
	const records = 2300
	s := newReplaceSite(t, records)
	replace := s.replacer("https://example.org/", "https://example.org/new/")
	told := 0
	errCut := errors.New("cut off")
	_, err := replace.Run(s.ctx, records, func(bulk.Replaced) error {
		if told++; told == 1500 {
			return errCut
		}
		return nil
	})
	if !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	done := s.count("https://example.org/new/")
	if done == 0 || done == records {
		t.Fatalf("%d records were changed by the first attempt", done)
	}
	if _, err := s.r.Update(s.ctx, s.id(3), 0, func(r *stele.Record) error {
		r.Metadata = stele.Metadata{stele.What: "Edited since"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// What is left is judged, and the number that was agreed to still counts.
	left, err := replace.Judge(s.ctx, quiet)
	if err != nil || left.Changed != records-done || left.Refused != 0 {
		t.Fatalf("got %+v, %v", left, err)
	}
	if _, err := replace.Run(s.ctx, 7, quiet); !errors.Is(err, stele.Conflict) {
		t.Fatalf("another number: %v", err)
	}
	n, err := replace.Run(s.ctx, records, quiet)
	if err != nil || n.Changed != records-done || n.Import == 0 {
		t.Fatalf("got %+v, %v", n, err)
	}
	if got := s.count("https://example.org/new/"); got != records {
		t.Errorf("%d of %d records have the new beginning once", got, records)
	}
	i, err := s.r.Import(s.ctx, n.Import)
	if err != nil || i.Updated != records || i.Ended.IsZero() {
		t.Errorf("the import is kept as %+v, %v", i, err)
	}
	// All of it can be reverted, except what was edited since; then it begins anew.
	undone, err := s.r.RevertImport(s.ctx, n.Import, registrar.RevertOptions{}, func(registrar.RevertStep) error { return nil })
	if err != nil || undone.Reverted != records-1 || undone.Left != 1 {
		t.Fatalf("got %+v, %v", undone, err)
	}
	again, err := replace.Run(s.ctx, records, quiet)
	if err != nil || again.Import == n.Import {
		t.Errorf("got %+v, %v", again, err)
	}
}

// TestReplaceAfterRevert: a run that was cut off and reverted does not go on, but begins anew.
func TestReplaceAfterRevert(t *testing.T) {
	const records = 1100
	s := newReplaceSite(t, records)
	replace := s.replacer("example.org", "new.example.org")
	var number uint64
	_, err := replace.Run(s.ctx, records, func(bulk.Replaced) error { return context.Canceled })
	if err == nil {
		t.Fatal("it was not cut off")
	}
	for i, err := range s.r.Imports(s.ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		number = i.Number
	}
	if _, err := s.r.RevertImport(s.ctx, number, registrar.RevertOptions{}, func(registrar.RevertStep) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n, err := replace.Run(s.ctx, records, quiet); err != nil || n.Changed != records || n.Import == number {
		t.Fatalf("got %+v, %v", n, err)
	}
	if got := s.count("https://new.example.org/"); got != records {
		t.Errorf("%d of %d were changed", got, records)
	}
}

// TestReplaceSeesOthers: a record that another editor changes after it was read is refused, and what
// the editor wrote stays.
func TestReplaceSeesOthers(t *testing.T) {
	s := newReplaceSite(t, 3)
	replace := s.replacer("example.org", "new.example.org")
	parts := 0
	replace.Pace = func(int) (context.Context, error) {
		if parts++; parts == 2 { // the records of the second pass, which writes, were read
			if _, err := s.r.Update(s.ctx, s.id(1), 0, func(r *stele.Record) error {
				r.Targets[0].URL = "https://editor.example/"
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		return s.ctx, nil
	}
	var refused []bulk.Replaced
	n, err := replace.Run(s.ctx, 3, func(one bulk.Replaced) error {
		if one.IsRefused() {
			refused = append(refused, one)
		}
		return nil
	})
	if err != nil || n.Changed != 2 || n.Refused != 1 || len(refused) != 1 || refused[0].ID != s.id(1) || !errors.Is(refused[0].Err, stele.Conflict) {
		t.Fatalf("got %+v, %v, %v", n, refused, err)
	}
	rec, err := s.r.Get(s.ctx, s.id(1))
	if err != nil || rec.Targets[0].URL != "https://editor.example/" || rec.Version != 2 {
		t.Errorf("got %+v, %v", rec, err)
	}
}

// TestReplaceRights: what a caller may not write is refused, and what the caller may not list is not
// told.
func TestReplaceRights(t *testing.T) {
	s := newReplaceSite(t, 3)
	if _, err := s.r.AddNamespace(s.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Grants: []stele.Grant{{To: "user:rita", Role: stele.RoleReader}}}); err != nil {
		t.Fatal(err)
	}
	replace := s.replacer("example.org", "new.example.org")
	for name, want := range map[string]bulk.ReplaceCounts{"rita": {Refused: 3}, "mallory": {}} {
		ctx := auth.With(t.Context(), auth.Principal{Name: name})
		if n, err := replace.Judge(ctx, quiet); err != nil || n != want {
			t.Errorf("%s: got %+v, %v", name, n, err)
		}
		if _, err := replace.Run(ctx, 3, quiet); !errors.Is(err, stele.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := replace.Run(ctx, 0, quiet); !errors.Is(err, stele.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := s.count("https://example.org/"); got != 3 {
		t.Errorf("%d of 3 are as they were", got)
	}
}

// TestReplaceTwice: the same replacement changes no record twice after it has ended, one that was put back
// again, and new ones; nor do two runs at once.
func TestReplaceTwice(t *testing.T) {
	s := newReplaceSite(t, 5)
	replace := s.replacer("https://example.org/", "https://example.org/new/")
	first, err := replace.Run(s.ctx, 5, quiet)
	if err != nil || first.Changed != 5 {
		t.Fatalf("got %+v, %v", first, err)
	}
	for _, expect := range []int{5, 0} { // as a client does whose answer was lost
		n, err := replace.Run(s.ctx, expect, quiet)
		if n != (bulk.ReplaceCounts{}) || (err == nil) != (expect == 0) {
			t.Errorf("again, for %d: got %+v, %v", expect, n, err)
		}
	}
	if _, err := s.r.Update(s.ctx, s.id(2), 0, func(r *stele.Record) error { r.Targets[0].URL = "https://example.org/back"; return nil }); err != nil {
		t.Fatal(err)
	}
	second, err := replace.Run(s.ctx, 1, quiet)
	if err != nil || second.Changed != 1 || second.Import == first.Import {
		t.Fatalf("got %+v, %v", second, err)
	}
	if n, err := replace.Judge(s.ctx, quiet); err != nil || n.Changed != 0 {
		t.Errorf("a third time: got %+v, %v", n, err)
	}
	if got := s.count("https://example.org/new/new/"); got != 0 {
		t.Errorf("%d records were changed twice", got)
	}

	s = newReplaceSite(t, 5)
	one, other := s.replacer("https://example.org/", "https://example.org/new/"), s.replacer("https://example.org/", "https://example.org/new/")
	one.Judged = func(int) error { // it has counted, and not begun
		one.Judged = nil
		_, err := other.Run(s.ctx, 5, quiet)
		return err
	}
	if n, err := one.Run(s.ctx, 5, quiet); !errors.Is(err, stele.Conflict) {
		t.Errorf("the slower of two runs: got %+v, %v", n, err)
	}
	if all, twice := s.count("https://example.org/new/"), s.count("https://example.org/new/new/"); all != 5 || twice != 0 {
		t.Errorf("of 5 records %d were changed, and %d twice", all, twice)
	}
}

// TestReplaceMore: no more records change than were counted, and nothing is kept of a run without any.
func TestReplaceMore(t *testing.T) {
	s := newReplaceSite(t, 3)
	replace := s.replacer("example.org", "new.example.org")
	replace.Judged = func(int) error {
		replace.Judged = nil
		early, err := s.schemes.Parse("ark:12345/a") // before those that were looked at
		if err != nil {
			return err
		}
		_, err = s.r.Register(s.ctx, &stele.Record{ID: early, Targets: []stele.Target{
			{Service: stele.N2L, URL: "https://example.org/late", Order: stele.DefaultOrder, Preference: stele.DefaultPreference},
			{Service: stele.N2C, URL: "https://other.example/1", Order: stele.DefaultOrder, Preference: stele.DefaultPreference},
		}})
		return err
	}
	n, err := replace.Run(s.ctx, 3, quiet)
	if err != nil || n.Changed != 3 || n.Refused != 1 {
		t.Fatalf("got %+v, %v", n, err)
	}
	if got := s.count("https://new.example.org/"); got != 3 {
		t.Errorf("%d records were changed", got)
	}
	if n, err := s.replacer("nothing.example", "new.example").Run(s.ctx, 0, quiet); err != nil || n != (bulk.ReplaceCounts{}) {
		t.Errorf("got %+v, %v", n, err)
	}
}

// TestReplacePath: what follows an old beginning never becomes a part of the new host.
func TestReplacePath(t *testing.T) {
	for _, to := range []string{"https://new.example", "https://new.example?x"} {
		if _, err := bulk.NewReplacement("https://old.example/", to, ""); !errors.Is(err, stele.Invalid) {
			t.Errorf("%s: %v", to, err)
		}
	}
	r, err := bulk.NewReplacement("https://old.example", "https://new.example", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := r.URL("https://old.example/x"); !ok || got != "https://new.example/x" {
		t.Errorf("got %s, %t", got, ok)
	}
}
