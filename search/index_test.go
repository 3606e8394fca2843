package search

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// shifted is a store whose changes have higher numbers, so that few changes cross blocks.
type shifted struct {
	stele.Store
	by uint64
}

func (s *shifted) Position(ctx context.Context) (stele.Position, error) {
	at, err := s.Store.Position(ctx)
	if at.Change > 0 {
		at.Change += s.by
	}
	return at, err
}

func (s *shifted) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return func(yield func(stele.Change, error) bool) {
		for c, err := range s.Store.Changes(ctx, after-min(after, s.by)) {
			c.Seq += s.by
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// clock is when the tests happen.
var clock = time.Date(2026, 11, 16, 20, 0, 0, 0, time.UTC)

// world is a registry, and what the index should have of it.
type world struct {
	t       testing.TB
	store   stele.Store
	source  *shifted
	fs      *vfs.MemFS
	index   *Index
	records map[stele.ID]*stele.Record
	changed map[stele.ID]int // when it was changed last
	changes int
}

// tester is what *testing.T and *rapid.T have.
type tester interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Helper()
}

func newWorld(t testing.TB, by uint64) *world {
	store := mem.New(func() time.Time { return clock })
	w := &world{
		t: t, store: store, source: &shifted{store, by}, fs: vfs.NewCrashableMem(),
		records: make(map[stele.ID]*stele.Record), changed: make(map[stele.ID]int),
	}
	return w
}

func (w *world) open(t tester) {
	t.Helper()
	var err error
	if w.index, err = Open(context.Background(), Options{Folder: "index", Source: w.source, fs: w.fs, memory: 256 << 10}); err != nil {
		t.Fatal(err)
	}
	w.index.tables = 7
}

func (w *world) catchUp(t tester) {
	t.Helper()
	if err := w.index.CatchUp(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// put commits a record, as its first version or its next.
func (w *world) put(t tester, r *stele.Record) {
	t.Helper()
	r.Version = 1
	if old := w.records[r.ID]; old != nil {
		r.Version, r.Created = old.Version+1, old.Created
	}
	if err := w.store.Apply(context.Background(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
		t.Fatal(err)
	}
	w.changes++
	w.records[r.ID], w.changed[r.ID] = r, w.changes
}

// space commits a namespace.
func (w *world) space(t tester, key stele.NamespaceKey, version uint64) {
	t.Helper()
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Version: version, Owner: "ann"}
	if err := w.store.Apply(context.Background(), &stele.Commit{Namespaces: []*stele.Namespace{ns}}); err != nil {
		t.Fatal(err)
	}
	w.changes++
}

func id(text string) stele.ID {
	made, err := stele.NewID("ark", text)
	if err != nil {
		panic(err)
	}
	return made
}

// sees is a sight.
type sees struct {
	all  bool
	keys []stele.NamespaceKey
}

func (s *sees) Everything() bool               { return s.all }
func (s *sees) Prefixes() []stele.NamespaceKey { return s.keys }
func (s *sees) Lists(id stele.ID) bool {
	return slices.ContainsFunc(s.keys, func(k stele.NamespaceKey) bool { return isBelow(id.Scheme(), id.String(), k) })
}

var everything = &sees{all: true}

// find returns the identifiers of all pages.
func (w *world) find(t tester, q Query, sight Sight) (found []string) {
	t.Helper()
	for range 10_000 {
		page, err := w.index.Find(context.Background(), &q, sight)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		if len(page.Records) > q.Limit || page.Behind() > 0 {
			t.Fatalf("a page of %d records, %d changes behind", len(page.Records), page.Behind())
		}
		for _, r := range page.Records {
			found = append(found, r.ID.String())
		}
		if page.Next == 0 {
			return found
		}
		if q.Cursor != 0 && page.Next >= q.Cursor {
			t.Fatalf("the cursor goes from %d to %d", q.Cursor, page.Next)
		}
		q.Cursor = page.Next
	}
	t.Fatal("the pages do not end")
	return nil
}

// spelled are words, and how they are compared. The plain scan of the model knows no other
// rule, so that it does not share the splitter's mistakes.
var spelled = map[string]string{
	"Pará": "para", "PARA": "para", "para": "para", "Rio": "rio", "rio": "rio", "RIOS": "rios", "Straße": "strasse", "STRASSE": "strasse",
	"１９９９": "1999", "1999": "1999", "19": "19", "Łódź": "lodz", "ΣΊΣΥΦΟΣ": "σισυφοσ", "σίσυφος": "σισυφοσ",
}

var spellings = slices.Sorted(maps.Keys(spelled))

// scan returns what a query should find, by looking at all records.
func (w *world) scan(q modelQuery, sight *sees) (found []string) {
	var ids []stele.ID
	for id, r := range w.records {
		if (sight.all || sight.Lists(id)) && q.wants(r) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b stele.ID) int { return w.changed[b] - w.changed[a] })
	for _, id := range ids {
		found = append(found, id.String())
	}
	return found
}

// modelQuery is a query in parts.
type modelQuery struct {
	words  []string // in some spelling; with * at the end for a beginning
	phrase []string
	Query
}

func (q *modelQuery) text() string {
	text := strings.Join(q.words, " ")
	if len(q.phrase) > 0 {
		text += ` "` + strings.Join(q.phrase, " ") + `"`
	}
	return text
}

// wants is the plain rule.
func (q *modelQuery) wants(r *stele.Record) bool {
	var texts [][]string
	for _, value := range r.Metadata {
		var words []string
		for _, word := range strings.Fields(value) {
			words = append(words, spelled[word])
		}
		texts = append(texts, words)
	}
	has := func(words []string) bool {
		for _, text := range texts {
			for from := range text {
				n := 0
				for n < len(words) && from+n < len(text) {
					word, begins := strings.CutSuffix(words[n], "*")
					if !begins {
						word = spelled[word]
					}
					if have := text[from+n]; have != word && !(begins && strings.HasPrefix(have, word)) {
						break
					}
					n++
				}
				if n == len(words) {
					return true
				}
			}
		}
		return false
	}
	for _, word := range q.words {
		if !has([]string{word}) {
			return false
		}
	}
	if len(q.phrase) > 0 && !has(q.phrase) {
		return false
	}
	on := q.Host == ""
	for _, t := range r.Targets {
		on = on || strings.HasPrefix(t.URL, "https://"+q.Host+"/")
	}
	return on && strings.HasPrefix(r.ID.String(), q.Namespace.Prefix) &&
		(q.State == "" || q.State == r.State) && (q.By == "" || q.By == r.By) &&
		(q.Visibility == "" || (q.Visibility == Restricted) == (len(r.Readers) > 0)) &&
		(q.ModifiedFrom.IsZero() || !r.Modified.Before(q.ModifiedFrom)) && (q.ModifiedBefore.IsZero() || r.Modified.Before(q.ModifiedBefore)) &&
		(q.CreatedFrom.IsZero() || !r.Created.Before(q.CreatedFrom)) && (q.CreatedBefore.IsZero() || r.Created.Before(q.CreatedBefore))
}

var (
	modelHosts  = []string{"a.example.org", "b.example.org"}
	modelStates = []stele.State{stele.Reserved, stele.Active, stele.Withdrawn}
	modelUsers  = []string{"ann", "bob"}
)

func drawRecord(t *rapid.T) *stele.Record {
	words := func() string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(spellings), 0, 5).Draw(t, "words"), " ")
	}
	at := drawTime(t)
	r := &stele.Record{
		ID:       id(fmt.Sprintf("ark:j%d/z%d", rapid.IntRange(1, 4).Draw(t, "naan"), rapid.IntRange(0, 8).Draw(t, "name"))),
		State:    rapid.SampledFrom(modelStates).Draw(t, "state"),
		Metadata: stele.Metadata{"what": words(), "who": words()},
		By:       rapid.SampledFrom(modelUsers).Draw(t, "by"),
		Created:  at, Modified: at,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://" + rapid.SampledFrom(modelHosts).Draw(t, "host") + "/x"}},
	}
	if r.State == stele.Withdrawn {
		r.Tombstone = &stele.Tombstone{Reason: "why not", At: at}
	}
	if rapid.Bool().Draw(t, "restricted") {
		r.Readers = []string{"user:ann"}
	}
	return r
}

