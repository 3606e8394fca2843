package check

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// A server that redirects to an endless address must not end the checks of all others.
func TestLongRedirect(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	long := g.register("ark:12345/x5a", "https://a.example/1")
	other := g.register("ark:12345/x5b", "https://b.example/1")
	g.moved["https://a.example/1"] = "https://a.example/?" + strings.Repeat("&", 200_000)
	g.on(nil)
	g.work(c)
	g.want(c, long, "moved")
	g.want(c, other, "ok")
	if found, err := c.Show(g.as("ruth"), long); err != nil || found[0].Final != "" {
		t.Errorf("%d bytes of the address are kept, %v", len(found[0].Final), err)
	}
}

// unreadable is a store in which one record can't be read.
type unreadable struct {
	stele.Store
	id *stele.ID
}

func (u unreadable) Record(ctx context.Context, id stele.ID) (*stele.Record, error) {
	if *u.id == id {
		return nil, stele.Errorf("read", id, stele.Internal, "test.damaged", "the record is damaged")
	}
	return u.Store.Record(ctx, id)
}

func (u unreadable) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range u.Store.Scan(ctx, scheme, prefix, after) {
			if err == nil && rec.ID == *u.id {
				rec, err = u.Record(ctx, rec.ID)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// One record that can't be read does not keep others from being checked, whether it changes or stands in the way.
func TestUnreadableRecord(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	first := g.register("ark:12345/x5a", "https://a.example/1")
	hidden := g.register("ark:12345/x5b", "https://b.example/1")
	last := g.register("ark:12345/x5c", "https://c.example/1")
	c.o.Store = unreadable{g.store, &hidden}
	g.on(nil)
	g.work(c)
	g.want(c, first, "ok")
	g.want(c, last, "unchecked")
	g.setURL(hidden, "https://b.example/2")
	g.setURL(last, "https://c.example/2")
	g.work(c)
	g.want(c, last, "ok")
	hidden = stele.ID{}
	g.pass(2 * restFor)
	g.work(c)
	g.want(c, g.id("ark:12345/x5b"), "ok")
}

func TestOneTargetFails(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	bad := g.register("ark:12345/x5a", "https://a.example/1")
	good := g.register("ark:12345/x5b", "https://b.example/1")
	g.on(nil)
	hidden := bad
	g.work(c)
	c.o.Store = unreadable{g.store, &hidden}
	for _, id := range []stele.ID{bad, good} {
		if err := c.Ask(g.as("ed"), id); err != nil {
			t.Fatal(err)
		}
	}
	g.work(c)
	if g.asked["https://a.example/1"] != 1 || g.asked["https://b.example/1"] != 2 {
		t.Errorf("asked: %v", g.asked)
	}
	hidden = stele.ID{}
	g.pass(2 * restFor)
	g.work(c)
	if g.asked["https://a.example/1"] != 2 {
		t.Errorf("what could not be read was not asked again: %v", g.asked)
	}
}

// One damaged cell is as one that is not there.
func TestDamagedCells(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	a := g.register("ark:12345/x5a", "https://a.example/1")
	b := g.register("ark:12345/x5b", "https://b.example/1")
	g.status["https://a.example/1"] = 404
	g.on(nil)
	g.work(c)
	ctx := asServer(t.Context())
	ka := keyOf(a, 0)
	stray := []string{dueCells + "zz nothing", dueCells + "0000000001 nothing", stateCells + "0000nothing", dueCells + "0000000001 ark\tark:12345/x5a\tx"}
	for _, name := range append([]string{blockCells + lastBlock, ka.found(), placeCell, leaseCell, hostCells + "a.example", hostCells + "b.example", enrolCells + "ark\tark:12345/x5"}, stray...) {
		before, err := g.r.CheckCell(ctx, name)
		if err == nil {
			err = g.r.KeepChecks(ctx, stele.CellChange{Name: name, Before: before, After: []byte("\x00{damaged")})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	g.want(c, a, "unchecked")
	if hosts, err := c.Hosts(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}); err != nil || len(hosts) > 0 {
		t.Errorf("%v, %v", hosts, err)
	}
	for _, id := range []stele.ID{a, b} {
		if err := c.Ask(g.as("ed"), id); err != nil {
			t.Fatal(err)
		}
	}
	g.pass(31 * day)
	g.work(c)
	g.want(c, a, "failing")
	g.want(c, b, "ok")
	if got := g.findings(c, "ruth"); len(got) != 1 {
		t.Errorf("findings: %v", got)
	}
	for _, name := range stray {
		if value, err := g.r.CheckCell(ctx, name); value != nil && !strings.HasPrefix(name, dueCells+"zz") || err != nil {
			t.Errorf("%q is left, %v", name, err)
		}
	}
}
