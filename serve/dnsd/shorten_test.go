package dnsd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
)

// answersLike makes n texts as the answers of a zone are: most of each stands in all others, and what
// does not stands in it more than once.
func answersLike(n int) (list [][]byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		var b []byte
		a, c := rng.Uint32(), rng.Uint32()
		for order := range 3 {
			b = fmt.Appendf(b, "\xc0\x0c\x00\x23\x00\x01\x00\x01\x51\x80\x00\x40\x00\x64\x00\x0a\x01u\x08http+N2L%c!^.*$!https://catalog.example.org/%08x/%08x!\x00", 'A'+order, a, c)
		}
		list = append(list, b)
	}
	return list
}

// TestShortenIsShort compares how short texts get with what package s2 makes of them.
func TestShortenIsShort(t *testing.T) {
	list := answersLike(108)
	learned := bytes.Join(list[:8], nil)
	d, ours, theirs := newDictionary(learned), 0, 0
	for _, text := range list[8:] {
		short := d.shorten(nil, text)
		if back, err := d.Decode(nil, short); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%q comes back as %q, %v", text, back, err)
		}
		ours, theirs = ours+len(short), theirs+len(d.Encode(nil, text))
	}
	if ours > theirs {
		t.Errorf("%d bytes are %d, and package s2 makes %d of them", len(learned)/8*100, ours, theirs)
	}
}

// anyText makes a text of so many bytes in which parts of it stand again.
func anyText(rng *rand.Rand, n int) []byte {
	b, kinds := make([]byte, 0, n), 1+rng.IntN(40)
	for len(b) < n {
		if rng.IntN(3) == 0 || len(b) == 0 {
			for range 1 + rng.IntN(90) {
				b = append(b, byte(rng.IntN(kinds)))
			}
		} else {
			from := rng.IntN(len(b))
			b = append(b, b[from:min(len(b), from+rng.IntN(500))]...)
		}
	}
	return b[:n]
}

// TestShortenAnything shortens texts of all kinds.
func TestShortenAnything(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(5, seed))
		checkShorten(t, anyText(rng, s2.MinDictSize+rng.IntN(1<<rng.IntN(13))), anyText(rng, rng.IntN(1<<rng.IntN(12)+1)))
	}
}

// checkShorten shortens a text with a dictionary, and has package s2 read it.
func checkShorten(t *testing.T, learned, text []byte) {
	t.Helper()
	d := newDictionary(learned)
	if d == nil {
		return
	}
	short := d.shorten(nil, text)
	if len(short) > s2.MaxEncodedLen(len(text)) {
		t.Errorf("%d bytes are %d", len(text), len(short))
	}
	if back, err := d.Decode(nil, short); err != nil || !bytes.Equal(back, text) {
		t.Fatalf("%x with %x is %x, which comes back as %x, %v", text, learned, short, back, err)
	}
}

// FuzzShorten shortens any text with any dictionary, and has package s2 read it.
func FuzzShorten(f *testing.F) {
	list := answersLike(12)
	for i, text := range list {
		f.Add(bytes.Join(list[:i], nil), text)
	}
	long := bytes.Repeat([]byte("0123456789abcdef."), 250)[:maxShortened]
	f.Add(long, long)
	f.Add(long, bytes.Repeat([]byte{0}, maxShortened))
	f.Add(long[:1000], append(append([]byte("begin"), long[900:3000]...), long[3:400]...))
	f.Add([]byte("0123456789abcdef"), []byte("9abcdef0123456789abcdef"))
	rng := rand.New(rand.NewPCG(3, 4))
	random := make([]byte, maxShortened)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	f.Add(random[:s2.MinDictSize], random)
	f.Add(random, append(random[4000:], random[:4000]...))
	f.Fuzz(func(t *testing.T, learned, text []byte) {
		if len(learned) > enoughBytes+maxShortened || len(text) > maxShortened {
			return
		}
		checkShorten(t, learned, text)
	})
}

// BenchmarkShorten compares it with package s2.
func BenchmarkShorten(b *testing.B) {
	list := answersLike(108)
	d := newDictionary(bytes.Join(list[:8], nil))
	room := make([]byte, s2.MaxEncodedLen(maxShortened))
	for _, one := range []struct {
		name    string
		shorten func(text []byte) []byte
	}{
		{"ours", func(text []byte) []byte { return d.shorten(room[:0], text) }},
		{"s2", func(text []byte) []byte { return d.Encode(room, text) }},
	} {
		b.Run(one.name, func(b *testing.B) {
			size := 0
			for i := 0; b.Loop(); i++ {
				size += len(one.shorten(list[8+i%100]))
			}
			b.ReportMetric(float64(size)/float64(b.N), "bytes")
		})
	}
}
