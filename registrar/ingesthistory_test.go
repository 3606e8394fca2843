package registrar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

var y2k = time.Date(2000, 1, 2, 3, 4, 5, 0, time.UTC)

// versionsOf returns n earlier versions, a year apart.
func versionsOf(n int) (list []*stele.Record) {
	for i := range n {
		list = append(list, &stele.Record{
			Targets:  []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://old%d.example/", i), Order: stele.DefaultOrder, Preference: stele.DefaultPreference}},
			Modified: y2k.AddDate(i, 0, 0), By: fmt.Sprint("clerk ", i),
		})
	}
	return list
}

// said returns a line for each version of a record, the oldest first.
func (f *fixture) said(name string) (list []string) {
	f.t.Helper()
	for r, err := range f.History(f.admin, f.id(name)) {
		if err != nil {
			f.t.Fatal(err)
		}
		url := ""
		if len(r.Targets) > 0 {
			url = r.Targets[0].URL
		}
		list = append([]string{fmt.Sprintf("%d %d %q %s %s import %d", r.Version, r.Modified.Year(), r.By, r.State, url, r.Import)}, list...)
	}
	return list
}

func TestIngestHistory(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", func(ns *stele.Namespace) { ns.Quota = 5 })
	f.registered("ark:12345/taken")
	number, err := f.BeginImport(f.admin, "old.json")
	if err != nil {
		t.Fatal(err)
	}
	chunk := func() ([]*stele.Record, [][]*stele.Record) {
		a := f.record("ark:12345/a", "https://new.example/")
		a.Modified, a.By = y2k.AddDate(9, 0, 0), "clerk 9"
		gone := f.record("ark:12345/gone", "https://new.example/")
		gone.State, gone.Tombstone, gone.Aliases = stele.Withdrawn, &stele.Tombstone{Reason: "moved"}, nil
		names := versionsOf(2)
		names[0].Aliases = []stele.ID{f.id("ark:12345/alias")}
		return []*stele.Record{
				a,
				f.record("ark:12345/plain", "https://new.example/"),
				f.record("ark:12345/taken", "https://new.example/"),
				gone,
				f.record("ark:12345/bad", "https://new.example/"),
			}, [][]*stele.Record{
				versionsOf(3), nil, versionsOf(1), names,
				{{Targets: versionsOf(1)[0].Targets, Modified: y2k}, {Targets: []stele.Target{{URL: "javascript:1"}}, Modified: y2k}},
			}
	}
	last, _ := f.store.LastChange(f.admin)
	list, earlier := chunk()
	errs := must(f.Ingest(f.admin, list, ImportOptions{Keep: true, Earlier: earlier, DryRun: true}))(t)
	if diff := cmp.Diff([]string{"", "", "conflict", "", "invalid"}, kinds(errs)); diff != "" {
		t.Errorf("a dry run: %s", diff)
	}
	if n, _ := f.store.LastChange(f.admin); n != last {
		t.Errorf("a dry run wrote %d changes", n-last)
	}
	list, earlier = chunk()
	o := ImportOptions{Keep: true, Earlier: earlier, Import: number, Name: "old", Bookmark: []byte("1")}
	errs = must(f.Ingest(f.admin, list, o))(t)
	if diff := cmp.Diff([]string{"", "", "conflict", "", "invalid"}, kinds(errs)); diff != "" {
		t.Error(diff)
	}
	if got := errs[4].Error(); !strings.Contains(got, "version 2 of its history: ") {
		t.Errorf("a version that is wrong: %s", got)
	}
	for i, want := range []int{3, 0, 0, 2, 0} {
		if len(earlier[i]) != want {
			t.Errorf("record %d: %d earlier versions were written, want %d", i, len(earlier[i]), want)
		}
	}
	if mark := must(f.Bookmark(f.admin, "old"))(t); string(mark) != "1" {
		t.Errorf("the bookmark is %q", mark)
	}
	if diff := cmp.Diff([]string{
		`1 2000 "clerk 0" active https://old0.example/ import 1`, `2 2001 "clerk 1" active https://old1.example/ import 1`,
		`3 2002 "clerk 2" active https://old2.example/ import 1`, `4 2009 "clerk 9" active https://new.example/ import 1`,
	}, f.said("ark:12345/a")); diff != "" {
		t.Error(diff)
	}
	if got := must(f.Get(f.admin, f.id("ark:12345/a")))(t); got.Version != 4 || !got.Created.Equal(y2k) {
		t.Errorf("the record is %+v", got)
	}
	if got := must(f.Get(f.admin, f.id("ark:12345/alias")))(t); got.ID != f.id("ark:12345/gone") || got.State != stele.Withdrawn || got.Version != 3 {
		t.Errorf("the name of an earlier version leads to %+v", got)
	}
	if got := f.said("ark:12345/taken"); len(got) != 1 {
		t.Errorf("the history of a registered record is %q", got)
	}
	if n, _ := f.store.LastChange(f.admin); n != last+4+1+3 {
		t.Errorf("%d changes, want one a version", n-last)
	}
	if n, _ := f.store.Count(f.admin, f.key("ark:12345")); n != 5 {
		t.Errorf("%d names are counted, want 5", n)
	}
	at, err := f.store.VersionAt(f.admin, f.id("ark:12345/a"), y2k.AddDate(1, 6, 0))
	if err != nil || at.Version != 2 {
		t.Errorf("VersionAt in the imported past: %v, %v", at, err)
	}

	// The same again writes nothing, and an update leaves history as it is.
	list, earlier = chunk()
	errs = must(f.Ingest(f.admin, list[:1], ImportOptions{Keep: true, Earlier: earlier[:1], Import: number}))(t)
	if errs[0] != ErrUnchanged || earlier[0] != nil || list[0].Version != 4 {
		t.Errorf("the same again: %v, %d earlier versions, version %d", errs[0], len(earlier[0]), list[0].Version)
	}
	list, earlier = chunk()
	list[0].Targets[0].URL = "https://newer.example/"
	errs = must(f.Ingest(f.admin, list[:1], ImportOptions{Keep: true, Update: true, Earlier: earlier[:1], Import: number}))(t)
	if errs[0] != nil || earlier[0] != nil || len(f.said("ark:12345/a")) != 5 {
		t.Errorf("an update: %v; %q", errs[0], f.said("ark:12345/a"))
	}
	if err := f.Verify(f.admin, func(problem *stele.Message) { t.Errorf("Verify: %v", problem) }); err != nil {
		t.Error(err)
	}
}

