package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// cluster is several servers, the real program, on one PostgreSQL.
type cluster struct {
	t        *testing.T
	database *postgrestest.Server
	url      string
	token    string
	schemes  *stele.Schemes
	servers  []*clusterServer
	flags    []string // of each server, in addition to the usual ones
}

// clusterServer is one of them.
type clusterServer struct {
	*process
	*remote.Registry
	dns string
}

func newCluster(t *testing.T, n int, flags ...string) *cluster {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, database: postgrestest.Start(t, postgrestest.Options{}), schemes: schemes, flags: flags}
	c.url = c.database.Database(t)
	runStele(t, "store", "migrate", "--store", c.url)
	runStele(t, "user", "add", "root", "--admin", "--store", c.url)
	c.token = credentialText.FindString(runStele(t, "token", "create", "root", "--store", c.url))
	for range n {
		c.servers = append(c.servers, c.start())
	}
	return c
}

// start starts a server.
func (c *cluster) start() *clusterServer {
	c.t.Helper()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	s := &clusterServer{dns: probe.Addr().String()}
	_ = probe.Close()
	s.process = startServe(c.t, append([]string{"--store", c.url, "--http", "127.0.0.1:0", "--dns", s.dns, "--api-rate", "0", "--dns-rate", "0", "--notify-allow", "127.0.0.0/8", "--transfer-allow", "127.0.0.0/8"}, c.flags...)...)
	s.Registry, err = remote.New(s.http, c.token, remote.Options{Schemes: c.schemes, Patience: -1})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(s.Close)
	return s
}

func (c *cluster) id(text string) stele.ID {
	c.t.Helper()
	id, err := c.schemes.Parse(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// eventually waits until something is so, and returns how long that took.
func eventually(t *testing.T, what string, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatalf("not in time: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Since(began) > 5*time.Minute { // a loaded machine takes long
			t.Fatalf("not in five minutes: %s", what)
		}
	}
	return time.Since(began)
}

// namespace adds a namespace through the first server, and waits until all know it.
func (c *cluster) namespace(prefix string, minter stele.Minter, publication stele.Publication) stele.NamespaceKey {
	c.t.Helper()
	key, err := namespaces.ParsePrefix(c.schemes, prefix)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.servers[0].AddNamespace(c.t.Context(), &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: minter, Publication: publication}); err != nil {
		c.t.Fatal(err)
	}
	for _, s := range c.servers {
		eventually(c.t, "all servers know "+prefix, func() bool {
			_, err := s.Namespace(c.t.Context(), key)
			return err == nil
		})
	}
	return key
}

// location asks a server where a name leads, with a version token if there is one.
func (s *clusterServer) location(t *testing.T, name, version string) (status int, location string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if version != "" {
		request.Header.Set(stele.VersionHeader, version)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header.Get("Location")
}

// call sends a request to a server's API, and returns the answer with its body.
func (c *cluster) call(s *clusterServer, method, path, body string, header ...string) (*http.Response, []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, s.http+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		c.t.Error(err)
		return &http.Response{Header: http.Header{}}, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Error(err)
	}
	return response, text
}

// put registers or replaces a record through a server's API, and returns the version
// token.
func (c *cluster) put(s *clusterServer, name, url, match string) string {
	c.t.Helper()
	header := []string{"If-None-Match", "*"}
	if match != "" {
		header = []string{"If-Match", match}
	}
	response, text := c.call(s, http.MethodPut, "records/"+name, fmt.Sprintf(`{"id":%q,"url":%q}`, name, url), header...)
	if response.StatusCode/100 != 2 || response.Header.Get(stele.VersionHeader) == "" {
		c.t.Fatalf("%s, %v, %s", response.Status, response.Header, text)
	}
	return response.Header.Get(stele.VersionHeader)
}

// TestSeveralServers: three servers on one PostgreSQL.
func TestSeveralServers(t *testing.T) {
	c := newCluster(t, 3)
	t.Run("mint", c.testMint)
	t.Run("one key", c.testOneKey)
	t.Run("see", c.testSee)
	t.Run("dns", c.testDNS)
	t.Run("revoke", c.testRevoke)
	t.Run("kill", c.testKill)
	t.Run("away", c.testAway)
}

