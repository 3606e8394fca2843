package storetest

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

// note makes an audit entry.
func note(operation, object string) *stele.AuditEntry {
	return &stele.AuditEntry{
		By: "ann", Token: "7h2k", System: "root", Via: "api", Address: "192.0.2.1",
		Operation: operation, Object: object, Namespace: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/"},
		Outcome: stele.AuditFailed, Kind: stele.Conflict, Count: 3, Details: "a \"detail\"\n\x00\xff",
	}
}

// trail returns the entries after a number, without their times, which must not go back.
func (s *session) trail(after uint64) (list []*stele.AuditEntry) {
	s.Helper()
	var at time.Time
	for _, e := range all(s, fmt.Sprintf("Audit(%d)", after), s.Audit(s.ctx, after)) {
		if e.At.IsZero() || e.At.Before(at) || e.At.Location() != time.UTC {
			s.Errorf("entry %d has the time %v, after %v", e.Number, e.At, at)
		}
		at = e.At
		e.At = time.Time{}
		list = append(list, e)
	}
	return list
}

// wantTrail compares the whole trail: objects by number.
func (s *session) wantTrail(first uint64, objects ...string) {
	s.Helper()
	var got []string
	for i, e := range s.trail(0) {
		if e.Number != first+uint64(i) {
			s.Errorf("entry %d of the trail has the number %d, want %d", i, e.Number, first+uint64(i))
		}
		got = append(got, e.Object)
	}
	if diff := cmp.Diff(objects, got); diff != "" {
		s.Errorf("the audit trail is not as it should be (-want +got):\n%s", diff)
	}
	low, high, err := s.AuditRange(s.ctx)
	wantLow, wantHigh := first, first+uint64(len(objects))-1
	if len(objects) == 0 {
		wantLow, wantHigh = 0, 0
	}
	if err != nil || low != wantLow || high != wantHigh {
		s.Errorf("AuditRange = %d, %d, %v; want %d, %d", low, high, err, wantLow, wantHigh)
	}
}

// checkAudit: entries are committed or refused with their commit, have numbers without
// gaps, and come back as they were.
func checkAudit(s *session) {
	s.wantTrail(1)
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("create token", "1"), note("sign in", "2")}})
	want := note("create token", "1")
	want.Number = 1
	if diff := cmp.Diff(want, s.trail(0)[0]); diff != "" {
		s.Errorf("an entry comes back changed (-want +got):\n%s", diff)
	}
	c := records(first(s.ark("a")))
	c.Audit = []*stele.AuditEntry{note("register", "3")}
	s.apply(c)
	// The same commit is refused now, and leaves no entry; nor does a condition that fails
	// after the records were looked at.
	s.refuse("a name that is taken", c, stele.Conflict)
	c = cell("x", []byte("not there"), []byte("y"))
	c.Audit = []*stele.AuditEntry{note("set", "no")}
	s.refuse("another cell", c, stele.Conflict)
	s.wantTrail(1, "1", "2", "3")
	if n := s.lastChange(); n != 1 {
		s.Errorf("the change feed has %d changes; audit entries are not in it", n)
	}
	if got := s.trail(2); len(got) != 1 || got[0].Number != 3 {
		s.Errorf("Audit(2) = %v", got)
	}
	if got := append(s.trail(3), s.trail(1<<63)...); len(got) != 0 {
		s.Errorf("the trail goes on after its end: %v", got)
	}
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "4")}})
	for _, e := range s.Audit(s.ctx, 0) { // one that is left early
		if e != nil {
			break
		}
	}
	s.wantTrail(1, "1", "2", "3", "4")
	if s.h.Durable {
		s.reopen()
		s.wantTrail(1, "1", "2", "3", "4")
	}
	s.checkAuditInvalid()
}

