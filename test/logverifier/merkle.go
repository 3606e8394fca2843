// Package logverifier is a second implementation of what readers of a transparency log do: it checks trees, checkpoints, leaves
// and files of proofs. It is written from the specifications alone, with the standard library, and shares no code with package
// transparency. What both say of a log is held against each other by tests. No program uses it.
package logverifier

import (
	"crypto/sha256"
	"errors"
	"math/bits"
)

// Hash is a SHA-256 hash.
type Hash = [32]byte

// LeafHash returns the hash of an entry (RFC 6962, section 2.1).
func LeafHash(entry []byte) Hash {
	return sha256.Sum256(append([]byte{0}, entry...))
}

func nodeHash(left, right Hash) Hash {
	b := append([]byte{1}, left[:]...)
	return sha256.Sum256(append(b, right[:]...))
}

// split returns the largest power of two that is smaller than n, which is at least 2.
func split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// Root returns the hash of a tree with these leaves: MTH of RFC 6962, section 2.1, by its definition.
func Root(leaves []Hash) Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := split(len(leaves))
	return nodeHash(Root(leaves[:k]), Root(leaves[k:]))
}

// Path returns the audit path of a leaf: PATH of RFC 6962, section 2.1.1.
func Path(m int, leaves []Hash) []Hash {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if m < k {
		return append(Path(m, leaves[:k]), Root(leaves[k:]))
	}
	return append(Path(m-k, leaves[k:]), Root(leaves[:k]))
}

// Growth returns the proof that a tree of m leaves is the beginning of another: PROOF of RFC 6962, section 2.1.2.
func Growth(m int, leaves []Hash) []Hash {
	var sub func(m int, leaves []Hash, whole bool) []Hash
	sub = func(m int, leaves []Hash, whole bool) []Hash {
		if m == len(leaves) {
			if whole {
				return nil
			}
			return []Hash{Root(leaves)}
		}
		k := split(len(leaves))
		if m <= k {
			return append(sub(m, leaves[:k], whole), Root(leaves[k:]))
		}
		return append(sub(m-k, leaves[k:], false), Root(leaves[:k]))
	}
	return sub(m, leaves, true)
}

var (
	errPath   = errors.New("the leaf is not in the tree")
	errGrowth = errors.New("the tree is not the beginning of the other")
)

// CheckInclusion checks an audit path (RFC 9162, section 2.1.3.2).
func CheckInclusion(index, size uint64, leaf Hash, path []Hash, root Hash) error {
	if index >= size {
		return errPath
	}
	fn, sn, r := index, size-1, leaf
	for _, p := range path {
		if sn == 0 {
			return errPath
		}
		if fn&1 == 1 || fn == sn {
			r = nodeHash(p, r)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			r = nodeHash(r, p)
		}
		fn, sn = fn>>1, sn>>1
	}
	if sn != 0 || r != root {
		return errPath
	}
	return nil
}

// CheckGrowth checks a proof of consistency (RFC 9162, section 2.1.4.2).
func CheckGrowth(first, second uint64, proof []Hash, before, after Hash) error {
	switch {
	case first == second && len(proof) == 0 && before == after:
		return nil
	case first == 0 || first >= second || len(proof) == 0:
		return errGrowth
	}
	if first&(first-1) == 0 {
		proof = append([]Hash{before}, proof...)
	}
	fn, sn := first-1, second-1
	for fn&1 == 1 {
		fn, sn = fn>>1, sn>>1
	}
	fr, sr := proof[0], proof[0]
	for _, c := range proof[1:] {
		if sn == 0 {
			return errGrowth
		}
		if fn&1 == 1 || fn == sn {
			fr, sr = nodeHash(c, fr), nodeHash(c, sr)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			sr = nodeHash(sr, c)
		}
		fn, sn = fn>>1, sn>>1
	}
	if sn != 0 || fr != before || sr != after {
		return errGrowth
	}
	return nil
}