// minted is all names that servers gave, with the server of each.
type minted struct {
	mu    sync.Mutex
	names map[stele.ID]string
	twice []string
}

func (m *minted) add(who string, labels []minting.Label) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range labels {
		for _, name := range append([]stele.ID{l.ID}, l.Aliases...) {
			if before, ok := m.names[name]; ok {
				m.twice = append(m.twice, fmt.Sprintf("%s: by %s, and before by %s", name, who, before))
			}
			m.names[name] = who
		}
	}
}

func (m *minted) check(t *testing.T) {
	t.Helper()
	for i, line := range m.twice {
		if i < 10 {
			t.Error(line)
		}
	}
}

// mintAt makes names at a server without a key, so that nothing but the names is
// committed.
func (c *cluster) mintAt(s *clusterServer, key stele.NamespaceKey, n int) ([]minting.Label, int) {
	response, text := c.call(s, http.MethodPost, "mint", fmt.Sprintf(`{"namespaces":[%q],"count":%d}`, key, n))
	if response.StatusCode/100 != 2 {
		return nil, response.StatusCode
	}
	var answer struct {
		Items []struct {
			ID      string   `json:"id"`
			Aliases []string `json:"aliases"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		c.t.Error(err)
		return nil, 0
	}
	var labels []minting.Label
	for _, item := range answer.Items {
		l := minting.Label{ID: c.id(item.ID)}
		for _, alias := range item.Aliases {
			l.Aliases = append(l.Aliases, c.id(alias))
		}
		labels = append(labels, l)
	}
	return labels, response.StatusCode
}

// newRecord is a record for a name that is still to be made.
func newRecord() *stele.Record {
	return &stele.Record{State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}}
}

// testMint: minting under the same prefixes from all servers at once repeats nothing;
// what one caller gets from one server comes in order.
func (c *cluster) testMint(t *testing.T) {
	kinds := []struct {
		key   stele.NamespaceKey
		calls int
		dated bool
	}{
		{c.namespace("example.org/ms", stele.Minter{Kind: stele.MinterIBI, Host: "ms.example.org", Port: 80, Granularity: "1ms"}, stele.Publication{}), 40, true},
		{c.namespace("example.org/s", stele.Minter{Kind: stele.MinterIBI, Host: "s.example.org", Port: 80, Granularity: "1s"}, stele.Publication{}), 2, true},
		{c.namespace("102.100.272/", stele.Minter{Kind: stele.MinterPILIN}, stele.Publication{}), 40, false},
		{c.namespace("ark:12345/x5", stele.Minter{Kind: stele.MinterNOID, Template: ".zeedk"}, stele.Publication{}), 40, false},
		{c.namespace("ark:12345/x6", stele.Minter{Kind: stele.MinterNOID, Template: ".reedk", Order: stele.OrderNOID, Expand: 3}, stele.Publication{}), 40, false},
	}
	all := &minted{names: make(map[stele.ID]string)}
	var callers sync.WaitGroup
	for i, s := range c.servers {
		for _, k := range kinds {
			for caller := range 2 {
				callers.Go(func() {
					var order []string
					for call := range k.calls {
						who := fmt.Sprintf("server %d, caller %d, call %d", i, caller, call)
						var labels []minting.Label
						status := 201
						if call%2 == 0 {
							labels, status = c.mintAt(s, k.key, 1+call%3)
						} else if rec, err := s.MintAndRegister(t.Context(), newRecord(), k.key); err != nil {
							t.Errorf("%s: %v", who, err)
						} else {
							labels = []minting.Label{{ID: rec.ID, Aliases: rec.Aliases}}
						}
						if status/100 != 2 {
							t.Errorf("%s: %d", who, status)
						}
						all.add(who, labels)
						for _, l := range labels {
							order = append(order, l.ID.String())
						}
					}
					if k.dated && !slices.IsSorted(order) {
						t.Errorf("server %d: not in order: %q", i, order)
					}
				})
			}
		}
	}
	callers.Wait()
	all.check(t)
	t.Logf("%d names", len(all.names))
}

// testOneKey: a request with one Idempotency-Key that goes to all servers at once, twice,
// makes names once.
func (c *cluster) testOneKey(t *testing.T) {
	key := c.namespace("ark:12345/k1", stele.Minter{Kind: stele.MinterNOID, Template: ".zeedk"}, stele.Publication{})
	for round := range 10 {
		var mu sync.Mutex
		answers := make(map[string]int)
		var callers sync.WaitGroup
		for _, s := range slices.Concat(c.servers, c.servers) {
			callers.Go(func() {
				response, text := c.call(s, http.MethodPost, "mint", fmt.Sprintf(`{"namespaces":[%q],"count":2,"record":{"url":"https://example.org/1"}}`, key), "Idempotency-Key", fmt.Sprint("round-", round))
				if response.StatusCode/100 != 2 {
					t.Errorf("%s: %s", response.Status, text)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[string(bytes.TrimSpace(text))]++
			})
		}
		callers.Wait()
		if len(answers) != 1 {
			t.Fatalf("one key has %d answers: %v", len(answers), answers)
		}
	}
}

// testSee: what is written on one server is seen on the others, soon, and at once by a
// client that has the version token.
func (c *cluster) testSee(t *testing.T) {
	for round := range 10 {
		name := fmt.Sprint("urn:example:see", round)
		writer := c.servers[round%3]
		for _, s := range c.servers {
			if status, _ := s.location(t, name, ""); status != http.StatusNotFound {
				t.Fatalf("%s: %d", name, status)
			}
		}
		version := c.put(writer, name, "https://example.org/1", "")
		for i, s := range c.servers {
			if status, at := s.location(t, name, version); at != "https://example.org/1" {
				t.Errorf("server %d: %d %s", i, status, at)
			}
		}
		version = c.put(writer, name, "https://example.org/2", `"v1"`)
		for i, s := range c.servers {
			if status, at := s.location(t, name, version); at != "https://example.org/2" {
				t.Errorf("server %d: %d %s", i, status, at)
			}
		}
		c.put(writer, name, "https://example.org/3", `"v2"`)
		longest := time.Duration(0)
		for _, s := range c.servers {
			longest = max(longest, eventually(t, name+" is seen everywhere", func() bool {
				_, at := s.location(t, name, "")
				return at == "https://example.org/3"
			}))
		}
		t.Logf("seen everywhere after %s", longest.Round(time.Millisecond))
	}
	if status, _ := c.servers[0].location(t, "urn:example:see1", "x"); status != http.StatusBadRequest {
		t.Errorf("no number: %d", status)
	}
	response, text := c.call(c.servers[0], http.MethodGet, "records/urn:example:see1", "", stele.VersionHeader, "-1")
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("no number: %s %s", response.Status, text)
	}
	response, text = c.call(c.servers[1], http.MethodGet, "records/urn:example:see1", "", stele.VersionHeader, "999999999")
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a version that nobody has: %s %s", response.Status, text)
	}
}

// testRevoke: a token that was revoked on one server is refused by all.
func (c *cluster) testRevoke(t *testing.T) {
	credential, token, err := c.servers[0].CreateToken(t.Context(), auth.TokenRequest{User: "root", Label: "short"})
	if err != nil {
		t.Fatal(err)
	}
	status := func(s *clusterServer) int { return askWith(t, s.http+"/api/v1/me", credential).StatusCode }
	for _, s := range c.servers {
		eventually(t, "the token is known", func() bool { return status(s) == http.StatusOK })
	}
	if _, err := c.servers[0].RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	if got := status(c.servers[0]); got != http.StatusUnauthorized {
		t.Errorf("who revoked it: %d", got)
	}
	for _, s := range c.servers[1:] {
		took := eventually(t, "the token is refused", func() bool { return status(s) == http.StatusUnauthorized })
		t.Logf("refused after %s", took.Round(time.Millisecond))
	}
}

// testKill: a server dies while all give names. The others go on, and what it had
// reserved is skipped, by them and by the server that takes its place.
func (c *cluster) testKill(t *testing.T) {
	kinds := []stele.NamespaceKey{
		c.namespace("example.org/k", stele.Minter{Kind: stele.MinterIBI, Host: "k.example.org", Port: 80, Granularity: "1ms"}, stele.Publication{}),
		c.namespace("ark:12345/k2", stele.Minter{Kind: stele.MinterNOID, Template: ".zeedk"}, stele.Publication{}),
		c.namespace("ark:12345/k3", stele.Minter{Kind: stele.MinterNOID, Template: ".reedk", Order: stele.OrderNOID, Expand: 3}, stele.Publication{}),
	}
	all := &minted{names: make(map[stele.ID]string)}
	give := func(who string, s *clusterServer, n int) {
		for range n {
			for _, key := range kinds {
				rec, err := s.MintAndRegister(t.Context(), newRecord(), key)
				if err != nil {
					t.Errorf("%s: %v", who, err)
					return
				}
				all.add(who, []minting.Label{{ID: rec.ID, Aliases: rec.Aliases}})
			}
		}
	}
	for i, s := range c.servers {
		give(fmt.Sprint("server ", i), s, 3)
	}
	victim := c.servers[1]
	var callers sync.WaitGroup
	stop := make(chan struct{})
	callers.Go(func() { // a client that asks it while it dies gets no answer, or a name
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			rec, err := victim.MintAndRegister(t.Context(), newRecord(), kinds[1+n%2])
			if err == nil {
				all.add("who dies", []minting.Label{{ID: rec.ID}})
			}
		}
	})
	callers.Go(func() { give("server 0", c.servers[0], 20) })
	callers.Go(func() { give("server 2", c.servers[2], 20) })
	eventually(t, "it works", func() bool {
		all.mu.Lock()
		defer all.mu.Unlock()
		return len(all.names) > 30
	})
	_ = victim.end(t, syscall.SIGKILL)
	close(stop)
	callers.Wait()
	c.servers[1] = c.start()
	give("who comes after it", c.servers[1], 10)
	give("server 0", c.servers[0], 10)
	all.check(t)
}

// testAway: without its database a server answers from its cache, and tells clients to
// retry writes; when the database is back all goes on.
func (c *cluster) testAway(t *testing.T) {
	s := c.servers[0]
	key := c.namespace("ark:12345/a1", stele.Minter{Kind: stele.MinterNOID, Template: ".zeedk"}, stele.Publication{})
	all := &minted{names: make(map[stele.ID]string)}
	give := func(who string, s *clusterServer, n int) int {
		labels, status := c.mintAt(s, key, n)
		all.add(who, labels)
		return status
	}
	give("before", s, 1) // and it has a thousand now
	// Once it has followed the feed so far, it has no reason to drop this from its cache.
	s.location(t, "urn:example:away", c.put(s, "urn:example:away", "https://example.org/1", ""))
	c.database.Kill(t)
	for range 3 {
		if status := give("cut off", s, 300); status/100 != 2 {
			t.Errorf("of what it has reserved it gives nothing: %d", status)
		}
	}
	if status := give("cut off", s, 300); status != http.StatusServiceUnavailable {
		t.Errorf("it gives more than it has reserved: %d", status)
	}
	for range 20 {
		if status, at := s.location(t, "urn:example:away", ""); at != "https://example.org/1" {
			t.Errorf("%d %s", status, at)
		}
	}
	response, text := c.call(s, http.MethodPut, "records/urn:example:away2", `{"id":"urn:example:away2","url":"https://example.org/2"}`, "If-None-Match", "*")
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a write: %s %s", response.Status, text)
	}
	if status, at := s.location(t, "urn:example:away", ""); at != "https://example.org/1" {
		t.Errorf("%d %s", status, at)
	}
	cmd := steleCommand(t, "register", "urn:example:away3", "--to", "https://example.org/3", "--store", c.url)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitTryAgain {
		t.Errorf("it exits with %d, %v: %s", code, err, out)
	}
	eventually(t, "a server without a database is not ready", func() bool {
		response, _ := httpGet(t, s.http+"/readyz")
		return response.StatusCode == http.StatusServiceUnavailable
	})
	c.database.Restart(t)
	for _, s := range c.servers {
		eventually(t, "it is ready again", func() bool {
			response, _ := httpGet(t, s.http+"/readyz")
			return response.StatusCode == http.StatusOK
		})
	}
	for i, s := range c.servers {
		eventually(t, "names are made again", func() bool { return give(fmt.Sprint("server ", i), s, 300)/100 == 2 })
	}
	all.check(t)
	version := c.put(c.servers[2], "urn:example:away4", "https://example.org/4", "")
	for i, s := range c.servers {
		if status, at := s.location(t, "urn:example:away4", version); at != "https://example.org/4" {
			t.Errorf("server %d: %d %s", i, status, at)
		}
	}
}
