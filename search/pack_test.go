package search

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// packed makes a pack of words, and returns the word of its key and its value.
func packed(words []string, documents []uint16) (first, value []byte) {
	p := new(pack)
	p.begin(7)
	for i, w := range words {
		p.add([]byte(w), documents[i])
	}
	return p.key[blockHead+1:], p.value
}

// TestPack reads what a pack was made of.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringMatching(`[abc]{1,5}|é{1,32}`), 1, packWords, rapid.ID).Draw(t, "words")
		slices.Sort(words)
		documents := rapid.SliceOfN(rapid.Uint16(), len(words), len(words)).Draw(t, "documents")
		first, value := packed(words, documents)
		if string(first) != words[0] {
			t.Fatalf("the key has %q", first)
		}
		n := 0
		ok := readPack(first, value, func(word []byte, document uint16) bool {
			if string(word) != words[n] || document != documents[n] {
				t.Fatalf("read %q of %d, want %q of %d", word, document, words[n], documents[n])
			}
			n++
			return true
		})
		if !ok || n != len(words) {
			t.Fatalf("%d words of %d, %v", n, len(words), ok)
		}
		if readPack(first, value[:len(value)-1], func([]byte, uint16) bool { return true }) {
			t.Fatal("a pack without its end is read")
		}
	})
}

// FuzzPack: whatever the bytes are, words are bounded and their number is, too.
func FuzzPack(f *testing.F) {
	first, value := packed([]string{"rio", "rios", "rua"}, []uint16{1, 2, 65535})
	f.Add(first, value)
	f.Add([]byte("rio"), []byte{3, 0xff, 1})
	f.Add(bytes.Repeat([]byte("a"), maxWord), []byte{maxWord, maxWord, 'a'})
	f.Fuzz(func(t *testing.T, first, value []byte) {
		n := 0
		readPack(first, value, func(word []byte, _ uint16) bool {
			if n++; len(word) > max(len(first), len(value)) {
				t.Fatalf("a word of %d bytes from %d", len(word), len(value))
			}
			return true
		})
		if n > len(value)/4 {
			t.Fatalf("%d words from %d bytes", n, len(value))
		}
	})
}

// TestPackedWords finds words that stand in one record, whichever of the packs has them, before and
// after the same words come again in a later part of the block.
func TestPackedWords(t *testing.T) {
	w := newWorld(t, 0)
	w.open(t)
	defer w.index.Close()
	w.index.tables = 100 // documents from which on tables are written
	const many = 1000
	for i := range many {
		w.put(t, newRecord(fmt.Sprintf("ark:1/a%d", i), fmt.Sprintf("rio w%05dz", 7*i)))
	}
	w.catchUp(t)
	find := func(text string) []string { return w.find(t, Query{Text: text, Limit: 20}, everything) }
	for i := range many {
		if got := find(fmt.Sprintf("w%05dz", 7*i)); len(got) != 1 || got[0] != fmt.Sprintf("ark:1/a%d", i) {
			t.Fatalf("word %d is in %q", i, got)
		}
		if got := find(fmt.Sprintf("w%05dy", 7*i)); len(got) != 0 {
			t.Fatalf("a word that is missing is in %q", got)
		}
	}
	for beginning, want := range map[string]int{"w*": many, "w0000*": 2, "w00*": 143, "w06993z*": 1, "w07*": 0, "a99*": 11, "zz*": 0, "a*": many, "00*": 0} {
		if got := find(beginning); len(got) != want {
			t.Errorf("%s finds %d records, want %d", beginning, len(got), want)
		}
	}
	w.put(t, newRecord("ark:1/b", "mar w00007z w00008z"))
	w.put(t, newRecord("ark:1/a2", "mar")) // it had w00014z
	w.catchUp(t)
	for text, want := range map[string]string{"w00007z": "ark:1/b ark:1/a1", "w00008z": "ark:1/b", "w00014z": "", "w0000*": "ark:1/b ark:1/a1 ark:1/a0", "mar w00007z": "ark:1/b"} {
		if got := strings.Join(find(text), " "); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
}

// TestSorter: texts are in the order of their bytes.
func TestSorter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.StringMatching(`(abcdefgh)?[ab\x00]{0,10}`)).Draw(t, "texts")
		s := new(sorter)
		for i, text := range texts {
			s.items = append(s.items, headed{headOf(text), uint32(i)})
		}
		order := s.sort(nil, func(a, b uint32) int { return strings.Compare(texts[a], texts[b]) })
		var got []string
		for _, n := range order {
			got = append(got, texts[n])
		}
		slices.Sort(texts)
		if !slices.Equal(got, texts) {
			t.Fatalf("got %q, want %q", got, texts)
		}
	})
}
