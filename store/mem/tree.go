package mem

import (
	"cmp"
	"iter"
	"math/rand/v2"
)

// tree is an ordered map that never changes: with and without return another one
// and leave this one as it is, so a tree is a snapshot. It is a treap, a search tree by
// key and a heap by random ranks, which keeps it about balanced without any
// bookkeeping. The zero tree is empty.
type tree[V any] struct{ root *node[V] }

type node[V any] struct {
	key         string
	value       V
	rank        uint64 // no less than those below
	left, right *node[V]
}

// get returns the value of key, and whether there is one.
func (t tree[V]) get(key string) (v V, ok bool) {
	n := t.root
	for n != nil {
		switch cmp.Compare(key, n.key) {
		case 0:
			return n.value, true
		case -1:
			n = n.left
		default:
			n = n.right
		}
	}
	return v, false
}

// floor returns the last key that is not after the given one.
func (t tree[V]) floor(key string) (found string, ok bool) {
	for n := t.root; n != nil; {
		if n.key > key {
			n = n.left
			continue
		}
		found, ok = n.key, true
		n = n.right
	}
	return found, ok
}

// with returns the tree in which key has the value v.
func (t tree[V]) with(key string, v V) tree[V] { return tree[V]{t.root.with(key, v)} }

func (n *node[V]) with(key string, v V) *node[V] {
	if n == nil {
		return &node[V]{key: key, value: v, rank: rand.Uint64()}
	}
	top := *n
	switch cmp.Compare(key, n.key) {
	case 0:
		top.value = v
	case -1:
		top.left = n.left.with(key, v)
		if top.left.rank > top.rank {
			up := *top.left
			top.left, up.right = up.right, &top
			return &up
		}
	default:
		top.right = n.right.with(key, v)
		if top.right.rank > top.rank {
			up := *top.right
			top.right, up.left = up.left, &top
			return &up
		}
	}
	return &top
}

// without returns the tree in which key has no value.
func (t tree[V]) without(key string) tree[V] { return tree[V]{t.root.without(key)} }

func (n *node[V]) without(key string) *node[V] {
	if n == nil {
		return nil
	}
	top := *n
	switch cmp.Compare(key, n.key) {
	case 0:
		return join(n.left, n.right)
	case -1:
		top.left = n.left.without(key)
	default:
		top.right = n.right.without(key)
	}
	return &top
}

// join makes one tree of two, where all keys of a are less than those of b.
func join[V any](a, b *node[V]) *node[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.rank > b.rank:
		top := *a
		top.right = join(a.right, b)
		return &top
	default:
		top := *b
		top.left = join(a, b.left)
		return &top
	}
}

// from yields the keys that are not less than key, in order, and their values.
func (t tree[V]) from(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { t.root.from(key, yield) }
}

func (n *node[V]) from(key string, yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	if key < n.key && !n.left.from(key, yield) {
		return false
	}
	if key <= n.key && !yield(n.key, n.value) {
		return false
	}
	return n.right.from(key, yield)
}
