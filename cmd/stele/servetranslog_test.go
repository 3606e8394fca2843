package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stele-id/stele/transparency"
)

const testOrigin = "names.example.org/.log"

// logReader reads the log of a server, as other programs do.
type logReader struct {
	t    *testing.T
	at   string // with /.log/ at its end
	said *lockedBuffer
}

func newLogReader(t *testing.T, p *process) *logReader {
	return &logReader{t, p.http + "/.log/", p.stderr}
}

// get returns a path below the log, which must be there.
func (l *logReader) get(path string) string {
	l.t.Helper()
	var a *http.Response
	var body string
	eventually(l.t, "an answer of the log", func() bool {
		a, body = httpGet(l.t, l.at+path)
		return a.StatusCode != http.StatusServiceUnavailable // after a restore, until the log is signed again
	})
	if a.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %s\n%s", path, a.Status, body)
	}
	return body
}

func (l *logReader) keys() (list []transparency.PublicKey) {
	l.t.Helper()
	for line := range strings.Lines(l.get("key")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		k, err := transparency.ParsePublicKey(line)
		if err != nil {
			l.t.Fatal(err)
		}
		list = append(list, k)
	}
	return list
}

// checkpoint waits for a checkpoint of at least a size, and checks it.
func (l *logReader) checkpoint(size uint64, witnesses ...transparency.PublicKey) (c *transparency.Checkpoint, by []transparency.Cosignature) {
	l.t.Helper()
	var body string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("the last checkpoint is\n%s\nand the server says\n%s", body, l.said)
		}
	}()
	eventually(l.t, fmt.Sprintf("a checkpoint of %d leaves", size), func() bool {
		var a *http.Response
		a, body = httpGet(l.t, l.at+"checkpoint")
		if a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusServiceUnavailable { // the log is not signed yet, or not since a restore
			return false
		}
		var err error
		if c, by, err = transparency.OpenCheckpoint([]byte(body), append(witnesses, l.keys()...)); err != nil {
			l.t.Fatalf("%v\n%s", err, body)
		}
		return c.Size >= size && len(by) >= len(witnesses)
	})
	return c, by
}

// tilePath returns the path of a tile of level 0, as tlog-tiles has it, for numbers below 1000.
func tilePath(kind string, n, size uint64) string {
	path := fmt.Sprintf("tile/%s/%03d", kind, n)
	if width := min(size-n*256, 256); width < 256 {
		path += fmt.Sprintf(".p/%d", width)
	}
	return path
}

// leaves reads all entries, and compares each with its hash.
func (l *logReader) leaves(size uint64) (hashes [][32]byte, texts []string) {
	l.t.Helper()
	for n := uint64(0); n*256 < size; n++ {
		tile, entries := l.get(tilePath("0", n, size)), []byte(l.get(tilePath("entries", n, size)))
		for len(tile) > 0 {
			length := int(binary.BigEndian.Uint16(entries))
			text := entries[2 : 2+length]
			hash := sha256.Sum256(append([]byte{0}, text...))
			if string(hash[:]) != tile[:32] {
				l.t.Fatalf("entry %d does not have the hash in the tile: %s", len(texts), text)
			}
			hashes, texts = append(hashes, hash), append(texts, string(text))
			tile, entries = tile[32:], entries[2+length:]
		}
		if len(entries) > 0 {
			l.t.Fatalf("%d bytes after the entries of tile %d", len(entries), n)
		}
	}
	return hashes, texts
}

