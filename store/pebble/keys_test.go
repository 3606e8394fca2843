package pebble

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// odd makes texts with bytes that matter to keys.
func odd() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff, 'a', 'b', '/'}), 0, 12).Draw(t, "text"))
	})
}

// TestEnded: what is escaped has the order of its texts, is the beginning of no other,
// and is found again in front of anything.
func TestEnded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, rest := odd().Draw(t, "a"), odd().Draw(t, "b"), odd().Draw(t, "rest")
		x, y := appendEnded(nil, a), appendEnded(nil, b)
		if bytes.Compare(x, y) != strings.Compare(a, b) {
			t.Fatalf("order of %q and %q", a, b)
		}
		if a != b && bytes.HasPrefix(x, y) {
			t.Fatalf("%q begins like %q", a, b)
		}
		if got := cutEnded(append(x, rest...)); string(got) != rest {
			t.Fatalf("behind %q: %q, want %q", a, got, rest)
		}
	})
}

// TestLocations: keys of different locations are apart, also those of long ones.
func TestLocations(t *testing.T) {
	long := strings.Repeat("x", maxLocation)
	var keys [][]byte
	for _, text := range []string{"", "a", "a\x00", "a\x00\x01", "b", long, long + "a", long + "b", long + "\x00", long + long} {
		key := appendLocation(nil, familyURL, text)
		if rest := cutEnded(append(slices.Clone(key), "ark\x00x"...)[1:]); string(rest) != "ark\x00x" {
			t.Errorf("%.20q: %q", text, rest)
		}
		for _, other := range keys {
			if bytes.HasPrefix(key, other) || bytes.HasPrefix(other, key) {
				t.Errorf("%.20q is like another", text)
			}
		}
		keys = append(keys, key)
	}
}

// TestChunk: what is written to the change feed is read again.
func TestChunk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
		last := rapid.Uint64Range(10, 1<<63).Draw(t, "last")
		n := rapid.IntRange(1, 10).Draw(t, "n")
		var want []feedEntry
		var entries []byte
		for i := range n {
			e := feedEntry{stele.Change{Seq: last - uint64(n-1-i), Version: rapid.Uint64().Draw(t, "version"), At: at}}
			text := rapid.StringMatching(`[a-z/]{1,9}`).Draw(t, "text")
			if rapid.Bool().Draw(t, "namespace") {
				e.Namespace = stele.NamespaceKey{Scheme: "ark", Prefix: text}
			} else {
				id, err := stele.NewID("ark", text)
				if err != nil {
					t.Fatal(err)
				}
				e.ID = id
				e.Counted = rapid.SampledFrom([]stele.NamespaceKey{
					{}, {Scheme: "ark"}, {Scheme: "ark", Prefix: text[:len(text)/2]}, {Scheme: "ark", Prefix: text}, {Scheme: "hdl", Prefix: "1\x00/"},
				}).Draw(t, "counted")
				e.CountedAliases = rapid.SampledFrom([][]stele.NamespaceKey{
					nil, {{Scheme: "ark", Prefix: text}}, {{Scheme: "hdl", Prefix: "1\x00/"}, {Scheme: "ark"}},
				}).Draw(t, "aliases")
			}
			entries = appendChange(entries, &e)
			want = append(want, e)
		}
		key, value := appendChangeKey(nil, last), appendChunk(nil, at, n, entries)
		got, err := parseChunk(key, value)
		if err != nil || !slices.EqualFunc(got, want, func(a, b feedEntry) bool { return a.Equal(b.Change) }) {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
		for cut := range value {
			if _, err := parseChunk(key, value[:cut]); err == nil {
				t.Fatalf("the first %d of %d bytes are no chunk", cut, len(value))
			}
		}
	})
}

// FuzzChunk: any bytes give changes or an error.
func FuzzChunk(f *testing.F) {
	entry := appendChange(nil, &feedEntry{stele.Change{Namespace: stele.NamespaceKey{Scheme: "ark"}, Version: 1}})
	f.Add(appendChangeKey(nil, 1), appendChunk(nil, time.Unix(1, 2), 1, entry))
	id, err := stele.NewID("ark", "ark:12345/a")
	if err != nil {
		f.Fatal(err)
	}
	entry = appendChange(nil, &feedEntry{stele.Change{ID: id, Version: 2, CountedAliases: []stele.NamespaceKey{{Scheme: "hdl", Prefix: "1"}, {Scheme: "ark"}}}})
	f.Add(appendChangeKey(nil, 1), appendChunk(nil, time.Unix(1, 2), 1, entry))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		entries, err := parseChunk(key, value)
		if err == nil && len(entries) == 0 {
			t.Error("neither changes nor an error")
		}
		cutEnded(value)
	})
}

// slowHost is what hostOf must return.
func slowHost(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// FuzzHost: the short cut for most URLs gives what net/url does.
func FuzzHost(f *testing.F) {
	for _, text := range []string{
		"https://example.org/a?b#c", "https://EXAMPLE.org", "http://example.org:80/", "http://u:p@h/x", "http://[::1]:8/", "http://%zz/",
		"http://a/%zz", "http://a/%20", "http://a/?%zz", "http://a/#%zz", "mailto:a@b", "://x", "a b://c/", "1a://b/", "a+b-c.d://e.f/", "http:///x", "http://a b/", "http://a\x7f/", "http://a/\x01",
		"http://-./", "//host/path", "host/path", "", "http://ä/", "http://a/ä", "file://host:x/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := hostOf(text), slowHost(text); got != want {
			t.Errorf("hostOf(%q) = %q, want %q", text, got, want)
		}
	})
}