func drawTime(t *rapid.T) time.Time {
	return clock.Add(time.Duration(rapid.IntRange(-900, 900).Draw(t, "days")) * 11 * time.Hour)
}

// drawKey draws the prefix of a namespace, or one that is none.
func drawKey(t *rapid.T) stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: "ark", Prefix: rapid.SampledFrom([]string{"ark:j1", "ark:j2", "ark:j3", "ark:j3/z1", "ark:j4/z"}).Draw(t, "prefix")}
}

func drawQuery(t *rapid.T) modelQuery {
	word := rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom(spellings).Draw(t, "spelling")
		if rapid.IntRange(0, 3).Draw(t, "begins") > 0 {
			return text
		}
		folded := []rune(spelled[text])
		return string(folded[:rapid.IntRange(1, len(folded)).Draw(t, "length")]) + "*"
	})
	var q modelQuery
	q.words = rapid.SliceOfN(word, 0, 2).Draw(t, "words")
	if rapid.IntRange(0, 3).Draw(t, "phrase") == 0 {
		q.phrase = rapid.SliceOfN(rapid.SampledFrom(spellings), 1, 3).Draw(t, "phrase")
	}
	rarely := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }
	if rarely("in a namespace") {
		q.Namespace = drawKey(t)
	}
	if rarely("in a state") {
		q.State = rapid.SampledFrom(modelStates).Draw(t, "state")
	}
	if rarely("on a host") {
		q.Host = rapid.SampledFrom(modelHosts).Draw(t, "host")
	}
	if rarely("by") {
		q.By = rapid.SampledFrom(modelUsers).Draw(t, "by")
	}
	if rarely("visible") {
		q.Visibility = rapid.SampledFrom([]Visibility{Public, Restricted}).Draw(t, "visibility")
	}
	if rarely("from") {
		q.ModifiedFrom = drawTime(t)
	}
	if rarely("before") {
		q.ModifiedBefore = drawTime(t)
	}
	if rarely("created") {
		q.CreatedFrom, q.CreatedBefore = drawTime(t), drawTime(t)
	}
	q.Limit = rapid.IntRange(1, 20).Draw(t, "limit")
	q.Text = q.text()
	return q
}

