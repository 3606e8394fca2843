package nsec3

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

// TestChain holds a chain against a list of all names, however they came and went.
func TestChain(t *testing.T) {
	const zone = "z.example."
	label := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	rapid.Check(t, func(t *rapid.T) {
		c := New()
		there := map[string][]uint16{zone: {dns.TypeSOA}}
		c.Set(zone, zone, there[zone])
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			name := strings.Join(rapid.SliceOfN(label, 1, 3).Draw(t, "labels"), ".") + "." + zone
			if rapid.Bool().Draw(t, "there") {
				there[name] = []uint16{rapid.SampledFrom([]uint16{dns.TypeA, dns.TypeTXT}).Draw(t, "type")}
			} else {
				delete(there, name)
			}
			c.Set(name, zone, there[name])
		}
		want := wantedChain(there, zone)
		var got []string
		for _, page := range c.pages {
			for i := range page {
				got = append(got, page[i].hash.Label()+" "+typesText(c.kinds[page[i].kind]))
			}
		}
		if !slices.Equal(got, want) || c.count != len(want) {
			t.Fatalf("%d links\n%v\nwant\n%v", c.count, got, want)
		}
	})
}

// wantedChain is the chain of names, and of those above them.
func wantedChain(there map[string][]uint16, zone string) (list []string) {
	all := make(map[string]string)
	for name, types := range there {
		all[name] = typesText(types)
		for above := name; above != zone; {
			_, above, _ = strings.Cut(above, ".")
			all[above] = typesText(there[above])
		}
	}
	for name, text := range all {
		h := HashName(name)
		list = append(list, h.Label()+" "+text)
	}
	slices.Sort(list)
	return list
}

func typesText(types []uint16) string {
	var b strings.Builder
	for _, t := range types {
		b.WriteString(dns.TypeToString[t])
	}
	return b.String()
}

// TestLongChain checks that pages are split and joined with the order kept.
func TestLongChain(t *testing.T) {
	c := New()
	const n = 5000
	name := func(i int) string {
		return strings.Repeat("x", i%50+1) + strings.Repeat("y", i/50+1)[:min(i/50+1, 60)] + "."
	}
	hashes := make(map[Hash]bool)
	for i := range n {
		c.Set(name(i)+"z.", "z.", []uint16{dns.TypeA})
		hashes[HashName(name(i)+"z.")] = true
	}
	hashes[HashName("z.")] = true
	var last *Hash
	count := 0
	for _, page := range c.pages {
		for i := range page {
			if last != nil && bytes.Compare(last[:], page[i].hash[:]) >= 0 {
				t.Fatal("out of order")
			}
			last = &page[i].hash
			count++
		}
	}
	if count != len(hashes) || count != c.count || len(c.pages) < 2 {
		t.Errorf("%d links in %d pages, want %d", count, len(c.pages), len(hashes))
	}
	for i := range n {
		c.Set(name(i)+"z.", "z.", nil)
	}
	if c.count != 0 || len(c.pages) != 0 {
		t.Errorf("%d links are left", c.count)
	}
}

// TestDelta holds the links that a watch says have changed against two chains: applied to
// the one before they give the one after, whatever else changed since the watch began.
func TestDelta(t *testing.T) {
	const zone = "z.example."
	label := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	links := func(state map[string][]uint16) map[Hash]string {
		c, all := New(), make(map[Hash]string)
		for name, types := range state {
			c.Set(name, zone, Types(types))
		}
		_ = c.Each(func(l *Link) error { all[l.Hash] = fmt.Sprint(l.Next, l.Types); return nil })
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		states := []map[string][]uint16{{zone: {dns.TypeSOA}}}
		change := func() {
			next := maps.Clone(states[len(states)-1])
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				name := strings.Join(rapid.SliceOfN(label, 1, 3).Draw(t, "labels"), ".") + "." + zone
				delete(next, name)
				if rapid.Bool().Draw(t, "there") {
					next[name] = []uint16{rapid.SampledFrom([]uint16{dns.TypeA, dns.TypeTXT}).Draw(t, "type")}
				}
			}
			states = append(states, next)
		}
		for range 4 {
			change()
		}
		// The chain is as in the third state when the watch begins, and goes on to the fourth.
		c := New()
		for name, types := range states[3] {
			c.Set(name, zone, Types(types))
		}
		w := c.Watch()
		defer w.Stop()
		for _, state := range states {
			for name := range state {
				c.Set(name, zone, Types(states[4][name]))
			}
		}
		differs := func(state map[string][]uint16) map[string][]uint16 {
			all := make(map[string][]uint16)
			for _, one := range states {
				for name := range one {
					all[name] = state[name]
				}
			}
			return all
		}
		have := links(states[1])
		for _, l := range w.Delta(zone, differs(states[1]), differs(states[2])) {
			if l.Before != nil {
				if got := fmt.Sprint(l.Before.Next, l.Before.Types); have[l.Before.Hash] != got {
					t.Fatalf("%s is said to have been %s, and was %s", l.Before.Hash.Label(), got, have[l.Before.Hash])
				}
				delete(have, l.Before.Hash)
			}
			if l.After != nil {
				have[l.After.Hash] = fmt.Sprint(l.After.Next, l.After.Types)
			}
		}
		if want := links(states[2]); !maps.Equal(have, want) {
			t.Fatalf("%d links, want %d", len(have), len(want))
		}
	})
}

// BenchmarkChain puts names into a chain that has a million.
func BenchmarkChain(b *testing.B) {
	c := New()
	types := []uint16{dns.TypeNAPTR, dns.TypeRRSIG, dns.TypeURI}
	for i := range 1_000_000 {
		c.Set(fmt.Sprintf("n%d.z.", i), "z.", types)
	}
	b.Run("add", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			c.Set(fmt.Sprintf("m%d.z.", i), "z.", types)
		}
	})
	b.Run("deny", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, ok := c.Cover(fmt.Sprintf("x%d.z.", i)); !ok {
				b.Fatal("it exists")
			}
		}
	})
}
