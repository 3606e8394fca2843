package copy

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/storetest"
)

// spoilt is a copy of which something is read otherwise.
type spoilt struct {
	stele.Store
	what string
}

// altered yields what spoil makes of each item; nothing for those it refuses.
func altered[T any](seq iter.Seq2[T, error], spoil func(i int, item T) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		i := 0
		for item, err := range seq {
			if err == nil {
				var keep bool
				if item, keep = spoil(i, item); !keep {
					i++
					continue
				}
			}
			i++
			if !yield(item, err) {
				return
			}
		}
	}
}

func (s spoilt) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return altered(s.Store.Scan(ctx, scheme, prefix, after), func(i int, r *stele.Record) (*stele.Record, bool) {
		if s.what == "record" && i == 3 {
			r.By = "nobody"
		}
		return r, s.what != "missing record" || i != 3
	})
}

func (s spoilt) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return altered(s.Store.History(ctx, id), func(i int, r *stele.Record) (*stele.Record, bool) {
		if s.what == "version" && i == 1 {
			r.By = "nobody"
		}
		return r, s.what != "missing version" || i != 1
	})
}

func (s spoilt) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return altered(s.Store.Changes(ctx, after), func(i int, c stele.Change) (stele.Change, bool) {
		switch {
		case i != 20:
		case s.what == "time":
			c.At = c.At.Add(time.Millisecond)
		case s.what == "counted":
			c.Counted.Prefix += "x"
		}
		return c, s.what != "missing change" || i < 100
	})
}

func (s spoilt) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return altered(s.Store.Namespaces(ctx), func(i int, n *stele.Namespace) (*stele.Namespace, bool) {
		if s.what == "namespace" && i == 1 {
			n.Title = "another"
		}
		return n, s.what != "missing namespace" || i != 1
	})
}

func (s spoilt) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return altered(s.Store.NamespaceHistory(ctx, key), func(i int, n *stele.Namespace) (*stele.Namespace, bool) {
		switch {
		case i != 2 || key.Prefix != "ark:12345/1":
		case s.what == "namespace version":
			n.Title = "another"
		case s.what == "namespace actor":
			n.By = "another"
		case s.what == "missing namespace version":
			return n, false
		}
		return n, true
	})
}

// Audit is without the entry that the copy got when it was finished.
func (s spoilt) Audit(ctx context.Context, after uint64) iter.Seq2[*stele.AuditEntry, error] {
	return altered(s.Store.Audit(ctx, after), func(i int, e *stele.AuditEntry) (*stele.AuditEntry, bool) {
		switch {
		case i != 9:
		case s.what == "audit entry":
			e.By = "another"
		case s.what == "audit time":
			e.At = e.At.Add(time.Millisecond)
		case s.what == "missing audit entry":
			return e, false
		}
		return e, e.Operation != "copy store"
	})
}

func (s spoilt) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	n, err := s.Store.Count(ctx, key)
	if s.what == "count" {
		n++
	}
	return n, err
}

func (s spoilt) MinterStates(ctx context.Context) iter.Seq2[stele.MinterState, error] {
	return altered(s.Store.MinterStates(ctx), func(i int, m stele.MinterState) (stele.MinterState, bool) {
		if s.what == "minter" && i == 2 {
			m.After = append(bytes.Clone(m.After), 'x')
		}
		return m, s.what != "missing minter" || i != 2
	})
}

func (s spoilt) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return altered(s.Store.Cells(ctx, prefix, after), func(i int, c stele.Cell) (stele.Cell, bool) {
		if s.what == "cell" && i == 2 {
			c.Value = append(bytes.Clone(c.Value), 'x')
		}
		return c, s.what != "missing cell" || i != 2
	})
}

func (s spoilt) Verify(ctx context.Context, report func(*stele.Message)) error {
	if s.what == "index" {
		report(stele.Messagef("x.y", "the index is broken"))
	}
	return s.Store.Verify(ctx, report)
}

// TestCompare: whatever of a copy is not what it should be is found.
func TestCompare(t *testing.T) {
	for what, want := range map[string]string{
		"":                  "",
		"record":            " differs",
		"missing record":    "lacks a record",
		"version":           " differs",
		"missing version":   " differs",
		"time":              "change 21 differs",
		"counted":           "change 21 differs",
		"missing change":    "change 101 differs",
		"namespace":         "namespace ark:12345/1 differs",
		"missing namespace": "lacks a namespace",
		"count":             "counts",
		"minter":            "a minter differs",
		"missing minter":    "a minter differs",
		"cell":              "a cell differs",
		"missing cell":      "a cell differs",
		"index":             "the index is broken",

		"namespace version":         "namespace ark:12345/1 differs",
		"namespace actor":           "namespace ark:12345/1 differs",
		"missing namespace version": "namespace ark:12345/1 differs",
		"audit entry":               "of the audit trail differs",
		"audit time":                "of the audit trail differs",
		"missing audit entry":       "lacks an entry of the audit trail",
	} {
		t.Run(what, func(t *testing.T) {
			from, to := mem.New(time.Now), mem.New(time.Now)
			storetest.Fill(t, from, 7)
			if _, err := newCopier(from, to).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := newCopier(from, spoilt{to, what})
			var err error
			if c.seal, err = from.Sealed(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.last, err = from.LastChange(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = c.compare(t.Context())
			switch {
			case want == "" && err != nil:
				t.Error(err)
			case want != "" && (stele.KindOf(err) != stele.Internal || !strings.Contains(err.Error(), want)):
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
