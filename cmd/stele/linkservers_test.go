package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/registrar"
)

// watched is a web site that notes which server asks for what. It takes a moment for each page, so that servers are killed while they wait.
type watched struct {
	mu    sync.Mutex
	asked map[string][]string // by path: the agents that asked
	now   map[string]int      // by path: requests under way
	twice []string            // paths that were asked by two requests at once
	last  string              // the agent that asked last
}

func (w *watched) ServeHTTP(resp http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(resp, r)
		return
	}
	w.mu.Lock()
	w.asked[r.URL.Path] = append(w.asked[r.URL.Path], r.UserAgent())
	w.last = r.UserAgent()
	if w.now[r.URL.Path]++; w.now[r.URL.Path] > 1 {
		w.twice = append(w.twice, r.URL.Path)
	}
	w.mu.Unlock()
	select {
	case <-time.After(200 * time.Millisecond):
	case <-r.Context().Done():
	}
	w.mu.Lock()
	w.now[r.URL.Path]--
	w.mu.Unlock()
	resp.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(resp, "the text of "+r.URL.Path)
}

// paths returns how many paths were asked for, and how many of them more than once.
func (w *watched) paths() (all, again int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, agents := range w.asked {
		if len(agents) > 1 {
			again++
		}
	}
	return len(w.asked), again
}

// atOnce returns the paths that two requests asked for at once.
func (w *watched) atOnce() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.twice
}

// One of two servers checks links; it is killed, and the other goes on. All that is known survives, also a restart of both.
func TestLinksOfSeveralServers(t *testing.T) {
	const names = 18
	site := &watched{asked: make(map[string][]string), now: make(map[string]int)}
	backend := httptest.NewServer(site)
	defer backend.Close()
	at := "127.0.0.1:" + servertest.FreePort(t)
	servertest.Nginx(t, at, t.TempDir(), fmt.Sprintf("server { listen %s; location / { proxy_pass %s; } }", at, backend.URL))

	c := newCluster(t, 0)
	start := func(name string) *clusterServer {
		c.flags = []string{"--link-allow", "127.0.0.0/8", "--job-lease", "5s", "--base", "http://" + name + ".example"}
		s := c.start()
		c.servers = append(c.servers, s)
		return s
	}
	servers := map[string]*clusterServer{"one": start("one"), "two": start("two")}
	key := c.namespace("ark:12345/x5", stele.Minter{}, stele.Publication{})
	var ids []stele.ID
	register := func(s *clusterServer, n int) {
		id := c.id(fmt.Sprintf("ark:12345/x5n%d", n))
		if _, err := s.Register(t.Context(), &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("http://%s/%d", at, n), Order: 100, Preference: 10}}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for n := range names {
		register(servers["one"], n)
	}
	if _, err := servers["one"].SetLinkChecks(t.Context(), key, func(l *registrar.LinkChecks) {
		l.On = true
		l.Own = []registrar.OwnHost{{Host: "127.0.0.1", Gap: 100 * time.Millisecond}}
	}); err != nil {
		t.Fatal(err)
	}
	holder := ""
	eventually(t, "some targets are asked", func() bool {
		n, _ := site.paths()
		site.mu.Lock()
		defer site.mu.Unlock()
		for name := range servers {
			if strings.Contains(site.last, name+".example") {
				holder = name
			}
		}
		return n >= 5
	})
	servers[holder].end(t, syscall.SIGKILL)
	n, _ := site.paths()
	t.Logf("%s is killed after %d targets", holder, n)
	if n == names {
		t.Fatal("all were asked before")
	}
	other := "one"
	if holder == other {
		other = "two"
	}
	eventually(t, "the other server asks the rest", func() bool {
		n, _ := site.paths()
		return n == names
	})
	checked := func(s *clusterServer) map[string]time.Time {
		times := make(map[string]time.Time)
		eventually(t, "all answers are kept", func() bool {
			list, waiting, err := s.CheckLinks(t.Context(), ids, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				if f.State == "ok" {
					times[f.ID] = f.Checked
				}
			}
			return waiting == 0
		})
		return times
	}
	before := checked(servers[other])
	if len(before) != names {
		t.Errorf("%d targets are known", len(before))
	}
	// What was under way when the server was killed, or when a slow machine renewed its lease too late, is asked again.
	if _, again := site.paths(); again > names/3 || len(site.atOnce()) > 0 {
		t.Errorf("%d targets were asked again, and two at once: %v", again, site.atOnce())
	}

	// Both are started anew, and know all that was known.
	servers[other].end(t, syscall.SIGKILL)
	_, again := site.paths()
	third := start("three")
	start("four")
	register(third, names)
	eventually(t, "a new target is asked", func() bool {
		n, _ := site.paths()
		return n == names+1
	})
	after := checked(third)
	for id, when := range before {
		if !after[id].Equal(when) {
			t.Errorf("%s was checked at %s, and now at %s", id, when, after[id])
		}
	}
	if _, now := site.paths(); now > again+1 || len(site.atOnce()) > 0 {
		t.Errorf("%d targets were asked again, and two at once: %v", now-again, site.atOnce())
	}
}
