package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registry"
)

// databaseOf returns the name of a database.
func databaseOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// replace puts another database in the place of the one that the servers use, while they
// run: it drops that one, as in a fail-over.
func (c *cluster) replace(next string, round int) {
	c.t.Helper()
	now, then := databaseOf(c.t, c.url), databaseOf(c.t, next)
	c.database.Exec(c.t, "postgres",
		"ALTER DATABASE "+now+" WITH ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname IN ('"+now+"', '"+then+"')",
		fmt.Sprintf("ALTER DATABASE %s RENAME TO before%d", now, round),
		"ALTER DATABASE "+then+" RENAME TO "+now)
}

// TestFollowRestored: servers whose database is replaced by one that was restored from a
// backup answer from that one: they show nothing that they had cached, with fewer changes
// than there were and with more.
func TestFollowRestored(t *testing.T) {
	c := newCluster(t, 2)
	c.namespace("urn:zoned", stele.Minter{}, stele.Publication{Zone: "zoned.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 1})
	const before, after = "https://example.org/before", "https://example.org/after"
	c.put(c.servers[0], "urn:zoned:x1", before, "")
	c.put(c.servers[0], "urn:zoned:x2", before, "")
	backup := filepath.Join(t.TempDir(), "backup")
	runStele(t, "backup", backup, "--store", c.url)
	for round, more := range []int{0, 40} {
		changed := c.put(c.servers[0], "urn:zoned:x1", after, `*`)
		late := fmt.Sprintf("urn:zoned:late%d", round)
		for i := range 10 {
			changed = c.put(c.servers[1], fmt.Sprintf("%s-%d", late, i), after, "")
		}
		serial := uint32(0)
		for _, s := range c.servers {
			for _, name := range []string{"urn:zoned:x1", late + "-3"} {
				if _, at := s.location(t, name, changed); at != after {
					t.Fatalf("%s leads to %q", name, at)
				}
			}
			askDNS(t, s.dns, "x1.zoned.example.", 35)
			serial = serialOf(t, s.dns, "zoned.example.")
		}
		next := c.database.Database(t)
		runStele(t, "store", "migrate", "--store", next)
		runStele(t, "restore", backup, "--store", next, "--present", c.url)
		for i := range more {
			runStele(t, "register", fmt.Sprintf("urn:zoned:more%d", i), "--to", before, "--store", next)
		}
		var position stele.Position
		newStory(t).in(registry.Place{URL: next}, func(r *registry.Registry) {
			var err error
			if position, err = r.Store.Position(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		c.replace(next, round)
		for i, s := range c.servers {
			c.wantRestored(s, i, late, position, before, serial)
			if status, _ := s.location(t, "urn:zoned:x1", changed); status != http.StatusConflict {
				t.Errorf("round %d: a version token from before the restore is answered with %d", round, status)
			}
		}
		// A number of a change that is used again does not mean the change from before.
		fresh := c.put(c.servers[1], "urn:zoned:x2", fmt.Sprintf("https://example.org/%d", round), `*`)
		if p, err := stele.ParsePosition(fresh); err != nil || p.Generation != position.Generation || p.Change <= position.Change || p.Change > position.Change+5 {
			t.Errorf("round %d: a write at %v gets the version token %s, %v", round, position, fresh, err)
		}
		for _, s := range c.servers {
			if status, at := s.location(t, "urn:zoned:x2", fresh); at != fmt.Sprintf("https://example.org/%d", round) {
				t.Errorf("round %d: after a write: %d, %q", round, status, at)
			}
		}
	}
}

// wantRestored makes sure that a server answers with the restored contents. As long as it
// has no connection to the new database it answers that it is unavailable.
func (c *cluster) wantRestored(s *clusterServer, number int, late string, at stele.Position, url string, serial uint32) {
	c.t.Helper()
	eventually(c.t, "the server answers from the restored registry", func() bool {
		status, location := s.location(c.t, "urn:zoned:x1", at.String())
		if status/100 == 3 && location != url {
			c.t.Fatalf("server %d: an old answer for a new version token: %s", number, location)
		}
		return status/100 == 3
	})
	// From now on everything is new, without a version token too.
	if _, location := s.location(c.t, "urn:zoned:x1", ""); location != url {
		c.t.Errorf("server %d: an old answer: %s", number, location)
	}
	for i := range 10 {
		if status, location := s.location(c.t, fmt.Sprintf("%s-%d", late, i), ""); status != http.StatusNotFound {
			c.t.Errorf("server %d: a name from after the backup: %d, %s", number, status, location)
		}
	}
	if answer := c.settled(s, "x1.zoned.example."); !bytes.Contains(answer, []byte(url)) {
		c.t.Errorf("server %d: the DNS has an old answer: %q", number, answer)
	}
	if answer := c.settled(s, strings.TrimPrefix(late, "urn:zoned:")+"-3.zoned.example."); answer[3]&0xF != 3 {
		c.t.Errorf("server %d: the DNS has a name from after the backup: %q", number, answer)
	}
	c.settled(s, "zoned.example.")
	if got := serialOf(c.t, s.dns, "zoned.example."); int32(got-serial) <= 0 {
		c.t.Errorf("server %d: the serial is %d, and was %d before", number, got, serial)
	}
}

// settled asks a server for the rules of a name, and again while it answers that it is
// unavailable: it may have tried its connection to the former database.
func (c *cluster) settled(s *clusterServer, name string) (answer []byte) {
	c.t.Helper()
	eventually(c.t, "the DNS answers for "+name, func() bool {
		answer = askDNS(c.t, s.dns, name, 35)
		return answer[3]&0xF != 2
	})
	return answer
}
