package transparency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// A log that grows is followed from any size to any other, and each change of a watched name is reported once.
func TestMonitorFollows(t *testing.T) {
	all := history(1400)
	o := &operator{origin: testOrigin}
	w := newWatcher(t, o, "ark:12345/x7", "ark:12345/x1*")
	var got []uint64
	for _, size := range []int{0, 1, 1, 2, 7, 8, 255, 256, 257, 511, 512, 513, 700, 768, 1023, 1025, 1400} {
		o.entries = all[:size]
		w.mustLook()
		got = append(got, w.changes()...)
		if e := w.events[len(w.events)-1]; e.Event != "checkpoint" || e.Size != uint64(size) {
			t.Errorf("at size %d the last event is %+v", size, e)
		}
	}
	var want []uint64
	for i, text := range all {
		l, err := ParseLeaf(text)
		if err != nil {
			t.Fatal(err)
		}
		if l.Name == "ark:12345/x7" || strings.HasPrefix(l.Name, "ark:12345/x1") {
			want = append(want, uint64(i)+1)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes %v, want %v", got, want)
	}
}

// What an operator does to a history that was signed is noticed.
func TestMonitorNoticesRewriting(t *testing.T) {
	all := history(900)
	other := (&Leaf{Kind: KindRecord, Name: "ark:12345/x9", Version: 1, At: time.Unix(1_900_000_000, 0)}).Append(nil)
	rnd := rand.New(rand.NewPCG(11, 12))
	for range 5 {
		before := 300 + rnd.IntN(300)
		at := rnd.IntN(before - 1)
		for name, tt := range map[string]struct {
			change func() [][]byte
			code   string
		}{
			"one record is rewritten": {func() [][]byte { return slices.Replace(slices.Clone(all), at, at+1, other) }, "log.rewritten"},
			"one record is dropped":   {func() [][]byte { return slices.Delete(slices.Clone(all), at, at+1) }, "log.rewritten"},
			"one record is put in":    {func() [][]byte { return slices.Insert(slices.Clone(all), at, other) }, "log.rewritten"},
			"two are reordered": {func() [][]byte {
				list := slices.Clone(all)
				list[at], list[at+1] = list[at+1], list[at]
				return list
			}, "log.rewritten"},
			"the last is rewritten, and no more": {func() [][]byte { return append(slices.Clone(all[:before-1]), other) }, "log.forked"},
			"the last is dropped":                {func() [][]byte { return all[:before-1] }, "log.shrunk"},
			"all are dropped":                    {func() [][]byte { return nil }, "log.shrunk"},
		} {
			o := &operator{origin: testOrigin, entries: all[:before]}
			w := newWatcher(t, o)
			w.mustLook()
			o.entries = tt.change()
			for range 2 { // it stays wrong
				err := w.look()
				if !errors.Is(err, ErrRewritten) || code(err) != tt.code {
					t.Errorf("%s, entry %d of %d: %v, want %s", name, at, before, err, tt.code)
				}
			}
			// The state has both checkpoints as evidence, which the key has signed.
			if len(w.State.Wrong) != 1 || w.State.Wrong[0].Note != o.checkpoint() || w.State.Note == o.checkpoint() {
				t.Errorf("%s: the evidence is %+v", name, w.State.Wrong)
			}
			o.entries = all
			w.mustLook() // what was right is right
		}
	}
}

// A reader to whom a fork is shown notices it as soon as the reader is shown the log, or the other way round.
func TestMonitorNoticesFork(t *testing.T) {
	all := history(600)
	fork := slices.Clone(all)
	fork[450] = (&Leaf{Kind: KindRecord, Name: "ark:12345/evil", Version: 1, At: time.Unix(1_900_000_000, 0)}).Append(nil)
	o := &operator{origin: testOrigin, entries: all[:400]}
	w := newWatcher(t, o)
	w.mustLook()
	o.entries = fork[:500]
	w.mustLook() // so far nothing shows it
	for _, size := range []int{500, 501, 600} {
		o.entries = all[:size]
		if err := w.look(); !errors.Is(err, ErrRewritten) {
			t.Errorf("the log of %d entries after a fork of 500: %v", size, err)
		}
	}
}

// Files that do not belong to the checkpoint are noticed, whatever they are.
func TestMonitorNoticesTampering(t *testing.T) {
	all := history(600)
	o := &operator{origin: testOrigin, entries: all}
	sound := o.files()
	flip := func(path string, at int) map[string]string {
		b := []byte(sound[path])
		b[at] ^= 1
		return map[string]string{path: string(b)}
	}
	later := &operator{origin: testOrigin, entries: history(700)}
	for name, notes := range map[string]map[string]string{
		"an entry":                    flip("tile/entries/001", 5000),
		"an entry of the last bundle": flip("tile/entries/002.p/88", 500),
		"the length of an entry":      flip("tile/entries/000", 1),
		"a hash of the last tile":     flip("tile/0/002.p/88", 100),
		"a hash of the tile above":    flip("tile/1/000.p/2", 10),
		"the root":                    flip("checkpoint", 30),
		"the size":                    flip("checkpoint", 25),
		"the signature":               flip("checkpoint", len(sound["checkpoint"])-10),
		"a bundle that is cut":        {"tile/entries/000": sound["tile/entries/000"][:1000]},
		"a bundle that goes on":       {"tile/entries/001": sound["tile/entries/001"] + "\x00"},
		"a tile that is too short":    {"tile/1/000.p/2": sound["tile/1/000.p/2"][:32]},
		"nothing":                     {"checkpoint": ""},
		"a page":                      {"checkpoint": "<html>\n\n</html>\n"},
		"a checkpoint that is long":   {"checkpoint": sound["checkpoint"] + strings.Repeat("x", maxCheckpoint)},
		"a checkpoint of more":        {"checkpoint": later.checkpoint()},
		"an unsigned checkpoint":      {"checkpoint": strings.SplitAfter(sound["checkpoint"], "\n\n")[0]},
		"another key":                 {"checkpoint": string(signedCheckpoint(Checkpoint{testOrigin, 600, tlog.Hash{}}, signer{testOrigin, testKey(9)}))},
		"another log":                 {"checkpoint": string(signedCheckpoint(Checkpoint{"other.example.org", 600, tlog.Hash{}}, signer{"other.example.org", testKey(1)}))},
	} {
		o.notes = notes
		w := newWatcher(t, o)
		if err := w.look(); !errors.Is(err, ErrRewritten) {
			t.Errorf("%s: %v", name, err)
		}
		if o.notes = nil; name == "a checkpoint of more" { // it was signed, so that the log has shrunk now
			if err := w.look(); code(err) != "log.shrunk" {
				t.Error(err)
			}
			continue
		}
		w.mustLook()
		if w.State.Read != 600 {
			t.Errorf("%s: read %d entries after it", name, w.State.Read)
		}
	}
	// Entries that are signed and are not those of a registry.
	o = &operator{origin: testOrigin, entries: [][]byte{[]byte("hello")}}
	if err := newWatcher(t, o).look(); code(err) != "log.entry-malformed" {
		t.Error(err)
	}
}

// A server that can't be reached, or is too busy, is not a dishonest one.
func TestMonitorUnreachable(t *testing.T) {
	o := &operator{origin: testOrigin, entries: history(300)}
	status, after := 0, 0
	asked := 0
	w := newWatcher(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked++; status != 0 && asked > after {
			rw.Header().Set("Retry-After", "7")
			rw.WriteHeader(status)
			return
		}
		o.ServeHTTP(rw, r)
	}))
	var waited []time.Duration
	w.Client.Wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	for _, status = range []int{500, 503, 429, 302} {
		asked = 0
		if err := w.look(); stele.KindOf(err) != stele.Unavailable || errors.Is(err, ErrRewritten) {
			t.Errorf("status %d: %v", status, err)
		}
		if status == 429 && (asked != maxAsking || !slices.Contains(waited, 7*time.Second)) {
			t.Errorf("asked %d times and waited %v", asked, waited)
		}
	}
	if status = 404; code(w.look()) != "log.nothing-served" {
		t.Error("a URL without a log is not said to be one")
	}
	// It stops in the middle, and goes on there.
	status, after, asked = 503, 3, 0
	if err := w.look(); stele.KindOf(err) != stele.Unavailable {
		t.Error(err)
	}
	status = 0
	w.mustLook()
	if status = 404; code(w.look()) != "log.nothing-served" && !errors.Is(w.look(), ErrRewritten) {
		t.Error("a log that is gone is not reported")
	}
}

