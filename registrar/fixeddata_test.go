package registrar

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// What is said first of the bytes of a record holds: for other processes, at the same time, after a restart, and after a
// restore.
func TestFixedData(t *testing.T) {
	f := newFixture(t)
	schemes := testSchemes(t)
	id, err := schemes.Parse("urn:lsid:example.org:ns:" + strings.Repeat("x", 3000)) // longer than names of cells
	if err != nil {
		t.Fatal(err)
	}
	if d, err := f.FixedData(f.admin, id); err != nil || d != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	rec := &stele.Record{ID: id, State: stele.Active, Version: 1, Created: f.options.Now(), Modified: f.options.Now()}
	if _, err := f.FixData(f.admin, rec, FixedData{SHA256: "x"}); !errors.Is(err, stele.NotFound) {
		t.Errorf("without a record: %v", err)
	}
	if err := f.store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{rec}}); err != nil {
		t.Fatal(err)
	}
	// What was found by another version of the record than the current one is not stored.
	if _, err := f.FixData(f.admin, &stele.Record{ID: id, Version: 2}, FixedData{SHA256: "x"}); !errors.Is(err, stele.Conflict) {
		t.Errorf("by another version: %v", err)
	}
	if d, err := f.FixedData(f.admin, id); err != nil || d != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	var said sync.Map
	var work sync.WaitGroup
	for _, digest := range strings.Fields("a b c d e f g h") {
		work.Go(func() {
			d, err := New(f.store, schemes, f.options).FixData(f.admin, rec, FixedData{SHA256: digest, Size: 1})
			if err != nil {
				t.Error(err)
				return
			}
			said.Store(d.SHA256, true)
		})
	}
	work.Wait()
	f.start()
	kept, err := f.FixedData(f.admin, id)
	if err != nil || kept == nil || kept.ID != id.String() {
		t.Fatalf("%+v, %v", kept, err)
	}
	said.Range(func(digest, _ any) bool {
		if digest != kept.SHA256 {
			t.Errorf("a caller was told %v, and %s is kept", digest, kept.SHA256)
		}
		return true
	})
	if d, err := f.FixData(f.admin, rec, FixedData{Absent: true}); err != nil || *d != *kept {
		t.Errorf("said again: %+v, %v", d, err)
	}
	for _, ctx := range []context.Context{context.Background(), as("ann"), auth.With(context.Background(), auth.Principal{Name: "ann", Admin: true, Token: "t"})} {
		if _, err := f.FixData(ctx, rec, FixedData{}); !errors.Is(err, stele.Forbidden) {
			t.Errorf("a user: %v", err)
		}
		if _, err := f.FixedData(ctx, id); !errors.Is(err, stele.Forbidden) {
			t.Errorf("a user: %v", err)
		}
	}
	entries := 0
	for e, err := range f.store.Audit(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Operation == opFixData && e.Details == "sha256:"+kept.SHA256 {
			entries++
		}
	}
	if entries != 1 {
		t.Errorf("%d entries in the audit trail", entries)
	}
	backup := newFixture(t)
	if err := backup.Inherit(backup.admin, must(ReadLegacy(t.Context(), f.store, backup.store))(t)); err != nil {
		t.Fatal(err)
	}
	if d, err := backup.FixedData(backup.admin, id); err != nil || d == nil || *d != *kept {
		t.Errorf("after a restore: %+v, %v", d, err)
	}
}

// changing is a store in which something happens just before the commit of a digest.
type changing struct {
	stele.Store
	before func()
}

func (c *changing) Apply(ctx context.Context, commit *stele.Commit) error {
	if before := c.before; len(commit.Seen) > 0 && before != nil {
		c.before = nil
		before()
	}
	return c.Store.Apply(ctx, commit)
}

// TestFixedDataMeanwhile: what changes between the last look at a record and the commit of its digest is noticed by the store: another
// version of the record, and a seal of its namespace.
func TestFixedDataMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(f *fixture, id stele.ID) error{
		"version": func(f *fixture, id stele.ID) error {
			_, err := f.Update(f.admin, id, 0, func(r *stele.Record) error {
				r.Targets = []stele.Target{{Service: stele.N2L, URL: "https://example.org/other"}}
				return nil
			})
			return err
		},
		"seal": func(f *fixture, id stele.ID) error {
			f.sealed(f.key("urn:example"))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.space("urn:example")
			rec := f.registered("urn:example:1")
			store := &changing{Store: f.store}
			store.before = func() {
				if err := meanwhile(f, rec.ID); err != nil {
					t.Error(err)
				}
			}
			other := New(store, testSchemes(t), f.options) // another server over the same database
			if _, err := other.FixData(f.admin, rec, FixedData{SHA256: strings.Repeat("0a", 32), Size: 1}); !errors.Is(err, stele.Conflict) {
				t.Errorf("%v", err)
			}
			if store.before != nil {
				t.Error("nothing was committed")
			}
			if d, err := f.FixedData(f.admin, rec.ID); err != nil || d != nil {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}
