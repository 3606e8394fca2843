package registrar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.space("ark:12345", owner("ann"))
		begin := time.Now()
		time.Sleep(time.Hour)
		rec := f.registered("ark:12345/a")
		must(f.AddAlias(f.admin, rec.ID, 0, f.id("ark:12345/alias")))(t)
		for i := 2; i < 5; i++ {
			time.Sleep(time.Hour)
			must(f.Update(as("ann"), rec.ID, 0, setURL(fmt.Sprintf("https://example.org/%d", i))))(t)
		}
		var urls []string
		for v, err := range f.History(context.Background(), f.id("ark:12345/alias")) {
			if err != nil {
				t.Fatal(err)
			}
			urls = append(urls, fmt.Sprintf("%d %s %s", v.Version, v.By, v.Targets[0].URL))
		}
		want5 := []string{"5 ann https://example.org/4", "4 ann https://example.org/3", "3 ann https://example.org/2", "2 local https://example.org/1", "1 local https://example.org/1"}
		if diff := cmp.Diff(want5, urls); diff != "" {
			t.Error(diff)
		}
		for after, version := range map[time.Duration]uint64{time.Hour: 2, 90 * time.Minute: 2, 2 * time.Hour: 3, 3*time.Hour - 1: 3, 99 * time.Hour: 5} {
			if got := must(f.At(context.Background(), rec.ID, begin.Add(after)))(t); got.Version != version {
				t.Errorf("after %v it was version %d, want %d", after, got.Version, version)
			}
		}
		_, err := f.At(context.Background(), rec.ID, begin.Add(time.Minute))
		want(t, err, stele.NotFound, "not registered yet")
		_, err = f.At(context.Background(), f.id("ark:12345/none"), begin)
		want(t, err, stele.NotFound)

		// A clock that steps back does not mix up the order.
		f.jump(-24 * time.Hour)
		v6 := must(f.Update(as("ann"), rec.ID, 0, setURL("https://example.org/5")))(t)
		if got := must(f.At(context.Background(), rec.ID, begin.Add(4*time.Hour)))(t); got.Version != 6 || !v6.Modified.Equal(begin.Add(4*time.Hour)) {
			t.Errorf("got version %d, changed %s", got.Version, v6.Modified)
		}
	})
}

func TestRedact(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	rec := f.record("ark:12345/a", "https://example.org/secret")
	rec.Spelling = "ark:/12345/a"
	rec.Metadata = stele.Metadata{stele.Who: "secret"}
	rec.Persistence = stele.Persistence{Level: stele.Permanent, Statement: "secret"}
	rec.Values = []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte("secret")}}
	must(f.Register(as("ann"), rec))(t)
	must(f.Withdraw(as("ann"), rec.ID, 0, "a secret reason", stele.ID{}))(t)
	before := time.Now()

	_, err := f.Redact(as("ann"), rec.ID, 0, "court")
	want(t, err, stele.Forbidden, "administrator")
	got := must(f.Redact(f.admin, rec.ID, 0, "court order 7"))(t)
	if !got.Redacted || got.State != stele.Withdrawn || got.Tombstone.Reason != "court order 7" || got.Version != 3 || got.Persistence.Level != stele.Permanent {
		t.Errorf("got %+v", got)
	}
	nothing := func(when string) {
		t.Helper()
		n := 0
		for v, err := range f.History(f.admin, rec.ID) {
			n++
			if err != nil || strings.Contains(fmt.Sprintf("%+v %+v %s", v, v.Tombstone, dataOf(v)), "secret") || v.Version <= 3 && !v.Redacted {
				t.Errorf("%s version %d shows %+v, %v", when, v.Version, v, err)
			}
		}
		if n < 3 {
			t.Errorf("%d versions", n)
		}
		if v := must(f.At(f.admin, rec.ID, before))(t); !v.Redacted || v.Version != 2 {
			t.Errorf("%s at that time: %+v", when, v)
		}
	}
	nothing("at once")
	for _, do := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := f.Reinstate(ctx, rec.ID, 0); return err },
		func(ctx context.Context) error {
			_, err := f.AddAlias(ctx, rec.ID, 0, f.id("ark:12345/b"))
			return err
		},
		func(ctx context.Context) error {
			_, err := f.Update(ctx, rec.ID, 0, func(r *stele.Record) error {
				r.Targets = []stele.Target{{Service: stele.N2L, URL: "https://example.org/new"}}
				return nil
			})
			return err
		},
	} {
		want(t, do(as("ann")), stele.Forbidden, "legal order")
		if err := do(f.admin); err != nil {
			t.Fatal(err)
		}
		nothing("later")
	}
	if r := must(f.Get(f.admin, rec.ID))(t); r.Redacted || len(r.Targets) != 1 {
		t.Errorf("with new content: %+v", r)
	}
	must(f.Update(as("ann"), rec.ID, 0, setURL("https://example.org/newer")))(t)
	nothing("in the end")
}

func dataOf(r *stele.Record) (data []byte) {
	for _, v := range r.Values {
		data = append(data, v.Data...)
	}
	return data
}

func TestVisibility(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	rec := f.record("ark:12345/a", "https://example.org/secret")
	rec.Readers = []string{"group:staff"}
	rec = must(f.Register(as("ann"), rec))(t)
	for name, ctx := range map[string]context.Context{"public": context.Background(), "carl": as("carl")} {
		_, err := f.Get(ctx, rec.ID)
		want(t, err, stele.NotFound)
		for _, err := range f.History(ctx, rec.ID) {
			want(t, err, stele.NotFound)
		}
		_, err = f.Update(ctx, rec.ID, 0, setURL("https://example.org/2"))
		if !errors.Is(err, stele.NotFound) {
			t.Errorf("%s may know of it: %v", name, err)
		}
	}
	must(f.Get(as("bob", "staff"), rec.ID))(t)
	_, err := f.Update(as("bob", "staff"), rec.ID, 0, setURL("https://example.org/2"))
	want(t, err, stele.Forbidden)

	// What was said to a few is not told to all when it becomes public.
	must(f.Update(as("ann"), rec.ID, 0, func(r *stele.Record) error {
		r.Readers = nil
		return setURL("https://example.org/public")(r)
	}))(t)
	for v, err := range f.History(context.Background(), rec.ID) {
		if err != nil || v.Version == 1 && len(v.Targets) > 0 || v.Version == 2 && len(v.Targets) != 1 {
			t.Errorf("the public sees %+v, %v", v, err)
		}
	}
	if v := must(f.At(as("bob", "staff"), rec.ID, rec.Modified))(t); v.Version != 1 || len(v.Targets) != 1 {
		t.Errorf("staff sees %+v", v)
	}
}
