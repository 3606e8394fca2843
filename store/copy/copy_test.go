package copy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/storetest"
)

// TestCopy copies between all kinds of stores.
func TestCopy(t *testing.T) {
	stores := copyStores(t)
	for _, pair := range [][2]string{{"memory", "folder"}, {"folder", "folder"}, {"folder", "PostgreSQL"}, {"PostgreSQL", "folder"}, {"PostgreSQL", "PostgreSQL"}} {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			from, to := stores[pair[0]](t), stores[pair[1]](t)
			storetest.Fill(t, from, 1)
			before := storetest.Image(t, from)
			done, err := newCopier(from, to).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			storetest.WantSame(t, from, to)
			if got := storetest.Image(t, from); got != before {
				t.Error("copying has changed what was copied")
			}
			if last, _ := from.LastChange(t.Context()); done.Changes != last || done.Records == 0 || done.Namespaces == 0 || done.Minters == 0 || done.Cells == 0 || done.Audit == 0 {
				t.Errorf("copied %+v, of %d changes", done, last)
			}
			wantCopyEntry(t, to)
			reason, err := from.Sealed(t.Context())
			if err != nil || !strings.Contains(reason, "/to") {
				t.Errorf("the source is sealed with %q, %v", reason, err)
			}
			if reason, err := to.Sealed(t.Context()); err != nil || reason != "" {
				t.Errorf("the copy is sealed: %q, %v", reason, err)
			}
			if err := RefuseUnfinished(t.Context(), to, Place{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantCopyEntry makes sure that the audit trail of a copy ends with an entry that says so.
func wantCopyEntry(t *testing.T, to stele.Store) {
	t.Helper()
	var last *stele.AuditEntry
	for e, err := range to.Audit(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	if last == nil || last.Operation != "copy store" || last.Object != "store:to" || last.Details != "from from" {
		t.Errorf("the last entry is %+v", last)
	}
}

// forgetful is a registry that an earlier program wrote: of namespaces it has the newest
// versions only.
type forgetful struct {
	stele.Store
	from uint64 // the first version that is kept, unless a newer one is the first
}

func (f forgetful) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return altered(f.Store.NamespaceHistory(ctx, key), func(i int, n *stele.Namespace) (*stele.Namespace, bool) {
		return n, i == 0 || n.Version >= f.from
	})
}

// TestCopyUnkept: a copy does not make up what versions of namespaces said that were
// not kept.
func TestCopyUnkept(t *testing.T) {
	from, to := mem.New(time.Now), mem.New(time.Now)
	storetest.Fill(t, from, 8)
	if _, err := newCopier(forgetful{from, 4}, to).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := make(map[string]time.Time)
	for c, err := range from.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		made[fmt.Sprint(c.Namespace, c.Version)] = c.At
	}
	some := 0
	for ns, err := range to.Namespaces(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for v, err := range to.NamespaceHistory(t.Context(), ns.Key()) {
			if err != nil {
				t.Fatal(err)
			}
			want := v.Version < 4 && v.Version < ns.Version
			if want != (v.Title == unkeptTitle) || want && (v.By != "" || !v.Modified.Equal(made[fmt.Sprint(v.Key(), v.Version)])) {
				t.Errorf("version %d of %s is %+v", v.Version, v.Key(), v)
			}
			if want {
				some++
			}
		}
	}
	if some == 0 {
		t.Error("all versions were kept")
	}
	if err := to.Verify(t.Context(), func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
}

// faulty fails at the commit with a number: before it is made, or after it.
type faulty struct {
	stele.Store
	at    int64
	after bool
	n     atomic.Int64
}

var errFaulty = errors.New("the wire was cut")

func (f *faulty) Apply(ctx context.Context, c *stele.Commit) error {
	n := f.n.Add(1)
	if n == f.at && f.after {
		if err := f.Store.Apply(ctx, c); err != nil {
			return err
		}
	}
	if n >= f.at {
		return errFaulty
	}
	return f.Store.Apply(ctx, c)
}

func (f *faulty) Seal(ctx context.Context, reason string) error {
	n := f.n.Add(1)
	if n == f.at && f.after {
		if err := f.Store.Seal(ctx, reason); err != nil {
			return err
		}
	}
	if n >= f.at {
		return errFaulty
	}
	return f.Store.Seal(ctx, reason)
}

// TestCopyResumes cuts a copy off at every write there is, before it has an effect and
// after it, and continues it.
func TestCopyResumes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, side := range []string{"from", "to"} {
			for at := int64(1); ; at++ {
				from, to := stele.Store(mem.New(time.Now)), stele.Store(mem.New(time.Now))
				storetest.Fill(t, from, uint64(at))
				broken := &faulty{at: at, after: after}
				c := newCopier(from, to)
				if side == "to" {
					broken.Store, c.To = to, broken
				} else {
					broken.Store, c.From = from, broken
				}
				_, err := c.Run(t.Context())
				if err == nil {
					if broken.n.Load() >= at || at < 2 {
						t.Fatalf("after %d writes, cut off at %d, the copy is said to be done", broken.n.Load(), at)
					}
					break // it was cut off everywhere
				}
				if !errors.Is(err, errFaulty) {
					t.Fatalf("cut off at %d: %v", at, err)
				}
				if gone := side == "to" && after && isFinished(t, to); !gone {
					if _, err := newCopier(from, to).Run(t.Context()); err != nil {
						t.Fatalf("%s, cut off at %d (after: %t), does not go on: %v", side, at, after, err)
					}
				}
				storetest.WantSame(t, from, to)
			}
		}
	}
}

// isFinished reports whether a store is a copy that was finished: only the answer to the
// last write of all was lost.
func isFinished(t *testing.T, s stele.Store) bool {
	t.Helper()
	mark, err := ReadMark(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.LastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mark == nil && last > 0
}

// TestCopyRaces copies while others write: every acknowledged write is in the copy, and
// no write is acknowledged afterwards.
func TestCopyRaces(t *testing.T) {
	stores := copyStores(t)
	for _, pair := range [][2]string{{"memory", "memory"}, {"folder", "folder"}, {"PostgreSQL", "folder"}} {
		t.Run(pair[0], func(t *testing.T) {
			from, to := stores[pair[0]](t), stores[pair[1]](t)
			storetest.Fill(t, from, 2)
			var mu sync.Mutex
			var acknowledged []stele.ID
			busy := make(chan struct{})
			goOn := sync.OnceFunc(func() { close(busy) })
			var writers sync.WaitGroup
			for i := range 8 {
				writers.Go(func() {
					defer goOn()
					for j := 0; ; j++ {
						id, err := stele.NewID("ark", fmt.Sprintf("ark:99999/%d-%d", i, j))
						if err != nil {
							t.Error(err)
							return
						}
						err = from.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{{ID: id, State: stele.Active, Version: 1}}})
						if errors.Is(err, stele.ErrSealed) {
							return
						} else if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if acknowledged = append(acknowledged, id); len(acknowledged) > 100 {
							goOn()
						}
						mu.Unlock()
					}
				})
			}
			<-busy
			_, err := newCopier(from, to).Run(t.Context())
			writers.Wait()
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range acknowledged {
				if _, err := to.Record(t.Context(), id); err != nil {
					t.Fatalf("%s was acknowledged: %v", id, err)
				}
			}
			storetest.WantSame(t, from, to)
		})
	}
}

// TestCopyRefuses is about places that can't be copied, or copied to.
func TestCopyRefuses(t *testing.T) {
	something := &stele.Commit{Cells: []stele.CellChange{{Name: "x", After: []byte{1}}}}
	for _, test := range []struct {
		name    string
		prepare func(from, to stele.Store) error
		want    string
	}{
		{"a copy with a registry", func(_, to stele.Store) error { storetest.Fill(t, to, 3); return nil }, "has a registry already"},
		{"a copy with a cell", func(_, to stele.Store) error { return to.Apply(t.Context(), something) }, "has a registry already"},
		{"a copy with a minter", func(_, to stele.Store) error {
			return to.Apply(t.Context(), &stele.Commit{Minters: []stele.MinterState{{Name: "m", After: []byte{1}}}})
		}, "has a registry already"},
		{"a sealed copy", func(_, to stele.Store) error { return to.Seal(t.Context(), "moved") }, "sealed itself"},
		{"a source that is unfinished", func(from, _ stele.Store) error { return setMark(t.Context(), from, &Mark{From: "another"}) }, "from is a copy of another that is not finished"},
		{"a source that moves elsewhere", func(from, _ stele.Store) error { return from.Seal(t.Context(), "it moved to Rome") }, "sealed for another reason (it moved to Rome)"},
		{"a copy of another registry", func(_, to stele.Store) error {
			other := mem.New(time.Now)
			storetest.Fill(t, other, 4)
			c := newCopier(other, &faulty{Store: to, at: 5})
			if _, err := c.Run(t.Context()); !errors.Is(err, errFaulty) {
				return fmt.Errorf("not cut off: %w", err)
			}
			return nil
		}, "not of this registry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := mem.New(time.Now), mem.New(time.Now)
			storetest.Fill(t, from, 5)
			if err := test.prepare(from, to); err != nil {
				t.Fatal(err)
			}
			before, copied := storetest.Image(t, from), storetest.Image(t, to)
			_, err := newCopier(from, to).Run(t.Context())
			if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if storetest.Image(t, from) != before || storetest.Image(t, to) != copied {
				t.Error("something was written")
			}
		})
	}
}

