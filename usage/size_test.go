package usage

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// Names and months with which bytes are measured.
const (
	sizedNames  = 20_000
	sizedMonths = 3
)

// fillSized writes the figures of many names, which were used on four days of each month, as counters of several servers do.
func fillSized(t *testing.T, servers ...*registrar.Registrar) {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	space := func(context.Context, stele.ID) stele.NamespaceKey {
		return stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	}
	var list []*Counter
	for _, r := range servers {
		c := New(Options{Store: r, Agents: agents, Schemes: schemes, Space: space, Now: func() time.Time { return noon }})
		c.ctx = t.Context()
		list = append(list, c)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for month := range sizedMonths {
		days := random.Perm(13)[:4]
		slices.Sort(days) // as time goes
		for _, day := range days {
			at := noon.AddDate(0, month, day)
			for n := range sizedNames {
				c := list[n%len(list)]
				id := stele.StoredID("ark", fmt.Sprintf("ark:12345/x5%08d", n*7919))
				c.tally.count(&reading{at: at.Unix() - at.Unix()%secondsDay + 7, id: id, visitor: random.Uint64(), class: Regular, kind: Redirect})
			}
		}
	}
	var work sync.WaitGroup
	for _, c := range list {
		work.Go(func() {
			for try := 0; try == 0 || c.Stats().Waiting > 0 && try < 100; try++ {
				c.flush(noon)
			}
			mine := []string{c.keeper.server}
			for try := range 100 {
				c.keeper.folds = folds{queue: mine}
				err := c.keeper.fold(c.ctx, noon, 10_000)
				if err == nil {
					break
				}
				if try == 99 {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for _, err := range servers[0].UsageList(asServer(t.Context()), journalCells, "") {
		t.Fatalf("a part of a journal is left: %v", err)
	}
	var sum Counts
	count := 0
	for cell, err := range servers[0].UsageList(asServer(t.Context()), recordCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMonth(cell.Value)
		if err != nil {
			t.Fatal(err)
		}
		c := m.Sum()
		sum.Add(&c)
		count++
	}
	if count != sizedNames*sizedMonths || sum[Regulars] != sizedNames*sizedMonths*4 {
		t.Errorf("%d cells, %v", count, sum)
	}
}

// TestPebbleBytes measures the bytes of a name and month in a folder.
func TestPebbleBytes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	store, err := pebble.Open(t.Context(), folder, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	fillSized(t, registrar.New(store, schemes, registrar.Options{Now: time.Now}))
	if err := store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".sst" {
			info, fault := d.Info()
			if fault != nil {
				return fault
			}
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	each := float64(size) / (sizedNames * sizedMonths)
	t.Logf("%.1f bytes a name and month in Pebble", each)
	if each > 40 || each < 1 {
		t.Errorf("%.1f bytes a name and month; at most 40 are allowed", each)
	}
}

// TestPostgresServers has two servers over one database add up, and bounds the bytes of a name and month there, with the index.
func TestPostgresServers(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{})
	url := server.Database(t)
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), url, postgres.Options{Now: time.Now}, nil); err != nil {
		t.Fatal(err)
	}
	var list []*registrar.Registrar
	for range 2 {
		store, err := postgres.Open(t.Context(), url, postgres.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		list = append(list, registrar.New(store, schemes, registrar.Options{Now: time.Now, Shared: true}))
	}
	fillSized(t, list...)
	// Statements that return nothing are all that the server takes here, so the bound is checked there.
	database := url[strings.LastIndexByte(url, '/')+1:]
	database, _, _ = strings.Cut(database, "?")
	server.Exec(t, database, "VACUUM FULL stele.cells", fmt.Sprintf(`DO $$ BEGIN
		IF pg_total_relation_size('stele.cells') > %d THEN
			RAISE EXCEPTION '%% bytes a name and month', pg_total_relation_size('stele.cells') / %d;
		END IF; END $$`, 150*sizedNames*sizedMonths, sizedNames*sizedMonths))
}
