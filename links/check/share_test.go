package check

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// kept returns what is kept of hosts.
func (g *registry) kept() map[string]keptHost {
	g.t.Helper()
	hosts := make(map[string]keptHost)
	for cell, err := range g.store.Cells(g.t.Context(), hostCells, "") {
		var h keptHost
		if err == nil {
			err = json.Unmarshal(cell.Value, &h)
		}
		if err != nil {
			g.t.Fatal(err)
		}
		hosts[strings.TrimPrefix(cell.Name, hostCells)] = h
	}
	return hosts
}

// slow has the hosts of big.example asked once a day: 15 names in a turn.
func slow(l *registrar.LinkChecks) {
	l.Own = []registrar.OwnHost{{Host: "big.example", Gap: day}}
}

// The hosts of a domain are asked one after the other, so it is their names together of which a sample is asked. When there are fewer, all are.
func TestShareOfDomain(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	var ids []stele.ID
	for i := range 30 {
		ids = append(ids, g.register(fmt.Sprintf("ark:12345/x5%02d", i), fmt.Sprintf("https://h%d.big.example/%d", i%3, i)))
	}
	if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x6", Owner: "olga"}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 { // whose targets are not checked
		g.register(fmt.Sprintf("ark:12345/x6%02d", i), fmt.Sprintf("https://h0.big.example/other%d", i))
	}
	g.on(slow)
	w := g.newWork(c)
	hosts := g.kept()
	for _, name := range []string{"h0.big.example", "h1.big.example", "h2.big.example"} {
		if h := hosts[name]; h.Names != 10 || h.Share >= 1000 {
			t.Errorf("%s: %d names, a share of %d", name, h.Names, h.Share)
		}
	}
	if share, err := w.share(t.Context(), "h1.big.example"); err != nil || share != 500 {
		t.Errorf("a share of %d, %v", share, err)
	}
	w.lease.leave(t.Context())

	// A day later most of the names lead elsewhere.
	for i, id := range ids {
		if i%3 == 2 || i < 12 {
			if _, err := g.r.Update(g.admin, id, 0, func(rec *stele.Record) error {
				rec.Targets[0].URL = fmt.Sprintf("https://small.example/%d", i)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // what the first look finds out of one host the second one knows of the others
		g.pass(2 * day)
		w.lease.leave(t.Context())
		w = g.newWork(c) // it knows what is kept
	}
	if hosts := g.kept(); len(hosts) > 0 {
		t.Errorf("of these a sample is asked, or no name leads there: %+v", hosts)
	}
	if share, err := w.share(t.Context(), "h1.big.example"); err != nil || share != 1000 {
		t.Errorf("a share of %d, %v", share, err)
	}
}

// A host that does not answer is forgotten when no name leads there any more.
func TestForgetDeadHost(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(30 * day)
	var ids []stele.ID
	for i := range 6 {
		url := fmt.Sprintf("https://dead.example/%d", i)
		g.status[url] = 0
		ids = append(ids, g.register(fmt.Sprintf("ark:12345/x5%d", i), url))
	}
	g.on(nil)
	for range 10 * 24 {
		g.work(c)
		g.pass(time.Hour)
	}
	if h := g.kept()["dead.example"]; h.Known.Down.IsZero() {
		t.Fatalf("it is not down: %+v", h)
	}
	for _, id := range ids {
		if _, err := g.r.Update(g.admin, id, 0, func(rec *stele.Record) error {
			rec.Targets = nil
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w := g.newWork(c)
	if hosts := g.kept(); len(hosts) > 0 || len(w.names) > 0 || w.line.Host("dead.example").IsOpen() {
		t.Errorf("kept: %+v; names: %v", hosts, w.names)
	}
}

// An owner may name the host of a stranger: it is asked once a second at most, unless the administrator names it too.
func TestOwnHosts(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	c.o.Own = []string{"Data.Example"}
	g.on(func(l *registrar.LinkChecks) {
		l.Own = []registrar.OwnHost{{Host: "data.example", Gap: 100 * time.Millisecond}, {Host: "stranger.example", Gap: 100 * time.Millisecond}}
	})
	w := g.newWork(c)
	for host, want := range map[string]bool{"data.example": true, "www.data.example.": true, "mydata.example": false, "stranger.example": false} {
		if _, trusted := w.pace(host); trusted != want {
			t.Errorf("%s is one of the owner's: %t", host, trusted)
		}
	}
}
