package registrar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

var ids = cmp.AllowUnexported(stele.ID{})

func TestRegister(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	in := f.record("ark:12345/a", "https://example.org/1")
	in.Spelling = "ARK:/12345/a"
	in.Metadata = stele.Metadata{stele.Who: "Ann"}
	// What the system keeps is not the caller's to say.
	in.Version, in.By, in.Created, in.Modified, in.Redacted = 7, "eve", time.Unix(1, 0), time.Unix(2, 0), true
	out := must(f.Register(as("ann"), in))(t)
	if out.Version != 1 || out.By != "ann" || out.Redacted || out.State != stele.Active || out.Created != out.Modified || time.Since(out.Created) > time.Minute {
		t.Errorf("got %+v", out)
	}
	got := must(f.Get(context.Background(), in.ID))(t)
	if diff := cmp.Diff(out, got, ids); diff != "" {
		t.Errorf("what is kept is not what was returned:\n%s", diff)
	}
	// Neither the caller's record nor the returned one is what is kept.
	in.Metadata[stele.Who], out.Targets[0].URL = "Eve", "https://example.com/"
	if diff := cmp.Diff(must(f.Get(context.Background(), in.ID))(t), got, ids); diff != "" {
		t.Error(diff)
	}
	_, err := f.Register(as("ann"), f.record("ark:12345/a", "https://example.org/2"))
	want(t, err, stele.Conflict)
	reserved := f.record("ark:12345/b", "https://example.org/1")
	reserved.State = stele.Reserved
	must(f.Register(as("ann"), reserved))(t)
	if _, err := f.Get(context.Background(), reserved.ID); !errors.Is(err, stele.NotFound) {
		t.Errorf("the public sees a reserved record: %v", err)
	}
	must(f.Get(as("ann"), reserved.ID))(t)
	gone := f.record("ark:12345/c", "https://example.org/1")
	gone.State, gone.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "x"}
	_, err = f.Register(as("ann"), gone)
	want(t, err, stele.Invalid, "active or reserved")
}

func TestRegisterRights(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	f.space("ark:12345/x5", owner("bob"))
	f.space("10.1000/", owner("carl"))
	for i, tt := range []struct {
		who   context.Context
		id    string
		alias string
		kind  stele.Kind // 0 if it is allowed
	}{
		{as("bob"), "ark:12345/x5%d", "", 0},
		{as("ann"), "ark:12345/x5%d", "", 0},
		{as("ann"), "ark:12345/y%d", "", 0},
		{f.admin, "ark:99999/y%d", "", 0},
		{context.Background(), "ark:12345/y%d", "", stele.Unauthenticated},
		{as("bob"), "ark:12345/y%d", "", stele.Forbidden},
		{as("ann"), "ark:99999/y%d", "", stele.Forbidden}, // a root
		{as("ann"), "ark:12345/y%d", "10.1000/%d", stele.Forbidden},
		{as("ann"), "ark:12345/y%d", "ark:12345/x5%d", 0},
		{as("bob"), "ark:12345/x5%d", "ark:12345/y%d", stele.Forbidden},
		{f.admin, "ark:12345/y%d", "10.1000/%d", 0},
	} {
		rec := f.record(fmt.Sprintf(tt.id, 100+i), "https://example.org/1")
		if tt.alias != "" {
			rec.Aliases = []stele.ID{f.id(fmt.Sprintf(tt.alias, 200+i))}
		}
		_, err := f.Register(tt.who, rec)
		switch {
		case tt.kind == 0 && err != nil:
			t.Errorf("%s: %v", rec.ID, err)
		case tt.kind != 0:
			want(t, err, tt.kind)
		}
	}
}

