package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/store/pebble"
)

// searchFound is how many records a search asks for.
const searchFound = 25

// searches measures the search index: what it costs an import, what it takes on the disk, and
// how fast it answers, compared with PostgreSQL's full-text search of the same data by a GIN
// index. Both return the newest records that match.
func (r *registryBench) searches(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	data := filepath.Join(r.work, "searched")
	if err := r.searchImports(ctx, w, n, data); err != nil {
		return err
	}
	index := filepath.Clean(data) + "-search"
	size, err := disk.FolderSize(index)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "search index on disk, a record of %d\t%d B\t\t\t\tat most 150 B\n", n, size/int64(n))
	for _, key := range tenth() {
		if err := command(ctx, r.stele, "ns", "add", key.Prefix, "--data", data); err != nil {
			return err
		}
	}
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return err
	}
	store, err := pebble.Open(ctx, data, pebble.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	x, err := search.Open(ctx, search.Options{Folder: index, Source: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := x.CatchUp(ctx); err != nil {
		return err
	}
	finder := &search.Finder{Index: x, Schemes: schemes, Get: store.Record, Sight: func(ctx context.Context, _ stele.NamespaceKey) (search.Sight, error) {
		return benchSight(ctx.Value(sightKey{}) != nil), nil
	}}
	return r.compareSearches(ctx, w, finder, n)
}

// searchImports compares an import that makes the index, and a search after it, with the import
// alone.
func (r *registryBench) searchImports(ctx context.Context, w *tabwriter.Writer, n int, data string) error {
	var alone, both, used, ratios, byCPU []float64
	for i := range importRounds {
		progress("import of %d records and their search index, round %d of %d", n, i+1, importRounds)
		var without, with cost
		for k := range 2 {
			var err error
			if (i+k)%2 == 0 { // they take turns at being first, and the last of an odd number of rounds ends with the index, which is searched afterwards
				without, err = r.importSearched(ctx, n, data, false)
			} else {
				with, err = r.importSearched(ctx, n, data, true)
			}
			if err != nil {
				return err
			}
		}
		progress("import %s, with the index %s", without, with)
		alone, both = append(alone, float64(n)/without.wall.Seconds()), append(both, float64(n)/with.wall.Seconds())
		used = append(used, (with.cpu-without.cpu).Seconds()*1e6/float64(n))
		ratios, byCPU = append(ratios, without.wall.Seconds()/with.wall.Seconds()), append(byCPU, without.cpu.Seconds()/with.cpu.Seconds())
	}
	fmt.Fprintf(w, "import of %d with the search index : without\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.7\n", n, median(both), median(alone), median(ratios))
	fmt.Fprintf(w, "  by CPU time, and what the index takes of it for a record\t%.1f us\t\t%.2f\t\t(for information)\n", median(used), median(byCPU))
	return nil
}

// importSearched imports n records into a new registry, with or without a search index, and waits until that has all of them.
func (r *registryBench) importSearched(ctx context.Context, n int, data string, index bool) (c cost, err error) {
	if err := os.RemoveAll(data + "-search"); err != nil {
		return c, err
	}
	if !index {
		return r.importOnce(ctx, n, data)
	}
	if c, err = r.importOnce(ctx, n, data, "--index"); err != nil {
		return c, err
	}
	find := exec.CommandContext(ctx, r.stele, "find", "nowhere-at-all", "--data", data)
	begin := time.Now()
	out, err := find.CombinedOutput()
	if err != nil || len(out) > 0 {
		return c, fmt.Errorf("stele find: %w: %s", err, out)
	}
	c.wall += time.Since(begin)
	c.cpu += find.ProcessState.UserTime() + find.ProcessState.SystemTime()
	return c, nil
}

// tenth returns namespaces that have a tenth of all names, which begin with hexadecimal digits at
// random.
func tenth() (keys []stele.NamespaceKey) {
	for _, digits := range []string{"0", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19"} {
		keys = append(keys, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x" + digits})
	}
	return keys
}

// sightKey marks the context of a reader who may see a tenth.
type sightKey struct{}

// benchSight is what a caller may find: a tenth, or everything.
type benchSight bool

func (s benchSight) Everything() bool               { return !bool(s) }
func (s benchSight) Prefixes() []stele.NamespaceKey { return tenth() }
func (s benchSight) Lists(id stele.ID) bool {
	return slices.ContainsFunc(tenth(), func(k stele.NamespaceKey) bool { return strings.HasPrefix(id.String(), k.Prefix) })
}

// searchKind is one of the searches of the mix.
type searchKind struct {
	name  string
	tenth bool // by a reader who may see a tenth
	next  func() (text, query string)
	order string // by which PostgreSQL orders
}

// plan chooses how PostgreSQL searches. It believes that few rows have to be read from the end of
// the table, which is right for frequent words; for rare ones that reads the whole table, and
// an order that its planner does not see through makes it use the GIN index.
func (k *searchKind) plan(ctx context.Context, finder *search.Finder, conn *pgx.Conn) error {
	best := math.Inf(1)
	for _, order := range []string{"number", "number + 0"} {
		try := *k
		try.order = order
		_, took, err := searchPair(ctx, finder, conn, try)
		if err != nil {
			return err
		}
		if took < best {
			best, k.order = took, order
		}
	}
	return nil
}

// searchMix are the searches, each for us and for PostgreSQL.
func searchMix(n int) []searchKind {
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(list *[16]string) string { return strings.ToLower(list[random.IntN(16)]) }
	both := func(words ...string) (string, string) { return strings.Join(words, " "), strings.Join(words, " & ") }
	return []searchKind{
		{name: "a word of one record", next: func() (string, string) { return both(fmt.Sprint(random.IntN(n))) }},
		{name: "a word of an eighth of all", next: func() (string, string) { return both(pick(&things)) }},
		{name: "two words", next: func() (string, string) { return both(pick(&things), pick(&people)) }},
		{name: "words that begin so", next: func() (string, string) {
			word := pick(&things)[:3]
			return word + "*", word + ":*"
		}},
		{name: "a word, for a reader of a tenth", tenth: true, next: func() (string, string) { return both(pick(&things)) }},
	}
}

// compareSearches compares the searches, and their sum.
func (r *registryBench) compareSearches(ctx context.Context, w *tabwriter.Writer, finder *search.Finder, n int) (err error) {
	folder := filepath.Join(r.work, "search-peer")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	db, err := startPostgres(ctx, folder, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.stop()) }()
	if err := db.fillSearched(ctx, filepath.Join(folder, "words.txt"), n); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://bench@/postgres?host=%s&plan_cache_mode=force_custom_plan", db.folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var sums [pairs][2]float64
	for _, kind := range searchMix(n) {
		progress("searching: %s", kind.name)
		if err := kind.plan(ctx, finder, conn); err != nil {
			return err
		}
		var ours, peer, ratios []float64
		for i := range pairs {
			a, b, err := searchPair(ctx, finder, conn, kind)
			if err != nil {
				return err
			}
			ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, a/b)
			sums[i][0] += a
			sums[i][1] += b
		}
		fmt.Fprintf(w, "  search among %d, %s : %s's GIN\t%.0f us\t%.0f us\t%.2f\t\t(for information)\n", n, kind.name, db.version, median(ours), median(peer), median(ratios))
	}
	var ours, peer, ratios []float64
	for _, s := range sums {
		ours, peer, ratios = append(ours, s[0]), append(peer, s[1]), append(ratios, s[0]/s[1])
	}
	fmt.Fprintf(w, "search among %d, one of each kind : %s's GIN\t%.0f us\t%.0f us\t%.2f\t\tat most 3\n", n, db.version, median(ours), median(peer), median(ratios))
	return nil
}

// searchesARound is how many searches of a kind are timed together.
const searchesARound = 8

// searchPair times some searches, ours and then the peer's, by the clock: the peer is another
// process. Both must find the same number of records.
func searchPair(ctx context.Context, finder *search.Finder, conn *pgx.Conn, kind searchKind) (ours, peer float64, err error) {
	for range searchesARound {
		text, query := kind.next()
		from := ctx
		condition := ""
		if kind.tenth {
			from, condition = context.WithValue(ctx, sightKey{}, true), "AND tenth"
		}
		begin := time.Now()
		page, err := finder.Find(from, search.Query{Text: text, Limit: searchFound})
		ours += float64(time.Since(begin).Microseconds())
		if err != nil {
			return 0, 0, err
		}
		begin = time.Now()
		rows, err := conn.Query(ctx, "SELECT body FROM searched WHERE words @@ $1::tsquery "+condition+" ORDER BY "+kind.order+" DESC LIMIT $2", query, searchFound)
		if err != nil {
			return 0, 0, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		peer += float64(time.Since(begin).Microseconds())
		if err != nil {
			return 0, 0, err
		}
		if len(found) != len(page.Records) || len(found) == 0 {
			return 0, 0, fmt.Errorf("%q finds %d records, and %d in PostgreSQL", text, len(page.Records), len(found))
		}
	}
	return ours / searchesARound, peer / searchesARound, nil
}

// fillSearched makes a table of n records with their words, and a GIN index of these.
func (p *postgres) fillSearched(ctx context.Context, path string, n int) error {
	progress("filling %s with %d records and a GIN index", p.version, n)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	mine := tenth()
	var record []byte
	for i := range n {
		name := "ark:12345/" + benchName(i)
		record = appendRecord(record[:0], i)
		visible := slices.ContainsFunc(mine, func(k stele.NamespaceKey) bool { return strings.HasPrefix(name, k.Prefix) })
		fmt.Fprintf(out, "%d\t%t\t%s\t%s\n", i, visible, searchedText(record), record)
	}
	if err := errors.Join(out.Flush(), f.Close()); err != nil {
		return err
	}
	return p.sql(ctx,
		"CREATE TABLE searched (number bigint PRIMARY KEY, tenth boolean, words tsvector, body jsonb)",
		"CREATE TEMPORARY TABLE raw (number bigint, tenth boolean, text text, body jsonb)",
		fmt.Sprintf("COPY raw FROM '%s'", path),
		"INSERT INTO searched SELECT number, tenth, to_tsvector('simple', text), body FROM raw",
		"CREATE INDEX ON searched USING gin (words)", "VACUUM ANALYZE searched")
}

// searchedText returns the words of a record in JSON, with spaces between them: names, URLs and
// metadata, and the names of their fields.
func searchedText(record []byte) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return ' '
	}, string(record))
}
