package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// TestRollingUpgrade: three servers over a database that an earlier program made are replaced one
// after the other, while a later program's migration adds to the tables, and no read is lost or
// refused. The servers that start after the migration are one step behind the tables. When the
// tables are for later programs only, servers that still run answer reads and refuse writes.
//
// The later program is forged: it is the statements with which a migration would end. What it
// would add to each row is tested in store/postgres.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, database: postgrestest.Start(t, postgrestest.Options{NoSync: true}), schemes: schemes, flags: []string{"--drain", "10m"}}
	c.url = loaded(t, c.database, filepath.Join(upgradeFolder, "postgres-1"))
	runStele(t, "store", "migrate", "--store", c.url)
	c.token = credentialText.FindString(runStele(t, "token", "create", "root", "--store", c.url))
	b := &balancer{}
	for range 3 {
		s := c.start()
		c.servers = append(c.servers, s)
		b.add(s)
	}
	load := startLoad(t, c, b)
	load.want(t, 20)
	// The registry goes on while a drill compares a backup with it.
	for _, place := range [][]string{{"--store", c.url}, {"--server", c.servers[0].http, "--into", c.database.Database(t)}} {
		cmd := steleCommand(t, append([]string{"backup", "--drill", "--json"}, place...)...)
		cmd.Env = append(cmd.Env, "STELE_TOKEN="+c.token)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"wrong":0`) || !strings.Contains(string(out), `"restored":"database"`) {
			t.Errorf("a drill under load, %s: %v\n%s", place[0], err, out)
		}
	}
	next := schemaVersions()["postgres"] + 1
	c.database.Exec(t, databaseOf(t, c.url), `SET search_path = stele`, `ALTER TABLE registry ADD COLUMN later bigint`, `ALTER TABLE names ADD COLUMN later bytea`,
		`CREATE TABLE later (key bytea PRIMARY KEY)`, fmt.Sprintf(`UPDATE registry SET written = %d`, next))
	load.want(t, 20)
	for _, s := range c.servers {
		b.drain(t, s)
		b.add(c.start())
		load.want(t, 20)
	}
	runStele(t, "store", "migrate", "--store", c.url) // an earlier program takes nothing back
	runStele(t, "verify", "--store", c.url)
	load.want(t, 20)

	// From here on only later programs may use the tables.
	c.database.Exec(t, databaseOf(t, c.url), `SET search_path = stele`, fmt.Sprintf(`UPDATE registry SET version = %d`, next))
	out, err := steleCommand(t, "serve", "--store", c.url, "--http", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "use a later program") {
		t.Errorf("a server of an earlier version starts: %v\n%s", err, out)
	}
	eventually(t, "writes are refused", func() bool { return load.refused.Load() > 0 })
	load.want(t, 20)
	load.end(t)
}

// balancer sends requests to the servers that are ready, in turn, as a load balancer does.
type balancer struct {
	mu      sync.RWMutex // held while a request is under way
	servers []*clusterServer
	turn    atomic.Uint32
}

func (b *balancer) add(s *clusterServer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers = append(b.servers, s)
}

// drain ends a server as an administrator does: it gets a signal, says that it is not ready, and
// answers until the balancer has noticed that.
func (b *balancer) drain(t *testing.T, s *clusterServer) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server drains", func() bool {
		response, _ := httpGet(t, s.http+"/readyz")
		return response.StatusCode == http.StatusServiceUnavailable
	})
	b.mu.Lock()
	for i := range b.servers {
		if b.servers[i] == s {
			b.servers = append(b.servers[:i:i], b.servers[i+1:]...)
			break
		}
	}
	b.mu.Unlock()
	s.end(t, syscall.SIGTERM) // the rest of the time to drain is not needed
}

// do calls send with a server that is ready.
func (b *balancer) do(send func(*clusterServer)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	send(b.servers[int(b.turn.Add(1))%len(b.servers)])
}

// load reads and writes without pause.
type load struct {
	c       *cluster
	b       *balancer
	stop    chan struct{}
	workers sync.WaitGroup

	mu       sync.Mutex
	written  []string // names that were acknowledged
	failures []string
	reads    atomic.Int64
	refused  atomic.Int64 // writes
}

// readNames are names of the fixture, and where they lead.
var readNames = map[string]string{
	"10.5072/rivers":                       "https://example.org/rivers",
	"urn:example:rivers":                   "https://example.org/rivers",
	"urn:paradisec:AB1:001:B":              "https://archive.example.org/B",
	"ark:12345/x5imported1":                "https://example.org/imported/1",
	"iconet.com.br/banon/2001/02.10.22.55": "https://example.org/ibi",
}

func startLoad(t *testing.T, c *cluster, b *balancer) *load {
	l := &load{c: c, b: b, stop: make(chan struct{})}
	for range 3 {
		l.workers.Go(func() { l.read(t) })
	}
	l.workers.Go(func() { l.write(t) })
	return l
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

func (l *load) ended() bool {
	select {
	case <-l.stop:
		return true
	case <-l.c.t.Context().Done():
		return true
	default:
		return false
	}
}

func (l *load) read(t *testing.T) {
	for !l.ended() {
		for name, want := range readNames {
			l.get(t, name, want)
		}
		l.mu.Lock()
		last := ""
		if n := len(l.written); n > 0 {
			last = l.written[n-1]
		}
		l.mu.Unlock()
		if last != "" { // a name that no server has in its cache yet; those that follow the feed may lag
			l.get(t, last, "")
		}
		l.reads.Add(1)
	}
}

// get reads a name; want is where it leads, or "" if the server may not know it yet.
func (l *load) get(t *testing.T, name, want string) {
	l.b.do(func(s *clusterServer) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/"+name, nil)
		if err != nil {
			l.fail("%v", err)
			return
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			l.fail("%s: %v", name, err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		switch at := response.Header.Get("Location"); {
		case want == "" && response.StatusCode == http.StatusNotFound:
		case response.StatusCode/100 != 3 || want != "" && at != want:
			l.fail("%s: %s to %q", name, response.Status, at)
		}
	})
}

func (l *load) write(t *testing.T) {
	for n := 0; !l.ended(); n++ {
		name := fmt.Sprintf("urn:example:load%d", n)
		l.b.do(func(s *clusterServer) {
			response, text := l.c.call(s, http.MethodPut, "records/"+name, fmt.Sprintf(`{"id":%q,"url":"https://example.org/load"}`, name), "If-None-Match", "*")
			switch {
			case response.StatusCode/100 == 2:
				l.mu.Lock()
				l.written = append(l.written, name)
				l.mu.Unlock()
			case strings.Contains(string(text), "use a later program"):
				l.refused.Add(1)
			default:
				l.fail("%s: %s %s", name, response.Status, text)
			}
		})
	}
}

// want waits until all names were read some more times.
func (l *load) want(t *testing.T, n int64) {
	t.Helper()
	from := l.reads.Load()
	eventually(t, "names are read", func() bool { return l.reads.Load() >= from+n })
}

// end ends the load. Nothing failed, and all that was acknowledged is there.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.workers.Wait()
	for i, text := range l.failures {
		if i < 10 {
			t.Error(text)
		}
	}
	t.Logf("%d rounds of reads, %d writes", l.reads.Load(), len(l.written))
	if len(l.written) == 0 {
		t.Error("nothing was written")
	}
	for _, name := range l.written {
		l.failures = nil
		l.get(t, name, "https://example.org/load")
		if len(l.failures) > 0 {
			t.Errorf("what was acknowledged is lost: %s", l.failures[0])
		}
	}
}