// rootOf returns the Merkle tree hash (RFC 6962, section 2.1).
func rootOf(list [][32]byte) [32]byte {
	switch len(list) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return list[0]
	}
	k := 1
	for k*2 < len(list) {
		k *= 2
	}
	left, right := rootOf(list[:k]), rootOf(list[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

// check reads the log up to a checkpoint, and returns its leaves.
func (l *logReader) check(c *transparency.Checkpoint) (hashes [][32]byte, texts []string) {
	l.t.Helper()
	hashes, texts = l.leaves(c.Size)
	if root := rootOf(hashes); uint64(len(hashes)) != c.Size || root != [32]byte(c.Root) {
		l.t.Fatalf("%d leaves have the root %s, and the checkpoint of %d has %s", len(hashes), base64.StdEncoding.EncodeToString(root[:]), c.Size, c.Root)
	}
	return hashes, texts
}

// The log is served, signed and co-signed, shows nothing beyond its checkpoint, and goes on after a restore in place.
func TestServeLog(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "registry")
	flags := []string{"--log-interval", "100ms", "--log-origin", testOrigin, "--metrics", "127.0.0.1:0"}
	p, o := startAPIUser(t, data, flags...)
	o.ask("PUT", "namespaces/ark:12345", `{"listed":true}`, 201)
	o.ask("PUT", "namespaces/ark:12345/x5", `{"minter":{"kind":"noid","template":".sdddd"}}`, 201)
	o.ask("PUT", "records/ark:12345/r1", `{"url":"https://example.org/1"}`, 201)
	l := newLogReader(t, p)
	l.checkpoint(3)
	keys := l.keys()
	if len(keys) != 1 || keys[0].Name != testOrigin {
		t.Fatalf("keys %v", keys)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d\n%s", code, p.stderr)
	}

	w := startWitness(t, folder, keys[0].String())
	flags = append(flags, "--log-witnesses", w.url+"="+w.key.String(), "--log-witness-allow", "127.0.0.0/8")
	p = startServe(t, append([]string{"--data", data, "--http", "127.0.0.1:0", "--api-rate", "0"}, flags...)...)
	o.at, l = p.http+"/api/v1/", newLogReader(t, p)
	o.ask("POST", "mint", `{"namespace":"ark:12345/x5","count":600,"record":{"url":"https://example.org/1"}}`, 201)
	c, by := l.checkpoint(603, w.key)
	if len(by) != 1 || by[0].Witness != "witness.example.net" {
		t.Errorf("co-signed by %v", by)
	}
	_, texts := l.check(c)
	if all := strings.Join(texts, "\n"); !strings.Contains(all, `"name":"ark:12345/r1"`) || !strings.Contains(all, `"blind":"`) {
		t.Errorf("the entries are %s", all[:min(len(all), 2000)])
	}
	p.waitForMetric(t, fmt.Sprintf("stele_log_size %d\n", c.Size))
	p.waitForMetric(t, "stele_log_behind 0\n")
	p.waitForMetric(t, "stele_log_checkpoint_age_seconds 0\n")
	testLogAnswers(t, l, c)

	// After a restore the log goes on in a new era, with the leaves of the backup.
	status, backup, err := o.try("GET", "backup", nil, "")
	if err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}
	o.ask("PUT", "records/ark:12345/lost", `{"url":"https://example.org/lost"}`, 201)
	before, _ := l.checkpoint(c.Size+1, w.key)
	if status, last := o.restore("registry", backup); status != 200 || !last.Done {
		t.Fatalf("%d %+v\n%s", status, last, p.stderr)
	}
	o.ask("PUT", "records/ark:12345/after", `{"url":"https://example.org/after"}`, 201)
	var after *transparency.Checkpoint
	eventually(t, "a checkpoint of the new era with a co-signature", func() bool {
		after, by = l.checkpoint(0)
		if !strings.HasPrefix(after.Origin, testOrigin+"/g2-") || after.Size <= c.Size {
			return false
		}
		after, by, err = transparency.OpenCheckpoint([]byte(l.get("checkpoint")), append(l.keys(), w.key))
		return err == nil && len(by) == 1
	})
	hashes, texts := l.check(after)
	if root := rootOf(hashes[:c.Size]); root != [32]byte(c.Root) {
		t.Error("the log of the backup is not the beginning of the log that goes on")
	}
	if strings.Contains(strings.Join(texts, "\n"), "ark:12345/lost") || after.Root == before.Root {
		t.Error("what was lost is still in the log")
	}
	g, err := transparency.OpenGenerations([]byte(l.get("generations")), keys)
	if err != nil || len(g.Eras) != 2 || g.Origin != after.Origin || g.Eras[0].Origin != testOrigin || g.Eras[1].Size != c.Size {
		t.Errorf("generations %+v %v", g, err)
	}
	last, era := tilePath("0", (after.Size-1)/256, after.Size), strings.TrimPrefix(after.Origin, testOrigin+"/")+"/"
	for path, want := range map[string]string{"tile/0/000": "immutable", last: "max-age=60", era + last: "immutable", "g3/" + last: "", era + "checkpoint": "max-age=5", "g3/checkpoint": ""} {
		a, _ := httpGet(t, l.at+path)
		if got := a.Header.Get("Cache-Control"); want == "" && a.StatusCode != 404 || want != "" && (a.StatusCode != 200 || !strings.Contains(got, want)) {
			t.Errorf("%s: %d, kept %q", path, a.StatusCode, got)
		}
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr)
	}
	said := slices.DeleteFunc(strings.Split(p.stderr.String(), "\n"), func(line string) bool {
		return strings.Contains(line, "its log was not signed since") // if it was asked for before that
	})
	if s := strings.Join(said, "\n"); strings.Contains(s, "level=ERROR") || strings.Contains(s, "co-signed the log") || strings.Contains(s, "can't follow") {
		t.Errorf("the server complains:\n%s", s)
	}
	runStele(t, "verify", "--data", data)
}

