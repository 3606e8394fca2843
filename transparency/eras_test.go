package transparency

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// A log that begins after a restore has another origin than one that may have been there before the registry was restored.
func TestEraOrigin(t *testing.T) {
	for _, test := range []struct {
		numbers []uint64
		want    string
	}{
		{nil, "a.example/.log"},
		{[]uint64{1}, "a.example/.log"},
		{[]uint64{2}, "a.example/.log/g2-20310502T100000Z"},
		{[]uint64{1, 2}, "a.example/.log/g2-20310502T100000Z"},
		{[]uint64{1, 2, 7}, "a.example/.log/g7-20310502T100000Z"},
	} {
		var eras []Era
		for _, n := range test.numbers {
			eras = append(eras, Era{Number: n, Began: time.Date(2031, 5, 2, 10, 0, 0, 999_000_000, time.UTC)})
		}
		if got := eraOrigin("a.example/.log", eras); got != test.want {
			t.Errorf("eras %v have the origin %q, want %q", test.numbers, got, test.want)
		}
		if id, ok := EraOf(test.want, "a.example/.log"); !ok || id.String() != test.want[len("a.example/.log"):] {
			t.Errorf("%q is the era %v, %v", test.want, id, ok)
		}
	}
	for _, origin := range []string{"a.example/.log/", "a.example/g2", "a.example/g2-20310502T100000Z", "a.example/g17x", "a.example/ g", "a\u2003b.example", "a\xff.example"} {
		if err := CheckOrigin(origin); err == nil {
			t.Errorf("%q may name a log", origin)
		}
	}
}

func TestEraOf(t *testing.T) {
	const log = "a.example/.log"
	ordered := []string{"", "/g2", "/g2-20310502T100000Z", "/g2-20310502T100001Z", "/g3-20200101T000000Z", "/g10-20200101T000000Z"}
	for i, one := range ordered {
		for j, other := range ordered {
			a, ok := EraOf(log+one, log)
			b, ok2 := EraOf(log+other, log)
			if got := a.Compare(b); !ok || !ok2 || got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%q and %q: %d", one, other, got)
			}
		}
	}
	for _, end := range []string{"/", "/g", "/g0", "/g1", "/g1-20310502T100000Z", "/g02", "/g2-", "/g2-20310502T100000", "/g2-20310502T100000Z/", "/g2-20311302T100000Z", "/g2-2031", "x", "/x2"} {
		if id, ok := EraOf(log+end, log); ok {
			t.Errorf("%q is the era %v", end, id)
		}
	}
}

// A backup may be restored twice, and a newer one after an older one. The monitor reports restores, and no tampering; what is really another
// beginning it still notices.
func TestMonitorOfSeveralRestores(t *testing.T) {
	var store *mem.Store
	h := newHouse(t, func(now func() time.Time) stele.Store { store = mem.New(now); return store })
	h.keys.List[0].Private = testKey(1)
	h.ingest("ark:12345/i", 298)
	h.sign()
	w := newWatcher(t, h.handler())
	w.mustLook()
	backup := func() string {
		folder := t.TempDir() + "/backup"
		h.must(h.store.(*mem.Store).Backup(h.ctx, folder))
		return folder
	}
	older := backup()
	h.ingest("ark:12345/j", 300)
	h.sign()
	w.mustLook()
	newer := backup()
	store0, r0, log0 := h.store, h.r, h.log // before the restores

	// restored restores a backup where nothing was before, or in the place of what is there.
	restored := func(folder string, inPlace bool) {
		t.Helper()
		h.mu.Lock()
		h.now = h.now.Add(time.Minute)
		h.mu.Unlock()
		if !inPlace {
			h.store = mem.New(h.clock)
		}
		h.restore(folder)
	}
	expect := func(what string, from, to uint64) {
		t.Helper()
		h.sign()
		w.mustLook()
		if e := w.events[0]; e.Event != "restored" || e.FirstGone != from || e.LastGone != to {
			t.Errorf("%s: %+v", what, w.events)
		}
		h.wantSound()
	}
	restored(older, false)
	h.put("ark:12345/a", "https://example.org/a")
	expect("the first restore", 301, 600)
	restored(older, false)
	h.put("ark:12345/b", "https://example.org/b")
	expect("the same backup, to an empty place", 301, 301)
	restored(newer, true)
	h.put("ark:12345/c", "https://example.org/c")
	expect("a newer backup", 301, 301)
	restored(older, true)
	expect("the older backup once more", 301, 601)

	// The registry that was replaced is not shown again.
	h.store, h.r, h.log = store0, r0, log0
	if err := w.look(); code(err) != "log.origin-other" || !errors.Is(err, ErrRewritten) {
		t.Errorf("the first registry again: %v", err)
	}
}

