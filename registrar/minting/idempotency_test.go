package minting

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// TestRequestIsRead: what is kept of a request is what is read, and damage is reported.
func TestRequestIsRead(t *testing.T) {
	name := rapid.Custom(func(t *rapid.T) stele.ID {
		id, err := stele.NewID(rapid.SampledFrom([]string{"ibi", "ark", "urn"}).Draw(t, "scheme"), rapid.StringMatching(`[ -~é]{1,40}`).Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		return id
	})
	rapid.Check(t, func(t *rapid.T) {
		q := request{at: time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()}
		copy(q.digest[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
		for range rapid.IntRange(1, 4).Draw(t, "names") {
			q.labels = append(q.labels, Label{name.Draw(t, "id"), rapid.SliceOfN(name, 0, 2).Draw(t, "aliases")})
		}
		data := q.bytes()
		got, err := readRequest(data)
		if err != nil || got.digest != q.digest || !got.at.Equal(q.at) || string(got.bytes()) != string(data) {
			t.Fatalf("%q became %+v, %v", data, got, err)
		}
		cut := rapid.IntRange(0, len("once 2006-01-02T15:04:05Z")+64).Draw(t, "cut")
		if _, err := readRequest(data[:cut]); stele.KindOf(err) != stele.Internal || err == nil {
			t.Fatalf("%q: %v", data[:cut], err)
		}
	})
}

// onlyApply is a registry that commits, and does nothing else.
type onlyApply struct {
	Registry
	store stele.Store
}

func (r onlyApply) Apply(ctx context.Context, _ string, c *stele.Commit) error {
	return r.store.Apply(ctx, c)
}

// TestTooManyKeys: a principal has at most so many keys. They are counted again when the
// count is old, since another process may have removed some, and removed ones do not count.
func TestTooManyKeys(t *testing.T) {
	now := time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)
	store := mem.New(func() time.Time { return now })
	ms := New(store, onlyApply{store: store}, nil, Options{Now: func() time.Time { return now }})
	var c stele.Commit
	for i := range 3 {
		c.Cells = append(c.Cells, stele.CellChange{Name: requestName("ann", fmt.Sprint(i)), After: request{at: now}.bytes()})
	}
	if err := store.Apply(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	may := func() error { return ms.mayUseKey(t.Context(), "ann") }
	if err := may(); err != nil || ms.requests.kept["ann"].n != 3 {
		t.Fatalf("%d keys are counted, %v", ms.requests.kept["ann"].n, err)
	}
	if n, err := ms.ExpireKeys(t.Context(), now.Add(time.Second), 2); n != 2 || err != nil || ms.requests.kept["ann"].n != 1 {
		t.Errorf("%d expired, %d keys are counted, %v", n, ms.requests.kept["ann"].n, err)
	}
	ms.requests.kept["ann"] = keptCount{maxRequests, now}
	if err := may(); !errors.Is(err, stele.Exhausted) {
		t.Errorf("one key more: %v", err)
	}
	now = now.Add(countAgain)
	if err := may(); err != nil {
		t.Errorf("after another count: %v", err)
	}
}
