package minting_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// TestRestore restores a backup, and mints no name that was minted since.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		dated := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
		pilin := f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
		used := f.space("ark:12345/x5", minter(noid(".sdddd")))
		unused := f.space("ark:12345/y5", minter(noid(".sdddd")))
		ordered := f.space("ark:12345/f5", minter(original(".reedeedk", 0)))
		f.first(dated)
		f.first(used)
		f.first(ordered)
		backup := filepath.Join(dir, "backup")
		if err := f.store.Backup(f.admin, backup); err != nil {
			t.Fatal(err)
		}
		given := issuedNames{given: make(map[stele.ID]string)}
		take := func() {
			t.Helper()
			for _, key := range []stele.NamespaceKey{dated, pilin, used, unused, ordered} {
				for _, l := range must(f.Mint(f.admin, key, 100))(t) {
					given.add(key.String(), names(l)...)
				}
			}
		}
		time.Sleep(10 * time.Second)
		take()
		f.store = must(mem.Open(backup, f.clock))(t)
		f.start()
		for range 2 { // calling it twice does no harm
			if err := f.AfterRestore(f.admin); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []stele.NamespaceKey{used, unused, ordered} {
			_, err := f.Mint(f.admin, key, 1)
			want(t, err, stele.Conflict, "skip it ahead")
			if s := must(f.MinterStatus(f.admin, key))(t); !s.Shut {
				t.Errorf("%s: %+v", key, s)
			}
			if err := f.SkipCounter(f.admin, key, 2000); err != nil {
				t.Fatal(err)
			}
		}
		take()
		if len(given.twice) > 0 {
			t.Errorf("%d names twice, the first is %s", len(given.twice), given.twice[0])
		}
		want(t, f.AfterRestore(as("ann")), stele.Forbidden)
		// Dates that the backup has from the future stay ahead.
		f.jump(time.Hour)
		f.first(dated)
		f.jump(-time.Hour)
		if err := f.AfterRestore(f.admin); err != nil {
			t.Fatal(err)
		}
		_, err := f.Mint(f.admin, dated, 1)
		want(t, err, stele.Unavailable, "behind")
	})
}