// Generations can't say of an era that it began otherwise than they said before.
func TestMonitorRemembersEras(t *testing.T) {
	all := history(700)
	signed := func(eras ...SeenEra) map[string]string {
		g := Generations{Origin: eras[len(eras)-1].Origin}
		for i, e := range eras {
			g.Eras = append(g.Eras, NamedEra{Era{Generation: stele.GenerationID{byte(i + 1)}, Number: uint64(i + 1), Size: e.Size, Began: time.Unix(1e9, 0)}, e.Origin})
		}
		text, err := note.Sign(&note.Note{Text: g.String()}, signer{g.Origin, testKey(1)})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"generations": string(text)}
	}
	const second, third = testOrigin + "/g2-20310502T100000Z", testOrigin + "/g3-20310602T100000Z"
	o := &operator{origin: second, entries: all[:400], notes: signed(SeenEra{testOrigin, 0}, SeenEra{second, 300})}
	w := newWatcher(t, o)
	w.mustLook()
	rewritten := slices.Clone(all)
	rewritten[10] = all[11]
	*o = operator{origin: third, entries: rewritten, notes: signed(SeenEra{testOrigin, 0}, SeenEra{second, 5}, SeenEra{third, 400})}
	if err := w.look(); code(err) != "log.generations-impossible" {
		t.Errorf("an era that began with another size: %v", err)
	}
	*o = operator{origin: third, entries: rewritten, notes: signed(SeenEra{testOrigin, 0}, SeenEra{second, 300}, SeenEra{third, 400})}
	if err := w.look(); code(err) != "log.rewritten" {
		t.Errorf("another beginning: %v", err)
	}
	*o = operator{origin: third, entries: all, notes: signed(SeenEra{testOrigin, 0}, SeenEra{second, 300}, SeenEra{third, 400})}
	w.mustLook()
}

// A key that a reader gives twice is one key: the checkpoint is not refused for it.
func TestKeyGivenTwice(t *testing.T) {
	o := &operator{origin: testOrigin, entries: history(10)}
	w := newWatcher(t, o)
	w.Keys = []PublicKey{testLogKey, testLogKey}
	w.mustLook()
}

// What is read of a list of generations is written in one way.
func FuzzGenerations(f *testing.F) {
	g := Generations{Origin: testOrigin + "/g2-20320109T083000Z", Eras: []NamedEra{
		{Era{Generation: stele.GenerationID{1}, Number: 1, Began: time.Unix(1e9, 0)}, testOrigin},
		{Era{Generation: stele.GenerationID{2}, Number: 2, Size: 7, Began: time.Unix(2e9, 0)}, testOrigin + "/g2-20320109T083000Z"},
	}}
	f.Add(g.String())
	f.Add("a\nstele generations 1\n1 00000000000000000000000000000001 0 2031-05-02T10:00:00Z a\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := parseGenerations(text)
		if err != nil {
			return
		}
		if g.String() != text || len(g.Eras) == 0 {
			t.Errorf("%q is read as %+v", text, g)
		}
		if id, ok := EraOf(g.Origin, testOrigin); ok && testOrigin+id.String() != g.Origin {
			t.Errorf("%q is the era %q", g.Origin, id)
		}
	})
}