// Without the right to keep dates there is no history, and an import is reverted with it.
func TestIngestHistoryLeftOut(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	number := must(f.BeginImport(f.admin, "old.json"))(t)
	earlier := [][]*stele.Record{versionsOf(2)}
	if _, err := f.Ingest(as("ann"), []*stele.Record{f.record("ark:12345/a", "https://new.example/")}, ImportOptions{Keep: true, Earlier: earlier}); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("a user that is not an administrator: %v", err)
	}
	errs := must(f.Ingest(as("ann"), []*stele.Record{f.record("ark:12345/a", "https://new.example/")}, ImportOptions{Earlier: earlier}))(t)
	if errs[0] != nil || earlier[0] != nil || len(f.said("ark:12345/a")) != 1 {
		t.Errorf("without Keep: %v, %q", errs[0], f.said("ark:12345/a"))
	}
	errs = must(f.Ingest(f.admin, []*stele.Record{f.record("ark:12345/b", "https://new.example/")}, ImportOptions{Keep: true, Import: number, Earlier: [][]*stele.Record{versionsOf(2)}}))(t)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	result := must(f.RevertImport(f.admin, number, RevertOptions{}, func(RevertStep) error { return nil }))(t)
	if now := must(f.Get(f.admin, f.id("ark:12345/b")))(t); result.Withdrawn != 1 || now.State != stele.Withdrawn || now.Version != 4 {
		t.Errorf("the revert is %+v, the record %+v", result, now)
	}
}

