package registrar

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

// kinds returns the kind of each error, "" for none and "same" for a record that
// is registered already.
func kinds(errs []error) (list []string) {
	for _, err := range errs {
		switch err {
		case nil:
			list = append(list, "")
		case ErrUnchanged:
			list = append(list, "same")
		default:
			list = append(list, stele.KindOf(err).String())
		}
	}
	return list
}

func TestIngest(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"), func(ns *stele.Namespace) { ns.Quota = 4 })
	f.registered("ark:12345/taken")
	chunk := func() []*stele.Record {
		gone := f.record("ark:12345/gone", "https://example.org/1")
		gone.State, gone.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "moved"}
		reserved := f.record("ark:12345/reserved", "https://example.org/1")
		reserved.State = stele.Reserved
		alias := f.record("ark:12345/b", "https://example.org/1")
		alias.Aliases = []stele.ID{f.id("ark:12345/a")}
		return []*stele.Record{
			f.record("ark:12345/a", "https://example.org/1"),
			f.record("ark:12345/taken", "https://example.org/2"),
			f.record("ark:99999/a", "https://example.org/1"),
			f.record("ark:12345/bad", "javascript:x"),
			gone,
			alias,
			reserved,
			f.record("ark:12345/a", "https://example.org/1"),
			f.record("ark:12345/over", "https://example.org/1"),
		}
	}
	rehearsal := must(f.Ingest(as("ann"), chunk(), ImportOptions{DryRun: true, Name: "x", Bookmark: []byte("1")}))(t)
	if diff := cmp.Diff([]string{"", "conflict", "forbidden", "invalid", "", "conflict", "", "conflict", ""}, kinds(rehearsal)); diff != "" {
		t.Error(diff)
	}
	if _, err := f.Get(f.admin, f.id("ark:12345/a")); err == nil {
		t.Error("a rehearsal wrote something")
	}
	if mark := must(f.Bookmark(as("ann"), "x"))(t); mark != nil {
		t.Errorf("a rehearsal has a bookmark, %q", mark)
	}

	errs := must(f.Ingest(as("ann"), chunk(), ImportOptions{Name: "x", Bookmark: []byte("1")}))(t)
	if diff := cmp.Diff([]string{"", "conflict", "forbidden", "invalid", "", "conflict", "", "same", "exhausted"}, kinds(errs)); diff != "" {
		t.Error(diff)
	}
	if mark := must(f.Bookmark(as("ann"), "x"))(t); string(mark) != "1" {
		t.Errorf("the bookmark is %q", mark)
	}
	gone := must(f.Get(context.Background(), f.id("ark:12345/gone")))(t)
	if gone.State != stele.Withdrawn || gone.Tombstone.At.IsZero() || gone.By != "ann" || gone.Version != 1 {
		t.Errorf("got %+v", gone)
	}
	_, err := f.Ingest(context.Background(), chunk(), ImportOptions{})
	want(t, err, stele.Unauthenticated)
	_, err = f.Ingest(context.Background(), nil, ImportOptions{Name: "x", Bookmark: []byte("7")})
	want(t, err, stele.Unauthenticated)
}

func TestIngestUpdates(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	f.space("10.1000/", owner("bob"))
	old := f.registered("ark:12345/old")
	must(f.AddAlias(f.admin, old.ID, 0, f.id("10.1000/1")))(t)
	f.registered("ark:12345/same")
	gone := f.registered("ark:12345/gone")
	must(f.Withdraw(f.admin, gone.ID, 0, "x", stele.ID{}))(t)
	redacted := f.registered("ark:12345/redacted")
	must(f.Redact(f.admin, redacted.ID, 0, "order"))(t)

	o := ImportOptions{Update: true, Name: "x", Bookmark: []byte("9")}
	reserved := f.record("ark:12345/same", "https://example.org/1")
	reserved.State = stele.Reserved
	foreign := f.record("ark:12345/foreign", "https://example.org/1")
	foreign.Aliases = []stele.ID{f.id("10.1000/2")}
	chunk := func() []*stele.Record {
		return []*stele.Record{
			f.record("ark:12345/old", "https://example.org/new"),
			f.record("ark:12345/same", "https://example.org/1"),
			f.record("ark:12345/gone", "https://example.org/1"),
			f.record("ark:12345/redacted", "https://example.org/1"),
			f.record("ark:12345/new", "https://example.org/1"),
			f.record("10.1000/1", "https://example.org/1"),
			clone(reserved),
			clone(foreign),
		}
	}
	for round, kind := range []string{"", "same"} { // the second changes nothing
		errs := must(f.Ingest(as("ann"), chunk(), o))(t)
		if diff := cmp.Diff([]string{kind, "same", kind, "conflict", kind, "forbidden", "invalid", "forbidden"}, kinds(errs)); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
		for name, version := range map[string]uint64{"old": 3, "same": 1, "gone": 3, "redacted": 2, "new": 1} {
			if rec := must(f.Get(f.admin, f.id("ark:12345/"+name)))(t); rec.Version != version {
				t.Errorf("round %d: %s has version %d, want %d", round, name, rec.Version, version)
			}
		}
	}
	rec := must(f.Get(f.admin, f.id("10.1000/1")))(t)
	if rec.ID != old.ID || rec.Targets[0].URL != "https://example.org/new" || rec.By != "ann" || rec.Created != old.Created {
		t.Errorf("got %+v", rec)
	}
	if rec := must(f.Get(f.admin, gone.ID))(t); rec.State != stele.Active || rec.Tombstone != nil {
		t.Errorf("got %+v", rec)
	}
	if mark := must(f.Bookmark(f.admin, "x"))(t); mark != nil {
		t.Errorf("an administrator's bookmark is that of another: %q", mark)
	}
	if mark := must(f.Bookmark(as("ann"), "x"))(t); string(mark) != "9" {
		t.Errorf("the bookmark is %q", mark)
	}
	// One that can't be changed does not keep the others.
	clash := f.record("ark:12345/same", "https://example.org/2")
	clash.Aliases = []stele.ID{f.id("ark:12345/new")}
	errs := must(f.Ingest(f.admin, []*stele.Record{clash, f.record("ark:12345/old", "https://example.org/newer")}, ImportOptions{Update: true, Name: "x", Bookmark: []byte("10")}))(t)
	if diff := cmp.Diff([]string{"conflict", ""}, kinds(errs)); diff != "" {
		t.Error(diff)
	}
	if mark := must(f.Bookmark(f.admin, "x"))(t); string(mark) != "10" {
		t.Errorf("the bookmark is %q", mark)
	}
}