// testLogAnswers looks at what is answered below /.log/.
func testLogAnswers(t *testing.T, l *logReader, c *transparency.Checkpoint) {
	t.Helper()
	n := c.Size / 256
	for path, want := range map[string]struct {
		status         int
		media, caching string
	}{
		"checkpoint": {200, "text/plain; charset=utf-8", "max-age=5"}, "key": {200, "text/plain; charset=utf-8", "max-age=60"}, "generations": {200, "text/plain; charset=utf-8", "max-age=5"},
		"tile/0/000": {200, "application/octet-stream", "public, max-age=31536000, immutable"}, "tile/1/000.p/2": {200, "application/octet-stream", "immutable"}, "tile/entries/000.p/1": {200, "application/octet-stream", "immutable"},
		"": {200, "text/html; charset=utf-8", "max-age=60"}, "tile/1/000.p/3": {404, "", ""}, "tile/2/000.p/1": {404, "", ""}, fmt.Sprintf("tile/0/%03d", n): {404, "", ""}, fmt.Sprintf("tile/0/%03d.p/%d", n, c.Size%256+1): {404, "", ""},
		fmt.Sprintf("tile/entries/%03d", n): {404, "", ""}, "tile/0/999": {404, "", ""}, "tile/00/000": {404, "", ""}, "nothing": {404, "", ""}, "tile/0/000/": {404, "", ""}, "g2/checkpoint": {404, "", ""},
	} {
		a, body := httpGet(t, l.at+path)
		if a.StatusCode != want.status || want.media != "" && a.Header.Get("Content-Type") != want.media || !strings.Contains(a.Header.Get("Cache-Control"), want.caching) {
			t.Errorf("%q: %d %s, kept %q\n%.200s", path, a.StatusCode, a.Header.Get("Content-Type"), a.Header.Get("Cache-Control"), body)
		}
		if want.status == 404 && strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%q: caches keep that it is missing", path)
		}
	}
	if page := l.get(""); !strings.Contains(page, l.keys()[0].Name) || !strings.Contains(page, "witness.example.net") {
		t.Errorf("the page is\n%s", page)
	}
	for method, want := range map[string]int{"POST": 405, "PUT": 405, "DELETE": 405, "HEAD": 200} {
		r, _ := http.NewRequestWithContext(t.Context(), method, l.at+"checkpoint", nil)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("%s: %s", method, a.Status)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", l.at+"tile/entries/000", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	z, err := gzip.NewReader(a.Body)
	if err != nil || a.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%v %v", a.Header, err)
	}
	if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, []byte(l.get("tile/entries/000"))) {
		t.Errorf("compressed entries are other ones: %v", err)
	}
}