func TestEveryProblemAtOnce(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"), func(ns *stele.Namespace) {
		ns.Hosts, ns.Protocols = []string{"example.org", ".example.net"}, []string{"https"}
	})
	f.space("ark:12345/x5", func(ns *stele.Namespace) { ns.Checked = true })
	rec := f.record("ark:12345/a", "https://example.org/1")
	rec.Spelling = "ark:12345/b"
	rec.Aliases = []stele.ID{must(stele.NewID("ark", "ark:/12345/c"))(t), must(stele.NewID("hdl", "ark:12345/d"))(t), f.id("ark:12345/x5bcd")}
	rec.Persistence.Level = "eternal"
	for _, url := range []string{"http://example.org/", "https://example.com/", "https://example.net/", "https://a.example.net/", "javascript:x", "https://notexample.net"} {
		rec.Targets = append(rec.Targets, stele.Target{Service: stele.N2L, URL: url})
	}
	_, err := f.Register(f.admin, rec)
	want(t, err, stele.Invalid, "spelling: ", "aliases[0]: ", "write ark:12345/c", "aliases[1]: ", "scheme ark, not hdl", "aliases[2]: ", "check character",
		"persistence.level: ", `targets[1].url: the protocol "http"`, `targets[2].url: "example.com"`, `targets[3].url: "example.net"`, "targets[5].url: ", `targets[6].url: "notexample.net"`)
	for _, path := range []string{"targets[0]", "targets[4]", "targets[5].url: the protocol"} {
		if strings.Contains(err.Error(), path) {
			t.Errorf("%s is told:\n%v", path, err)
		}
	}
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok || len(problems) != 10 {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
	// Protocols and hosts of a namespace that does not say.
	f.space("ark:99999")
	for url, fine := range map[string]bool{"https://a/": true, "http://a/": true, "ftp://a/": true, "rsync://a/": false} {
		if _, err := f.Register(f.admin, f.record("ark:99999/"+strings.Trim(url, ":/a"), url)); (err == nil) != fine {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestCheckCharacters(t *testing.T) {
	f := newFixture(t)
	f.space("ark:13030/xf9", func(ns *stele.Namespace) { ns.Checked = true })
	f.space("102.100.272/", func(ns *stele.Namespace) { ns.Checked = true })
	for id, fine := range map[string]bool{
		"ark:13030/xf93gt2q":         true, // from NOID's manual
		"ark:13030/xf93gt2q/s1.tiff": true,
		"ark:13030/xf93gt2p":         false,
		"ark:13030/xf93tg2q":         false,
		"ark:13030/xf9":              true, // the shoulder itself
		"102.100.272/ABCDN":          false,
	} {
		_, err := f.Register(f.admin, f.record(id, "https://example.org/1"))
		if (err == nil) != fine {
			t.Errorf("%s: %v", id, err)
		}
		if !fine {
			want(t, err, stele.Invalid, "check character")
		}
	}
}

func TestDelegated(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345", owner("ann"))
	old := f.registered("ark:12345/old")
	must(f.SetNamespace(as("ann"), key, 0, func(ns *stele.Namespace) error {
		ns.Delegate = "https://resolver.example.org/{id}"
		return nil
	}))(t)
	_, err := f.Register(as("ann"), f.record("ark:12345/new", "https://example.org/1"))
	want(t, err, stele.Conflict, "resolver.example.org")
	other := f.record("ark:99999/a", "https://example.org/1")
	other.Aliases = []stele.ID{f.id("ark:12345/new")}
	_, err = f.Register(f.admin, other)
	want(t, err, stele.Conflict, "resolver.example.org")
	// What is here already may change.
	must(f.Withdraw(as("ann"), old.ID, 0, "moved", stele.ID{}))(t)
}

func TestQuota(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"), func(ns *stele.Namespace) { ns.Quota = 2 })
	f.space("ark:12345/x5")
	f.registered("ark:12345/a")
	f.registered("ark:12345/b")
	f.registered("ark:12345/x5c") // counts below
	_, err := f.Register(as("ann"), f.record("ark:12345/d", "https://example.org/1"))
	want(t, err, stele.Exhausted)
	must(f.Update(as("ann"), f.id("ark:12345/a"), 0, setURL("https://example.org/2")))(t)
	if n := must(f.store.Count(f.admin, f.key("ark:12345")))(t); n != 2 {
		t.Errorf("%d records count", n)
	}
}

func setURL(url string) func(*stele.Record) error {
	return func(r *stele.Record) error { r.Targets[0].URL = url; return nil }
}

func TestUpdate(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	first := f.registered("ark:12345/a")
	second := must(f.Update(as("ann"), first.ID, 1, setURL("https://example.org/2")))(t)
	if second.Version != 2 || second.By != "ann" || second.Created != first.Created || second.Modified.Before(first.Modified) {
		t.Errorf("got %+v", second)
	}
	_, err := f.Update(as("ann"), first.ID, 1, setURL("https://example.org/3"))
	want(t, err, stele.Conflict, "version 2, not 1")
	_, err = f.Update(as("bob"), first.ID, 0, func(*stele.Record) error { t.Error("who may not was asked"); return nil })
	want(t, err, stele.Forbidden)
	_, err = f.Update(context.Background(), first.ID, 0, setURL("https://example.org/3"))
	want(t, err, stele.Unauthenticated)
	_, err = f.Update(as("ann"), f.id("ark:12345/b"), 0, setURL("https://example.org/3"))
	want(t, err, stele.NotFound)
	if same := must(f.Update(as("ann"), first.ID, 0, func(*stele.Record) error { return nil }))(t); same.Version != 2 {
		t.Errorf("nothing changed, but the version is %d", same.Version)
	}
	for says, change := range map[string]func(*stele.Record){
		"never changes": func(r *stele.Record) { r.ID = f.id("ark:12345/b") },
		"withdraw it":   func(r *stele.Record) { r.State = stele.Withdrawn },
		"does not become": func(r *stele.Record) {
			r.State = stele.Reserved
		},
	} {
		_, err = f.Update(f.admin, first.ID, 0, func(r *stele.Record) error { change(r); return nil })
		want(t, err, stele.Invalid, says)
	}
	third := must(f.Update(as("ann"), first.ID, 0, func(r *stele.Record) error {
		setURL("https://example.org/3")(r)
		r.Version, r.By, r.Redacted, r.Created, r.Tombstone = 99, "eve", true, time.Time{}, &stele.Tombstone{}
		return nil
	}))(t)
	if third.Version != 3 || third.By != "ann" || third.Redacted || third.Created != first.Created || third.Tombstone != nil {
		t.Errorf("got %+v", third)
	}
}

func TestUpdateTriesAgain(t *testing.T) {
	f := newFixture(t)
	rec := f.registered("ark:12345/a")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := f.Update(f.admin, rec.ID, 0, func(r *stele.Record) error {
				r.Metadata = stele.Metadata{"n": r.Metadata["n"] + "x"}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := must(f.Get(f.admin, rec.ID))(t)
	if got.Metadata["n"] != strings.Repeat("x", 20) || got.Version != 21 {
		t.Errorf("got %q in version %d", got.Metadata["n"], got.Version)
	}
}

func TestStatesOfRecords(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	rec := f.record("ark:12345/a", "https://example.org/1")
	rec.State = stele.Reserved
	must(f.Register(as("ann"), rec))(t)
	must(f.Update(as("ann"), rec.ID, 0, func(r *stele.Record) error { r.State = stele.Active; return nil }))(t)
	_, err := f.Withdraw(as("ann"), rec.ID, 0, " ", stele.ID{})
	want(t, err, stele.Invalid, "tombstone.reason")
	_, err = f.Withdraw(as("ann"), rec.ID, 0, "twice", rec.ID)
	want(t, err, stele.Invalid, "tombstone.replacement")
	_, err = f.Withdraw(as("bob"), rec.ID, 0, "mine", stele.ID{})
	want(t, err, stele.Forbidden)
	_, err = f.Reinstate(as("ann"), rec.ID, 0)
	want(t, err, stele.Conflict, "active, not withdrawn")

	gone := must(f.Withdraw(as("ann"), rec.ID, 2, "superseded", f.id("ark:12345/b")))(t)
	if gone.Version != 3 || gone.State != stele.Withdrawn || gone.Tombstone.Reason != "superseded" ||
		gone.Tombstone.Replacement != f.id("ark:12345/b") || gone.Tombstone.At.IsZero() || len(gone.Targets) != 1 {
		t.Errorf("got %+v", gone)
	}
	_, err = f.Update(as("ann"), rec.ID, 0, setURL("https://example.org/2"))
	want(t, err, stele.Gone, "reinstate")
	again := must(f.Withdraw(as("ann"), rec.ID, 0, "better words", stele.ID{}))(t)
	if again.Tombstone.At != gone.Tombstone.At || again.Tombstone.Reason != "better words" {
		t.Errorf("got %+v", again.Tombstone)
	}
	back := must(f.Reinstate(as("ann"), rec.ID, 0))(t)
	if back.Version != 5 || back.State != stele.Active || back.Tombstone != nil || len(back.Targets) != 1 {
		t.Errorf("got %+v", back)
	}
}

func TestAliases(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	f.space("10.1000/", owner("bob"))
	rec := f.registered("ark:12345/a")
	doi := f.id("10.1000/182")
	_, err := f.AddAlias(as("ann"), rec.ID, 0, doi)
	want(t, err, stele.Forbidden, "10.1000/")
	must(f.AddAlias(f.admin, rec.ID, 0, doi))(t)
	if same := must(f.AddAlias(f.admin, rec.ID, 0, doi))(t); same.Version != 2 {
		t.Errorf("version %d", same.Version)
	}
	// Its owner needs no right on aliases that are there.
	must(f.Update(as("ann"), doi, 0, setURL("https://example.org/2")))(t)
	if got := must(f.Get(f.admin, doi))(t); got.ID != rec.ID || got.Version != 3 {
		t.Errorf("%s leads to %s, version %d", doi, got.ID, got.Version)
	}
	_, err = f.Update(f.admin, rec.ID, 0, func(r *stele.Record) error { r.Aliases = nil; return nil })
	want(t, err, stele.Invalid, "ever detached")
	// An alias is one record's for ever.
	other := f.registered("ark:12345/b")
	_, err = f.AddAlias(f.admin, other.ID, 0, doi)
	want(t, err, stele.Conflict)
	_, err = f.AddAlias(f.admin, other.ID, 0, rec.ID)
	want(t, err, stele.Conflict)
	must(f.Withdraw(f.admin, rec.ID, 0, "gone", stele.ID{}))(t)
	_, err = f.AddAlias(f.admin, other.ID, 0, doi)
	want(t, err, stele.Conflict)
	_, err = f.Register(f.admin, f.record("10.1000/182", "https://example.org/1"))
	want(t, err, stele.Conflict)
}

// TestOnCommit: caches are told before the writer is, and also when it is unknown
// whether it was written.
func TestOnCommit(t *testing.T) {
	var told []uint64
	namespaceTree := 0
	f := newFixture(t, func(o *Options) {
		o.OnCommit = func(records ...*stele.Record) {
			for _, r := range records {
				told = append(told, r.Version)
			}
		}
		o.OnNamespaces = func() { namespaceTree++ }
	})
	f.space("ark:12345", owner("ann"))
	rec := f.registered("ark:12345/a")
	must(f.Update(f.admin, rec.ID, 0, setURL("https://example.org/2")))(t)
	if _, err := f.Register(f.admin, rec); err == nil {
		t.Error("registered twice")
	}
	store := &storetest.Faulty{Store: f.store, Fault: func(*stele.Commit) (bool, error) {
		return true, &stele.Error{Kind: stele.Unavailable, Err: errors.New("who knows")}
	}}
	o := f.o
	r := New(store, f.schemes, o)
	_, err := r.Update(f.admin, rec.ID, 0, setURL("https://example.org/3"))
	want(t, err, stele.Unavailable)
	if diff := cmp.Diff([]uint64{1, 2, 3}, told); diff != "" || namespaceTree != 1 {
		t.Errorf("told of versions %v, %d namespaces", told, namespaceTree)
	}
}

// TestWithdrawWith changes what a record says and withdraws it, in one version; one that is withdrawn stays so.
func TestWithdrawWith(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	rec := f.registered("ark:12345/x1")
	say := func(text string) func(*stele.Record) error {
		return func(next *stele.Record) error {
			next.Metadata = stele.Metadata{"what": text}
			next.State, next.Tombstone = stele.Active, nil // not for change to say
			return nil
		}
	}
	got, err := f.WithdrawWith(as("ann"), rec.ID, rec.Version, "wrong", say("a"))
	if err != nil || got.Version != 2 || got.State != stele.Withdrawn || got.Tombstone.Reason != "wrong" || got.Metadata["what"] != "a" {
		t.Fatalf("%+v, %v", got, err)
	}
	at := got.Tombstone.At
	f.jump(time.Hour)
	got, err = f.WithdrawWith(as("ann"), rec.ID, 0, "wrong indeed", say("b"))
	if err != nil || got.Version != 3 || got.State != stele.Withdrawn || got.Tombstone.Reason != "wrong indeed" || !got.Tombstone.At.Equal(at) || got.Metadata["what"] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = f.WithdrawWith(as("ann"), rec.ID, 2, "late", say("c"))
	want(t, err, stele.Conflict)
	_, err = f.WithdrawWith(as("bob"), rec.ID, 0, "not mine", say("c"))
	want(t, err, stele.Forbidden)
	reserved := f.record("ark:12345/x2", "https://example.org/2")
	reserved.State = stele.Reserved
	if _, err := f.Register(as("ann"), reserved); err != nil {
		t.Fatal(err)
	}
	_, err = f.WithdrawWith(as("ann"), reserved.ID, 0, "x", say("c"))
	want(t, err, stele.Conflict)
}
