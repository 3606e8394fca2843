package witness_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
	"github.com/stele-id/stele/transparency/witness"
)

const origin = "names.example.org/.log"

func newKey(t *testing.T, name string) transparency.WitnessKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return transparency.WitnessKey{Name: name, Private: private}
}

// logKey returns the public half of a key as that of a log.
func logKey(k transparency.WitnessKey) transparency.PublicKey {
	p := k.Public()
	p.Cosign = false
	return p
}

// stand is a witness that listens.
type stand struct {
	*httptest.Server
	key   transparency.WitnessKey
	file  *witness.File
	state string
	said  *bytes.Buffer
}

func newStand(t *testing.T, name, state string, logs ...transparency.PublicKey) *stand {
	t.Helper()
	return openStand(t, newKey(t, name), state, true, logs...)
}

func openStand(t *testing.T, key transparency.WitnessKey, state string, fresh bool, logs ...transparency.PublicKey) *stand {
	t.Helper()
	file, err := witness.OpenFile(state, fresh)
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{key: key, file: file, state: state, said: new(bytes.Buffer)}
	w, err := witness.New(witness.Options{Key: key, Logs: logs, File: file, Now: time.Now, Log: slog.New(slog.NewTextHandler(s.said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(w)
	t.Cleanup(s.end)
	return s
}

func (s *stand) end() {
	s.Server.Close()
	_ = s.file.Close()
}

func (s *stand) target() witness.Target { return witness.Target{URL: s.URL, Key: s.key.Public()} }

// add sends a request, and returns the status, the type and the text of the answer.
func (s *stand) add(t *testing.T, body string) (int, string, string) {
	t.Helper()
	a, err := http.Post(s.URL+witness.Path, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header.Get("Content-Type"), string(text)
}

// tree is a Merkle tree whose hashes are all in memory.
type tree struct {
	hashes []tlog.Hash
	size   int64
}

func (x *tree) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, x.hashes[i])
	}
	return list, nil
}

func (x *tree) grow(t *testing.T, leaves ...string) {
	t.Helper()
	for _, leaf := range leaves {
		more, err := tlog.StoredHashes(x.size, []byte(leaf), x)
		if err != nil {
			t.Fatal(err)
		}
		x.hashes, x.size = append(x.hashes, more...), x.size+1
	}
}

func leaves(word string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(word, i))
	}
	return list
}

// request returns an add-checkpoint request for the tree as it is.
func (x *tree) request(t *testing.T, key transparency.WitnessKey, origin string, old int64, extra string) string {
	t.Helper()
	root, err := tlog.TreeHash(x.size, x)
	if err != nil {
		t.Fatal(err)
	}
	key.Name = origin
	signer, err := note.NewSigner(key.String())
	if err != nil {
		t.Fatal(err)
	}
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n%s", origin, x.size, root, extra)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("old %d\n", old)
	if old > 0 && old < x.size {
		proof, err := tlog.ProveTree(x.size, old, x)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range proof {
			body += h.String() + "\n"
		}
	}
	return body + "\n" + string(signed)
}