// testWitness is a witness that runs.
type testWitness struct {
	*process
	url string
	key transparency.PublicKey
}

func startWitness(t *testing.T, folder, log string) *testWitness {
	t.Helper()
	args := []string{"log", "witness", "--json", "--listen", "127.0.0.1:0", "--name", "witness.example.net", "--key", filepath.Join(folder, "witness.key"), "--state", filepath.Join(folder, "witness.json"), "--log", log}
	w := &testWitness{process: startCommand(t, steleCommand(t, args...))}
	var said struct{ URL, Key string }
	err := json.Unmarshal([]byte(w.first), &said)
	if w.url = said.URL; err == nil {
		w.key, err = transparency.ParsePublicKey(said.Key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A server that is killed while the log follows loses nothing of it.
func TestServeLogKilled(t *testing.T) {
	data := filepath.Join(t.TempDir(), "registry")
	flags := []string{"--log-interval", "20ms", "--log-origin", testOrigin}
	p, o := startAPIUser(t, data, flags...)
	o.ask("PUT", "namespaces/ark:12345/x5", `{"minter":{"kind":"noid","template":".sdddd"}}`, 201)
	var known *transparency.Checkpoint
	made := 0
	for round := range 4 {
		l := newLogReader(t, p)
		if known != nil {
			c, _ := l.checkpoint(known.Size)
			hashes, _ := l.check(c)
			if root := rootOf(hashes[:known.Size]); root != [32]byte(known.Root) {
				t.Fatalf("round %d: the log has another beginning than before", round)
			}
		}
		var killed atomic.Bool
		var clients sync.WaitGroup
		var mu sync.Mutex
		for range 3 {
			clients.Go(func() {
				for !killed.Load() {
					status, _, err := o.try("POST", "mint", []byte(`{"namespace":"ark:12345/x5","count":20,"record":{"url":"https://example.org/1"}}`), "application/json")
					if err == nil && status == 201 {
						mu.Lock()
						made += 20
						mu.Unlock()
					}
				}
			})
		}
		known, _ = l.checkpoint(uint64(100 * (round + 1)))
		killed.Store(true)
		p.end(t, syscall.SIGKILL)
		clients.Wait()
		p = startServe(t, append([]string{"--data", data, "--http", "127.0.0.1:0", "--api-rate", "0"}, flags...)...)
		o.at = p.http + "/api/v1/"
	}
	c, _ := newLogReader(t, p).checkpoint(uint64(made))
	newLogReader(t, p).check(c)
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr)
	}
	runStele(t, "verify", "--data", data)
}

// Two servers over one database write one log, and either shows it.
func TestServeLogTwoServers(t *testing.T) {
	key := filepath.Join(t.TempDir(), "secret.key")
	runStele(t, "secret", "keygen", key)
	c := newCluster(t, 2, "--log-interval", "50ms", "--log-origin", testOrigin, "--secret-key-file", key)
	var users []*apiUser
	for _, s := range c.servers {
		users = append(users, &apiUser{t, s.http + "/api/v1/", c.token})
	}
	users[0].ask("PUT", "namespaces/ark:12345/x5", `{}`, 201)
	const each = 60
	var work sync.WaitGroup
	for i, o := range users {
		work.Go(func() {
			for n := range each {
				o.ask("PUT", fmt.Sprintf("records/ark:12345/x5%d-%d", i, n), `{"url":"https://example.org/1"}`, 201)
			}
		})
	}
	work.Wait()
	var roots []string
	for _, s := range c.servers {
		l := newLogReader(t, s.process)
		l.checkpoint(1 + 2*each)
		at, _ := l.checkpoint(1 + 2*each)
		l.check(at)
		roots = append(roots, fmt.Sprint(at.Size, at.Root))
	}
	if roots[0] != roots[1] {
		t.Errorf("two servers show %q", roots)
	}
	for _, s := range c.servers {
		if text := s.stderr.String(); strings.Contains(text, "can't follow") || strings.Contains(text, "not signed") {
			t.Errorf("a server complains:\n%s", text)
		}
	}
}
