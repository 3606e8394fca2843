package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/postgres"
)

// clusterLoad is clients that write through all servers of a cluster, and what the servers
// acknowledged.
type clusterLoad struct {
	t *testing.T
	c *cluster

	stopped chan struct{}
	ended   sync.Once
	clients sync.WaitGroup

	mu           sync.Mutex
	acknowledged *acknowledged
	known        []string                     // identifiers of records that may be changed
	made         map[string]bool              // records under names that were made
	history      map[string]map[uint64]string // by identifier and version: where it points
	acks         []time.Time
	again        int // requests that were sent again
	refused      int // answers that asked to retry
}

func newClusterLoad(t *testing.T, c *cluster) *clusterLoad {
	t.Helper()
	l := &clusterLoad{t: t, c: c, stopped: make(chan struct{}), made: make(map[string]bool), history: make(map[string]map[uint64]string),
		acknowledged: &acknowledged{names: make(map[string]bool), puts: make(map[string]put)}}
	for _, ns := range crashSpaces {
		if a := l.ask(c.servers[0], "PUT", "namespaces/"+ns.Prefix, nil, string(document.AppendNamespace(nil, &ns))); a.status != 201 {
			t.Fatalf("%+v", a)
		}
	}
	return l
}

// start has five clients write through each server. They leave the machine some time for
// everything else.
func (l *clusterLoad) start() {
	l.t.Cleanup(l.end)
	for i := range l.c.servers {
		for kind, work := range []func(at int, run string, n int){l.put, l.publish, l.patch, l.mintNames, l.mintRecords} {
			l.clients.Go(func() {
				run := fmt.Sprintf("s%d-%d", i, kind)
				for n := 0; ; n++ {
					select {
					case <-l.stopped:
						return
					case <-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond):
						work(i, run, n)
					}
				}
			})
		}
	}
}

func (l *clusterLoad) end() {
	l.ended.Do(func() { close(l.stopped) })
	l.clients.Wait()
}

// stop returns when each client has its last answer.
func (l *clusterLoad) stop() {
	l.end()
	l.t.Logf("%d writes, %d names, %d requests that were sent again, %d answers to try again", len(l.acks), len(l.acknowledged.names), l.again, l.refused)
}

// event calls happen, and reports for how long no write was acknowledged.
func (l *clusterLoad) event(what string, happen func()) {
	l.t.Helper()
	began := time.Now()
	happen()
	l.awaitWrites()
	l.mu.Lock()
	defer l.mu.Unlock()
	gap, last := time.Duration(0), began
	for _, at := range l.acks {
		if at.After(began) {
			gap, last = max(gap, at.Sub(last)), at
		}
	}
	l.t.Logf("%s: no write for %v", what, gap.Round(10*time.Millisecond))
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// awaitWrites returns when clients of all servers can write again: when more writes are
// acknowledged than were under way.
func (l *clusterLoad) awaitWrites() {
	l.t.Helper()
	l.mu.Lock()
	enough := len(l.acks) + 60
	l.mu.Unlock()
	l.c.await("writer who is answered", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acks) >= enough
	})
}

