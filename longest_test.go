package stele_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// looks finds the longest prefix of a text among names, and counts how often it looks.
func looks(names []string, text string, cuts func(int) bool) (n, asked int) {
	slices.Sort(names)
	n, _ = stele.LongestPrefix(text, cuts, func(n int) (length, common int, ok bool, err error) {
		asked++
		i, found := slices.BinarySearch(names, text[:n])
		if !found {
			i--
		}
		if i < 0 {
			return 0, 0, false, nil
		}
		return len(names[i]), stele.CommonPrefix(names[i], text[:n]), true, nil
	})
	return n, asked
}

// A long name, or many prefixes one in the other, cost no more than a few looks.
func TestLongestPrefixLooksSeldom(t *testing.T) {
	long := strings.Repeat("a/", stele.MaxText/2)
	anywhere := func(int) bool { return true }
	var nested, numbered []string
	for i := 1; i < len(long); i++ {
		nested = append(nested, long[:i])
	}
	for i := range 10_000 {
		numbered = append(numbered, "ark:12345/x"+string([]byte{'0' + byte(i/1000), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)}))
	}
	for _, c := range []struct {
		what  string
		names []string
		text  string
		cuts  func(int) bool
		want  int
		most  int
	}{
		{"nothing is registered", nil, long, anywhere, 0, 1},
		{"all prefixes are registered", nested, long, anywhere, len(long) - 1, 1},
		{"the name leaves them early", nested, "a/a" + strings.Repeat("b", 4000), anywhere, 3, 2},
		{"one that is far shorter", []string{"a"}, long, anywhere, 1, 1},
		{"numbers, and one of them", numbered, "ark:12345/x5555" + strings.Repeat("/5", 1000), anywhere, 15, 1},
		{"numbers, and none of them", numbered, "ark:12345/x55y" + strings.Repeat("5", 1000), anywhere, 0, 5},
		{"numbers, and another namespace", numbered, "ark:99999/" + long[:1000], anywhere, 0, 2},
		{"cuts that no name has", numbered, "ark:12345/x5555z", func(n int) bool { return n == 14 || n == 10 }, 0, 3},
		{"one of the cuts", numbered, "ark:12345/x5555z/x", func(n int) bool { return n == 16 || n == 15 }, 15, 1},
	} {
		if n, asked := looks(c.names, c.text, c.cuts); n != c.want || asked > c.most {
			t.Errorf("%s: %d bytes after %d looks, want %d after %d at most", c.what, n, asked, c.want, c.most)
		}
	}
}
