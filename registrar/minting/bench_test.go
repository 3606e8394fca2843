package minting_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stele-id/stele"
)

// BenchmarkMintIBI makes labels of both forms at r = 1 microsecond, one call for
// many and one call for each.
func BenchmarkMintIBI(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			f := newFixture(b)
			key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
			b.ReportAllocs()
			for i := 0; i < b.N; i += n {
				if _, err := f.Mint(f.admin, key, min(n, b.N-i)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "labels/s")
		})
	}
	b.Run("goroutines=64", func(b *testing.B) {
		f := newFixture(b)
		key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
		together(b, 64, func() error { _, err := f.Mint(f.admin, key, 1); return err })
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "labels/s")
	})
}

// BenchmarkMintPILIN shows how much of the grid's 1000 handles a second is used.
func BenchmarkMintPILIN(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			f := newFixture(b)
			key := f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
			together(b, callers, func() error { _, err := f.Mint(f.admin, key, 1); return err })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handles/s")
		})
	}
	b.Run("batch", func(b *testing.B) {
		f := newFixture(b)
		key := f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
		if _, err := f.Mint(f.admin, key, b.N); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handles/s")
	})
}

func BenchmarkMintNOID(b *testing.B) {
	f := newFixture(b)
	key := f.space("ark:12345/x5", minter(noid(".reedeedeedk")))
	together(b, 64, func() error { _, err := f.Mint(f.admin, key, 1); return err })
}

// BenchmarkMintAndRegister is compared with bare commits of the same records, in a
// store that takes no time for them.
func BenchmarkMintAndRegister(b *testing.B) {
	b.Run("stele", func(b *testing.B) {
		f := newFixture(b)
		key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
		together(b, 64, func() error {
			_, err := f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key)
			return err
		})
	})
	b.Run("bare", func(b *testing.B) {
		f := newFixture(b)
		var n atomic.Int64
		together(b, 64, func() error {
			i := n.Add(1)
			rec := f.record("", "https://example.org/1")
			rec.ID, _ = stele.NewID("ibi", fmt.Sprintf("sid.inpe.br/mtc-m18/2026/11.15.05.32.07.%d1", i))
			alias, _ := stele.NewID("ibi", fmt.Sprintf("8JMKD3MGPCW/4FQ%dW", i))
			rec.Aliases = []stele.ID{alias}
			rec.Version, rec.State = 1, stele.Active
			return f.store.Apply(f.admin, &stele.Commit{Records: []*stele.Record{rec}})
		})
	})
}

// together calls do b.N times from so many goroutines.
func together(b *testing.B, goroutines int, do func() error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