// nothingAcknowledged makes sure that no server acknowledges a write, once the requests
// under way are answered.
func (l *clusterLoad) nothingAcknowledged() {
	l.t.Helper()
	time.Sleep(time.Second)
	began := time.Now()
	time.Sleep(3 * time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.acks {
		if at.After(began) {
			l.t.Errorf("something was acknowledged that is on one machine only")
			return
		}
	}
}

// clusterAnswer is what a server answers; a status of 0 means that the outcome of the
// request is unknown.
type clusterAnswer struct {
	status  int
	text    string
	version string // of the registry, if it was written to
	err     error
}

// ask sends a request once.
func (l *clusterLoad) ask(s *clusterServer, method, path string, header map[string]string, body string) clusterAnswer {
	request, err := http.NewRequest(method, s.http+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		return clusterAnswer{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+l.c.token)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer, err := l.c.client.Do(request)
	if err != nil {
		return clusterAnswer{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return clusterAnswer{err: err}
	}
	return clusterAnswer{status: answer.StatusCode, text: string(text), version: answer.Header.Get("Stele-Version")}
}

// insist sends a request until the answer is not "try again", each time to the next server,
// up to a limit. It returns how often it was sent.
func (l *clusterLoad) insist(at int, method, path string, header map[string]string, body string) (a clusterAnswer, times int) {
	for try, deadline := 0, time.Now().Add(2*time.Minute); time.Now().Before(deadline); try++ {
		s := l.c.servers[(at+try)%len(l.c.servers)]
		if s.down.Load() {
			time.Sleep(time.Millisecond)
			continue
		}
		times++
		a = l.ask(s, method, path, header, body)
		l.mu.Lock()
		switch {
		case a.status == 0:
			l.again++
		case a.status == 503:
			l.again++
			l.refused++
		case a.status/100 == 2:
			l.acks = append(l.acks, time.Now())
		}
		l.mu.Unlock()
		switch a.status {
		case 0:
			if !s.down.Load() {
				l.t.Errorf("stele%s: %s %s: %v", s.number, method, path, a.err)
			}
		case 503:
			time.Sleep(50 * time.Millisecond)
		default:
			return a, times
		}
	}
	return a, times
}

// tell notes a version that was acknowledged.
func (l *clusterLoad) tell(id string, version uint64, url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version == 1 {
		l.known = append(l.known, id)
	}
	if l.history[id] == nil {
		l.history[id] = make(map[uint64]string)
	}
	l.history[id][version] = url
}

// put registers a record. If the outcome of the first request is unknown, it may have
// been done.
func (l *clusterLoad) put(at int, run string, n int) {
	l.putRecord(at, fmt.Sprintf("urn:x1:%s-%d", run, n))
}

// publish registers a record that is in the DNS.
func (l *clusterLoad) publish(at int, run string, n int) {
	l.putRecord(at, fmt.Sprintf("urn:example:%s-%d", run, n))
}

func (l *clusterLoad) putRecord(at int, id string) {
	url := "https://example.org/" + id
	a, times := l.insist(at, "PUT", "records/"+id, map[string]string{"If-None-Match": "*"}, `{"url":"`+url+`"}`)
	if a.status == 201 || a.status == 412 && times > 1 {
		l.tell(id, 1, url)
		return
	}
	l.t.Errorf("PUT %s: %+v", id, a)
}

// patch changes a record that is there. If the first answer was lost, the record may get a
// second version.
func (l *clusterLoad) patch(at int, run string, n int) {
	l.mu.Lock()
	id := ""
	if len(l.known) > 0 {
		id = l.known[rand.IntN(len(l.known))]
	}
	l.mu.Unlock()
	if id == "" {
		return
	}
	url := fmt.Sprintf("https://example.org/patch/%s/%d", run, n)
	a, _ := l.insist(at, "PATCH", "records/"+id, map[string]string{"Content-Type": "application/merge-patch+json"}, `{"targets":[{"url":"`+url+`"}]}`)
	var rec struct{ Version uint64 }
	if a.status != 200 || json.Unmarshal([]byte(a.text), &rec) != nil {
		l.t.Errorf("PATCH %s: %+v", id, a)
		return
	}
	l.tell(id, rec.Version, url)
}

// mintNames makes names.
func (l *clusterLoad) mintNames(at int, run string, n int) {
	l.mint(at, fmt.Sprintf("%s-%d", run, n), fmt.Sprintf(`{"namespace":%q,"count":%d}`, crashSpaces[n%3].Prefix, 1+n%5))
}

// mintRecords makes names and registers records under them.
func (l *clusterLoad) mintRecords(at int, run string, n int) {
	l.mint(at, fmt.Sprintf("%s-%d", run, n), fmt.Sprintf(`{"namespace":%q,"count":%d,"record":{"url":"https://example.org/made/%s/%d"}}`, crashSpaces[n%3].Prefix, 1+n%3, run, n))
}

func (l *clusterLoad) mint(at int, key, body string) {
	a, _ := l.insist(at, "POST", "mint", map[string]string{"Idempotency-Key": key}, body)
	var made struct {
		Items []struct {
			ID      string
			Aliases []string
			Record  *struct{ Targets []struct{ URL string } }
		}
	}
	if a.status != 201 || json.Unmarshal([]byte(a.text), &made) != nil {
		l.t.Errorf("mint %s: %+v", body, a)
		return
	}
	for _, item := range made.Items {
		l.mu.Lock()
		l.acknowledged.give(l.t, append(item.Aliases, item.ID)...)
		l.mu.Unlock()
		if item.Record != nil {
			l.tell(item.ID, 1, item.Record.Targets[0].URL)
			l.mu.Lock()
			l.made[item.ID] = true
			l.mu.Unlock()
		}
	}
}

// open opens the registry itself, past the servers.
func (c *cluster) open(t *testing.T) *registry {
	t.Helper()
	ctx := auth.With(context.WithoutCancel(t.Context()), auth.Local())
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(ctx, c.url("127.0.0.1", c.settings["pg1"], c.settings["pg2"], c.settings["pg3"]), postgres.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &registry{ctx: ctx, schemes: schemes, store: store, registrar: registrar.New(store, schemes, registrar.Options{Now: time.Now})}
}

// verify looks for everything that was acknowledged, in the database, and for records
// under new names that no client was told of. The store and the minters must be whole, and
// go on with unused names.
func (l *clusterLoad) verify() {
	l.t.Helper()
	r := l.c.open(l.t)
	defer r.close(l.t)
	l.mu.Lock()
	defer l.mu.Unlock()
	var workers sync.WaitGroup
	ids := make(chan string)
	for range 4 {
		workers.Go(func() {
			for id := range ids {
				r.hasVersions(l.t, id, l.history[id])
			}
		})
	}
	versions := 0
	for id, list := range l.history {
		ids <- id
		versions += len(list)
	}
	close(ids)
	workers.Wait()
	for i := range 3 {
		for rec, err := range r.store.Scan(r.ctx, crashSpaces[i].Scheme, crashSpaces[i].Prefix, "") {
			if err != nil {
				l.t.Fatal(err)
			}
			if !l.made[rec.ID.String()] {
				l.t.Errorf("%s is registered, and no answer has it", rec.ID)
			}
		}
	}
	l.acknowledged.verify(l.t, r)
	l.t.Logf("all %d versions of %d records are there", versions, len(l.history))
	if len(l.history) < 200 || len(l.acknowledged.names) < 200 {
		l.t.Error("clients did next to nothing")
	}
}

// serversAgree makes sure that no server has an older version of a record in its cache:
// they have had time enough to read the changes.
func (l *clusterLoad) serversAgree() {
	l.t.Helper()
	r := l.c.open(l.t)
	defer r.close(l.t)
	time.Sleep(time.Second) // the bound of docs/cluster.md
	patched := 0
	for id, list := range l.history {
		if len(list) == 1 && patched%4 > 0 {
			continue // most were never changed
		}
		if patched++; patched > 1000 {
			break
		}
		name, err := r.schemes.Parse(id)
		if err != nil {
			l.t.Fatal(err)
		}
		rec, err := r.store.Record(r.ctx, name)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, s := range l.c.servers {
			answer, err := l.c.client.Get(s.http + "/" + id)
			if err != nil {
				l.t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if at := answer.Header.Get("Location"); at != rec.Targets[0].URL {
				l.t.Errorf("stele%s sends %s to %q (%s), and version %d says %s", s.number, id, at, answer.Status, rec.Version, rec.Targets[0].URL)
			}
		}
	}
}

// hasVersions looks for versions of a record, and where they point.
func (r *registry) hasVersions(t *testing.T, name string, want map[uint64]string) {
	t.Helper()
	id, err := r.schemes.Parse(name)
	if err != nil {
		t.Error(err)
		return
	}
	found := 0
	for v, err := range r.store.History(r.ctx, id) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if url, ok := want[v.Version]; ok {
			found++
			if len(v.Targets) != 1 || v.Targets[0].URL != url {
				t.Errorf("%s, version %d, points at %v, not at %s", name, v.Version, v.Targets, url)
			}
		}
	}
	if found != len(want) {
		t.Errorf("%s: %v were acknowledged, and %d of these versions are there", name, want, found)
	}
}
