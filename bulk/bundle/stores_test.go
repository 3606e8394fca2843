package bundle

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stele-id/stele"
	storecopy "github.com/stele-id/stele/store/copy"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// TestSameInStores: a registry gives the same bundle whichever store it is in, and after it was copied from one to the other: its log,
// generation and keys go with it.
func TestSameInStores(t *testing.T) {
	h := newHouse(t)
	folder, err := pebble.Open(t.Context(), t.TempDir(), pebble.Options{Now: h.clock, Log: slog.New(slog.DiscardHandler)})
	h.must(err)
	defer func() { h.must(folder.Close()) }()
	url, o := postgrestest.Start(t, postgrestest.Options{NoSync: true}).Database(t), postgres.Options{Now: h.clock, Log: slog.New(slog.DiscardHandler)}
	h.must(postgres.Migrate(t.Context(), url, o, func(string) {}))
	database, err := postgres.Open(t.Context(), url, o)
	h.must(err)
	defer func() { h.must(database.Close()) }()

	h.over(folder)
	h.now = h.now.Add(123_456_789) // stores keep times of changes to the microsecond
	h.fill(60)
	h.put("ark:99999/reserved", func(r *stele.Record) { r.State = stele.Reserved })
	jobs := func() (list []*Job) {
		for _, prefixes := range [][]string{nil, {"ark:99999"}, {"ark:12345/x1", "20.500.1/"}} {
			j := h.job(prefixes...)
			j.Gzip = len(list) == 2
			j.Usage = figures(used("ark:99999/x2", "2021-03", 1))
			list = append(list, j)
		}
		return list
	}
	var want [][]byte
	for _, j := range jobs() {
		want = append(want, h.bundle(j))
	}
	c := &storecopy.Copier{From: folder, To: database, FromPlace: storecopy.Place{Name: "folder", Absolute: "folder"}, ToPlace: storecopy.Place{Name: "database", Absolute: "database"}, Now: h.clock}
	_, err = c.Run(t.Context())
	h.must(err)
	for name, store := range map[string]stele.Store{"PostgreSQL": database, "the folder, which is sealed since": folder} {
		h.over(store)
		for i, j := range jobs() {
			if got := h.bundle(j); !bytes.Equal(got, want[i]) {
				t.Errorf("%s: bundle %d has other bytes", name, i)
			}
		}
	}
}
