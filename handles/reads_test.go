package handles

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/wire/hdl"
)

// counted is a store that counts the records which are read from it.
type counted struct {
	*mem.Store
	reads  atomic.Int64
	onSite func() // called after the cell of the site was written
}

func (c *counted) Apply(ctx context.Context, commit *stele.Commit) error {
	err := c.Store.Apply(ctx, commit)
	if c.onSite != nil && slices.ContainsFunc(commit.Cells, func(c stele.CellChange) bool { return c.Name == "handle site" }) {
		c.onSite()
	}
	return err
}

func (c *counted) Record(ctx context.Context, id stele.ID) (*stele.Record, error) {
	c.reads.Add(1)
	return c.Store.Record(ctx, id)
}

// TestCreateReads: a new handle costs few reads: of its name, and of the record of its prefix, whose list names the client. Who acts for
// the client is asked once.
func TestCreateReads(t *testing.T) {
	asked := 0
	f := newFixture(t, func(o *Options) {
		o.User = func(context.Context, Identity) (auth.Principal, bool, error) {
			asked++
			return auth.Principal{}, false, nil
		}
	})
	f.register("0.NA/20.500.1", admin(100, hdl.MayAddHandle, "200:0.NA/20.500.1"), list(200, hdl.Reference{Handle: "0.NA/20.500.1", Index: 300}))
	who, err := f.ParseIdentity("300:0.NA/20.500.1")
	if err != nil {
		t.Fatal(err)
	}
	plain := f.store.reads.Load()
	f.register("20.500.1/plain", text(1, "DESC", "a"))
	plain = f.store.reads.Load() - plain
	before := f.store.reads.Load()
	c := &Change{Operation: hdl.CreateHandle, Handle: "20.500.1/new", Values: []stele.HandleValue{text(1, "DESC", "a")}}
	if err := f.Begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), who); err != nil {
		t.Fatal(err)
	}
	if n := f.store.reads.Load() - before - plain; n != 2 || asked != 1 {
		t.Errorf("%d reads more than the registrar's own %d, and %d questions who acts", n, plain, asked)
	}
}

// TestCreateOvertaken: a create that another client overtook, who has deleted the handle since, brings it back.
func TestCreateOvertaken(t *testing.T) {
	const ann = "300:20.500.1/ANN"
	f := newFixture(t)
	f.register("0.NA/20.500.1", admin(100, hdl.MayAddHandle, ann))
	who, err := f.ParseIdentity(ann)
	if err != nil {
		t.Fatal(err)
	}
	create := func() *Change {
		return &Change{Operation: hdl.CreateHandle, Handle: "20.500.1/new", Values: []stele.HandleValue{text(1, "DESC", "a"), admin(100, hdl.MayDeleteHandle, ann)}}
	}
	slow := create()
	if err := f.Begin(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	f.want("the faster one", f.do(ann, create()), hdl.Success)
	f.want("deleting it", f.do(ann, &Change{Operation: hdl.DeleteHandle, Handle: "20.500.1/new"}), hdl.Success)
	if err := slow.Commit(t.Context(), who); err != nil {
		t.Errorf("the overtaken create: %v", err)
	}
	if rec := f.find("20.500.1/new"); rec.State != stele.Active || rec.Version != 3 {
		t.Errorf("the record has the state %s and the version %d", rec.State, rec.Version)
	}
}

// TestSealed: a sealed registry is busy; it says nothing of a handle, and nothing of the reason, which is the operator's.
func TestSealed(t *testing.T) {
	f := newFixture(t)
	f.register("0.NA/20.500.1", admin(100, hdl.MayAddHandle, ann))
	f.register("20.500.1/there", text(1, "DESC", "a"), admin(100, hdl.MayAddValue|hdl.MayDeleteHandle, ann))
	if err := f.store.Seal(t.Context(), "it moves to postgres://db.example.org/"); err != nil {
		t.Fatal(err)
	}
	who, err := f.ParseIdentity(ann)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Change{
		{Operation: hdl.CreateHandle, Handle: "20.500.1/new", Values: []stele.HandleValue{text(1, "DESC", "a")}},
		{Operation: hdl.AddValue, Handle: "20.500.1/there", Values: []stele.HandleValue{text(2, "DESC", "b")}},
		{Operation: hdl.DeleteHandle, Handle: "20.500.1/there"},
	} {
		if err := f.Begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		err := c.Commit(t.Context(), who)
		if r, ok := errors.AsType[*Refusal](err); !ok || r.Code != hdl.ServerBusy || r.Text != "" {
			t.Errorf("operation %d: %v", c.Operation, err)
		}
	}
}
