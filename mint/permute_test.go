package mint

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPermutationIsBijection(t *testing.T) {
	for _, total := range []uint64{1, 2, 3, 4, 5, 10, 16, 17, 29, 64, 65, 290, 841, 1000, 1 << 12, 1<<12 + 1} {
		for _, seed := range []uint64{0, 1, 2, 42, 1 << 63, math.MaxUint64} {
			p := newPermutation(total, seed)
			seen := make([]bool, total)
			for n := range total {
				v := p.at(n)
				if v >= total || seen[v] {
					t.Fatalf("total %d, seed %d: number %d is %d, which is outside or came before", total, seed, n, v)
				}
				seen[v] = true
				if back := p.index(v); back != n {
					t.Fatalf("total %d, seed %d: %d -> %d -> %d", total, seed, n, v, back)
				}
			}
		}
	}
}

func TestPermutationInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Uint64Range(1, math.MaxUint64).Draw(t, "total")
		n := rapid.Uint64Range(0, total-1).Draw(t, "n")
		p := newPermutation(total, rapid.Uint64().Draw(t, "seed"))
		v := p.at(n)
		if v >= total || p.index(v) != n || p.at(p.index(n)) != n {
			t.Fatalf("%d of %d -> %d -> %d", n, total, v, p.index(v))
		}
	})
}

// Names in use depend on these numbers. If this test fails, the code is wrong,
// never the numbers.
func TestPermutationNeverChanges(t *testing.T) {
	for _, g := range []struct {
		total, seed uint64
		want        []uint64
	}{
		{10, 0, []uint64{1, 0, 9, 3, 5, 6, 2, 8, 7, 4}},
		{10, 1, []uint64{2, 6, 4, 8, 5, 7, 0, 9, 3, 1}},
		{29 * 29 * 10 * 29 * 29 * 10, 0, []uint64{
			45980565, 21726829, 38265042, 67876854, 43031077, 17461830, 31681240, 69506042, 33140534, 24897841,
		}},
		{29 * 29 * 10 * 29 * 29 * 10, 20240229, []uint64{
			45182777, 33641892, 35364966, 38410431, 46115696, 65160737, 4734020, 48183646, 14585852, 50524337,
		}},
		{math.MaxUint64, 7, []uint64{
			3260719444439355444, 5848672980313953637, 5736249756587577405, 4178197936731910174,
			10780098468675064994, 6424266213015558880, 4230649742817064670, 13903799288683122510,
			14969752938335514731, 5546306703267113019,
		}},
	} {
		p := newPermutation(g.total, g.seed)
		var got []uint64
		for n := range min(g.total, 10) {
			got = append(got, p.at(n))
		}
		if !slices.Equal(got, g.want) {
			t.Errorf("total %d, seed %d:\n got %d\nwant %d", g.total, g.seed, got, g.want)
		}
	}
}

// The order looks random: about as many steps go up as down, and few are short.
func TestPermutationLooksUnordered(t *testing.T) {
	const total = 29 * 29 * 10
	for seed := range uint64(20) {
		p := newPermutation(total, seed)
		up, short, fixed := 0, 0, 0
		for n := range uint64(total - 1) {
			step := int64(p.at(n+1)) - int64(p.at(n))
			if step > 0 {
				up++
			}
			if -total/100 < step && step < total/100 {
				short++
			}
			if p.at(n) == n {
				fixed++
			}
		}
		if up < total*45/100 || up > total*55/100 {
			t.Errorf("seed %d: %d of %d steps go up", seed, up, total)
		}
		if short > total*5/100 {
			t.Errorf("seed %d: %d of %d steps are short", seed, short, total)
		}
		if fixed > 12 {
			t.Errorf("seed %d: %d numbers stay where they are", seed, fixed)
		}
	}
}

// Another seed is another order, also in a small space.
func TestPermutationDependsOnSeed(t *testing.T) {
	orders := make(map[[10]uint64]bool)
	for seed := range uint64(1000) {
		p := newPermutation(10, seed)
		var order [10]uint64
		for n := range uint64(10) {
			order[n] = p.at(n)
		}
		orders[order] = true
	}
	if len(orders) < 990 {
		t.Errorf("1000 seeds give %d orders", len(orders))
	}
}

func BenchmarkPermutation(b *testing.B) {
	for b.Loop() {
		p := newPermutation(70728100, 42)
		p.at(12345)
	}
}