// checkAuditInvalid: what can't be kept is refused.
func (s *session) checkAuditInvalid() {
	s.Helper()
	long := string(make([]byte, stele.MaxAuditDetails+1))
	for why, change := range map[string]func(*stele.AuditEntry){
		"no operation":                     func(e *stele.AuditEntry) { e.Operation = "" },
		"no outcome":                       func(e *stele.AuditEntry) { e.Outcome = "" },
		"a long name":                      func(e *stele.AuditEntry) { e.By = long },
		"a long object":                    func(e *stele.AuditEntry) { e.Object = long },
		"long details":                     func(e *stele.AuditEntry) { e.Details = long },
		"trims without a commit that does": func(e *stele.AuditEntry) { e.Trimmed = 1 },
	} {
		e := note("set", "no")
		change(e)
		s.refuse(why, &stele.Commit{Audit: []*stele.AuditEntry{e}}, stele.Invalid)
	}
	s.refuse("a nil entry", &stele.Commit{Audit: []*stele.AuditEntry{nil}}, stele.Invalid)
	s.refuse("trimming that nobody says", &stele.Commit{TrimAudit: 1, Audit: []*stele.AuditEntry{note("trim", "no")}}, stele.Invalid)
}

// checkAuditTrim: trimming removes the oldest entries, leaves an entry that says so, and
// happens once.
func checkAuditTrim(s *session) {
	for i := range 10 {
		s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", fmt.Sprint(i+1))}})
	}
	trim := func(upTo uint64) *stele.Commit {
		e := note("trim audit trail", fmt.Sprint("up to ", upTo))
		e.Trimmed = upTo
		return &stele.Commit{TrimAudit: upTo, Audit: []*stele.AuditEntry{e}}
	}
	s.refuse("more than there is", trim(11), stele.Conflict)
	s.apply(trim(7))
	s.wantTrail(8, "8", "9", "10", "up to 7")
	s.refuse("what is gone", trim(7), stele.Conflict)
	s.refuse("what is gone, in part", trim(3), stele.Conflict)
	if got := s.trail(3); len(got) != 4 {
		s.Errorf("Audit(3) has %d entries, want those that are left", len(got))
	}
	s.verify()
	s.apply(trim(11))
	s.wantTrail(12, "up to 11")
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "13")}})
	s.wantTrail(12, "up to 11", "13")
	if s.h.Durable {
		s.reopen()
		s.wantTrail(12, "up to 11", "13")
		s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "14")}})
		s.wantTrail(12, "up to 11", "13", "14")
	}
}

// checkAuditCopy: a trail can be copied to another store, with its numbers and times, in
// parts, and from where it begins.
func checkAuditCopy(s *session) {
	at := time.Date(2031, 5, 2, 10, 0, 0, 123456000, time.UTC)
	copied := func(number uint64) *stele.AuditEntry {
		e := note("set", fmt.Sprint(number))
		e.Number, e.At, e.Trimmed = number, at.Add(time.Duration(number)*time.Second), 40
		return e
	}
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{copied(41), copied(42)}})
	s.refuse("the same again", &stele.Commit{Audit: []*stele.AuditEntry{copied(42)}}, stele.Conflict)
	s.refuse("a gap", &stele.Commit{Audit: []*stele.AuditEntry{copied(44)}}, stele.Conflict)
	s.refuse("a gap inside", &stele.Commit{Audit: []*stele.AuditEntry{copied(43), copied(45)}}, stele.Invalid)
	s.refuse("one with and one without", &stele.Commit{Audit: []*stele.AuditEntry{copied(43), note("set", "x")}}, stele.Invalid)
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{copied(43)}})
	s.wantTrail(41, "41", "42", "43")
	for _, e := range all(s, "Audit(42)", s.Audit(s.ctx, 42)) {
		if !e.At.Equal(at.Add(43 * time.Second)) {
			s.Errorf("entry %d was copied with the time %v, and has %v", e.Number, at.Add(43*time.Second), e.At)
		}
	}
	// The clock of this store is earlier than that of the other: the time stays.
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "44")}})
	s.wantTrail(41, "41", "42", "43", "44")
}