// A record with an expected version is changed without Update too, and only in that version. A chunk that is sent again, because the
// answer was lost, changes nothing.
func TestIngestVersions(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	f.registered("ark:12345/one")
	f.registered("ark:12345/two")
	number := must(f.BeginImport(as("ann"), "x"))(t)
	chunk := func() []*stele.Record {
		return []*stele.Record{
			f.record("ark:12345/one", "https://example.org/new"), f.record("ark:12345/two", "https://example.org/new"),
			f.record("ark:12345/three", "https://example.org/3"), f.record("ark:12345/four", "https://example.org/4"),
		}
	}
	o := ImportOptions{Import: number, Versions: []uint64{1, 7, 0, 2}}
	rehearsed := o
	rehearsed.DryRun = true
	want := [][]string{{"", "conflict", "", "not found"}, {"", "conflict", "", "not found"}, {"same", "conflict", "same", "not found"}}
	for round, o := range []ImportOptions{rehearsed, o, o} {
		if diff := cmp.Diff(want[round], kinds(must(f.Ingest(as("ann"), chunk(), o))(t))); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
	if rec := must(f.Get(f.admin, f.id("ark:12345/one")))(t); rec.Version != 2 || rec.Targets[0].URL != "https://example.org/new" {
		t.Errorf("got %+v", rec)
	}
	// Something else is not the same chunk, and another import is another one.
	other := f.record("ark:12345/one", "https://example.org/other")
	for _, o := range []ImportOptions{{Import: number, Versions: []uint64{1}}, {Import: must(f.BeginImport(as("ann"), "y"))(t), Versions: []uint64{1}}} {
		if diff := cmp.Diff([]string{"conflict"}, kinds(must(f.Ingest(as("ann"), []*stele.Record{clone(other)}, o))(t))); diff != "" {
			t.Error(diff)
		}
	}
	// A record that must be new never takes the place of a registered one; only the same chunk may come again.
	fresh := []*stele.Record{f.record("ark:12345/two", "https://example.org/new"), f.record("ark:12345/new", "https://example.org/new")}
	o = ImportOptions{Update: true, Import: number, Versions: []uint64{MustBeNew, MustBeNew}}
	rehearsed = o
	rehearsed.DryRun = true
	want = [][]string{{"conflict", ""}, {"conflict", ""}, {"conflict", "same"}}
	for round, o := range []ImportOptions{rehearsed, o, o} {
		list := []*stele.Record{clone(fresh[0]), clone(fresh[1])}
		if diff := cmp.Diff(want[round], kinds(must(f.Ingest(as("ann"), list, o))(t))); diff != "" {
			t.Errorf("must be new, round %d: %s", round, diff)
		}
	}
	changed := f.record("ark:12345/new", "https://example.org/newer")
	if diff := cmp.Diff([]string{"conflict"}, kinds(must(f.Ingest(as("ann"), []*stele.Record{changed}, ImportOptions{Update: true, Import: number, Versions: []uint64{MustBeNew}}))(t))); diff != "" {
		t.Error(diff)
	}
	// With Update the same record may come twice.
	twice := []*stele.Record{f.record("ark:12345/two", "https://example.org/2"), f.record("ark:12345/two", "https://example.org/3")}
	if diff := cmp.Diff([]string{"", ""}, kinds(must(f.Ingest(as("ann"), twice, ImportOptions{Update: true, Versions: []uint64{1, 2}}))(t))); diff != "" {
		t.Error(diff)
	}
}

func TestIngestKeeps(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	rec := f.record("ark:12345/a", "https://example.org/1")
	rec.Created, rec.Modified, rec.By, rec.Version = then, then.Add(time.Hour), "somebody", 17
	_, err := f.Ingest(as("ann"), []*stele.Record{rec}, ImportOptions{Keep: true})
	want(t, err, stele.Forbidden)
	bare := f.record("ark:12345/b", "https://example.org/1")
	for _, err := range must(f.Ingest(f.admin, []*stele.Record{rec, bare}, ImportOptions{Keep: true}))(t) {
		if err != nil {
			t.Error(err)
		}
	}
	got := must(f.Get(f.admin, rec.ID))(t)
	if got.Created != then || got.Modified != then.Add(time.Hour) || got.By != "somebody" || got.Version != 1 {
		t.Errorf("got %+v", got)
	}
	if got := must(f.Get(f.admin, bare.ID))(t); got.Created.IsZero() || got.Modified != got.Created || got.By != "local" {
		t.Errorf("got %+v", got)
	}
}

// TestImportGoesOn kills an import at random commits, of which some were made, and
// lets it go on from its bookmark: in the end every record is there once, in its
// first version.
func TestImportGoesOn(t *testing.T) {
	for _, update := range []bool{false, true} {
		f := newFixture(t)
		const total, size = 500, 20
		deaths := 0
		for done := 0; done < total; {
			f.Registrar = New(&storetest.Faulty{Store: f.store, Fault: storetest.Dying(1 + rand.Int64N(8))}, f.schemes, f.options)
			if mark := must(f.Bookmark(f.admin, "file"))(t); mark != nil {
				done = must(strconv.Atoi(string(mark)))(t)
			}
			for done < total {
				var chunk []*stele.Record
				for i := done; i < done+size; i++ {
					chunk = append(chunk, f.record(fmt.Sprintf("ark:12345/r%d", i), "https://example.org/1"))
				}
				errs, err := f.Ingest(f.admin, chunk, ImportOptions{Update: update, Name: "file", Bookmark: fmt.Append(nil, done+size)})
				if err != nil {
					deaths++
					break
				}
				for _, err := range errs {
					if err != nil && err != ErrUnchanged {
						t.Fatal(err)
					}
				}
				done += size
			}
		}
		n := 0
		for rec, err := range f.store.Scan(f.admin, "ark", "", "") {
			n++
			if err != nil || rec.Version != 1 {
				t.Errorf("%+v, %v", rec, err)
			}
		}
		if n != total || deaths == 0 {
			t.Errorf("update %t: %d records after %d deaths", update, n, deaths)
		}
	}
}

// Users never share a bookmark, whatever imports and users are called: a user that
// moves another's bookmark would make that import leave out records.
func TestBookmarksAreApart(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", func(ns *stele.Namespace) {
		ns.Grants = []stele.Grant{{To: "user:client", Role: stele.RoleEditor}, {To: "user:client.a", Role: stele.RoleEditor}}
	})
	mark := func(ctx context.Context, name, mark string) {
		t.Helper()
		must(f.Ingest(ctx, nil, ImportOptions{Name: name, Bookmark: []byte(mark)}))(t)
	}
	mark(asAdmin("root"), "client a b", "administrators'")
	mark(as("client"), "a b", "client's")
	mark(as("client.a"), "b", "client.a's")
	for want, got := range map[string][]byte{
		"administrators'": must(f.Bookmark(f.admin, "client a b"))(t),
		"client's":        must(f.Bookmark(as("client"), "a b"))(t),
		"client.a's":      must(f.Bookmark(as("client.a"), "b"))(t),
	} {
		if string(got) != want {
			t.Errorf("%s bookmark is %q", want, got)
		}
	}
	_, err := f.Bookmark(f.admin, "client\x00a b")
	want(t, err, stele.Invalid, "name")
	_, err = f.Ingest(f.admin, nil, ImportOptions{Name: "client\x00a b", Bookmark: []byte("x")})
	want(t, err, stele.Invalid, "name")
	if err := f.Verify(f.admin, func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
}

// An import by a caller that may write in no namespace leaves no trace.
func TestImportByWhoMayNotWrite(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", func(ns *stele.Namespace) { ns.Grants = []stele.Grant{{To: "user:rita", Role: stele.RoleReader}} })
	for _, who := range []string{"nemo", "rita"} {
		_, err := f.Ingest(as(who), nil, ImportOptions{Name: "x", Bookmark: []byte("1")})
		want(t, err, stele.Forbidden, who)
		errs := must(f.Ingest(as(who), []*stele.Record{f.record("ark:12345/a", "https://example.org/1")}, ImportOptions{}))(t)
		want(t, errs[0], stele.Forbidden, who)
	}
	for m, err := range f.store.MinterStates(f.admin) {
		t.Errorf("%v, %v", m, err)
	}
}

func BenchmarkIngest(b *testing.B) {
	f := newFixture(b)
	f.space("ark:12345", owner("ann"))
	records := make([]*stele.Record, b.N)
	for i := range records {
		records[i] = f.record(fmt.Sprintf("ark:12345/r%d", i), "https://example.org/1")
	}
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := f.Ingest(as("ann"), records, ImportOptions{Name: "bench", Bookmark: []byte("1")}); err != nil {
		b.Fatal(err)
	}
}
