package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// An outage of this server calls no host down, however often the server starts meanwhile; when it is over, checks go on.
func TestOutage(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	var ids []stele.ID
	for i := range 30 {
		url := fmt.Sprintf("https://h%d.example/", i)
		ids = append(ids, g.register(fmt.Sprintf("ark:12345/x5%d", i), url))
	}
	g.on(nil)
	g.work(c)
	for i := range ids {
		g.status[fmt.Sprintf("https://h%d.example/", i)] = 0
	}
	if err := c.Ask(g.as("ed"), ids...); err != nil {
		t.Fatal(err)
	}
	for range 8 * 24 {
		g.work(c) // each time with a worker that knows only what is kept
		g.pass(time.Hour)
	}
	requests := 0
	for _, n := range g.asked {
		requests += n
	}
	if most := 30 + 30 + 8*24*6; requests > most {
		t.Errorf("%d requests during the outage, want at most %d", requests, most)
	}
	hosts, err := c.Hosts(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"})
	if err != nil || len(hosts) > 0 {
		t.Errorf("%d hosts are down, %v", len(hosts), err)
	}
	failing := 0
	for _, id := range ids {
		switch state := g.states(c, id)[0]; state {
		case "failing":
			failing++
		case "ok":
		default:
			t.Errorf("%s is %s", id, state)
		}
	}
	if failing >= 20 { // the first ones, before it is known that no host answers
		t.Errorf("%d fail", failing)
	}
	clear(g.status)
	for range 3 * 24 {
		g.work(c)
		g.pass(time.Hour)
	}
	for _, id := range ids {
		g.want(c, id, "ok")
	}
	for cell, err := range g.store.Cells(t.Context(), outageCell, "") {
		t.Errorf("%q is left, %v", cell.Name, err)
	}
}
