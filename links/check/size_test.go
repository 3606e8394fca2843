package check

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// sizedNames is with how many names bytes are measured.
const sizedNames = 20_000

// knownOf returns what is known of the targets of many names that work.
func knownOf(count int, now time.Time) (list []Known) {
	for n := range count {
		id := stele.StoredID("ark", fmt.Sprintf("ark:12345/x5%08d", n*7919))
		url, sum := links.Hash(id.String()), sha256.Sum256([]byte(id.String()))
		list = append(list, Known{ID: id, Status: links.Status{URL: url, State: links.OK, Cause: links.Answered, Code: 200, Since: now, Checked: now, Good: now, Next: links.Slot(keyOf(id, 0).hash(), now),
			Print: links.Print{Title: uint32(url), Text: url * 7, Type: 77, Length: int64(url % 100_000), Tag: fmt.Sprintf(`"%014x"`, url*13>>8), Digest: [16]byte(sum[:])}}})
	}
	return list
}

// fillSized keeps that, a quarter of the names after the other, so that blocks grow and are cut as those of a server.
func fillSized(t *testing.T, c *Checker, count int, now time.Time) {
	t.Helper()
	var quarters [4][]Known
	for i, k := range knownOf(count, now) {
		quarters[i%4] = append(quarters[i%4], k)
	}
	for i := range quarters {
		slices.SortFunc(quarters[i], func(a, b Known) int {
			return strings.Compare(keyOf(a.ID, 0).place(), keyOf(b.ID, 0).place())
		})
	}
	for some := range slices.Chunk(slices.Concat(quarters[:]...), 500) {
		err := c.keep(t.Context(), nil, func(b *batch) error {
			for i := range some {
				if err := b.setState(t.Context(), keyOf(some[i].ID, 0), some[i].Status.Append(nil)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPebbleBytes measures what is known of a name that works, in a folder.
func TestPebbleBytes(t *testing.T) {
	g := newRegistry(t)
	folder := filepath.Join(t.TempDir(), "data")
	store, err := pebble.Open(t.Context(), folder, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fillSized(t, New(Options{Registrar: registrar.New(store, g.names, registrar.Options{Now: time.Now}), Now: g.clock}), sizedNames, g.clock())
	if err := store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	size, err := disk.FolderSize(folder, ".sst")
	if err != nil {
		t.Fatal(err)
	}
	each := float64(size) / sizedNames
	t.Logf("%.1f bytes a name in Pebble", each)
	if each > 120 || each < 10 {
		t.Errorf("%.1f bytes a name; at most 120 are allowed", each)
	}
}

// TestPostgresBytes measures the same in a database. A row there has a head of 28 bytes, and its name stands in an index too.
func TestPostgresBytes(t *testing.T) {
	g := newRegistry(t)
	server := postgrestest.Start(t, postgrestest.Options{})
	url := server.Database(t)
	if err := postgres.Migrate(t.Context(), url, postgres.Options{Now: time.Now}, nil); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(t.Context(), url, postgres.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fillSized(t, New(Options{Registrar: registrar.New(store, g.names, registrar.Options{Now: time.Now, Shared: true}), Now: g.clock}), sizedNames, g.clock())
	database, _, _ := strings.Cut(url[strings.LastIndexByte(url, '/')+1:], "?")
	server.Exec(t, database, "VACUUM FULL stele.cells", fmt.Sprintf(`DO $$ BEGIN
		IF pg_total_relation_size('stele.cells') NOT BETWEEN %d AND %d THEN
			RAISE EXCEPTION '%% bytes a name', pg_total_relation_size('stele.cells') / %d;
		END IF; END $$`, 10*sizedNames, 120*sizedNames, sizedNames))
}

// counting is a store that counts the cells that are read.
type counting struct {
	stele.Store
	read *int
}

func (s counting) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		for c, err := range s.Store.Cells(ctx, prefix, after) {
			*s.read++
			if !yield(c, err) {
				return
			}
		}
	}
}

// What is due next is found by reading what is due, however many targets there are.
func TestNoScan(t *testing.T) {
	g := newRegistry(t)
	read := 0
	g.store = counting{g.store, &read}
	g.r = registrar.New(g.store, g.names, registrar.Options{Now: g.clock})
	const count = 50_000
	c := g.checker(time.Hour)
	fillSized(t, c, count, g.clock())
	g.pass(links.Turn + 2*day) // what is known is older than a turn
	read = 0
	now := g.clock()
	due, err := c.CountDue(t.Context(), now.Add(-wheelStep), now)
	if err != nil {
		t.Fatal(err)
	}
	// In ten minutes of 30 days the turn of 11 of 50,000 comes; parts of a turn have 40 seconds.
	if due < 2 || due > 40 || read > 2+due/5 {
		t.Errorf("%d targets are due, and %d cells were read", due, read)
	}
	t.Logf("%d of %d targets are due in %s, and %d cells were read", due, count, wheelStep, read)
}
