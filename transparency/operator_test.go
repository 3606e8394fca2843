package transparency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

const testOrigin = "names.example.org/.log"

var testLogKey = PublicKey{Name: testOrigin, Key: signer{testOrigin, testKey(1)}.public()}

// operator serves a log that it makes of any entries, and signs it with the key of the registry. It can do all that a dishonest operator can.
type operator struct {
	origin  string
	entries [][]byte
	notes   map[string]string // files that it serves instead of what they should be

	made made
}

// made is what was made of entries.
type made struct {
	origin string
	first  *[]byte
	count  int
	files  map[string]string
}

func (o *operator) tree() (p peer) {
	for i, e := range o.entries {
		hashes, err := tlog.StoredHashes(int64(i), e, p)
		if err != nil {
			panic(err)
		}
		p = append(p, hashes...)
	}
	return p
}

func (o *operator) checkpoint() string {
	root, err := tlog.TreeHash(int64(len(o.entries)), o.tree())
	if err != nil {
		panic(err)
	}
	return string(signedCheckpoint(Checkpoint{o.origin, uint64(len(o.entries)), root}, signer{o.origin, testKey(1)}))
}

// files returns all files of the log, by their paths.
func (o *operator) files() map[string]string {
	now := made{origin: o.origin, count: len(o.entries)}
	if now.count > 0 {
		now.first = &o.entries[0]
	}
	if o.made.files == nil || o.made.origin != now.origin || o.made.first != now.first || o.made.count != now.count {
		o.made = now
		o.made.files = o.make()
	}
	files := maps.Clone(o.made.files)
	maps.Copy(files, o.notes)
	return files
}

func (o *operator) make() map[string]string {
	files := map[string]string{"checkpoint": o.checkpoint()}
	p := o.tree()
	for _, t := range tlog.NewTiles(tileHeight, 0, int64(len(o.entries))) {
		data, err := tlog.ReadTileData(t, p)
		if err != nil {
			panic(err)
		}
		id := TileID{t.L, uint64(t.N), t.W}
		files[id.Path()] = string(data)
		if t.L == 0 {
			var bundle []byte
			for _, e := range o.entries[t.N*tileWidth:][:t.W] {
				bundle = append(append(bundle, byte(len(e)>>8), byte(len(e))), e...)
			}
			files[bundlePath(id)] = string(bundle)
		}
	}
	return files
}

func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := o.files()[strings.TrimPrefix(r.URL.Path, "/.log/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(text))
}

// history returns so many entries.
func history(count int) (list [][]byte) {
	for i := range count {
		l := Leaf{Kind: KindRecord, Name: fmt.Sprintf("ark:12345/x%d", i%50), Version: uint64(1 + i/50), At: time.Unix(1_900_000_000+int64(i), 0)}
		if i%3 == 0 {
			l.Name, l.Blind = "", Blind(Key{5}, KindRecord, fmt.Sprintf("ark:99999/x%d", i%50))
		}
		list = append(list, l.Append(nil))
	}
	return list
}

// watcher is a monitor of a test, with what it reported and saved.
type watcher struct {
	*Monitor
	t      *testing.T
	events []Event
	saved  []byte
}

func newWatcher(t *testing.T, handler http.Handler, watch ...string) *watcher {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	w := &watcher{t: t}
	w.Monitor = &Monitor{
		Client: &TileClient{URL: s.URL + "/.log", HTTP: s.Client(), Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
		Keys:   []PublicKey{testLogKey}, Watch: &Watch{}, State: NewMonitorState(),
		Report: func(e Event) { w.events = append(w.events, e) },
		Now:    func() time.Time { return time.Unix(1_950_000_000, 0) },
		Save: func(s *MonitorState) (err error) {
			w.saved, err = json.Marshal(s)
			return err
		},
	}
	for _, name := range watch {
		w.Watch.Name(name)
	}
	return w
}

// look looks, as a program that has been started again does.
func (w *watcher) look() error {
	w.t.Helper()
	w.events = nil
	if w.saved != nil {
		var err error
		if w.State, err = ParseMonitorState(w.saved); err != nil {
			w.t.Fatalf("%v: %s", err, w.saved)
		}
	}
	return w.Look(w.t.Context())
}

func (w *watcher) mustLook() {
	w.t.Helper()
	if err := w.look(); err != nil {
		w.t.Fatal(err)
	}
}

// code returns the code of the message of an error.
func code(err error) string {
	var m *stele.Message
	if errors.As(err, &m) {
		return m.Code
	}
	return fmt.Sprint(err)
}

func (w *watcher) changes() (list []uint64) {
	for _, e := range w.events {
		if e.Event == "change" {
			list = append(list, e.Change)
		}
	}
	return list
}

// live log of a house, as a server has it.
func (h *house) handler() http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		data, err := h.file(strings.TrimPrefix(r.URL.Path, "/.log/"))
		if err != nil {
			http.Error(rw, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = rw.Write(data)
	})
}

func (h *house) file(path string) ([]byte, error) {
	switch path {
	case "checkpoint":
		p, err := h.log.Published(h.ctx)
		return []byte(p.Note), err
	case "generations":
		text, err := h.log.SignGenerations(h.ctx, h.keys)
		return []byte(text), err
	}
	path, width := strings.TrimPrefix(path, "tile/"), tileWidth
	if full, part, ok := strings.Cut(path, ".p/"); ok {
		path = full
		if _, err := fmt.Sscan(part, &width); err != nil {
			return nil, err
		}
	}
	kind, number, _ := strings.Cut(path, "/")
	var n uint64
	if _, err := fmt.Sscanf(strings.NewReplacer("x", "", "/", "").Replace(number), "%d", &n); err != nil {
		return nil, err
	}
	if kind == "entries" {
		return h.log.Entries(h.ctx, n, width)
	}
	level, err := strconv.Atoi(kind)
	if err != nil {
		return nil, err
	}
	return h.log.Tile(h.ctx, level, n, width)
}

func (h *house) sign() {
	h.Helper()
	h.catchUp()
	_, err := h.log.Sign(h.ctx, h.keys)
	h.must(err)
}