// A long first read that is interrupted goes on where it stopped.
func TestMonitorResumes(t *testing.T) {
	o := &operator{origin: testOrigin, entries: history(40 * tileWidth)}
	files := o.files() // once: it is long
	bundles := 0
	w := newWatcher(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/.log/")
		if strings.HasPrefix(path, "tile/entries/") {
			if bundles++; bundles == saveEvery+2 {
				rw.WriteHeader(http.StatusNotImplemented)
				bundles--
				return
			}
		}
		text, ok := files[path]
		if !ok {
			http.NotFound(rw, r)
		}
		_, _ = rw.Write([]byte(text))
	}), "ark:12345/x7")
	if err := w.look(); stele.KindOf(err) != stele.Unavailable {
		t.Fatal(err)
	}
	bundles = 100
	w.mustLook()
	if bundles > 100+40-saveEvery {
		t.Errorf("%d bundles were read again", bundles-100)
	}
}

// The owner of a proof watches a name that the log does not show, through redaction and restores.
func TestMonitorOfRegistry(t *testing.T) {
	var store *mem.Store
	h := newHouse(t, func(now func() time.Time) stele.Store { store = mem.New(now); return store })
	h.keys.List[0].Private = testKey(1)
	h.put("ark:99999/mine", "https://example.org/1")
	h.ingest("ark:12345/i", 600)
	h.catchUp()
	proof := h.prove("ark:99999/mine", 1, false)
	w := newWatcher(t, h.handler(), "ark:12345/i17")
	if err := w.Watch.Proof(proof); err != nil {
		t.Fatal(err)
	}
	w.mustLook()
	if got := w.changes(); !slices.Equal(got, []uint64{3, 21}) {
		t.Errorf("changes %v", got)
	}
	h.put("ark:99999/mine", "https://example.org/2")
	h.put("ark:99999/other", "https://example.org/2")
	h.sign()
	w.mustLook()
	if got := w.changes(); !slices.Equal(got, []uint64{604}) || w.events[0].Name != "ark:99999/mine" || w.events[0].Version != 2 {
		t.Errorf("events %+v", w.events)
	}
	backup := t.TempDir() + "/backup"
	h.must(store.Backup(h.ctx, backup))
	h.put("ark:99999/mine", "https://example.org/3")
	h.put("ark:12345/i17", "https://example.org/3")
	h.sign()
	w.mustLook()
	if len(w.changes()) != 2 {
		t.Errorf("events %+v", w.events)
	}
	_, err := h.r.Redact(h.ctx, h.id("ark:99999/mine"), 0, "a court order")
	h.must(err)
	h.sign()
	w.mustLook()
	if got := w.changes(); !slices.Equal(got, []uint64{608}) {
		t.Errorf("events %+v", w.events)
	}
	h.restore(backup)
	h.sign()
	w.mustLook()
	want := Event{Event: "restored", Origin: testOrigin + "/g2-20310502T100000Z", Former: testOrigin, Generation: 2, FirstGone: 606, LastGone: 608}
	if fmt.Sprint(w.events[0]) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", w.events[0], want)
	}
	h.put("ark:99999/mine", "https://example.org/4")
	h.sign()
	w.mustLook()
	if got := w.changes(); !slices.Equal(got, []uint64{606}) || len(w.events) != 2 {
		t.Errorf("events %+v", w.events)
	}
	// Twice, between two looks: the shortest beginning counts.
	h.restore(backup)
	h.put("ark:12345/i17", "https://example.org/5")
	h.sign()
	w.mustLook()
	if e := w.events[0]; e.Event != "restored" || !strings.HasPrefix(e.Origin, testOrigin+"/g3-") || e.FirstGone != 606 || e.LastGone != 606 {
		t.Errorf("events %+v", w.events)
	}
	h.wantSound()
}

