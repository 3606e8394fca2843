package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/desktest"
)

// TestAPICrash kills a server while clients write to it over HTTP, again and again.
// All acknowledged writes are there afterwards; a request that got no answer is sent again
// with its key, and is done once; no name is in the answers to two keys.
func TestAPICrash(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := &apiCrash{
		acknowledged: &acknowledged{folder: filepath.Join(t.TempDir(), "data"), names: make(map[string]bool), puts: make(map[string]put)},
		program:      stele(t), answers: make(map[string]string), open: make(map[string]string),
	}
	for round := range crashRounds(t) {
		c.round(t, round, random)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	c.finish(t)
	t.Logf("%d names, %d records, %d keys, of which %d were asked again", len(c.names), len(c.puts), len(c.answers), c.again)
	if len(c.puts) < 500 || len(c.answers) < 200 || c.again < 10 {
		t.Error("the servers did next to nothing before they were killed")
	}
}

// apiCrash is what the server acknowledged, and what it did not.
type apiCrash struct {
	*acknowledged
	program string
	token   string

	mu      sync.Mutex
	told    []put             // in this round, with their identifiers in ids
	ids     []string          // that belong to told
	known   []string          // identifiers of records that may be changed
	answers map[string]string // by key: what was answered
	bodies  map[string]string // by key: what was asked
	open    map[string]string // by key: what was asked, without an answer so far
	again   int               // keys that were asked again
}

// apiServer is a running server.
type apiServer struct {
	cmd    *exec.Cmd
	at     string
	client *http.Client
	stderr *bytes.Buffer
}

// start starts the server and waits until it answers. What it shows on the first start
// is a link, by which the test makes a token.
func (c *apiCrash) start(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{stderr: new(bytes.Buffer), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	s.cmd = exec.CommandContext(t.Context(), c.program, "serve", "--json", "--data", c.folder, "--http", "127.0.0.1:0", "--api-rate", "0", "--dns", "")
	s.cmd.Env = environ()
	errors, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 1)
	go func() {
		in := bufio.NewReader(errors)
		for {
			line, err := in.ReadString('\n')
			s.stderr.WriteString(line)
			if desktest.Link(line) != "" {
				shown <- line
			}
			if err != nil {
				close(shown)
				return
			}
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	var at struct{ HTTP string }
	if err != nil || json.Unmarshal([]byte(line), &at) != nil {
		_ = s.cmd.Wait()
		t.Fatalf("the server says %q, %v\n%s", line, err, s.stderr)
	}
	s.at = at.HTTP + "/api/v1/"
	if c.token == "" {
		if c.token, err = desktest.Token(t.Context(), s.client, at.HTTP, <-shown); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ask sends a request. After an error, the outcome of the request is unknown.
func (c *apiCrash) ask(s *apiServer, method, path, key, body string) (int, string, error) {
	r, err := http.NewRequest(method, s.at+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
	if method != "PATCH" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	a, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, string(text), err
}

// round starts the server, sends the requests that had no answer again, lets clients write
// until it is killed, and checks that all acknowledged writes are there.
func (c *apiCrash) round(t *testing.T, round int, random *rand.Rand) {
	t.Helper()
	if round%4 == 3 {
		c.killEarly(t, random)
	}
	s := c.start(t)
	defer s.client.CloseIdleConnections()
	if round == 0 {
		for _, ns := range crashSpaces {
			if status, text, err := c.ask(s, "PUT", "namespaces/"+ns.Prefix, "", string(document.AppendNamespace(nil, &ns))); status != 201 {
				t.Fatalf("%d %s, %v", status, text, err)
			}
		}
	}
	c.askAgain(t, s)
	var clients sync.WaitGroup
	for i := range 2 {
		run := fmt.Sprintf("r%d-%d", round, i)
		for _, work := range []func(*apiServer, string, int) error{c.putOne, c.patchOne, c.mintNames, c.mintRecords, c.batch} {
			clients.Go(func() {
				for n := 0; ; n++ {
					if err := work(s, run, n); err != nil {
						if status, ok := err.(unexpected); ok {
							t.Errorf("%s: %s", run, status)
						}
						return
					}
				}
			})
		}
	}
	time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
	_ = s.cmd.Process.Kill() // if it ended before, Wait tells
	clients.Wait()
	if err := s.cmd.Wait(); s.cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the server ended by itself: %v\n%s", err, s.stderr)
	}
	c.checkTold(t)
	if round%5 == 4 {
		c.checkWhole(t)
	}
}

// killEarly kills a server while it begins, perhaps while it recovers from the kill
// before.
func (c *apiCrash) killEarly(t *testing.T, random *rand.Rand) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.program, "serve", "--data", c.folder, "--http", "127.0.0.1:0", "--dns", "")
	cmd.Env = environ()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
	_ = cmd.Process.Kill() // if it ended before, Wait tells
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the server ended by itself: %v", err)
	}
}

// unexpected is an answer that no client should get.
type unexpected string

func (u unexpected) Error() string { return string(u) }

// tell notes a version that the server acknowledged.
func (c *apiCrash) tell(id string, version uint64, url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.ids = append(c.told, put{version, url}), append(c.ids, id)
	if version == 1 {
		c.known = append(c.known, id)
	}
}

// putOne registers a record.
func (c *apiCrash) putOne(s *apiServer, run string, n int) error {
	id := fmt.Sprintf("urn:x1:put-%s-%d", run, n)
	status, text, err := c.ask(s, "PUT", "records/"+id, "", `{"url":"https://example.org/`+id+`"}`)
	switch {
	case err != nil:
		return err
	case status != 201:
		return unexpected(fmt.Sprint(status, text))
	}
	c.tell(id, 1, "https://example.org/"+id)
	return nil
}

// patchOne changes a record that is there.
func (c *apiCrash) patchOne(s *apiServer, run string, n int) error {
	c.mu.Lock()
	id := ""
	if len(c.known) > 0 {
		id = c.known[rand.IntN(len(c.known))]
	}
	c.mu.Unlock()
	if id == "" {
		time.Sleep(time.Millisecond)
		_, _, err := c.ask(s, "GET", "namespaces", "", "") // it may have been killed already
		return err
	}
	url := fmt.Sprintf("https://example.org/patch/%s/%d", run, n)
	status, text, err := c.ask(s, "PATCH", "records/"+id, "", `{"targets":[{"url":"`+url+`"}]}`)
	switch {
	case err != nil:
		return err
	case status != 200:
		return unexpected(fmt.Sprint(status, text))
	}
	var rec struct{ Version uint64 }
	if err := json.Unmarshal([]byte(text), &rec); err != nil {
		return unexpected(err.Error())
	}
	c.tell(id, rec.Version, url)
	return nil
}

// mintNames makes names.
func (c *apiCrash) mintNames(s *apiServer, run string, n int) error {
	return c.mint(s, fmt.Sprintf("names-%s-%d", run, n), fmt.Sprintf(`{"namespace":%q,"count":%d}`, crashSpaces[n%3].Prefix, 1+n%20))
}

// mintRecords makes names and registers records under them.
func (c *apiCrash) mintRecords(s *apiServer, run string, n int) error {
	return c.mint(s, fmt.Sprintf("records-%s-%d", run, n), fmt.Sprintf(`{"namespace":%q,"count":%d,"record":{"url":"https://example.org/made/%s/%d"}}`, crashSpaces[n%3].Prefix, 1+n%7, run, n))
}

// mint asks with a key. Until it is answered the key is open.
func (c *apiCrash) mint(s *apiServer, key, body string) error {
	c.mu.Lock()
	c.open[key] = body
	c.mu.Unlock()
	status, text, err := c.ask(s, "POST", "mint", key, body)
	switch {
	case err != nil:
		return err
	case status != 201:
		return unexpected(fmt.Sprint(status, text))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, key)
	if before, ok := c.answers[key]; ok && before != text {
		return unexpected(fmt.Sprintf("%s was answered %s, and then %s", key, before, text))
	}
	c.answers[key] = text
	if c.bodies == nil {
		c.bodies = make(map[string]string)
	}
	c.bodies[key] = body
	return nil
}

// batch registers some records at once.
func (c *apiCrash) batch(s *apiServer, run string, n int) error {
	var list, ids []string
	for i := range 30 {
		ids = append(ids, fmt.Sprintf("urn:x1:batch-%s-%d-%d", run, n, i))
		list = append(list, fmt.Sprintf(`{"id":%q,"url":"https://example.org/%s"}`, ids[i], ids[i]))
	}
	status, text, err := c.ask(s, "POST", "records", "", "["+strings.Join(list, ",")+"]")
	var got struct{ Created int }
	switch {
	case err != nil:
		return err
	case status != 200 || json.Unmarshal([]byte(text), &got) != nil || got.Created != len(ids):
		return unexpected(fmt.Sprint(status, text))
	}
	for _, id := range ids {
		c.tell(id, 1, "https://example.org/"+id)
	}
	return nil
}

// askAgain sends all requests that had no answer again, and some that had one.
func (c *apiCrash) askAgain(t *testing.T, s *apiServer) {
	t.Helper()
	keys := make(map[string]string)
	for key, body := range c.open {
		keys[key] = body
	}
	c.again += len(keys)
	some := 20
	for key, body := range c.bodies { // in no order
		if keys[key] = body; some == 0 {
			break
		}
		some--
	}
	for key, body := range keys {
		if err := c.mint(s, key, body); err != nil {
			t.Fatalf("%s, asked again: %v\n%s", key, err, s.stderr)
		}
	}
	if len(c.open) > 0 {
		t.Fatalf("%d keys have no answer", len(c.open))
	}
}

// checkTold looks for all that the server acknowledged in this round, in the folder itself.
func (c *apiCrash) checkTold(t *testing.T) {
	t.Helper()
	r := c.acknowledged.open(t)
	defer r.close(t)
	for i, p := range c.told {
		r.has(t, c.ids[i], p.version, p.url)
		if p.version > c.puts[c.ids[i]].version {
			c.puts[c.ids[i]] = p
		}
	}
	c.told, c.ids = nil, nil
}

// checkWhole verifies the registry. That reads all of it, so it is not done after every
// round.
func (c *apiCrash) checkWhole(t *testing.T) {
	t.Helper()
	r := c.acknowledged.open(t)
	defer r.close(t)
	c.verify(t, r)
}

// finish asks once more for what is open, and compares all answers with the registry:
// no name is in two, and no record is there that no client was told of.
func (c *apiCrash) finish(t *testing.T) {
	t.Helper()
	s := c.start(t)
	c.askAgain(t, s)
	_ = s.cmd.Process.Kill() // the registry is checked in any state that this leaves
	_ = s.cmd.Wait()
	s.client.CloseIdleConnections()
	r := c.acknowledged.open(t)
	defer r.close(t)
	registered := make(map[string]bool)
	for key, text := range c.answers {
		var made struct {
			Items []struct {
				ID      string
				Aliases []string
				Record  *struct{ Targets []struct{ URL string } }
			}
		}
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		for _, item := range made.Items {
			c.give(t, append(item.Aliases, item.ID)...)
			if item.Record != nil {
				registered[item.ID] = true
				r.has(t, item.ID, 1, item.Record.Targets[0].URL)
			}
		}
	}
	for i := range 3 {
		for rec, err := range r.store.Scan(r.ctx, crashSpaces[i].Scheme, crashSpaces[i].Prefix, "") {
			if err != nil {
				t.Fatal(err)
			}
			if !registered[rec.ID.String()] {
				t.Errorf("%s is registered, and no answer has it", rec.ID)
			}
		}
	}
	c.checkAll(t, r)
}

// checkAll looks once more for all that was ever acknowledged.
func (c *apiCrash) checkAll(t *testing.T, r *registry) {
	t.Helper()
	for id, p := range c.puts {
		r.has(t, id, p.version, p.url)
	}
	c.verify(t, r)
}
