package auth

import (
	"context"
	"testing"

	"github.com/stele-id/stele"
)

func TestContext(t *testing.T) {
	ctx := context.Background()
	if p := From(ctx); p.IsKnown() || p.Admin {
		t.Errorf("an empty context has %+v, want nobody", p)
	}
	if p := From(With(ctx, Local())); !p.IsKnown() || !p.Admin {
		t.Errorf("got %+v, want the local administrator", p)
	}
}

func TestMayWrite(t *testing.T) {
	root := &stele.Namespace{Scheme: "ark", Owner: "ann"}
	naan := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"}
	shoulder := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "bob"}
	orphan := &stele.Namespace{Scheme: "ark", Prefix: "ark:99999"}
	ann, bob := Principal{Name: "ann"}, Principal{Name: "bob", Groups: []string{"ann"}}
	for _, tt := range []struct {
		name  string
		p     Principal
		chain []*stele.Namespace
		want  bool
	}{
		{"owner", bob, []*stele.Namespace{shoulder, naan, root}, true},
		{"owner of an ancestor", ann, []*stele.Namespace{shoulder, naan, root}, true},
		{"owner of what is below", bob, []*stele.Namespace{naan, root}, false},
		{"a group's name is not its members'", bob, []*stele.Namespace{naan}, false},
		{"a root's owner", ann, []*stele.Namespace{root}, false},
		{"a root's administrator", Local(), []*stele.Namespace{root}, true},
		{"administrator", Local(), []*stele.Namespace{shoulder, naan, root}, true},
		{"administrator without a namespace", Local(), nil, true},
		{"nobody where there is no owner", Principal{}, []*stele.Namespace{orphan, root}, false},
		{"nobody with all rights", Principal{Admin: true}, []*stele.Namespace{naan}, false},
		{"somebody where there is no owner", ann, []*stele.Namespace{orphan, root}, false},
	} {
		if got := MayWrite(tt.p, tt.chain...); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
}

func TestMayRead(t *testing.T) {
	ns := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "ann"}
	ann, bob, carl := Principal{Name: "ann"}, Principal{Name: "bob", Groups: []string{"staff"}}, Principal{Name: "carl"}
	public := &stele.Record{State: stele.Active}
	gone := &stele.Record{State: stele.Withdrawn}
	reserved := &stele.Record{State: stele.Reserved}
	staff := &stele.Record{State: stele.Active, Readers: []string{"group:staff", "user:carl", "user:", "carla"}}
	for _, tt := range []struct {
		name string
		p    Principal
		r    *stele.Record
		want bool
	}{
		{"public", Principal{}, public, true},
		{"withdrawn", Principal{}, gone, true},
		{"reserved", bob, reserved, false},
		{"reserved, by its owner", ann, reserved, true},
		{"restricted", Principal{}, staff, false},
		{"restricted, by its owner", ann, staff, true},
		{"restricted to a group", bob, staff, true},
		{"restricted to a name", carl, staff, true},
		{"restricted, another", Principal{Name: "dora"}, staff, false},
		{"a user named as the group", Principal{Name: "staff"}, staff, false},
		{"a group named as the user", Principal{Name: "dora", Groups: []string{"carl"}}, staff, false},
		{"a reader that is neither user nor group", Principal{Name: "carla"}, staff, false},
	} {
		if got := MayRead(tt.p, tt.r, ns); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
}
