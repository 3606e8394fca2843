package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
)

// sortKey is a key with what decides most comparisons: the eight bytes after those that
// all keys begin with.
type sortKey struct {
	head uint64
	key  []byte
}

func (k sortKey) compare(other sortKey) int {
	if k.head != other.head {
		return cmp.Compare(k.head, other.head)
	}
	return bytes.Compare(k.key, other.key)
}

// sortKeys sorts a list that may well be sorted already.
func sortKeys[T any](list []T, key func(*T) *sortKey, compare func(a, b T) int) {
	if len(list) == 0 {
		return
	}
	first := key(&list[0]).key
	same := len(first)
	for i := range list {
		k := key(&list[i]).key
		if same = min(same, len(k)); bytes.Equal(k[:same], first[:same]) {
			continue
		}
		for same > 0 && !bytes.Equal(k[:same], first[:same]) {
			same--
		}
	}
	for i := range list {
		k := key(&list[i])
		var head [8]byte
		copy(head[:], k.key[same:])
		k.head = binary.BigEndian.Uint64(head[:])
	}
	if !slices.IsSortedFunc(list, compare) {
		sortParts(list, runtime.GOMAXPROCS(0), compare)
	}
}

// sortPart is how much of a list is worth a processor of its own.
const sortPart = 1 << 13

// sortParts sorts a list by parts, several at once, and merges them.
func sortParts[T any](list []T, processors int, compare func(a, b T) int) {
	if processors < 2 || len(list) < 2*sortPart {
		slices.SortFunc(list, compare)
		return
	}
	left, right := list[:len(list)/2], list[len(list)/2:]
	var wg sync.WaitGroup
	wg.Go(func() { sortParts(left, processors/2, compare) })
	sortParts(right, processors-processors/2, compare)
	wg.Wait()
	merged := make([]T, 0, len(list))
	for len(left) > 0 && len(right) > 0 {
		if compare(left[0], right[0]) <= 0 {
			merged, left = append(merged, left[0]), left[1:]
		} else {
			merged, right = append(merged, right[0]), right[1:]
		}
	}
	copy(list, append(append(merged, left...), right...))
}