// checkAuditIngest: an ingest leaves an entry for each namespace, with how many records
// were committed there, and none if there were none.
func checkAuditIngest(s *session) {
	one, other := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/a"}, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/b"}
	count := func(id stele.ID) (stele.NamespaceKey, uint64) {
		switch id.String()[len("ark:12345/")] {
		case 'a':
			return one, 0
		case 'b':
			return other, 0
		}
		return stele.NamespaceKey{}, 0
	}
	for _, n := range []int{2, 3000} {
		var list []*stele.Record
		for i := range n {
			for _, c := range "abc" {
				list = append(list, first(s.ark(fmt.Sprintf("%c%d-%d", c, n, i))))
			}
		}
		list = append(list, list[0]) // refused
		model := note("import", fmt.Sprint(n))
		errs, err := s.Ingest(s.ctx, list, count, nil, nil, model)
		if err != nil || errs[len(list)-1] == nil {
			s.Fatalf("Ingest: %v, %v", errs[len(list)-1], err)
		}
		if model.Number != 0 || model.Count != 3 {
			s.Errorf("Ingest has changed the entry that it was given: %+v", model)
		}
		_, last, _ := s.AuditRange(s.ctx)
		got := s.trail(last - min(last, 3))
		if len(got) != 3 {
			s.Fatalf("an ingest left %d entries in the audit trail, want 3", len(got))
		}
		for i, key := range []stele.NamespaceKey{{}, one, other} {
			if e := got[i]; e.Namespace != key || e.Count != uint64(n) || e.Object != fmt.Sprint(n) {
				s.Errorf("entry %d of an ingest of %d is %+v; want the namespace %q", i, n, e, key)
			}
		}
		if _, err := s.Ingest(s.ctx, list, count, nil, nil, model); err != nil {
			s.Fatalf("Ingest: %v", err)
		}
		s.wantTrailEnd(last)
	}
	if _, err := s.Ingest(s.ctx, nil, count, nil, &stele.MinterState{Name: "m", After: []byte("x")}, note("import", "none")); err != nil {
		s.Errorf("Ingest: %v", err)
	}
	s.wantTrailEnd(6)
	if _, err := s.Ingest(s.ctx, []*stele.Record{first(s.ark("d"))}, count, nil, nil, &stele.AuditEntry{}); stele.KindOf(orInternal(err)) != stele.Invalid {
		s.Errorf("Ingest with an entry without operation: %v", err)
	}
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "7")}})
	s.wantTrailEnd(7)
}

func orInternal(err error) error {
	if err == nil {
		return stele.Internal
	}
	return err
}

func (s *session) wantTrailEnd(want uint64) {
	s.Helper()
	if _, last, err := s.AuditRange(s.ctx); err != nil || last != want {
		s.Errorf("the last entry of the audit trail is %d, %v; want %d", last, err, want)
	}
}

// checkAuditLoad: many writers at once leave no gap.
func checkAuditLoad(s *session) {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				c := records(first(s.ark(fmt.Sprintf("w%d-%d", w, i))))
				c.Audit = []*stele.AuditEntry{note("register", fmt.Sprint(w, " ", i))}
				if err := s.Apply(s.ctx, c); err != nil {
					s.Errorf("Apply: %v", err)
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for i, e := range s.trail(0) {
		if e.Number != uint64(i)+1 || seen[e.Object] {
			s.Errorf("entry %d at place %d, of %q", e.Number, i+1, e.Object)
		}
		seen[e.Object] = true
	}
	if len(seen) != writers*each {
		s.Errorf("the trail has %d entries, want %d", len(seen), writers*each)
	}
}

// checkAuditBackup: a backup has the trail, and a sealed store takes no entry.
func checkAuditBackup(s *session) {
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "1"), note("set", "2")}})
	folder := filepath.Join(s.test.TempDir(), "backup")
	if err := s.Backup(s.ctx, folder); err != nil {
		s.Fatalf("Backup: %v", err)
	}
	s.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "3")}})
	o := s.other(folder)
	o.wantTrail(1, "1", "2")
	o.apply(&stele.Commit{Audit: []*stele.AuditEntry{note("set", "other 3")}})
	o.wantTrail(1, "1", "2", "other 3")
	o.end()
	if err := s.Seal(s.ctx, "moved"); err != nil {
		s.Fatalf("Seal: %v", err)
	}
	s.refuse("an entry after the seal", &stele.Commit{Audit: []*stele.AuditEntry{note("set", "4")}}, stele.Conflict)
	s.wantTrail(1, "1", "2", "3")
}