func TestIngestHistoryRefused(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345")
	number := must(f.BeginImport(f.admin, "old.json"))(t)
	for name, tt := range map[string]struct {
		spoil func(rec *stele.Record, list []*stele.Record, o *ImportOptions) []*stele.Record
		want  string
	}{
		"no date": {func(_ *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			list[1].Modified = time.Time{}
			return list
		}, "version 2 of its history: it does not say when it was made"},
		"wrong order": {func(_ *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			list[1], list[2] = list[2], list[1]
			return list
		}, "version 3 of its history: its date is before that of the version before it"},
		"newer than the record": {func(rec *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			rec.Modified = y2k.AddDate(1, 0, 0)
			return list
		}, "its date is before that of the version before it"},
		"older than the record": {func(rec *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			rec.Created = y2k.AddDate(0, 1, 0)
			return list
		}, "before that of the record's creation"},
		"reserved again": {func(_ *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			list[2].State = stele.Reserved
			return list
		}, "does not become reserved"},
		"redacted": {func(rec *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			rec.Redacted = true
			return list
		}, "legal order"},
		"too many": {func(*stele.Record, []*stele.Record, *ImportOptions) []*stele.Record {
			return versionsOf(stele.MaxEarlier + 1)
		}, "1000 are the most"},
		"no number": {func(_ *stele.Record, list []*stele.Record, o *ImportOptions) []*stele.Record {
			o.Import = 0
			return list
		}, "begin an import first"},
		"a secret": {func(_ *stele.Record, list []*stele.Record, _ *ImportOptions) []*stele.Record {
			list[0].Values = []stele.HandleValue{{Index: 1, Type: "HS_SECKEY", Data: []byte("x")}}
			return list
		}, "HS_SECKEY"},
	} {
		rec, o := f.record("ark:12345/"+strings.ReplaceAll(name, " ", ""), "https://new.example/"), ImportOptions{Keep: true, Import: number}
		o.Earlier = [][]*stele.Record{tt.spoil(rec, versionsOf(3), &o)}
		errs := must(f.Ingest(f.admin, []*stele.Record{rec}, o))(t)
		if stele.KindOf(errs[0]) != stele.Invalid || !strings.Contains(errs[0].Error(), tt.want) || o.Earlier[0] != nil {
			t.Errorf("%s: %v, want %q", name, errs[0], tt.want)
		}
		if _, err := f.Get(f.admin, rec.ID); stele.KindOf(err) != stele.NotFound {
			t.Errorf("%s: something was written: %v", name, err)
		}
	}
}

// Many records with long histories are committed in parts, and one that is refused takes no
// other with it.
func TestIngestManyHistories(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345")
	f.registered("ark:12345/n7")
	number := must(f.BeginImport(f.admin, "old.json"))(t)
	var list []*stele.Record
	var earlier [][]*stele.Record
	for i := range 20 {
		list = append(list, f.record(fmt.Sprint("ark:12345/n", i), "https://new.example/"))
		versions := versionsOf(20 * i)
		for k, v := range versions {
			v.Modified = y2k.Add(time.Duration(k) * time.Hour)
		}
		earlier = append(earlier, versions)
	}
	last, _ := f.store.LastChange(f.admin)
	errs := must(f.Ingest(f.admin, list, ImportOptions{Keep: true, Import: number, Earlier: earlier, Name: "old", Bookmark: []byte("2")}))(t)
	want := 0
	for i, err := range errs {
		if (err != nil) != (i == 7) {
			t.Errorf("record %d: %v", i, err)
		} else if err == nil {
			want += 20*i + 1
		}
	}
	if n, _ := f.store.LastChange(f.admin); n != last+uint64(want) {
		t.Errorf("%d changes, want %d", n-last, want)
	}
	if mark := must(f.Bookmark(f.admin, "old"))(t); string(mark) != "2" {
		t.Errorf("the bookmark is %q", mark)
	}
	if got := f.said("ark:12345/n19"); len(got) != 381 {
		t.Errorf("the last record has %d versions, want 381", len(got))
	}
}