// The statuses are those of tlog-witness, in its order.
func TestAddCheckpoint(t *testing.T) {
	key := newKey(t, origin)
	other := newKey(t, "other.example/log")
	s := newStand(t, "witness.example/w1", filepath.Join(t.TempDir(), "state"), logKey(key))
	var x tree
	x.grow(t, leaves("a", 10)...)
	want := func(body string, status int, mediaType, text string) string {
		t.Helper()
		gotStatus, gotType, got := s.add(t, body)
		if gotStatus != status || gotType != mediaType || !strings.Contains(got, text) {
			t.Fatalf("%d %s %q, and not %d %s %q", gotStatus, gotType, got, status, mediaType, text)
		}
		return got
	}
	const plain, size = "text/plain; charset=utf-8", "text/x.tlog.size"

	want("nonsense", 400, plain, "empty line")
	want("old 00\n\n"+strings.SplitN(x.request(t, key, origin, 0, ""), "\n\n", 2)[1], 400, plain, "old size")
	want(x.request(t, other, "other.example/log", 0, ""), 404, plain, "does not know")
	want(x.request(t, key, origin+"/g1", 0, ""), 404, plain, "does not know")
	want(x.request(t, other, origin, 0, ""), 403, plain, "no key")
	want(x.request(t, key, origin, 11, ""), 400, plain, "larger")
	want(x.request(t, key, origin, 5, ""), 409, size, "0\n")

	body := x.request(t, key, origin, 0, "")
	line := want(body, 200, plain, "\u2014 witness.example/w1 ")
	text, at := transparency.KnownCosignatures(strings.SplitN(body, "\n\n", 2)[1], line, s.key.Public())
	if text != line || time.Since(at) > time.Minute {
		t.Fatalf("the co-signature is %q of %s", line, at)
	}
	x.grow(t, leaves("b", 300)...)
	want(x.request(t, key, origin, 0, ""), 409, size, "10\n")
	body = x.request(t, key, origin, 10, "")
	bad := strings.Replace(body, "\n", "\n"+tlog.Hash{}.String()+"\n", 1)
	want(bad, 422, plain, "proof")
	want(body, 200, plain, "\u2014 ")
	want(body, 409, size, "310\n") // sent twice
	again := x.request(t, key, origin, 310, "")
	want(again, 200, plain, "\u2014 ")
	want(strings.Replace(again, "\n", "\n"+tlog.Hash{}.String()+"\n", 1), 422, plain, "needs none")

	// Lines that extend a checkpoint are co-signed with it.
	x.grow(t, "c")
	body = x.request(t, key, origin, 310, "extension\n")
	line = want(body, 200, plain, "\u2014 ")
	if text, _ := transparency.KnownCosignatures(strings.SplitN(body, "\n\n", 2)[1], line, s.key.Public()); text == "" {
		t.Error("the extension is not co-signed")
	}

	for _, tt := range []struct {
		method, path string
		status       int
	}{{"GET", witness.Path, 405}, {"POST", "/", 404}, {"GET", "/" + witness.Path, 404}} {
		r, _ := http.NewRequestWithContext(t.Context(), tt.method, s.URL+tt.path, nil)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != tt.status {
			t.Errorf("%s %s: %d", tt.method, tt.path, a.StatusCode)
		}
	}
	if status, _, _ := s.add(t, strings.Repeat("x", 1<<20)); status != 413 {
		t.Errorf("a long request: %d", status)
	}
}

// A log that shows another history is refused, whether it is shorter, as long or longer, also after the witness was started again.
func TestForkAndRollback(t *testing.T) {
	key := newKey(t, origin)
	s := newStand(t, "witness.example/w1", filepath.Join(t.TempDir(), "state"), logKey(key))
	var right tree
	right.grow(t, leaves("a", 100)...)
	if status, _, text := s.add(t, right.request(t, key, origin, 0, "")); status != 200 {
		t.Fatal(status, text)
	}
	s.end()
	s = openStand(t, s.key, s.state, false, logKey(key))
	for _, n := range []int{50, 99, 100, 101, 200} {
		var fork tree
		fork.grow(t, "changed")
		fork.grow(t, leaves("a", n)[1:]...)
		for _, old := range []int64{0, int64(min(n, 100)), 50} {
			if status, _, _ := s.add(t, fork.request(t, key, origin, min(old, int64(n)), "")); status != 409 && status != 422 {
				t.Errorf("%d leaves, one of them changed, from %d: status %d", n, old, status)
			}
		}
	}
	var short tree // the same history, and a part of it
	short.grow(t, leaves("a", 40)...)
	if status, _, text := s.add(t, short.request(t, key, origin, 40, "")); status != 409 || text != "100\n" {
		t.Errorf("a rollback: %d %q", status, text)
	}
	if !strings.Contains(s.said.String(), "two roots of one size") || !strings.Contains(s.said.String(), "has not shown that it grew") {
		t.Errorf("the operator is not told: %s", s.said)
	}
	if seen, _ := s.file.Seen(origin); seen.Size != 100 {
		t.Errorf("the witness keeps %d", seen.Size)
	}
}