// restore replaces the registry by its backup, as the verb does.
func (h *house) restore(folder string) {
	h.Helper()
	present, err := h.store.Generations(h.ctx)
	h.must(err)
	last, err := h.store.LastChange(h.ctx)
	h.must(err)
	store, err := mem.Open(folder, h.clock)
	h.must(err)
	list, err := store.Generations(h.ctx)
	h.must(err)
	change, err := store.LastChange(h.ctx)
	h.must(err)
	h.must(store.SetGenerations(h.ctx, list.Last().ID, list.Next(h.clock(), change, present, last)))
	h.store = store
	h.r, h.log = h.server(nil)
}

// A restore is no excuse for another beginning, nor for a log that its generations do not explain.
func TestMonitorNoticesFalseRestore(t *testing.T) {
	all := history(700)
	generations := func(kept uint64, origin string) string {
		g := Generations{Origin: origin, Eras: []NamedEra{
			{Era{Generation: stele.GenerationID{1}, Number: 1, Began: time.Unix(1e9, 0)}, testOrigin},
			{Era{Generation: stele.GenerationID{2}, Number: 2, Size: kept, Began: time.Unix(2e9, 0)}, origin},
		}}
		text, err := note.Sign(&note.Note{Text: g.String()}, signer{origin, testKey(1)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const second = testOrigin + "/g2-20330518T033320Z"
	rewritten := slices.Clone(all)
	rewritten[100] = all[101]
	for name, tt := range map[string]struct {
		next operator
		code string
	}{
		"honest":                        {operator{origin: second, entries: slices.Concat(all[:450], all[:20]), notes: map[string]string{"generations": generations(450, second)}}, ""},
		"honest, before all that was":   {operator{origin: second, entries: slices.Concat(all[:150], all[:20]), notes: map[string]string{"generations": generations(150, second)}}, ""},
		"another beginning":             {operator{origin: second, entries: rewritten, notes: map[string]string{"generations": generations(450, second)}}, "log.rewritten"},
		"a beginning that is too short": {operator{origin: second, entries: all[:400], notes: map[string]string{"generations": generations(450, second)}}, "log.generations-impossible"},
		"no list":                       {operator{origin: second, entries: all, notes: nil}, "log.generations-missing"},
		"a list that is not signed":     {operator{origin: second, entries: all, notes: map[string]string{"generations": "x"}}, "log.generations-refused"},
		"another log":                   {operator{origin: "other.example.org/.log", entries: all, notes: nil}, "log.checkpoint-refused"},
	} {
		o := &operator{origin: testOrigin, entries: all[:200]}
		w := newWatcher(t, o)
		w.mustLook()
		o.entries = all[:500]
		w.mustLook()
		*o = tt.next
		err := w.look()
		if (err == nil) != (tt.code == "") || err != nil && (code(err) != tt.code || !errors.Is(err, ErrRewritten)) {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
		if err != nil {
			continue
		}
		if w.events[0].Event != "restored" || w.events[0].LastGone != 500 {
			t.Errorf("%s: %+v", name, w.events)
		}
		*o = operator{origin: testOrigin, entries: all}
		if err := w.look(); code(err) != "log.origin-other" {
			t.Errorf("%s, and back to the first: %v", name, err)
		}
	}
}

// The state stays small, however often the monitor looks, and has old checkpoints all the same.
func TestMonitorStateIsThinned(t *testing.T) {
	s := NewMonitorState()
	s.Origin = testOrigin
	for i := range uint64(20_000) {
		s.see(&Checkpoint{testOrigin, i, tlog.Hash{byte(i)}}, "note", time.Unix(1e9, 0))
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Seen) > maxSeen || len(text) > 100_000 {
		t.Errorf("%d checkpoints, %d bytes", len(s.Seen), len(text))
	}
	if again, err := ParseMonitorState(text); err != nil || len(again.Seen) != len(s.Seen) {
		t.Error(err)
	}
	for _, size := range []uint64{100, 1000, 5000, 10_000, 19_000, 19_990} {
		if c := s.upTo(size); c == nil || size-c.Size > 400 {
			t.Errorf("for %d entries the largest is %+v", size, c)
		}
	}
}

func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		watched, name string
		want          bool
	}{
		{"ark:12345/x1", "ark:12345/x1", true},
		{"ark:12345/x1", "ark:12345/x12", false},
		{"ark:12345/x1", "ark:12345/x1/page2", true},
		{"ark:12345/x1", "ark:12345/x1.pdf", true},
		{"ark:12345/x1*", "ark:12345/x12", true},
		{"ark:12345", "ark:12345/x12", true},
		{"ark:12345", "ark:123456/x12", false},
		{"ark:12345/", "ark:12345/x12", true},
		{"urn:nbn:", "urn:nbn:de:1", true},
		{"*", "anything", true},
		{"", "anything", false},
	} {
		var w Watch
		w.Name(tt.watched)
		if got := w.covers(tt.name); got != tt.want {
			t.Errorf("%q covers %q: %v", tt.watched, tt.name, got)
		}
	}
}

func FuzzBundle(f *testing.F) {
	f.Add([]byte("\x00\x01a\x00\x00"))
	f.Add([]byte("\xff\xffa"))
	f.Add(bytes.Repeat([]byte{0, 0}, tileWidth+1))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, ok := splitBundle(data)
		if !ok {
			return
		}
		var again []byte
		for _, e := range list {
			again = append(append(again, byte(len(e)>>8), byte(len(e))), e...)
		}
		if len(list) > tileWidth || !bytes.Equal(again, data) {
			t.Fatalf("%q is %q", data, list)
		}
	})
}

func FuzzMonitorState(f *testing.F) {
	s := NewMonitorState()
	s.Origin = testOrigin
	s.see(&Checkpoint{testOrigin, 7, tlog.Hash{1}}, "note", time.Unix(1e9, 0))
	text, _ := json.Marshal(s)
	f.Add(text)
	f.Add([]byte(`{"form":1,"read":0}`))
	f.Add([]byte(`{"form":1,"read":5,"seen":[{"size":3,"root":"x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseMonitorState(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseMonitorState(again); err != nil {
			t.Fatalf("%s is written as %s: %v", text, again, err)
		}
	})
}