// TestCopyUnsealed: if a user removes the seal in the middle and writes on, the copy
// can be continued.
func TestCopyUnsealed(t *testing.T) {
	from, to := mem.New(time.Now), mem.New(time.Now)
	storetest.Fill(t, from, 6)
	if _, err := newCopier(from, &faulty{Store: to, at: 6}).Run(t.Context()); !errors.Is(err, errFaulty) {
		t.Fatal(err)
	}
	if err := from.Seal(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	id, err := stele.NewID("ark", "ark:99999/late")
	if err != nil {
		t.Fatal(err)
	}
	late := &stele.Commit{Records: []*stele.Record{{ID: id, State: stele.Active, Version: 1}}, Cells: []stele.CellChange{{Name: "late", After: []byte{1}}}}
	if err := from.Apply(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if _, err := newCopier(from, to).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.WantSame(t, from, to)

	// If a user does so while the copy runs, it reports that.
	other := mem.New(time.Now)
	if err := from.Seal(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	_, err = newCopier(&unsealing{Store: from}, other).Run(t.Context())
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "was removed meanwhile") {
		t.Errorf("the seal was taken away meanwhile: %v", err)
	}
	if mark, err := ReadMark(t.Context(), other); err != nil || mark == nil {
		t.Errorf("the copy can be used: %v, %v", mark, err)
	}
}

// TestCopyTrimmed: what is trimmed from the audit trail between two runs of a copy is
// trimmed in the copy.
func TestCopyTrimmed(t *testing.T) {
	from := mem.New(time.Now)
	storetest.Fill(t, from, 9)
	whole := &faulty{Store: mem.New(time.Now), at: 1 << 40}
	if _, err := newCopier(from, whole).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	to := mem.New(time.Now)
	if _, err := newCopier(from, &faulty{Store: to, at: whole.n.Load()}).Run(t.Context()); !errors.Is(err, errFaulty) {
		t.Fatal(err)
	}
	first, last, err := from.AuditRange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, copied, err := to.AuditRange(t.Context()); copied != last || err != nil {
		t.Fatalf("%d of %d entries were copied: %v", copied, last, err)
	}
	if err := from.Seal(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	trim := first + 20
	entries := []*stele.AuditEntry{{By: "root", Operation: "trim audit", Outcome: stele.AuditDone, Trimmed: trim}, {By: "root", Operation: "another", Outcome: stele.AuditDone}}
	if err := from.Apply(t.Context(), &stele.Commit{Audit: entries, TrimAudit: trim}); err != nil {
		t.Fatal(err)
	}
	if _, err := newCopier(from, to).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.WantSame(t, from, to)
	if first, _, err := to.AuditRange(t.Context()); first != trim+1 || err != nil {
		t.Errorf("the trail of the copy begins with %d, %v; want %d", first, err, trim+1)
	}
}

// unsealing loses its seal when its minters are read.
type unsealing struct{ stele.Store }

func (u *unsealing) MinterStates(ctx context.Context) iter.Seq2[stele.MinterState, error] {
	_ = u.Store.Seal(ctx, "") // what the test is about shows whether it did
	return u.Store.MinterStates(ctx)
}

// TestCopyOfAnother: a registry that is not the one which was half copied is neither
// copied nor sealed.
func TestCopyOfAnother(t *testing.T) {
	from, to, other := mem.New(time.Now), mem.New(time.Now), mem.New(time.Now)
	storetest.Fill(t, from, 6)
	storetest.Fill(t, other, 7)
	if _, err := newCopier(from, &faulty{Store: to, at: 6}).Run(t.Context()); !errors.Is(err, errFaulty) {
		t.Fatal(err)
	}
	if _, err := newCopier(other, to).Run(t.Context()); stele.KindOf(err) != stele.Conflict {
		t.Errorf("another registry was copied: %v", err)
	}
	if reason, err := other.Sealed(t.Context()); reason != "" || err != nil {
		t.Errorf("it is sealed: %q, %v", reason, err)
	}
}
