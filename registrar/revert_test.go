package registrar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/store/storetest"
)

// A line of an update is merged with what is registered.
func TestPatch(t *testing.T) {
	f := newFixture(t)
	before := f.read(`{"id":"ark:12345/x1","spelling":"ark:/12345/x1","targets":[{"url":"https://example.org/1","type":"text/html"},{"url":"https://example.org/m"},{"service":"N2C","url":"https://example.org/c"}],"metadata":{"who":"Ann","what":"Rivers"},"persistence":{"level":"stable","until":"2040-01-01"},"readers":["user:ann"]}`)
	for _, tt := range []struct{ line, want string }{
		{`{"id":"ark:12345/x1"}`, ""},
		{`{"id":"ark:12345/x1","metadata":{"what":"Lakes"}}`, "metadata.what: Rivers -> Lakes"},
		{`{"id":"ark:12345/x1","metadata":{"what":null}}`, "metadata.what: Rivers -> "},
		{`{"id":"ark:12345/x1","metadata":null}`, "metadata.what: Rivers -> ; metadata.who: Ann -> "},
		{`{"id":"ark:12345/x1","url":"https://example.org/2"}`, "targets[0].url: https://example.org/1 -> https://example.org/2"},
		{`{"id":"ark:12345/x1","target":{"type":null}}`, "targets[0].type: text/html -> "},
		{`{"id":"ark:12345/x1","target":{"service":"N2C","url":"https://example.org/d"}}`, "targets[2].url: https://example.org/c -> https://example.org/d"},
		{`{"id":"ark:12345/x1","target":{"service":"N2S","url":"https://example.org/s"}}`, "targets[3].service:  -> N2S; targets[3].url:  -> https://example.org/s"},
		{`{"id":"ark:12345/x1","target":{"service":"N2C","url":null}}`, "targets[2].service: N2C -> ; targets[2].url: https://example.org/c -> "},
		{`{"id":"ark:12345/x1","target":{"ttl":60},"targets":[]}`, "targets[0].ttl:  -> 60; targets[1].url: https://example.org/m -> ; targets[2].service: N2C -> ; targets[2].url: https://example.org/c -> "},
		{`{"id":"ark:12345/x1","targets":[],"readers":[],"persistence":{"until":null}}`, "persistence.until: 2040-01-01 -> ; readers[0]: user:ann -> ; targets[0].type: text/html -> ; targets[0].url: https://example.org/1 -> ; targets[1].url: https://example.org/m -> ; targets[2].service: N2C -> ; targets[2].url: https://example.org/c -> "},
		{`{"id":"ark:12345/x1","version":7,"by":"eve","created":"2001-01-01T00:00:00Z","redacted":true}`, ""},
		{`{"id":"ark:12345/x1","colour":"red"}`, "colour: "},
		{`{"id":"ark:12345/x1","metadata":{"a":"1","a":"2"}}`, "metadata.a: is given twice"},
		{`{"id":"ark:12345/x1","url":"https://example.org/","targets":[{"url":"https://example.org/"}]}`, "url: is short for one target"},
		{`[]`, "this is not an object"},
	} {
		after, err := Patch(f.schemes, before, []byte(tt.line))
		var got string
		if err != nil {
			got = stele.Reason(err).Error()
		} else {
			var list []string
			for _, c := range FieldChanges(before, after) {
				list = append(list, c.Path+": "+c.Old+" -> "+c.New)
			}
			got = strings.Join(list, "; ")
		}
		if got != tt.want && !(err != nil && tt.want != "" && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s:\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}
}

func (f *fixture) read(text string) *stele.Record {
	f.t.Helper()
	rec, err := document.DecodeRecord(f.schemes, []byte(text))
	if err != nil {
		f.t.Fatal(err)
	}
	return rec
}

// imported imports lines as one import, and returns its number.
func (f *fixture) imported(ctx context.Context, o ImportOptions, lines ...string) uint64 {
	f.t.Helper()
	if o.Import == 0 {
		o.Import = must(f.BeginImport(ctx, "test"))(f.t)
	}
	o.Update, o.Lines = true, nil
	var records []*stele.Record
	for _, line := range lines {
		rec, err := Patch(f.schemes, nil, []byte(line))
		if err != nil {
			f.t.Fatal(err)
		}
		records, o.Lines = append(records, rec), append(o.Lines, []byte(line))
	}
	errs, err := f.Ingest(ctx, records, o)
	if err = errors.Join(append(errs, err)...); err != nil {
		f.t.Fatal(err)
	}
	if err := f.NoteImport(ctx, o.Import, ImportCounts{}); err != nil {
		f.t.Fatal(err)
	}
	return o.Import
}

// reverted reverts an import, and returns what it did.
func (f *fixture) reverted(ctx context.Context, number uint64, o RevertOptions) (steps []string) {
	f.t.Helper()
	_, err := f.RevertImport(ctx, number, o, func(s RevertStep) error {
		steps = append(steps, strings.TrimSpace(fmt.Sprintf("%s %s %d %.13s", s.ID, s.Status, s.To, s.Why)))
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return steps
}

// A revert undoes what its import did, and nothing of what others did at the same time.
func TestRevertImport(t *testing.T) {
	f := newFixture(t)
	f.imported(f.admin, ImportOptions{}, `{"id":"ark:12345/x1","url":"https://example.org/1","metadata":{"who":"Ann"}}`, `{"id":"ark:12345/x2","url":"https://example.org/2"}`)
	mine := must(f.BeginImport(f.admin, "mine"))(t)
	other := must(f.BeginImport(f.admin, "other"))(t)
	for i := range 3 { // two imports and another editor, in turn
		f.imported(f.admin, ImportOptions{Import: mine}, fmt.Sprintf(`{"id":"ark:12345/m%d","url":"https://example.org/m"}`, i), `{"id":"ark:12345/x1","metadata":{"what":"`+strings.Repeat("x", i+1)+`"}}`)
		f.imported(f.admin, ImportOptions{Import: other}, fmt.Sprintf(`{"id":"ark:12345/o%d","url":"https://example.org/o"}`, i))
		f.registered(fmt.Sprintf("ark:12345/s%d", i))
	}
	f.imported(f.admin, ImportOptions{Import: mine}, `{"id":"ark:12345/x2","url":"https://example.org/two"}`, `{"id":"ark:12345/r","state":"reserved"}`)
	must(f.Update(f.admin, f.id("ark:12345/m2"), 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{"who": "Eve"}; return nil }))(t)

	expected := []string{
		"ark:12345/m0 withdrawn 0", "ark:12345/m1 withdrawn 0", "ark:12345/m2 left 0 it was change",
		"ark:12345/x1 reverted 1", "ark:12345/r left 0 it is reserve", "ark:12345/x2 reverted 1",
	}
	dry := f.reverted(f.admin, mine, RevertOptions{DryRun: true})
	if diff := cmp.Diff(sorted(expected), sorted(dry)); diff != "" {
		t.Error(diff)
	}
	if rec := must(f.Get(f.admin, f.id("ark:12345/m0")))(t); rec.State != stele.Active {
		t.Fatal("a dry run wrote something")
	}
	if diff := cmp.Diff(sorted(dry), sorted(f.reverted(f.admin, mine, RevertOptions{}))); diff != "" {
		t.Error(diff)
	}
	x1 := must(f.Get(f.admin, f.id("ark:12345/x1")))(t)
	if x1.Metadata["who"] != "Ann" || x1.Metadata["what"] != "" || x1.Version != 5 {
		t.Errorf("after the revert x1 is %s", document.AppendRecord(nil, x1))
	}
	for _, name := range []string{"ark:12345/o0", "ark:12345/o2", "ark:12345/s1"} {
		if rec := must(f.Get(f.admin, f.id(name)))(t); rec.State != stele.Active || rec.Version != 1 {
			t.Errorf("the revert touched %s", document.AppendRecord(nil, rec))
		}
	}
	if again := f.reverted(f.admin, mine, RevertOptions{}); len(again) != 2 {
		t.Errorf("again: %q", again)
	}
	_, err := f.Ingest(f.admin, []*stele.Record{f.record("ark:12345/z", "https://example.org/")}, ImportOptions{Import: mine})
	want(t, err, stele.Conflict, "reverted")
}

func sorted(list []string) []string {
	list = append([]string(nil), list...)
	for i := range list {
		for k := i; k > 0 && list[k] < list[k-1]; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
	return list
}

// A revert that ends early continues where it was, and does nothing twice.
func TestRevertGoesOn(t *testing.T) {
	f := newFixture(t)
	number := must(f.BeginImport(f.admin, "many"))(t)
	const n = 2*revertPage + 10
	var records []*stele.Record
	for i := range n {
		records = append(records, f.record(fmt.Sprintf("ark:12345/x%d", i), "https://example.org/"))
	}
	if _, err := f.Ingest(f.admin, records, ImportOptions{Import: number}); err != nil {
		t.Fatal(err)
	}
	stop, seen := errors.New("stop"), 0
	_, err := f.RevertImport(f.admin, number, RevertOptions{}, func(RevertStep) error {
		if seen++; seen > revertPage+5 { // in the second page, which is committed
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if rest := f.reverted(f.admin, number, RevertOptions{}); len(rest) != 10 {
		t.Errorf("%d records were left, not 10", len(rest))
	}
	for i := range n {
		if rec := must(f.Get(f.admin, f.id(fmt.Sprintf("ark:12345/x%d", i))))(t); rec.State != stele.Withdrawn || rec.Version != 2 {
			t.Fatalf("%s", document.AppendRecord(nil, rec))
		}
	}
}

// TestRevertTogether: of two servers that undo one import, the slower one does not report as left what
// the other one has undone.
func TestRevertTogether(t *testing.T) {
	f := newFixture(t)
	number := f.imported(f.admin, ImportOptions{}, `{"id":"ark:12345/x1","url":"https://example.org/1"}`, `{"id":"ark:12345/x2","url":"https://example.org/2"}`)
	var faster []string
	slow := New(&storetest.Faulty{Store: f.store, Fault: func(c *stele.Commit) (bool, error) {
		if len(c.Records) > 0 && faster == nil {
			faster = f.reverted(f.admin, number, RevertOptions{})
		}
		return true, nil
	}}, f.schemes, f.o)
	_, err := slow.RevertImport(f.admin, number, RevertOptions{}, func(s RevertStep) error {
		t.Errorf("the slower server reports %v", s)
		return nil
	})
	want(t, err, stele.Unavailable, "another server")
	if len(faster) != 2 {
		t.Errorf("the faster server reports %q", faster)
	}
	if rec := must(f.Get(f.admin, f.id("ark:12345/x1")))(t); rec.Version != 2 {
		t.Errorf("x1 has version %d", rec.Version)
	}
}

// It tests which callers may revert, and what a revert does not bring back.
func TestRevert(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	ann, bob := as("ann"), as("bob")
	number := f.imported(ann, ImportOptions{}, `{"id":"ark:12345/x1","url":"https://example.org/1","metadata":{"who":"Ann"}}`)
	_, err := f.BeginImport(bob, "x")
	want(t, err, stele.Forbidden)
	_, err = f.RevertImport(bob, number, RevertOptions{}, func(RevertStep) error { return nil })
	want(t, err, stele.NotFound)
	id := f.id("ark:12345/x1")
	must(f.AddAlias(ann, id, 0, f.id("ark:12345/other")))(t)
	must(f.Update(ann, id, 0, func(r *stele.Record) error { r.Metadata, r.Targets = nil, nil; return nil }))(t)
	_, err = f.Revert(bob, id, 0, 1)
	want(t, err, stele.Forbidden)
	_, err = f.Revert(ann, id, 2, 1)
	want(t, err, stele.Conflict, "version 3")
	_, err = f.Revert(ann, id, 0, 4)
	want(t, err, stele.NotFound, "1 to 3")
	rec := must(f.Revert(ann, id, 3, 1))(t)
	if rec.Version != 4 || rec.Metadata["who"] != "Ann" || len(rec.Targets) != 1 || len(rec.Aliases) != 1 || rec.Import != 0 {
		t.Errorf("reverted: %s", document.AppendRecord(nil, rec))
	}
	must(f.Withdraw(ann, id, 0, "gone", stele.ID{}))(t)
	if rec := must(f.Revert(ann, id, 0, 4))(t); rec.State != stele.Active || rec.Tombstone != nil {
		t.Errorf("reverted: %s", document.AppendRecord(nil, rec))
	}
	must(f.Disavow(ann, id, 0, 1, 1, "It led to a copy."))(t)
	_, err = f.Revert(ann, id, 0, 1)
	want(t, err, stele.Conflict, "disavowed", "It led to a copy.")
	must(f.Redact(f.admin, id, 0, "court"))(t)
	_, err = f.Revert(f.admin, id, 0, 1)
	want(t, err, stele.Conflict, "legal order")
}