// A later era is a new beginning, and earlier ones are over.
func TestEras(t *testing.T) {
	key := newKey(t, origin)
	s := newStand(t, "witness.example/w1", filepath.Join(t.TempDir(), "state"), logKey(key))
	var x tree
	x.grow(t, leaves("a", 20)...)
	for _, tt := range []struct {
		origin string
		old    int64
		status int
	}{
		{origin, 0, 200},
		{origin + "/g3-20310502T100000Z", 20, 409}, {origin + "/g3-20310502T100000Z", 0, 200},
		{origin, 20, 404}, {origin + "/g2-20320502T100000Z", 0, 404}, {origin + "/g03-20310502T100000Z", 0, 404},
		{origin + "/g3-20310502T100000Z", 20, 200},
		// The same backup was restored once more, to another place: that is a new era, too, and only one of both goes on.
		{origin + "/g3-20310502T100001Z", 20, 409}, {origin + "/g3-20310502T100001Z", 0, 200}, {origin + "/g3-20310502T100000Z", 20, 404},
	} {
		if status, _, text := s.add(t, x.request(t, key, tt.origin, tt.old, "")); status != tt.status {
			t.Fatalf("%s from %d: %d %q", tt.origin, tt.old, status, text)
		}
	}
	if !strings.Contains(s.said.String(), "restored") {
		t.Error("the operator is not told of the restore")
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if _, err := witness.OpenFile(path, false); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a witness that forgot: %v", err)
	}
	f, err := witness.OpenFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := witness.OpenFile(path, false); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("two witnesses with one file: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = witness.OpenFile(path, false); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// Of requests that come at once, each co-signature is of a log that grew from the one before.
func TestAtOnce(t *testing.T) {
	key := newKey(t, origin)
	s := newStand(t, "witness.example/w1", filepath.Join(t.TempDir(), "state"), logKey(key))
	var bodies []string
	for n := range 30 {
		var x tree
		x.grow(t, leaves("a", n+1)...)
		bodies = append(bodies, x.request(t, key, origin, 0, ""))
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	ok := 0
	for _, body := range bodies {
		work.Go(func() {
			a, err := http.Post(s.URL+witness.Path, "text/plain", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			a.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if a.StatusCode == 200 {
				ok++
			}
		})
	}
	work.Wait()
	if ok != 1 {
		t.Errorf("%d first checkpoints were co-signed", ok)
	}
}

// house is a registry with a log.
type house struct {
	*registry.Registry
	ctx  context.Context
	keys *transparency.Keys
	n    int
}

func newHouse(t *testing.T, key transparency.WitnessKey) *house {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{ctx: auth.With(t.Context(), auth.Local()), keys: &transparency.Keys{Origin: origin, List: []transparency.SigningKey{{Private: key.Private}}}}
	h.Registry = registry.New(mem.New(time.Now), schemes, registry.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if _, err := h.Registrar.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Owner: "anna"}); err != nil {
		t.Fatal(err)
	}
	h.write(t, 10)
	return h
}

// write registers names, and signs a checkpoint.
func (h *house) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		h.n++
		id, err := h.Schemes.Parse(fmt.Sprintf("ark:12345/x%d", h.n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Registrar.Register(h.ctx, &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Log.CatchUp(h.ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Log.Sign(h.ctx, h.keys); err != nil {
		t.Fatal(err)
	}
}

func (h *house) collector(said io.Writer, targets ...witness.Target) *witness.Collector {
	rule := outbound.Rule{Any: true}
	return &witness.Collector{Log: h.Log, Targets: targets, HTTP: &outbound.NewClient(rule, time.Minute, 1<<20).Client, Every: time.Hour, Agent: "Stele", Logs: slog.New(slog.NewTextHandler(said, nil))}
}

// cosigned returns which witnesses have co-signed the last checkpoint.
func (h *house) cosigned(t *testing.T, keys ...transparency.PublicKey) (list []string) {
	t.Helper()
	p, err := h.Log.Published(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, by, err := transparency.OpenCheckpoint([]byte(p.Note), append(keys, h.keys.Public()...))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range by {
		list = append(list, c.Witness)
	}
	return list
}

func TestCollector(t *testing.T) {
	key := newKey(t, origin)
	h := newHouse(t, key)
	folder := t.TempDir()
	one := newStand(t, "witness.example/w1", filepath.Join(folder, "1"), logKey(key))
	two := newStand(t, "witness.example/w2", filepath.Join(folder, "2"), logKey(key))
	var said bytes.Buffer
	c := h.collector(&said, one.target(), two.target())
	both := []transparency.PublicKey{one.key.Public(), two.key.Public()}
	for round := range 3 {
		c.Collect(h.ctx)
		if got := h.cosigned(t, both...); len(got) != 2 {
			t.Fatalf("round %d: co-signed by %q; %s", round, got, &said)
		}
		h.write(t, 300)
	}
	// Another server does not know what the witnesses have; they say so. The second server of two adds nothing.
	c, d := h.collector(&said, one.target(), two.target()), h.collector(&said, one.target(), two.target())
	var work sync.WaitGroup
	work.Go(func() { c.Collect(h.ctx) })
	work.Go(func() { d.Collect(h.ctx) })
	work.Wait()
	if got := h.cosigned(t, both...); len(got) != 2 {
		t.Fatalf("co-signed by %q; %s", got, &said)
	}
	if p, _ := h.Log.Published(h.ctx); strings.Count(p.Note, "\u2014 ") != 3 {
		t.Errorf("the checkpoint is\n%s", p.Note)
	}
	if said.Len() > 0 {
		t.Errorf("the collector says %s", &said)
	}
}

// What goes wrong with a witness is said once, and does not keep others from co-signing.
func TestCollectorFailures(t *testing.T) {
	key := newKey(t, origin)
	h := newHouse(t, key)
	folder := t.TempDir()
	good := newStand(t, "witness.example/w1", filepath.Join(folder, "1"), logKey(key))
	stranger := newStand(t, "witness.example/w2", filepath.Join(folder, "2"), logKey(newKey(t, "other.example/log")))
	rolled := newStand(t, "witness.example/w3", filepath.Join(folder, "3"), logKey(newKey(t, origin)))
	forked := newStand(t, "witness.example/w4", filepath.Join(folder, "4"), logKey(key))
	var x tree
	x.grow(t, leaves("other", 5)...)
	if status, _, text := forked.add(t, x.request(t, key, origin, 0, "")); status != 200 {
		t.Fatal(status, text)
	}
	impostor := good.target()
	impostor.Key = newKey(t, "witness.example/w5").Public()
	gone := witness.Target{URL: "http://127.0.0.1:1", Key: newKey(t, "witness.example/w6").Public()}
	chatty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 1 << 12 {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}))
	defer chatty.Close()
	long := witness.Target{URL: chatty.URL, Key: newKey(t, "witness.example/w7").Public()}
	var said bytes.Buffer
	c := h.collector(&said, stranger.target(), rolled.target(), forked.target(), impostor, gone, long, good.target())
	c.Collect(h.ctx)
	c.Collect(h.ctx)
	if got := h.cosigned(t, good.key.Public()); len(got) != 1 {
		t.Errorf("co-signed by %q", got)
	}
	for _, want := range []string{"does not know this log", "none of the keys", "did not grow from", "not one of the key", "can't be asked"} {
		if n := strings.Count(said.String(), want); n < 1 || want != "not one of the key" && n > 1 {
			t.Errorf("%q is said %d times in\n%s", want, n, &said)
		}
	}
	// A witness that is ahead of the log: the registry was put back.
	x.grow(t, leaves("more", 1000)...)
	if status, _, text := forked.add(t, x.request(t, key, origin, 5, "")); status != 200 {
		t.Fatal(status, text)
	}
	c.Collect(h.ctx)
	if !strings.Contains(said.String(), "more than there are") {
		t.Errorf("a witness that is ahead: %s", &said)
	}
}

// The rules of package outbound hold: a witness in a private network is not asked unless the rule has it.
func TestCollectorOutbound(t *testing.T) {
	key := newKey(t, origin)
	h := newHouse(t, key)
	s := newStand(t, "witness.example/w1", filepath.Join(t.TempDir(), "1"), logKey(key))
	var said bytes.Buffer
	c := h.collector(&said, s.target())
	c.HTTP = &outbound.NewClient(outbound.Rule{}, time.Minute, 1<<20).Client
	c.Collect(h.ctx)
	if got := h.cosigned(t, s.key.Public()); len(got) != 0 || !strings.Contains(said.String(), "can't be asked") {
		t.Errorf("co-signed by %q; %s", got, &said)
	}
}

func TestParseTarget(t *testing.T) {
	key := newKey(t, "witness.example/w1").Public()
	logKey := logKey(newKey(t, origin))
	for text, want := range map[string]string{
		"https://witness.example/w1/ " + key.String():   "https://witness.example/w1",
		"http://10.0.0.1:8000=" + key.String():          "http://10.0.0.1:8000",
		"https://witness.example/w1 " + logKey.String(): "",
		"https://witness.example/w1":                    "",
		"ftp://witness.example " + key.String():         "",
		"https://u@witness.example " + key.String():     "",
		"https://witness.example?x " + key.String():     "",
		key.String() + " https://witness.example":       "",
	} {
		got, err := witness.ParseTarget(text)
		if got.URL != want || (err == nil) != (want != "") {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}

// The file is plain JSON, as the documentation has it.
func TestStateIsReadable(t *testing.T) {
	var seen witness.Seen
	if err := json.Unmarshal([]byte(`{"origin":"a","size":3,"root":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","at":"2031-05-02T10:00:00Z","note":"n"}`), &seen); err != nil || seen.Size != 3 {
		t.Error(seen, err)
	}
}