// TestModel compares the index with a plain scan of all records: whatever is registered and
// changed, however often the index is closed, and wherever a crash interrupts it.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.SampledFrom([]uint64{0, blockSize - 10, 3*blockSize - 5}).Draw(rt, "by"))
		w.open(rt)
		defer func() { _ = w.index.Close() }()
		spaces := make(map[stele.NamespaceKey]uint64)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { w.put(t, drawRecord(t)) },
			"many": func(t *rapid.T) {
				for range rapid.IntRange(2, 20).Draw(t, "count") {
					w.put(t, drawRecord(t))
				}
			},
			"namespace": func(t *rapid.T) {
				key := drawKey(t)
				spaces[key]++
				w.space(t, key, spaces[key])
			},
			"catch up": func(t *rapid.T) { w.catchUp(t) },
			"close": func(t *rapid.T) {
				if err := w.index.Close(); err != nil {
					t.Fatal(err)
				}
				w.open(t)
			},
			"flush": func(*rapid.T) { w.index.flush() },
			"crash": func(t *rapid.T) {
				w.fs = w.fs.CrashClone(vfs.CrashCloneCfg{
					UnsyncedDataPercent: rapid.IntRange(0, 100).Draw(t, "percent"), RNG: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
				})
				_ = w.index.Close() // it belongs to the machine that crashed
				w.open(t)
			},
			"rebuild": func(t *rapid.T) {
				if err := w.index.Rebuild(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				q := drawQuery(t)
				sight := &sees{all: rapid.Bool().Draw(t, "all")}
				if !sight.all {
					sight.keys = rapid.SliceOfNDistinct(rapid.Custom(drawKey), 0, 3, rapid.ID).Draw(t, "sees")
				}
				if got, want := w.find(t, q.Query, sight), w.scan(q, sight); !slices.Equal(got, want) {
					t.Fatalf("%+v, who sees %+v\ngot  %q\nwant %q", q, sight, got, want)
				}
				if status := w.index.Status(); status.Documents != uint64(len(w.records)) {
					t.Fatalf("%d documents of %d records", status.Documents, len(w.records))
				}
			},
		})
	})
}
