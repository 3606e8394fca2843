package mint

import "math/bits"

// permutation is a keyed bijection of [0, total): it puts the numbers of a
// counter into an order that looks random, so that the store keeps only a counter, and no
// number comes twice. It hides the order from a reader, not from an attacker.
//
// It is a Feistel network over the smallest even number of bits that holds
// total-1; what falls outside is permuted again until it falls inside, at most 4
// times on average.
//
// Names in use depend on every constant here. None may ever change; another
// permutation needs another generator letter in the template. The tests hold
// samples.
type permutation struct {
	total uint64
	half  uint // bits in each half
	mask  uint64
	keys  [rounds]uint64
}

const rounds = 8

// newPermutation makes the permutation that the seed chooses. total is not 0.
func newPermutation(total, seed uint64) permutation {
	half := uint(bits.Len64(total-1)+1) / 2
	p := permutation{total: total, half: half, mask: 1<<half - 1}
	for i := range p.keys {
		p.keys[i] = mix(seed + uint64(i+1)*0x9e3779b97f4a7c15)
	}
	return p
}

// at returns the n-th number of the order. n is less than total.
func (p *permutation) at(n uint64) uint64 {
	for {
		left, right := n>>p.half, n&p.mask
		for _, key := range p.keys {
			left, right = right, left^p.round(right, key)
		}
		if n = left<<p.half | right; n < p.total {
			return n
		}
	}
}

// index returns where in the order v stands: at(index(v)) == v. v is less than
// total.
func (p *permutation) index(v uint64) uint64 {
	for {
		left, right := v>>p.half, v&p.mask
		for i := rounds - 1; i >= 0; i-- {
			left, right = right^p.round(left, p.keys[i]), left
		}
		if v = left<<p.half | right; v < p.total {
			return v
		}
	}
}

func (p *permutation) round(v, key uint64) uint64 { return mix(v^key) & p.mask }

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014): every bit of x changes every bit of the
// result with a probability near one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
